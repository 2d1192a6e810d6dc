"""Joined tables of pandas and Arrow: held against a join by nested loops, with every option."""

from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joined_by_loops import join_by_loops
from long_runs import examples

import pexeso
from pexeso.errors import ColumnNotFoundError, InputError
from pexeso.joins.mapping import PairColumns, make_mapping
from pexeso.joins.matched_rows import find_rows, found_types
from pexeso.joins.options import AGGREGATIONS, JoinOptions
from pexeso.joins.tables import join_table
from pexeso.lake.frames.tables import in_pandas
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.results.matches import Pair

LINKS = {
    ("a", "a"): 0.0,
    ("a", "x"): 0.0,
    ("a", "y"): 0.25,
    ("b", "y"): 0.125,
    ("b", "gone"): 0.25,
    ("c", "x"): 0.5,
}
OURS = [
    {"id": place, "key": key} for place, key in enumerate(["a", "C", "b", None, "A", "d", "--"])
]
THEIRS = [
    {"name": "X", "n": "1", "note": "p"},
    {"name": "y", "n": "2", "note": None},
    {"name": "Y", "n": "3.5", "note": "q"},
    {"name": None, "n": "9", "note": "r"},
    {"name": "a", "n": "many", "note": "s"},
    {"name": "other", "n": "8", "note": "t"},
    {"name": "y.", "n": "2", "note": "q"},
]


NORMALISER = Normaliser()


@cache
def normalised(text):
    return NORMALISER.normalise(pa.array([text], pa.string()))[0].as_py()


def mapping_of(texts, links, values):
    texts = list(dict.fromkeys(text for text in texts if normalised(text) is not None))
    distinct = list(dict.fromkeys(map(normalised, texts)))
    pairs = [
        Pair(text, key.upper(), distance, key, "spelling")
        for text in texts
        for (query, key), distance in links.items()
        if query == normalised(text)
    ]
    places = np.array([distinct.index(normalised(text)) for text in texts], dtype=np.int64)
    return make_mapping(
        pa.array(texts, pa.string()),
        places,
        pa.array(distinct, pa.string()),
        PairColumns.of(pairs),
        values,
    )


def found_rows_of(texts, rows=None, links=LINKS, **options):
    """Return the rows that a join with `THEIRS`, or with other rows, takes for some texts."""
    options = JoinOptions(**options)
    mapping = mapping_of(texts, links, options.values)
    rows = pa.Table.from_pylist(THEIRS) if rows is None else rows
    return find_rows("t.csv", "name", rows, mapping, NORMALISER, options)


def joined(ours=OURS, theirs=THEIRS, links=LINKS, *, kind="arrow", to=None, on="key", **options):
    texts = [row["key"] for row in ours]
    rows = pa.Table.from_pylist(
        theirs, schema=pa.schema([(name, pa.string()) for name in theirs[0]])
    )
    found_rows = found_rows_of(texts, rows, links, **options)
    table = pa.Table.from_pylist(ours, schema=pa.schema([("id", pa.int64()), ("key", pa.string())]))
    return join_table(
        table.to_pandas() if kind == "pandas" else table,
        on,
        found_rows,
        pa.array(texts, pa.string()),
        to=to,
    )


def ways_of(aggregate):
    return None if aggregate is None else dict.fromkeys(THEIRS[0], aggregate)


@pytest.mark.parametrize("aggregate", [None, *AGGREGATIONS])
@pytest.mark.parametrize("how", ["left", "inner"])
@pytest.mark.parametrize("values", ["nearest", "all"])
def test_every_option_gives_what_loops_give(values, how, aggregate):
    table = joined(values=values, how=how, aggregate=aggregate).table
    wanted = join_by_loops(
        OURS, "key", LINKS, THEIRS, "name", normalised, values, how, ways_of(aggregate)
    )
    assert table.to_pylist() == wanted
    labels = list(THEIRS[0])
    texts = [pa.string()] * len(labels)
    assert table.schema.types[2:] == found_types(labels, texts, JoinOptions(aggregate=aggregate))


cells = st.sampled_from(["a", "A!", "b", "x", "y", "Y", "gone", "", None])
lake_rows = st.lists(
    st.fixed_dictionaries({"name": cells, "n": st.sampled_from(["1", "2.5", "n/a", None])}),
    min_size=1,
)
links = st.dictionaries(
    st.tuples(st.sampled_from("ab"), st.sampled_from(["a", "b", "x", "y", "gone"])),
    st.sampled_from([0.0, 0.5]),
)


@settings(max_examples=examples(300))
@given(
    st.lists(cells),
    lake_rows,
    links,
    st.sampled_from(["nearest", "all"]),
    st.sampled_from(["left", "inner"]),
    st.sampled_from([None, *AGGREGATIONS]),
)
def test_any_tables_give_what_loops_give(mine, theirs, links, values, how, aggregate):
    ours = [{"id": place, "key": key} for place, key in enumerate(mine)]
    theirs = [{name: cell or None for name, cell in row.items()} for row in theirs]
    table = joined(ours, theirs, links, values=values, how=how, aggregate=aggregate).table
    ways = None if aggregate is None else dict.fromkeys(theirs[0], aggregate)
    assert table.to_pylist() == join_by_loops(
        ours, "key", links, theirs, "name", normalised, values, how, ways
    )


def test_one_to_one_joins_no_lake_value_twice():
    rows = joined(values="one-to-one", how="inner").table.to_pylist()
    # a keeps the same text; c then has x to itself; all three rows of y go to b.
    assert [(row["id"], row["name"]) for row in rows] == [
        (0, "a"), (1, "X"), (2, "y"), (2, "Y"), (2, "y."), (4, "a"),
    ]  # fmt: skip


def test_pandas_gets_the_same_with_its_own_missing_values():
    ours = joined(kind="pandas", aggregate={"n": "count", "note": "list"}).table
    assert isinstance(ours, pd.DataFrame)
    assert ours.columns.tolist() == [
        "id",
        "key",
        "match_value",
        "match_distance",
        "name",
        "n",
        "note",
    ]
    assert ours["id"].dtype == np.int64
    assert ours["n"].astype(object).where(ours["n"].notna(), None).tolist() == [
        1,
        1,
        3,
        None,
        1,
        None,
        None,
    ]
    assert ours["note"].tolist()[:3] == [["s"], ["p"], ["q", "q"]]
    assert (
        ours.loc[3, ["match_value", "match_distance", "name"]]
        .map(lambda cell: cell is np.nan or cell != cell)
        .all()
    )


def test_the_users_columns_keep_their_types_and_the_index_counts_rows():
    table = pd.DataFrame(
        {
            "key": pd.Categorical(["b", "a"]),
            "when": pd.to_datetime(["2020-01-02", None]),
            "what": [1, {"x": 1}],
        },
        index=["first", "second"],
    )
    rows = found_rows_of(["a", "b"])
    frame = join_table(table, "key", rows, pa.array(["a", "b"])).table
    assert frame.dtypes[:3].tolist() == table.dtypes.tolist()
    assert frame["what"].tolist() == [1, 1, 1, {"x": 1}]
    assert frame.index.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("kind", "to"), [("pandas", "arrow"), ("arrow", "pandas")])
def test_the_other_kind_of_table_is_given_when_asked_for(kind, to):
    same, other = joined(kind=kind).table, joined(kind=kind, to=to).table
    assert type(same) is not type(other)
    as_arrow, as_pandas = (other, same) if to == "arrow" else (same, other)
    turned = in_pandas(as_arrow)  # whole numbers of which some may be missing, also where none is
    assert turned.dtypes["id"] == "Int64"
    frames = [frame.astype(object).where(frame.notna(), "-") for frame in (turned, as_pandas)]
    pd.testing.assert_frame_equal(*frames)


def test_whole_numbers_are_exact_in_pandas_by_every_way():
    big = [2**60 + 1, 2**63 + 5]
    rows = pa.table({"name": ["a"], "n": pa.array(big[1:], pa.uint64())})
    found_rows = found_rows_of(["a", "b"], rows, {("a", "a"): 0.0})
    mine = pa.table({"key": ["a", "b", None], "id": [big[0], None, 3]})
    requested = join_table(mine, "key", found_rows, pa.array(["a", "b"]), to="pandas").table
    turned = join_table(mine, "key", found_rows, pa.array(["a", "b"])).to_pandas()
    pd.testing.assert_frame_equal(requested, turned)
    assert requested["id"].tolist() == [big[0], pd.NA, 3]
    assert requested["n"].tolist() == [big[1], pd.NA, pd.NA]
    frame = pd.DataFrame({"key": ["a", "b", None]})
    beside = join_table(frame, "key", found_rows, pa.array(["a", "b"])).table
    pd.testing.assert_series_equal(beside["n"], requested["n"])


def test_a_table_with_repeated_names_of_columns_is_joined_by_position():
    table = pa.table([pa.array(["b"]), pa.array(["a"])], names=["key", "key"])
    rows = found_rows_of(["a"])
    assert join_table(table, 1, rows, pa.array(["a"])).table.column_names[:2] == ["key", "key"]
    assert join_table(table.to_pandas(), 1, rows, pa.array(["a"])).table["n"].tolist() == ["many"]


def test_all_of_provenance():
    table = joined(provenance=("distance", "column", "table", "value"), how="inner").table
    assert table.column_names[2:6] == [
        "match_table",
        "match_column",
        "match_value",
        "match_distance",
    ]
    assert table.slice(0, 1).select(range(2, 6)).to_pylist()[0] == {
        "match_table": "t.csv", "match_column": "name", "match_value": "a", "match_distance": 0.0,
    }  # fmt: skip
    assert joined(provenance=()).table.column_names == ["id", "key", "name", "n", "note"]


def test_what_cannot_be_joined_is_refused_in_a_sentence():
    with pytest.raises(
        InputError,
        match=r"The table to join must be a DataFrame of pandas .*PyCapsule interface\. Got list",
    ):
        join_table([], "key", None, pa.array([], pa.string()))
    with pytest.raises(
        InputError, match=r"to must be one of pandas, arrow, polars\. Got 'csv' instead\."
    ):
        joined(to="csv")
    with pytest.raises(
        InputError, match="Name the query column of your table: on=NAME or on=POSITION"
    ):
        joined(on=None)
    with pytest.raises(
        ColumnNotFoundError, match=r"There is no column 'kye' \(did you mean 'key'\?\)"
    ):
        joined(on="kye")
    with pytest.raises(ColumnNotFoundError, match="There is no column 'm'"):
        joined(aggregate={"m": "sum"})


def test_dates_of_the_found_table_are_read_as_a_whole_column():
    # 13/5 says that the day comes first, for 3/5 as well.
    theirs = [
        {"name": "13/5/1953", "n": "1"},
        {"name": "3/5/1953", "n": "2"},
        {"name": "5/3/1953", "n": "3"},
    ]
    ours = [{"id": 0, "key": "1953-05-03"}]
    table = joined(ours, theirs, {("3 may 1953", "3 may 1953"): 0.0}).table
    assert table["n"].to_pylist() == ["2"]


def test_parts_of_the_found_rows_are_those_of_the_whole():
    found_rows = found_rows_of([row["key"] for row in OURS], values="all")
    n_rows = len(found_rows.text_of_row)
    parts = [found_rows.take(start, start + 3) for start in range(0, n_rows, 3)]
    assert len(parts) > 1
    assert pa.concat_tables(parts).equals(found_rows.take())


def test_a_table_that_grew_after_it_was_indexed_is_named(tmp_path):
    (tmp_path / "lake").mkdir()
    towns = pd.DataFrame({"town": ["Oslo", "Bergen", "Moss", "Hamar", "Skien"]})
    towns.to_csv(tmp_path / "lake" / "t.csv", index=False)
    index = pexeso.build_index(tmp_path / "lake", tmp_path / "ix")
    mine = pd.DataFrame({"k": ["Oslo", "Paris"]})
    match = index.explain(mine["k"], "t.csv", "town").match
    assert match.join_with_report(mine, "k").report.note is None
    towns = pd.concat([towns, pd.DataFrame({"town": ["Paris"]})])
    towns.to_csv(tmp_path / "lake" / "t.csv", index=False)
    joined = match.join_with_report(mine, "k")
    assert joined.table["town"].tolist()[0] == "Oslo"
    assert joined.report.note == (
        "'t.csv' has 6 rows, and had 5 when it was indexed: new values join nothing until the "
        "index is brought up to date (pexeso append)."
    )
    index.append()
    match = index.explain(mine["k"], "t.csv", "town").match
    joined = match.join_with_report(mine, "k")
    assert (joined.report.note, joined.report.matched_rows) == (None, 2)
