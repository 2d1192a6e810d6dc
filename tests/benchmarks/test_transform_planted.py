"""Drawn tables whose rule is known: their rules hold, and their measures are what they say."""

import json

import pytest
from click.testing import CliRunner

from benchmarks import report
from benchmarks.cli import main
from benchmarks.transform.planted import (
    RULES,
    SYNTHETIC,
    measured_pair,
    planted_pair,
    scores_of,
)
from benchmarks.transform.tables import planted_page_table
from pexeso.transform.joins.learned import learn_transformation

ALL = {**RULES, **SYNTHETIC}

PLAIN = {
    "e-mail": lambda row: row["name"].lower().replace(" ", ".") + "@school.example.org",
    "reversed name": lambda row: " ".join(reversed(row["listed"].split(" (")[0].split(", "))),
    "three columns": lambda row: f"{row['authors']} {row['title']} {row['year']}",
    "path": lambda row: row["path"].split("/")[3],
    "date": lambda row: "/".join(reversed(row["day"].split("-"))),
    "UserID": lambda row: (row["first"][:4] + row["last"][:6]).lower(),
    "Time": lambda row: f"{row['hour']}:{row['minute']}:{row['second']}",
    "NameConcat": lambda row: row["first"] + row["last"],
    "Citeseer": lambda row: f"{row['authors']}. {row['title']}. {row['year']}.",
}
"""Each rule once more, in plain Python."""


@pytest.mark.parametrize("name", ALL)
def test_the_keys_of_true_pairs_are_derived_by_the_rule_and_all_keys_differ(name):
    pair = planted_pair(ALL[name], 400, share=0.25, seed=3)
    keys = dict(zip(pair.target["id"].to_pylist(), pair.target["key"].to_pylist(), strict=True))
    rows = pair.source.to_pylist()
    assert len(set(keys.values())) == len(rows) == 400
    written = {row["id"]: PLAIN[name](row) for row in rows}
    assert len(set(written.values())) == 400
    both = keys.keys() & written.keys()
    assert len(both) == pair.n_true == 100
    assert all(written[person] == keys[person] for person in both)
    # Nothing else joins: other people have other keys.
    assert set(written.values()) & set(keys.values()) == {keys[person] for person in both}


def test_scores_count_the_rows_that_are_joined_with_their_own_key():
    pair = planted_pair(RULES["three columns"], 60, seed=4)
    joined = learn_transformation(
        pair.source, pair.target, columns=pair.columns, target_columns=["key"]
    )
    mine = dict(zip(map(tuple, _keys(pair)), pair.source["id"].to_pylist(), strict=True))
    theirs = dict(zip(pair.target["key"].to_pylist(), pair.target["id"].to_pylist(), strict=True))
    right = {kind: [0, 0] for kind in ("program", "fuzzy")}
    for left, key, kind in joined.pairs:
        right[kind][mine[left] == theirs[key]] += 1
    n_joined = sum(map(sum, right.values()))
    scores = scores_of(joined, pair)
    n_right = right["program"][1] + right["fuzzy"][1]
    assert n_right >= 30 == pair.n_true
    assert scores["joined"] == n_joined
    assert scores["f"] == 2 * n_right / (n_joined + 30)
    assert scores["f_without_fuzzy"] == 2 * right["program"][1] / (sum(right["program"]) + 30)


def _keys(pair):
    return zip(*(pair.source[name].to_pylist() for name in pair.columns), strict=True)


def test_a_rule_is_measured():
    result = measured_pair("NameConcat", SYNTHETIC["NameConcat"], 200, share=1, repeats=2)
    assert (result["f"], result["f_without_fuzzy"]) == (1.0, 1.0)
    assert result["kinds"] == {"none": 0, "equal": 0, "program": 200, "fuzzy": 0}
    assert result["seconds"] > 0
    assert result["join_seconds"] > 0
    assert result["peak_bytes"] is None or result["peak_bytes"] >= 0


def test_the_command_writes_what_it_measures(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    rules = {"NameConcat": SYNTHETIC["NameConcat"]}
    monkeypatch.setattr("benchmarks.transform.planted.RULES", rules)
    monkeypatch.setattr("benchmarks.transform.planted.SYNTHETIC", rules)
    arguments = ["transform", "planted", "--rows", "100", "--repeats", "1", "--write"]
    done = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    planted = json.loads((tmp_path / "transform" / "planted.json").read_text())
    assert planted["part"] == "planted"
    assert planted["origin"]["command"]
    assert planted_page_table(planted) in done.output
