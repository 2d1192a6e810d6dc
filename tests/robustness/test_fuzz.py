"""Tests of fuzzing: old findings stay fixed, a short run is clean, and faults are found."""

import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from contextlib import suppress
from pathlib import Path

import fuzz_app
import fuzz_run
import fuzz_worker
import pytest
from fuzz_run import Job
from fuzz_strategies import manifest_document, seeds_of, strategy_of
from fuzz_targets import INDEX, TARGETS, WITH_INDEX, BrokenPromiseError, Target, resealed
from hypothesis import given, settings
from long_runs import examples, long_but

from pexeso.errors import IndexCorruptError, PexesoError
from pexeso.store.manifest import Manifest

CORPUS = Path(__file__).resolve().parent / "corpus"
PARSERS = [name for name in TARGETS if name not in WITH_INDEX]
SHORT_BY_ATHERIS = ("csv", "jsonl", "manifest")


def attempt(name: str, data: bytes, folder: Path) -> None:
    """Run a target as the worker does; errors of ours are all that may come."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with suppress(PexesoError):
            TARGETS[name].run(data, folder)


@pytest.mark.parametrize(
    "path", sorted(CORPUS.rglob("*.*")), ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_what_once_broke_something_is_refused_or_read(path: Path, tmp_path: Path) -> None:
    attempt(path.parent.name, path.read_bytes(), tmp_path)


def test_every_target_has_whole_inputs_that_are_not_all_refused(tmp_path: Path) -> None:
    for name in PARSERS:
        ended = []
        for number, data in enumerate(seeds_of(name)):
            folder = tmp_path / f"{name}{number}"
            folder.mkdir()
            try:
                TARGETS[name].run(data, folder)
                ended.append(True)
            except PexesoError:
                ended.append(False)
        assert any(ended), name


def test_the_manifest_that_is_bent_is_whole() -> None:
    import json

    whole = resealed(json.dumps(manifest_document()).encode())
    assert Manifest.from_bytes(whole).to_bytes() == whole
    with pytest.raises(IndexCorruptError):
        Manifest.from_bytes(whole[:-2] + b"\n")


@pytest.mark.parametrize("name", PARSERS)
def test_a_short_fuzz_by_hypothesis_finds_nothing(name: str, tmp_path: Path) -> None:
    @settings(max_examples=examples(60))
    @given(strategy_of(name))
    def bend(data: bytes) -> None:
        attempt(name, data, tmp_path)

    bend()


@pytest.mark.parametrize("name", long_but(["jsonl"], SHORT_BY_ATHERIS))
def test_a_short_fuzz_by_atheris_finds_nothing(name: str, tmp_path: Path) -> None:
    pytest.importorskip("atheris")
    outcome = fuzz_run.run_job(Job("atheris", name, 250, 7), tmp_path, None)
    assert outcome.sentences == []
    assert (outcome.inputs, outcome.failed) == (250, False)


@pytest.mark.parametrize("name", ["command", "agent", "request"])
def test_a_short_fuzz_on_an_index_finds_nothing(
    name: str, small_index: Path, tmp_path: Path
) -> None:
    @settings(max_examples=examples(40))
    @given(strategy_of(name))
    def bend(data: bytes) -> None:
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            (Path(folder) / INDEX).symlink_to(small_index)
            attempt(name, data, Path(folder))

    bend()


# Starlette closes no file of a part that begins and does not end; it goes with the parser.
@pytest.mark.filterwarnings(
    "ignore:Exception ignored in.*SpooledTemporaryFile:pytest.PytestUnraisableExceptionWarning",
    "ignore:Unclosed file:ResourceWarning",
)
def test_a_short_fuzz_of_the_app_finds_nothing(small_index: Path) -> None:
    statuses = Counter()
    for data in seeds_of("app"):
        assert fuzz_app.try_request(data, small_index).status in (200, 303)

    @settings(max_examples=300)
    @given(strategy_of("app"))
    def bend(data: bytes) -> None:
        statuses[fuzz_app.try_request(data, small_index).status] += 1

    bend()
    assert statuses[200] > 30, "most requests were refused at the door"
    assert {303, 400, 403, 404, 405} <= set(statuses)


@pytest.mark.parametrize(
    ("body", "status"),
    [("Traceback (most recent call last)", 200), (fuzz_app.MARKER, 200), ("well", 500)],
)
def test_a_fault_of_the_app_is_found(small_index: Path, monkeypatch, body, status) -> None:
    from starlette.responses import HTMLResponse

    app = fuzz_app.fuzzed_app(small_index.resolve())
    monkeypatch.setattr(app.app, "_app", HTMLResponse(body, status))
    with pytest.raises(fuzz_app.BrokenAnswerError):
        fuzz_app.try_request(b"GET /", small_index)


def breaking(kind: str):
    def run(data: bytes, folder: Path) -> None:
        if kind == "error":
            raise ValueError("broken")
        if kind == "refusal":
            raise IndexCorruptError("refused")
        if kind == "promise":
            raise BrokenPromiseError("less than promised")
        fuzz_worker.signal.setitimer(fuzz_worker.signal.ITIMER_REAL, 0.1)
        time.sleep(30)

    return run


@pytest.mark.parametrize(
    ("kind", "n_findings"), [("error", 1), ("promise", 1), ("refusal", 0), ("hang", 1)]
)
def test_a_finding_is_kept_with_its_input(
    kind: str, n_findings: int, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setitem(TARGETS, "csv", Target("csv", breaking(kind), 1))
    trial = fuzz_worker.Trial("csv", tmp_path, None)

    def stop(*_: object) -> None:
        raise fuzz_worker.HangError("hung")

    before = fuzz_worker.signal.signal(fuzz_worker.signal.SIGALRM, stop)
    try:
        trial(b"input")
        trial(b"input again")
    finally:
        fuzz_worker.signal.signal(fuzz_worker.signal.SIGALRM, before)
        trial.now.close()
    summary = trial.summary()
    assert len(summary["findings"]) == n_findings
    assert summary["inputs"] == 2
    kept = [
        path.read_bytes() for path in (tmp_path / "findings").glob("0*") if path.suffix != ".txt"
    ]
    assert kept == [b"input"] * n_findings


@pytest.mark.parametrize(
    ("program", "ended"),
    [
        ("import time; hold = bytearray(200 << 20); time.sleep(60)", "memory"),
        ("import time; time.sleep(60)", "hang"),
        ("pass", "itself"),
    ],
)
def test_a_process_that_hangs_or_takes_too_much_is_ended(
    program: str, ended: str, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(fuzz_run, "MEMORY_LIMIT_MB", 100)
    monkeypatch.setattr(fuzz_run, "STARTING_SECONDS", 3)
    process = fuzz_run.subprocess.Popen([sys.executable, "-c", program])
    assert fuzz_run._watch(process, tmp_path / "now")[0] == ended
    assert process.poll() is not None


def test_a_process_that_dies_is_a_failure(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(fuzz_run, "HERE", tmp_path)
    (tmp_path / "fuzz_worker.py").write_text("import os\nos.abort()\n")
    total = fuzz_run.run_all(14, folder=tmp_path / "work", n_jobs=2, engines=("hypothesis",))
    assert total.failed
    assert total.exceptions == len(TARGETS)
    assert "died with code -6" in total.sentences[0]


SANDBOXED = """
import os, shutil, subprocess, sys
from pathlib import Path
from sandbox import LeftSandboxError, Sandbox
box = Sandbox(Path(sys.argv[1]))
box.move_in()
beside, link = box.folder.parent / "beside", box.folder / "link"
link.symlink_to(beside / "secret.csv")
allowed = [
    lambda: (box.folder / "a").write_text("x"),
    lambda: (box.folder / "a").rename(box.folder / "b"),
    lambda: (box.folder / "deep" / "er").mkdir(parents=True),
    lambda: shutil.rmtree(box.folder / "deep"),
]
wrong = [
    lambda: (beside / "secret.csv").read_text(),
    lambda: link.read_text(),
    lambda: os.listdir(beside),
    lambda: (beside / "new").touch(),
    lambda: (beside / ".hidden").unlink(),
    lambda: (box.folder.parent / "new").mkdir(),
    lambda: open("/etc/passwd").close(),
    lambda: os.system("true"),
    lambda: subprocess.run(["true"]),
]
for number, act in enumerate([*wrong, *allowed]):
    try:
        with box.watched():
            act()
        left = False
    except LeftSandboxError:
        left = True
    assert left == (number < len(wrong)), number
"""


def test_what_leaves_the_sandbox_is_found(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SANDBOXED, str(tmp_path)]
    subprocess.run(command, check=True, cwd=Path(__file__).parent, timeout=60)


def test_an_input_that_takes_too_much_memory_is_found(tmp_path: Path, monkeypatch) -> None:
    take = lambda data, folder: bytearray(len(data) << 20).count(1)  # noqa: E731
    monkeypatch.setitem(TARGETS, "csv", Target("csv", take, 1))
    monkeypatch.setattr(fuzz_worker, "BYTES_AN_INPUT", 64 << 20)
    trial = fuzz_worker.Trial("csv", tmp_path, None)
    for n_bytes in (1, 200):
        trial(bytes(n_bytes))
    trial.now.close()
    [finding] = trial.findings
    assert finding.startswith("TookTooMuchError")
