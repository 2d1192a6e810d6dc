"""Plans measured on correlated samples of their tables, with 95 % intervals.

For each plan its tables are sampled by the keys of its joins (`key_hashes`): a row
is kept if all its keys are at positions up to the rate; joins with few keys are not thinned. A
search measures plans on the rows that are kept, and the plans that it finds get intervals from the
join of the samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from pexeso.acquisition.coded_columns import CodedColumns
from pexeso.acquisition.graph import JoinGraph
from pexeso.acquisition.intervals import Estimate, correlation_estimate, quality_estimate
from pexeso.acquisition.key_hashes import SMALL_DOMAIN, KeyTest, hash_positions
from pexeso.acquisition.plans import AcquisitionRequest, FoundPlans, Join, JoinTree, PlanEstimates
from pexeso.acquisition.quality import Dependency
from pexeso.acquisition.row_counts import RowCounts
from pexeso.acquisition.sampled_join import SampledJoin, TreeEdge, sample_join
from pexeso.errors import InputError
from pexeso.joins.measures.codes import column_of
from pexeso.joins.measures.entropies import exact_sum

MAX_JOINED = 5_000_000
"""Rows of an intermediate join of samples; beyond it rows are dropped at random, and the interval
does not count."""


def with_intervals(
    answer: FoundPlans, samples: SampledPlans, request: AcquisitionRequest
) -> FoundPlans:
    """Return plans that were found on samples with their intervals.

    No plan of these is proved best: that holds for the samples alone, so `optimal` is False and the
    gap 1, unless the samples are all rows. Plans without columns to be explained have no interval.
    """
    plans = []
    for plan in answer.plans:
        if samples.share_of_rows(plan.tree) < 1:
            plan = replace(plan, optimal=False, gap=1.0)
        if plan.tree.have:
            plan = replace(plan, estimates=samples.estimates(plan.tree, request))
        plans.append(plan)
    return replace(answer, plans=tuple(plans))


class SampledPlans:
    """Samples of the tables of plans: which rows are in them, and intervals.

    Memory: 8 bytes a row for each table and set of join columns.
    """

    def __init__(
        self, graph: JoinGraph, rate: float, seed: int = 0, coded: CodedColumns | None = None
    ) -> None:
        if not 0 < rate <= 1:
            raise InputError(f"The rate of a sample must be above 0 and up to 1, got {rate}.")
        self._graph, self.rate, self._seed = graph, rate, seed
        self._rows = RowCounts(graph, CodedColumns() if coded is None else coded)
        self._positions: dict[tuple[Join, str], np.ndarray] = {}

    def rate_of(self, join: Join) -> float:
        """Return the rate of a join: 1 where few keys are in both tables."""
        return 1.0 if join.join_set.n_keys <= SMALL_DOMAIN else self.rate

    def rows_of(self, tree: JoinTree, table: str) -> np.ndarray | None:
        """Return which rows of a table of a plan are in its sample; None for all."""
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

    def estimates(self, tree: JoinTree, request: AcquisitionRequest) -> PlanEstimates:
        """Return what the samples tell of a plan, with intervals."""
        if not tree.have:
            raise InputError("Intervals are those of a correlation with columns to be explained.")
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
        rows = self._rows.of_keys(tree, join, join.left) * self._rows.of_keys(
            tree, join, join.right
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
    """Return the name of a column in the join of samples."""
    return f"{table}.{column}"
