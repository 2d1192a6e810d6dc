"""Tests of the enrichment experiment: its ways to find tables, its page and its tasks."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner
from enrichment import report, tasks
from enrichment.methods import (
    EQUAL,
    WORDS,
    LakeTexts,
    TextQuery,
    at_least,
    equal,
    first_of_each_table,
    fuzzy,
)
from enrichment.running import METHODS, judge_pairs

from pexeso.joins.enrichment.enrich import enrich_from
from pexeso.results.matches import Pair

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "explanation" / "enrichment.md").read_text(encoding="utf-8")
RESULT = json.loads(
    (ROOT / "benchmarks" / "results" / "enrichment" / "result.json").read_text(encoding="utf-8")
)

CITIES = {"name": ["Oslo", "Rome", "ROME", "Bern"], "people": ["7", "1", "3", "5"]}
TOWNS = {"town": ["Olso", "Bern."], "rank": ["1", "2"]}
KEY = ["oslo", "Rome ", None, "Rome"]


@pytest.fixture
def lake(tmp_path):
    for name, columns in (("cities.csv", CITIES), ("towns.csv", TOWNS)):
        pd.DataFrame(columns).to_csv(tmp_path / name, index=False)
    return tmp_path


def texts(lake, normaliser):
    columns = [("cities.csv", "name"), ("towns.csv", "town")]
    return LakeTexts(lake, columns, [pa.array(CITIES["name"]), pa.array(TOWNS["town"])], normaliser)


def test_equal_text_is_found_counted_and_joined(lake):
    # Three of four rows are in cities.csv; its two rows of Rome have the mean (1 + 3) / 2, but for
    # the very cell that one of them has.
    (match,) = texts(lake, EQUAL).matches(KEY, equal)
    assert (match.table, match.column, match.joinability) == ("cities.csv", "name", 0.75)
    assert [(pair.query, pair.value, pair.distance) for pair in match.pairs()] == [
        ("Rome", "rome", 0.0),
        ("Rome ", "rome", 0.0),
        ("oslo", "oslo", 0.0),
    ]
    mine = pd.DataFrame({"key": KEY, "n": range(4)})
    added = enrich_from([match], mine, "key").table["cities.csv:people"]
    np.testing.assert_array_equal(added, [7, 2, np.nan, 1])


def test_similar_text_is_found_and_higher_thresholds_find_less(lake):
    # Of "oslo" and "olso" three letters of four are in order: 2 * 3 / 8.
    similar = fuzzy(70)
    matches = texts(lake, WORDS).matches(["oslo", "Bern"], similar)
    assert [(match.table, match.joinability) for match in matches] == [
        ("cities.csv", 1.0),
        ("towns.csv", 1.0),
    ]
    assert [(pair.query, pair.value, pair.distance) for pair in matches[1].pairs()] == [
        ("Bern", "bern", 0.0),
        ("oslo", "olso", 0.25),
    ]
    ours, theirs = pa.array(["oslo"]), pa.array(["olso", "oslo"])
    assert at_least(similar(ours, theirs), 0.8).toarray().tolist() == [[0, 1]]


def test_a_key_is_counted_by_row():
    query = TextQuery.of(["Rome", "ROME", None, "Rome", " "], EQUAL)
    assert query.texts.to_pylist() == ["Rome", "ROME"]
    assert (query.values.to_pylist(), query.rows.tolist(), query.n_rows) == (["rome"], [3], 5)


def test_the_best_column_of_each_table_is_taken(lake):
    matches = texts(lake, WORDS).matches(["oslo", "Bern"], fuzzy(70))
    assert first_of_each_table([*matches, *matches], ("towns.csv",)) == matches[:1]


def test_wrong_pairs_are_counted_by_the_nearest():
    class Match:
        def pairs(self):
            return [
                Pair("a", "B", 0.2, "b", "spelling"),
                Pair("a", "A", 0.1, "a", "spelling"),
                Pair("c", "D", 0.3, "d", "spelling"),
                Pair("x", "A", 0.3, "a", "spelling"),
            ]

    judged = judge_pairs([Match()], pd.Series({"a": 1, "b": 2, "c": 3, "d": 4}))
    assert judged == {"right": 1, "wrong": 1, "examples": [[0.3, "c", "D"]]}


def test_the_page_shows_the_stored_result():
    assert report.renew(PAGE, RESULT) == PAGE
    assert report.as_markdown(RESULT) in PAGE


def test_the_result_is_of_every_task_and_method():
    pairs = {(run["task"], run["method"]) for run in RESULT["runs"]}
    names = {name.replace("-", " ") for name in tasks.REAL}
    assert len(names) >= 3
    assert pairs == {(name, method) for name in names for method in METHODS}
    assert all(
        len(scores) == RESULT["seeds"] >= 3
        for run in RESULT["runs"]
        for scores in run["scores"].values()
    )
    assert all(not run["tables"] for run in RESULT["runs"] if run["method"] == "none")


def test_of_several_thresholds_the_best_is_shown():
    def run(threshold, error):
        scores = {"r2": [1 - error], "mean_squared_error": [error]}
        method = "none" if threshold is None else "fuzzy"
        shared = {
            "task": "t",
            "kind": "regression",
            "rows": 9,
            "tables": [],
            "columns": 0,
            "joined": None,
        }
        return {**shared, "method": method, "threshold": threshold, "scores": scores}

    rows = report.rows_of({"runs": [run(None, 0.5), run(80, 0.4), run(90, 0.25), run(95, 0.3)]})
    assert [(row[2], *row[-2:]) for row in rows] == [
        ("none", "R² 0.500 ± 0.000", "1.00"),
        ("fuzzy (at 90)", "R² 0.750 ± 0.000", "0.50"),
    ]


@pytest.mark.lakes
@pytest.mark.parametrize("name", tasks.REAL)
def test_a_task_can_be_asked(name, shared_lakes, real_tables):
    task = tasks.REAL[name](real_tables)
    assert {task.on, task.target} <= set(task.table.columns)
    assert task.table[task.target].notna().mean() > 0.9
    assert task.table[task.on].nunique() >= 40
    assert all((real_tables / table).is_file() for table in task.left_out)


@pytest.fixture(scope="module")
def real_tables(lake_folder, tmp_path_factory):
    """The lakes that tasks are made of, side by side as the example has them."""
    folder = tmp_path_factory.mktemp("tasks")
    for name in ("fivethirtyeight", "countries"):
        (folder / name).symlink_to(lake_folder(name) / name)
    return folder


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--tasks", "wien"], "--tasks takes wine, football"),
        (["--tasks", "wine,demo"], "of another lake: ask for it alone"),
        (["--write", "--quick"], "--write is for real tasks"),
        (["--index", "."], "--index is for --tasks demo"),
    ],
)
def test_wrong_options_are_told(options, said):
    spec = importlib.util.spec_from_file_location("enrich_example", ROOT / "examples" / "enrich.py")
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    done = CliRunner().invoke(program.main, options)
    assert done.exit_code == 2
    assert said in done.output
