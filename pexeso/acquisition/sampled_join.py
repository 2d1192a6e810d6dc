"""Joins of several samples whose intermediate results are thinned where they grow too large.

The paper joins the samples of a path one after the other, S12 = S1 join S2 and so on. Where an
intermediate result has more than eta rows it is re-sampled at a fixed rate rho; the last one is
not. Here the tables are those of a tree. The edges are taken breadth-first from a first table,
neighbours in the order of their names, and a result is rows with counts over the columns that are
asked for and the keys that are still needed, so equal rows are there once.

The paper leaves open how. Each row of the result is kept with the probability rho, by itself; rows
are drawn in the order of their values while pairs are formed, so neither the result before thinning
nor its order matter.

A fixed rho does not bound what is left; `rho="cap"` keeps eta / size.

Memory: the samples; results of at most eta rows, or rho times their size, in fact their distinct
rows; 100 MB for the pairs that are drawn at once; and the last result, which is not thinned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.acquisition.key_hashes import sorted_names, with_key_tokens
from pexeso.errors import ColumnNotFoundError, InputError
from pexeso.joins.measures.codes import MAX_ROWS, KeyMatches, join_counts, key_codes, merged_rows
from pexeso.lake.frames.beside import take_cells

_CHUNK = 1 << 21
"""Pairs of rows that are drawn at once."""


@dataclass(frozen=True)
class TreeEdge:
    """An edge of a tree of tables."""

    left: str
    right: str
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(sorted_names(self.names)))


@dataclass(frozen=True)
class JoinStep:
    """What happened at one join."""

    table: str
    size: int
    rate: float
    n_rows: int


@dataclass(frozen=True, eq=False)
class SampledJoin:
    """The join of samples along a tree."""

    rows: pa.Table
    counts: np.ndarray
    steps: list[JoinStep]
    key_columns: dict[tuple[str, ...], list[tuple[str, ...]]] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """Return the number of rows of the join, equal ones too."""
        return int(self.counts.sum())

    @property
    def thinning(self) -> float:
        """Return the product of the rates of thinning.

        The number of rows of the whole join is estimated without bias by `n_rows` over this, and
        over the product of the rates of the distinct tests of the samples.
        """
        return float(np.prod([step.rate for step in self.steps]))


def sample_join(
    tables: Mapping[str, pa.Table],
    edges: Sequence[TreeEdge],
    columns: Mapping[str, Sequence[str]],
    *,
    start: str | None = None,
    eta: int = 1_000_000,
    rho: float | str = 0.5,
    seed: int = 0,
    keep_keys: bool = False,
) -> SampledJoin:
    """Return the join of samples along a tree."""
    _check(tables, columns, eta, rho)
    start = min(tables) if start is None else start
    order = _breadth_first(tables, edges, start)
    joined = _Result(tables, edges, columns, start, keep_keys)
    for number, (parent, table, names) in enumerate(order):
        later = order[number + 1 :]
        size = joined.size_with(parent, table, names)
        if size > MAX_ROWS:
            raise InputError(f"A join must have {MAX_ROWS} rows at most. Take smaller samples.")
        rate = 1.0
        if size > eta and later:
            rate = min(1.0, eta / size) if rho == "cap" else float(rho)
        thinning = _Thinning(rate, _derived(seed, number))
        joined.join(parent, table, names, later, thinning)
        joined.steps.append(JoinStep(table, size, rate, int(joined.counts.sum())))
    return joined.finished()


@dataclass(frozen=True)
class _Thinning:
    rate: float
    seed: int


class _Result:
    """A join that grows table by table."""

    def __init__(
        self,
        tables: Mapping[str, pa.Table],
        edges: Sequence[TreeEdge],
        columns: Mapping[str, Sequence[str]],
        start: str,
        keep_keys: bool,
    ) -> None:
        self._keys: dict[str, set[str]] = {name: set() for name in tables}
        for edge in edges:
            self._keys[edge.left] |= set(edge.names)
            self._keys[edge.right] |= set(edge.names)
        self._columns = {name: list(dict.fromkeys(columns.get(name, ()))) for name in tables}
        self._tables = {name: self._qualified(name, table) for name, table in tables.items()}
        self._keep_keys = keep_keys
        self._alias = {(start, name): f"{start}.{name}" for name in self._keys[start]}
        self._of_edges: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
        self.rows, self.counts = merged_rows(self._tables[start], self._tables[start].column_names)
        self.steps: list[JoinStep] = []

    def _qualified(self, name: str, table: pa.Table) -> pa.Table:
        """Return the needed columns of a table, keys as tokens, under names of their own."""
        needed = sorted({*self._columns[name], *self._keys[name]})
        for column in needed:
            if table.column_names.count(column) != 1:
                raise ColumnNotFoundError(
                    f"The column {column!r} must be in the table {name!r} once. Columns: "
                    f"{table.column_names}."
                )
        table = with_key_tokens(table.select(needed), sorted(self._keys[name]))
        return table.rename_columns([f"{name}.{column}" for column in needed])

    def _sides(
        self, parent: str, table: str, names: Sequence[str]
    ) -> tuple[list[str], pa.Table, list[str]]:
        """Return the join columns, the further table with them, and its other columns."""
        on = [self._alias[parent, name] for name in names]
        aliases = dict(zip((f"{table}.{name}" for name in names), on, strict=True))
        other = self._tables[table]
        renamed = other.rename_columns([aliases.get(name, name) for name in other.column_names])
        return on, renamed, [name for name in other.column_names if name not in aliases]

    def size_with(self, parent: str, table: str, names: Sequence[str]) -> int:
        """Return the number of rows of the join with one more table."""
        on, other, _ = self._sides(parent, table, names)
        left, right = key_codes(self.rows, other, on)
        n_codes = max(left.max(initial=-1), right.max(initial=-1)) + 1
        of_left = np.bincount(left[left >= 0], self.counts[left >= 0], minlength=n_codes)
        of_right = np.bincount(right[right >= 0], minlength=n_codes)
        return int((of_left * of_right).sum())

    def join(
        self,
        parent: str,
        table: str,
        names: Sequence[str],
        later: Sequence[tuple[str, str, tuple[str, ...]]],
        thinning: _Thinning,
    ) -> None:
        """Join one more table, thinned, and drop the keys that are not needed any more."""
        on, other, other_names = self._sides(parent, table, names)
        for name in self._keys[table]:
            self._alias[table, name] = f"{table}.{name}"
        for name, column in zip(names, on, strict=True):
            self._alias[table, name] = column
        of_test = self._of_edges.setdefault(tuple(names), [])
        if tuple(on) not in of_test:
            of_test.append(tuple(on))
        left_names = [name for name in self.rows.column_names if name not in on]
        rows, counts = self.rows, self.counts
        if thinning.rate < 1:
            rows, counts = _thinned(
                merged_rows(rows, [*on, *left_names], counts),
                merged_rows(other, [*on, *other_names]),
                on,
                thinning,
            )
        else:
            options = {"left_names": left_names, "right_names": other_names}
            rows, counts = join_counts(rows, other, on, left_counts=counts, **options)
        needed = self._result_columns()
        # Keys of tables that are not joined yet come with them.
        needed |= {self._alias.get((at, name), "") for at, _, names in later for name in names}
        self.rows, self.counts = merged_rows(
            rows, [name for name in rows.column_names if name in needed], counts
        )

    def _result_columns(self) -> set[str]:
        """Return the columns of the result that are there so far."""
        names = {
            self._alias.get((name, column), f"{name}.{column}")
            for name, columns in self._columns.items()
            for column in columns
        }
        if self._keep_keys:
            names |= self._key_names()
        return names

    def _key_names(self) -> set[str]:
        return {name for keys in self._of_edges.values() for columns in keys for name in columns}

    def finished(self) -> SampledJoin:
        """Return the result with each column under the name of its own table."""
        content = {
            f"{name}.{column}": self._alias.get((name, column), f"{name}.{column}")
            for name in sorted(self._columns)
            for column in self._columns[name]
        }
        key_columns = {}
        if self._keep_keys:
            key_columns = dict(self._of_edges)
            content |= {name: name for name in sorted(self._key_names())}
        rows = pa.table({name: self.rows[column] for name, column in content.items()})
        return SampledJoin(rows, self.counts, self.steps, key_columns)


def _thinned(
    left: tuple[pa.Table, np.ndarray],
    right: tuple[pa.Table, np.ndarray],
    on: Sequence[str],
    thinning: _Thinning,
) -> tuple[pa.Table, np.ndarray]:
    """Return a join of which each row is kept by itself, without forming the others.

    Of n equal rows a binomial number is kept. Rows are taken in the order of their values, which
    are distinct, so the draws do not depend on where a row stood.
    """
    (left_rows, left_counts), (right_rows, right_counts) = _by_values(*left), _by_values(*right)
    matches = KeyMatches(*key_codes(left_rows, right_rows, on))
    ends = np.cumsum(matches.sizes)
    generator = np.random.Generator(np.random.PCG64(thinning.seed))
    parts = [(np.zeros(0, np.int64),) * 3]
    first = 0
    while first < len(ends):
        # As many left rows as have at most _CHUNK pairs, one at least.
        before = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, before + _CHUNK, side="right")), first + 1)
        one, two = matches.pairs(first, last)
        drawn = generator.binomial(left_counts[one] * right_counts[two], thinning.rate)
        mask = drawn > 0
        parts.append((one[mask], two[mask], drawn[mask]))
        first = last
    one, two, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
    result = take_cells(left_rows, pa.array(one))
    others = take_cells(right_rows, pa.array(two))
    for name in right_rows.column_names:
        if name not in on:
            result = result.append_column(name, others.column(name))
    return result, counts


def _by_values(rows: pa.Table, counts: np.ndarray) -> tuple[pa.Table, np.ndarray]:
    order = pc.sort_indices(rows, [(name, "ascending") for name in sorted(rows.column_names)])
    return rows.take(order), counts[order.to_numpy()]


def _derived(seed: int, number: int) -> int:
    """Return a seed for one join, which is none of the seeds of samples."""
    return int.from_bytes(blake2b(f"thinning {seed} {number}".encode(), digest_size=8).digest())


def _breadth_first(
    tables: Mapping[str, pa.Table], edges: Sequence[TreeEdge], start: str
) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return the joins as (table that is there, table to join, columns)."""
    around: dict[str, list[tuple[str, tuple[str, ...]]]] = {name: [] for name in tables}
    for edge in edges:
        if edge.left not in tables or edge.right not in tables:
            raise InputError(f"There is no table for an end of {edge}. Tables: {sorted(tables)}.")
        around[edge.left].append((edge.right, edge.names))
        around[edge.right].append((edge.left, edge.names))
    if start not in tables:
        raise InputError(f"There is no table {start!r} to start from. Tables: {sorted(tables)}.")
    order, reached, waiting = [], {start}, [start]
    for table in waiting:
        for other, names in sorted(around[table]):
            if other not in reached:
                reached.add(other)
                waiting.append(other)
                order.append((table, other, names))
    if len(order) != len(edges) or len(reached) != len(tables):
        raise InputError(
            f"{len(edges)} edges must connect {len(tables)} tables without a circle, got "
            f"{list(edges)}."
        )
    return order


def _check(
    tables: Mapping[str, pa.Table],
    columns: Iterable[str],
    eta: int,
    rho: float | str,
) -> None:
    if not tables:
        raise InputError("A join needs at least one table, got none.")
    if unknown := sorted(set(columns) - set(tables)):
        raise InputError(f"Columns are asked of {unknown}. Tables: {sorted(tables)}.")
    if eta < 1:
        raise InputError(f"eta must be 1 or more, got {eta}.")
    if rho != "cap" and (isinstance(rho, str) or not 0 < rho <= 1):
        raise InputError(f'rho must be above 0 and up to 1, or "cap", got {rho!r}.')
