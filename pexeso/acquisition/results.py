"""Plans of purchases as users get them: tables, joins, what they are worth, and warnings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TextIO, overload

import pyarrow as pa

from pexeso.acquisition.evaluation import Evaluator
from pexeso.acquisition.plans import FoundPlan, FoundPlans, Join, JoinTree, PlanEstimates
from pexeso.lake.columns import spec_of
from pexeso.lake.frames.tables import AsTables, Tabular
from pexeso.results.column_matches import relation_of
from pexeso.runtime.formatting import facts_table, many, named, percent, plain

if TYPE_CHECKING:
    from pexeso.acquisition.graph import JoinGraph
    from pexeso.acquisition.searches import Market
    from pexeso.acquisition.tables import CodedColumns


FEW_ROWS = 30  # Rows of a join below which a warning says that they tell little

# A warning is given if a wanted column has more distinct values, as a share of its rows, or if a
# smaller share of the rows with what is to be explained is joined.
_MOSTLY = 0.5


_WORTH = (
    "price", "correlation", "share", "chance", "chance_share", "quality", "informativeness",
    "optimal", "gap",
)  # fmt: skip
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
        """Rows to rows: ``"1:1"``, ``"1:N"``, ``"N:1"``, ``"N:M"``, or ``"none"`` without keys."""
        if not self.keys:
            return "none"
        return relation_of(self.left_rows, self.right_rows)

    @property
    def fan_out(self) -> str | None:
        """What the join does to rows, in words; None where no row meets several others."""
        if self.relation == "N:M":
            return (
                f"keys repeat in both tables (up to {self.left_rows:,} and {self.right_rows:,} "
                "rows), so that rows multiply"
            )
        if self.relation == "1:N":
            return f"a row meets up to {self.right_rows:,} rows"
        return None

    @property
    def condition(self) -> str:
        """The join as one text: ``TABLE:COLUMN = TABLE:COLUMN``, several columns with commas."""
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

    # What `to_pandas` and the others tell of each table that is bought.
    fields = ("table", "columns", "price", "sql")

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
        """Return a plan that a search found."""
        tree, worth = plan.tree, plan.measures
        if evaluator is None:
            evaluator = Evaluator(graph, coded)
        path = tuple(_outwards(tree))
        order = {join.right: at for at, join in enumerate(path, 1)}
        bought, owned = [], []
        for name, columns in tree.columns.items():
            known = graph.tables[name]
            if known.owned:
                owned.append(PlanTable(name, columns, "", 0.0))
            else:
                sql = f"SELECT {', '.join(map(quoted, columns))} FROM {quoted(name)}"
                bought.append(PlanTable(name, columns, sql, known.price(columns)))
        return cls(
            tuple(sorted(bought, key=lambda plan_table: order.get(plan_table.table, 0))),
            tuple(owned),
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
        """How sure it is that no plan is better, in words."""
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
            **{name: getattr(self, name) for name in _WORTH},
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


def quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


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
        if join.relation == "N:M":
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


@dataclass(frozen=True, repr=False)
class AcquisitionResult(Tabular, Sequence[AcquisitionPlan]):
    """The plans found: none is beaten in price, quality and correlation; the most telling first.

    Without wanted columns it is one plan for each column, ranked by what it tells beyond chance.

    Attributes
    ----------
    query : dict
        Where the columns to be explained are from, and what is wanted.
    options : dict
        What was asked for, defaults filled in; None where there is no bound.
    plans : tuple of AcquisitionPlan
        At most `k`; empty if none is within the bounds.
    reason : str or None
        Why there is none, and what would help.
    best_seen : dict of str to float
        If there is none: the least ``price``, the least ``informativeness`` and the highest
        ``quality`` of plans that keep all other bounds, as far as such were met.
    unit : str
        Of correlations: ``"bits"``; of columns of numbers their own unit, as in ``"units of
        'salary'"``. Shares have none.
    n_more : int
        Plans found that are not among `plans`.
    stats : dict
        Tables and joins searched, plans formed and measured (without wanted columns: columns looked
        at, and plans for them measured), seconds, notes on what was left out, and which limit ended
        the search early ("" for none).
    """

    query: dict[str, Any]
    options: dict[str, Any]
    plans: tuple[AcquisitionPlan, ...]
    reason: str | None = None
    best_seen: dict[str, float] = field(default_factory=dict)
    unit: str = "bits"
    n_more: int = 0
    stats: dict[str, Any] = field(default_factory=dict, compare=False)

    # What `to_pandas` and `to_arrow` tell of each plan.
    fields = (
        "price", "correlation", "share", "chance", "quality", "informativeness", "rows", "optimal",
        "gap", "tables", "path", "want", "sql",
    )  # fmt: skip

    @classmethod
    def of(
        cls,
        answer: FoundPlans,
        market: Market,
        *,
        query: dict[str, Any],
        options: dict[str, Any],
        k: int | None = None,
        stats: dict[str, Any] | None = None,
    ) -> AcquisitionResult:
        """Return what a search found, told with the names of its graph."""
        graph = market.graph
        evaluator = Evaluator(graph, market.coded, rows_of=market.rows_of)
        plans = tuple(
            AcquisitionPlan.of(plan, graph, market.coded, evaluator) for plan in answer.plans[:k]
        )
        return cls(
            query,
            options,
            plans,
            None if answer.plans else answer.reason or "No plan is within the bounds.",
            {} if answer.plans else dict(answer.best_seen),
            _unit(answer.plans[0].tree, graph) if answer.plans else "bits",
            len(answer.plans) - len(plans),
            {
                "tables": len(graph.tables),
                "joins": len(graph.edges),
                "columns" if query.get("want", "") is None else "plans_formed": answer.n_trees,
                "plans_measured": answer.n_evaluated,
                "stopped": answer.stopped,
                "seconds": round(answer.seconds, 6),
                **(stats or {}),
            },
        )

    @overload
    def __getitem__(self, position: int) -> AcquisitionPlan: ...

    @overload
    def __getitem__(self, position: slice) -> tuple[AcquisitionPlan, ...]: ...

    def __getitem__(self, position: int | slice) -> AcquisitionPlan | tuple[AcquisitionPlan, ...]:
        return self.plans[position]

    def __len__(self) -> int:
        return len(self.plans)

    def _summary(self) -> str:
        if not self.plans:
            return f"no plan: {plain(self.reason or '', _MAX_REASON)}"
        best = self.plans[0]
        worth = f"{best.correlation:.4g} {plain(self.unit)} for a price of {best.price:g}"
        return f"{many(len(self.plans), 'plan')}, the best with {worth}"

    @property
    def n_wanted(self) -> int:
        """How many columns are wanted; 1 where any may be."""
        return len(self.query.get("want") or [""])

    def rows(self) -> list[dict[str, Any]]:
        """Return the values of `fields` for each plan; of tables, joins and SQL, lists of texts."""
        return [
            {
                **{name: getattr(plan, name) for name in self.fields if name not in _LISTS},
                "tables": [plan_table.table for plan_table in plan.tables],
                "path": [join.condition for join in plan.path],
                "want": [f"{table}:{spec_of([column])}" for table, column in plan.want],
                "sql": [plan_table.sql for plan_table in plan.tables],
            }
            for plan in self.plans
        ]

    def _field_types(self) -> dict[str, pa.DataType]:
        kinds = {"optimal": pa.bool_(), "rows": pa.int64()}
        kinds |= dict.fromkeys(_LISTS, pa.list_(pa.string()))
        return {name: kinds.get(name, pa.float64()) for name in self.fields}

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form that the command line prints."""
        return {
            "query": self.query,
            "options": self.options,
            "plans": [plan.to_dict() for plan in self.plans],
            "n_more": self.n_more,
            "unit": self.unit,
            **({} if self.plans else {"reason": self.reason, "best_seen": self.best_seen}),
            "stats": self.stats,
        }

    def to_html(self, stream: TextIO | None = None) -> str | None:
        """Create a self-contained HTML page: the plans, their joins drawn, prices, SQL."""
        from pexeso.results.pages.acquisition import acquisition_page
        from pexeso.results.pages.page import written

        return written(iter([acquisition_page(self.to_dict())]), stream)

    def _repr_html_(self) -> str:
        """Return what notebooks show: a small table of the plans."""
        from pexeso.results.pages.acquisition import acquisition_table

        return acquisition_table(self.to_dict())


_MAX_REASON = 240

_LISTS = ("tables", "path", "want", "sql")


def _unit(tree: JoinTree, graph: JoinGraph) -> str:
    explained = tree.have or tree.want
    numeric = [column for table, column in explained if column in graph.tables[table].numeric]
    if not numeric:
        return "bits"
    named = " and ".join(map(repr, numeric))
    # Cumulative entropies of numbers have the unit of the column.
    units = f"units of {named}"
    return units if len(numeric) == len(explained) else f"bits, and {units}"
