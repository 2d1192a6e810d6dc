import datetime
import decimal
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from read_tables import read_data as read

from pexeso.errors import TableReadError


def parquet(columns, **options):
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, **options)
    return sink.getvalue()


def column(values, kind=None):
    table = read(parquet({"x": pa.array(values, kind)}), "t.parquet")
    return table.columns[0].to_pylist()


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (["a", "", None], pa.string(), ["a", None, None]),
        (["a", "b"], pa.large_string(), ["a", "b"]),
        (["a", "b", "a"], pa.dictionary(pa.int32(), pa.string()), ["a", "b", "a"]),
        ([1, None, -3], pa.int64(), ["1", None, "-3"]),
        ([1.5, 1953.0], pa.float64(), ["1.5", "1953"]),
        ([True, False], pa.bool_(), ["true", "false"]),
        ([decimal.Decimal("1.50")], pa.decimal128(5, 2), ["1.50"]),
        ([datetime.date(1953, 3, 5)], pa.date32(), ["1953-03-05"]),
        ([datetime.datetime(1953, 3, 5, 14, 30)], pa.timestamp("us"), ["1953-03-05 14:30:00"]),
        (
            [datetime.datetime(1953, 3, 5, 14, 30, 0, 5)],
            pa.timestamp("us"),
            ["1953-03-05 14:30:00.000005"],
        ),
        ([datetime.datetime(1953, 3, 5)], pa.timestamp("s", "UTC"), ["1953-03-05 00:00:00Z"]),
        ([[1, 2], None], pa.list_(pa.int64()), ["[1, 2]", None]),
        ([{"a": "é"}], pa.struct([("a", pa.string())]), ['{"a": "é"}']),
        ([None, None], pa.null(), [None, None]),
        ([b"abc", b""], pa.binary(), ["abc", None]),
    ],
)
def test_every_parquet_type_becomes_text(values, kind, expected):
    assert column(values, kind) == expected


def test_parquet_bytes_that_are_no_text_are_left_out_with_a_note():
    table = read(
        parquet({"x": pa.array([b"\xff\xfe", b"a"]), "y": pa.array(["p", "q"])}), "t.parquet"
    )
    assert [c.to_pylist() for c in table.columns] == [[None, "a"], ["p", "q"]]
    assert table.notes[0].startswith("column 'x' (#0) is not text everywhere: cells read as empty")


def test_a_parquet_file_without_the_extension_is_known_by_its_start():
    assert read(parquet({"x": pa.array(["a"])}), "t").names == ["x"]


def test_a_parquet_file_of_no_rows_is_a_table():
    table = read(parquet({"x": pa.array([], pa.string())}), "t.parquet")
    assert (table.names, table.n_rows) == (["x"], 0)


def test_broken_parquet_says_so():
    data = parquet({"x": pa.array(["a"] * 1000)})
    for broken in (data[:-20], data[:100], b"PAR1", b"a,b\n"):
        with pytest.raises(TableReadError, match=r"^t\.parquet is no readable Parquet file: .*\.$"):
            read(broken, "t.parquet")


def test_parquet_that_unpacks_to_more_than_the_limit_is_refused():
    data = parquet({"x": pa.array(["z" * 1000] * 20_000)}, compression="zstd")
    assert len(data) < 10_000
    with pytest.raises(
        TableReadError, match=r"unpacks to more than 1,000,000 bytes, the most that is read"
    ):
        read(data, "t.parquet", max_bytes=1_000_000)


def test_json_lines_have_the_union_of_keys_in_order_of_appearance():
    data = '\ufeff{"b": "x", "a": 1}\n\n{"c": [1, {"d": "é"}], "a": 1.50}\n{"b": null, "a": true}\n'
    table = read(data, "t.jsonl")
    assert table.names == ["b", "a", "c"]
    assert [c.to_pylist() for c in table.columns] == [
        ["x", None, None],
        ["1", "1.5", "true"],
        [None, '[1, {"d": "é"}]', None],
    ]
    assert table.notes == []


def test_keys_that_appear_late_are_empty_before(monkeypatch):
    monkeypatch.setattr("pexeso.lake.readers.json_text.ROWS_A_CHUNK", 2)
    table = read('{"a": 1}\n{"a": 2}\n{"b": 3}\n{"a": 4, "b": 5}\n{"c": 6}\n', "t.jsonl")
    assert [c.to_pylist() for c in table.columns] == [
        ["1", "2", None, "4", None],
        [None, None, "3", "5", None],
        [None, None, None, None, "6"],
    ]


def test_a_minority_of_bad_json_lines_is_counted():
    deep = "[" * 100_000
    table = read(
        f'{{"a": 1}}\n{{"a": \n{{"a": 2}}\n[1]\n{{"a": 3}}\n{{"a": 4}}\n{deep}\n', "t.jsonl"
    )
    assert table.columns[0].to_pylist() == ["1", "2", "3", "4"]
    assert table.notes == ["lines that hold no JSON object were left out: 3"]


def test_what_is_mostly_no_json_is_refused():
    with pytest.raises(
        TableReadError, match=r"^t\.jsonl is not JSON lines: 2 of 3 lines hold no object\.$"
    ):
        read("a,b\n1,2\n{}\n", "t.jsonl")
    for empty in ("", "\n \n"):
        with pytest.raises(TableReadError, match=r"^t\.jsonl is empty: it holds no JSON object\.$"):
            read(empty, "t.jsonl")


def test_json_texts_that_utf8_cannot_hold_are_repaired():
    table = read('{"\\ud800": "a\\udfffb"}\n', "t.jsonl")
    assert (table.names, table.columns[0].to_pylist()) == (["?"], ["a?b"])


def test_json_cells_over_the_limit_are_empty():
    table = read(f'{{"a": "{"x" * 50}"}}\n', "t.jsonl", max_cell_bytes=10)
    assert (table.columns[0].to_pylist(), table.notes) == (
        [None],
        ["cells of more than 10 bytes were read as empty: 1"],
    )


def test_a_number_of_more_digits_than_python_reads_stays_as_it_stands():
    digits = "7" * 5000
    table = read(f'{{"a": {digits}, "b": -{digits}}}\n{{"a": 1, "b": 2.5}}\n', "t.jsonl")
    assert [column.to_pylist() for column in table.columns] == [
        [digits, "1"],
        [f"-{digits}", "2.5"],
    ]
    assert table.notes == []
