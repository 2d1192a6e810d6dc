"""Plans measured on correlated samples of their tables, with 95 % intervals.

For each plan its tables are sampled by the keys of its joins (`key_hashes`): a row
is kept if all its keys are at positions up to the rate; joins with few keys are not thinned. A
search measures plans on the rows that are kept, and the plans that it finds get intervals from the
join of the samples (`sample_join`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.acquisition.graph import JoinGraph
from pexeso.acquisition.intervals import Estimate, correlation_estimate, quality_estimate
from pexeso.acquisition.key_hashes import (
    SMALL_DOMAIN,
    KeyTest,
    hash_positions,
    with_key_tokens,
)
from pexeso.acquisition.plans import FoundPlans, Join, JoinTree, PlanEstimates
from pexeso.acquisition.quality import Dependency
from pexeso.acquisition.row_counts import RowCounts
from pexeso.acquisition.tables import CodedColumns
from pexeso.errors import InputError
from pexeso.joins.measures import (
    MAX_ROWS,
    KeyMatches,
    column_of,
    exact_sum,
    join_counts,
    key_codes,
    merged_rows,
)
from pexeso.lake.frames.tables import take_cells
from pexeso.runtime.ranges import runs_within

_CHUNK = 1 << 21  # Pairs of rows that are drawn at once


@dataclass(frozen=True)
class TreeEdge:
    left: str
    right: str
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(sorted(self.names)))


@dataclass(frozen=True)
class JoinStep:
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
    """Return the join of samples along a tree, thinned where it grows too large.

    The paper joins the samples of a path one after the other, S12 = S1 join S2 and so on. Where an
    intermediate result has more than eta rows it is re-sampled at a fixed rate rho; the last one is
    not. Here the tables are those of a tree. The edges are taken breadth-first from a first table,
    neighbours in the order of their names, and a result is rows with counts over the columns that
    are required and the keys that are still needed, so equal rows are there once.

    The paper leaves open how. Each row of the result is kept with the probability rho, by itself;
    rows are drawn in the order of their values while pairs are formed, so neither the result before
    thinning nor its order matter. A fixed rho does not bound what is left; ``"cap"`` keeps eta /
    size.

    Memory: the samples; results of at most eta rows, or rho times their size, in fact their
    distinct rows; 100 MB for the pairs that are drawn at once; and the last result, which is not
    thinned.
    """
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
        joined.join(parent, table, names, later, rate, f"thinning {seed} {number}")
        joined.steps.append(JoinStep(table, size, rate, int(joined.counts.sum())))
    return joined.finished()


class _Result:
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
        rate: float,
        draw: str,
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
        if rate < 1:
            rows, counts = _thinned(
                merged_rows(rows, [*on, *left_names], counts),
                merged_rows(other, [*on, *other_names]),
                on,
                rate,
                draw,
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
    rate: float,
    draw: str,
) -> tuple[pa.Table, np.ndarray]:
    """Return a join of which each row is kept by itself, without forming the others.

    Of n equal rows a binomial number is kept. Rows are taken in the order of their values, which
    are distinct, so the draws do not depend on where a row stood.
    """
    (left_rows, left_counts), (right_rows, right_counts) = _by_values(*left), _by_values(*right)
    matches = KeyMatches(*key_codes(left_rows, right_rows, on))
    seed = int.from_bytes(blake2b(draw.encode(), digest_size=8).digest())
    generator = np.random.Generator(np.random.PCG64(seed))
    parts = [(np.zeros(0, np.int64),) * 3]
    for run in runs_within(matches.sizes, _CHUNK):
        one, two = matches.pairs(run.start, run.stop)
        drawn = generator.binomial(left_counts[one] * right_counts[two], rate)
        mask = drawn > 0
        parts.append((one[mask], two[mask], drawn[mask]))
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


def _breadth_first(
    tables: Mapping[str, pa.Table], edges: Sequence[TreeEdge], start: str
) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return the joins as (table that is there, table to join, columns)."""
    around: dict[str, list[tuple[str, tuple[str, ...]]]] = {name: [] for name in tables}
    for edge in edges:
        around[edge.left].append((edge.right, edge.names))
        around[edge.right].append((edge.left, edge.names))
    order, reached, waiting = [], {start}, [start]
    for table in waiting:
        for other, names in sorted(around[table]):
            if other not in reached:
                reached.add(other)
                waiting.append(other)
                order.append((table, other, names))
    return order


# Rows of an intermediate join of samples; beyond it rows are dropped at random, and the interval
# does not count.
MAX_JOINED = 5_000_000


def with_intervals(answer: FoundPlans, samples: SampledPlans) -> FoundPlans:
    """Return plans that were found on samples with their intervals.

    No plan of these is proved best: that holds for the samples alone, so `optimal` is False and the
    gap 1, unless the samples are all rows. Plans without columns to be explained have no interval.
    """
    plans = []
    for plan in answer.plans:
        if samples.share_of_rows(plan.tree) < 1:
            plan = replace(plan, optimal=False, gap=1.0)
        if plan.tree.have:
            plan = replace(plan, estimates=samples.estimates(plan.tree))
        plans.append(plan)
    return replace(answer, plans=tuple(plans))


class SampledPlans:
    """Samples of the tables of plans: which rows are in them, and intervals.

    Memory: 8 bytes a row for each table and set of join columns.
    """

    def __init__(
        self, graph: JoinGraph, rate: float, seed: int = 0, coded: CodedColumns | None = None
    ) -> None:
        self._graph, self.rate, self._seed = graph, rate, seed
        self._rows = RowCounts(graph, CodedColumns() if coded is None else coded)
        self._positions: dict[tuple[Join, str], np.ndarray] = {}

    def rate_of(self, join: Join) -> float:
        """Return the rate of a join: 1 where few keys are in both tables."""
        return 1.0 if join.join_set.n_keys <= SMALL_DOMAIN else self.rate

    def rows_of(self, tree: JoinTree, table: str) -> np.ndarray | None:
        mask: np.ndarray | None = None
        for join in tree.joins_at.get(table, ()):
            if self.rate_of(join) < 1:
                passing = self._positions_of(join, table) <= self.rate_of(join)  # NaN does not
                mask = passing if mask is None else mask & passing
        return mask

    def share_of_rows(self, tree: JoinTree) -> float:
        """Return the probability with which a row of the join result is in that of the samples."""
        tests = {self._names(join): self.rate_of(join) for join in tree.joins}
        return float(np.prod(list(tests.values()))) if tests else 1.0

    def estimates(self, tree: JoinTree) -> PlanEstimates:
        joined = self._joined(tree)
        tests = [KeyTest(self._names(join), self.rate_of(join)) for join in tree.joins]
        drawn = {
            "seed": self._seed,
            "key_columns": joined.key_columns,
            "unsampled": [self._unsampled(tree, join) for join in tree.joins],
        }
        correlation = correlation_estimate(
            joined.rows,
            joined.counts,
            tests,
            [_qualified(*column) for column in tree.have],
            [_qualified(*column) for column in tree.want],
            numeric=self._numeric(tree),
            **drawn,
        )
        dependencies = self._dependencies(tree)
        if dependencies:
            quality = quality_estimate(joined.rows, joined.counts, tests, dependencies, **drawn)
        else:
            quality = Estimate(1.0, 1.0, 1.0, 0.0, 1.0)
        if joined.thinning < 1:
            reason = f"an intermediate join of the samples has more than {MAX_JOINED:,} rows"
            correlation, quality = (
                replace(figure, reliable=False, reason=reason) for figure in (correlation, quality)
            )
        return PlanEstimates(correlation, quality, joined.n_rows)

    def _unsampled(self, tree: JoinTree, join: Join) -> float:
        """Return the squares of the rows that keys of a join have which the samples lack.

        They are those that the keys would have in the join of the samples.
        """
        rate = self.rate_of(join)
        if rate == 1:
            return 0.0
        rows = self._rows.of_keys(tree.joins, join, join.left) * self._rows.of_keys(
            tree.joins, join, join.right
        )
        codes = self._rows.keys(join, join.left)
        lacking = np.zeros(len(rows), bool)
        lacking[codes] = self._positions_of(join, join.left) > rate  # equal for all rows of a key
        lacking[-1] = False
        return exact_sum((rows[lacking] * (self.share_of_rows(tree) / rate)) ** 2)

    def _joined(self, tree: JoinTree) -> SampledJoin:
        tables = {table: self._sample(tree, table) for table in tree.tables}
        edges = [TreeEdge(join.left, join.right, self._names(join)) for join in tree.joins]
        columns = {table: list(names) for table, names in tree.columns.items()}
        return sample_join(
            tables, edges, columns, eta=MAX_JOINED, rho="cap", seed=self._seed, keep_keys=True
        )

    def _sample(self, tree: JoinTree, table: str) -> pa.Table:
        """Return the sample of a table, its join columns under the names of the joins too."""
        rows = self._graph.tables[table].read(tree.columns[table])
        mask = self.rows_of(tree, table)
        if mask is not None:
            rows = rows.filter(pa.array(mask))
        for join in tree.joins_at.get(table, ()):
            for name, column in zip(self._names(join), join.columns_of(table), strict=True):
                if name not in rows.column_names:
                    rows = rows.append_column(name, rows.column(column))
        return rows

    def _names(self, join: Join) -> tuple[str, ...]:
        """Return the names by which the keys of a join are hashed, the same on both sides."""
        if self._graph.edge(join.left, join.right).natural:
            return join.join_set.left
        return tuple(
            f"{_qualified(join.left, left_column)} = {_qualified(join.right, right_column)}"
            for left_column, right_column in join.join_set.pairs
        )

    def _positions_of(self, join: Join, table: str) -> np.ndarray:
        key = (join, table)
        if key not in self._positions:
            market_table = self._graph.tables[table]
            columns = join.columns_of(table)
            rows = market_table.read(sorted(set(columns)))
            keys = [column_of(rows, column) for column in columns]
            named = pa.table(keys, names=list(self._names(join)))
            self._positions[key] = hash_positions(named, self._names(join), seed=self._seed)
        return self._positions[key]

    def _numeric(self, tree: JoinTree) -> list[str]:
        return [
            _qualified(table, column)
            for table, columns in tree.columns.items()
            for column in columns
            if column in self._graph.tables[table].numeric
        ]

    def _dependencies(self, tree: JoinTree) -> Sequence[Dependency]:
        return [
            Dependency(
                tuple(_qualified(table, column) for column in dependency.left),
                _qualified(table, dependency.right),
            )
            for table, columns in tree.columns.items()
            for dependency in self._graph.tables[table].dependencies
            if {*dependency.left, dependency.right} <= set(columns)
        ]


def _qualified(table: str, column: str) -> str:
    return f"{table}.{column}"
