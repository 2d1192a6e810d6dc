from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.dance_published.graphs import minimal_covers, near_cover
from pexeso.acquisition.plans import Terminal

quick = settings(derandomize=True, deadline=None, max_examples=100)
GROUPS = st.lists(st.sets(st.sampled_from("abcdef"), min_size=1), min_size=1, max_size=4)


def terminals_of(groups) -> list[Terminal]:
    return [Terminal(f"column {i}", tuple(sorted(group))) for i, group in enumerate(groups)]


def all_covers(groups) -> set[frozenset[str]]:
    """Return the sets of tables that a choice of one for each column makes."""
    return {frozenset(choice) for choice in product(*groups)}


def smallest(covers: set[frozenset[str]]) -> list[tuple[str, ...]]:
    kept = [tuple(sorted(one)) for one in covers if not any(other < one for other in covers)]
    return sorted(kept, key=lambda cover: (len(cover), cover))


@quick
@given(GROUPS)
def test_all_minimal_covers_are_found(groups):
    assert minimal_covers(terminals_of(groups)) == smallest(all_covers(groups))


def test_too_many_are_none():
    wanted = terminals_of([[f"t{i:02}" for i in range(9)], [f"u{i:02}" for i in range(8)]])
    assert len(minimal_covers(wanted, 72)) == 72
    assert minimal_covers(wanted) == []


def test_a_search_that_grows_without_end_gives_up():
    # 5**14 choices; a cover of few tables is among them, but not the first thing met.
    wanted = terminals_of([[f"{i}-{j}" for j in range(5)] for i in range(14)])
    assert minimal_covers(wanted, 10**9) == []


@quick
@given(GROUPS, st.lists(st.sampled_from([0, 0.1, 0.2, 0.7, 1.0]), min_size=6, max_size=6))
def test_a_near_cover_is_minimal(groups, distances):
    known = dict(zip("abcdef", distances, strict=True))
    assert near_cover(terminals_of(groups), known) in smallest(all_covers(groups))


def test_a_near_cover_takes_what_is_near_for_each_column_that_it_adds():
    wanted = terminals_of(["xy", "yz", "y"])
    assert near_cover(wanted, {"x": 0.1, "y": 0.9, "z": 0.1}) == ("y",)
    assert near_cover(terminals_of(["xy", "yz"]), {"x": 0.3, "y": 0.5, "z": 0.3}) == ("y",)
    assert near_cover(terminals_of(["xy", "yz"]), {"x": 0.2, "y": 0.5, "z": 0.2}) == ("x", "z")
    # At no distance at all the number of columns decides, then the name.
    assert near_cover(terminals_of(["xy", "yz"]), {"x": 0, "y": 0, "z": 0}) == ("y",)
    assert near_cover(terminals_of(["xy"]), {"y": 0, "x": 0}) == ("x",)
