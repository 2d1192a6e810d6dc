"""Cells of Spark tables have the texts that they have in files."""

import math

import pyarrow as pa
import pytest

from pexeso.build.spark_tables import cell_text
from pexeso.lake.frames.columns import distinct_values
from pexeso.lake.typed.value_texts import value_texts

FLOATS = [
    *(0.0, -0.0, 1.0, 1e7, 1.5e7, 12345678.5, 49301234567.0, 12345678901.5, 1e15, 1e16, 1e17),
    *(2.0**53, 2.0**53 - 1, -2.5, 0.001, 1.2e-4, 1e-5, 1e-7, 2e23, 1e300, 5e-324, 16777217.0),
    *(math.inf, -math.inf, math.nan, None),
]


def texts_of(frame):
    columns = zip(frame.columns, frame.schema.fields, strict=True)
    cells = [cell_text(frame[name], field.dataType).alias(name) for name, field in columns]
    return frame.select(*cells).toArrow().to_pydict()


def test_floats_have_the_texts_of_files(spark):
    rows = [(value, value) for value in FLOATS]
    frame = spark.createDataFrame(rows, "wide double, narrow float").coalesce(1)
    wide = pa.array(FLOATS, pa.float64())
    expected = {
        "wide": value_texts(wide).to_pylist(),
        "narrow": value_texts(wide.cast(pa.float32(), safe=False)).to_pylist(),
    }
    assert texts_of(frame) == expected
    for position, name in enumerate(expected):
        texts = distinct_values(frame, position).values.to_pylist()
        assert set(texts) == set(expected[name])


def test_other_types_have_those_of_spark(spark):
    frame = spark.sql("select 7 as n, true as b, 'x' as s, date'2020-01-05' as d, null as v")
    assert texts_of(frame) == {
        "n": ["7"],
        "b": ["true"],
        "s": ["x"],
        "d": ["2020-01-05"],
        "v": [None],
    }


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_decimals_have_the_texts_of_files_however_the_session_writes_them(spark, ansi):
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        zero = "cast(0 as decimal(30, 10)) as a, cast('0.0000000001' as decimal(30, 10)) as b"
        texts = texts_of(spark.sql(f"select {zero}, 1.50 as c"))
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
    assert texts == {"a": ["0.0000000000"], "b": ["0.0000000001"], "c": ["1.50"]}


def test_wrong_bytes_of_a_text_are_replaced(spark):
    frame = spark.sql("select cast(X'4fff6c' as string) as a, 'Zürich' as b")
    assert texts_of(frame) == {"a": ["O\ufffdl"], "b": ["Zürich"]}


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_points_of_time_have_those_of_files_in_any_time_zone(spark, zone):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        frame = spark.sql(
            "select timestamp'2020-01-01 00:00:05.5Z' as a, timestamp'2020-01-01 00:00:05Z' as b, "
            "timestamp_ntz'2020-01-01 00:00:05.5' as c, timestamp_ntz'2020-01-01 00:00:05' as d"
        )
        texts = [cell for [cell] in texts_of(frame).values()]
        query_texts = [distinct_values(frame, at).values.to_pylist() for at in range(4)]
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    day = "2020-01-01 00:00:05"
    assert texts == [f"{day}.500000Z", f"{day}Z", f"{day}.500000", day]
    assert query_texts == [[text] for text in texts]
