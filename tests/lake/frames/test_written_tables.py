"""Tables written to files: cells of types that pandas, CSV or Parquet have nothing for."""

import errno
import gc
from datetime import datetime
from decimal import Decimal

import openpyxl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from pexeso.errors import OutputError
from pexeso.lake.frames.writing import csv_text, write_file

SPANS = pa.array([(1, 2, 3), None], pa.month_day_nano_interval())
UNION = pa.UnionArray.from_sparse(
    pa.array([0, 1], pa.int8()), [pa.array(values) for values in ([1, 2], ["a", "b"])]
)
NOT_OF_PARQUET = {
    "month_day_nano_interval": SPANS,
    "struct<>": pa.array([{}, None], pa.struct([])),
    "decimal128(10, -3)": pa.array([Decimal("1E+3"), None], pa.decimal128(10, -3)),
    "timestamp[s]": pa.array([1 << 62, None], pa.timestamp("s")),  # the cell is too late
}


@pytest.mark.parametrize(
    ("cells", "texts"),
    [
        (pa.array([Decimal("0E-10"), None], pa.decimal128(20, 10)), ["0.0000000000", '""']),
        (pa.array([Decimal("1E+3"), None], pa.decimal128(10, -3)), ["1000", '""']),
        (pa.array([Decimal("0E-8")], pa.decimal128(9, 8)).dictionary_encode(), ["0.00000000"]),
        (pa.array([datetime(2020, 1, 1)]).dictionary_encode(), ["2020-01-01 00:00:00"]),
        (SPANS, ['"[1, 2, 3]"', '""']),
        (UNION, ["1", '"""b"""']),
        (pa.array([[1], None], pa.list_view(pa.int8())), ["[1]", '""']),
        (pa.array([b"\xff", None]).dictionary_encode(), [r"b'\xff'", '""']),
    ],
)
def test_cells_of_any_type_are_texts_in_csv(cells, texts):
    assert csv_text(pa.table({"cell": cells})).splitlines() == ["cell", *texts]


@pytest.mark.parametrize(("kind", "cells"), NOT_OF_PARQUET.items(), ids=NOT_OF_PARQUET)
def test_a_column_that_parquet_cannot_hold_is_told_and_nothing_is_left(tmp_path, kind, cells):
    table = pa.table({"city": ["Oslo", "Rome"], "odd": cells})
    with pytest.raises(OutputError) as error:
        write_file(table, tmp_path / "out.parquet")
    assert str(error.value) == (
        f"A Parquet file cannot hold the column 'odd', of the type {kind}. Write the table to a "
        ".csv, .arrow or .feather file."
    )
    assert list(tmp_path.iterdir()) == []
    for ending in ("arrow", "csv"):
        write_file(table, tmp_path / f"out.{ending}")
    assert feather.read_table(tmp_path / "out.arrow")["odd"].type == cells.type


def test_what_parquet_can_hold_keeps_its_types(tmp_path):
    table = pa.table({"n": pa.array([1, None], pa.uint8()), "d": pa.array([Decimal("0E-3")] * 2)})
    write_file(table, tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").equals(table)


def test_a_workbook_holds_the_cells_as_they_are_and_no_formula(tmp_path):
    table = pa.table(
        {
            "=name": ["=1+1", "http://a.b", "007", None, "a\x01<b>"],
            "n": [1, 10**15 - 1, 10**15, -(10**18), None],
            "share": [0.5, None, float("nan"), float("inf"), -1.5],
            "is": [True, False, None, True, False],
            "parts": [["a"], [], None, ["b"], ["c"]],
            "day": pa.array([datetime(1750, 1, 2)] * 5, pa.timestamp("s")),
        }
    )
    write_file(table, tmp_path / "out.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "out.xlsx").active
    columns = list(zip(*sheet.iter_rows(values_only=True), strict=True))
    assert columns == [
        ("=name", "=1+1", "http://a.b", "007", None, "a_x0001_<b>"),
        ("n", 1, 10**15 - 1, str(10**15), str(-(10**18)), None),
        ("share", 0.5, None, None, "inf", -1.5),
        ("is", True, False, None, True, False),
        ("parts", '["a"]', "[]", None, '["b"]', '["c"]'),
        ("day", *["1750-01-02 00:00:00"] * 5),
    ]
    assert {cell.data_type for row in sheet.iter_rows() for cell in row} <= {"s", "n", "b"}


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (pa.table({"a": pa.nulls(1 << 20)}), "A sheet of a workbook holds 1,048,575 rows"),
        (pa.table({"a": ["b" * (1 << 15)]}), "A cell of a workbook holds 32,767 characters"),
    ],
)
def test_what_a_workbook_cannot_hold_is_refused_and_nothing_is_left(tmp_path, table, sentence):
    with pytest.raises(OutputError, match=sentence):
        write_file(table, tmp_path / "out.xlsx")
    assert list(tmp_path.iterdir()) == []


# The library closes no sheet that it could not put into the book.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_workbook_that_finds_no_room_is_refused_and_nothing_is_left(tmp_path, monkeypatch):
    def full(*_args, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("xlsxwriter.workbook.ZipFile", full)
    with pytest.raises(
        OutputError, match=r"out\.xlsx' cannot be written: No space left on device\.$"
    ):
        write_file(pa.table({"a": [1]}), tmp_path / "out.xlsx")
    assert list(tmp_path.iterdir()) == []
    gc.collect()  # here, where its warning is known
