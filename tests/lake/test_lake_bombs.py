"""Small files that come to a lot: they are refused before they have."""

import io
import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pexeso.errors import TableReadError
from pexeso.lake.containers.reader import read_table
from pexeso.lake.readers.table import ReadingBudget, Table
from pexeso.lake.typed.parquet import parquet_rows, parse_parquet

MAX_BYTES = 8 << 20
LONG = "b" * 50_000
CORPUS = Path(__file__).parent.parent / "robustness" / "corpus" / "parquet"


def parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def read(data: bytes, max_bytes: int = MAX_BYTES) -> Table:
    return parse_parquet(
        data, ReadingBudget("x.parquet", len(data), max_bytes), max_cell_bytes=1 << 20
    )


COLUMNS: dict[str, Callable[[int], pa.Array]] = {
    "texts": lambda size: pa.array([None, *[LONG] * size]),
    "bytes": lambda size: pa.array([LONG.encode()] * size, pa.binary()),
    "lists": lambda size: pa.array([None, [], *[[LONG] * 3] * (size // 3)]),
    "objects": lambda size: pa.array([None, *[{"x": {"y": LONG}}] * size]),
    "maps": lambda size: pa.array(
        [None, *[[("k", LONG)]] * size], pa.map_(pa.string(), pa.string())
    ),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_long_text_said_often_is_refused_before_it_is_written_out(kind: str) -> None:
    data = parquet(pa.table({"x": COLUMNS[kind](3000)}))
    assert len(data) < 5_000
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(TableReadError, match="unpacks to more than 8,388,608 bytes"):
        read(data)
    assert pa.default_memory_pool().max_memory() <= max(before, MAX_BYTES)


@pytest.mark.parametrize("kind", COLUMNS)
def test_what_fits_is_read_as_it_is(kind: str) -> None:
    data = parquet(pa.table({"x": COLUMNS[kind](12).slice(0, 5)}))
    (column,) = read(data).columns
    assert column.equals(read(data, 1 << 40).columns[0])
    assert LONG in column[4].as_py()


def test_cells_over_the_limit_are_left_out_before_they_are_written_out() -> None:
    values = pa.array([*["c" * (2 << 20)] * 30, "short"])
    table = read(parquet(pa.table({"x": values})))
    assert (table.columns[0].null_count, table.columns[0][30].as_py()) == (30, "short")
    assert table.notes == ["cells of more than 1,048,576 bytes were read as empty: 30"]


def test_rows_that_are_almost_all_filling_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pexeso.lake.readers.table.MIN_CELLS", 1 << 18)
    names = ",".join(f"c{number}" for number in range(5_000))
    (tmp_path / "a.csv").write_text(names + "\n" + "a\n" * 5_000)
    (tmp_path / "a.jsonl").write_text(
        "".join(f'{{"k{number % 600}": 1}}\n' for number in range(2_000))
    )
    for name in ("a.csv", "a.jsonl"):
        with pytest.raises(TableReadError, match="has almost no cells"):
            read_table(tmp_path / name)


def test_a_table_with_many_empty_cells_is_read(tmp_path: Path) -> None:
    generator = random.Random(0)
    rows = [",".join(generator.choice(("", "", "", "x")) for _ in range(200)) for _ in range(500)]
    (tmp_path / "a.csv").write_text(
        "\n".join([",".join(f"c{number}" for number in range(200)), *rows])
    )
    assert read_table(tmp_path / "a.csv").n_rows == 500


@pytest.mark.parametrize("name", ["sizes_of_no_level", "sizes_of_a_list"])
def test_a_footer_that_ends_the_process_of_arrow_is_one_sentence(name):
    data = (CORPUS / f"{name}.parquet").read_bytes()
    with pytest.raises(TableReadError):
        read(data)
    with pytest.raises(TableReadError):
        list(parquet_rows("x.parquet", pa.BufferReader(data)))


def test_values_of_lists_are_counted_before_they_are_read():
    items = pa.nulls(40_000_000, pa.int8())
    lists = pa.ListArray.from_arrays(pa.array([0, len(items)], pa.int32()), items)
    with pytest.raises(TableReadError, match="has almost no cells"):
        read(parquet(pa.table({"a": lists})), 1 << 30)
