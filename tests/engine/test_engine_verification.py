"""Tests of counting: the paper's worked example, and query values that must count once."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from engine_lakes import KERNELS, kernel_named, listed, pairs_by_hand, threads_of_torch

from pexeso.engine import metrics
from pexeso.engine.arrays import csr_from_pairs, transpose
from pexeso.engine.dense import verification
from pexeso.engine.dense.verification import Verifier
from pexeso.engine.kernel import Kernel, Pairs, Query, Threshold
from pexeso.engine.kernels import torch_kernel
from pexeso.engine.maps import PivotMap
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.engine.partition import GridCells, Partition
from pexeso.engine.published.grid import build_grid
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import ALL_LEMMAS, Lemma

SKIPPED = 2  # as the loop `decide` writes it
L7 = frozenset({Lemma.COLUMN_PRUNING})
# Cell, column and angle in degrees of each value, in cell order. The cells are named as in the
# paper; b2 is one that no query value reaches.
VALUES = {
    "x8": (2, "S4", 90.0),
    "x5": (5, "S3", 20.0),
    "x4": (9, "S2", 40.0),
    "x6": (13, "S3", -20.0),
    "x2": (14, "S1", 1.0),
    "x7": (14, "S4", -30.0),
    "x1": (16, "S1", 179.0),
    "x3": (16, "S2", 181.0),
}
COLUMNS = ("S1", "S2", "S3", "S4")
NAMES = list(VALUES)


@pytest.fixture(params=KERNELS)
def kernel(request) -> Kernel:
    return kernel_named(request.param)


def on_circle(*degrees: float) -> torch.Tensor:
    angles = torch.tensor(degrees, dtype=torch.float64).deg2rad()
    return torch.stack([angles.cos(), angles.sin()], 1).float()


def partition_of(values: dict[str, tuple[int, str, float]]) -> Partition:
    """Make a partition by hand: one pivot at 0 degrees, cells as given."""
    codes = torch.tensor([cell for cell, _, _ in values.values()])
    vectors = on_circle(*(angle for _, _, angle in values.values()))
    mapped = (vectors - on_circle(0.0)).norm(dim=1, keepdim=True)
    n_levels = 5
    columns = torch.tensor([COLUMNS.index(column) for _, column, _ in values.values()])
    value_columns = csr_from_pairs(torch.arange(len(columns)), columns, len(columns))
    cells = GridCells(
        build_grid(codes, mapped, n_levels), mapped, mapped.amin(0), mapped.amax(0) - mapped.amin(0)
    )
    return Partition(
        options=PartitionLayoutOptions(n_pivots=1, n_levels=n_levels, cells="grid"),
        vectors=vectors,
        map=PivotMap(on_circle(0.0)),
        cells=cells,
        value_columns=value_columns,
        column_values=transpose(value_columns, len(COLUMNS)),
    )


def query_of(partition: Partition, *degrees: float) -> Query:
    vectors, ones = on_circle(*degrees), torch.ones(len(degrees), dtype=torch.int64)
    threshold, mapped = Threshold(0.12, 1e-5, L7), partition.map.map(vectors)
    return Query(partition, threshold, vectors, mapped, ones, len(degrees))


def pairs_of_cells(
    partition: Partition,
    matching: list[tuple[int, int]],
    candidates: list[tuple[int, int]],
    n_queries: int,
) -> Pairs:
    """Make the pairs behind pairs of a query row and a cell's code."""
    leaves = partition.cells.grid.leaves
    runs = dict(
        zip(
            leaves.codes.tolist(),
            zip(leaves.first.tolist(), leaves.count.tolist(), strict=True),
            strict=True,
        )
    )
    pairs = [
        (row, ~value if sure else value)
        for sure, cell_pairs in ((True, matching), (False, candidates))
        for row, code in cell_pairs
        for value in range(runs[code][0], sum(runs[code]))
    ]
    return pairs_by_hand(pairs, n_queries)


def verify(
    kernel: Kernel,
    partition: Partition,
    query: Query,
    pairs: Pairs,
    needed: int,
    lemmas=L7,
    decide: bool = False,
) -> tuple[dict[str, int], SearchStats]:
    """Return the counts of the columns found, and the work."""
    stats, query = SearchStats(), replace(query, threshold=Threshold(0.12, 1e-5, lemmas))
    verifier = Verifier(query, kernel, stats, min_count=needed, decide=decide)
    verifier.add(query, pairs)
    return found_by(verifier), stats


def found_by(verifier: Verifier) -> dict[str, int]:
    columns, counts = verifier.joinable_columns()
    return {
        COLUMNS[column]: count
        for column, count in zip(columns.tolist(), counts.tolist(), strict=True)
    }


@pytest.fixture
def measured(kernel, monkeypatch) -> list[tuple[int, str]]:
    """Return the pairs of a query row and a value whose distance our kernels computed.

    Only kernels whose loops are part of this project are recorded.
    """
    pairs: list[tuple[int, str]] = []
    part = torch_kernel.TorchKernel._decide

    def recording_part(self, query, queries, rows, stats):
        listed_rows = zip(queries.tolist(), rows.tolist(), strict=True)
        pairs.extend((value, NAMES[row]) for value, row in listed_rows if row >= 0)
        return part(self, query, queries, rows, stats)

    monkeypatch.setattr(torch_kernel.TorchKernel, "_decide", recording_part)
    if kernel.name == "compiled":
        record_compiled(monkeypatch, pairs)
    return pairs


def record_compiled(monkeypatch, pairs: list[tuple[int, str]]) -> None:
    from pexeso.engine.kernels.compiled import loops

    decide = loops.decide

    def recording(begin, end, members, lists, *others):
        states, offsets, rows = others[-2], lists.offsets, lists.rows
        decide(begin, end, members, lists, *others)
        pairs.extend(
            (query, NAMES[rows[pair]])
            for query in members[begin:end].tolist()
            for pair in range(offsets[query], offsets[query + 1])
            if rows[pair] >= 0 and states[pair] != SKIPPED
        )

    monkeypatch.setattr(loops, "decide", recording)


MATCHING = [(1, 16)]
CANDIDATES = [(0, 5), (0, 9), (0, 13), (0, 14)]


@pytest.mark.parametrize("few_pairs", [0, 1 << 12])
@pytest.mark.parametrize("decide", [False, True])
def test_the_worked_example_takes_exactly_two_distances(
    kernel, measured, monkeypatch, decide, few_pairs
):
    """Check that the worked example of the paper takes exactly two distances.

    Section 5 of the paper: q2 matches b16; q1 may match in b5, b9, b13 and b14; a column needs
    both.
    """
    monkeypatch.setattr(verification, "FEW_PAIRS", few_pairs)
    partition = partition_of(VALUES)
    pairs = pairs_of_cells(partition, MATCHING, CANDIDATES, 2)
    counts, stats = verify(
        kernel, partition, query_of(partition, 0.0, 180.0), pairs, needed=2, decide=decide
    )
    assert counts == {"S1": 2}
    assert stats.distances == 2
    if kernel.name in ("compiled", "torch"):
        assert sorted(measured) == [(0, "x2"), (0, "x4")]
    # S3 and S4 are given up before any distance: q2 has no cell in common with them.
    assert stats.columns_dead == 2
    assert stats.pairs_skipped == 3
    # Neither distance is near enough to tau for a second look.
    assert stats.defining_distances == 0


def test_the_worked_example_without_column_pruning_takes_every_candidate(kernel, measured):
    partition = partition_of(VALUES)
    pairs = pairs_of_cells(partition, MATCHING, CANDIDATES, 2)
    query = query_of(partition, 0.0, 180.0)
    counts, stats = verify(kernel, partition, query, pairs, needed=1, lemmas=frozenset())
    assert counts == {"S1": 2, "S2": 1}
    assert stats.distances == 5
    if kernel.name in ("compiled", "torch"):
        assert sorted(measured) == [(0, "x2"), (0, "x4"), (0, "x5"), (0, "x6"), (0, "x7")]
    assert (stats.columns_dead, stats.pairs_skipped) == (0, 0)
    assert verify(kernel, partition, query, pairs, needed=2, lemmas=frozenset())[1].distances == 5


def test_with_all_filters_no_distance_is_taken_twice(kernel, measured):
    partition = partition_of(VALUES)
    pairs = pairs_of_cells(partition, MATCHING, CANDIDATES, 2)
    query = query_of(partition, 0.0, 180.0)
    counts, stats = verify(kernel, partition, query, pairs, needed=2, lemmas=ALL_LEMMAS)
    assert len(measured) == len(set(measured)) <= 2
    assert stats.distances <= 2
    assert counts == {"S1": 2}


@pytest.mark.parametrize("lemmas", [frozenset(), L7, ALL_LEMMAS])
def test_a_query_value_counts_once_for_a_column_with_two_values_that_match_it(kernel, lemmas):
    values = {
        "x1": (5, "S1", 1.0),
        "x2": (5, "S1", 1.001),
        "x3": (7, "S1", 2.0),
        "x4": (7, "S2", 2.0),
    }
    partition = partition_of(values)
    pairs = pairs_of_cells(partition, [], [(0, 5), (0, 7)], 1)
    counts, _ = verify(kernel, partition, query_of(partition, 0.5), pairs, needed=1, lemmas=lemmas)
    assert counts == {"S1": 1, "S2": 1}


@pytest.mark.parametrize("lemmas", [frozenset(), L7, ALL_LEMMAS])
@pytest.mark.parametrize("few_pairs", [0, 1 << 12])
def test_a_query_value_counts_once_for_a_column_with_a_matching_cell_and_a_matching_candidate(
    kernel, monkeypatch, lemmas, few_pairs
):
    monkeypatch.setattr(verification, "FEW_PAIRS", few_pairs)
    values = {
        "x1": (5, "S1", 1.0),
        "x2": (7, "S1", 2.0),
        "x3": (7, "S2", 90.0),
        "x4": (9, "S1", 91.0),
    }
    partition = partition_of(values)
    pairs = pairs_of_cells(partition, [(0, 5)], [(0, 7), (1, 7), (1, 9)], 2)
    counts, _ = verify(
        kernel, partition, query_of(partition, 0.5, 90.5), pairs, needed=1, lemmas=lemmas
    )
    assert counts == {"S1": 2, "S2": 1}


def test_a_column_fails_for_a_query_value_only_when_all_its_values_fail(kernel):
    """Its first two values fail for both query values; the later ones match."""
    values = {
        "x1": (3, "S1", 40.0),
        "x2": (3, "S1", 50.0),
        "x3": (5, "S1", 1.0),
        "x4": (9, "S1", 90.0),
    }
    partition = partition_of(values)
    pairs = pairs_of_cells(partition, [], [(row, cell) for row in (0, 1) for cell in (3, 5, 9)], 2)
    counts, _ = verify(kernel, partition, query_of(partition, 0.0, 90.0), pairs, needed=2)
    assert counts == {"S1": 2}


def test_values_added_in_parts_count_as_one_query(kernel):
    partition = partition_of(VALUES)
    query = query_of(partition, 0.0, 180.0)
    stats = SearchStats()
    verifier = Verifier(query, kernel, stats, min_count=2)
    first, second = query.take(torch.tensor([0])), query.take(torch.tensor([1]))
    verifier.add(first, pairs_of_cells(partition, [], CANDIDATES, 1))
    # All that q1 touches may still win with the help of q2: nothing is skipped.
    assert (stats.distances, stats.pairs_skipped, stats.columns_dead) == (5, 0, 0)
    assert found_by(verifier) == {}
    verifier.add(second, pairs_of_cells(partition, [(0, 16)], [], 1))
    # q1 is spent: whatever it did not match is dead, S1 can still win.
    assert found_by(verifier) == {"S1": 2}
    assert (stats.distances, stats.pairs_skipped, stats.columns_dead) == (5, 1, 3)


def test_early_acceptance_saves_distances(kernel, monkeypatch):
    monkeypatch.setattr(verification, "FEW_PAIRS", 0)
    values = {f"x{degree}": (degree + 1, "S1", float(3 * degree)) for degree in range(9)}
    partition = partition_of(values)
    query = query_of(partition, *(3.0 * degree for degree in range(9)))
    pairs = pairs_of_cells(partition, [], [(row, row + 1) for row in range(9)], 9)
    whole, all_work = verify(kernel, partition, query, pairs, needed=3)
    early, less_work = verify(kernel, partition, query, pairs, needed=3, decide=True)
    assert whole == {"S1": 9}
    # It must match three of any seven: after those it is decided.
    assert early == {"S1": 7}
    assert (less_work.distances, all_work.distances) == (7, 9)


@pytest.mark.parametrize("elements", [1, 6, 1 << 20])
@pytest.mark.parametrize("threads", [1, 2])
def test_pairs_decided_in_pieces(kernel, monkeypatch, elements, threads):
    monkeypatch.setattr(torch_kernel, "CHUNK_SIZE", elements)
    if kernel.name == "compiled":
        monkeypatch.setattr("pexeso.engine.kernels.compiled._PAIRS_A_TASK", elements)
    partition, stats = partition_of(VALUES), SearchStats()
    query = query_of(partition, 0.0, 180.0)
    everything = pairs_by_hand([(row, value) for row in range(2) for value in range(8)], 2)
    with threads_of_torch(threads):
        matches = kernel.matches(query, everything, stats)
    distances = metrics.distances(query.vectors[:, None], partition.vectors[None])
    assert listed(matches) == [
        tuple(pair) for pair in np.argwhere((distances <= 0.12).numpy()).tolist()
    ]
    assert len(matches) == 3
    assert (stats.distances, stats.bytes_read) == (16, 16 * 2 * 4)
    nothing = pairs_by_hand([], 2)
    assert listed(kernel.matches(query, nothing, stats)) == []
    assert stats.distances == 16
