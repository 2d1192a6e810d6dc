"""Stale results are told, and renewed one after the other until all are fresh."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from benchmarks import freshness, renewing
from benchmarks.cli import main
from benchmarks.declared_results import declared_of, known_results, read_declared
from benchmarks.freshness import FRESH, KEPT, NOT_DECLARED, NOT_MADE, RESULTS, chosen, states
from benchmarks.gpu.table import CODE as GPU_CODE
from benchmarks.origin import LOADED, ROOT, code_digest, files_of, read_code
from benchmarks.renewing import arguments_of, renew
from benchmarks.report import read_result, write_result
from pexeso.errors import InputError


@pytest.fixture(autouse=True)
def pages(monkeypatch):
    """No test here writes into the documentation."""
    monkeypatch.setattr(renewing, "write_pages", list)


# A command writes its result as `write_result` does: with the digest of the code as it is then.
MAKE = """
import json, sys
from pathlib import Path
from benchmarks.origin import code_digest, read_code
path, code = Path("results", sys.argv[1]), code_digest(sys.argv[2:], read_code(Path.cwd()))
runs = Path("runs.txt")
runs.write_text(runs.read_text() + sys.argv[1] + " " if runs.exists() else sys.argv[1] + " ")
if Path("broken").exists() and sys.argv[1] == "slow.json":
    sys.exit(3)
path.write_text(json.dumps({"origin": {"code": code, "date": "2026-01-02", "seconds": 90}}))
"""
DECLARED = {
    "code": {"core": ["pexeso/core"]},
    "benchmarks": {
        "slow": {
            "code": ["core"],
            "runs": [{"results": "slow.json", "command": "python make.py slow.json pexeso/core"}],
        },
        "page": {
            "code": ["pexeso/page.py"],
            "runs": [
                {"results": "page.json", "command": "python make.py page.json pexeso/page.py"},
                {"results": "page-first.json", "kept": "the first"},
            ],
        },
        "both": {
            "code": ["core", "pexeso/page.py"],
            "runs": [
                {
                    "results": "both.json",
                    "command": [
                        "python -c pass",
                        "python make.py both.json pexeso/core pexeso/page.py",
                    ],
                    "minutes": 2,
                }
            ],
        },
    },
}


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A repository of its own with three benchmarks, none of them run."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name, text in {
        "make.py": MAKE,
        "pexeso/core/a.py": "a = 1",
        "pexeso/page.py": "b = 1",
        "results/page-first.json": "{}",
        "results.yml": yaml.safe_dump(DECLARED, sort_keys=False),
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def stand(lab):
    return states(read_declared(lab / "results.yml"), lab / "results", lab)


def whys(lab):
    return {state.path: state.why for state in stand(lab)}


def renewed(lab, *names):
    said = []
    return renew(names, lambda: stand(lab), lab, said.append), said


def runs(lab):
    return (lab / "runs.txt").read_text().split()


def test_what_was_never_made_is_made_and_then_fresh(lab):
    assert whys(lab) == {
        "page-first.json": KEPT,
        "slow.json": NOT_MADE,
        "page.json": NOT_MADE,
        "both.json": NOT_MADE,
    }
    problems, said = renewed(lab)
    assert problems == []
    assert said[0] == "[1 of 3] python make.py slow.json pexeso/core"
    assert set(whys(lab).values()) == {FRESH, KEPT}
    assert renewed(lab) == ([], [])
    assert runs(lab) == ["slow.json", "page.json", "both.json"]


def test_a_change_makes_stale_what_rests_on_it_alone(lab):
    renewed(lab)
    (lab / "pexeso/page.py").write_text("b = 2", encoding="utf-8")
    assert [path for path, why in whys(lab).items() if why not in (FRESH, KEPT)] == [
        "page.json",
        "both.json",
    ]
    renewed(lab)
    assert runs(lab)[3:] == ["page.json", "both.json"]  # as they are declared


def test_after_a_failure_the_others_go_on_and_a_second_call_continues(lab):
    (lab / "broken").touch()
    problems, _ = renewed(lab)
    assert len(problems) == 1
    assert problems[0].endswith("slow.json pexeso/core ended with exit status 3")
    assert runs(lab) == ["slow.json", "page.json", "both.json"]
    (lab / "broken").unlink()
    assert renewed(lab)[0] == []
    assert runs(lab)[3:] == ["slow.json"]


def test_some_are_renewed_by_name(lab):
    renewed(lab, "page")
    assert runs(lab) == ["page.json"]


def test_a_command_that_renews_nothing_is_told(lab):
    declarations = yaml.safe_load((lab / "results.yml").read_text())
    declarations["benchmarks"]["slow"]["runs"][0]["command"] = "python -c pass"
    (lab / "results.yml").write_text(yaml.safe_dump(declarations), encoding="utf-8")
    assert renewed(lab, "slow")[0] == ["python -c pass: slow.json is stale still: not made yet"]


def test_a_command_whose_variable_is_not_set_is_passed_over(lab, monkeypatch):
    monkeypatch.delenv("NO_SUCH_FOLDER", raising=False)
    declarations = yaml.safe_load((lab / "results.yml").read_text())
    declarations["benchmarks"]["slow"]["runs"][0]["command"] = "python make.py $NO_SUCH_FOLDER"
    (lab / "results.yml").write_text(yaml.safe_dump(declarations), encoding="utf-8")
    [problem] = renewed(lab, "slow")[0]
    assert problem.endswith("passed over, since the variable NO_SUCH_FOLDER is not set")
    monkeypatch.setenv("NO_SUCH_FOLDER", "a b")
    assert arguments_of("python make.py $NO_SUCH_FOLDER") == [sys.executable, "make.py", "a b"]


def test_a_program_that_is_not_there_is_told(lab):
    declarations = yaml.safe_load((lab / "results.yml").read_text())
    declarations["benchmarks"]["slow"]["runs"][0]["command"] = "no-such-program --at-all"
    (lab / "results.yml").write_text(yaml.safe_dump(declarations), encoding="utf-8")
    [problem] = renewed(lab, "slow")[0]
    assert "no-such-program could not be run" in problem


def test_ctrl_c_stops_and_leaves_what_is_done(lab, monkeypatch):
    run = subprocess.run

    def interrupted(words, **options):
        if "page.json" in words:
            raise KeyboardInterrupt
        return run(words, **options)

    monkeypatch.setattr(renewing.subprocess, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        renewed(lab)
    assert whys(lab)["slow.json"] == FRESH
    monkeypatch.undo()
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    assert renewed(lab)[0] == []
    assert runs(lab) == ["slow.json", "page.json", "both.json"]


def test_the_command_says_that_it_was_stopped(monkeypatch):
    def interrupted(names):
        raise KeyboardInterrupt

    monkeypatch.setattr(renewing, "renew", interrupted)
    done = CliRunner().invoke(main, ["renew"])
    assert done.exit_code == 130
    assert "goes on with what is stale still" in done.output


@pytest.mark.parametrize(("problems", "status"), [([], 0), (["a: why"], 1)])
def test_the_exit_status_tells_whether_all_were_renewed(monkeypatch, problems, status):
    monkeypatch.setattr(renewing, "renew", lambda names: problems)
    assert CliRunner().invoke(main, ["renew", "speed"]).exit_code == status


def test_a_result_that_nothing_is_declared_for_is_told(lab):
    (lab / "results" / "other.json").write_text("{}", encoding="utf-8")
    assert whys(lab)["other.json"] == NOT_DECLARED


def test_results_without_a_command_are_made_by_their_own(lab):
    declarations = yaml.safe_load((lab / "results.yml").read_text())
    declarations["benchmarks"]["any"] = {"code": ["core"], "runs": [{"results": "any-*.json"}]}
    (lab / "results.yml").write_text(yaml.safe_dump(declarations), encoding="utf-8")
    origin = {"code": "old", "command": "python make.py any-1.json pexeso/core"}
    (lab / "results" / "any-1.json").write_text(json.dumps({"origin": origin}), encoding="utf-8")
    [state] = chosen(stand(lab), ["any"])
    assert state.commands == (origin["command"],)
    assert renewed(lab, "any")[0] == []
    assert whys(lab)["any-1.json"] == FRESH


@pytest.mark.parametrize("made", [{"results": "a.json", "comand": "b"}, {"command": "b"}])
def test_a_wrong_declaration_is_refused(lab, made):
    declarations = {"code": {}, "benchmarks": {"wrong": {"code": ["pexeso"], "runs": [made]}}}
    (lab / "results.yml").write_text(yaml.safe_dump(declarations), encoding="utf-8")
    with pytest.raises(InputError, match="wrong"):
        read_declared(lab / "results.yml")


# What is declared in this repository.


def test_every_stored_result_is_declared():
    paths = sorted(RESULTS.rglob("*.json"))
    assert len(paths) > 60
    assert [path.name for path in paths if declared_of(path) is None] == []


def test_all_declared_code_is_there():
    # Most results of a benchmark rest on the same code.
    codes = {tuple(one.code): one.name for one in known_results()}
    paths = {path: name for code, name in codes.items() for path in code}
    missing = {
        (name, path)
        for path, name in paths.items()
        if not files_of([path.removeprefix("!")], LOADED)
    }
    assert missing == set()
    for code, name in codes.items():
        assert len(files_of(code, LOADED)) > 1, name


def test_every_declared_command_is_understood():
    commands = [words for one in known_results() for words in map(arguments, one.commands)]
    assert len(commands) > 40
    for words in commands:
        if words[1:3] == ["-m", "benchmarks"]:
            context = click.Context(main)
            command = main.get_command(context, words[3])
            command.make_context(words[3], words[4:], parent=context)
        elif words[1:2] == ["-m"]:
            assert (ROOT / words[2].replace(".", "/")).with_suffix(".py").is_file() or (
                ROOT / words[2].replace(".", "/") / "__main__.py"
            ).is_file()
        else:
            assert words[0] in ("mkdir", "tar") or (ROOT / words[1]).is_file()


def arguments(command):
    return shlex.split(command)


def test_declared_names_of_runs_are_those_that_the_commands_write():
    """A run writes a file by what it was asked; it must be the file that it is declared for."""
    checked = 0
    for one in known_results():
        words = arguments(one.commands[-1]) if one.commands else []
        if one.name != "speed" or not words:
            continue
        context = click.Context(main)
        command = main.get_command(context, words[3])
        flags = command.make_context(words[3], words[4:], parent=context).params
        threads = flags["threads"]
        kind = "b" if flags["batch"] else "q"
        number = flags["batch"] or flags["queries"] or 100
        name = Path(one.patterns[0]).name
        assert name.endswith(
            f"_{kind}{number}_d0.06_j0.6_r{flags['repeats']}_s{flags['seed']}_cpu_t{threads}.json"
        )
        assert one.patterns[0].split("/")[0] == flags["data"]
        assert ("-x0.1" in name) == (flags["scale"] == 0.1)
        if words[3] == "sweep":
            assert name.startswith(f"sweep-{flags['name']}_")
        else:
            assert f"_{flags['algorithms'].replace(':', '-').replace(',', '+')}_" in name
        checked += 1
    assert checked >= 14


def test_the_gpu_benchmark_names_the_code_that_is_declared():
    assert declared_of(Path("gpu/nvidia.json")).code == GPU_CODE


def test_a_change_of_a_page_leaves_the_engine_fresh():
    page = {**LOADED, "pexeso/html/page.html": b"other", "pexeso/server/app.py": b"other = 1"}
    assert changed_by(page) == {"app"}
    engine = {**LOADED, "pexeso/engine/metrics.py": b"other = 1"}
    changed = changed_by(engine)
    assert {"speed", "gpu", "out-of-core"} <= changed
    assert not changed & {"transform", "reading", "acquisition", "effectiveness", "embedding"}


def test_a_change_of_a_kernel_for_another_device_or_of_the_grid_leaves_searches_of_blocks_fresh():
    runs = ("sweep-scale_50d_pexeso_q50_d0.06_j0.6_r3", "sweep-pivots_50d-x0.01_q5_d0.06_j0.6_r1")
    blocks, published = (
        declared_of(RESULTS / "swdc" / f"{run}_s0_cpu_t{threads}.json")
        for run, threads in zip(runs, (2, 1), strict=True)
    )
    for changed, stale in (
        ("pexeso/engine/kernels/triton/kernel.py", (False, False)),
        ("pexeso/engine/layout/blocking.py", (False, True)),
        ("pexeso/engine/kernels/numba/walks.py", (True, True)),
    ):
        code = {**LOADED, changed: LOADED[changed] + b"\nX = 1\n"}
        assert (digests_differ(blocks, code), digests_differ(published, code)) == stale, changed


def digests_differ(one, code):
    return code_digest(one.code, code) != code_digest(one.code)


def changed_by(code):
    """Return the benchmarks of which a result is stale with other code."""
    by_code = {one.code: one for one in known_results()}
    differ = {own_code: digests_differ(one, code) for own_code, one in by_code.items()}
    return {one.name for one in known_results() if differ[one.code]}


# What is written names its origin.


def test_a_written_result_is_fresh_and_names_its_machine(tmp_path):
    path = tmp_path / "reading.json"
    kept = write_result(path, {"groups": {}})
    assert read_result(path) == json.loads(json.dumps(kept))
    assert kept["origin"]["code"] == code_digest(declared_of(path).code)
    assert kept["origin"]["machine"]["cores"] >= 1
    assert "machine" not in write_result(path, {"machine": {}})["origin"]
    [state] = states(known_results(), tmp_path)[:1]
    assert (state.path, state.why) == ("reading.json", FRESH)


def test_a_result_of_old_and_new_parts_has_the_old_origin(tmp_path):
    path = tmp_path / "reading.json"
    before = {"origin": {"code": "old"}, "a": 1}
    assert write_result(path, {"a": 1, "b": 2}, before=before)["origin"] == {"code": "old"}
    assert "origin" not in write_result(path, {"a": 1, "b": 2}, before={"a": 1})


def test_the_commands_list_what_is_stale(monkeypatch):
    done = CliRunner().invoke(main, ["stale"])
    assert done.exit_code == 0, done.output
    assert "results are stale" in done.output
    listed = json.loads(CliRunner().invoke(main, ["stale", "reading", "--json"]).output)
    assert {entry["benchmark"] for entry in listed} <= {"reading"}
    monkeypatch.setattr(renewing, "renew", lambda names: pytest.fail("a dry run runs nothing"))
    dry = CliRunner().invoke(main, ["renew", "speed", "--dry-run"])
    assert dry.exit_code == 0
    assert "python -m benchmarks.start" not in dry.output


def test_dates_are_those_that_results_tell():
    assert (
        freshness.date_of({"methods": {"a": {"measured": "2026-01-02"}, "b": {}}}) == "2026-01-02"
    )
    assert freshness.date_of({"methods": ["a"]}) == ""


def test_the_read_code_is_that_of_the_repository():
    assert read_code(ROOT).keys() == LOADED.keys()
