"""Plans that a search has met: each is formed, priced and measured once.

Memory: a few kilobytes for each plan, of which a walk meets at most one at each step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import prod

from pexeso.acquisition.graph.joins import JoinGraph
from pexeso.acquisition.graph.lattice import MIN_COLUMNS
from pexeso.acquisition.search.plans import Join, JoinTree, PlanMeasures
from pexeso.acquisition.search.published.minimal_graphs import MinimalGraph
from pexeso.acquisition.search.request import AcquisitionRequest

Measure = Callable[[JoinTree], PlanMeasures]
"""Returns the measures of a plan; that is the expensive part of a search."""

SAME = 1e-12
"""Correlations that differ by less count as equal."""


@dataclass(eq=False)
class KnownPlan:
    """A plan, with its measures once they are asked for.

    Attributes
    ----------
    tree : JoinTree
        The plan.
    price, informativeness : float
        Known without a join.
    """

    tree: JoinTree
    price: float
    informativeness: float
    _request: AcquisitionRequest
    _measure: Measure

    @cached_property
    def measures(self) -> PlanMeasures:
        """Its measures, of a join."""
        return self._measure(self.tree)

    @property
    def is_measured(self) -> bool:
        """Whether its measures are known."""
        return "measures" in self.__dict__

    @property
    def is_cheap(self) -> bool:
        """Whether it costs no more than the budget."""
        return self.price <= self._request.budget

    @property
    def is_informative(self) -> bool:
        """Whether the weights of its joins are within the bound, alpha."""
        return self.informativeness <= self._request.max_informativeness

    @cached_property
    def is_within(self) -> bool:
        """Whether it keeps all bounds; it is joined only if it keeps those that need no join."""
        return self.is_cheap and self.is_informative and self.is_good

    @property
    def is_good(self) -> bool:
        """Whether its quality is at least the bound, beta."""
        return self.measures.quality >= self._request.min_quality

    def is_better(self, other: KnownPlan | None) -> bool:
        """Return whether its correlation is higher; where equal it is cheaper, or comes first."""
        if other is None:
            return True
        more = self.measures.correlation - other.measures.correlation
        if abs(more) > SAME:
            return more > 0
        return (self.price, self.tree.signature) < (other.price, other.tree.signature)


class KnownPlans:
    """Plans by their signature.

    Parameters
    ----------
    graph : JoinGraph
        The graph that they are on.
    request : AcquisitionRequest
        What they are for.
    measure : callable
        Measures one.
    strict_lattice : bool
        See `PublishedOptions`.
    """

    def __init__(
        self,
        graph: JoinGraph,
        request: AcquisitionRequest,
        measure: Measure,
        *,
        strict_lattice: bool = False,
    ) -> None:
        self.graph = graph
        self._request, self._measure, self._strict = request, measure, strict_lattice
        self._known: dict[tuple[object, ...], KnownPlan] = {}

    def plan(self, tree: JoinTree) -> KnownPlan | None:
        """Return the plan of a tree that joins by all shared columns.

        None if such a join is not weighed, or if the lattice is to be strict and the plan has a
        single column of a table.
        """
        closed = tree.closed(self.graph)
        if closed is None:
            return None
        if self._strict and min(map(len, closed.columns.values())) < MIN_COLUMNS:
            return None
        signature = closed.signature
        if signature not in self._known:
            self._known[signature] = KnownPlan(
                closed, closed.price(self.graph), closed.weight, self._request, self._measure
            )
        return self._known[signature]

    def all(self) -> list[KnownPlan]:
        """Return all of them by signature."""
        return [self._known[signature] for signature in sorted(self._known)]


class JoinChoices:
    """The plans on one minimal graph: a choice of a join set for each of its joins.

    Parameters
    ----------
    minimal : MinimalGraph
        The joins, and where columns are from.
    known : KnownPlans
        Where plans are kept.

    Attributes
    ----------
    sizes : tuple of int
        The number of join sets of each join.
    """

    def __init__(self, minimal: MinimalGraph, known: KnownPlans) -> None:
        self.minimal, self._known = minimal, known
        self._sets = [known.graph.edges[pair].join_sets for pair in minimal.pairs]
        self.sizes = tuple(map(len, self._sets))
        self._plans: dict[tuple[int, ...], KnownPlan | None] = {}

    @property
    def n_choices(self) -> int:
        """How many there are, plans that are equal once closed counted apart."""
        return prod(self.sizes)

    def plan(self, chosen: tuple[int, ...]) -> KnownPlan | None:
        """Return the plan of a choice, positions in the join sets, as `KnownPlans.plan` does."""
        if chosen not in self._plans:
            joins = (
                Join(*pair, sets[position])
                for pair, sets, position in zip(self.minimal.pairs, self._sets, chosen, strict=True)
            )
            tree = JoinTree.of(joins, self.minimal.have, self.minimal.want)
            self._plans[chosen] = self._known.plan(tree)
        return self._plans[chosen]
