"""Tests of the benchmark that asks a whole index, on the CPU."""

import pytest

import pexeso
from benchmarks.gpu import index as benchmark
from benchmarks.gpu.checks import WrongAnswerError
from benchmarks.gpu.index import measure_index, measure_indexes, query_columns
from benchmarks.gpu.timing import Clock


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An index of a small lake of vectors."""
    lake = tmp_path_factory.mktemp("lake")
    for number in range(4):
        names = "\n".join(f"name {letter}{number % 2}" for letter in "abcdefghij")
        (lake / f"t{number}.csv").write_text(f"name\n{names}\n")
    path = lake.parent / "index.pexeso"
    pexeso.build_index(lake, path, model="hashing", dimensions=16)
    return path


def test_both_layouts_of_a_made_up_lake_are_asked(monkeypatch):
    for name, few in (("N_QUERIES", 6), ("N_EXACT", 2), ("REPEATS", 1)):
        monkeypatch.setattr(benchmark, name, few)
    default, published = measure_indexes(["cpu"], Clock(60), 1000)
    assert [part["as_published"] for part in (default, published)] == [False, True]
    assert default["values"] == published["values"] > 400
    assert default["columns_found"] >= default["queries"] == 6


def test_every_mode_is_timed_and_query_columns_are_those_of_the_lake(folder):
    result = measure_index(folder, ["cpu"], Clock(60))
    assert set(result["median_seconds"]["cpu"]) == {*benchmark.MODES, "a batch, a column"}
    assert min(result["median_seconds"]["cpu"].values()) > 0
    queries = query_columns(pexeso.open_index(folder))
    assert len(queries) == 4 == result["queries"]
    assert {len(query) for query in queries} == {10}
    assert set(queries[0]) <= {f"name {letter}{n}" for letter in "abcdefghij" for n in (0, 1)}


def test_a_device_that_answers_otherwise_ends_the_run(folder, monkeypatch):
    answers = iter(range(1000))
    monkeypatch.setattr(benchmark, "_plain", lambda matches: next(answers))
    monkeypatch.setattr(benchmark, "N_EXACT", 0)
    opened = pexeso.open_index(folder)
    monkeypatch.setattr(pexeso, "open_index", lambda path, device: opened)
    with pytest.raises(WrongAnswerError, match="not those of first"):
        measure_index(folder, ["first", "second"], Clock(60))
