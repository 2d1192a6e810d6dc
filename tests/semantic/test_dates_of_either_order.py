"""Dates of which a column does not say what comes first, day or month: read as more of them match.

The judge is Python's datetime, by which every date is read in both ways.
"""

import random
from datetime import date, datetime, timedelta

import pandas as pd
import pytest

import pexeso
from pexeso.faces.service.requests import ExplainRequest, JoinRequest, SearchRequest
from pexeso.faces.service.verbs import run
from pexeso.options import ColumnRules

WAYS = {True: "%d/%m/%Y", False: "%m/%d/%Y"}


def indexed(folder, lake):
    (folder / "lake").mkdir()
    pd.DataFrame({"day": lake, "row": range(len(lake))}).to_csv(
        folder / "lake" / "days.csv", index=False
    )
    rules = ColumnRules(min_rows=1, min_distinct=1)
    return pexeso.build_index(folder / "lake", folder / "ix", rules=rules)


def read(mine, lake, *, day_first):
    """Return for each date of mine its place in the lake, of dates in ISO 8601, or None."""
    days = [datetime.strptime(text, WAYS[day_first]).date().isoformat() for text in mine]
    return [lake.index(day) if day in lake else None for day in days]


def places(joined):
    return [None if pd.isna(row) else int(row) for row in joined["row"]]


@pytest.mark.parametrize("seed", range(4))
def test_they_are_read_as_more_of_them_match(tmp_path, seed):
    rng = random.Random(seed)
    start = date(2024, 1, 1)
    lake = [(start + timedelta(rng.randrange(365))).isoformat() for _ in range(60)]
    lake = sorted(set(lake))
    days = rng.sample([day for day in lake if int(day[-2:]) <= 12], 8)
    mine = [datetime.fromisoformat(day).strftime(WAYS[seed % 2 == 0]) for day in days]
    ways = {first: read(mine, lake, day_first=first) for first in (False, True)}
    n_matched = {first: sum(place is not None for place in ways[first]) for first in ways}
    best = n_matched[True] > n_matched[False]
    index = indexed(tmp_path, lake)
    explained = index.explain(mine, "days.csv", "day")
    assert explained.match.matched == n_matched[best]
    assert explained.query["day_first"] is best
    [nearest] = index.search(mine, min_joinability=0.01)
    assert nearest.matched == n_matched[best]
    table = pd.DataFrame({"k": mine})
    for match in (explained.match, nearest):
        joined = match.join_with_report(table, "k")
        assert places(joined.table) == ways[best]
        assert joined.report.note == (
            "Your dates may have the day or the month first, and are read with the "
            f"{'day' if best else 'month'} first."
        )
    right = pd.DataFrame({"k": lake, "row": range(len(lake))})
    assert places(pexeso.fuzzy_join(table, right, on="k")) == ways[best]


def test_a_column_that_says_its_order_is_read_by_it(tmp_path):
    index = indexed(tmp_path, ["2024-01-05", "2024-01-06", "2024-01-31"])
    explained = index.explain(["01/05/2024", "01/06/2024", "01/31/2024"], "days.csv", "day")
    assert (explained.match.matched, explained.note) == (3, None)
    assert "day_first" not in explained.query
    explained = index.explain(["05/06/2024", "05/06/2024", "31/01/2024"], "days.csv", "day")
    assert (explained.match.matched, explained.note) == (1, None)


def test_equal_cells_match_whichever_column_says_the_order(tmp_path):
    index = indexed(tmp_path, ["05/01/2024", "06/02/2024", "31/01/2024"])
    explained = index.explain(["05/01/2024", "06/02/2024", "07/03/2024"], "days.csv", "day")
    assert [(pair.query, pair.value) for pair in explained.match.pairs()] == [
        ("05/01/2024", "05/01/2024"),
        ("06/02/2024", "06/02/2024"),
    ]


def test_a_column_of_the_lake_is_read_as_more_of_it_matches(tmp_path):
    index = indexed(tmp_path, ["05/01/2024", "06/01/2024", "01/07/2024"])
    mine = pd.DataFrame({"k": ["2024-01-05", "2024-01-06", "2024-01-07", "2024-01-31"]})
    explained = index.explain(mine["k"], "days.csv", "day")
    assert explained.match.matched == 2
    assert places(explained.match.join(mine, "k")) == [0, 1, None, None]
    note = "Dates of days.csv:day may have the day or the month first, and are read with the "
    assert explained.note == f"{note}day first."
    document = explained.to_dict()
    assert document["note"] == explained.note
    assert document["compared_as"]["05/01/2024"] == document["compared_as"]["2024-01-05"]
    assert [one.reason for one in explained.unmatched] == ["apart", "apart"]
    explained = index.explain(["2024-05-01", "2024-01-07"], "days.csv", "day")
    assert (explained.match.matched, explained.note) == (2, f"{note}month first.")


def test_answers_say_how_they_are_read(tmp_path):
    indexed(tmp_path, ["2024-01-05", "2024-01-06", "2024-05-01"])
    pd.DataFrame({"k": ["05/01/2024", "06/01/2024"]}).to_csv(tmp_path / "mine.csv", index=False)
    fields = {"index": str(tmp_path / "ix"), "query": f"{tmp_path}/mine.csv:k"}
    note = "Your dates may have the day or the month first, and are read with the day first."
    named = {**fields, "lake_column": "days.csv:day"}
    assert run(JoinRequest.of(**named)).to_dict()["report"]["note"] == note
    assert run(ExplainRequest.of(**named)).to_dict()["note"] == note
    [result] = run(SearchRequest.of(**fields)).results
    assert result.to_dict()["query"]["day_first"] is True


@pytest.mark.parametrize("says", ["day", "month"])
@pytest.mark.parametrize("open_side", ["mine", "lake"])
def test_every_search_reads_them_alike_and_says_how(tmp_path, says, open_side):
    (tmp_path / "lake").mkdir()
    days = ["2024-01-05", "2024-02-06", "2024-05-05", "2024-03-31"]
    written = [datetime.fromisoformat(day).strftime(WAYS[says == "day"]) for day in days[:3]]
    lake, mine = (days, written[:2]) if open_side == "mine" else (written, days[:2])
    lake = pd.DataFrame({"day": lake, "n": [1, 2, 1, 4][: len(lake)]})
    lake.to_csv(tmp_path / "lake" / "days.csv", index=False)
    rules = ColumnRules(min_rows=1, min_distinct=1)
    parts = ("containment", "composite")
    index = pexeso.build_index(tmp_path / "lake", tmp_path / "ix", rules=rules, parts=parts)
    keys = pd.DataFrame({"k": mine, "n": [1, 2]})
    combined = pexeso.search_combined(index, mine)
    assert combined[0].equal_text.overlap == 2
    assert open_side == "lake" or combined[0].meaning.matched == 2
    composite = index.search_composite(keys, ["k", "n"])
    for result in (index.overlap(mine), index.contain(mine), combined, composite):
        assert len(result) == 1
        assert result.query["day_first"] is (says == "day")
    note = f"Dates may have the day or the month first, and are read with the {says} first."
    assert composite[0].join_with_report(keys).report.note == note
    if open_side == "lake":
        return
    for plain in (["31/01/2024", "05/01/2024"], ["2024-01-05", "2024-02-06"], ["05/05/2024"] * 2):
        keys = index.search_composite(pd.DataFrame({"k": plain, "n": [1, 2]}), ["k", "n"])
        for result in (index.overlap(plain), index.contain(plain), keys):
            assert "day_first" not in result.query


def test_both_orders_are_said_where_columns_match_by_each(tmp_path):
    (tmp_path / "lake").mkdir()
    for name, days in {
        "a": ["2024-01-05", "2024-02-06"],
        "b": ["2024-05-01", "2024-06-02"],
    }.items():
        pd.DataFrame({"day": days}).to_csv(tmp_path / "lake" / f"{name}.csv", index=False)
    rules = ColumnRules(min_rows=1, min_distinct=1)
    index = pexeso.build_index(tmp_path / "lake", tmp_path / "ix", rules=rules, parts=("overlap",))
    result = index.overlap(["05/01/2024", "06/02/2024"])
    assert (len(result), result.query["day_first"]) == (2, None)
