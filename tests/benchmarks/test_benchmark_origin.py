"""The digest of the code changes with what a measurement depends on, and with nothing else."""

import os
import sys

import pytest

from benchmarks.origin import (
    LOADED,
    ROOT,
    code_digest,
    command_line,
    environment_with_this_code,
    origin_of,
    read_code,
    why_not_again,
    why_stale,
)

PATHS = ("pexeso/engine", "benchmarks/algorithms", "benchmarks/timing.py", "benchmarks/overlap*.py")
FILES = (
    "pexeso/engine/search/search.py",
    "pexeso/engine/kernels/product.py",
    "benchmarks/timing.py",
    "benchmarks/overlap_lake.py",
    "benchmarks/algorithms/a/module.py",
    "benchmarks/algorithms/a/config.yml",
)
OTHERS = (
    "pexeso/index.py",
    "pexeso/engine2/search.py",
    "pexeso/engine/README.md",
    "benchmarks/NOTES.md",
    "benchmarks/sweeps.yml",
    "benchmarks/results/web/run.json",
)

HERE = {"processor": "A", "cores": 2, "memory_gib": 8, "device": "cpu", "date": "2001-01-01"}

SOURCE = '''"""What it is."""

def call(text="# none"):
    """Do it."""
    at = text  # where
    """What it says."""
    return f(
        """
        # select
        """,
        at,
    )
'''


@pytest.fixture
def checkout(tmp_path):
    for name in (*FILES, *OTHERS):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("one", encoding="utf-8")
    return tmp_path


def digest_in(root):
    return code_digest(PATHS, read_code(root))


@pytest.mark.parametrize("name", FILES)
def test_the_digest_changes_with_the_code(checkout, name):
    before = digest_in(checkout)
    (checkout / name).write_text("other", encoding="utf-8")
    assert digest_in(checkout) != before
    (checkout / name).write_text("one", encoding="utf-8")
    assert digest_in(checkout) == before
    there = checkout / name
    there.rename(there.with_name(there.name.replace(".", "2.")))
    assert digest_in(checkout) != before


@pytest.mark.parametrize("name", OTHERS)
def test_the_digest_does_not_change_with_anything_else(checkout, name):
    before = digest_in(checkout)
    (checkout / name).write_text("other", encoding="utf-8")
    assert digest_in(checkout) == before


def digest_of(source):
    return code_digest(["a.py"], {"a.py": source.encode()})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("What it is.", "What it was."),
        ('"""Do it."""', 'r"""Do\n    \\it "so".\n    """  # or not'),
        ("  # where", ""),
        ('    """What it says."""\n', ""),
        ("    at = text", "\n    # Here.\n\n    at = text"),
    ],
)
def test_words_for_people_do_not_count(old, new):
    assert SOURCE.count(old) == 1
    assert digest_of(SOURCE.replace(old, new)) == digest_of(SOURCE)


@pytest.mark.parametrize(
    ("old", "new"),
    [("# none", "# some"), ("# select", "# delete"), ("at = text", "at = text + 1"), ("f(", "g(")],
)
def test_strings_and_code_count(old, new):
    assert SOURCE.count(old) == 1
    assert digest_of(SOURCE.replace(old, new)) != digest_of(SOURCE)


def test_the_code_that_runs_is_known():
    assert "pexeso/engine/search/search.py" in LOADED
    assert not [name for name in LOADED if name.startswith("benchmarks/results/")]
    assert len(code_digest(["pexeso/engine"])) == 16
    assert code_digest(["pexeso/engine"]) != code_digest(["benchmarks/algorithms"])


def test_an_origin_tells_code_version_date_and_command(monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(ROOT / "benchmarks" / "__main__.py"), "run", "--queries"])
    origin = origin_of(["pexeso/engine"])
    assert origin.pop("date").startswith("20")
    assert origin.pop("seconds") > 0
    assert origin.pop("version")
    assert origin == {
        "code": code_digest(["pexeso/engine"]),
        "command": "python -m benchmarks run --queries",
    }
    assert origin_of(None)["code"] is None


@pytest.mark.parametrize("before", [None, "", "elsewhere"])
def test_a_program_of_its_own_finds_this_code_before_others(monkeypatch, before):
    monkeypatch.setenv("OTHER", "kept")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    if before is not None:
        monkeypatch.setenv("PYTHONPATH", before)
    environment = environment_with_this_code()
    assert environment["PYTHONPATH"] == os.pathsep.join([str(ROOT), *([before] if before else [])])
    assert environment["OTHER"] == "kept"


def test_a_command_line_is_free_of_the_machine():
    words = [str(ROOT / "benchmarks" / "overlap.py"), "--k", "", "--out", str(ROOT / "a b.json")]
    assert command_line(words) == "python -m benchmarks.overlap --k '' --out 'a b.json'"
    assert command_line(["/usr/bin/pytest", "-q"]) == "pytest -q"


@pytest.mark.parametrize("name", ["processor", "cores", "memory_gib", "device"])
def test_a_result_of_another_machine_does_not_stand(name):
    there = {"machine": {**HERE, name: "other"}, "origin": {"code": "1"}}
    assert why_not_again(there, HERE, "1") == (
        f"it was measured on another machine ({name}: other, here {HERE[name]})"
    )


def test_a_result_of_this_machine_and_code_stands():
    there = {"machine": {**HERE, "date": "2002-02-02"}, "origin": {"code": "1"}}
    assert why_not_again(there, HERE, "1") is None
    assert "has changed since" in why_not_again(there, HERE, "2")


def test_a_result_that_does_not_say_where_it_comes_from_does_not_stand():
    assert "memory_gib: unknown" in why_not_again(
        {"machine": {"processor": "A", "cores": 2}}, HERE, "1"
    )
    assert "before results named" in why_not_again({"machine": HERE, "code": "1"}, HERE, "1")


def test_a_result_for_which_no_code_is_declared_is_stale():
    assert why_stale({"origin": {"code": None}}, None) is not None
