"""Tests that document frequencies, and with them scores, depend on an index's tables alone.

How the index came to have the tables does not matter.
"""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from searching_stores import SmallLake, SmallQuery, scan_of

from pexeso.engine.layout.options import PartitionLayoutOptions
from pexeso.errors import IndexCorruptError
from pexeso.options import SearchOptions
from pexeso.rerank import document_frequency
from pexeso.rerank.document_frequency import document_frequencies, n_live_columns
from pexeso.rerank.reranker import lake_of_hits, reranked
from pexeso.search.executor import search_store

OPTIONS = PartitionLayoutOptions(map="projection", n_axes=4, block_size=4)
N_VALUES = 40


def directions() -> np.ndarray:
    """Values in pairs of neighbours, the pairs far from each other."""
    rng = np.random.default_rng(3)
    rows = np.repeat(rng.normal(size=(N_VALUES // 2, 16)), 2, axis=0) + 0.1 * rng.normal(
        size=(N_VALUES, 16)
    )
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


VECTORS = directions()


@dataclass(frozen=True)
class NamedQuery(SmallQuery):
    column: SimpleNamespace


@dataclass(frozen=True)
class Column:
    table: str
    values: tuple[int, ...]
    deleted: bool = False


@st.composite
def histories(draw) -> list[list[list[Column]]]:
    """Draw the states that an index goes through, each a list of partitions.

    A partition is a list of columns.
    """
    n_tables = iter(range(100))

    def columns(n: int) -> list[Column]:
        rows = st.sets(st.integers(0, N_VALUES - 1), min_size=1, max_size=12)
        return [Column(f"t{next(n_tables)}", tuple(sorted(draw(rows)))) for _ in range(n)]

    states = [[columns(draw(st.integers(4, 8)))]]
    for _ in range(draw(st.integers(2, 5))):
        partitions = [list(partition) for partition in states[-1]]
        step = draw(st.sampled_from(["append", "delete", "change", "compact"]))
        present = [
            (p, c)
            for p, part in enumerate(partitions)
            for c, one in enumerate(part)
            if not one.deleted
        ]
        if step == "append":
            partitions.append(columns(draw(st.integers(1, 4))))
        elif step == "compact":
            live = [one for partition in partitions for one in partition if not one.deleted]
            cut = draw(st.integers(1, len(live)))
            partitions = [part for part in (live[:cut], live[cut:]) if part]
        elif len(present) > 2:
            p, c = draw(st.sampled_from(present))
            one = partitions[p][c]
            partitions[p][c] = Column(one.table, one.values, deleted=True)
            if step == "change":
                partitions.append([Column(one.table, columns(1)[0].values)])
        states.append(partitions)
    return states


def store_of(partitions: list[list[Column]]):
    every = [(number, one) for number, partition in enumerate(partitions) for one in partition]
    lake = SmallLake(
        VECTORS,
        [one.values for _, one in every],
        [(one.table, "name") for _, one in every],
        [number for number, _ in every],
    )
    return lake.store(OPTIONS, [position for position, (_, one) in enumerate(every) if one.deleted])


def fresh(partitions: list[list[Column]]) -> list[list[Column]]:
    return [
        sorted(
            (one for part in partitions for one in part if not one.deleted),
            key=lambda one: one.table,
        )
    ]


def answers(partitions: list[list[Column]], rows: list[int]):
    """The columns found, re-ranked: names, counts, scores to the last bit and reasons."""
    import pyarrow as pa
    import torch

    names = pa.array([VECTORS[row].tobytes().hex() for row in rows])
    query = NamedQuery(
        names,
        torch.from_numpy(VECTORS[rows]),
        torch.ones(len(rows), dtype=torch.int64),
        SimpleNamespace(column="name"),
    )
    scan = scan_of(store_of(partitions), OPTIONS)
    [(hits, stats)] = search_store(
        scan, [query], [SearchOptions(max_distance=0.1, min_joinability=0.01)]
    )
    found, opinions = reranked(scan, query, hits, lake_of_hits(scan, [hits]), 0.1, stats)
    return [
        (hit.table, hit.label, hit.matched, opinion.score, opinion.reasons)
        for hit, opinion in zip(found, opinions, strict=True)
    ]


@settings(max_examples=40)
@given(histories(), st.lists(st.integers(0, N_VALUES - 1), min_size=1, max_size=10, unique=True))
def test_scores_and_order_are_those_of_a_fresh_build_after_any_sequence_of_updates(states, rows):
    for partitions in states:
        assert answers(partitions, rows) == answers(fresh(partitions), rows)


def test_columns_are_counted_in_all_partitions_without_those_deleted(monkeypatch):
    monkeypatch.setattr(document_frequency, "VALUES_AT_ONCE", 2)
    partitions = [
        [Column("a", (0, 1, 2)), Column("b", (1, 2), deleted=True)],
        [Column("c", (2, 3)), Column("d", (2,))],
    ]
    scan = scan_of(store_of(partitions), OPTIONS)
    keys = {number: scan.store.texts(number, "values").to_pylist() for number in (0, 1)}
    rows = {number: np.array([0, 2] if number == 0 else [1]) for number in (0, 1)}
    expected = {
        VECTORS[0].tobytes().hex(): 1,
        VECTORS[1].tobytes().hex(): 1,
        VECTORS[2].tobytes().hex(): 3,
    }
    expected[VECTORS[3].tobytes().hex()] = 1
    found = document_frequencies(scan, rows)
    assert {number: some.tolist() for number, some in found.items()} == {
        number: [expected[keys[number][row]] for row in some] for number, some in rows.items()
    }
    assert n_live_columns(scan) == 3


def test_a_missing_text_is_damage():
    store = store_of([[Column("a", (0, 1))], [Column("b", (0,))]])
    store._partitions[0]["values"][0] = None
    with pytest.raises(IndexCorruptError, match=r"A text of partition 0 .* is missing"):
        document_frequencies(scan_of(store, OPTIONS), {0: np.array([0])})


def test_nothing_found_needs_no_frequency():
    scan = scan_of(store_of([[Column("a", (0, 1))], [Column("b", (0,))]]), OPTIONS)
    assert document_frequencies(scan, {}) == {}
