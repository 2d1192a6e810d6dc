"""Tests of each filter alone: it loses no true pair, accepts no false pair, and takes effect."""

from itertools import combinations

import numpy as np
import pytest
import torch
from engine_lakes import (
    KERNELS,
    MAPS_AND_METRICS,
    METRICS,
    ROW_KERNELS,
    Case,
    cases,
    draw_case,
    kernel_named,
    listed,
    pairs_by_hand,
    real_query,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

from pexeso.engine.dense import verification
from pexeso.engine.dense.search import cell_candidates
from pexeso.engine.dense.verification import Verifier
from pexeso.engine.kernel import Kernel, Pairs
from pexeso.engine.maps import PivotMap, ProjectionMap
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.engine.published.walk import LeafPairs, Walk, block, grid_candidates, query_grid
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import ALL_LEMMAS, Lemma

Pair = tuple[int, int]


def leaf_pairs(
    case: Case, *lemmas: Lemma, max_frontier: int = 1 << 20
) -> tuple[LeafPairs, SearchStats]:
    """What blocking leaves, and its counters."""
    query, _ = real_query(case, frozenset(lemmas))
    grid, stats = query_grid(case.partition.cells, query.mapped), SearchStats()
    walk = Walk(case.partition.cells, case.partition.map, grid, query.threshold, stats)
    return block(walk, max_frontier), stats


def pairs_of(pairs: LeafPairs) -> tuple[list[Pair], list[Pair]]:
    """The matching and the candidate pairs of a query value and a leaf."""
    matching = zip(pairs.matching_query.tolist(), pairs.matching_leaf.tolist(), strict=True)
    candidates = zip(pairs.candidate_query.tolist(), pairs.candidate_leaf.tolist(), strict=True)
    return sorted(matching), sorted(candidates)


def row_pairs(case: Case, lemmas: frozenset[Lemma], kernel: Kernel) -> tuple[Pairs, SearchStats]:
    """The candidates that a kernel finds in blocks, or those of the grid."""
    query, _ = real_query(case, lemmas)
    stats = SearchStats()
    runs = list(cell_candidates(query, kernel, 1 << 24, stats))
    assert len(runs) == (len(query) > 0)
    return runs[0][1] if runs else pairs_by_hand([], 0), stats


def leaf_truth(case: Case) -> tuple[set[Pair], set[Pair], set[Pair]]:
    """Return all pairs of query value and leaf, those with a match, and those that match fully.

    A pair matches fully if every value of the leaf matches.
    """
    _, truth = real_query(case)
    leaves = case.partition.cells.grid.leaves
    every, some, whole = set(), set(), set()
    for leaf, (first, count) in enumerate(
        zip(leaves.first.tolist(), leaves.count.tolist(), strict=True)
    ):
        for row in range(len(truth)):
            matches = [bool(truth[row, value]) for value in range(first, first + count)]
            every.add((row, leaf))
            if any(matches):
                some.add((row, leaf))
            if all(matches):
                whole.add((row, leaf))
    return every, some, whole


def can_block(case: Case) -> bool:
    return bool(case.query.any()) and case.partition.n_values > 0


@pytest.mark.parametrize("kernel", ROW_KERNELS)
@settings(max_examples=examples(50))
@given(
    cases(min_values=1), st.sampled_from([(), (Lemma.PIVOT_FILTERING,), (Lemma.PIVOT_MATCHING,)])
)
def test_pivot_filtering_and_pivot_matching_alone_keep_exactly_the_true_pairs(kernel, case, lemmas):
    if not can_block(case):
        return
    kernel, lemmas = kernel_named(kernel), frozenset(lemmas)
    query, truth = real_query(case, lemmas)
    pairs, stats = row_pairs(case, lemmas, kernel)
    looked_at = stats.vectors_touched + (
        stats.matched_by_map if case.partition.options.cells == "blocks" else 0
    )
    assert looked_at == truth.size
    assert stats.candidates == len(pairs)
    assert stats.matched_by_map == int((pairs.rows < 0).sum())
    if Lemma.PIVOT_FILTERING not in lemmas:
        assert len(pairs) == truth.size
    matches = kernel.matches(query, pairs, stats)
    assert sorted(listed(matches)) == [tuple(pair) for pair in np.argwhere(truth).tolist()]
    assert stats.distances == stats.candidates - stats.matched_by_map


@settings(max_examples=examples(80))
@given(
    cases(min_values=1, cells=("grid",)),
    st.sampled_from((Lemma.VECTOR_CELL_MATCHING, Lemma.CELL_CELL_MATCHING)),
)
def test_matching_of_cells_alone_accepts_no_cell_with_a_value_that_does_not_match(case, lemma):
    if not can_block(case):
        return
    every, _, whole = leaf_truth(case)
    matching, candidates = pairs_of(leaf_pairs(case, lemma)[0])
    assert set(matching) <= whole
    assert sorted(matching + candidates) == sorted(every)


@settings(max_examples=examples(90))
@given(cases(min_values=1, cells=("grid",)), st.booleans())
def test_cells_are_pruned_or_accepted_wherever_their_boxes_suffice(case, by_cell):
    """A filter may be careful within the tolerance of coordinates, and nowhere else."""
    if not can_block(case):
        return
    query, _ = real_query(case)
    leaves, limit = case.partition.cells.grid.leaves, query.threshold
    own_lower, own_upper = query.mapped.clone(), query.mapped.clone()
    filtering, matching = Lemma.VECTOR_CELL_FILTERING, Lemma.VECTOR_CELL_MATCHING
    if by_cell:
        grid = query_grid(case.partition.cells, query.mapped)
        own_lower[grid.order] = grid.grid.leaves.lower.repeat_interleave(grid.grid.leaves.count, 0)
        own_upper[grid.order] = grid.grid.leaves.upper.repeat_interleave(grid.grid.leaves.count, 0)
        filtering, matching = Lemma.CELL_CELL_FILTERING, Lemma.CELL_CELL_MATCHING
    gaps = (
        torch.maximum(leaves.lower - own_upper[:, None], own_lower[:, None] - leaves.upper)
        .clamp(min=0)
        .double()
    )
    if isinstance(case.partition.map, PivotMap):
        upper_bounds = (own_upper[:, None] + leaves.upper).amin(2)
    else:
        # What the axes leave out may point anywhere: two such lengths add up.
        spread = torch.maximum(
            leaves.upper - own_lower[:, None], own_upper[:, None] - leaves.lower
        ).double()
        spread[:, :, -1] = own_upper[:, None, -1] + leaves.upper[:, -1]
        upper_bounds = spread.square().sum(2).sqrt()
    # Between two cells axes are looked at one by one; all of them together bound the distance of a
    # vector to a cell.
    together = isinstance(case.partition.map, ProjectionMap) and not by_cell
    lower_bounds = gaps.square().sum(2).sqrt() if together else gaps.amax(2)
    far = (lower_bounds > case.tau + 2 * limit.slack).nonzero().tolist()
    near = (upper_bounds < case.tau - 2 * limit.slack).nonzero().tolist()
    assert not {tuple(pair) for pair in far} & set(pairs_of(leaf_pairs(case, filtering)[0])[1])
    accepted = set(pairs_of(leaf_pairs(case, matching)[0])[0])
    if isinstance(case.partition.map, PivotMap) or not by_cell:
        assert {tuple(pair) for pair in near} <= accepted
    else:
        assert accepted == set()


@settings(max_examples=examples(50))
@given(cases(min_values=1, cells=("grid",)))
def test_quick_browsing_alone_gives_every_pair_once(case):
    if not can_block(case):
        return
    every, _, _ = leaf_truth(case)
    matching, candidates = pairs_of(leaf_pairs(case, Lemma.QUICK_BROWSING)[0])
    assert matching == []
    assert sorted(candidates) == sorted(every)


@settings(max_examples=examples(90))
@given(
    cases(min_values=1, cells=("grid",)),
    st.sets(st.sampled_from(list(Lemma))),
    st.sampled_from((1, 7, 1 << 20)),
)
def test_no_pair_of_blocking_is_lost_or_doubled_or_in_both_lists(case, lemmas, max_frontier):
    if not can_block(case):
        return
    _, some, whole = leaf_truth(case)
    matching, candidates = pairs_of(leaf_pairs(case, *lemmas, max_frontier=max_frontier)[0])
    assert len(matching + candidates) == len(set(matching + candidates))
    assert some <= set(matching + candidates)
    assert set(matching) <= whole


@settings(max_examples=examples(90))
@given(
    cases(min_values=1, cells=("grid",)), st.sets(st.sampled_from(list(Lemma))), st.integers(1, 60)
)
def test_no_row_of_a_grid_with_a_match_is_lost_or_surely_matches_without_one(
    case, lemmas, max_pairs
):
    if not can_block(case):
        return
    query, truth = real_query(case, frozenset(lemmas))
    runs = grid_candidates(query, max_pairs, SearchStats())
    rows = [(run.start + position, row) for run, pairs in runs for position, row in listed(pairs)]
    plain = [(position, max(row, ~row)) for position, row in rows]
    assert len(plain) == len(set(plain))
    assert {tuple(pair) for pair in np.argwhere(truth).tolist()} <= set(plain)
    assert all(truth[position, ~row] for position, row in rows if row < 0)


@pytest.mark.parametrize("kernel", KERNELS)
@settings(max_examples=examples(50))
@given(cases(min_values=1), st.integers(1, 6), st.sets(st.sampled_from(list(Lemma))))
def test_column_pruning_never_kills_a_column_that_has_the_count(kernel, case, needed, others):
    if not can_block(case):
        return
    lemmas = frozenset({Lemma.COLUMN_PRUNING} | others)
    verifier, _ = verified(case, lemmas, kernel_named(kernel), needed)
    columns, counts = verifier.joinable_columns()
    assert dict(zip(columns.tolist(), counts.tolist(), strict=True)) == case.joinable(needed)


def verified(
    case: Case, lemmas: frozenset[Lemma], kernel: Kernel, needed: int
) -> tuple[Verifier, SearchStats]:
    query, _ = real_query(case, lemmas)
    pairs, stats = row_pairs(case, lemmas, kernel)
    verifier = Verifier(query, kernel, stats, min_count=needed)
    verifier.add(query, pairs)
    return verifier, stats


WIDE = {Lemma.VECTOR_CELL_MATCHING: 0.9, Lemma.CELL_CELL_MATCHING: 0.9, Lemma.PIVOT_MATCHING: 0.9}


def scaled(case: Case, fraction: float) -> Case:
    return Case(**{**vars_of(case), "tau": float(case.distances.max() * fraction)})


@pytest.mark.parametrize("kernel", ROW_KERNELS)
@pytest.mark.parametrize("metric", METRICS)
def test_every_filter_acts_on_a_clustered_lake(kernel, metric, monkeypatch):
    """Without this, filters that never act would pass every test above."""
    # Alone, Lemma 7 learns something only from one round to the next.
    monkeypatch.setattr(verification, "FEW_PAIRS", 0)
    options = PartitionLayoutOptions(metric, n_pivots=3, n_levels=4, cells="grid")
    lake = draw_case(np.random.default_rng(0), options, 5, 60, 12, 9, "clustered", "middle")
    every, kernel = len(leaf_truth(lake)[0]), kernel_named(kernel)
    for lemma in Lemma:
        case = scaled(lake, WIDE.get(lemma, 0.1))
        leaves, walk = leaf_pairs(case, lemma)
        pairs, filtered = row_pairs(case, frozenset({lemma}), kernel)
        _, stats = verified(case, frozenset({lemma}), kernel, 5)
        acted = {
            Lemma.PIVOT_FILTERING: len(pairs) < filtered.vectors_touched // 2,
            Lemma.PIVOT_MATCHING: filtered.matched_by_map > 0,
            Lemma.VECTOR_CELL_FILTERING: len(leaves.candidate_leaf) < every // 2,
            Lemma.CELL_CELL_FILTERING: len(leaves.candidate_leaf) < every // 2,
            Lemma.VECTOR_CELL_MATCHING: len(leaves.matching_leaf) > 0,
            Lemma.CELL_CELL_MATCHING: len(leaves.matching_leaf) > 0,
            Lemma.COLUMN_PRUNING: stats.columns_dead > 0 and stats.pairs_skipped > 0,
            Lemma.QUICK_BROWSING: 0 < len(leaves.candidate_leaf) == every
            and walk.box_pairs < without_browsing(case),
        }
        assert acted[lemma], lemma


def without_browsing(case: Case) -> int:
    return leaf_pairs(case)[1].box_pairs


BLOCK_FILTERS = tuple(
    (chosen, metric, lemma)
    for chosen, metric in MAPS_AND_METRICS
    for lemma in (
        Lemma.PIVOT_FILTERING,
        Lemma.VECTOR_CELL_FILTERING,
        Lemma.CELL_CELL_FILTERING,
        Lemma.VECTOR_CELL_MATCHING,
        Lemma.COLUMN_PRUNING,
    )
)


@pytest.mark.parametrize("kernel", ROW_KERNELS)
@pytest.mark.parametrize(("chosen", "metric", "lemma"), BLOCK_FILTERS)
def test_every_filter_acts_on_blocks_of_a_clustered_lake(
    kernel, chosen, metric, lemma, monkeypatch
):
    monkeypatch.setattr(verification, "FEW_PAIRS", 0)
    options = PartitionLayoutOptions(metric, map=chosen, n_pivots=3, n_axes=3, block_size=2)
    lake = draw_case(np.random.default_rng(0), options, 5, 90, 12, 9, "clustered", "middle")
    case, kernel = scaled(lake, WIDE.get(lemma, 0.1)), kernel_named(kernel)
    query, truth = real_query(case)
    pairs, filtered = row_pairs(case, frozenset({lemma}), kernel)
    if lemma is Lemma.PIVOT_FILTERING:
        assert filtered.vectors_touched == truth.size
        assert len(pairs) < truth.size // 2
    elif lemma in (Lemma.VECTOR_CELL_FILTERING, Lemma.CELL_CELL_FILTERING):
        assert filtered.candidate_pairs < len(query) * len(case.partition.blocks) * 2 // 3
        assert len(pairs) == filtered.vectors_touched < truth.size * 2 // 3
    elif lemma is Lemma.VECTOR_CELL_MATCHING:
        assert 0 < filtered.matched_by_map == int((pairs.rows < 0).sum())
    else:
        _, stats = verified(case, frozenset({lemma}), kernel, 5)
        assert stats.columns_dead > 0
        assert stats.pairs_skipped > 0


def vars_of(case: Case) -> dict[str, object]:
    names = ("vectors", "columns", "partition", "order", "query", "weights", "total", "tau")
    return {name: getattr(case, name) for name in names}


def test_lemma_names():
    assert {Lemma("L1"), Lemma("QB")} == {Lemma.PIVOT_FILTERING, Lemma.QUICK_BROWSING}
    assert len(ALL_LEMMAS) == 8
    assert all(first != second for first, second in combinations(Lemma, 2))
