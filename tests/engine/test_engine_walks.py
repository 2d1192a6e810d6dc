"""The published walk: runs of query values within a limit, and the order of their rows."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from engine_lakes import Case, cases, draw_case, real_query
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

from pexeso.engine.kernel import Pairs
from pexeso.engine.kernels.compiled import loops
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.engine.published.walk import PAIRS_FOR_ONE, grid_candidates
from pexeso.engine.stats import SearchStats

MANY = 1 << 30
MATCH, SKIPPED = 1, 2  # as `decide` writes them
GRID = PartitionLayoutOptions(cells="grid", n_pivots=3, n_levels=4)


def runs_of(case: Case, max_pairs: int) -> tuple[list[tuple[slice, Pairs]], SearchStats]:
    query, _ = real_query(case)
    stats = SearchStats()
    return list(grid_candidates(query, max_pairs, stats)), stats


def lists_of(runs: list[tuple[slice, Pairs]]) -> list[list[int]]:
    """The rows of each query value, complements as they are, in order of the rows."""
    return [
        sorted(pairs.rows[begin:end].tolist(), key=lambda row: max(row, ~row))
        for _, pairs in runs
        for begin, end in pairwise(pairs.offsets.tolist())
    ]


@settings(max_examples=examples(80))
@given(cases(min_values=1, cells=("grid",)), st.sampled_from((1, 5, 60)))
def test_runs_hold_what_one_run_holds_and_no_more_than_the_limit(case, max_pairs):
    if not case.query.any() or not case.partition.n_values:
        return
    whole, counted = runs_of(case, MANY)
    assert len(whole) == 1
    runs, stats = runs_of(case, max_pairs)
    assert lists_of(runs) == lists_of(whole)
    assert [part.start for part, _ in runs] == [0, *(part.stop for part, _ in runs[:-1])]
    limit = max_pairs * PAIRS_FOR_ONE
    assert all(len(pairs) <= limit or len(pairs.offsets) == 2 for _, pairs in runs)
    assert stats.candidates == counted.candidates
    assert stats.matched_by_map == counted.matched_by_map


def large_case(seed: int, n_levels: int = 4, tau: str = "middle") -> Case:
    chosen = replace(GRID, n_levels=n_levels)
    return draw_case(np.random.default_rng(seed), chosen, 5, 900, 12, 40, "clustered", tau)


def test_query_values_are_not_parted_where_their_pairs_fit():
    case = large_case(3, n_levels=1, tau="paper")
    ((_, pairs),), stats = runs_of(case, MANY)
    assert stats.vectors_touched > 2 * len(pairs)
    runs, _ = runs_of(case, 2 * len(pairs) // PAIRS_FOR_ONE)
    assert len(runs) == 1
    runs, again = runs_of(case, len(pairs) // 3 // PAIRS_FOR_ONE)
    assert 4 <= len(runs) <= 8
    assert replace(again, seconds={}) == replace(stats, seconds={})


def test_loops_list_the_rows_of_a_query_value_in_their_order():
    case = large_case(3)
    ((_, pairs),), stats = runs_of(case, MANY)
    assert len(pairs) > 3_000
    assert stats.candidate_pairs > 1_000
    for begin, end in pairwise(pairs.offsets.tolist()):
        # Those that surely match need no vector, and may come first.
        some = pairs.rows[begin:end][pairs.rows[begin:end] >= 0]
        assert (some[1:] > some[:-1]).all()


@pytest.mark.parametrize("shuffled", [False, True])
def test_tiles_of_rows_decide_what_rows_one_by_one_decide(shuffled):
    case = large_case(4)
    query, truth = real_query(case)
    ((_, pairs),), _ = runs_of(case, MANY)
    offsets, rows = pairs.offsets.numpy(), pairs.rows.numpy().copy()
    if shuffled:
        for begin, end in pairwise(offsets.tolist()):
            np.random.default_rng(5).shuffle(rows[begin:end])
    csr = case.partition.value_columns
    lists = loops.PairLists(offsets, rows, csr.offsets.numpy(), csr.members.numpy())
    possible = np.ones(case.partition.n_columns, np.int64)
    possible[::2] = 0

    def states(pairs_a_turn: int, rows_a_tile: int, *, check: bool) -> tuple[np.ndarray, list]:
        states, work = np.full(len(rows), 9, np.uint8), np.zeros(4, np.int64)
        band = (case.tau**2 * 0.9, case.tau**2 * 1.1)
        loops.decide(
            *(0, len(query), np.arange(len(query)), lists, query.vectors.numpy()),
            *(case.partition.vectors.numpy(), case.tau, *band, check),
            *(
                possible,
                np.zeros_like(possible),
                1,
                1 << 30,
                states,
                work,
                pairs_a_turn,
                rows_a_tile,
            ),
        )
        return states, work.tolist()

    for check in (False, True):
        expected, work = states(1 << 30, 1, check=check)
        assert (SKIPPED in expected) == check
        for pairs_a_turn, rows_a_tile in ((1, 1), (1, 50), (4, 7)):
            tiled_states, same_work = states(pairs_a_turn, rows_a_tile, check=check)
            assert (tiled_states == expected).all()
            assert same_work == work
    owner = np.repeat(np.arange(len(query)), np.diff(offsets))
    expected, _ = states(1, 1, check=False)
    assert (truth[owner, np.where(rows < 0, ~rows, rows)] == (expected == MATCH)).all()
