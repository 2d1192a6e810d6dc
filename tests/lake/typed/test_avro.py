"""Avro files: their types, and damaged and endless ones."""

import datetime
import decimal
import io
import uuid

import fastavro
import pyarrow as pa
import pytest

from pexeso.errors import TableReadError
from pexeso.lake.readers.table import FileSource
from pexeso.lake.typed import sandbox, table_files
from pexeso.lake.typed.table_files import TABLE_FILES

DAY = datetime.date(1850, 3, 1)
MOMENT = datetime.datetime(2020, 1, 2, 3, 4, tzinfo=datetime.UTC)
IDENTITY = uuid.UUID(int=7)


def written(fields, records, codec="deflate") -> bytes:
    kinds = [{"name": name, "type": kind} for name, kind in fields.items()]
    sink = io.BytesIO()
    fastavro.writer(sink, {"type": "record", "name": "r", "fields": kinds}, records, codec)
    return sink.getvalue()


def read(data, **limits):
    table = TABLE_FILES.read(FileSource("t.avro", data=data, **limits), "avro").rows
    return table, table.to_pydict()


TYPES = [
    ("string", ["a", "é"], pa.string(), None),
    (["null", "long"], [1, None], pa.int64(), None),
    ("double", [1.5, 2.0], pa.float64(), None),
    ("boolean", [True, False], pa.bool_(), None),
    ("bytes", [b"a", b"\xff"], pa.binary(), None),
    ({"type": "fixed", "name": "f", "size": 2}, [b"ab", b"cd"], pa.binary(2), None),
    ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, ["A", "B"], pa.string(), None),
    ({"type": "int", "logicalType": "date"}, [DAY, DAY], pa.date32(), None),
    (
        {"type": "long", "logicalType": "timestamp-millis"},
        [MOMENT, MOMENT],
        pa.timestamp("us", "UTC"),
        None,
    ),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
        [decimal.Decimal("1.50"), decimal.Decimal("-2.25")],
        pa.decimal256(5, 2),
        None,
    ),
    (
        {"type": "string", "logicalType": "uuid"},
        [IDENTITY, IDENTITY],
        pa.string(),
        [str(IDENTITY)] * 2,
    ),
    (
        {"type": "fixed", "name": "u", "size": 16, "logicalType": "uuid"},
        [IDENTITY.bytes, IDENTITY.bytes],
        pa.uuid(),
        [IDENTITY] * 2,
    ),
    (
        {"type": "long", "logicalType": "timestamp-nanos"},
        [1_577_934_240_000_000_000] * 2,
        pa.timestamp("ns", "UTC"),
        [MOMENT] * 2,
    ),
    ({"type": "array", "items": "int"}, [[1, 2], []], pa.list_(pa.int32()), None),
    (
        {"type": "record", "name": "in", "fields": [{"name": "x", "type": "int"}]},
        [{"x": 1}, {"x": 2}],
        pa.struct([("x", pa.int32())]),
        None,
    ),
    ({"type": "map", "values": "int"}, [{"k": 1}, {}], pa.string(), ['{"k": 1}', "{}"]),
    (["int", "string"], [1, "x"], pa.string(), ["1", "x"]),
]
"""Type in Avro, values, type in Arrow, and what is read where that is something else."""


def test_types_are_those_of_the_file() -> None:
    kinds = {f"c{number}": kind for number, (kind, _, _, _) in enumerate(TYPES)}
    rows = zip(*(values for _, values, _, _ in TYPES), strict=True)
    table, columns = read(written(kinds, [dict(zip(kinds, row, strict=True)) for row in rows]))
    assert table.schema.types == [arrow for _, _, arrow, _ in TYPES]
    assert list(columns.values()) == [expected or values for _, values, _, expected in TYPES]


def test_records_that_hold_their_own_kind_are_json() -> None:
    kind = {
        "type": "record",
        "name": "node",
        "fields": [{"name": "n", "type": "int"}, {"name": "next", "type": ["null", "node"]}],
    }
    node = {"n": 1, "next": {"n": 2, "next": None}}
    _, columns = read(written({"a": kind}, [{"a": node}]))
    assert columns == {"a": ['{"n": 1, "next": {"n": 2, "next": null}}']}


def test_a_file_of_no_records_is_a_table_of_no_rows() -> None:
    assert read(written({"a": "int", "b": "string"}, []))[1] == {"a": [], "b": []}


def test_damaged_files_say_so_in_one_sentence() -> None:
    data = written({"a": "string", "n": "long"}, [{"a": f"x{n}", "n": n} for n in range(2000)])
    middle = len(data) // 2
    garbage = data[: middle - 200] + bytes(range(200)) * 2 + data[middle + 200 :]
    for broken in (data[:middle], data[:30], garbage, b"a,b\n1,2\n", b"", b"Obj\x01"):
        with pytest.raises(TableReadError, match=r"^t\.avro is [^\n]*\.$"):
            read(broken)
    sink = io.BytesIO()
    fastavro.writer(sink, {"type": "array", "items": "int"}, [[1]])
    with pytest.raises(TableReadError, match=r"^t\.avro holds no table: its values are no records"):
        read(sink.getvalue())


def test_a_file_that_unpacks_to_more_than_the_limit_is_refused() -> None:
    data = written({"a": "string"}, [{"a": "same" * 1000}] * 5000)
    assert len(data) < 100_000
    with pytest.raises(TableReadError, match="unpacks to more than 1,000,000 bytes"):
        read(data, max_bytes=1_000_000)


def test_a_missing_package_is_named_with_its_extra(monkeypatch, tmp_path):
    path = tmp_path / "t.avro"
    path.write_bytes(written({"a": "string"}, [{"a": "x"}]))
    monkeypatch.setattr(sandbox, "find_spec", lambda name: None)
    request = {"path": str(path), "table": "avro", "bounds": {"n_bytes": 100, "max_bytes": 1 << 20}}
    with pytest.raises(TableReadError, match=r"not installed: pip install 'pexeso\[avro\]'\.$"):
        table_files.answer(request)
