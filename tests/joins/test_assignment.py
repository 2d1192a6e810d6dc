"""Tests of one-to-one assignment against every possible assignment, on small graphs."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

from pexeso.joins import mapping as assignment
from pexeso.joins.mapping import assign, steps_of


def best_by_trying_all(links):
    """Return the largest number of links without a common end, and their least total distance."""
    queries = sorted({query for query, _ in links})
    best = (0, 0.0)
    for partners in product(
        *[[None, *(lake for query, lake in links if query == own_query)] for own_query in queries]
    ):
        chosen = [
            (query, lake) for query, lake in zip(queries, partners, strict=True) if lake is not None
        ]
        if len({lake for _, lake in chosen}) == len(chosen):
            total = sum(links[pair] for pair in chosen)
            best = min(best, (-len(chosen), total))
    return -best[0], best[1]


def run(links):
    pairs = list(links)
    query, lake = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1))
    chosen = assign(query, lake, np.array([links[pair] for pair in pairs], dtype=np.float64))
    return [pair for pair, is_chosen in zip(pairs, chosen, strict=True) if is_chosen]


def check(links):
    chosen = run(links)
    assert len({query for query, _ in chosen}) == len({lake for _, lake in chosen}) == len(chosen)
    n_best, min_total = best_by_trying_all(links)
    assert len(chosen) == n_best
    assert sum(links[pair] for pair in chosen) == pytest.approx(min_total, abs=1e-9)


ends = st.tuples(st.integers(0, 4), st.integers(0, 4))
distances = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0, 1))


@settings(max_examples=examples(50))
@given(st.dictionaries(ends, distances, max_size=14))
def test_as_many_links_as_possible_and_of_these_the_least_total(links):
    check(links)


@settings(max_examples=examples(50))
@given(
    st.dictionaries(ends, st.sampled_from([0.0, 0.5]), max_size=14),
    st.randoms(use_true_random=False),
)
def test_the_order_in_which_links_come_does_not_matter(links, random):
    mixed = list(links)
    random.shuffle(mixed)
    assert sorted(run({pair: links[pair] for pair in mixed})) == sorted(run(links))


@settings(max_examples=examples(50))
@given(st.dictionaries(ends, distances, max_size=14))
def test_components_in_parcels_of_their_own_give_the_same(links):
    together = run(links)
    before = assignment.CHUNK_NODES
    assignment.CHUNK_NODES = 1
    try:
        assert run(links) == together
    finally:
        assignment.CHUNK_NODES = before


def test_a_second_match_is_worth_more_than_any_distance():
    # 0-0 alone would cost nothing; both values have a partner at a total of 2.
    assert run({(0, 0): 0.0, (0, 1): 1.0, (1, 0): 1.0}) == [(0, 1), (1, 0)]


def test_equal_totals_are_decided_by_the_order_of_values():
    assert run({(0, 1): 0.5, (0, 0): 0.5}) == [(0, 0)]
    assert run({(1, 0): 0.5, (0, 0): 0.5}) == [(0, 0)]


def test_no_links_no_choice():
    assert run({}) == []


def test_many_components_and_a_large_one_are_solved_together():
    rng = np.random.default_rng(3)
    # a component of two by two each: crossed links, 0.1 in the right choice, 0.2 in the wrong one
    n_small = 400
    blocks = np.repeat(np.arange(n_small) * 2, 4)
    query, lake = blocks + np.tile([0, 0, 1, 1], n_small), blocks + np.tile([0, 1, 0, 1], n_small)
    distance = np.tile([0.2, 0.1, 0.1, 0.2], n_small)
    n_large = 60
    large = 2 * n_small + np.arange(n_large)
    query = np.concatenate([query, np.repeat(large, n_large)])
    lake = np.concatenate([lake, np.tile(large, n_large)])
    dense = rng.random((n_large, n_large))
    distance = np.concatenate([distance, dense.ravel()])
    chosen = assign(query, lake, distance)
    assert chosen.sum() == 2 * n_small + n_large
    assert distance[chosen][: 2 * n_small].tolist() == [0.1] * (2 * n_small)
    from scipy.optimize import linear_sum_assignment

    assert distance[chosen][2 * n_small :].sum() == pytest.approx(
        dense[linear_sum_assignment(dense)].sum(), abs=1e-9
    )


@pytest.mark.parametrize("n_queries", [1, 2, 1000, 10**6, 10**9])
def test_costs_are_whole_numbers_that_float64_holds(n_queries):
    nobody = (n_queries + 1) * steps_of(n_queries)
    assert 2 * (nobody + 1) <= 2**53
    assert nobody > n_queries * steps_of(n_queries)
