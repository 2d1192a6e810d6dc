"""Which tables hold the rows of which, by comparing all rows of all pairs as plain Python tuples.

Slow and simple, to judge what is fast. Rows are kept in memory as tuples, which suits lakes of some
tens of megabytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from tests.redundancy.row_contents import Content, Contents, Family, Token

Pairs = dict[tuple[str, str], float]


def compatible(ours: Family, theirs: Family) -> bool:
    """Return whether values of two families can be equal at all."""
    if "null" in (ours, theirs) or ours == theirs:
        return True
    if isinstance(ours, tuple) and isinstance(theirs, tuple):
        if ours[0] != theirs[0] or len(ours) != len(theirs):
            return False
        if ours[0] == "struct":
            return all(
                our_name == their_name and compatible(our_family, their_family)
                for (our_name, our_family), (their_name, their_family) in zip(
                    ours[1:], theirs[1:], strict=True
                )
            )
        return all(map(compatible, ours[1:], theirs[1:]))
    return {ours, theirs} == {"int", "decimal"} if isinstance(ours, str) else False


def containment(
    lake: Contents,
    *,
    semantics: str = "set",
    row_count_gate: bool = True,
    min_containment: float = 1.0,
) -> Pairs:
    """Return all pairs of tables of which one holds the rows of the other."""
    bag = semantics == "bag"
    pairs: Pairs = {}
    for tokens, children in _by_schema(lake.tables).items():
        counts: dict[str, Counter[tuple[Any, ...]]] = {}
        for parent, wide in lake.tables.items():
            if not tokens <= wide.columns.keys():
                continue
            fitting = [
                child
                for child in children
                if child != parent and _comparable(lake.tables[child], wide, row_count_gate)
            ]
            if not fitting:
                continue
            # A parent of the same columns is a child as well: its rows are counted once.
            held: Collection[tuple[Any, ...]]
            if parent in children:
                held = _counted(lake.tables, parent, tokens, counts)
            else:
                held = Counter(_rows(wide, tokens)) if bag else set(_rows(wide, tokens))
            for child in fitting:
                n_rows = lake.tables[child].n_rows
                counted = _counted(lake.tables, child, tokens, counts)
                share = _share(counted, held, n_rows, bag, min_containment)
                if share >= min_containment:
                    pairs[parent, child] = share
    return pairs


def _by_schema(tables: Mapping[str, Content]) -> dict[frozenset[Token], list[str]]:
    groups: dict[frozenset[Token], list[str]] = {}
    for name, content in tables.items():
        groups.setdefault(frozenset(content.columns), []).append(name)
    return groups


def _comparable(child: Content, parent: Content, row_count_gate: bool) -> bool:
    if row_count_gate and child.n_rows > parent.n_rows:
        return False
    return all(
        compatible(family, parent.families[token]) for token, family in child.families.items()
    )


def _rows(content: Content, tokens: Collection[Token]) -> list[tuple[Any, ...]]:
    ordered = sorted(tokens, key=repr)
    return list(zip(*(content.columns[token] for token in ordered), strict=True))


def _counted(
    tables: Mapping[str, Content],
    name: str,
    tokens: Collection[Token],
    counts: dict[str, Counter[tuple[Any, ...]]],
) -> Counter[tuple[Any, ...]]:
    if name not in counts:
        counts[name] = Counter(_rows(tables[name], tokens))
    return counts[name]


def _share(
    rows: Counter[tuple[Any, ...]], held: Any, n_rows: int, bag: bool, min_containment: float
) -> float:
    if not n_rows:
        return 1.0
    if min_containment == 1:
        # `all` and `<=` end at the first row that is missing.
        if bag:
            return float(all(held[row] >= times for row, times in rows.items()))
        return float(rows.keys() <= (held.keys() if isinstance(held, Counter) else held))
    if bag:
        return sum(min(times, held[row]) for row, times in rows.items()) / n_rows
    return sum(times for row, times in rows.items() if row in held) / n_rows
