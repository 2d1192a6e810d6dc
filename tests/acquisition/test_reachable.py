"""Tables on short paths between the ends of a request."""

from itertools import pairwise

import numpy as np
import pytest

from pexeso.acquisition import market_graph


def reachable(ends, neighbours, *, max_tables=100, max_joins=4, belongs=None):
    return market_graph.reachable(
        ends, neighbours, max_tables=max_tables, max_joins=max_joins, belongs=belongs
    )


def neighbours_in(edges):
    visited = []

    def neighbours(table):
        visited.append(table)
        return {ends: [("x", "x")] * number for ends, number in edges.items() if table in ends}

    return neighbours, visited


def path(*names):
    return {tuple(sorted(ends)): 1 for ends in pairwise(names)}


def test_tables_between_two_ends():
    edges = path("a", "b", "c", "d", "e") | path("b", "x", "y") | path("a", "z")
    neighbours, visited = neighbours_in(edges)
    reached = reachable([["a"], ["e"]], neighbours, max_joins=4)
    assert reached.tables == ("a", "b", "c", "d", "e")
    assert set(reached.pairs) == set(path("a", "b", "c", "d", "e"))
    assert sorted(visited) == sorted(["a", "b", "c", "d", "e", "x", "z"])  # two joins from an end
    assert (reached.n_looked_at, reached.n_waiting) == (7, 0)
    # A detour of one table more is within five joins, and not within four.
    detour = edges | path("b", "q", "r", "d")
    assert "q" not in reachable([["a"], ["e"]], neighbours_in(detour)[0], max_joins=4).tables
    assert "q" in reachable([["a"], ["e"]], neighbours_in(detour)[0], max_joins=5).tables


def test_one_end_has_all_within_reach():
    neighbours, _ = neighbours_in(path("a", "b", "c", "d") | path("a", "e"))
    assert reachable([["a"]], neighbours, max_joins=2).tables == ("a", "b", "c", "e")


def test_limits_take_the_nearest_and_those_that_share_most():
    edges = {("a", f"n{at}"): 1 + at % 3 for at in range(9)} | path("n2", "far")
    neighbours, visited = neighbours_in(edges)
    reached = reachable([["a"]], neighbours, max_tables=4)
    assert visited == ["a", "n2", "n5", "n8"]
    assert reached.tables == ("a", "n2", "n5", "n8")
    assert (reached.n_looked_at, reached.n_waiting) == (4, 7)


def test_ends_that_can_be_several_tables():
    edges = path("a", "b", "w1") | path("w2", "c") | path("a", "w3")
    neighbours, _ = neighbours_in(edges)
    reached = reachable(
        [["a"], ["w1", "w2"]],
        neighbours,
        belongs={1: frozenset(["w1", "w2", "w3"])},
    )
    assert reached.tables == ("a", "b", "w1", "w2", "w3")


@pytest.mark.parametrize("seed", range(8))
def test_kept_are_all_tables_of_short_paths(seed):
    random = np.random.default_rng(seed)
    names = [f"t{at:02}" for at in range(16)]
    edges = {tuple(sorted(map(str, random.choice(names, 2, replace=False)))): 1 for _ in range(20)}
    beside = {name: {other for ends in edges if name in ends for other in ends} for name in names}

    def paths(at, seen):
        if at == "t01":
            yield seen
        elif len(seen) < 5:
            for other in beside[at] - set(seen):
                yield from paths(other, [*seen, other])

    # None is on a dead end.
    on_paths = {name for route in paths("t00", ["t00"]) for name in route} | {"t00", "t01"}
    reached = reachable([["t00"], ["t01"]], neighbours_in(edges)[0], max_joins=4)
    assert on_paths <= set(reached.tables)
    assert set(reached.pairs) == {ends for ends in edges if set(ends) <= set(reached.tables)}
