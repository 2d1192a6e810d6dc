"""What a join tells: each kind of conflict, its number, examples and lines."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_joined_tables import LINKS, THEIRS, joined, mapping_of

import pexeso
from pexeso.joins.matched_rows import find_rows
from pexeso.joins.options import OF_NUMBERS, JoinOptions
from pexeso.joins.report import CONFLICTS
from pexeso.joins.tables import join_table
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.options import ColumnRules


def rows_of(report, kind):
    return [
        {name: cell for name, cell in row.items() if cell is not None}
        for row in report.conflicts.to_pylist()
        if row["kind"] == kind
    ]


def test_rows_are_counted():
    report = joined().report
    assert (report.rows, report.matched_rows, report.joined_rows) == (7, 4, 9)
    assert report.conflicts.schema == CONFLICTS


def test_a_lake_value_that_several_take():
    links = {("a", "x"): 0.0, ("b", "x"): 0.25, ("b", "y"): 0.5}
    report = joined(links=links).report
    assert rows_of(report, "shared") == [
        {"kind": "shared", "query_value": "a", "lake_value": "X", "distance": 0.0},
        {"kind": "shared", "query_value": "b", "lake_value": "X", "distance": 0.25},
    ]
    assert (
        report.lines()[0]
        == "1 lake value is wanted by several values of your table, such as 'X': 'a', 'b'."
    )
    one_to_one = joined(links=links, values="one-to-one").report
    assert rows_of(one_to_one, "shared") == rows_of(report, "shared")


def test_a_one_to_one_join_is_offered_where_no_value_is_in_two_rows():
    links = {("a", "x"): 0.0, ("b", "x"): 0.25, ("b", "other"): 0.5}
    ours = [{"id": 0, "key": "a"}, {"id": 1, "key": "b"}, {"id": 2, "key": None}]
    theirs = [{"name": name} for name in ("X", "other", "y", "y", None)]
    report = joined(ours, theirs, links).report
    assert "(--values one-to-one) uses no value twice." in report.note
    assert report.lines()[0] == f"Note: {report.note}"
    assert joined(ours, theirs, links, values="one-to-one").report.note is None
    twice = [*ours, {"id": 3, "key": "B."}], [*theirs, {"name": "x"}]
    assert joined(twice[0], theirs, links).report.note is None
    assert joined(ours, twice[1], links).report.note is None
    # Where no lake value is wanted by several, there is nothing to offer.
    assert joined(ours, theirs, {("a", "x"): 0.0, ("b", "other"): 0.5}).report.note is None


def test_equally_near_values_unless_one_is_the_same_text():
    assert (
        rows_of(joined(links=LINKS).report, "tied") == []
    )  # a is both 0.0 from a and from x, but a is a
    report = joined(links={("a", "x"): 0.25, ("a", "y"): 0.25, ("a", "other"): 0.5}).report
    assert [row["lake_value"] for row in rows_of(report, "tied")] == ["X", "Y"]
    assert report.counts["tied"] == 1


def test_a_value_whose_matches_all_went_to_others():
    report = joined(links={("a", "x"): 0.0, ("b", "x"): 0.25}, values="one-to-one").report
    assert rows_of(report, "unpaired") == [
        {"kind": "unpaired", "query_value": "b", "lake_value": "X", "distance": 0.25}
    ]
    assert "unpaired" not in joined(links={("a", "x"): 0.0, ("b", "x"): 0.25}).report.counts


def test_a_value_joined_with_several_rows():
    report = joined().report
    assert rows_of(report, "repeated") == [
        {"kind": "repeated", "query_value": "b", "lake_value": "Y", "distance": 0.125, "count": 3}
    ]
    every = joined(values="all").report
    repeated = rows_of(every, "repeated")
    assert [(row["query_value"], row["lake_value"], row["count"]) for row in repeated] == [
        ("a", "A", 1), ("a", "X", 1), ("a", "Y", 3), ("b", "Y", 3),
        ("A", "A", 1), ("A", "X", 1), ("A", "Y", 3),
    ]  # fmt: skip


def test_cells_that_differ_where_the_first_is_taken():
    report = joined(aggregate={"name": "list", "note": "distinct"}).report
    differing = rows_of(report, "differing")
    assert [(row["query_value"], row["column"], row["cell"]) for row in differing] == [
        ("b", "n", "2"), ("b", "n", "3.5"),
    ]  # fmt: skip
    assert report.lines()[-1].endswith("of which the first is taken, such as 'b' in n: '2', '3.5'.")
    assert "differing" not in joined().report.counts


def test_cells_that_are_no_numbers():
    report = joined(aggregate={"n": "sum", "note": "max"}).report
    assert rows_of(report, "not a number") == [
        {"kind": "not a number", "column": "n", "cell": "many", "count": 1},
        {"kind": "not a number", "column": "note", "cell": "s", "count": 1},
        {"kind": "not a number", "column": "note", "cell": "p", "count": 1},
        {"kind": "not a number", "column": "note", "cell": "q", "count": 2},
    ]
    assert report.counts["not a number"] == 2


@pytest.mark.parametrize(
    ("prices", "unlike"),
    [
        (["$1", "€3", "$2", "£4"], ["$1", "€3", "£4"]),
        (["5 €", "7%", "€8"], ["5 €", "7%"]),
        (["$1,200", "3", "4"], []),
        (["5%", "6", "USD 7"], []),
    ],
)
def test_amounts_of_different_currencies_are_not_added_without_a_word(caplog, prices, unlike):
    shops = pa.table({"city": ["Oslo"] * len(prices), "price": prices})
    for way in OF_NUMBERS:
        caplog.clear()
        pexeso.fuzzy_join(pa.table({"city": ["Oslo"]}), shops, on="city", aggregate={"price": way})
        examples = ", ".join(f"'{price}'" for price in unlike)
        said = f"as plain numbers, such as 'price': {examples}." in caplog.text
        assert said == bool(unlike), caplog.text


def test_values_that_the_table_no_longer_holds():
    assert rows_of(joined(values="all").report, "gone") == [{"kind": "gone", "lake_value": "GONE"}]
    assert "gone" not in joined().report.counts  # it is not the nearest of any


def test_values_that_the_search_was_not_given():
    mapping = mapping_of(["a", "--"], LINKS, "nearest")
    found_rows = find_rows(
        "t.csv", "name", pa.Table.from_pylist(THEIRS), mapping, Normaliser(), JoinOptions()
    )
    table = pa.table({"key": ["a", "new", "new", None, "--"]})
    report = join_table(table, "key", found_rows, pa.array(["a", "--"])).report
    assert rows_of(report, "not searched") == [
        {"kind": "not searched", "query_value": "new", "count": 2}
    ]


def test_the_plain_form_is_json_with_a_few_examples():
    document = joined(values="all").report.to_dict()
    assert json.loads(json.dumps(document)) == document
    assert list(document) == ["rows", "matched_rows", "joined_rows", "note", "conflicts"]
    assert document["conflicts"]["shared"] == {
        "count": 2,
        "examples": [
            {"of": "X", "column": None, "with": ["a", "C"], "n": 2},
            {"of": "Y", "column": None, "with": ["a", "b"], "n": 2},
        ],
    }


def test_a_plain_join_says_nothing():
    report = joined(links={("a", "a"): 0.0}).report
    assert (report.counts, report.lines()) == ({}, [])


@pytest.mark.parametrize(
    ("mine", "lake", "n_apart", "example"),
    [
        (["(100)", "250", "7"], ["100", "250", "7"], 1, "'(100)' with '100'"),
        (["€5", "€7", "€9"], ["5", "$7", "9"], 1, None),
        (["5%", "7", "9"], ["5‰", "7", "9"], 1, "'5%' with '5‰'"),
        (["5%", "+7", "€9", "(8)"], ["5", "7", "9", "(8)"], 0, None),
    ],
)
def test_numbers_of_other_signs_are_kept_apart_or_named(tmp_path, mine, lake, n_apart, example):
    pq.write_table(pa.table({"n": lake}), tmp_path / "t.parquet")
    rules = ColumnRules(kinds=("number",), min_rows=1, min_distinct=1)
    index = pexeso.build_index(tmp_path / "t.parquet", tmp_path / "ix", rules=rules)
    explained = index.explain(mine, "t.parquet", "n").match
    assert explained.matched == len(mine) - n_apart
    report = explained.join_with_report(pa.table({"k": mine}), "k").report
    assert (report.note, report.matched_rows) == (None, explained.matched)
    match = index.search(mine, k=1, max_distance=0)[0]
    assert match.matched == len(mine) - (n_apart if example is None else 0)
    said = f"Numbers of other signs or currencies are joined, such as {example}."
    report = match.join_with_report(pa.table({"k": mine}), "k").report
    assert report.note == (None if example is None else said)
