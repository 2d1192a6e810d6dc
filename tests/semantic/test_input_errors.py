"""Tests of input errors: mistakes give a sentence of pexeso, numpy scalars are accepted."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

import pexeso
from pexeso.errors import ColumnNotFoundError, InputError, QueryError
from pexeso.options import METHODS, BuildOptions, parse_bytes
from pexeso.results.query import query_from_values, read_batch_line

BAD_UTF8 = pa.StringArray.from_buffers(
    2, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"\xffa")
)
DIGITS = 10**5000


class Table:
    """Stands for a table of polars or Spark: iterating over it gives something else than values."""

    columns = ("city",)

    def __iter__(self):
        return iter(["not a value"])


@pytest.fixture(scope="module")
def index(small_index):
    return pexeso.open_index(small_index, device="cpu")


@pytest.mark.parametrize(
    ("values", "got"),
    [
        (pd.DataFrame({"city": ["Oslo"], "n": [1]}), r"DataFrame of shape \(1, 2\)"),
        (pa.table({"city": ["Oslo"]}), r"Table of shape \(1, 1\)"),
        (pa.RecordBatch.from_pydict({"city": ["Oslo"]}), "RecordBatch"),
        (Table(), "Table instead"),
        ({"city": ["Oslo"]}, "dict instead"),
        (np.array("Oslo"), r"ndarray of shape \(\)"),
        (np.array([["Oslo"]]), r"ndarray of shape \(1, 1\)"),
        (np.float64(3), r"float64 of shape \(\)"),
        (torch.zeros(2, 2), r"Tensor of shape"),
    ],
    # Not the value itself: what shows its address has another name in each process of a run.
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_is_no_column_is_refused(index, values, got):
    for ask in (query_from_values, index.search, index.overlap):
        with pytest.raises(QueryError, match=f"must be one column of values. Got {got}"):
            ask(values)


@pytest.mark.parametrize("values", [5, None, True], ids=repr)
def test_what_has_no_rows_is_refused(values):
    with pytest.raises(QueryError, match=r"A query column must be a list of values. Got"):
        query_from_values(values)


@pytest.mark.parametrize(
    "values",
    [
        BAD_UTF8,
        pa.chunked_array([BAD_UTF8]),
        BAD_UTF8.dictionary_encode(),
        pa.array([b"\xff"]),
        [b"\xff"],
        pd.Series(BAD_UTF8, dtype=pd.ArrowDtype(pa.string())),
    ],
    ids=["array", "chunked", "dictionary", "binary", "bytes", "pandas"],
)
def test_bytes_that_are_no_text_are_refused(index, values):
    for ask in (query_from_values, index.search):
        with pytest.raises(QueryError, match="bytes that are no UTF-8 text"):
            ask(values)


def test_whole_numbers_of_many_digits(index):
    # Python writes out no more than 4,300 digits.
    assert query_from_values([10**400]).values.to_pylist() == [str(10**400)]
    for ask in (query_from_values, index.search):
        with pytest.raises(QueryError, match=r"holds a value that has no text.*Give it as a text"):
            ask(["Oslo", DIGITS])


def test_such_a_number_in_a_line_of_a_batch_file_is_read_as_its_text():
    line = read_batch_line(3, f'{{"id": "a", "values": [{"9" * 5000}]}}')
    assert line.error is None
    assert line.query.values.to_pylist() == ["9" * 5000]


@pytest.mark.parametrize("name", ["max_distance", "min_joinability"])
@pytest.mark.parametrize(
    "value", [10**400, DIGITS, -DIGITS, float("nan"), "1", True, [0.5], np.float64("inf")], ids=type
)
def test_thresholds_that_are_none(index, name, value):
    with pytest.raises(InputError, match=f"{name} must be a number in .* Got") as error:
        index.search(["Oslo"], **{name: value})
    assert len(str(error.value)) < 300


@pytest.mark.parametrize("value", [0, -5, 2.0, True, "5", np.float32(2), np.bool_(True)], ids=type)
def test_numbers_of_columns_that_are_none(index, value):
    for ask in (index.search, index.overlap, index.contain):
        with pytest.raises(InputError, match=r"k must be a whole number of at least 1, or 'all'"):
            ask(["Oslo"], k=value)


def test_more_columns_than_there_can_be(index):
    largest = 2**63 - 1
    assert (
        len(index.search(["Oslo", "Rome"], k=largest))
        == len(index.search(["Oslo", "Rome"], k=100))
        > 0
    )
    assert (
        len(index.overlap(["Oslo", "Rome"], k=largest))
        == len(index.overlap(["Oslo", "Rome"], k=100))
        > 0
    )
    for ask in (index.search, index.overlap, index.contain):
        for value in (largest + 1, DIGITS, -DIGITS):
            with pytest.raises(InputError, match=r"k must be a whole number below 2\^63. Got"):
                ask(["Oslo"], k=value)


REFUSED = {
    "lemmas must be": (
        lambda index, value: index.search(["Oslo"], lemmas=value),
        [True, 5, None, "L1", ["L1", "L9"], [1]],
    ),
    "(parts must be|The parts that an index can have are)": (
        lambda index, value: BuildOptions(parts=value),
        [True, 5, None, [1]],
    ),
    "The kernel must be one of": (
        lambda index, value: pexeso.open_index(index.path, device="cpu", kernel=value),
        [None, 5, ["auto"], "fast"],
    ),
    "A size must be a number with a unit.{,160}$": (
        lambda index, value: parse_bytes(value),
        [True, -1, DIGITS, "9" * 5000, 1.5, [], "8 gigs"],
    ),
    r"rules must be a ColumnRules, such as pexeso\.ColumnRules\(\.\.\.\)\. Got \{": (
        lambda index, value: BuildOptions(rules=value),
        [{"min_rows": 1}],
    ),
    r"^normaliser must be a Normaliser, .* Got None instead\.": (
        lambda index, value: BuildOptions(normaliser=value),
        [None],
    ),
    r"^overwrite must be True or False\. Got 'no' instead\.$": (
        lambda index, value: pexeso.build_index(index.lake, index.path, overwrite=value),
        ["no"],
    ),
    "delete takes a list of names of tables.*Nothing was deleted": (
        lambda index, value: index.delete(value),
        ["cities.csv", 5, None, [5], [None], ["cities.csv", b"short.csv"]],
    ),
}


@pytest.mark.parametrize(
    ("words", "value"),
    [(words, value) for words, (_, values) in REFUSED.items() for value in values],
    ids=lambda value: value[:20] if isinstance(value, str) else type(value).__name__,
)
def test_what_is_no_such_option_is_refused(index, words, value):
    with pytest.raises(InputError, match=words):
        REFUSED[words][0](index, value)
    assert not index.refresh()


@pytest.mark.parametrize(
    "value", [None, 0, True, torch.device("cpu"), "gpu", "cuda:x", ""], ids=repr
)
def test_devices_that_are_none(small_index, index, value):
    with pytest.raises(
        InputError, match=r"The device must be one of auto, cpu, cuda or cuda:NUMBER. Got"
    ):
        pexeso.open_index(small_index, device=value)
    if value is not None:
        with pytest.raises(InputError, match="The device must be one of"):
            index.overlap_batch([["Oslo"]], device=value)


@pytest.mark.parametrize(
    ("table", "column", "name"),
    [
        (None, None, "table"),
        (5, "city", "table"),
        ("cities.csv", None, "column"),
        ("cities.csv", 0, "column"),
    ],
)
def test_columns_to_explain_that_are_none(index, table, column, name):
    with pytest.raises(InputError, match=f"{name} must be a text, as results name it. Got"):
        index.explain(["Oslo"], table, column)


def test_columns_that_are_not_there_stay_told_as_before(index):
    with pytest.raises(ColumnNotFoundError):
        index.explain(["Oslo"], "cities.csv", "town")
    with pytest.raises(InputError, match=r"The lake has no table 'towns.csv'"):
        index.explain(["Oslo"], "towns.csv", "city")


@pytest.mark.parametrize("wrong", ["no", 1, None, np.array([True, False])], ids=str)
@pytest.mark.parametrize(
    ("name", "search"),
    [
        *(("exclude_self", {"method": method}) for method in METHODS),
        *(("fold_copies", {"method": method}) for method in METHODS),
        ("rerank", {"method": "semantic"}),
        ("verify", {"method": "containment"}),
    ],
)
def test_truth_values_that_are_none(index, name, search, wrong):
    with pytest.raises(InputError, match=f"^{name} must be True or False. Got "):
        index.search(["Oslo"], **search, **{name: wrong})


@pytest.mark.parametrize("name", ["exclude_self", "fold_copies"])
def test_truth_values_that_are_none_in_searches_of_several(index, name):
    for search in (index.search_batch, index.overlap_batch):
        with pytest.raises(InputError, match=f"^{name} must be True or False. Got 'no' instead.$"):
            search([["Oslo"]], **{name: "no"})


@pytest.mark.parametrize(
    "options",
    [
        {"max_distance": np.float32(0.25), "min_joinability": np.float64(0.5)},
        {"k": np.int64(2), "exact": np.bool_(True), "ignore_missing": np.False_},
        {"min_precision": np.float32(0.5)},
    ],
    ids=str,
)
def test_scalars_of_numpy_are_numbers(index, options):
    plain = {name: value.item() for name, value in options.items()}
    result, expected = (
        index.search(["Oslo", "Rome"], **options),
        index.search(["Oslo", "Rome"], **plain),
    )
    assert result.matches == expected.matches
    assert result.options == expected.options
    assert {type(value) for value in result.options.to_dict().values()} <= {
        int,
        float,
        bool,
        str,
        dict,
        type(None),
    }


def test_scalars_of_numpy_are_numbers_in_searches_by_equal_text(index):
    result = index.overlap(["Oslo", "Rome"], k=np.int32(2))
    assert result.matches == index.overlap(["Oslo", "Rome"], k=2).matches
    assert type(result.options["k"]) is int
    contained = index.contain(["Oslo", "Rome"], min_containment=np.float32(0.5), k=np.int8(1))
    assert contained.matches == index.contain(["Oslo", "Rome"], min_containment=0.5, k=1).matches
    assert (type(contained.options["min_containment"]), type(contained.options["k"])) == (
        float,
        int,
    )


def test_scalars_of_numpy_are_numbers_in_builds():
    options = BuildOptions(
        model="hashing", dimensions=np.int64(32), seed=np.uint8(3), n_partitions=np.int16(2)
    )
    assert options == BuildOptions(model="hashing", dimensions=32, seed=3, n_partitions=2)
    assert all(
        type(value) is int for value in (options.dimensions, options.seed, options.n_partitions)
    )
