"""Plans of purchases as users get them: tables, joins, what they are worth, and warnings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pexeso.acquisition.search.evaluation import Evaluator
from pexeso.acquisition.search.plans import Join, JoinTree
from pexeso.acquisition.search.request import AcquisitionRequest, Terminal
from pexeso.frames.results import AsTables
from pexeso.lake.key_columns import spec_of
from pexeso.runtime.formatting import percent
from pexeso.runtime.shown import facts_table, named

if TYPE_CHECKING:
    from pexeso.acquisition.graph.coded import CodedColumns
    from pexeso.acquisition.graph.joins import JoinGraph
    from pexeso.acquisition.search.found_plans import FoundPlan, PlanEstimates

FEW_ROWS = 30
"""Rows of a join below which a warning says that they tell little."""

_MOSTLY = 0.5
"""A warning is given if a wanted column has more distinct values, as a share of its rows, or if a
smaller share of the rows with what is to be explained is joined."""


_MEASURES = ("price", "correlation", "quality", "informativeness", "rows", "optimal", "gap")


@dataclass(frozen=True)
class PlanTable:
    """A projection of a table that a plan buys, or that it uses of a table of the user's.

    Attributes
    ----------
    table : str
        Its name: of a table of the lake its path there.
    columns : tuple of str
        By name.
    sql : str
        The statement that asks for it; empty for a table of the user's.
    price : float
        What it costs.
    """

    table: str
    columns: tuple[str, ...]
    sql: str
    price: float


@dataclass(frozen=True)
class PlanJoin:
    """A join of a plan, from the user's table or the first of the plan outwards.

    Attributes
    ----------
    left, right : str
        The tables; `left` is the nearer one.
    left_columns, right_columns : tuple of str
        ``left_columns[i]`` is equal to ``right_columns[i]``.
    informativeness : float
        From 0 to 1, smaller is better.
    keys : int
        Distinct keys that both tables have.
    left_rows, right_rows : int
        The most rows of one key that both have, in either table.
    """

    left: str
    left_columns: tuple[str, ...]
    right: str
    right_columns: tuple[str, ...]
    informativeness: float
    keys: int
    left_rows: int
    right_rows: int

    @classmethod
    def of(cls, join: Join, near: str) -> PlanJoin:
        """Return a join as seen from one of its tables."""
        join_set = join.join_set
        rows = {join.left: join_set.left_most, join.right: join_set.right_most}
        far = join.other(near)
        return cls(
            near,
            join.columns_of(near),
            far,
            join.columns_of(far),
            join_set.weight,
            join_set.n_keys,
            rows[near],
            rows[far],
        )

    @property
    def relation(self) -> str:
        """Rows to rows: ``"1:1"``, ``"1:n"``, ``"n:1"``, ``"n:m"``, or ``"none"`` without keys."""
        if not self.keys:
            return "none"
        if self.left_rows > 1 and self.right_rows > 1:
            return "n:m"
        return f"{'n' if self.left_rows > 1 else '1'}:{'n' if self.right_rows > 1 else '1'}"

    @property
    def fan_out(self) -> str | None:
        """What the join does to rows, in words; None where no row meets several others."""
        if self.relation == "n:m":
            return (
                f"keys repeat in both tables (up to {self.left_rows:,} and {self.right_rows:,} "
                "rows), so that rows multiply"
            )
        if self.relation == "1:n":
            return f"a row meets up to {self.right_rows:,} rows"
        return None

    @property
    def condition(self) -> str:
        """The join as one text: ``TABLE:COLUMN = TABLE:COLUMN``, several columns with commas.

        Examples
        --------
        >>> PlanJoin("a.csv", ("x", "y"), "b.csv", ("x", "z"), 0.0, 4, 1, 1).condition
        'a.csv:x,y = b.csv:x,z'
        """
        left, right = spec_of(self.left_columns), spec_of(self.right_columns)
        return f"{self.left}:{left} = {self.right}:{right}"

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form."""
        document = asdict(self)
        document |= {name: list(document[name]) for name in ("left_columns", "right_columns")}
        document |= {name: getattr(self, name) for name in ("relation", "fan_out", "condition")}
        return document


@dataclass(frozen=True, repr=False)
class AcquisitionPlan(AsTables):
    """Tables to buy or fetch, how they are joined, and what that is worth.

    Attributes
    ----------
    tables : tuple of PlanTable
        What is bought, in the order of `path`.
    own_tables : tuple of PlanTable
        What is used of the user's own table.
    path : tuple of PlanJoin
        Its joins, from the user's table outwards.
    have, want : tuple of (str, str)
        Table and column of what is to be explained, and of what explains it.
    price : float
        Of all purchases.
    correlation : float
        How much the wanted columns tell of those to be explained, in the rows of the join, in
        `AcquisitionResult.unit`.
    quality : float
        Share of the rows of the join that break no dependency of the tables, 0 to 1.
    informativeness : float
        Sum over the joins, smaller is better.
    rows : int
        Of the join.
    optimal : bool
        It is proved that no plan within the bounds that costs at most as much, with at least this
        quality, has a higher correlation.
    gap : float
        The share by which the correlation of such a plan could be higher; 0 where it is optimal, 1
        where nothing is known.
    warnings : tuple of str
        What may make the figures mislead.
    uncertainty : float
        What the correlation would be if it told all of the columns to be explained in the rows of
        the join.
    chance : float or None
        The correlation with the values of the wanted column shuffled; None where columns were
        asked for.
    estimates : PlanEstimates or None
        With 95 % intervals, where samples were asked for.
    """

    tables: tuple[PlanTable, ...]
    own_tables: tuple[PlanTable, ...]
    path: tuple[PlanJoin, ...]
    have: tuple[tuple[str, str], ...]
    want: tuple[tuple[str, str], ...]
    price: float
    correlation: float
    quality: float
    informativeness: float
    rows: int
    optimal: bool
    gap: float
    warnings: tuple[str, ...] = ()
    uncertainty: float = 0.0
    chance: float | None = None
    estimates: PlanEstimates | None = None

    fields = ("table", "columns", "price", "sql")
    """What `to_pandas` and the others tell of each table that is bought."""

    def _table_rows(self) -> list[dict[str, Any]]:
        return [{name: getattr(table, name) for name in self.fields} for table in self.tables]

    def _field_types(self) -> Mapping[str, pa.DataType]:
        texts = dict.fromkeys(("table", "sql"), pa.string())
        return {**texts, "columns": pa.list_(pa.string()), "price": pa.float64()}

    def _summary(self) -> str:
        worth = f"correlation {self.correlation:.4g} for a price of {self.price:g}"
        return f"{named([plan_table.table for plan_table in self.tables])}, {worth}"

    def _shown(self) -> tuple[list[str], list[list[Any]]]:
        return facts_table(
            {
                "tables": [plan_table.table for plan_table in self.tables],
                "joins": [join.condition for join in self.path],
                "wanted": [f"{table}:{spec_of([column])}" for table, column in self.want],
                **{name: getattr(self, name) for name in _MEASURES},
            }
        )

    @classmethod
    def of(
        cls,
        plan: FoundPlan,
        graph: JoinGraph,
        coded: CodedColumns,
        evaluator: Evaluator | None = None,
    ) -> AcquisitionPlan:
        """Return a plan that a search found.

        Parameters
        ----------
        plan : FoundPlan
        graph : JoinGraph
            That it was found in.
        coded : CodedColumns
            Reads the columns of the request, for the warnings.
        evaluator : Evaluator, optional
            What measured it; one over all rows if not given.
        """
        tree, worth = plan.tree, plan.measures
        if evaluator is None:
            evaluator = Evaluator(graph, request_of(tree), coded)
        path = tuple(_outwards(tree))
        order = {join.right: at for at, join in enumerate(path, 1)}
        bought = sorted(tree.purchases(graph), key=lambda purchase: order.get(purchase.table, 0))
        owned = [name for name in tree.tables if graph.tables[name].owned]
        return cls(
            tuple(PlanTable(deal.table, deal.columns, deal.sql, deal.price) for deal in bought),
            tuple(PlanTable(name, tree.columns[name], "", 0.0) for name in owned),
            path,
            tree.have,
            tree.want,
            worth.price,
            worth.correlation,
            worth.quality,
            worth.informativeness,
            worth.n_rows,
            plan.optimal,
            plan.gap,
            tuple(_warnings(tree, path, worth.n_rows, graph, coded, evaluator)),
            evaluator.uncertainty(tree),
            plan.chance,
            plan.estimates,
        )

    @property
    def share(self) -> float:
        """The correlation as a share of `uncertainty`, from 0 to 1."""
        return self._share_of(self.correlation)

    @property
    def chance_share(self) -> float | None:
        """`chance` as such a share."""
        return None if self.chance is None else self._share_of(self.chance)

    def _share_of(self, correlation: float) -> float:
        return min(correlation / self.uncertainty, 1.0) if self.uncertainty > 0 else 0.0

    @property
    def intervals(self) -> dict[str, dict[str, Any]] | None:
        """Estimates of correlation and quality with the ends of their intervals, by measure."""
        if self.estimates is None:
            return None
        estimates = {"correlation": self.estimates.correlation, "quality": self.estimates.quality}
        return {
            name: {
                "value": estimate.value,
                "low": estimate.low,
                "high": None if math.isinf(estimate.high) else estimate.high,
                "reliable": estimate.reliable,
                "reason": estimate.reason or None,
            }
            for name, estimate in estimates.items()
        }

    @property
    def proof(self) -> str:
        """How sure it is that no plan is better, in words.

        Examples
        --------
        >>> plan = AcquisitionPlan((), (), (), (), (), 0, 1, 1, 0, 9, False, 0.12)
        >>> plan.proof
        'within 12.0 % of the best'
        """
        if self.chance is not None:
            tried = "all plans" if self.optimal else "the plans tried"
            return f"best of {tried} for this column"
        if self.estimates is not None and not self.optimal:
            return "estimated from samples"
        if self.optimal:
            return "proved best"
        return "not proved" if self.gap >= 1 else f"within {percent(self.gap)} of the best"

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form."""
        return {
            "tables": [{**vars(table), "columns": list(table.columns)} for table in self.tables],
            "path": [join.to_dict() for join in self.path],
            "price": self.price,
            "correlation": self.correlation,
            "share": self.share,
            "chance": self.chance,
            "chance_share": self.chance_share,
            "quality": self.quality,
            "informativeness": self.informativeness,
            "optimal": self.optimal,
            "gap": self.gap,
            **({} if self.intervals is None else {"intervals": self.intervals}),
            "proof": self.proof,
            "rows": self.rows,
            "have": [{"table": table, "column": column} for table, column in self.have],
            "want": [{"table": table, "column": column} for table, column in self.want],
            "own_tables": [
                {"table": table.table, "columns": list(table.columns)} for table in self.own_tables
            ],
            "warnings": list(self.warnings),
        }


def request_of(tree: JoinTree) -> AcquisitionRequest:
    """Return the request without bounds for the columns of a plan."""
    have, want = (
        tuple(Terminal(column, (table,)) for table, column in side)
        for side in (tree.have, tree.want)
    )
    return AcquisitionRequest(have, want)


def _outwards(tree: JoinTree) -> Iterator[PlanJoin]:
    """Yield the joins from the first column of the request outwards, a path after the other."""
    root = (*tree.have, *tree.want)[0][0]
    beyond: dict[str, list[Join]] = {}
    for table, join in tree.rooted(root):
        if join is not None:
            beyond.setdefault(join.other(table), []).append(join)
    stack = [(root, join) for join in reversed(beyond.get(root, []))]
    while stack:
        near, join = stack.pop()
        far = join.other(near)
        yield PlanJoin.of(join, near)
        stack += [(far, next_join) for next_join in reversed(beyond.get(far, []))]


def _warnings(
    tree: JoinTree,
    path: Iterable[PlanJoin],
    n_rows: int,
    graph: JoinGraph,
    coded: CodedColumns,
    evaluator: Evaluator,
) -> Iterator[str]:
    for join in path:
        if join.relation == "n:m":
            yield f"In {join.condition} {join.fan_out}."
        if join.relation == "none":
            yield f"In {join.condition} no key matches."
    explained = (*tree.have, *tree.want)[0][0]
    share = evaluator.share_of_rows(tree, explained)
    if path and share < _MOSTLY:
        yield (
            f"Of the rows of {explained}, {percent(share)} are in the join: nothing is told of the "
            "others."
        )
    for table, column in (*tree.have, *tree.want):
        if len(coded.values(graph.tables[table], column).values) == 1:
            yield f"{table}:{spec_of([column])} has one value alone, which tells nothing."
    for table, column in tree.want:
        known = graph.tables[table]
        if column in known.numeric or known.n_rows < 2:
            continue
        n_distinct = len(coded.values(known, column).values)
        if n_distinct > _MOSTLY * known.n_rows:
            yield (
                f"{table}:{spec_of([column])} has {n_distinct:,} values in {known.n_rows:,} rows: "
                "with a value for nearly each row it seems to tell everything."
            )
    if n_rows < FEW_ROWS:
        yield (
            f"The join has {n_rows:,} row{'s' * (n_rows != 1)}: figures from so few rows say "
            "little of others."
        )
