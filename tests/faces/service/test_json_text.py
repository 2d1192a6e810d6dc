"""JSON for machines is JSON: whatever cells hold."""

import datetime
import decimal
import json
from types import SimpleNamespace

import pyarrow as pa
import pytest

from pexeso.faces.service.bases import JoinResponse, json_line, json_pieces, json_text, plain_cells

NAN = float("nan")
DAY = datetime.date(2020, 1, 31)

CELLS = [
    ([1, None], [1, None]),
    ([2**60, -1], [2**60, -1]),
    ([True, None], [True, None]),
    ([0.5, NAN, float("inf"), None], [0.5, None, None, None]),
    (["Oslo", None], ["Oslo", None]),
    ([DAY, None], ["2020-01-31", None]),
    ([datetime.datetime(2020, 1, 31, 4, 5)], ["2020-01-31 04:05:00"]),
    ([datetime.time(4, 5)], ["04:05:00"]),
    ([decimal.Decimal("1.50"), None], ["1.50", None]),
    ([b"\xff", None], ["b'\\xff'", None]),
    ([b"Oslo", None], ["Oslo", None]),
    ([[1, None], None], [[1, None], None]),
    ([[NAN, 1.5]], [[None, 1.5]]),
    ([{"day": DAY, "share": NAN}], [{"day": "2020-01-31", "share": None}]),
]


def refuse(name):
    raise AssertionError(f"{name} is no JSON")


def read(text):
    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize(("cells", "expected"), CELLS, ids=lambda argument: str(argument)[:20])
def test_cells_are_plain(cells, expected):
    column = pa.chunked_array([pa.array(cells), pa.array(cells)])
    assert plain_cells(column) == 2 * expected
    assert read(json_line(plain_cells(column))) == 2 * expected


def test_a_join_of_typed_tables_is_told():
    table = pa.table({f"c{at}": pa.array(cells[:1]) for at, (cells, _) in enumerate(CELLS)})
    said = SimpleNamespace(to_dict=dict)
    joined = SimpleNamespace(table=table, report=said)
    document = read(json_text(JoinResponse({}, said, None, joined).to_dict()))
    assert document["names"] == table.column_names
    assert document["rows"] == [[expected[0] for _, expected in CELLS]]


def test_no_document_has_what_is_no_number():
    document = {"share": NAN, "all": [{"a": float("-inf")}, {"b": 1}], "c": (1.5,)}
    expected = {"share": None, "all": [{"a": None}, {"b": 1}], "c": [1.5]}
    assert read(json_line(document)) == read(json_text(document)) == expected
    assert read("".join(json_pieces({"a": NAN}, "rows", [NAN, 2]))) == {
        "a": None,
        "rows": [None, 2],
    }


@pytest.mark.parametrize(
    ("cells", "plain"),
    [
        (pa.array([(1, 2, 3), None], pa.month_day_nano_interval()), [[1, 2, 3], None]),
        (pa.array([decimal.Decimal("0E-10"), None], pa.decimal128(20, 10)), ["0.0000000000", None]),
        (pa.array([5, None], pa.timestamp("s")), ["1970-01-01 00:00:05", None]),
    ],
)
def test_cells_that_json_has_no_type_for_are_written(cells, plain):
    assert plain_cells(pa.chunked_array([cells])) == plain
