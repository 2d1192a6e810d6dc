"""Pairs of tables: all schema containments; bounds refute only what is not contained."""

import random
import time
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from refutation import refutes

from pexeso.redundancy import candidates as module
from pexeso.redundancy.candidates import (
    MAX_BOUND_BYTES,
    ColumnStats,
    merged,
    prune,
    scan_stats,
    schema_graph,
)
from pexeso.redundancy.schema_tokens import compatible, family


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
