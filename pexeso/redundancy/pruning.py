"""Edges of the schema graph refuted by types, numbers of rows and bounds of columns (R2D2: MMP).

Everything is worked out for a token at a time, on arrays over pairs of tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pexeso.redundancy.column_stats import ColumnStats
from pexeso.redundancy.schema_graph import SchemaGraph
from pexeso.redundancy.schema_tokens import Token
from pexeso.redundancy.type_families import NULL, compatible

GATES = ("types", "rows", "min_max")
"""In the order in which they are applied."""

_UNKNOWN = -1


@dataclass(frozen=True)
class Profile:
    """What pruning needs of a table.

    Attributes
    ----------
    n_rows : int or None
        None where it is not known.
    """

    columns: Mapping[Token, tuple[str, ColumnStats]]
    n_rows: int | None


@dataclass
class Pruned:
    """The edges that are left, and how many each gate removed.

    Attributes
    ----------
    parents, children : int64 (e,)
        Numbers of tables.
    """

    parents: np.ndarray
    children: np.ndarray
    removed: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _OfToken:
    """The columns of a token, by table: arrays over the tables that have it, ascending."""

    tables: np.ndarray
    family: np.ndarray
    fits: np.ndarray
    min: np.ndarray
    max: np.ndarray
    flags: dict[str, np.ndarray]
    null_count: np.ndarray
    nan: np.ndarray

    def places(self, tables: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.tables, tables)


_FLAGS = ("min_witness", "max_witness", "min_cover", "max_cover", "has_value", "all_null")


def prune(
    graph: SchemaGraph,
    profiles: Sequence[Profile],
    *,
    row_count_gate: bool = True,
    bounds: bool = True,
) -> Pruned:
    """Remove the edges that types, numbers of rows and bounds refute.

    Notes
    -----
    Memory is that of a block of edges and of the edges that are left.
    """
    of_token = _by_token(profiles)
    n_rows = np.array(
        [_UNKNOWN if profile.n_rows is None else profile.n_rows for profile in profiles]
    )
    removed = dict.fromkeys(GATES, 0)
    blocks: list[np.ndarray] = []
    for parents, children in graph.blocks():
        columns = [of_token[token] for token in profiles[children[0]].columns]
        for gate in GATES:
            if gate == "types":
                out = _differ_in_type(parents, children, columns)
            elif gate == "rows":
                ours, parent_counts = n_rows[children], n_rows[parents]
                out = (parent_counts >= 0) & (ours > parent_counts) & row_count_gate
            elif bounds:
                out = _refuted(parents, children, columns)
            else:
                break
            removed[gate] += int(out.sum())
            parents, children = parents[~out], children[~out]
        blocks.append(np.stack([parents, children]))
    pairs = np.concatenate([np.empty((2, 0), np.int64), *blocks], axis=1)
    order = np.lexsort((pairs[1], pairs[0]))
    return Pruned(pairs[0, order], pairs[1, order], removed)


def _by_token(profiles: Sequence[Profile]) -> dict[Token, _OfToken]:
    tables: dict[Token, list[int]] = {}
    for table, profile in enumerate(profiles):
        for token in profile.columns:
            tables.setdefault(token, []).append(table)
    return {
        token: _of_token(numbers, [profiles[table].columns[token] for table in numbers])
        for token, numbers in tables.items()
    }


def _of_token(tables: Sequence[int], columns: Sequence[tuple[str, ColumnStats]]) -> _OfToken:
    """Turn the statistics of the columns of one token into arrays; bounds become their ranks."""
    names = list(dict.fromkeys(name for name, _ in columns))
    number = {name: position for position, name in enumerate(names)}
    fits = np.array([[compatible(ours, other) for other in names] for ours in names])
    stats = [stat for _, stat in columns]
    family = np.array([number[name] for name, _ in columns])
    bounds = np.full((2, len(columns)), _UNKNOWN, np.int64)
    # One order for all types that can be compared; columns without values have no bounds.
    valued = np.array(names) != NULL
    for chosen in {tuple(np.flatnonzero(row & valued).tolist()) for row in fits[valued]}:
        rows = np.flatnonzero(np.isin(family, chosen))
        known = {
            value
            for row in rows.tolist()
            for value in (stats[row].min, stats[row].max)
            if value is not None
        }
        rank = {value: position for position, value in enumerate(sorted(known))}
        for row in rows.tolist():
            for which, value in enumerate((stats[row].min, stats[row].max)):
                if value is not None:
                    bounds[which, row] = rank[value]
    return _OfToken(
        np.array(tables, np.int64),
        family,
        fits,
        *bounds,
        {name: np.array([getattr(stat, name) for stat in stats], bool) for name in _FLAGS},
        np.array([_UNKNOWN if stat.null_count is None else stat.null_count for stat in stats]),
        np.array([_UNKNOWN if stat.nan is None else stat.nan for stat in stats], np.int8),
    )


def _differ_in_type(
    parents: np.ndarray, children: np.ndarray, columns: Sequence[_OfToken]
) -> np.ndarray:
    out = np.zeros(len(parents), bool)
    for column in columns:
        parent_places, ours = column.places(parents), column.places(children)
        out |= ~column.fits[column.family[ours], column.family[parent_places]]
    return out


def _refuted(parents: np.ndarray, children: np.ndarray, columns: Sequence[_OfToken]) -> np.ndarray:
    """Apply `pexeso.redundancy.column_stats.refutes` to the columns of all pairs."""
    out = np.zeros(len(parents), bool)
    for column in columns:
        parent_places, ours = column.places(parents), column.places(children)
        flags = column.flags
        valued = flags["has_value"][ours]
        out |= valued & flags["all_null"][parent_places]
        their_min, their_max = column.min[parent_places], column.max[parent_places]
        below = flags["min_cover"][parent_places] & (their_min >= 0)
        above = flags["max_cover"][parent_places] & (their_max >= 0)
        our_min, our_max = column.min[ours], column.max[ours]
        out |= below & flags["min_witness"][ours] & (our_min >= 0) & (our_min < their_min)
        out |= above & flags["max_witness"][ours] & (our_max >= 0) & (our_max > their_max)
        out |= below & valued & flags["max_cover"][ours] & (our_max >= 0) & (our_max < their_min)
        out |= above & valued & flags["min_cover"][ours] & (our_min >= 0) & (our_min > their_max)
        out |= (column.null_count[ours] > 0) & (column.null_count[parent_places] == 0)
        out |= (column.nan[ours] == 1) & (column.nan[parent_places] == 0)
    return out
