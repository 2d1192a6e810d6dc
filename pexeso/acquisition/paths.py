"""What columns at the end of a path of joins tell of columns at its start, over many paths.

A path has entries (x, row, count): how many rows of its join result have the value x at the start
and a row at the end. Paths that begin alike share them, and a column at the end is measured by
counting the entries by its cells, in whatever order these are. More entries than `MAX_ENTRIES` are
formed block by block, each with all entries of some x, and are not kept.

Memory: 24 bytes for each entry, of which up to half a gigabyte is kept.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pexeso.acquisition.evaluation import (
    FEW,
    FEW_LOGARITHMS,
    CodedNumbers,
    Column,
    OutOfTime,
    information,
    log2_of,
    sum_c_log_c,
)
from pexeso.acquisition.graph import JoinGraph
from pexeso.acquisition.plans import Join, JoinTree
from pexeso.acquisition.row_counts import MAX_BYTES, RowsOf, compact_codes
from pexeso.acquisition.tables import CodedColumns
from pexeso.joins.measures import (
    bins_of,
    column_of,
    conditional_cumulative_entropy,
    cumulative_entropy,
    numbers_of,
)
from pexeso.runtime.compiled import compiled
from pexeso.runtime.progress import checkpoint

loops = compiled("pexeso.acquisition.loops")

MAX_ENTRIES = 5_000_000

Entries = tuple[np.ndarray, np.ndarray, np.ndarray]  # x, ascending, rows and counts


@dataclass(frozen=True, eq=False)
class JoinStep:
    """A join as the keys of the rows of its near and its far table, -1 for none.

    The far rows of a key are ``rows[begins[key]:begins[key + 1]]``, `max_rows` at most; `keys` has
    the key of each of `rows`, and `ones` counts it.
    """

    near: np.ndarray
    far: np.ndarray
    begins: np.ndarray
    rows: np.ndarray
    keys: np.ndarray
    ones: np.ndarray
    max_rows: int
    n_bytes: int


@dataclass(eq=False)
class Path:
    """Joins from the start to a table, by columns of it, a join longer than its parent."""

    table: str
    join: Join | None = None
    parent: Path | None = None
    key: tuple = ()
    join_columns: tuple[str, ...] = ()
    longer: dict[int, Path] = field(default_factory=dict)
    step: JoinStep | None = None
    entries: dict[int, Entries] = field(default_factory=dict)
    # float64 (n,), or None before they are counted: how often each row of the table is in the join
    # result
    counts: np.ndarray | None = None
    n_rows: float = 0.0  # Their sum
    # For each part of X its entropy times the rows, or its cumulative entropy
    totals: list[float] = field(default_factory=list)


class Paths:
    def __init__(
        self,
        graph: JoinGraph,
        have: Sequence[Column],
        coded: CodedColumns,
        rows_of: RowsOf | None = None,
        deadline: float = math.inf,
    ) -> None:
        self._tables, self._coded, self._rows_of = graph.tables, coded, rows_of
        self._deadline, self.start = deadline, Path(have[0][0])
        self._bytes, self._keeping = 0, []
        self._steps: dict[tuple, JoinStep] = {}
        cells = [self.cells(column) for column in have]
        self._numbers = [CodedNumbers.of(numbers) for numbers, n in cells if not n]
        self._x = [numbers.codes for numbers in self._numbers]
        if len(self._x) < len(cells):
            n_rows = self._tables[self.start.table].n_rows
            self._x.append(compact_codes([codes for codes, n in cells if n], n_rows)[0])

    def cells(self, column: Column) -> tuple[np.ndarray, int]:
        """Return the numbers of a column and 0, or its codes and their number."""
        table, name = self._tables[column[0]], column[1]
        if name in table.numeric:
            return numbers_of(column_of(table.read([name]), name), name), 0
        coded = self._coded.values(table, name)
        return coded.codes.astype(np.int64), max(len(coded.values), 1)

    def path(self, joins: Iterable[Join]) -> Path:
        path = self.start
        for join in joins:
            longer = path.longer.get(id(join))
            if longer is None:
                far = join.right if path.table == join.left else join.left
                key = (path.table, far, join.join_set.pairs)
                chosen = join.join_set
                columns = chosen.left if far == join.left else chosen.right
                longer = Path(far, join, path, key, columns)
                path.longer[id(join)] = longer
            path = longer
        return path

    def share(self, path: Path) -> float:
        is_joined: Any = slice(None)
        while path.parent is not None:
            step = path.step or self._step(path)
            has_partner = np.zeros(len(step.begins), np.bool_)
            has_partner[step.far[is_joined]] = True
            has_partner[-1] = False
            is_joined = has_partner[step.near]
            path = path.parent
        return np.count_nonzero(is_joined) / len(is_joined) if len(is_joined) else 0.0

    def correlation(self, path: Path, y: tuple[np.ndarray, int]) -> float:
        """Return the correlation of X with a column of the last table, given by its cells."""
        if path.counts is None:
            self._count(path)
        counts, n_rows, totals = path.counts, path.n_rows, path.totals
        if not n_rows:
            return 0.0
        cells, n_codes = y
        if not n_codes:
            cells = bins_of(cells, counts)
            n_codes = int(np.maximum.reduce(cells)) + 1
        terms = []
        for term, total in enumerate(totals):
            entries = path.entries.get(term)
            blocks = [entries] if entries is not None else self._blocks(path, term)
            if term < len(self._numbers):
                terms.append(self._numeric_term(term, total, blocks, cells, n_codes))
                continue
            # This runs for each candidate and shuffle: it is one loop for both entropies.
            sums, of_y = [], None
            for x, rows, weights in blocks:
                n_few = int(min(n_rows + 1, FEW))
                pairs, times, of_codes, times_of_codes = loops.counted_pairs(
                    x, rows, weights, counts, cells, n_codes, n_few
                )
                if len(pairs):
                    sums.append(sum_c_log_c(pairs)[0])
                else:
                    sizes = times.nonzero()[0]
                    products = sizes * FEW_LOGARITHMS[sizes] * times[sizes]
                    sums.append(math.fsum(products.tolist()))
                if of_y is None and len(of_codes):
                    of_y = sum_c_log_c(of_codes)[0]
                elif of_y is None:
                    sizes = times_of_codes.nonzero()[0]
                    products = sizes * FEW_LOGARITHMS[sizes] * times_of_codes[sizes]
                    of_y = math.fsum(products.tolist())
            whole = n_rows * log2_of(n_rows)
            joint = whole - math.fsum(sums)
            terms.append(max(total + (whole - of_y) - joint, 0.0) / n_rows)
        return math.fsum(terms)

    def _numeric_term(
        self,
        term: int,
        whole: float,
        blocks: Iterable[Entries],
        cells: np.ndarray,
        n_codes: int,
    ) -> float:
        n_x, rows = len(self._numbers[term].distinct), np.arange(len(cells))
        of_y = cells, rows, np.ones(len(cells))
        parts = [loops.multiplied(block, of_y, (n_x, n_codes)) for block in blocks]
        x, y, counts = (
            parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
        )
        numbers = self._numbers[term].distinct[x]
        known = ~np.isnan(numbers)
        weights = counts[known].astype(np.int64)
        n_rows = int(np.add.reduce(weights))
        left = conditional_cumulative_entropy(numbers[known], y[known], weights) * n_rows
        return max(whole - left / n_rows, 0.0) if n_rows else 0.0

    def _count(self, path: Path) -> None:
        """Count the rows of the join result by rows of the last table, and by x."""
        totals = []
        for term, codes in enumerate(self._x):
            counts = np.zeros(self._tables[path.table].n_rows)
            x_counts = np.zeros(int(codes.max(initial=-1)) + 1)
            entries = self._entries(path, term)
            blocks = [entries] if entries is not None else self._blocks(path, term)
            for x, rows, weights in blocks:
                np.add.at(counts, rows, weights)
                np.add.at(x_counts, x, weights)
            if term < len(self._numbers):
                values = self._numbers[term].distinct
                known = (x_counts > 0) & ~np.isnan(values)
                totals.append(cumulative_entropy(values[known], x_counts[known].astype(np.int64)))
            else:
                totals.append(information(x_counts)[0])
        self._keep(path, counts.nbytes)
        path.counts, path.n_rows, path.totals = counts, float(np.add.reduce(counts)), totals

    def _entries(self, path: Path, term: int) -> Entries | None:
        """Return all entries of a path; None where they are too many."""
        entries = path.entries.get(term)
        if entries is None and path.parent is None:
            order = np.argsort(self._x[term], kind="stable")
            entries = path.entries[term] = self._x[term][order], order, np.ones(len(order))
        elif entries is None:
            nearer = path.parent.entries.get(term) or self._entries(path.parent, term)
            step = path.step or self._step(path)
            if nearer is None or not self._fits(nearer, step):
                return None
            entries = self._longer(nearer, step)
            self._keep(path, 3 * entries[0].nbytes)
            path.entries[term] = entries
            if time.perf_counter() > self._deadline:
                raise OutOfTime("A correlation was not counted to its end.")
        return entries

    def _longer(self, entries: Entries, step: JoinStep) -> Entries:
        """Return the entries of a path that is a join longer."""
        x, rows, counts = entries
        keys = step.near[rows]
        known = keys >= 0
        left = x[known], keys[known], counts[known]
        n_x = int(x[-1]) + 1 if len(x) else 0
        return loops.multiplied(left, (step.rows, step.keys, step.ones), (n_x, len(step.far)))

    def _fits(self, entries: Entries, step: JoinStep) -> bool:
        if len(entries[0]) * step.max_rows <= MAX_ENTRIES:
            return True
        x, rows, _ = entries
        return loops.end_of_block(x, rows, step.near, step.begins, 0, MAX_ENTRIES) == len(x)

    def _blocks(self, path: Path, term: int) -> Iterator[Entries]:
        """Yield the entries of a path in blocks of whole x."""
        entries = self._entries(path, term)
        if entries is not None:
            yield entries
            return
        step = path.step or self._step(path)
        for x, rows, weights in self._blocks(path.parent, term):
            begin = 0
            while begin < len(x):
                end = loops.end_of_block(x, rows, step.near, step.begins, begin, MAX_ENTRIES)
                part = x[begin:end], rows[begin:end], weights[begin:end]
                yield self._longer(part, step)
                checkpoint()
                if time.perf_counter() > self._deadline:
                    raise OutOfTime("A correlation was not counted to its end.")
                begin = end

    def _keep(self, path: Path, n_bytes: int) -> None:
        """Count what is kept of a path; where it is too much, all is forgotten but this."""
        self._bytes += n_bytes
        if self._bytes > MAX_BYTES:
            for other in self._keeping:
                if other is not path:
                    other.step, other.entries, other.counts = None, {}, None
            self._keeping, self._bytes, self._steps = [], n_bytes, {}
        self._keeping.append(path)

    def _step(self, path: Path) -> JoinStep:
        step = self._steps.get(path.key)
        if step is None:
            step = self._steps[path.key] = self._new_step(path)
            self._keep(path, step.n_bytes)
        path.step = step
        return step

    def _new_step(self, path: Path) -> JoinStep:
        join, near_table = path.join, path.parent.table
        tables = self._tables[join.left], self._tables[join.right]
        keys = self._coded.keys(*tables, join.join_set.pairs)
        near, far = (keys.left, keys.right) if near_table == join.left else (keys.right, keys.left)
        if self._rows_of is not None:
            chosen = self._rows_of(JoinTree.of([join], (), ()), near_table)
            near = near if chosen is None else np.where(chosen, near, -1)
        keyed = np.flatnonzero(far >= 0)
        begins, order = loops.ordered(far[keyed], keys.n_codes)
        rows, ones = keyed[order], np.ones(len(order))
        max_rows = int(np.maximum.reduce(begins[1:] - begins[:-1], initial=0))
        n_bytes = near.nbytes + far.nbytes + begins.nbytes + 3 * rows.nbytes
        return JoinStep(near, far, begins, rows, far[rows], ones, max_rows, n_bytes)
