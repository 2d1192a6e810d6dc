"""Small files that come to a lot, or keep a reader busy: bounds follow from the size as stored."""

import bz2
import gzip
import io
import lzma
import zipfile
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pexeso.errors import TableReadError
from pexeso.lake.containers.reader import open_table, read_table
from pexeso.lake.files import find_tables
from pexeso.lake.readers import table as budgets
from pexeso.lake.readers.table import ReadingBudget
from pexeso.lake.typed.parquet import parquet_rows

MIB = 1 << 20


@pytest.fixture
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "MIN_UNPACKED_BYTES", 1 * MIB)
    monkeypatch.setattr(budgets, "MIN_CELLS", 1 << 16)


def test_bounds_follow_from_the_size_as_stored() -> None:
    small, large = ReadingBudget("a", 1000), ReadingBudget("a", 1 << 40, 7)
    assert (small.max_unpacked, small.max_seconds) == (32 * MIB, 10)
    assert (large.max_unpacked, large.max_seconds) == (7, 10 + (4 << 20))
    small.check_unpacked(32 * MIB)
    small.check_cells(32 * MIB, 1)
    with pytest.raises(TableReadError, match=r"^a is refused: its 1,000 bytes unpack to more than"):
        small.check_unpacked(32 * MIB + 1)
    with pytest.raises(TableReadError, match=r"^a has almost no cells: .* 33,554,433 rows of 0"):
        small.check_cells(32 * MIB + 1, 0)
    with pytest.raises(TableReadError, match=r"^a holds more than 7 bytes"):
        large.check_unpacked(8)


def test_the_clock_stands_still_while_the_consumer_works(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(budgets.time, "thread_time", lambda: now[0])
    budget = ReadingBudget("a", 0)

    def items():
        for number in range(3):
            now[0] += 4
            yield number

    paced = budget.paced(items())
    for number in range(2):
        assert next(paced) == number
        now[0] += 100
    with pytest.raises(TableReadError, match="after 10 seconds of work there was no end"):
        next(paced)


@pytest.mark.parametrize(
    ("end", "pack"), [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)]
)
@pytest.mark.usefixtures("small_bounds")
def test_a_packed_text_that_unpacks_to_far_more_is_refused(tmp_path: Path, end, pack) -> None:
    path = tmp_path / f"a.csv.{end}"
    path.write_bytes(pack(b"a,b\n" + b"1,2\n" * MIB))
    with pytest.raises(TableReadError, match=r"is refused: its [0-9,]+ bytes unpack to more than"):
        read_table(path)


@pytest.mark.usefixtures("small_bounds")
def test_what_is_packed_twice_is_held_against_the_archive(tmp_path: Path) -> None:
    packed = gzip.compress(b"a,b\n" + b"1,2\n" * (4 * MIB))
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv.gz", packed)
    (table,), _ = find_tables(tmp_path / "a.zip")
    with pytest.raises(TableReadError, match=r"is refused: its [0-9]{1,3} bytes unpack to more"):
        open_table(table.path, table.member)


def avro(schema: dict, n_records: int) -> bytes:
    """Return a file whose one block says that it has so many records, and holds no byte."""
    sink = io.BytesIO()
    fastavro.writer(sink, schema, [])
    head = sink.getvalue()
    number = bytearray()
    n_records <<= 1
    while n_records >= 0x80:
        number.append(n_records & 0x7F | 0x80)
        n_records >>= 7
    number.append(n_records)
    return head + bytes(number) + b"\0" + head[-16:]


@pytest.mark.parametrize("fields", [[], [{"name": "a", "type": "null"}]])
def test_avro_records_of_nothing_are_counted_before_they_are_made(tmp_path: Path, fields) -> None:
    schema = {"type": "record", "name": "r", "fields": fields}
    path = tmp_path / "a.avro"
    path.write_bytes(avro(schema, 1 << 40))
    assert path.stat().st_size < 300
    with pytest.raises(TableReadError, match="has almost no cells"):
        read_table(path)
    path.write_bytes(avro(schema, 1000))
    assert read_table(path).n_rows == (1000 if fields else 0)


@pytest.mark.usefixtures("small_bounds")
@pytest.mark.parametrize("kind", [pa.null(), pa.string(), pa.list_(pa.int8()), pa.int64()])
def test_parquet_of_nulls_is_counted_by_its_footer(tmp_path: Path, kind: pa.DataType) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": pa.nulls(1 << 17, kind)}), path)
    with pytest.raises(TableReadError, match="has almost no cells"):
        read_table(path)
    with pytest.raises(TableReadError, match="has almost no cells"):
        list(parquet_rows("a.parquet", str(path)))
    pq.write_table(pa.table({"a": pa.nulls(1 << 15, kind)}), path)
    assert read_table(path).n_rows == 1 << 15


@pytest.mark.usefixtures("small_bounds")
def test_items_of_parquet_lists_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [[None] * (1 << 17)]}), path)
    with pytest.raises(TableReadError, match="has almost no cells"):
        read_table(path)


def test_rows_of_nothing_in_arrow_files_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    nothing = pa.Array.from_buffers(pa.null(), (1 << 31) - 1, [None])
    batch = pa.record_batch([nothing], names=["a"])
    with pa.ipc.new_file(path, batch.schema) as writer:
        writer.write_batch(batch)
    with pytest.raises(TableReadError, match="has almost no cells"):
        read_table(path)


def test_quotation_marks_that_never_close_take_no_time_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets, "MIN_SECONDS", 1)
    path = tmp_path / "a.csv"
    path.write_text("a,b\n" + 'x","\n' * 100_000)
    with pytest.raises(TableReadError, match="after 1 seconds of work there was no end"):
        read_table(path)


def test_lines_behind_an_open_quotation_mark_are_not_all_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pexeso.lake.readers.delimited._MAX_REMEMBERED_BYTES", 1 << 10)
    path = tmp_path / "a.csv"
    rows = [f"y{number},z" for number in range(500)]
    path.write_text("\n".join(["a,b", '1,"x', *rows, "2,w"]))
    table = read_table(path)
    assert table.n_rows == 502
    assert table.columns[1][0].as_py() == '"x'
    assert table.columns[0][501].as_py() == "2"


@pytest.mark.parametrize(
    ("end", "pack"), [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)]
)
def test_all_streams_of_a_packed_text_are_read_or_none(tmp_path: Path, end, pack) -> None:
    """Programs that pack in parallel write several; where one is damaged no row is lost unsaid."""
    path = tmp_path / f"a.csv.{end}"
    first, second = pack(b"a,b\n1,x\n"), pack(b"2,y\n")
    for rest, cells in ((second, ["1", "2"]), (bytes(8), ["1"])):
        path.write_bytes(first + rest)
        assert read_table(path).columns[0].to_pylist() == cells
    for rest in (b"\xff" + second[1:], second[:-6], b"more"):
        path.write_bytes(first + rest)
        with pytest.raises(TableReadError, match=r"damaged|cut short"):
            read_table(path)
