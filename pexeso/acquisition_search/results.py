"""What a search for tables to buy or fetch answers: plans, best first, or why there is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO, overload

import pyarrow as pa

from pexeso.acquisition.search.evaluation import Evaluator
from pexeso.acquisition.search.plans import JoinTree
from pexeso.acquisition_search.plans import AcquisitionPlan, request_of
from pexeso.frames.results import Tabular
from pexeso.lake.key_columns import spec_of
from pexeso.runtime.formatting import plain
from pexeso.runtime.shown import many

if TYPE_CHECKING:
    from pexeso.acquisition.graph.joins import JoinGraph
    from pexeso.acquisition.search.found_plans import FoundPlans
    from pexeso.acquisition_search.market_search import Market


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

    fields = (
        "price", "correlation", "share", "chance", "quality", "informativeness", "rows", "optimal",
        "gap", "tables", "path", "want", "sql",
    )  # fmt: skip
    """What `to_pandas` and `to_arrow` tell of each plan."""

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
        """Return what a search found, told with the names of its graph.

        Parameters
        ----------
        answer : FoundPlans
        market : Market
            What was searched.
        query, options
            As the attributes.
        k : int, optional
            Most plans; all by default.
        stats : dict, optional
            Further ones.
        """
        graph, evaluator = market.graph, None
        if answer.plans:
            request = request_of(answer.plans[0].tree)
            evaluator = Evaluator(graph, request, market.coded, rows_of=market.rows_of)
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

    def __iter__(self) -> Iterator[AcquisitionPlan]:
        return iter(self.plans)

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
        """Create a self-contained HTML page: the plans, their joins drawn, prices, SQL.

        Parameters
        ----------
        stream : text stream, optional
            Open for writing as UTF-8; the page is written to it.

        Returns
        -------
        str or None
            The page, where no stream was given.
        """
        from pexeso.html.acquisition import acquisition_page
        from pexeso.html.page import written

        return written(iter([acquisition_page(self.to_dict())]), stream)

    def _repr_html_(self) -> str:
        """Return what notebooks show: a small table of the plans."""
        from pexeso.html.acquisition import acquisition_table

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
