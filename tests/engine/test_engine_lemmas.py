"""Each filter on its own: none loses a true pair, none accepts a false one, and each of them does act."""

from itertools import combinations

import numpy as np
import pytest
import torch
from engine_lakes import METRIC_NAMES, Case, cases, draw_case, real_query, threshold_of
from hypothesis import given, settings
from hypothesis import strategies as st

from pexeso.engine.blocking import Blocks, block, query_grid
from pexeso.engine.lemmas import ALL_LEMMAS, Lemma, lemma_set
from pexeso.engine.partition import GridOptions
from pexeso.engine.stats import SearchStats
from pexeso.engine.verification import Verifier, match_pairs
from pexeso.errors import InputError

Pair = tuple[int, int]


def blocks_of(case: Case, *lemmas: Lemma, max_frontier: int = 1 << 20) -> tuple[Blocks, SearchStats]:
    query, _ = real_query(case)
    limit, stats = threshold_of(case, query), SearchStats()
    grid = query_grid(case.partition, query.mapped)
    return block(case.partition, grid, limit.tau, limit.slack, frozenset(lemmas), stats, max_frontier), stats


def pairs_of(blocks: Blocks) -> tuple[list[Pair], list[Pair]]:
    """The matching and the candidate pairs of a query value and a leaf."""
    matching = zip(blocks.matching_query.tolist(), blocks.matching_leaf.tolist(), strict=True)
    candidates = zip(blocks.candidate_query.tolist(), blocks.candidate_leaf.tolist(), strict=True)
    return list(matching), list(candidates)


def leaf_truth(case: Case) -> tuple[set[Pair], set[Pair], set[Pair]]:
    """All pairs of a query value and a leaf; those with some match; those where every value of the leaf matches."""
    _, truth = real_query(case)
    leaves = case.partition.grid.leaves
    every, some, whole = set(), set(), set()
    for leaf, (first, count) in enumerate(zip(leaves.first.tolist(), leaves.count.tolist(), strict=True)):
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


@settings(max_examples=80)
@given(cases(min_values=1), st.sampled_from([(), (Lemma.PIVOT_FILTERING,), (Lemma.PIVOT_MATCHING,)]))
def test_pivot_filtering_and_pivot_matching_alone_keep_exactly_the_true_pairs(case, lemmas):
    if not can_block(case):
        return
    query, truth = real_query(case)
    n, m = truth.shape
    queries, values = torch.arange(n).repeat_interleave(m), torch.arange(m).repeat(n)
    stats = SearchStats()
    found = match_pairs(case.partition, query, queries, values, threshold_of(case, query), frozenset(lemmas), stats)
    pairs = sorted(zip(found[0].tolist(), found[1].tolist(), strict=True))
    assert pairs == [tuple(pair) for pair in np.argwhere(truth).tolist()]
    assert stats.vectors_touched == n * m == stats.distances + stats.pruned_by_pivots + stats.matched_by_pivots


@settings(max_examples=80)
@given(cases(min_values=1), st.sampled_from((Lemma.VECTOR_CELL_FILTERING, Lemma.CELL_CELL_FILTERING)))
def test_filtering_of_cells_alone_loses_no_cell_with_a_match(case, lemma):
    if not can_block(case):
        return
    every, some, _ = leaf_truth(case)
    matching, candidates = pairs_of(blocks_of(case, lemma)[0])
    assert matching == []
    assert len(candidates) == len(set(candidates))
    assert some <= set(candidates) <= every


@settings(max_examples=80)
@given(cases(min_values=1), st.sampled_from((Lemma.VECTOR_CELL_MATCHING, Lemma.CELL_CELL_MATCHING)))
def test_matching_of_cells_alone_accepts_no_cell_with_a_value_that_does_not_match(case, lemma):
    if not can_block(case):
        return
    every, _, whole = leaf_truth(case)
    matching, candidates = pairs_of(blocks_of(case, lemma)[0])
    assert set(matching) <= whole
    assert sorted(matching + candidates) == sorted(every)


@settings(max_examples=60)
@given(cases(min_values=1), st.booleans())
def test_cells_are_pruned_or_accepted_wherever_their_boxes_suffice(case, by_cell):
    """A filter may be careful within the tolerance of coordinates, and nowhere else."""
    if not can_block(case):
        return
    query, _ = real_query(case)
    leaves, limit = case.partition.grid.leaves, threshold_of(case, query)
    own_lower, own_upper = query.mapped.clone(), query.mapped.clone()
    filtering, matching = Lemma.VECTOR_CELL_FILTERING, Lemma.VECTOR_CELL_MATCHING
    if by_cell:
        grid = query_grid(case.partition, query.mapped)
        own_lower[grid.order] = grid.grid.leaves.lower.repeat_interleave(grid.grid.leaves.count, 0)
        own_upper[grid.order] = grid.grid.leaves.upper.repeat_interleave(grid.grid.leaves.count, 0)
        filtering, matching = Lemma.CELL_CELL_FILTERING, Lemma.CELL_CELL_MATCHING
    gap = torch.maximum(leaves.lower - own_upper[:, None], own_lower[:, None] - leaves.upper).amax(2)
    far = (gap > case.tau + 2 * limit.slack).nonzero().tolist()
    near = ((own_upper[:, None] + leaves.upper).amin(2) < case.tau - 2 * limit.slack).nonzero().tolist()
    assert not {tuple(pair) for pair in far} & set(pairs_of(blocks_of(case, filtering)[0])[1])
    assert {tuple(pair) for pair in near} <= set(pairs_of(blocks_of(case, matching)[0])[0])


@settings(max_examples=50)
@given(cases(min_values=1))
def test_quick_browsing_alone_gives_every_pair_once(case):
    if not can_block(case):
        return
    every, _, _ = leaf_truth(case)
    matching, candidates = pairs_of(blocks_of(case, Lemma.QUICK_BROWSING)[0])
    assert matching == []
    assert sorted(candidates) == sorted(every)


@settings(max_examples=90)
@given(cases(min_values=1), st.sets(st.sampled_from(list(Lemma))), st.sampled_from((1, 7, 1 << 20)))
def test_no_pair_of_blocking_is_lost_or_doubled_or_in_both_lists(case, lemmas, max_frontier):
    if not can_block(case):
        return
    _, some, whole = leaf_truth(case)
    matching, candidates = pairs_of(blocks_of(case, *lemmas, max_frontier=max_frontier)[0])
    assert len(matching + candidates) == len(set(matching + candidates))
    assert some <= set(matching + candidates)
    assert set(matching) <= whole


@settings(max_examples=70)
@given(cases(min_values=1), st.integers(1, 6), st.sets(st.sampled_from(list(Lemma))))
def test_column_pruning_never_kills_a_column_that_has_the_count(case, needed, others):
    if not can_block(case):
        return
    query, _ = real_query(case)
    lemmas = frozenset({Lemma.COLUMN_PRUNING} | others)
    blocks, stats = blocks_of(case, *lemmas)
    verifier = Verifier(case.partition, query, threshold_of(case, query), lemmas, stats, lambda matched: needed)
    verifier.add(query, blocks)
    for column, count in enumerate(case.counts):
        if count >= needed:
            assert bool(verifier.alive[column])
            assert int(verifier.matched[column]) == count
        else:
            assert int(verifier.matched[column]) <= count


@pytest.mark.parametrize("metric", METRIC_NAMES)
def test_every_filter_acts_on_a_clustered_lake(metric):
    """Without this, filters that never act would pass every test above."""
    case = draw_case(
        np.random.default_rng(0), GridOptions(metric, n_pivots=3, n_levels=4), 5, 60, 12, 9, "clustered", "middle"
    )
    wide = {Lemma.VECTOR_CELL_MATCHING: 0.9, Lemma.CELL_CELL_MATCHING: 0.9, Lemma.PIVOT_MATCHING: 0.9}
    largest = case.distances.max()
    every = len(leaf_truth(case)[0])
    for lemma in Lemma:
        scaled = Case(**{**vars_of(case), "tau": float(largest * wide.get(lemma, 0.1))})
        query, truth = real_query(scaled)
        blocks, stats = blocks_of(scaled, lemma)
        verifier = Verifier(
            scaled.partition, query, threshold_of(scaled, query), frozenset({lemma}), stats, lambda matched: 5
        )
        verifier.add(query, blocks)
        acted = {
            Lemma.PIVOT_FILTERING: stats.pruned_by_pivots > truth.size // 2,
            Lemma.PIVOT_MATCHING: stats.matched_by_pivots > 0,
            Lemma.VECTOR_CELL_FILTERING: len(blocks.candidate_leaf) < every // 2,
            Lemma.CELL_CELL_FILTERING: len(blocks.candidate_leaf) < every // 2,
            Lemma.VECTOR_CELL_MATCHING: len(blocks.matching_leaf) > 0,
            Lemma.CELL_CELL_MATCHING: len(blocks.matching_leaf) > 0,
            Lemma.COLUMN_PRUNING: stats.columns_dead > 0,
            Lemma.QUICK_BROWSING: 0 < stats.value_cell_pairs < every,
        }
        assert acted[lemma], lemma


def vars_of(case: Case) -> dict[str, object]:
    names = ("vectors", "columns", "partition", "order", "query", "weights", "total", "tau")
    return {name: getattr(case, name) for name in names}


def test_lemma_names():
    assert lemma_set(["L1", "QB"]) == {Lemma.PIVOT_FILTERING, Lemma.QUICK_BROWSING}
    assert lemma_set([]) == frozenset()
    assert lemma_set(lemma.value for lemma in Lemma) == ALL_LEMMAS
    assert len(ALL_LEMMAS) == 8
    assert all(first != second for first, second in combinations(Lemma, 2))
    with pytest.raises(InputError) as raised:
        lemma_set(["L1", "L9", "l2"])
    message = "lemmas must be among L1, L2, L3, L4, L5, L6, L7, QB. Got 'L9', 'l2' instead."
    assert str(raised.value) == message
