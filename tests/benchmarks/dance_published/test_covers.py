from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.dance_published.graphs import minimal_covers
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
