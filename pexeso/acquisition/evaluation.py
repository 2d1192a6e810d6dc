"""What a plan is worth, exactly, from counts: the join result is never formed.

`row_counts` tells how often each row of each table stands in the join result. The rows that are
correct for a dependency follow from these counts in the table that the dependency is about, and
the quality from counting once more without the others: linear in the rows of the tables. The
correlation needs how often values of different tables stand together (`joint_counts`).

A correlation has a bound that is cheaper: with X on one side of a join and Y on the other, both are
independent where the key J of the join is known, so that

    I(X,Y) <= min(H(X), H(Y), H(J)),

all in the join result, and the term of a numerical attribute a is at most h(a).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

import numpy as np

from pexeso.acquisition.graph import JoinGraph
from pexeso.acquisition.plans import Join, JoinTree, PlanMeasures
from pexeso.acquisition.quality import CodedDependency, Dependency, text_ranks
from pexeso.acquisition.row_counts import (
    Chosen,
    JointCounts,
    RowCounts,
    RowsOf,
    compact_codes,
    joint_counts,
)
from pexeso.acquisition.tables import CodedColumns
from pexeso.joins.measures import (
    bins_of,
    column_of,
    conditional_cumulative_entropy,
    cumulative_entropy,
    log2,
    numbers_of,
)
from pexeso.runtime.progress import checkpoint

Column = tuple[str, str]  # A table and a column of it

FEW = 1 << 12  # The logarithms of counts below it are looked up

# The logarithms of the numbers below `FEW`, 0 for 0.
FEW_LOGARITHMS = np.append(0.0, log2(np.arange(1, FEW)))


class OutOfTime(Exception):
    """A measure took longer than a search has."""


class Evaluator:
    def __init__(
        self,
        graph: JoinGraph,
        coded: CodedColumns | None = None,
        *,
        rows_of: RowsOf | None = None,
        deadline: float = math.inf,
    ) -> None:
        self._graph = graph
        self._coded = CodedColumns() if coded is None else coded
        self._rows = RowCounts(graph, self._coded, rows_of)
        self.deadline = deadline
        self._dependencies: dict[tuple[str, Dependency], CodedDependency] = {}
        self._numbers: dict[Column, CodedNumbers] = {}
        self._marginals: dict[tuple[tuple[int, ...], tuple[Column, ...]], tuple[float, float]] = {}
        self._entropies: dict[tuple[Column, bytes], float] = {}

    def bounds(self, tree: JoinTree) -> PlanMeasures:
        """Return all that is linear in the rows of the tables, and a bound on the correlation."""
        n_rows = self.n_rows(tree)
        return PlanMeasures(
            tree.price(self._graph),
            tree.weight,
            self.quality(tree),
            self._max_correlation(tree) if n_rows else 0.0,
            n_rows,
        )

    def n_rows(self, tree: JoinTree) -> int:
        return round(float(self._rows.of_rows(tree.joins, tree.tables[0]).sum()))

    def share_of_rows(self, tree: JoinTree, table: str) -> float:
        counts = self._rows.of_rows(tree.joins, table)
        return float(np.count_nonzero(counts) / len(counts)) if len(counts) else 0.0

    def quality(self, tree: JoinTree) -> float:
        """Return the quality of the join result: 0 without rows, 1 without dependencies."""
        root = tree.tables[0]
        n_rows = float(self._rows.of_rows(tree.joins, root).sum())
        if not n_rows:
            return 0.0
        masks = {}
        for table, columns in tree.columns.items():
            correct = self._correct_rows(tree, table, set(columns))
            if correct is not None:
                masks[table] = correct
        if not masks:
            return 1.0
        start = next(iter(masks)) if len(masks) == 1 else root
        return float(self._rows.of_rows(tree.joins, start, masks=masks).sum()) / n_rows

    def _correct_rows(self, tree: JoinTree, table: str, columns: set[str]) -> np.ndarray | None:
        """Return the rows that are correct for all dependencies within some columns.

        None where all rows are.
        """
        correct: np.ndarray | None = None
        counts: np.ndarray | None = None
        for dependency in self._graph.tables[table].dependencies:
            if not {*dependency.left, dependency.right} <= columns:
                continue
            coded = self._coded_dependency(table, dependency)
            if coded.holds:
                continue
            if counts is None:
                counts = self._rows.of_rows(tree.joins, table)
            rows = coded.correct(counts)
            correct = rows if correct is None else correct & rows
        return correct

    def _coded_dependency(self, table: str, dependency: Dependency) -> CodedDependency:
        key = (table, dependency)
        if key not in self._dependencies:
            market_table = self._graph.tables[table]
            columns = [self._coded.values(market_table, name).codes for name in dependency.left]
            left, _ = compact_codes(columns, market_table.n_rows)
            right = self._coded.values(market_table, dependency.right)
            ranks = text_ranks(right.values, dependency.right)[right.codes]
            self._dependencies[key] = CodedDependency.of(left, ranks)
        return self._dependencies[key]

    def correlation(self, tree: JoinTree) -> float:
        """Return the correlation of what the shopper has and wants in the join result.

        Without anything to explain it is that of the wanted columns with each other.
        """
        return math.fsum(
            self._correlation(tree, x, {column: self._y_codes(tree, column) for column in y})
            for x, y in _sides(tree)
        )

    def uncertainty(self, tree: JoinTree) -> float:
        """Return the correlation of a plan if it told all of what is to be explained.

        It is the entropy of the columns to be explained in the join result, and that of the wanted
        columns but the first if there are none; 0 without rows.
        """
        if not self.n_rows(tree):
            return 0.0
        return math.fsum(self._uncertainty(tree, x) for x, _ in _sides(tree))

    def _uncertainty(self, tree: JoinTree, x: Sequence[Column]) -> float:
        terms = [self._cumulative_entropy(tree, column) for column in x if self._is_numeric(column)]
        categorical = {column: self._values(column) for column in x if not self._is_numeric(column)}
        if categorical:
            part, n_rows = self._information(tree, categorical)
            terms.append(part / n_rows)
        return math.fsum(terms)

    def _correlation(
        self, tree: JoinTree, x: Sequence[Column], y_codes: dict[Column, np.ndarray]
    ) -> float:
        categorical = [column for column in x if not self._is_numeric(column)]
        terms = [
            self._numeric_term(tree, column, y_codes) for column in x if self._is_numeric(column)
        ]
        if categorical:
            x_codes = {column: self._values(column) for column in categorical}
            terms.append(self._mutual_information(tree, x_codes, y_codes))
        return math.fsum(terms)

    def _mutual_information(
        self, tree: JoinTree, x: dict[Column, np.ndarray], y: dict[Column, np.ndarray]
    ) -> float:
        of_x, of_y = self._information(tree, x), self._information(tree, y)
        both = self._information(tree, {**x, **y})  # a column of both has one code in both
        # Each is n log n - sum of c log c over the counts c of n rows.
        return max(of_x[0] + of_y[0] - both[0], 0.0) / both[1]

    def _information(
        self, tree: JoinTree, columns: dict[Column, np.ndarray]
    ) -> tuple[float, float]:
        """Return the entropy of some columns times the number of rows, and that number."""
        tables = sorted({table for table, _ in columns})
        if len(tables) == 1 and all(name for _, name in columns):
            key = (tree.join_ids, tuple(columns))
            if key not in self._marginals:
                self._marginals[key] = self._of_one_table(tree, tables[0], columns)
            return self._marginals[key]
        if len(tables) == 1:
            return self._of_one_table(tree, tables[0], columns)
        first = min(tables, key=lambda name: (self._graph.tables[name].n_rows, name))
        chosen = {
            name: [codes for (table, _), codes in columns.items() if table == name]
            for name in tables
        }
        sums, total = [], 0.0
        for block in self._blocks(tree, chosen, first):
            part, n_rows = sum_c_log_c(block.counts)
            sums.append(part)
            total += n_rows
        return total * log2_of(total) - math.fsum(sums), total

    def _of_one_table(
        self, tree: JoinTree, table: str, columns: dict[Column, np.ndarray]
    ) -> tuple[float, float]:
        counts = self._rows.of_rows(tree.joins, table)
        mask = counts > 0
        return information(_cell_counts([codes[mask] for codes in columns.values()], counts[mask]))

    def _blocks(self, tree: JoinTree, chosen: Chosen, first: str) -> Iterator[JointCounts]:
        for block in joint_counts(tree, chosen, first, self._rows):
            yield block
            checkpoint()
            if time.perf_counter() > self.deadline:
                raise OutOfTime("A correlation was not counted to its end.")

    def _numeric_term(self, tree: JoinTree, column: Column, y: dict[Column, np.ndarray]) -> float:
        tables = sorted({column[0], *(table for table, _ in y)})
        whole = self._cumulative_entropy(tree, column)
        if len(tables) == 1:
            numbers, counts = (
                self._numbers_of(column).numbers,
                self._rows.of_rows(tree.joins, tables[0]),
            )
            rows = np.flatnonzero((counts > 0) & ~np.isnan(numbers))
            of_y, _ = compact_codes([codes[rows] for codes in y.values()], len(rows))
            weights = counts[rows].astype(np.int64)
            left = conditional_cumulative_entropy(numbers[rows], of_y, weights)
            return max(whole - left, 0.0)
        values, codes = self._numbers_of(column).distinct, self._numbers_of(column).codes
        chosen = {
            name: [
                *(column_codes for (table, _), column_codes in y.items() if table == name),
                *([codes] if name == column[0] else []),
            ]
            for name in tables
        }
        # All entries of a value of Y are in one block, if a table of Y comes first.
        first = min({table for table, _ in y} - {column[0]})
        parts, total = [], 0
        for block in self._blocks(tree, chosen, first):
            x_codes = block.codes[column[0]].pop()
            known = ~np.isnan(values[x_codes])
            counts = block.counts[known].astype(np.int64)
            of_y = [array[known] for arrays in block.codes.values() for array in arrays]
            y_codes, _ = compact_codes(of_y, len(counts))
            n_rows = int(counts.sum())
            parts.append(
                conditional_cumulative_entropy(values[x_codes[known]], y_codes, counts) * n_rows
            )
            total += n_rows
        return max(whole - math.fsum(parts) / total, 0.0) if total else 0.0

    def _cumulative_entropy(self, tree: JoinTree, column: Column) -> float:
        counts = self._rows.of_rows(tree.joins, column[0])
        key = column, blake2b(counts, digest_size=16).digest()
        return self._entropies[key] if key in self._entropies else self._entropy(key, counts)

    def _entropy(self, key: tuple[Column, bytes], counts: np.ndarray) -> float:
        """Return the entropy of a column, cumulative if it is numerical; many plans share one.

        `key` is the column with a hash of the counts of its rows.
        """
        column = key[0]
        if self._is_numeric(column):
            numbers = self._numbers_of(column)
            weights = np.bincount(numbers.codes, counts, minlength=len(numbers.distinct))
            known = (weights > 0) & ~np.isnan(numbers.distinct)
            entropy = cumulative_entropy(numbers.distinct[known], weights[known].astype(np.int64))
        else:
            part, n_rows = information(np.bincount(self._values(column), counts))
            entropy = part / n_rows
        self._entropies[key] = entropy
        return entropy

    def ceiling(self, joins: tuple[Join, ...], have: Sequence[Column]) -> float:
        """Return a bound on the correlation of a plan that counts rows of what it explains alone.

        It is the sum of the entropies of the columns, negative where the plan has no rows. The
        joins are in the order that a plan has them in.
        """
        total = 0.0 if have else math.inf
        for column in have:
            counts = self._rows.of_rows(joins, column[0], keep=False)
            if not np.logical_or.reduce(counts):
                return -math.inf
            key = column, blake2b(counts, digest_size=16).digest()
            known = self._entropies.get(key)
            total += self._entropy(key, counts) if known is None else known
        return total

    def tighter_bound(self, tree: JoinTree) -> float:
        """Return a bound on the correlation that takes a pass over the rows of X and of Y.

        With X of one table and a join at it beyond which all of Y is, CORR(X,Y) is at most
        CORR(X,J), J the key of the join: X and Y are independent where J is known, and no term
        falls with more that is known. With Y of one table, I(X,Y) <= I(J,Y) in the same way.
        """
        if not tree.have:
            return math.inf
        x_tables, y_tables = ({table for table, _ in side} for side in (tree.have, tree.want))
        between = tree.joins_between(x_tables, y_tables)
        bounds = [math.inf]
        for join in between:
            ends = {join.left, join.right}
            if len(x_tables) == 1 and x_tables <= ends:
                key = {(min(x_tables), ""): self._rows.keys(join, min(x_tables))}
                bounds.append(self._correlation(tree, tree.have, key))
            if (
                len(y_tables) == 1
                and y_tables <= ends
                and not any(map(self._is_numeric, tree.have))
            ):
                table = min(y_tables)
                key = {(table, ""): self._rows.keys(join, table)}
                y = {column: self._y_codes(tree, column) for column in tree.want}
                bounds.append(self._mutual_information(tree, key, y))
        return min(bounds)

    def _max_correlation(self, tree: JoinTree) -> float:
        """Return a bound on the correlation of a plan that has rows."""
        return math.fsum(self._bound(tree, x, y) for x, y in _sides(tree))

    def _bound(self, tree: JoinTree, x: Sequence[Column], y: Sequence[Column]) -> float:
        terms = [self._cumulative_entropy(tree, column) for column in x if self._is_numeric(column)]
        categorical = {column: self._values(column) for column in x if not self._is_numeric(column)}
        if categorical:
            y_codes = {column: self._y_codes(tree, column) for column in y}
            sides = [self._marginal(tree, categorical), self._marginal(tree, y_codes)]
            between = tree.joins_between({name for name, _ in x}, {name for name, _ in y})
            terms.append(min([*sides, *(self._key_entropy(tree, join) for join in between)]))
        return math.fsum(terms)

    def _marginal(self, tree: JoinTree, columns: dict[Column, np.ndarray]) -> float:
        """Return the entropy of columns of one table, or the sum of those of several tables."""
        total = 0.0
        for name in sorted({table for table, _ in columns}):
            of_table = {key: codes for key, codes in columns.items() if key[0] == name}
            part, n_rows = self._information(tree, of_table)
            total += part / n_rows
        return total

    def _key_entropy(self, tree: JoinTree, join: Join) -> float:
        left = self._rows.of_keys(tree.joins, join, join.left)
        right = self._rows.of_keys(tree.joins, join, join.right)
        part, n_rows = information(left * right)
        return part / n_rows

    def _is_numeric(self, column: Column) -> bool:
        return column[1] in self._graph.tables[column[0]].numeric

    def _values(self, column: Column) -> np.ndarray:
        return self._coded.values(self._graph.tables[column[0]], column[1]).codes

    def _y_codes(self, tree: JoinTree, column: Column) -> np.ndarray:
        """Return the codes of a column of Y, numbers cut into bins as the join result has them."""
        if not self._is_numeric(column):
            return self._values(column)
        counts = self._rows.of_rows(tree.joins, column[0])
        return bins_of(self._numbers_of(column).numbers, counts)

    def _numbers_of(self, column: Column) -> CodedNumbers:
        if column not in self._numbers:
            table, name = self._graph.tables[column[0]], column[1]
            table.require(name)
            numbers = numbers_of(column_of(table.read([name]), name), name)
            self._numbers[column] = CodedNumbers.of(numbers)
        return self._numbers[column]


def _sides(tree: JoinTree) -> list[tuple[Sequence[Column], Sequence[Column]]]:
    """Return X and Y of a plan; without columns to be explained the wanted ones one by one."""
    if tree.have:
        return [(tree.have, tree.want)]
    return [(tree.want[i : i + 1], tree.want[:i]) for i in range(1, len(tree.want))]


def _cell_counts(columns: Sequence[np.ndarray], counts: np.ndarray) -> np.ndarray:
    """Return how often each combination of codes is there."""
    if len(columns) == 1:
        return np.bincount(columns[0], counts)
    return np.bincount(compact_codes(columns, len(counts))[0], counts)


def sum_c_log_c(counts: np.ndarray) -> tuple[float, float]:
    """Return the sum of c log c over counts, and their total. Equal counts are added at once."""
    if np.maximum.reduce(counts, initial=0) < FEW:
        times = np.bincount(counts.astype(np.int64))
        times[0] = 0
        sizes = times.nonzero()[0]
        times = times[sizes]
        logarithms = FEW_LOGARITHMS[sizes]
    else:
        sizes, times = np.unique(counts[counts > 0], return_counts=True)
        logarithms = log2(sizes)
    total = math.fsum((sizes * times).tolist())
    return math.fsum((sizes * logarithms * times).tolist()), total


@lru_cache(maxsize=1 << 12)
def log2_of(total: float) -> float:
    return float(log2([total])[0])


def information(counts: np.ndarray) -> tuple[float, float]:
    """Return the entropy of counts times their total, and the total."""
    part, total = sum_c_log_c(counts)
    return (total * log2_of(total) - part if total else 0.0), total


@dataclass(frozen=True, eq=False)
class CodedNumbers:
    numbers: np.ndarray
    distinct: np.ndarray
    codes: np.ndarray

    @classmethod
    def of(cls, numbers: np.ndarray) -> CodedNumbers:
        """Return a column of numbers, NaN where one is missing."""
        distinct, codes = np.unique(numbers, return_inverse=True)
        return cls(numbers, distinct, codes)
