"""Covers: smallest sets of tables that have all the columns that a plan must have.

A cover needs each of its tables for some column: without it that column is in none of the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from pexeso.acquisition.search.request import Terminal

MAX_COVERS = 64
"""Beyond it covers are not listed but one is built for each landmark, of tables that are near."""

Cover = tuple[str, ...]

_MAX_BRANCHES = 20_000
"""Sets that are tried when covers are listed: their number can be exponential in the columns."""


def minimal_covers(terminals: Sequence[Terminal], max_covers: int = MAX_COVERS) -> list[Cover]:
    """Return all minimal covers of the columns of a request.

    Parameters
    ----------
    terminals : sequence of Terminal
        The columns, each with the tables that it can be taken from.
    max_covers : int
        Where there are more, none is returned.

    Returns
    -------
    list of tuple of str
        Small ones first, then by name; empty if there are too many.

    Examples
    --------
    >>> minimal_covers([Terminal("a", ("x", "y")), Terminal("b", ("y", "z"))])
    [('y',), ('x', 'z')]
    """
    groups = sorted({frozenset(terminal.tables) for terminal in terminals}, key=_order)
    covers = set()
    for n, cover in enumerate(islice(_covers(groups, frozenset()), _MAX_BRANCHES + 1)):
        if n == _MAX_BRANCHES:
            return []
        if cover is not None:
            covers.add(tuple(sorted(cover)))
        if len(covers) > max_covers:
            return []
    return sorted(covers, key=lambda cover: (len(cover), cover))


def near_cover(terminals: Sequence[Terminal], distances: Mapping[str, float]) -> Cover:
    """Return a minimal cover of tables that are near, by a greedy choice.

    Each step takes the table of the least distance for each column that it adds.

    Parameters
    ----------
    terminals : sequence of Terminal
        The columns, each with the tables that it can be taken from.
    distances : mapping of str to float
        Of all these tables.

    Returns
    -------
    tuple of str
        By name.

    Examples
    --------
    >>> wanted = [Terminal("a", ("x", "y")), Terminal("b", ("y", "z"))]
    >>> near_cover(wanted, {"x": 0.1, "y": 0.5, "z": 0.2})
    ('x', 'z')
    """
    groups = {frozenset(terminal.tables) for terminal in terminals}
    chosen: set[str] = set()
    left = set(groups)
    while left:
        gains = Counter(table for group in left for table in group)
        best = min(gains, key=lambda name: ((distances[name] + 1e-9) / gains[name], name))
        chosen.add(best)
        left = {group for group in left if best not in group}
    # What was taken early can be needless in the end: far tables are the first to go.
    for table in sorted(chosen, key=lambda name: (-distances[name], name)):
        if all(group & (chosen - {table}) for group in groups):
            chosen.remove(table)
    return tuple(sorted(chosen))


def _covers(groups: Sequence[frozenset[str]], chosen: frozenset[str]) -> Iterator[Cover | None]:
    """Yield minimal covers that have the chosen tables, some twice, and None at each branch."""
    yield None
    left = [group for group in groups if not group & chosen]
    if not left:
        yield tuple(sorted(chosen))
        return
    for table in sorted(left[0]):
        more = chosen | {table}
        # A table that is needed for no column alone stays so whatever is added.
        if all(any(group & more == {member} for group in groups) for member in more):
            yield from _covers(groups, more)


def _order(group: frozenset[str]) -> tuple[int, list[str]]:
    return len(group), sorted(group)
