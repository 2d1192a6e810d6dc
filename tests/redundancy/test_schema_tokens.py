"""Columns as tokens: flattening, names in lower case, synonyms."""

import re

import pyarrow as pa
import pytest

from pexeso.errors import InputError
from pexeso.redundancy.schema_tokens import (
    ARRAY,
    canonical_tokens,
    compatible,
    family,
    leaf_types,
    leaves,
    read_synonyms,
)

ADDRESS = pa.struct([("city", pa.string()), ("zip", pa.string())])
ITEM = pa.struct([("sku", pa.string()), ("qty", pa.int64())])


def shown(token):
    text = ".".join("[]" if part is ARRAY else part for part in token)
    return text.replace(".[]", "[]")


def test_the_schema_of_the_specification_has_ten_leaves():
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("user", pa.struct([("name", pa.string()), ("address", ADDRESS)])),
            ("items", pa.list_(ITEM)),
            ("tags", pa.list_(pa.string())),
            ("attrs", pa.map_(pa.string(), pa.string())),
            ("a.b", pa.int64()),
            ("a", pa.struct([("b", pa.int64())])),
        ]
    )
    tokens = [token for token, _ in leaf_types(schema)]
    assert [shown(token) for token in tokens] == [
        "id",
        "user.name",
        "user.address.city",
        "user.address.zip",
        "items[].sku",
        "items[].qty",
        "tags[]",
        "attrs",
        "a.b",
        "a.b",
    ]
    assert len(set(tokens)) == 10


def test_missing_structs_and_elements_are_missing_in_their_leaves():
    users = pa.array([{"name": "Ann"}, None, {"name": None}])
    items = pa.array([[{"sku": "x", "qty": 1}, None], None, []], pa.list_(ITEM))
    sliced = pa.concat_arrays([items.slice(1), items]).slice(2)
    values = {
        shown(token): cells.to_pylist()
        for token, cells in leaves(["user", "items"], [users, sliced])
    }
    assert values == {
        "user.name": ["Ann", None, None],
        "items[].sku": [["x", None], None, []],
        "items[].qty": [[1, None], None, []],
    }


def test_arrays_of_arrays_of_structs_are_aligned():
    kind = pa.list_(pa.list_(ITEM))
    values = pa.array([[[{"sku": "x", "qty": 1}], []], [None], None], kind)
    (token, sku), (_, qty) = leaves(["n"], [values])
    assert token == ("n", ARRAY, ARRAY, "sku")
    assert sku.to_pylist() == [[["x"], []], [None], None]
    assert qty.to_pylist() == [[[1], []], [None], None]


def test_names_are_folded_unless_two_fall_together():
    assert canonical_tokens([("Id",), ("A", "B")]) == [("id",), ("a", "b")]
    assert canonical_tokens([("Id",), ("ID",), ("X",)]) == [("Id",), ("ID",), ("X",)]
    assert canonical_tokens([("Id",)], case_sensitive=True) == [("Id",)]


def test_synonyms_are_read_and_used(tmp_path):
    path = tmp_path / "names.toml"
    path.write_text(
        """[synonyms]\nCustomer_No = "customer_id"\n'["user", "zip"]' = '["address", "zip"]'\n"""
    )
    synonyms = read_synonyms(path)
    tokens = [("customer_no",), ("user", "zip"), ("other",)]
    assert canonical_tokens(tokens, synonyms=synonyms) == [
        ("customer_id",),
        ("address", "zip"),
        ("other",),
    ]


@pytest.mark.parametrize(
    ("entry", "named"),
    [
        ("a = ''", "'a' = ''"),
        ("'' = 'a'", "'' = 'a'"),
        ("b = '[]'", "'b' = '[]'"),
        ('c = \'["x", ""]\'', "'c' ="),
        ("d = '[null]'", "'d' ="),
    ],
)
def test_an_entry_with_an_empty_name_is_refused_by_name(tmp_path, entry, named):
    path = tmp_path / "names.toml"
    path.write_text(f"[synonyms]\nfine = 'too'\n{entry}")
    with pytest.raises(InputError, match=re.escape(f"The entry {named}")):
        read_synonyms(path)


@pytest.mark.parametrize("text", ["x = 1", "[synonyms]\na = 1", "[synonyms]\na = '[1]'", "["])
def test_other_files_of_synonyms_are_refused(tmp_path, text):
    path = tmp_path / "names.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=r"names\.toml"):
        read_synonyms(path)


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
