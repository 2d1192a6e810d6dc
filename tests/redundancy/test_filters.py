"""Selections found for derived tables: they give the rows of the child, and so does their SQL."""

import datetime as dt
import random
from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from long_runs import EVERYTHING

from pexeso.errors import InputError
from pexeso.redundancy.row_hashes import hashed_column, row_hashes
from pexeso.redundancy.transformations import (
    Condition,
    Transformation,
    find_transformation,
    literal,
    rows_of,
    to_sql,
)

NAN = float("nan")
KINDS = {
    "id": (pa.int64(), lambda draw: draw.randrange(200)),
    "group `x`": (pa.string(), lambda draw: draw.choice(["a", "it's", "b\\c\n", "é", None])),
    "price": (pa.decimal128(8, 2), lambda draw: Decimal(draw.randrange(500)).scaleb(-2)),
    "ratio": (pa.float64(), lambda draw: draw.choice([None, draw.random(), 0.1, -0.0, 1e300])),
    "odd": (pa.float32(), lambda draw: draw.choice([NAN, 0.5, 0.1])),
    "day": (pa.date32(), lambda draw: dt.date(2020, 1, 1) + dt.timedelta(draw.randrange(40))),
    "at": (
        pa.timestamp("us", "UTC"),
        lambda draw: (
            dt.datetime(2020, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=draw.randrange(40))
        ),
    ),
    "local": (
        pa.timestamp("ms"),
        lambda draw: dt.datetime(2020, 1, 1) + dt.timedelta(minutes=draw.randrange(40)),
    ),
    "number": (pa.string(), lambda draw: draw.choice([str(draw.randrange(1000)), "7.50", None])),
    "flag": (pa.bool_(), lambda draw: draw.choice([True, False, None])),
}


def drawn_parent(draw, n=60):
    return {
        name: pa.array([make(draw) for _ in range(n)], kind) for name, (kind, make) in KINDS.items()
    }


def some_rows(draw, parent):
    """Draw one to three conditions, and return which rows meet all."""
    n = len(next(iter(parent.values())))
    mask = [True] * n
    for name in draw.sample(list(parent), draw.randint(1, 3)):
        cells = parent[name].to_pylist()
        present = [cell for cell in cells if cell is not None and cell == cell]
        low, high = sorted([draw.choice(present), draw.choice(present)])
        equal = draw.random() < 0.4
        for row, cell in enumerate(cells):
            known = cell is not None and cell == cell
            mask[row] &= known and (cell == low if equal else low <= cell <= high)
    return mask


def hashes(columns, names):
    n = len(columns[names[0]])
    return row_hashes(n, [hashed_column(columns[name]) for name in names], names)


def derived(draw, parent, mask):
    names = draw.sample(list(parent), draw.randint(1, len(parent)))
    rows = [row for row, take in enumerate(mask) if take]
    draw.shuffle(rows)
    return names, {name: parent[name].take(pa.array(rows, pa.int64())) for name in names}


def as_bag(columns, names):
    cells = [["nan" if cell != cell else cell for cell in columns[n].to_pylist()] for n in names]
    return Counter(zip(*cells, strict=True))


def test_filters_of_one_to_three_columns_are_found():
    draw, n_found, n_drawn = random.Random(16), 0, 300 if EVERYTHING else 100
    for _ in range(n_drawn):
        parent = drawn_parent(draw)
        mask = some_rows(draw, parent)
        names, child = derived(draw, parent, mask)
        selection = find_transformation(parent, hashes(parent, names), hashes(child, names), names)
        if selection is None:
            continue
        n_found += 1
        rows = np.flatnonzero(rows_of(selection.conditions, parent, 60))
        got = as_bag({name: parent[name].take(pa.array(rows)) for name in names}, names)
        wanted = as_bag(child, names)
        assert (Counter(dict.fromkeys(got, 1)) if selection.distinct else got) == wanted
    assert n_found > n_drawn * 2 / 3


def test_all_rows_and_distinct_rows():
    parent = {"a": pa.array([1, 1, 2]), "b": pa.array(["x", "y", "z"])}
    names = ["a"]
    rows = hashes(parent, names)
    whole = find_transformation(parent, rows, rows[::-1], names)
    assert (whole.conditions, whole.distinct) == ((), False)
    once = find_transformation(parent, rows, rows[[0, 2]], names)
    assert (once.conditions, once.distinct) == ((), True)
    assert to_sql(once, "p.csv") == "SELECT DISTINCT `a` FROM `p.csv`"


def test_rows_that_no_condition_tells_apart_have_no_selection():
    values = pa.array(np.arange(1000))
    sample = values.take(pa.array(np.random.default_rng(0).permutation(1000)[:500]))
    rows, some = (hashes({"a": column}, ["a"]) for column in (values, sample))
    assert find_transformation({"a": values}, rows, some, ["a"]) is None
    strange = hashes({"a": pa.array([5000])}, ["a"])
    assert find_transformation({"a": values}, rows, strange, ["a"]) is None


def test_texts_that_are_numbers_are_compared_as_such():
    cells = pa.array([str(n) for n in range(200)])
    names = ["n"]
    child = cells.slice(0, 150)
    selection = find_transformation(
        {"n": cells}, hashes({"n": cells}, names), hashes({"n": child}, names), names
    )
    assert to_sql(selection, "p.csv") == (
        "SELECT `n` FROM `p.csv` WHERE CAST(`n` AS DOUBLE) <= CAST('149.0' AS DOUBLE)"
    )


def test_spark_reads_the_statements_as_they_are_meant(spark):
    draw = random.Random(5)
    parent = drawn_parent(draw)
    spark.createDataFrame(pa.table(parent)).createOrReplaceTempView("parent_of_filters")
    checked = 0
    for _ in range(40):
        names, child = derived(draw, parent, some_rows(draw, parent))
        selection = find_transformation(parent, hashes(parent, names), hashes(child, names), names)
        if selection is None or checked == 15:
            continue
        checked += 1
        got = spark.sql(to_sql(selection, "parent_of_filters")).toArrow()
        columns = {
            name: got[name].combine_chunks().cast(parent[name].type) for name in got.column_names
        }
        assert list(columns) == names
        assert as_bag(columns, names) == as_bag(child, names)
    spark.catalog.dropTempView("parent_of_filters")
    assert checked == 15


def test_dates_that_python_cannot_hold_and_views_of_texts_are_no_obstacle():
    parent = {
        "far": pa.array([1, 2**30, 3], pa.date32()),
        "": pa.array([1, 2, 3]),
        "text": pa.array(["a", None, "b"], pa.string_view()),
        "a": pa.array([1, 1, 1]),
    }
    rows = hashes({"a": pa.array([1, 2, 3])}, ["a"])
    selection = find_transformation(parent, rows, rows[[0, 2]], ["a"])
    assert [condition.column for condition in selection.conditions] == ["text"]


def test_rows_that_have_a_value_and_no_rows_at_all():
    parent = {"a": pa.array([1, 2, 3]), "x": pa.array([NAN, None, 0.5])}
    rows = hashes(parent, ["a"])
    for positions, text in ([0, 2], "`x` IS NOT NULL"), ([], "FALSE"):
        selection = find_transformation(parent, rows, rows[positions], ["a"])
        assert to_sql(selection, "p") == f"SELECT `a` FROM `p` WHERE {text}"
        assert np.flatnonzero(rows_of(selection.conditions, parent, 3)).tolist() == positions


def test_every_character_of_a_text_is_read_back_by_spark(spark):
    texts = ["\x0012", "\\n", "'\"`", "\u2028é\U0001f600", "\r\n\t", "%_", "\\u0041"]
    values = ", ".join(literal(text, pa.string()) for text in texts)
    [row] = spark.sql(f"SELECT array({values}) AS found").collect()
    assert row.found == texts


@pytest.mark.parametrize("columns", [("",), ("a", "a"), ("a", "A")])
def test_columns_without_a_name_of_their_own_have_no_statement(columns):
    with pytest.raises(InputError, match="cannot name"):
        to_sql(Transformation(columns, columns), "p")


def test_statements_and_literals():
    missing = Condition("a", pa.int64(), (), with_missing=True)
    listed = Condition("b`c", pa.string(), ("x", "y"), with_missing=True)
    text = to_sql(Transformation(("a",), ("z",), (missing, listed)), "t`.csv")
    assert text == (
        "SELECT `a` AS `z` FROM `t``.csv` WHERE `a` IS NULL AND "
        "(`b``c` IN ('x', 'y') OR `b``c` IS NULL)"
    )
    assert literal(2**64 - 1, pa.uint64()) == "CAST('18446744073709551615' AS DECIMAL(20, 0))"
    assert literal(True, pa.bool_()) == "TRUE"


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1.0, NAN, None], pa.float16()),
        pa.array([1, 2, None], pa.time32("ms")),
        pa.array([1, 2, None], pa.time64("us")),
        pa.array([1, 2, None], pa.timestamp("ns")),
        pa.array([1, 2, None], pa.decimal256(60, 2)),
        pa.array([Decimal(100), Decimal(200), None], pa.decimal128(5, -2)),
        pa.array([(1, 2, 3), (1, 2, 4), None], pa.month_day_nano_interval()),
    ],
    ids=lambda values: str(values.type),
)
def test_no_condition_is_put_on_columns_that_spark_cannot_read(values):
    rows = hashes({"k": pa.array([1, 2, 3])}, ["k"])
    for positions in ([0], [1], [2], [0, 1], [0, 2], [1, 2]):
        assert find_transformation({"x": values}, rows, rows[positions], ["k"]) is None


@pytest.mark.parametrize(
    "values",
    [
        pa.array([0.0, -0.0, 5.0, -5.0, None]),
        pa.array([0.0, 0.0, 5.0, 6.0, None]),
        pa.array([-0.0, -0.0, -5.0, -6.0, None], pa.float32()),
        pa.array([1.0, NAN, NAN, 2.0, None]),
        pa.array([float("inf"), 1e308, -float("inf"), 5e-324, None]),
        pa.array([b"a", b"\xff", b"", b"a", None]),
        pa.array([1, 2**62, 3, 4, None], pa.duration("us")),
        pa.array([True, False, True, True, None]),
    ],
    ids=str,
)
def test_spark_finds_the_rows_in_parquet_too(spark, tmp_path, values):
    keys = pa.array([1, 2, 3, 4, 5])
    pq.write_table(pa.table({"k": keys, "x": values}), tmp_path / "p.parquet")
    spark.read.parquet(str(tmp_path / "p.parquet")).createOrReplaceTempView("parquet_of_filters")
    rows, n_found = hashes({"k": keys}, ["k"]), 0
    for positions in ([0], [0, 1], [0, 2], [0, 3], [1, 2], [2, 3], [4], [0, 1, 4], [0, 1, 2, 3]):
        selection = find_transformation({"x": values}, rows, rows[positions], ["k"])
        if selection is not None:
            n_found += 1
            got = spark.sql(to_sql(selection, "parquet_of_filters")).toArrow()["k"].to_pylist()
            assert sorted(got) == [row + 1 for row in positions]
    spark.catalog.dropTempView("parquet_of_filters")
    assert n_found
