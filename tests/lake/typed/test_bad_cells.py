"""Cells that have no text: they alone are left without one, and notes say how many there are."""

import io

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from read_tables import read_data

from pexeso.errors import TableReadError
from pexeso.lake.containers.reader import open_table, read_table
from pexeso.lake.typed import text

NAMES = [f"n{number}".encode() for number in range(10_000)]
NAMES[4_500] = b"caf\xe9"


def as_texts(cells):
    """Return bytes as an array of texts, UTF-8 or not."""
    return pa.Array.from_buffers(pa.string(), len(cells), pa.array(cells, pa.binary()).buffers())


def write(table, path):
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".feather":
        feather.write_feather(table, path)
    elif path.suffix == ".arrows":
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table)
    else:
        orc.write_table(table, path)


FORMATS = [".parquet", ".feather", ".arrows", ".orc"]


@pytest.mark.parametrize("ending", FORMATS)
def test_one_wrong_byte_costs_no_other_cell(tmp_path, ending):
    path = tmp_path / f"t{ending}"
    coded = {} if ending == ".orc" else {"coded": as_texts(NAMES).dictionary_encode()}
    table = pa.table({"raw": NAMES, "text": as_texts(NAMES), "other": ["x"] * 10_000, **coded})
    write(table, path)
    read = read_table(path)
    columns = dict(zip(read.names, read.columns, strict=True))
    good = [name.decode("utf-8", "replace") for name in NAMES]
    assert columns["text"].to_pylist() == good
    assert columns["raw"].to_pylist() == [*good[:4_500], None, *good[4_501:]]
    assert columns["other"].null_count == 0
    mended = "cells in which wrong bytes became the replacement character: 1"
    notes = [
        "column 'raw' (#0) is not text everywhere: cells read as empty: 1 (bytes that are not "
        "UTF-8)",
        f"column 'text' (#1) is not all valid UTF-8: {mended}",
    ]
    if coded:
        assert columns["coded"].to_pylist() == good
        notes.append(f"column 'coded' (#3) is not all valid UTF-8: {mended}")
    assert read.notes == notes


def test_cells_are_counted_over_all_batches(tmp_path):
    cells = [b"\xff" if number % 2 else b"a" for number in range(10_000)]
    write(
        pa.table(
            {"t": as_texts(cells), "b": cells, "f": pa.array([b"\xffa"] * 10_000, pa.binary(2))}
        ),
        tmp_path / "t.parquet",
    )
    read = read_table(tmp_path / "t.parquet")
    assert [column.null_count for column in read.columns] == [0, 5_000, 10_000]
    assert [
        note.partition(": ")[2].removesuffix(" (bytes that are not UTF-8)") for note in read.notes
    ] == [
        "cells in which wrong bytes became the replacement character: 5,000",
        "cells read as empty: 5,000",
        "cells read as empty: 10,000",
    ]


def test_wrong_bytes_in_more_text_than_is_mended_leave_the_column_empty(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "_MOST_BYTES", 10_000)
    write(pa.table({"x": as_texts(NAMES), "y": ["q"] * 10_000}), tmp_path / "t.parquet")
    read = read_table(tmp_path / "t.parquet")
    assert [column.null_count for column in read.columns] == [4_096, 0]
    assert read.notes == [
        "column 'x' (#0) is not text everywhere: cells read as empty: 4,096 (wrong bytes among "
        "more than 10,000)"
    ]


def of_days(days):
    return pa.array(days, pa.int32()).cast(pa.date32())


@pytest.mark.parametrize(
    ("values", "texts", "why"),
    [
        (
            pa.StructArray.from_arrays([of_days([1, 2**31 - 1, None])], ["d"]),
            ['{"d": "1970-01-02"}', None, '{"d": null}'],
            "days=2147483647; must have magnitude <= 999999999",
        ),
        (
            pa.ListArray.from_arrays(pa.array([0, 1, 2, 3]), of_days([1, 10**7, 2])),
            ['["1970-01-02"]', None, '["1970-01-03"]'],
            "date value out of range",
        ),
        (of_days([1, 2**31 - 1, None]), ["1970-01-02", None, None], "dates or times out of range"),
        (
            of_days([1, 2**31 - 1, None]).dictionary_encode(),
            ["1970-01-02", None, None],
            "dates or times out of range",
        ),
        (
            pa.StructArray.from_arrays([as_texts([b"a", b"\xff", b"b"])], ["t"]),
            ['{"t": "a"}', None, '{"t": "b"}'],
            "bytes that are not UTF-8",
        ),
    ],
)
def test_a_value_out_of_range_costs_its_cell_and_not_the_file(tmp_path, values, texts, why):
    write(pa.table({"x": values, "y": ["p", "q", "r"]}), tmp_path / "t.feather")
    read = read_table(tmp_path / "t.feather")
    assert [column.to_pylist() for column in read.columns] == [texts, ["p", "q", "r"]]
    assert read.notes == [f"column 'x' (#0) is not text everywhere: cells read as empty: 1 ({why})"]


def test_a_type_without_texts_leaves_its_column_empty(tmp_path):
    spans = pa.array([(1, 2, 3), None], pa.month_day_nano_interval())
    write(pa.table({"x": spans, "y": ["p", "q"]}), tmp_path / "t.feather")
    read = read_table(tmp_path / "t.feather")
    assert [column.to_pylist() for column in read.columns] == [[None, None], ["p", "q"]]
    [note] = read.notes
    assert note.startswith(
        "column 'x' (#0) is not text everywhere: cells read as empty: 1 (Unsupported cast"
    )


@pytest.mark.parametrize("ending", FORMATS)
def test_typed_columns_are_mended_as_texts_are(tmp_path, ending):
    cells = as_texts([b"caf\xe9", b"ok"])
    nested = pa.StructArray.from_arrays([cells], ["t"])
    path = tmp_path / f"t{ending}"
    table = pa.table({"text": cells, "nested": nested, "raw": [b"\xff", b"a"]})
    if ending != ".orc":
        table = table.append_column("coded", cells.dictionary_encode())
    write(table, path)
    opened = open_table(path)
    columns = [column.to_pylist() for column in opened.typed_columns(opened.text().columns)]
    mended = ["caf\N{REPLACEMENT CHARACTER}", "ok"]
    assert columns[:3] == [mended, [None, {"t": "ok"}], [b"\xff", b"a"]]
    assert columns[3:] in ([], [mended])


def test_typed_columns_of_types_that_arrow_hardly_knows_are_read(tmp_path):
    parts = [pa.array([1, 2]), pa.array(["p", "q"])]
    union = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), parts)
    coded = pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int8()), pa.array([["a"], ["b"]]))
    path = tmp_path / "t.arrows"
    write(pa.table({"union": union, "coded": coded}), path)
    opened = open_table(path)
    typed = opened.typed_columns(opened.text().columns)
    assert [column.type for column in typed] == [union.type, pa.list_(pa.string())]
    assert [column.to_pylist() for column in typed] == [[1, "q"], [["b"], ["a"]]]


def test_typed_columns_of_views_in_dictionaries_are_read(tmp_path):
    views = pa.array(["p", "q", "p"], pa.string_view())
    pq.write_table(pa.table({"x": views}), tmp_path / "t.parquet")
    opened = open_table(tmp_path / "t.parquet")
    (column,) = opened.typed_columns(opened.text().columns)
    assert (column.type, column.to_pylist()) == (pa.string_view(), ["p", "q", "p"])


def test_a_file_whose_offsets_are_damaged_is_refused_still():
    sink = io.BytesIO()
    texts = as_texts([b"caf\xe9", b"ok"])
    _, offsets, data = texts.buffers()
    wrong = pa.py_buffer(offsets.to_pybytes()[:4] + b"\xff\xff\xff\x7f" + offsets.to_pybytes()[8:])
    broken = pa.Array.from_buffers(pa.string(), 2, [None, wrong, data])
    batch = pa.RecordBatch.from_arrays([broken], ["x"])
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    with pytest.raises(TableReadError, match=r"^t\.arrows cannot be read: "):
        read_data(sink.getvalue(), "t.arrows")
