"""Columns as tokens and bounds: what is contained passes; types that few functions know."""

import random
import re
import time
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refutation import refutes

from benchmarks.redundancy.measuring import find_containments
from pexeso.errors import InputError
from pexeso.lake.typed.parquet import TypedRows
from pexeso.lake.typed.value_texts import plain
from pexeso.redundancy import candidates as module
from pexeso.redundancy.candidates import (
    MAX_BOUND_BYTES,
    ColumnStats,
    merged,
    prune,
    scan_stats,
    schema_graph,
)
from pexeso.redundancy.pieces import pieces_of
from pexeso.redundancy.row_hashes import hashed_column, row_hashes, value_hashes
from pexeso.redundancy.schema_tokens import (
    ARRAY,
    canonical_tokens,
    compatible,
    family,
    leaf_types,
    leaves,
    read_synonyms,
)
from pexeso.redundancy.transformations import find_transformation
from tests.redundancy.row_contents import read_contents
from tests.redundancy.row_oracle import containment

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


def pairs(graph):
    return sorted(
        (int(parent), int(child))
        for parents, children in graph.blocks()
        for parent, child in zip(parents, children, strict=True)
    )


def all_pairs(schemas):
    return [
        (parent, child)
        for parent, wide in enumerate(schemas)
        for child, narrow in enumerate(schemas)
        if parent != child and narrow <= wide
    ]


@pytest.mark.parametrize("listed", [0, 2, 64])
@pytest.mark.parametrize("block", [1, 7, 1 << 20])
def test_edges_are_all_containments(block, listed, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_PAIRS", block)
    monkeypatch.setattr(module, "_LISTED", listed)
    draw = random.Random(block)
    for _ in range(500):
        n_tokens = draw.randint(1, 8)
        schemas = [
            frozenset(draw.sample(range(n_tokens), draw.randint(1, n_tokens)))
            for _ in range(draw.randint(0, 9))
        ]
        graph = schema_graph(schemas)
        assert pairs(graph) == all_pairs(schemas)
        assert graph.n_edges == len(all_pairs(schemas))
        assert all(len(parents) <= block for parents, _ in graph.blocks())


class Watched(frozenset):
    """A set that counts how often it is compared."""

    n_tests = 0

    def __le__(self, other):
        Watched.n_tests += 1
        return super().__le__(other)

    __hash__ = frozenset.__hash__


@pytest.mark.parametrize("n_tokens", [200, 20_000])
def test_ten_thousand_wide_schemas_need_few_comparisons(n_tokens, monkeypatch):
    monkeypatch.setattr(Watched, "n_tests", 0)
    draw, n = random.Random(n_tokens), 10_000
    schemas = [Watched(["id", *draw.sample(range(n_tokens), 40)]) for _ in range(n - 10)]
    schemas += [Watched(draw.sample(sorted(schemas[7], key=str), size)) for size in range(10, 20)]
    begin = time.perf_counter()
    graph = schema_graph(schemas)
    assert time.perf_counter() - begin < 20
    assert graph.n_edges >= 10
    assert {(7, table) for table in range(n - 10, n)} <= set(pairs(graph))
    assert Watched.n_tests <= 64 * n


NAN = float("nan")
COLUMNS = {
    "int": (pa.int64(), [None, -5, 0, 3, 2**62]),
    "decimal": (pa.decimal128(6, 2), [None, Decimal("0.50"), Decimal("3.00"), Decimal(-5)]),
    "float": (pa.float64(), [None, NAN, 0.0, -0.0, 0.1, float("inf")]),
    "string": (pa.string(), [None, "", "a", "é", "z" * 70, "z" * 80]),
    "binary": (pa.binary(), [None, b"\xff" * 70, b"\xff" * 80, b""]),
    "list": (pa.list_(pa.int64()), [None, [], [1]]),
    "null": (pa.null(), [None]),
}
N_PAIRS = 4000


LOOSER = (
    {"min_witness": False},
    {"max": None, "max_witness": False, "max_cover": False},
    {"null_count": None},
    {"nan": None},
    {"has_value": False},
    {"all_null": False},
)


def loosened(draw, stats):
    """Return statistics that say less, and nothing that is wrong."""
    for changes in LOOSER:
        if draw.random() < 0.3:
            stats = replace(stats, **changes)
    return stats


def drawn(draw, name, n):
    kind, values = COLUMNS[name]
    return pa.array([draw.choice(values) for _ in range(n)], kind)


def test_what_is_contained_is_never_refuted():
    draw, n_refuted = random.Random(1), 0
    for _ in range(N_PAIRS):
        name = draw.choice(list(COLUMNS))
        parent = drawn(draw, name, draw.randint(0, 5))
        n = draw.randint(0, 3) if len(parent) else 0
        inside = parent.take(pa.array([draw.randrange(len(parent)) for _ in range(n)], pa.int64()))
        half = len(parent) // 2
        stats = merged([scan_stats(parent[:half]), scan_stats(parent[half:])])
        assert refutes(loosened(draw, scan_stats(inside)), loosened(draw, stats)) is None
        n_refuted += refutes(scan_stats(drawn(draw, name, 3)), stats) is not None
    assert n_refuted > N_PAIRS // 4


def test_arrays_over_pairs_refute_what_single_pairs_do():
    draw = random.Random(2)
    for _ in range(300):
        tables, n_rows = [], []
        for _ in range(6):
            n, columns = draw.randint(0, 4), {}
            for token in draw.sample("abc", draw.randint(1, 3)):
                values = drawn(draw, draw.choice(list(COLUMNS)), n)
                columns[(token,)] = (family(values.type), loosened(draw, scan_stats(values)))
            tables.append(columns)
            n_rows.append(n)
        gate, bounds = draw.random() < 0.5, draw.random() < 0.7
        parents, children, n_removed = prune(
            schema_graph([frozenset(schema) for schema in tables]),
            tables,
            np.array(n_rows),
            row_count_gate=gate,
            bounds=bounds,
        )
        removed, left = {"types": 0, "rows": 0, "min_max": 0}, []
        for parent, theirs in enumerate(tables):
            for child, ours in enumerate(tables):
                if parent == child or not set(ours) <= set(theirs):
                    continue
                both = [(ours[column], theirs[column]) for column in ours]
                if not all(compatible(mine[0], yours[0]) for mine, yours in both):
                    removed["types"] += 1
                elif gate and n_rows[child] > n_rows[parent]:
                    removed["rows"] += 1
                elif bounds and any(refutes(mine[1], yours[1]) for mine, yours in both):
                    removed["min_max"] += 1
                else:
                    left.append((parent, child))
        assert list(zip(parents.tolist(), children.tolist(), strict=True)) == left
        assert n_removed == removed


def test_missing_cells_are_counted_in_every_encoding():
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["m", None]))
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([1, 3], pa.int32()), pa.array(["m", None]))
    plain = scan_stats(pa.array(["m", None, None]))
    assert scan_stats(coded) == plain
    assert scan_stats(runs) == plain


def test_long_texts_are_cut_and_statistics_survive_json():
    long = scan_stats(pa.array(["b" * 100, "c" * 100]))
    assert (long.min, long.min_witness, long.min_cover) == (b"b" * MAX_BOUND_BYTES, False, True)
    assert long.max > b"c" * 100
    assert (long.max_witness, long.max_cover) == (False, True)
    for kind, values in COLUMNS.values():
        stats = scan_stats(pa.array(values, kind))
        assert ColumnStats.from_json(stats.to_json()) == stats


def bytes_as(kind, cells):
    """Return bytes as texts, whether they are UTF-8 or not."""
    cells = pa.array(cells, pa.large_binary() if pa.types.is_large_string(kind) else pa.binary())
    return pa.Array.from_buffers(kind, len(cells), cells.buffers())


BAD = [b"ok", b"\xff\xfe", b"\xff\xff", None]
DECIMALS = [Decimal("1.50"), Decimal(-2), None, Decimal(0)]
LISTS = [[1], [2, 3], None, []]
STRUCTS = [[{"a": 1}], [{"a": 2}, {"a": None}], None, []]
TEXTS = ["ok", "x" * 30, None, ""]
ODD = {
    "bad text": bytes_as(pa.string(), BAD),
    "bad large text": bytes_as(pa.large_string(), BAD),
    "bad texts in lists": pa.ListArray.from_arrays([0, 1, 2, 3, 4], bytes_as(pa.string(), BAD)),
    "decimal32": pa.array(DECIMALS, pa.decimal32(6, 2)),
    "decimal64": pa.array(DECIMALS, pa.decimal64(12, 2)),
    "decimal256": pa.array(DECIMALS, pa.decimal256(60, 3)),
    "string_view": pa.array(TEXTS, pa.string_view()),
    "binary_view": pa.array([b"ok", b"x" * 30, None, b""], pa.binary_view()),
    "list_view": pa.array(LISTS, pa.list_view(pa.int64())),
    "large_list_view": pa.array(LISTS, pa.large_list_view(pa.int64())),
    "view of structs": pa.array(STRUCTS, pa.list_view(pa.struct([("a", pa.int64())]))),
    "list of views": pa.array([TEXTS, None, [], ["a"]], pa.list_(pa.string_view())),
    "map of views": pa.array([[("a", 1)], [], None, []], pa.map_(pa.string_view(), pa.int64())),
    "struct of views": pa.array([{"a": "x"}, {"a": None}, None, {"a": "y"}]).cast(
        pa.struct([("a", pa.string_view())])
    ),
    "large list": pa.array(LISTS, pa.large_list(pa.int64())),
    "fixed list": pa.array([[1, 2], [2, None], None, [5, 6]], pa.list_(pa.int64(), 2)),
    "duration": pa.array([1, 2**62, None, 3], pa.duration("s")),
    "fine duration": pa.array([1, 2**62, None, 3], pa.duration("ns")),
    "coded times": pa.array([1, 2, None, 1], pa.time32("s")).dictionary_encode(),
    "coded decimals": pa.array(DECIMALS, pa.decimal128(6, 2)).dictionary_encode(),
    "uuid": pa.ExtensionArray.from_storage(
        pa.uuid(), pa.array([b"a" * 16, b"b" * 16, None, b"c" * 16], pa.binary(16))
    ),
}


def two_of(values, first):
    """Return two cells in buffers of their own: a slice of views cannot be written."""
    return pa.concat_arrays([values.slice(first, 1), values.slice(first + 1, 1)])


@pytest.mark.parametrize("name", ODD)
def test_slices_of_odd_types_hold_the_same_values(name):
    values = ODD[name]
    hashes = value_hashes(values)
    assert len(np.unique(hashes[:3, 0])) == 3
    np.testing.assert_array_equal(value_hashes(values.slice(1)), hashes[1:])
    np.testing.assert_array_equal(value_hashes(two_of(values, 2)), hashes[2:])
    assert plain(values).null_count == values.null_count
    assert scan_stats(values).null_count == values.null_count


def test_odd_types_in_parquet_as_all_rows_compared(spark, tmp_path):
    for name, values in ODD.items():
        whole = pa.table({"key": [1, 2, 3, 4], name: values})
        pq.write_table(whole, tmp_path / f"{name}.parquet")
        part = pa.table({"key": [2, 3], name: two_of(values, 1)})
        pq.write_table(part, tmp_path / f"{name}-part.parquet", use_dictionary=False)
        other = pa.table({"key": [2, 3], name: two_of(values, 2)})
        pq.write_table(other, tmp_path / f"{name}-other.parquet")
    graph = find_containments(spark, tmp_path)
    assert graph.left_out == ()
    wanted = {(f"{name}.parquet", f"{name}-part.parquet") for name in ODD}
    assert {(edge.parent, edge.child) for edge in graph.edges} == wanted
    for path in tmp_path.glob("bad*"):  # which Python cannot read as texts
        path.unlink()
    rest = {edge for edge in wanted if not edge[0].startswith("bad")}
    assert set(containment(read_contents(tmp_path))) == rest


@pytest.mark.parametrize(
    ("values", "lowest", "highest"),
    [
        (ODD["string_view"], b"", b"x" * 30),
        (ODD["binary_view"], b"", b"x" * 30),
        (ODD["decimal32"], -2, Fraction(3, 2)),
        (ODD["bad text"], b"ok", b"\xff\xff"),
        (ODD["duration"], 1, 2**62),
        (ODD["coded decimals"], -2, Fraction(3, 2)),
    ],
)
def test_bounds_of_odd_types(values, lowest, highest):
    bounds = scan_stats(values)
    assert (bounds.min, bounds.max) == (lowest, highest)
    flags = (bounds.min_witness, bounds.min_cover, bounds.max_witness, bounds.max_cover)
    assert flags == (True, True, True, True)


@pytest.mark.parametrize("end", [b"a", b"\xff", b"\xff\xff\xff"])
def test_a_cut_bound_covers_texts_that_are_no_utf_8(end):
    text = b"m" * (MAX_BOUND_BYTES - 1) + b"\xff" + end
    bounds = scan_stats(bytes_as(pa.string(), [text]))
    assert (bounds.max_cover, bounds.max_witness) == (True, False)
    assert bounds.max > text


def test_a_dictionary_of_structs_is_flattened_as_structs_are():
    coded = pa.DictionaryArray.from_arrays(pa.array([0, None, 1]), pa.array([{"x": 1}, {"x": 2}]))
    [(token, cells)] = leaves(["s"], [coded])
    assert (token, cells.to_pylist()) == (("s", "x"), [1, None, 2])
    struct = pa.array([{"x": 1}, None, {"x": 2}])
    np.testing.assert_array_equal(value_hashes(coded), value_hashes(struct))


def test_no_condition_is_put_on_texts_that_are_no_utf_8():
    parent = {"a": pa.array([1, 2, 3]), "bad": bytes_as(pa.string(), [b"\xff", b"\xff", b"x"])}
    rows = row_hashes(3, [hashed_column(parent["a"])], ["a"])
    selection = find_transformation(parent, rows, rows[:2], ["a"])
    assert [condition.column for condition in selection.conditions] == ["a"]


def test_values_that_cannot_be_compared_are_refused_by_arrow_s_error():
    odd = pa.UnionArray.from_dense(
        pa.array([0, 1], pa.int8()), pa.array([0, 0], pa.int32()), [pa.array([1]), pa.array(["a"])]
    )
    with pytest.raises(pa.ArrowNotImplementedError, match="cannot be compared"):
        list(pieces_of("t", [TypedRows(["odd"], [odd])]))
