"""Types by families, and which can hold equal values."""

import pyarrow as pa
import pytest

from pexeso.redundancy.type_families import compatible, family


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.uint64(), "int"),
        (pa.decimal256(40, 2), "decimal"),
        (pa.float16(), "float"),
        (pa.dictionary(pa.int8(), pa.large_string()), "string"),
        (pa.binary(3), "binary"),
        (pa.date64(), "date"),
        (pa.timestamp("ns"), "timestamp_ntz"),
        (pa.timestamp("s", "Asia/Tokyo"), "timestamp"),
        (pa.list_(pa.int8(), 2), "array<int>"),
        (pa.map_(pa.string(), pa.list_(pa.int8())), "map<string,array<int>>"),
        (pa.null(), "null"),
        (pa.duration("s"), "duration[s]"),
        (pa.struct([("b", pa.int8()), ("a", pa.date32())]), 'struct<"a":date,"b":int>'),
    ],
)
def test_families(kind, expected):
    assert family(kind) == expected


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ("int", "decimal", True),
        ("int", "float", False),
        ("string", "int", False),
        ("date", "timestamp", False),
        ("timestamp", "timestamp_ntz", False),
        ("array<int>", "array<decimal>", True),
        ("array<int>", "array<float>", False),
        ("map<array<int>,int>", "map<array<decimal>,decimal>", True),
        ("map<string,int>", "map<string,float>", False),
        ("null", "map<string,int>", True),
        ("array<null>", "array<array<int>>", True),
        ("array<int>", "map<string,int>", False),
        ('struct<"a":int,"b":string>', 'struct<"a":decimal,"b":string>', True),
        ('struct<"a":int>', 'struct<"b":int>', False),
        ('struct<"a":int>', 'struct<"a":int,"b":int>', False),
        ("struct<>", "struct<>", True),
        ("struct<>", 'struct<"a":int>', False),
        ('map<string,struct<"<,":int,"x":date>>', 'map<string,struct<"<,":null,"x":date>>', True),
        ('map<string,struct<"<,":int,"x":date>>', 'map<string,struct<"<,":int,"x":int>>', False),
        ('struct<"\\"":array<int>>', 'struct<"\\"":array<decimal>>', True),
    ],
)
def test_which_are_compared(ours, theirs, expected):
    assert compatible(ours, theirs) is expected
    assert compatible(theirs, ours) is expected
