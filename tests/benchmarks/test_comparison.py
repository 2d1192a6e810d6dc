"""Tools join the same pairs of columns, and thresholds come from other data sets."""

import json
import sys

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.comparison import joined_of, measure, scores_of, table_of
from benchmarks.comparison_tools import write_rows
from benchmarks.effectiveness.tasks import Task, incidence_of

TOWNS = ["Lisbon", "Madrid", "Vienna", "Dublin"]


def task_of(name: str, queries: list[str], others: list[str]) -> Task:
    """Return a task in which rows of the same number are partners."""
    n = min(len(queries), len(others))
    partners = incidence_of(np.arange(n), np.arange(n), (len(queries), len(others)))
    return Task(name, name, pa.array(queries), pa.array(others), partners)


SETS = {
    "spelled": [task_of("a", [town.upper() for town in TOWNS], TOWNS)],
    "more": [task_of("b", [*TOWNS, "Zzyzx"], ["Lisbonn", "Madrit", "Vienna", "Dublinn"])],
}


def test_a_tool_is_run_and_one_that_is_not_there_is_named(tmp_path):
    result = measure(SETS, ["pexeso", "goldenmatch"], sys.executable, tmp_path)
    assert list(result["tools"]) == ["pexeso"]
    assert "goldenmatch" in result["skipped"]
    run = result["tools"]["pexeso"]
    assert run["scores"]["as written"]["f1"] > 0.9
    assert run["scores"]["as written"]["default"]["f1"] == 1
    assert (run["peak_bytes"] > 1e7, result["pairs"]) == (True, 36)
    assert json.loads(json.dumps(result)) == result
    table = table_of(result)
    assert "| pexeso" in table
    assert "Not measured: goldenmatch." in table


def test_thresholds_are_those_of_the_other_sets(tmp_path):
    """A score of 0.5 is right in one set and wrong in the other, which takes the first's."""
    joined = []
    scores = {"a": [(0, 0, 0.5), (1, 1, 0.9)], "b": [(0, 0, 0.9), (1, 2, 0.5)]}
    for (name,) in SETS.values():
        write_rows(tmp_path / "pairs.csv", scores[name.name])
        joined.append(joined_of(name, tmp_path / "pairs.csv"))
    chosen = scores_of(joined, SETS, None)
    assert chosen["thresholds"]["more"] == pytest.approx(0.5)
    assert chosen["thresholds"]["spelled"] > 0.5
    assert chosen["sets"]["more"]["precision"] == 0.5
    assert chosen["sets"]["spelled"]["recall"] == 0.25
    assert "default" not in chosen


def test_a_tool_that_joins_nothing_has_no_precision(tmp_path):
    write_rows(tmp_path / "pairs.csv", [])
    joined = [joined_of(task, tmp_path / "pairs.csv") for (task,) in SETS.values()]
    scores = scores_of(joined, SETS, 1.0)
    assert (scores["recall"], scores["f1"]) == (0, 0)
    run = {"versions": {"dex": "1"}, "seconds": 1.2, "peak_bytes": 1e6}
    forms = dict.fromkeys(("as written", "normalised"), scores)
    result = {"data": SETS, "tools": {"dex": {**run, "scores": forms}}, "skipped": {}}
    (_, _, row) = table_of(result).splitlines()
    assert row == "| dex 1: inferred joins | .000 | .000 |  |  |  | .000 | 1 | 1 |"
