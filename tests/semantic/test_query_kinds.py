"""Query columns of every kind that Python has give the answer that the plain list gives."""

import collections
import sys
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from processes import ran
from pyspark.sql import functions as sql

import pexeso
from pexeso.errors import ColumnNotFoundError, QueryError
from pexeso.lake.frames import columns as frame_columns
from pexeso.results.query import QueryColumn, query_from_values, read_query

PLACES = ["Oslo", "rome", None, "Oslo", "MADRID", "Xyzzyx"]
FILLED = [place for place in PLACES if place is not None]
TABLE = {"n": [1, 2, 3, 4, 5, 6], "spot": PLACES, "other": ["a", "b", "c", "d", "e", "f"]}
ARROW = pa.table(TABLE)


class Stream:
    """What another library has: an Arrow stream and nothing else."""

    def __init__(self, exported):
        self.exported = exported

    def __arrow_c_stream__(self, requested_schema=None):
        return self.exported.__arrow_c_stream__(requested_schema)


class Array:
    """The same of one array."""

    def __init__(self, exported):
        self.exported = exported

    def __arrow_c_array__(self, requested_schema=None):
        return self.exported.__arrow_c_array__(requested_schema)


def structured():
    array = np.zeros(len(PLACES), dtype=[("n", np.int64), ("spot", object)])
    array["spot"] = PLACES
    return array


COLUMNS = {
    "tuple": lambda: tuple(PLACES),
    "generator": lambda: (place for place in PLACES),
    "iterator": lambda: iter(PLACES),
    "deque": lambda: collections.deque(PLACES),
    "numpy objects": lambda: np.array(PLACES, dtype=object),
    "pandas series": lambda: pd.Series(PLACES),
    "pandas string": lambda: pd.Series(PLACES, dtype="string"),
    "pandas arrow": lambda: pd.Series(PLACES, dtype=pd.ArrowDtype(pa.string())),
    "pandas category": lambda: pd.Series(PLACES, dtype="category"),
    "pandas categorical": lambda: pd.Categorical(PLACES),
    "pandas index": lambda: pd.Index(PLACES),
    "polars series": lambda: pl.Series(PLACES),
    "polars category": lambda: pl.Series(PLACES, dtype=pl.Categorical),
    "polars enum": lambda: pl.Series(PLACES, dtype=pl.Enum(sorted(set(FILLED)))),
    "polars objects": lambda: pl.Series(PLACES, dtype=pl.Object),
    "arrow array": lambda: pa.array(PLACES),
    "arrow large": lambda: pa.array(PLACES, pa.large_string()),
    "arrow view": lambda: pa.array(PLACES, pa.string_view()),
    "arrow dictionary": lambda: pa.array(PLACES).dictionary_encode(),
    "arrow chunks": lambda: pa.chunked_array([PLACES[:2], PLACES[2:]]),
    "arrow runs": lambda: pa.array(PLACES, pa.run_end_encoded(pa.int32(), pa.string())),
    "stream": lambda: Stream(pa.chunked_array([PLACES])),
    "array": lambda: Array(pa.array(PLACES)),
}
FRAMES = {
    "dict of lists": lambda: TABLE,
    "dict of arrays": lambda: {"n": np.arange(6), "spot": np.array(PLACES, dtype=object)},
    "pandas": lambda: pd.DataFrame(TABLE),
    "polars": lambda: pl.DataFrame(TABLE),
    "polars lazy": lambda: pl.LazyFrame(TABLE),
    "arrow table": lambda: ARROW,
    "arrow batch": lambda: ARROW.to_batches()[0],
    "arrow structs": lambda: ARROW.to_struct_array().combine_chunks(),
    "numpy structured": structured,
    "reader": lambda: ARROW.to_reader(),
    "stream": lambda: Stream(ARROW),
    "array": lambda: Array(ARROW.to_batches()[0]),
}


@pytest.fixture(scope="module")
def index(small_index):
    return pexeso.open_index(small_index, device="cpu")


def answer(result):
    """Return all that a search tells, but for its work and the name of the column."""
    document = result.to_dict(explain=True)
    return {**document, "stats": None, "query": {**document["query"], "column": None}}


@pytest.fixture(scope="module")
def of_the_list(index):
    result = index.search(PLACES, min_joinability=0.2)
    assert len(result) == 3
    return answer(result)


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_column_of_any_kind_is_the_list_of_its_values(kind):
    assert query_from_values(COLUMNS[kind]()).values.to_pylist() == PLACES


NESTED = [["Oslo"], None, [], ["a", None]]
UUIDS = [uuid.UUID(int=0), None]


@pytest.mark.parametrize(
    "column",
    [
        NESTED,
        pd.Series(NESTED),
        pl.Series(NESTED),
        pa.array(NESTED),
        pa.array(NESTED, pa.list_view(pa.string_view())),
        pa.DictionaryArray.from_arrays(range(4), pa.array(NESTED)),
    ],
)
def test_nested_values_have_the_texts_that_they_have_in_files(tmp_path, column):
    pq.write_table(pa.table({"tags": NESTED}), tmp_path / "t.parquet")
    texts = query_from_values(column).values
    assert texts == read_query(f"{tmp_path / 't.parquet'}:tags").values
    assert texts.to_pylist() == ['["Oslo"]', None, "[]", '["a", null]']


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        (pd.Series(pd.PeriodIndex(["2020-01", None], freq="M")), ["2020-01", None]),
        (pd.arrays.IntervalArray.from_tuples([(0, 1), None]), ["(0.0, 1.0]", None]),
        (pd.cut(pd.Series([1]), [0, 2]), ["(0, 2]"]),
        (pd.Categorical(pd.PeriodIndex(["2020", None], freq="Y")), ["2020", None]),
        (UUIDS, [str(UUIDS[0]), None]),
        (pa.array(UUIDS), [str(UUIDS[0]), None]),
    ],
)
def test_values_of_extension_types_have_their_own_texts(column, texts):
    assert query_from_values(column).values.to_pylist() == texts


@pytest.mark.parametrize("kind", FRAMES)
def test_a_column_of_a_table_of_any_kind_is_the_list_of_its_values(kind):
    for on in ("spot", 1, "#1", ["spot"]):
        assert query_from_values(FRAMES[kind](), on=on) == QueryColumn(
            pa.array(PLACES), column="spot"
        )


@pytest.mark.parametrize("kind", ["generator", "polars category", "pandas index", "stream"])
def test_the_answer_is_that_of_the_list(index, of_the_list, kind):
    assert answer(index.search(COLUMNS[kind](), min_joinability=0.2)) == of_the_list


@pytest.mark.parametrize("kind", ["dict of lists", "pandas", "polars", "polars lazy", "reader"])
def test_the_answer_for_a_column_of_a_table_is_that_of_the_list(index, of_the_list, kind):
    result = index.search(FRAMES[kind](), on="spot", min_joinability=0.2)
    assert result.query["column"] == "spot"
    assert answer(result) == of_the_list


def test_every_verb_takes_a_column_of_a_table(index):
    table = pl.DataFrame(TABLE)
    for verb in (
        index.overlap,
        index.contain,
        lambda values, **on: index.search(values, method="overlap", **on),
        lambda values, **on: index.search(values, method="all", **on),
        lambda values, **on: pexeso.search_combined(index, values, **on),
        lambda values, **on: index.explain(values, "cities.csv", "city", **on),
    ):
        table_answer, wanted = verb(table, on="spot").to_dict(), verb(PLACES).to_dict()
        assert table_answer["query"].pop("column") == "spot"
        assert wanted["query"].pop("column") is None
        table_answer.pop("stats", None), wanted.pop("stats", None)
        assert table_answer == wanted
    assert index.encode(table, on="spot").values == index.encode(PLACES).values
    assert index.advise(table, "cities.csv", "city", on="spot") == index.advise(
        PLACES, "cities.csv", "city"
    )


def test_numbers_and_dates_of_polars_are_those_of_pandas():
    numbers = [1.0, 2.5, float("nan"), None]
    wanted = query_from_values(pd.Series(numbers)).values.to_pylist()
    assert wanted == ["1", "2.5", None, None]
    assert query_from_values(pl.Series(numbers, strict=False)).values.to_pylist() == wanted
    assert query_from_values(pa.array(numbers)).values.to_pylist() == wanted
    assert query_from_values(pd.Categorical([1, 2, None])).values.to_pylist() == ["1", "2", None]
    dates = pl.Series(["2020-03-05", None]).str.to_date()
    assert query_from_values(dates).values.to_pylist() == ["2020-03-05", None]


def test_an_iterator_of_mixed_types_is_read_once():
    assert query_from_values(iter(["a", 1, None, 2.5])).values.to_pylist() == [
        "a",
        "1",
        None,
        "2.5",
    ]
    assert query_from_values({"b": 1, 2: 3}.keys()).values.to_pylist() == ["b", "2"]


def test_the_values_of_a_set_are_sorted_by_their_texts():
    for values in ({"b", "a", "C"}, frozenset(["b", "C", "a"])):
        assert query_from_values(values).values.to_pylist() == ["C", "a", "b"]
    assert query_from_values({10, 9, None, "a"}).values.to_pylist() == ["10", "9", "a", None]


def test_of_a_lazy_frame_one_column_alone_is_collected():
    read = []

    def watched(column):
        read.append(column.name)
        return column

    lazy = pl.LazyFrame(TABLE).with_columns(
        pl.col(name).map_batches(watched, return_dtype=pl.String) for name in ("spot", "other")
    )
    assert query_from_values(lazy, on="spot").values.to_pylist() == PLACES
    assert read == ["spot"]


@pytest.mark.parametrize("kind", FRAMES)
def test_a_table_without_a_named_column_is_refused_with_its_columns(index, kind):
    for ask in (query_from_values, index.search, index.overlap, index.contain):
        with pytest.raises(QueryError, match=r"one column of values\. Got") as refused:
            ask(FRAMES[kind]())
        said = str(refused.value)
        assert "Name the column to search with, such as on='n'" in said
        assert "The columns are 'n', 'spot'" in said
        assert ("table['n']" in said) == (kind != "polars lazy")


@pytest.mark.parametrize(
    ("table", "on"),
    [
        (pd.DataFrame([["a", "b"]], columns=["x", "x"]), "#0"),
        (pd.DataFrame([["a", "b"]]), "0"),
        (pd.DataFrame([["a"]], columns=pd.MultiIndex.from_tuples([("x", "y")])), "('x', 'y')"),
        (pa.table([pa.array(["a"])] * 2, names=["x", "x"]), "#0"),
        ({7: ["a"]}, "7"),
    ],
)
def test_what_is_proposed_for_a_table_works(table, on):
    with pytest.raises(QueryError) as refused:
        query_from_values(table)
    assert f"such as on={on!r}. The columns are" in str(refused.value)
    assert query_from_values(table, on=on).values.to_pylist() == ["a"]


@pytest.mark.parametrize("kind", FRAMES)
def test_a_column_that_is_not_there_is_refused_with_those_that_are(kind):
    with pytest.raises(ColumnNotFoundError, match=r"no column 'spto' \(did you mean 'spot'"):
        query_from_values(FRAMES[kind](), on="spto")


def test_several_columns_are_a_key(index):
    with pytest.raises(QueryError, match=r"Got on=\['n', 'spot'\]: .*index\.search_composite"):
        index.search(pd.DataFrame(TABLE), on=["n", "spot"])


@pytest.mark.parametrize(
    ("values", "on", "said"),
    [
        (TABLE, True, r"on names one column, by its name or its position.*Got True"),
        (TABLE, 1.5, r"on names one column.*Got 1\.5"),
        (TABLE, 9, r"no column #9; positions count from 0, here #0 to #2"),
        (PLACES, "spot", r"on='spot' names a column of a table\. Got list, which is none"),
        (pl.Series(PLACES), "spot", r"Got Series, which is none"),
        ("Oslo", "spot", r"Got str, which is none"),
        (QueryColumn(pa.array(["a"])), "a", r"Got QueryColumn, which is none"),
        ([{"spot": "Oslo"}], None, r"Got a list of records .*\[row\['city'\] for row in rows\]"),
        (pd.MultiIndex.from_tuples([("a", 1)]), None, r"Got MultiIndex of shape \(1,\) instead"),
        (np.zeros((2, 2)), None, r"Got ndarray of shape \(2, 2\) instead"),
        (pl.col("spot"), None, r"must be a list of values\. Got Expr instead"),
        ({}, None, r"Got dict instead.*It has no columns\."),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_is_refused_is_told_in_a_sentence(values, on, said):
    with pytest.raises(QueryError if on != 9 else ColumnNotFoundError, match=said):
        query_from_values(values, on=on)


def test_a_table_is_no_list_of_query_columns(index):
    for ask in (index.search_batch, index.overlap_batch):
        with pytest.raises(QueryError, match=r"given as a list\. Got DataFrame .*'n', 'spot'"):
            ask(pl.DataFrame(TABLE))
        with pytest.raises(QueryError, match=r"given as a list\. Got 3\."):
            ask(3)
    assert len(index.search_batch(pl.DataFrame(TABLE)[["spot"]].get_columns(), k=1)) == 1


@pytest.fixture(scope="module")
def frame(spark):
    return spark.createDataFrame(pd.DataFrame({"n": range(6), "spot": PLACES}))


def test_a_column_of_spark_is_collected_as_distinct_values_with_counts(index, frame):
    query = query_from_values(frame, on="spot")
    assert query.values.to_pylist() == ["MADRID", "Oslo", "Xyzzyx", "rome", None]
    assert query.counts.tolist() == [1, 2, 1, 1, 1]
    assert query.describe() == {"file": None, "column": "spot", "rows": 6}
    plain = [*sorted(FILLED), None]
    for options in ({}, {"joinability_of": "rows"}, {"ignore_missing": True}):
        result = index.search(frame, on="spot", min_joinability=0.2, **options)
        assert answer(result) == answer(index.search(plain, min_joinability=0.2, **options))
    assert index.overlap(frame, on="spot").rows() == index.overlap(plain).rows()


def test_what_of_spark_is_refused(frame, monkeypatch):
    with pytest.raises(QueryError, match=r"Got a Column of Spark, which has no rows: give"):
        query_from_values(frame["spot"])
    with pytest.raises(QueryError, match=r"such as on='n'\. The columns are 'n', 'spot'\."):
        query_from_values(frame)
    with pytest.raises(QueryError, match=r"Spark column 'both' holds a value of the type array"):
        query_from_values(frame.select(sql.array("spot").alias("both")), on="both")
    monkeypatch.setattr(frame_columns, "MAX_SPARK_VALUES", 4)
    with pytest.raises(QueryError, match=r"'spot' has more than 4 distinct values.*frame\.sample"):
        query_from_values(frame, on="spot")
    monkeypatch.setattr(frame_columns, "MAX_SPARK_VALUES", 5)
    assert len(query_from_values(frame, on="spot").values) == 5


def test_no_library_is_imported_for_a_query_without_it():
    program = """
import sys
from pexeso.results.query import query_from_values
import pyarrow as pa
assert query_from_values(pa.table({"a": ["x"]}), on="a").values.to_pylist() == ["x"]
assert query_from_values({"a": ["x"]}, on=0).values.to_pylist() == ["x"]
print(*[name for name in ("polars", "pyspark", "torch") if name in sys.modules])
"""
    done = ran([sys.executable, "-c", program])
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
