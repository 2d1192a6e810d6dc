"""Columns of types that few functions of Arrow know: read, hashed, bounded, or left out."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.redundancy.measuring import find_containments
from pexeso.lake.typed.parquet import TypedRows
from pexeso.lake.typed.value_texts import plain
from pexeso.redundancy.candidates import MAX_BOUND_BYTES, scan_stats
from pexeso.redundancy.pieces import pieces_of
from pexeso.redundancy.row_hashes import hashed_column, row_hashes, value_hashes
from pexeso.redundancy.schema_tokens import leaves
from pexeso.redundancy.transformations import find_transformation
from tests.redundancy.row_contents import read_contents
from tests.redundancy.row_oracle import containment


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
