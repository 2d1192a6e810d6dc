"""The published walk: runs of query values within a limit, by arrays and by loops alike."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from engine_lakes import Case, cases, draw_case, real_query, threshold_of
from hypothesis import given, settings
from hypothesis import strategies as st

from pexeso.engine.interface import Pairs
from pexeso.engine.layout.blocking import Walk, grid_candidates
from pexeso.engine.layout.grid_loops import CompiledWalk
from pexeso.engine.layout.options import PartitionLayoutOptions
from pexeso.engine.stats import SearchStats

MANY = 1 << 30
GRID = PartitionLayoutOptions(cells="grid", n_pivots=3, n_levels=4)


def runs_of(
    case: Case, walk_type: type[Walk], max_pairs: int
) -> tuple[list[tuple[slice, Pairs]], SearchStats]:
    query, _ = real_query(case)
    stats = SearchStats()
    arguments = (case.partition, query, threshold_of(case, query), max_pairs, stats, walk_type)
    return list(grid_candidates(*arguments)), stats


def lists_of(runs: list[tuple[slice, Pairs]]) -> list[list[int]]:
    """The rows of each query value, complements as they are, in order of the rows."""
    return [
        sorted(pairs.rows[begin:end].tolist(), key=lambda row: max(row, ~row))
        for _, pairs in runs
        for begin, end in pairwise(pairs.offsets.tolist())
    ]


@settings(max_examples=80)
@given(cases(min_values=1, cells=("grid",)), st.sampled_from((1, 5, 60)))
def test_runs_hold_what_one_run_holds_and_no_more_than_the_limit(case, max_pairs):
    if not case.query.any() or not case.partition.n_values:
        return
    outcomes = []
    by_loops = case.partition.options.map == "pivots"
    for walk_type in (Walk, CompiledWalk) if by_loops else (Walk,):
        whole, counted = runs_of(case, walk_type, MANY)
        assert len(whole) == 1
        outcomes.append((lists_of(whole), counted))
        runs, stats = runs_of(case, walk_type, max_pairs)
        assert lists_of(runs) == outcomes[-1][0]
        assert [part.start for part, _ in runs] == [0, *(part.stop for part, _ in runs[:-1])]
        limit = max_pairs * walk_type.pairs_for_one
        assert all(len(pairs) <= limit or len(pairs.offsets) == 2 for _, pairs in runs)
        assert stats.candidates == counted.candidates
        assert stats.matched_by_map == counted.matched_by_map
    assert all(outcome == outcomes[0] for outcome in outcomes)


def large_case(seed: int, n_levels: int = 4, tau: str = "middle") -> Case:
    chosen = replace(GRID, n_levels=n_levels)
    return draw_case(np.random.default_rng(seed), chosen, 5, 900, 12, 40, "clustered", tau)


@pytest.mark.parametrize("walk_type", [Walk, CompiledWalk])
def test_query_values_are_not_parted_where_their_pairs_fit(walk_type):
    case = large_case(3, n_levels=1, tau="paper")
    ((_, pairs),), stats = runs_of(case, walk_type, MANY)
    assert stats.vectors_touched > 2 * len(pairs)
    for_one = walk_type.pairs_for_one
    runs, _ = runs_of(case, walk_type, 2 * len(pairs) // for_one)
    assert len(runs) == 1
    runs, again = runs_of(case, walk_type, len(pairs) // 3 // for_one)
    assert 4 <= len(runs) <= 8
    assert replace(again, seconds={}) == replace(stats, seconds={})


def test_loops_list_the_rows_of_a_query_value_in_their_order():
    case = large_case(3)
    ((_, pairs),), stats = runs_of(case, CompiledWalk, MANY)
    assert len(pairs) > 3_000
    assert stats.candidate_pairs > 1_000
    for begin, end in pairwise(pairs.offsets.tolist()):
        # Those that surely match need no vector, and may come first.
        some = pairs.rows[begin:end][pairs.rows[begin:end] >= 0]
        assert (some[1:] > some[:-1]).all()


@pytest.mark.parametrize("shuffled", [False, True])
def test_tiles_of_rows_decide_what_rows_one_by_one_decide(shuffled, monkeypatch):
    counts = pytest.importorskip("pexeso.engine.kernels.numba.counts")
    case = large_case(4)
    query, truth = real_query(case)
    ((_, pairs),), _ = runs_of(case, CompiledWalk, MANY)
    offsets, rows = pairs.offsets.numpy(), pairs.rows.numpy().copy()
    if shuffled:
        for begin, end in pairwise(offsets.tolist()):
            np.random.default_rng(5).shuffle(rows[begin:end])
    csr = case.partition.value_columns
    possible = np.ones(case.partition.n_columns, np.int64)
    possible[::2] = 0

    def states(pairs_a_turn: int, rows_a_tile: int, *, check: bool) -> tuple[np.ndarray, list]:
        monkeypatch.setattr(counts, "PAIRS_A_TURN", pairs_a_turn)
        monkeypatch.setattr(counts, "ROWS_A_TILE", rows_a_tile)
        states, work = np.full(len(rows), 9, np.uint8), np.zeros(4, np.int64)
        band = (case.tau**2 * 0.9, case.tau**2 * 1.1)
        # The loop as Python runs it reads the numbers anew.
        counts.decide.py_func(
            *(0, len(query), np.arange(len(query)), offsets, rows, query.vectors.numpy()),
            *(case.partition.vectors.numpy(), counts.EUCLIDEAN, case.tau, *band, check),
            *(csr.offsets.numpy(), csr.members.numpy(), possible, np.zeros_like(possible)),
            *(1, 1 << 30, states, work),
        )
        return states, work.tolist()

    for check in (False, True):
        expected, work = states(1 << 30, 1, check=check)
        assert (counts.SKIPPED in expected) == check
        for pairs_a_turn, rows_a_tile in ((1, 1), (1, 50), (4, 7)):
            tiled_states, same_work = states(pairs_a_turn, rows_a_tile, check=check)
            assert (tiled_states == expected).all()
            assert same_work == work
    owner = np.repeat(np.arange(len(query)), np.diff(offsets))
    expected, _ = states(1, 1, check=False)
    assert (truth[owner, np.where(rows < 0, ~rows, rows)] == (expected == counts.MATCH)).all()
