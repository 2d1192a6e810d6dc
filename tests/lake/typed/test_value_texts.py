"""The text of a value, which is the same whichever way the value comes."""

import datetime
import math
import sqlite3
import tempfile
from decimal import Decimal
from pathlib import Path

import duckdb
import fastavro
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pexeso.lake.containers.reader import read_table
from pexeso.lake.frames.columns import column_texts
from pexeso.lake.frames.tables import frame_of
from pexeso.lake.tokens import key_texts, tokens_of
from pexeso.lake.typed.value_texts import cell_text, column_array, float_text, value_texts

WRITTEN = {
    1.0: "1",
    -0.0: "0",
    0.5: "0.5",
    -0.25: "-0.25",
    1e10: "10000000000",
    49301234567.0: "49301234567",
    -4006381333931.0: "-4006381333931",
    1577836800000.0: "1577836800000",
    12345678901.5: "12345678901.5",
    -1234567890123.25: "-1234567890123.25",
    1e15: "1000000000000000",
    float(2**53 - 1): "9007199254740991",
    float(2**53): "9.007199254740992e+15",
    1e16: "1e+16",
    1e17: "1e+17",
    1e300: "1e+300",
    1.5e-5: "0.000015",
    1e-6: "0.000001",
    1e-7: "1e-7",
    5e-324: "5e-324",
    math.inf: "inf",
    -math.inf: "-inf",
}


def test_floats_have_texts_without_an_exponent_as_long_as_they_tell_integers_apart():
    texts = value_texts(pa.array(WRITTEN, pa.float64()))
    assert dict(zip(WRITTEN, texts.to_pylist(), strict=True)) == WRITTEN
    assert value_texts(pa.array([math.nan, None])).to_pylist() == [None, None]
    assert value_texts(pa.array([1.5, math.nan]), pa.string()).type == pa.string()


def test_floats_of_other_widths_have_the_shortest_text_of_theirs():
    values = [0.1, 1.5, 16777216.0, 1e10, 49301234567.0, math.nan]
    texts = ["0.1", "1.5", "16777216", "10000000000", "49301233664", None]
    assert value_texts(pa.array(values, pa.float32())).to_pylist() == texts
    halves = pa.array([0.1, 65504.0, math.nan, None], pa.float16())
    assert value_texts(halves).to_pylist() == ["0.1", "65504", None, None]


def test_dictionaries_of_floats_have_the_texts_of_floats():
    coded = pa.array([49301234567.0, math.nan, 49301234567.0, None]).dictionary_encode()
    assert value_texts(coded).to_pylist() == ["49301234567", None, "49301234567", None]
    phones = pd.Series([49301234567.0, 49301234567.0, None], dtype="category")
    assert column_texts(phones).to_pylist() == ["49301234567", "49301234567", None]


FLOATS = st.one_of(
    st.none(),
    st.sampled_from([*WRITTEN, math.nan, *(10.0**power for power in range(15, 18))]),
    st.floats(),
    st.floats(-1e17, 1e17),
    st.integers(-(10**17), 10**17).map(float),
    st.integers(-(10**17), 10**17).map(lambda number: number / 100),
)


@given(st.floats())
def test_one_float_has_the_text_that_an_array_of_it_has(value):
    text = float_text(value)
    assert [None if text == "nan" else text] == value_texts(pa.array([value])).to_pylist()
    assert math.isnan(value) or float(text) == value
    assert cell_text(np.float64(value)) == text


def in_files(values: list[float | None], folder: Path) -> dict[str, list[str | None]]:
    """Return the texts of a column of floats, and of the same as 32 bits, by the file's format."""
    table = pa.table({"wide": pa.array(values, pa.float64()), "narrow": narrow(values)})
    coded = {name: table[name].dictionary_encode() for name in table.column_names}
    pq.write_table(table, folder / "t.parquet")
    pq.write_table(pa.table(coded), folder / "coded.parquet")
    feather.write_feather(table, folder / "t.feather")
    feather.write_feather(pa.table(coded), folder / "coded.feather")
    orc.write_table(table, folder / "t.orc")
    rows = table.to_pylist()
    fields = [{"name": "wide", "type": ["null", "double"]}]
    fields += [{"name": "narrow", "type": ["null", "float"]}]
    with open(folder / "t.avro", "wb") as stream:
        fastavro.writer(stream, {"type": "record", "name": "r", "fields": fields}, rows)
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE t AS SELECT * FROM given")
    base = sqlite3.connect(folder / "t.sqlite")
    base.execute("CREATE TABLE t (wide REAL, mixed)")
    base.executemany("INSERT INTO t VALUES (?, ?)", [(value, value) for value in values])
    base.execute("INSERT INTO t VALUES (NULL, 'a word')")
    base.commit()
    base.close()
    texts = {}
    for path in folder.iterdir():
        read = read_table(path)
        assert read.notes == []
        for name, column in zip(read.names, read.columns, strict=True):
            texts[f"{path.name} {name}"] = column.to_pylist()[: len(values)]
    return texts


def narrow(values: list[float | None]) -> pa.Array:
    return pa.array(values, pa.float64()).cast(pa.float32(), safe=False)


def in_memory(values: pa.Array) -> dict[str, list[str | None]]:
    series = values.to_pandas()
    return {
        "pandas": column_texts(series).to_pylist(),
        "pandas, categories": column_texts(series.astype("category")).to_pylist(),
        "NumPy": column_texts(series.to_numpy()).to_pylist(),
        "Arrow": column_texts(pa.chunked_array([values[:1], values[1:]])).to_pylist(),
        "cells of keys": [
            text
            for column in frame_of(series.to_frame("c")).arrow_columns()
            for text in value_texts(column).to_pylist()
        ],
    }


@example([49301234567.0, None])
@example([4006381333931.0, 12345678901.5, math.inf, math.nan])
@example([*WRITTEN, math.nan])
@settings(max_examples=6, deadline=None)
@given(st.lists(FLOATS, min_size=1, max_size=40))
def test_a_float_has_one_text_in_every_file_and_in_memory(values):
    wide = value_texts(pa.array(values, pa.float64())).to_pylist()
    expected = {"wide": wide, "mixed": wide, "narrow": value_texts(narrow(values)).to_pylist()}
    with tempfile.TemporaryDirectory() as folder:
        file_texts = in_files(values, Path(folder))
    assert len(file_texts) == 16
    for way, texts in file_texts.items():
        assert texts == expected[way.rpartition(" ")[2]], way
    for kind, array in (("wide", pa.array(values, pa.float64())), ("narrow", narrow(values))):
        for way, texts in in_memory(array).items():
            assert texts == expected[kind], way
        for form in (tokens_of, key_texts):
            assert form(pa.array(expected[kind], pa.string())).equals(form(array))


def test_a_float_has_the_same_text_in_a_list_of_mixed_values():
    values = [1.0, 49301234567.0, 12345678901.5, "a word", None]
    assert column_texts(values).to_pylist() == ["1", "49301234567", "12345678901.5", "a word", None]


@pytest.mark.parametrize("kind", [pa.decimal128(30, 10), pa.decimal256(60, 10)])
def test_decimals_have_all_their_digits_and_no_exponent(kind):
    texts = ["1.5000000000", "0.0000000000", None, "-0.0000000123", "0.0000000001"]
    values = pa.array([None if text is None else Decimal(text) for text in texts], kind)
    assert value_texts(values).to_pylist() == texts
    assert value_texts(values.dictionary_encode()).to_pylist() == texts
    assert tokens_of(values).to_pylist()[1] == "0"
    thousands = pa.array([Decimal("1.2E+5")], pa.decimal128(5, -3))
    assert value_texts(thousands).to_pylist() == ["120000"]


def test_a_decimal_whose_type_claims_more_places_than_there_are_has_no_text():
    far = pa.array([Decimal(1)]).view(pa.decimal128(1, 1_000_000))
    assert value_texts(far).to_pylist() == [None]


SECOND = 1_577_836_805  # 2020-01-01 00:00:05


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Oslo", "+05:30"])
def test_a_time_has_a_fraction_only_where_it_is_not_zero_in_any_unit(zone):
    day, end = {
        None: ("2020-01-01 00:00:05", ""),
        "UTC": ("2020-01-01 00:00:05", "Z"),
        "Europe/Oslo": ("2020-01-01 01:00:05", "+0100"),
        "+05:30": ("2020-01-01 05:30:05", "+0530"),
    }[zone]
    for unit, more in (
        ("s", {}),
        ("ms", {500: ".500000"}),
        ("us", {500_000: ".500000", 1: ".000001"}),
        ("ns", {500_000_000: ".500000", 1_000: ".000001", 123_456_789: ".123456789"}),
    ):
        ticks = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
        values = pa.array(
            [SECOND * ticks, None, *(SECOND * ticks + n for n in more)], pa.timestamp(unit, zone)
        )
        expected = [f"{day}{end}", None, *(f"{day}{fraction}{end}" for fraction in more.values())]
        assert value_texts(values).to_pylist() == expected
        assert value_texts(values.dictionary_encode()).to_pylist() == expected
        assert [
            value_texts(values.slice(at, 1))[0].as_py() for at in range(len(values))
        ] == expected


def test_times_of_a_day_have_a_fraction_only_where_it_is_not_zero():
    for kind, values, texts in (
        (pa.time32("s"), [3723], ["01:02:03"]),
        (pa.time32("ms"), [3723000, 3723500], ["01:02:03", "01:02:03.500000"]),
        (pa.time64("us"), [3723 * 10**6, 1], ["01:02:03", "00:00:00.000001"]),
        (
            pa.time64("ns"),
            [3723 * 10**9, 1000, 1],
            ["01:02:03", "00:00:00.000001", "00:00:00.000000001"],
        ),
    ):
        assert value_texts(pa.array([*values, None], kind)).to_pylist() == [*texts, None]


def test_times_before_our_era_and_before_1970_keep_their_fraction():
    early = pa.array([-1, -1_000_000, -62_167_219_201 * 10**6, -62_167_219_201 * 10**6 + 1])
    texts = [
        "1969-12-31 23:59:59.999999",
        "1969-12-31 23:59:59",
        "-0001-12-31 23:59:59",
        "-0001-12-31 23:59:59.000001",
    ]
    assert value_texts(early.cast(pa.timestamp("us"))).to_pylist() == texts
    zoned = value_texts(early.cast(pa.timestamp("us", "UTC"))).to_pylist()
    assert zoned == [f"{text}Z" for text in texts]
    assert value_texts(
        pa.array([2932897, -800000]).cast(pa.int32()).cast(pa.date32())
    ).to_pylist() == ["10000-01-01", "-0221-09-04"]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        *((value, pa.timestamp(unit, zone)) for value in (2**62, -(2**62), 2**63 - 1, -(2**63))
          for unit in ("s", "ms") for zone in (None, "UTC", "Asia/Tokyo")),
        (2**31 - 1, pa.date32()),
        (-(2**31), pa.date32()),
        (2**62, pa.date64()),
        (-1, pa.time32("ms")),
        (86_400 * 10**6, pa.time64("us")),
    ],
)  # fmt: skip
def test_dates_and_times_that_are_none_have_no_text(value, kind):
    first = "00:00:00" if pa.types.is_time(kind) else "1970-01-01"
    texts = value_texts(pa.array([value, 0, None], kind)).to_pylist()
    assert texts[0] is texts[2] is None
    assert first in texts[1] or kind == pa.timestamp(kind.unit, "Asia/Tokyo")


@given(st.lists(st.datetimes(), min_size=1), st.sampled_from([None, "UTC"]))
def test_a_time_has_one_text_whatever_stands_beside_it(moments, zone):
    values = pa.array(moments, pa.timestamp("us")).cast(pa.timestamp("us", zone))
    expected = [f"{moment.isoformat(' ')}{'Z' if zone else ''}" for moment in moments]
    assert value_texts(values).to_pylist() == expected
    if zone is None:
        assert tokens_of(values, None, ()).to_pylist() == [cell_text(moment) for moment in moments]
        assert value_texts(values.cast(pa.time64("us"))).to_pylist() == [
            cell_text(moment.time()) for moment in moments
        ]


def test_times_have_the_same_text_in_every_file_and_in_memory(tmp_path):
    moments = [datetime.datetime(2020, 1, 1, 0, 0, 5)] * 10_000
    moments[5_000] = moments[5_000].replace(microsecond=500_000)  # in the second batch
    table = pa.table({unit: pa.array(moments, pa.timestamp(unit)) for unit in ("us", "ns")})
    clock = pa.array([moment.time() for moment in moments], pa.time64("us"))
    table = table.append_column("clock", clock)
    pq.write_table(table, tmp_path / "t.parquet")
    feather.write_feather(table, tmp_path / "t.feather")
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE t AS SELECT * FROM given")
    day = {"2020-01-01 00:00:05": 9_999, "2020-01-01 00:00:05.500000": 1}
    tables = {path.name: read_table(path).columns for path in tmp_path.iterdir()}
    tables["pandas"] = [column_texts(table.to_pandas()[name]) for name in table.column_names]
    tables["Arrow"] = [column_texts(table[name]) for name in table.column_names]
    for way, columns in tables.items():
        counted = [
            {count["values"]: count["counts"] for count in column.value_counts().to_pylist()}
            for column in columns
        ]
        assert counted == [day, day, {"00:00:05": 9_999, "00:00:05.500000": 1}], way


@given(st.lists(st.none() | st.uuids()), st.integers(0, 3))
def test_a_uuid_has_its_own_text(values, start):
    expected = [None if value is None else str(value) for value in values]
    column = pa.array(values, pa.uuid()).slice(start)
    assert value_texts(column).to_pylist() == expected[start:]
    assert value_texts(column, pa.string()).type == pa.string()


def test_uuids_have_the_same_text_in_every_file_and_in_memory(tmp_path):
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT uuid() AS id FROM range(9) UNION ALL SELECT NULL"
        )
        connection.execute(f"COPY t TO '{tmp_path / 't.parquet'}'")
        values = [row[0] for row in connection.execute("FROM t").fetchall()]
    feather.write_feather(pa.table({"id": pa.array(values, pa.uuid())}), tmp_path / "t.feather")
    expected = [None if value is None else str(value) for value in values]
    for path in tmp_path.iterdir():
        table = read_table(path)
        assert (table.columns[0].to_pylist(), table.notes) == (expected, []), path.name
    assert column_texts(values).to_pylist() == expected
    assert column_texts(pa.array(values, pa.uuid())).to_pylist() == expected


DAY = datetime.date(1850, 3, 1)
MOMENT = datetime.datetime(2020, 1, 2, 3, 4)


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([], pa.null(), []),
        ([None, None], pa.null(), [None, None]),
        ([1.0, None, 12.0], pa.int64(), [1, None, 12]),
        ([1.0, 2.5], pa.float64(), [1.0, 2.5]),
        ([1, float("inf"), float("nan")], pa.float64(), [1.0, float("inf"), None]),
        ([2**63 - 1, 1], pa.int64(), [2**63 - 1, 1]),
        ([2**70, 1], pa.string(), [str(2**70), "1"]),
        ([2**60, 1.5], pa.string(), [str(2**60), "1.5"]),
        ([1e20, 1.0], pa.float64(), [1e20, 1.0]),
        ([True, None], pa.bool_(), [True, None]),
        ([True, 1], pa.string(), ["TRUE", "1"]),
        ([DAY, None], pa.date32(), [DAY, None]),
        ([DAY, MOMENT], pa.timestamp("us"), [datetime.datetime(1850, 3, 1), MOMENT]),
        ([1.0, "n/a", MOMENT], pa.string(), ["1", "n/a", "2020-01-02 03:04:00"]),
        (["a", "\ud800"], pa.string(), ["a", "?"]),
    ],
)
def test_a_column_has_the_one_type_of_its_values(values, kind, expected) -> None:
    array = column_array(values)
    assert (array.type, array.to_pylist()) == (kind, expected)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (datetime.timedelta(hours=30, minutes=5), "30:05:00"),
        (datetime.timedelta(seconds=-61), "-0:01:01"),
        (datetime.time(3, 4), "03:04:00"),
        (0.1, "0.1"),
        (1e300, "1e+300"),
        (-0.0, "0"),
    ],
)
def test_a_value_is_written_as_a_person_sees_it(value, text) -> None:
    assert cell_text(value) == text


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_duration_has_the_same_text_in_every_unit(unit) -> None:
    spans = [datetime.timedelta(hours=30, minutes=5), None, datetime.timedelta(seconds=-61)]
    texts = ["30:05:00", None, "-0:01:01"]
    assert value_texts(pa.array(spans, pa.duration(unit))).to_pylist() == texts


def test_a_duration_has_the_fraction_of_a_second() -> None:
    counts = pa.array([1_500_000_000, 7], pa.duration("ns"))
    assert value_texts(counts).to_pylist() == ["0:00:01.500000", "0:00:00.000000007"]
