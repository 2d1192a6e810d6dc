"""Feather, Arrow IPC and ORC files: their tables, and damaged ones that end the reading process."""

import datetime
import io

import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet
import pytest

from pexeso.errors import TableReadError
from pexeso.lake.containers.reader import read_typed_table
from pexeso.lake.readers.table import FileSource
from pexeso.lake.typed.table_files import TABLE_FILES
from pexeso.lake.typed.text import AS_IT_IS

TABLE = pa.table(
    {
        "n": pa.array([1, None, 3] * 40),
        "text": pa.array(["x", "é", None] * 40),
        "moment": pa.array([datetime.datetime(1850, 1, 1)] * 120, pa.timestamp("us")),
        "list": pa.array([[1], [2, 3], None] * 40),
    }
)


def written(write) -> bytes:
    sink = io.BytesIO()
    write(sink)
    return sink.getvalue()


def stream(sink) -> None:
    with pa.ipc.new_stream(sink, TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=50)


FILES = {
    "t.feather": written(lambda sink: pa.feather.write_feather(TABLE, sink, "zstd")),
    "t.arrow": written(lambda sink: pa.feather.write_feather(TABLE, sink, "uncompressed")),
    "t.arrows": written(stream),
    "t.orc": written(lambda sink: pa.orc.write_table(TABLE, sink, compression="zstd")),
}


def read(data: bytes, name: str = "t.feather", **limits) -> pa.Table:
    source = FileSource(name, data=data, **limits)
    return TABLE_FILES.read(source, "orc" if name == "t.orc" else "arrow").rows


@pytest.mark.parametrize("name", FILES)
def test_a_table_is_read_with_its_types(name) -> None:
    table = read(FILES[name], name)
    if name != "t.orc":  # which keeps nanoseconds
        assert table.schema.types == TABLE.schema.types
    assert table.to_pydict() == TABLE.to_pydict()


@pytest.mark.filterwarnings("ignore:Feather V1 files are deprecated:DeprecationWarning")
def test_the_first_version_of_feather_is_read() -> None:
    table = TABLE.select(["n", "text"])
    data = written(lambda sink: pa.feather.write_feather(table, sink, version=1))
    assert read(data).to_pydict() == table.to_pydict()
    for broken in (data[:-30], data[:200], data[:-100] + bytes(range(100))):
        with pytest.raises(TableReadError, match=r"^t\.feather [^\n]*\.$"):
            read(broken)


def test_dictionaries_stay_dictionaries_and_a_file_of_no_rows_is_a_table() -> None:
    coded = pa.table({"d": pa.array(["p", "q", None]).dictionary_encode()})
    data = written(lambda sink: pa.feather.write_feather(coded, sink))
    table = read(data)
    assert (table.schema.types, table.to_pydict()) == (coded.schema.types, {"d": ["p", "q", None]})
    data = written(lambda sink: pa.feather.write_feather(coded[:0], sink))
    table = read(data)
    assert (table.column_names, len(table)) == (["d"], 0)


@pytest.mark.parametrize("name", FILES)
def test_damaged_files_say_so_in_one_sentence(name) -> None:
    data = FILES[name]
    middle = len(data) // 2
    # In the middle of a file that is not packed it would be other values: there the end is damaged.
    at = len(data) - 400 if name == "t.arrow" else middle - 300
    garbage = data[:at] + (bytes(range(200)) * 3)[: len(data) - at] + data[at + 600 :]
    for broken in (data[:middle], data[:11], garbage, b"a,b\n1,2\n", b""):
        with pytest.raises(TableReadError, match=rf"^{name} [^\n]*\.$"):
            read(broken, name)


def test_a_file_that_unpacks_to_more_than_the_limit_is_refused() -> None:
    zeros = pa.table({"x": pa.array([0] * 1_000_000)})
    data = written(lambda sink: pa.feather.write_feather(zeros, sink, "zstd"))
    assert len(data) < 20_000
    with pytest.raises(TableReadError, match=r"unpacks to more than 1,000,000 bytes, the most"):
        read(data, max_bytes=1_000_000)


def test_text_that_was_encoded_twice_is_decoded_in_typed_files_too(tmp_path):
    names = ["Zürich", "Köln", "Málaga", None, "Bonn"]
    twice = [name and name.encode().decode("cp1252") for name in names]
    table = pa.table({"cit\u00c3\u00a9": twice, "n": range(5)})
    table = table.append_column("again", pa.array(twice).dictionary_encode())
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    pa.feather.write_feather(table, tmp_path / "t.feather")
    pd.DataFrame(table.to_pydict()).to_excel(tmp_path / "t.xlsx", index=False)
    for name in ("t.parquet", "t.feather", "t.xlsx"):
        texts, typed = read_typed_table(tmp_path / name)
        assert texts.names == ["cité", "n", "again"]
        assert [texts.columns[at].to_pylist() for at in (0, 2)] == [names, names]
        assert [typed[at].to_pylist() for at in (0, 1, 2)] == [names, [*range(5)], names]
        assert texts.notes == ["the text was encoded as UTF-8 twice: it was decoded once more"]
    # The footer says that texts are as they are, not a cell.
    cells = pa.table({"city": [*twice, AS_IT_IS.decode()]})
    pa.parquet.write_table(cells, tmp_path / "t.parquet", compression="none")
    texts, typed = read_typed_table(tmp_path / "t.parquet")
    assert texts.columns[0].to_pylist() == typed[0].to_pylist() == [*names, AS_IT_IS.decode()]
    # One letter that was not says that none was.
    pa.parquet.write_table(pa.table({"city": [*twice, "São Tomé"]}), tmp_path / "t.parquet")
    texts, typed = read_typed_table(tmp_path / "t.parquet")
    assert texts.columns[0].to_pylist() == typed[0].to_pylist() == [*twice, "São Tomé"]
    assert texts.notes == []
