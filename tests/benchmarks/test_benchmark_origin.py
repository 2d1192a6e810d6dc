"""The digest of the code changes with what a measurement depends on, and with nothing else."""

import pytest

from benchmarks.origin import LOADED_CODE, ROOT, code_digest, why_not_again

FILES = (
    "pexeso/engine/search/search.py",
    "pexeso/engine/kernels/product.py",
    "benchmarks/timing.py",
    "benchmarks/algorithms/a/module.py",
    "benchmarks/algorithms/a/config.yml",
)
OTHERS = (
    "pexeso/index.py",
    "benchmarks/NOTES.md",
    "benchmarks/sweeps.yml",
    "benchmarks/results/web/run.json",
    "README.md",
)

HERE = {"processor": "A", "cores": 2, "memory_gib": 8, "device": "cpu", "date": "2001-01-01"}


@pytest.fixture
def checkout(tmp_path):
    for name in (*FILES, *OTHERS):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("name", FILES)
def test_the_digest_changes_with_the_code(checkout, name):
    before = code_digest(checkout)
    (checkout / name).write_text("other", encoding="utf-8")
    assert code_digest(checkout) != before
    (checkout / name).write_text(name, encoding="utf-8")
    assert code_digest(checkout) == before
    (checkout / name).rename(checkout / name.replace(".", "2."))
    assert code_digest(checkout) != before


@pytest.mark.parametrize("name", OTHERS)
def test_the_digest_does_not_change_with_anything_else(checkout, name):
    before = code_digest(checkout)
    (checkout / name).write_text("other", encoding="utf-8")
    assert code_digest(checkout) == before


def test_the_code_that_runs_has_a_digest():
    assert len(LOADED_CODE) == 16
    assert (ROOT / "pexeso" / "engine" / "search" / "search.py").is_file()


@pytest.mark.parametrize("name", ["processor", "cores", "memory_gib", "device"])
def test_a_result_of_another_machine_does_not_stand(name):
    there = {**HERE, name: "other"}
    assert why_not_again({"machine": there, "code": "1"}, HERE, "1") == (
        f"it was measured on another machine ({name}: other, here {HERE[name]})"
    )


def test_a_result_of_this_machine_and_code_stands():
    assert (
        why_not_again({"machine": {**HERE, "date": "2002-02-02"}, "code": "1"}, HERE, "1") is None
    )


def test_a_result_that_does_not_say_where_it_comes_from_does_not_stand():
    assert "memory_gib: unknown" in why_not_again(
        {"machine": {"processor": "A", "cores": 2}}, HERE, "1"
    )
    assert "have changed since" in why_not_again({"machine": HERE}, HERE, "1")
