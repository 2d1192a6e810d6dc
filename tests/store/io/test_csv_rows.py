"""What is written as CSV is read as the same cells, and ordinary cells stand as they always did."""

import csv
import io

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pexeso.lake.frames.writing import WRITERS, csv_text
from pexeso.runtime.formatting import csv_row

CELLS = st.text(st.sampled_from("a,\"'\r\n;= \t"), max_size=6)


def read(text):
    return list(csv.reader(io.StringIO(text, newline="")))


@given(st.lists(CELLS, min_size=2, max_size=4))
def test_every_reader_finds_the_cells(cells):
    row = csv_row(cells)
    assert read(row) == [cells]
    assert row.endswith("\n")
    assert not row.endswith("\r\n")


@given(st.lists(CELLS, min_size=1, max_size=4))
def test_a_table_has_as_many_rows_as_it_had(cells):
    table = pa.table({"a\rb": cells, "n": list(range(len(cells)))})
    expected = [["a\rb", "n"], *([cell, str(n)] for n, cell in enumerate(cells))]
    assert read(csv_text(table)) == expected


@pytest.mark.parametrize("ending", [None, ".csv"])
def test_ordinary_cells_stand_as_pandas_writes_them(ending, tmp_path):
    cells = ["Oslo", 'say "ah"', "a,b", "line\nline", "Ωμέγα", "", None, "x\r\ny"]
    table = pa.table({"name": cells, "n": [*range(7), None], "share": [0.1] * 8})
    frame = table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
    if ending is None:
        written = csv_text(table).encode()
    else:
        stream = io.BytesIO()
        WRITERS[ending](table, stream, False)
        written = stream.getvalue()
        WRITERS[ending](table, tmp_path / "t.csv", False)
        assert (tmp_path / "t.csv").read_bytes() == written
    assert written == frame.to_csv(index=False).encode()


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2)])
def test_texts_that_are_stored_as_bytes_are_written_as_texts(kind):
    plain = pa.array([b"ab", None, b"=1"], kind)
    table = pa.table({"plain": plain, "listed": [[b"ab"], None, [b"\xff\xff"]]})
    expected = [["plain", "listed"], ["ab", '["ab"]'], ["", ""], ["=1", "[\"b'\\\\xff\\\\xff'\"]"]]
    assert read(csv_text(table)) == expected
    assert read(csv_text(table, escape_formulas=True))[3][0] == "'=1"


def test_lists_are_json_that_every_reader_takes():
    table = pa.table({"listed": [[1.5, float("nan"), None], [float("inf")], []]})
    assert read(csv_text(table))[1:] == [["[1.5, null, null]"], ["[null]"], ["[]"]]


def test_bytes_that_are_no_text_and_those_of_a_dictionary():
    table = pa.table({"cell": pa.array([b"ab", b"\xff", None]).dictionary_encode()})
    assert read(csv_text(table)) == [["cell"], ["ab"], ["b'\\xff'"], [""]]
