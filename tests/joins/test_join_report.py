"""Options of a join, what it tells, and what is refused before any row is made."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from test_joined_tables import LINKS, THEIRS, joined, mapping_of

import pexeso
from pexeso.errors import InputError
from pexeso.faces.cli.main import cli
from pexeso.index import build_index
from pexeso.joins.matched_rows import find_rows
from pexeso.joins.options import OF_NUMBERS, JoinOptions, join_options
from pexeso.joins.report import CONFLICTS, require_moderate_growth
from pexeso.joins.tables import choose_names, join_table
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


TOWNS = ["Oslo", "Rome"]
N_ROWS = 200
"""Of each table: 100 rows of each town make 20,000."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("growth")
    (folder / "lake").mkdir()
    rows = [f"{TOWNS[number % 2]},2020,{number}" for number in range(N_ROWS)]
    for path in (folder / "lake" / "t.csv", folder / "mine.csv"):
        path.write_text("\n".join(["town,year,n", *rows]))
    build_index(folder / "lake", folder / "ix", parts=["composite"])
    return folder


@pytest.fixture(scope="module")
def index(folder):
    return pexeso.open_index(folder / "ix")


@pytest.fixture(scope="module")
def mine(folder):
    return pd.read_csv(folder / "mine.csv", dtype=str)


REFUSAL = (
    r"would make 20,000 rows of the 200 of your table: '(Oslo|Rome)(,2020)?' is in 100 of them, "
    r"each of which is joined with 100 rows of 't\.csv'.*--many-to-many"
)


@pytest.mark.parametrize("kind", ["pandas", "arrow"])
def test_a_join_by_one_column(index, mine, kind):
    table = pa.Table.from_pandas(mine) if kind == "arrow" else mine
    match = index.search(mine, on="town", k=1)[0]
    with pytest.raises(InputError, match=REFUSAL):
        match.join(table)
    assert len(match.join(table, many_to_many=True)) == 20_000
    assert len(match.join(table, aggregate="first")) == N_ROWS
    assert len(match.join(table[:2])) == 200


def test_a_join_by_several_columns(index, mine):
    match = index.search_composite(mine, ["town", "year"])[0]
    with pytest.raises(InputError, match=REFUSAL):
        match.join(mine)
    assert len(match.join(mine, many_to_many=True)) == 20_000


def test_the_command_line(folder, tmp_path):
    output = tmp_path / "out.parquet"
    words = ["join", str(folder / "ix"), f"{folder / 'mine.csv'}:town", "t.csv:town"]
    refused = CliRunner().invoke(cli, [*words, "-o", str(output)])
    assert refused.exit_code == 2
    assert "20,000 rows of the 200" in refused.stderr
    assert not output.exists()
    written = CliRunner().invoke(cli, [*words, "-o", str(output), "--many-to-many"])
    assert written.exit_code == 0
    assert "200 rows of your table became 20,000." in written.stderr


def test_the_service_names_the_field(folder):
    from pexeso.faces.service.verbs import Service

    request = {"verb": "join", "index": str(folder / "ix"), "lake_column": "t.csv:town"}
    request["query"] = f"{folder / 'mine.csv'}:town"
    with pytest.raises(InputError, match=REFUSAL):
        Service().answer(json.loads(json.dumps(request)))


def test_spark(index, mine, spark):
    frame = spark.createDataFrame(mine)
    match = index.search(mine, on="town", k=1)[0]
    with pytest.raises(InputError, match=REFUSAL):
        match.join(frame)
    assert match.join(frame, many_to_many=True).count() == 20_000


@pytest.mark.parametrize("how", ["left", "inner"])
def test_the_bounds_are_those_that_are_stated(how):
    rng = np.random.default_rng(3)
    options = pexeso.joins.options.JoinOptions(how=how)
    texts = pa.array([f"v{number}" for number in range(5)])
    n_refused = 0
    for _ in range(300):
        text = rng.integers(-1, 5, rng.integers(1, 400))
        counts = rng.integers(0, 60, 5) * rng.integers(0, 2, 5)
        n_joined = sum(
            int(counts[place]) if place >= 0 and counts[place] else int(how == "left")
            for place in text.tolist()
        )
        wanted = n_joined > 10 * len(text) and n_joined > 5_000
        n_refused += wanted
        if wanted:
            with pytest.raises(InputError, match=f"make {n_joined:,} rows of the {len(text):,} "):
                require_moderate_growth(texts, text, counts, "t", options)
        else:
            require_moderate_growth(texts, text, counts, "t", options)
    assert 20 < n_refused < 280


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"values": "best"}, "values must be one of nearest, one-to-one, all. Got 'best' instead."),
        ({"how": "outer"}, "how must be one of left, inner. Got 'outer' instead."),
        ({"aggregate": "median"}, "aggregate must be one of first, list, distinct, count, mean, "
                                  "sum, min, max. Got 'median' instead."),
        ({"aggregate": {"n": "avg"}}, "The way to aggregate 'n' must be one of first, list, "
                                      "distinct, count, mean, sum, min, max. Got 'avg' instead."),
        ({"aggregate": ["n"]}, "or a dictionary from columns to these. Got ['n'] instead."),
        ({"suffix": ""}, "suffix must be a text that is not empty, such as '_lake'. Got '' "
                         "instead."),
        ({"provenance": "value"}, "provenance must be a sequence out of table, column, value, "
                                  "distance, such as ('value', 'distance'). Got 'value'"),
        ({"provenance": ["score"]}, "Each of provenance must be one of table, column, value, "
                                    "distance. Got 'score' instead."),
        ({"vlaues": "all"}, "Join options are values, how, aggregate, suffix, provenance, "
                            "many_to_many. Got vlaues."),
    ],
)  # fmt: skip
def test_what_is_not_allowed_is_said(given, said):
    with pytest.raises(InputError) as caught:
        join_options(given)
    assert said in str(caught.value)


@pytest.mark.parametrize("wrong", [np.array(["a", "b"]), pd.DataFrame({"a": [1]}), pl.Series([1])])
@pytest.mark.parametrize("option", ["values", "how", "aggregate", "suffix", "provenance"])
def test_what_has_no_truth_value_is_refused_as_any_other(option, wrong):
    for given in ({option: wrong}, {"aggregate": {"n": wrong}}, {"provenance": [wrong]}):
        with pytest.raises(InputError, match=r" must be .*\. Got (array|shape| ).*"):
            join_options(given)


def test_ways_by_name_by_position_and_for_the_others():
    names = ["city", "year", "n"]
    assert JoinOptions().ways(names) is None
    assert JoinOptions(aggregate="list").ways(names) == ["list"] * 3
    assert JoinOptions(aggregate={"#2": "sum", "*": "count"}).ways(names) == [
        "count",
        "count",
        "sum",
    ]
    with pytest.raises(
        InputError, match="aggregate names the column 'n' twice, by name and by position"
    ):
        JoinOptions(aggregate={"#2": "sum", "n": "count"}).ways(names)


def names_of(mine, labels, **options):
    chosen = choose_names(mine, labels, "a.csv", JoinOptions(**options))
    return list(chosen.provenance.values()), chosen.found_columns


def test_names_that_are_free_stay():
    assert names_of(["city"], ["name", "n"]) == (["match_value", "match_distance"], ["name", "n"])


def test_a_name_that_is_taken_gets_the_table_or_the_suffix():
    assert names_of(["city"], ["city", "n"])[1] == ["a.csv:city", "n"]
    assert names_of(["city"], ["city", "n"], suffix="_lake")[1] == ["city_lake", "n"]
    assert names_of(["city", "a.csv:city"], ["city"])[1] == ["a.csv:city_2"]
    assert names_of(["city"], ["city", "a.csv:city"])[1] == ["a.csv:city_2", "a.csv:city"]


def test_a_suffix_that_does_not_help_is_refused():
    with pytest.raises(
        InputError,
        match=r"With the suffix '_x' these names are taken as well: city_x\. Choose another suffix",
    ):
        names_of(["city", "city_x"], ["city"], suffix="_x")
    with pytest.raises(InputError, match="these names are taken as well: city_x"):
        names_of(["city"], ["city", "city_x"], suffix="_x")


def test_columns_of_yours_are_never_replaced():
    chosen = choose_names(["city", "match_value"], ["n"], "a.csv", JoinOptions())
    assert list(chosen.provenance.values()) == ["match_value_2", "match_distance_2"]
    assert chosen.note == (
        "match_value is a column of your table and stays as it is; what the join adds is called "
        "match_value_2, match_distance_2."
    )
    again = choose_names(
        ["match_value", "match_distance", "match_value_2"], [], "a.csv", JoinOptions()
    )
    assert list(again.provenance.values()) == ["match_value_3", "match_distance_3"]


def test_a_column_of_the_lake_called_like_provenance_gets_out_of_the_way():
    assert names_of(["city"], ["match_value"])[1] == ["a.csv:match_value"]
    assert names_of(["city"], ["match_value"], provenance=())[1] == ["match_value"]


def test_names_that_differ_in_case_are_the_same_to_spark():
    chosen = choose_names(["City", "MATCH_VALUE"], ["city"], "a.csv", JoinOptions(), fold_case=True)
    assert (chosen.found_columns, list(chosen.provenance.values())) == (
        ["a.csv:city"],
        ["match_value_2", "match_distance_2"],
    )


def test_found_columns_that_spark_takes_for_one_get_two_names():
    labels = ["Code", "code", "CODE", "year"]
    plain = choose_names(["city"], labels, "a.csv", JoinOptions())
    assert plain.found_columns == labels
    folded = choose_names(["city"], labels, "a.csv", JoinOptions(), fold_case=True)
    assert folded.found_columns == ["Code", "a.csv:code", "a.csv:CODE_2", "year"]
    with pytest.raises(InputError, match="code_x"):
        choose_names(["city", "code_x"], labels, "a.csv", JoinOptions(suffix="_x"), fold_case=True)
