"""The numbers in cells of text, what joined cells become, and cells for a missing value."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joined_by_loops import aggregate
from long_runs import examples

import pexeso
from pexeso.index import build_index
from pexeso.joins.aggregation import Groups, aggregated, differing, read_numbers, type_of
from pexeso.joins.options import AGGREGATIONS


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("7", 7), (" 7 ", 7), ("-7", -7), ("+7", 7), ("\u22127", -7), ("(1,200)", -1200),
        ("7.", 7), (".5", 0.5), (",5", 0.5),
        ("1,234", 1234), ("1,234.5", 1234.5), ("1,234,567", 1234567), ("3,5", 3.5),
        ("1,2345", 1.2345), ("1.234", 1.234), ("0,750", 0.75), ("-0,125", -0.125),
        ("1.234.567", 1234567), ("1.234,50", 1234.5), ("1 234,5", 1234.5), ("1\u202f234", 1234),
        ("1'234", 1234), ("1_000", 1000),
        ("$5", 5), ("€ 1.234,50", 1234.5), ("-$5", -5), ("$-5", -5), ("12 %", 12), ("5 €", 5),
        ("1e6", 1e6), ("2.5E-1", 0.25),
        ("٣", None), ("12,34,567", 1234567), ("1,2,345", None), ("1,234.567.890", None),
        ("5 kg", None), ("n/a", None),
        ("", None), (".", None), ("-", None),
        ("--5", None), ("(-5)", None), ("(5", None), ("5)", None), ("0x10", None),
        ("nan", None), ("inf", None), ("1 2", None),
        ("1e999", None), ("1/2", None), ("12:30", None), ("5\n6", None), (None, None),
    ],
)  # fmt: skip
def test_a_cell_is_read_as_the_rule_says(cell, number):
    assert read_numbers(pa.array([cell], pa.string())).to_pylist() == [number]


@settings(max_examples=examples(50))
@given(st.lists(st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False))))
def test_numbers_written_out_are_read_again(numbers):
    texts = pa.array([None if number is None else repr(number) for number in numbers], pa.string())
    assert read_numbers(texts).to_pylist() == numbers


groups_of_cells = st.lists(
    st.lists(st.sampled_from(["1", "2.5", "-3", "x", None]), min_size=1, max_size=5), max_size=5
)


@settings(max_examples=examples(50))
@given(groups_of_cells, st.sampled_from(AGGREGATIONS))
def test_cells_are_aggregated_group_by_group(cells, way):
    ids = np.repeat(np.arange(len(cells)) * 3, [len(group) for group in cells]).astype(np.int64)
    flat = pa.array([cell for group in cells for cell in group], pa.string())
    aggregates = aggregated(flat, Groups.of(ids), way)
    assert aggregates.type == type_of(way)
    assert aggregates.to_pylist() == [aggregate(group, way) for group in cells]


def test_differing_cells_are_told_once_and_empty_ones_do_not_differ():
    groups = Groups.of(np.array([0, 0, 0, 1, 1, 2, 2]))
    group, cells = differing(pa.array(["b", "a", "b", "x", None, "y", "y"]), groups)
    assert (group.tolist(), cells.to_pylist()) == ([0, 0], ["b", "a"])


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["1.234", "2,50", "1.234,50"], [1234, 2.5, 1234.5]),
        (["1.234", "1,234", "7,5"], [1234, 1.234, 7.5]),
        (["1.234", "1.234.567"], [1234, 1234567]),
        (["1.234 €", "€ 0,75"], [1234, 0.75]),
        (["1.234", "1,234", "7.5"], [1.234, 1234, 7.5]),
        (["1.234", "1,234,567"], [1.234, 1234567]),
        (["1.234", "2,5", "2.5"], [1.234, 2.5, 2.5]),  # both are decimal marks
        (["0.125", "1.234", "2,5"], [0.125, 1.234, 2.5]),
        (["1.234", "2.345", "1,234"], [1.234, 2.345, 1234]),  # nothing says it
    ],
)
def test_a_column_says_which_mark_is_the_decimal_one(cells, numbers):
    assert read_numbers(pa.array(cells)).to_pylist() == numbers


def test_all_of_the_column_says_it_not_the_joined_rows_alone():
    right = pd.DataFrame({"k": ["Oslo", "Oslo", "Rome"], "sales": ["1.234", "2.000", "2,50"]})
    for way, sales in {"sum": 3234, "mean": 1617, "min": 1234, "max": 2000}.items():
        joined = pexeso.fuzzy_join(
            pd.DataFrame({"k": ["Oslo"]}), right, on="k", aggregate={"sales": way}
        )
        assert joined["sales"].tolist() == [sales]


GAPS = ["N/A", "null", "-", "unknown", "#REF!", "NA", "(blank)", "нет данных", "不明"]
TOWNS = ["Oslo", "Rome", "Bern", "Bonn", "Lima"]
MINE = pd.DataFrame(
    {"town": [*GAPS, *GAPS, *TOWNS], "year": ["2020"] * (2 * len(GAPS) + len(TOWNS))}
)
COUNTRIES = ["NA", "NO", "IT", "DE", "PE"]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("missing")
    (folder / "lake").mkdir()
    rows = [f"{town},2020,{number}" for number, town in enumerate([*GAPS, *GAPS, *TOWNS])]
    (folder / "lake" / "t.csv").write_text("\n".join(["name,when,n", *rows]))
    codes = [f"{code},{number}" for number, code in enumerate([*COUNTRIES, "N/A"])]
    (folder / "lake" / "codes.csv").write_text("\n".join(["code,n", *codes]))
    (folder / "lake" / "gaps.csv").write_text("\n".join(["gap,n", *(f"{gap},1" for gap in GAPS)]))
    parts = ["overlap", "containment", "composite"]
    return build_index(folder / "lake", folder / "ix", parts=parts)


def towns_joined(table):
    """Return the rows of a joined table that have a partner, by the town of yours."""
    joined = table[table["n"].notna()]
    return sorted(joined["town"])


def test_semantic_search_and_its_joins(index):
    result = index.search(MINE, on="town", k=10)
    assert [(match.table, match.column) for match in result.matches] == [("t.csv", "name")]
    assert towns_joined(result.join(MINE)) == sorted(TOWNS)
    assert towns_joined(result.join(pa.Table.from_pandas(MINE)).to_pandas()) == sorted(TOWNS)
    assert towns_joined(result.join(MINE, values="all")) == sorted(TOWNS)


def test_equal_values(index):
    [match] = index.overlap(MINE, on="town", k=10).matches
    assert (match.table, match.overlap) == ("t.csv", len(TOWNS))
    [match] = index.contain(MINE, on="town").matches
    assert (match.table, match.overlap) == ("t.csv", len(TOWNS))
    assert not index.overlap(pa.array(GAPS), k=10).matches


def test_a_code_among_codes_is_a_value(index):
    assert index.overlap(pa.array(COUNTRIES), k=10).matches[0].overlap == len(COUNTRIES)


def test_keys_of_several_columns(index):
    [match] = index.search_composite(MINE, ["town", "year"], k=10).matches
    assert match.table == "t.csv"
    assert towns_joined(match.join(MINE)) == sorted(TOWNS)


def test_learned_programs():
    theirs = pd.DataFrame({"key": [*GAPS, *TOWNS], "n": range(len(GAPS) + len(TOWNS))})
    joined = pexeso.learn_transformation(MINE[["town"]], theirs)
    assert towns_joined(joined.join().to_pandas()) == sorted(TOWNS)


def test_enrichment(index):
    joined = pexeso.enrich(index, MINE, on="town", min_coverage=0.0).table
    filled = joined[joined.filter(like="n").notna().any(axis=1) & joined["town"].isin(GAPS)]
    columns = [name for name in joined.columns if name not in MINE.columns]
    assert columns
    assert filled[columns].isna().all(axis=None)


def test_spark(index, spark):
    frame = spark.createDataFrame(MINE)
    joined = index.search(MINE, on="town").join(frame)
    assert towns_joined(joined.toPandas()) == sorted(TOWNS)


def test_aliases_of_a_missing_word_are_missing(tmp_path):
    (tmp_path / "lake").mkdir()
    own = ["-999", "see note", "n.n."]
    rows = [f"{town},2020,{number}" for number, town in enumerate([*own, *TOWNS])]
    (tmp_path / "lake" / "t.csv").write_text("\n".join(["name,when,n", *rows]))
    lines = [f"{gap},N/A" for gap in own]
    (tmp_path / "aliases.csv").write_text("\n".join(["alias,stands for", *lines]))
    index = build_index(
        tmp_path / "lake",
        tmp_path / "ix",
        parts=["overlap", "composite"],
        aliases=tmp_path / "aliases.csv",
    )
    mine = pd.DataFrame({"town": [*own, *TOWNS], "year": ["2020"] * 8})
    assert towns_joined(index.search(mine, on="town").join(mine)) == sorted(TOWNS)
    assert index.overlap(mine, on="town").matches[0].overlap == len(TOWNS)
    [match] = index.search_composite(mine, ["town", "year"]).matches
    assert towns_joined(match.join(mine)) == sorted(TOWNS)
