"""Counting: the worked example of the paper with its two distances, and query values that must count once."""

import numpy as np
import pytest
import torch

from pexeso.engine import verification
from pexeso.engine.blocking import Blocks
from pexeso.engine.grid import build_grid
from pexeso.engine.lemmas import ALL_LEMMAS, Lemma
from pexeso.engine.partition import GridOptions, Partition
from pexeso.engine.postings import csr_from_pairs, transpose
from pexeso.engine.stats import SearchStats
from pexeso.engine.verification import Query, Threshold, Verifier

L7 = frozenset({Lemma.COLUMN_PRUNING})
# Cell, column and angle in degrees of each value, in cell order. The cells are named as in the paper; b2 is one that no query value reaches.
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
CELLS = sorted({cell for cell, _, _ in VALUES.values()})
NAMES = list(VALUES)


def on_circle(*degrees: float) -> torch.Tensor:
    angles = torch.tensor(degrees, dtype=torch.float64).deg2rad()
    return torch.stack([angles.cos(), angles.sin()], 1).float()


def partition_of(values: dict[str, tuple[int, str, float]]) -> Partition:
    """Make a partition by hand: one pivot at 0 degrees, cells as given."""
    codes = torch.tensor([cell for cell, _, _ in values.values()])
    vectors = on_circle(*(angle for _, _, angle in values.values()))
    mapped = (vectors - on_circle(0.0)).norm(dim=1, keepdim=True)
    n_levels = 5
    grid = build_grid(codes, mapped, n_levels)
    columns = torch.tensor([COLUMNS.index(column) for _, column, _ in values.values()])
    value_columns = csr_from_pairs(torch.arange(len(columns)), columns, len(columns))
    leaf = torch.repeat_interleave(torch.arange(len(grid.leaves)), grid.leaves.count)
    return Partition(
        options=GridOptions(n_pivots=1, n_levels=n_levels),
        vectors=vectors,
        mapped=mapped,
        pivots=on_circle(0.0),
        origin=mapped.amin(0),
        extent=mapped.amax(0) - mapped.amin(0),
        grid=grid,
        value_columns=value_columns,
        leaf_columns=csr_from_pairs(leaf, columns, len(grid.leaves)),
        column_values=transpose(value_columns, len(COLUMNS)),
    )


def query_of(partition: Partition, *degrees: float) -> Query:
    vectors = on_circle(*degrees)
    return Query(vectors, partition.map.map(vectors), torch.ones(len(degrees), dtype=torch.int64), len(degrees))


def blocks_of(partition: Partition, matching: list[tuple[int, int]], candidates: list[tuple[int, int]]) -> Blocks:
    """Make blocks from pairs of a query row and a cell's code."""
    place = {code: leaf for leaf, code in enumerate(partition.grid.leaves.codes.tolist())}
    lists = [
        torch.tensor(numbers, dtype=torch.int64)
        for pairs in (matching, candidates)
        for numbers in ([row for row, _ in pairs], [place[code] for _, code in pairs])
    ]
    return Blocks(*lists)


def verify(partition, query, blocks, needed, lemmas=L7, decide=False) -> tuple[Verifier, SearchStats]:
    stats = SearchStats()
    verifier = Verifier(partition, query, Threshold(0.12, 1e-5), lemmas, stats, lambda matched: needed, decide)
    verifier.add(query, blocks)
    return verifier, stats


@pytest.fixture
def measured(monkeypatch) -> list[tuple[int, str]]:
    """The pairs of a query row and a value whose distance was computed."""
    pairs: list[tuple[int, str]] = []
    original = verification.pair_distances

    def recording(partition, query, queries, values, stats):
        pairs.extend((row, NAMES[value]) for row, value in zip(queries.tolist(), values.tolist(), strict=True))
        return original(partition, query, queries, values, stats)

    monkeypatch.setattr(verification, "pair_distances", recording)
    return pairs


MATCHING = [(1, 16)]
CANDIDATES = [(0, 5), (0, 9), (0, 13), (0, 14)]


@pytest.mark.parametrize("decide", [False, True])
def test_the_worked_example_takes_exactly_two_distances(measured, decide):
    """Section 5 of the paper: q2 matches b16; q1 may match in b5, b9, b13 and b14; a column needs both."""
    partition = partition_of(VALUES)
    blocks = blocks_of(partition, MATCHING, CANDIDATES)
    verifier, stats = verify(partition, query_of(partition, 0.0, 180.0), blocks, needed=2, decide=decide)
    assert sorted(measured) == [(0, "x2"), (0, "x4")]
    assert stats.distances == 2
    found = [name for name, count in zip(COLUMNS, verifier.matched.tolist(), strict=True) if count >= 2]
    assert found == ["S1"]
    assert verifier.alive.tolist()[0]
    # S3 and S4 are given up before any distance: q2 has no cell in common with them.
    assert stats.columns_dead == 2


def test_the_worked_example_without_column_pruning_takes_every_candidate(measured):
    partition = partition_of(VALUES)
    blocks = blocks_of(partition, MATCHING, CANDIDATES)
    verifier, stats = verify(partition, query_of(partition, 0.0, 180.0), blocks, needed=2, lemmas=frozenset())
    assert sorted(measured) == [(0, "x2"), (0, "x4"), (0, "x5"), (0, "x6"), (0, "x7")]
    assert verifier.matched.tolist() == [2, 1, 0, 0]
    assert stats.columns_dead == 0


def test_with_all_filters_no_distance_is_taken_twice(measured):
    partition = partition_of(VALUES)
    blocks = blocks_of(partition, MATCHING, CANDIDATES)
    verifier, _ = verify(partition, query_of(partition, 0.0, 180.0), blocks, needed=2, lemmas=ALL_LEMMAS)
    assert len(measured) == len(set(measured)) <= 2
    assert verifier.matched.tolist()[0] == 2


@pytest.mark.parametrize("lemmas", [frozenset(), L7, ALL_LEMMAS])
def test_a_query_value_counts_once_for_a_column_with_two_values_that_match_it(lemmas):
    values = {"x1": (5, "S1", 1.0), "x2": (5, "S1", 1.001), "x3": (7, "S1", 2.0), "x4": (7, "S2", 2.0)}
    partition = partition_of(values)
    blocks = blocks_of(partition, [], [(0, 5), (0, 7)])
    verifier, _ = verify(partition, query_of(partition, 0.5), blocks, needed=1, lemmas=lemmas)
    assert verifier.matched.tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize("lemmas", [frozenset(), L7, ALL_LEMMAS])
@pytest.mark.parametrize("matrix_cells", [1, 1 << 20])
def test_a_query_value_counts_once_for_a_column_with_a_matching_cell_and_a_match_among_its_candidates(
    monkeypatch, lemmas, matrix_cells
):
    monkeypatch.setattr(verification, "MATRIX_CELLS", matrix_cells)
    values = {"x1": (5, "S1", 1.0), "x2": (7, "S1", 2.0), "x3": (7, "S2", 90.0), "x4": (9, "S1", 91.0)}
    partition = partition_of(values)
    blocks = blocks_of(partition, [(0, 5)], [(0, 7), (1, 7), (1, 9)])
    verifier, _ = verify(partition, query_of(partition, 0.5, 90.5), blocks, needed=1, lemmas=lemmas)
    assert verifier.matched.tolist() == [2, 1, 0, 0]


def test_a_column_fails_for_a_query_value_only_when_all_its_values_fail():
    """Its first two values fail for both query values; the later ones match."""
    values = {"x1": (3, "S1", 40.0), "x2": (3, "S1", 50.0), "x3": (5, "S1", 1.0), "x4": (9, "S1", 90.0)}
    partition = partition_of(values)
    blocks = blocks_of(partition, [], [(row, cell) for row in (0, 1) for cell in (3, 5, 9)])
    verifier, _ = verify(partition, query_of(partition, 0.0, 90.0), blocks, needed=2)
    assert verifier.matched.tolist()[0] == 2
    assert bool(verifier.alive[0])


def test_values_added_in_parts_count_as_one_query():
    partition = partition_of(VALUES)
    query = query_of(partition, 0.0, 180.0)
    stats = SearchStats()
    verifier = Verifier(partition, query, Threshold(0.12, 1e-5), L7, stats, lambda matched: 2)
    first, second = query.take(torch.tensor([0])), query.take(torch.tensor([1]))
    verifier.add(first, blocks_of(partition, [], [(0, 5), (0, 9), (0, 13), (0, 14)]))
    # q1 is spent: whatever it did not match is dead, S1 can still win.
    assert verifier.alive.tolist() == [True, False, False, False]
    verifier.add(second, blocks_of(partition, [(0, 16)], []))
    assert verifier.matched.tolist()[0] == 2
    assert verifier.alive.tolist() == [True, False, False, False]


def test_early_acceptance_saves_distances():
    values = {f"x{degree}": (degree + 1, "S1", float(3 * degree)) for degree in range(9)}
    partition = partition_of(values)
    degrees = [3.0 * degree for degree in range(9)]
    candidates = [(row, row + 1) for row in range(9)]
    query, blocks = query_of(partition, *degrees), blocks_of(partition, [], candidates)
    whole, all_work = verify(partition, query, blocks, needed=1)
    early, less_work = verify(partition, query, blocks, needed=1, decide=True)
    assert whole.matched.tolist()[0] == 9
    assert 1 <= early.matched.tolist()[0] <= 9
    assert less_work.distances <= all_work.distances == 9


@pytest.mark.parametrize("rows", [1, 3, 1 << 20])
def test_distances_of_pairs_in_pieces(monkeypatch, rows):
    monkeypatch.setattr(verification, "PAIRS_AT_ONCE", rows)
    partition, stats = partition_of(VALUES), SearchStats()
    query = query_of(partition, 0.0, 180.0)
    queries, values = torch.arange(2).repeat_interleave(8), torch.arange(8).repeat(2)
    found = verification.pair_distances(partition, query, queries, values, stats)
    expected = partition.metric.distances(query.vectors[queries], partition.vectors[values])
    assert torch.equal(found, expected)
    assert (stats.distances, stats.bytes_read) == (16, 16 * 2 * 4)
    np.testing.assert_array_equal(verification.pair_distances(partition, query, queries[:0], values[:0], stats), [])
