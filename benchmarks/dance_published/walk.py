"""The published search: random walks on minimal graphs, on samples that grow."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import chain, product
from math import prod

import numpy as np

from benchmarks.dance_published.graphs import MinimalGraph, landmarks_of, minimal_graphs
from pexeso.acquisition.graph import JoinGraph
from pexeso.acquisition.plans import (
    AcquisitionRequest,
    FoundPlan,
    FoundPlans,
    Join,
    JoinTree,
    PlanMeasures,
)


@dataclass(frozen=True)
class PublishedOptions:
    """Options of the published search, all of which the paper leaves open."""

    n_steps: int = 1000
    n_walks: int = 4
    always_walk: bool = False
    seed: int = 0


Measure = Callable[[JoinTree], PlanMeasures]
"""Returns the measures of a plan; that is the expensive part of a search."""

SAME = 1e-12
"""Correlations that differ by less count as equal."""


@dataclass(eq=False)
class KnownPlan:
    """A plan, with its measures once they are asked for."""

    tree: JoinTree
    price: float
    informativeness: float
    _request: AcquisitionRequest
    _measure: Measure

    @cached_property
    def measures(self) -> PlanMeasures:
        return self._measure(self.tree)

    @property
    def is_measured(self) -> bool:
        return "measures" in self.__dict__

    @cached_property
    def is_within(self) -> bool:
        """Whether it keeps all bounds; it is joined only if it keeps those that need no join."""
        bounds = self._request
        return (
            self.price <= bounds.budget
            and self.informativeness <= bounds.max_informativeness
            and self.measures.quality >= bounds.min_quality
        )

    def is_better(self, other: KnownPlan | None) -> bool:
        """Return whether its correlation is higher; where equal it is cheaper, or comes first."""
        if other is None:
            return True
        more = self.measures.correlation - other.measures.correlation
        if abs(more) > SAME:
            return more > 0
        return (self.price, self.tree.signature) < (other.price, other.tree.signature)


class KnownPlans:
    def __init__(
        self,
        graph: JoinGraph,
        request: AcquisitionRequest,
        measure: Measure,
    ) -> None:
        self.graph = graph
        self._request, self._measure = request, measure
        self._known: dict[tuple[object, ...], KnownPlan] = {}

    def plan(self, tree: JoinTree) -> KnownPlan | None:
        """Return the plan of a tree that joins by all shared columns; None if one has no weight."""
        closed = closed_tree(tree, self.graph)
        if closed is None:
            return None
        signature = closed.signature
        if signature not in self._known:
            self._known[signature] = KnownPlan(
                closed, closed.price(self.graph), closed.weight, self._request, self._measure
            )
        return self._known[signature]

    def all(self) -> list[KnownPlan]:
        return [self._known[signature] for signature in sorted(self._known)]


class JoinChoices:
    """The plans on one minimal graph: a choice of a join set for each of its joins."""

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


def closed_tree(tree: JoinTree, graph: JoinGraph) -> JoinTree | None:
    """Return the plan that joins by all shared columns; None if such a join is not weighed."""
    joins = []
    for join in tree.joins:
        edge = graph.edge(join.left, join.right)
        shared = set(tree.columns[join.left]) & set(tree.columns[join.right])
        if not edge.natural or shared == set(join.join_set.left):
            joins.append(join)
            continue
        join_sets = [join_set for join_set in edge.join_sets if set(join_set.left) == shared]
        if not join_sets:
            return None
        joins.append(Join(join.left, join.right, join_sets[0]))
    return JoinTree(tuple(joins), tree.have, tree.want)


_CHUNK = 4096
"""Steps whose random numbers are drawn at once."""


def best_plan(choices: JoinChoices, options: PublishedOptions) -> KnownPlan | None:
    """Return the best plan that is met on a minimal graph."""
    start = (0,) * len(choices.sizes)
    if not options.always_walk and choices.n_choices <= options.n_steps:
        return _best(choices.plan(chosen) for chosen in product(*map(range, choices.sizes)))
    best = None
    for i in range(options.n_walks):
        random = walk_random(options.seed, choices, i)
        if i:
            drawn = random.random(len(start)).tolist()
            start = tuple(int(u * n) for u, n in zip(drawn, choices.sizes, strict=True))
        best = _best(
            chain([best, choices.plan(start)], walk(choices, start, options.n_steps, random))
        )
    return best


def walk(
    choices: JoinChoices, start: tuple[int, ...], n_steps: int, random: np.random.Generator
) -> Iterator[KnownPlan | None]:
    """Yield where the walk is after each step."""
    free = [i for i, size in enumerate(choices.sizes) if size > 1]
    if not free:
        return
    chosen, current = start, choices.plan(start)
    for draws in _draws(random, n_steps):
        for of_join, of_set, of_step in draws:
            i = free[int(of_join * len(free))]
            size = choices.sizes[i]
            other = (chosen[i] + 1 + int(of_set * (size - 1))) % size
            proposed = (*chosen[:i], other, *chosen[i + 1 :])
            plan = choices.plan(proposed)
            # An equal plan, once closed, is no step of the walk but one of its drawn join sets.
            if plan is current or _is_accepted(current, plan, of_step):
                chosen, current = proposed, plan
            yield current


def acceptance(current: float, proposed: float) -> float:
    """Return the probability of a step between plans of these correlations."""
    return min(1.0, proposed / current) if current > 0 else 1.0


def walk_random(seed: int, choices: JoinChoices, i: int) -> np.random.Generator:
    """Return the random numbers of a walk: those of its graph and number, whatever ran before."""
    minimal = choices.minimal
    text = repr((seed, minimal.pairs, minimal.have, minimal.want, i))
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little")))


def _best(plans: Iterable[KnownPlan | None]) -> KnownPlan | None:
    best = None
    for plan in plans:
        if plan is not None and plan is not best and plan.is_within and plan.is_better(best):
            best = plan
    return best


def _is_accepted(current: KnownPlan | None, proposed: KnownPlan | None, draw: float) -> bool:
    if current is None or not current.is_within:
        return True
    if proposed is None or not proposed.is_within:
        return False
    return draw < acceptance(current.measures.correlation, proposed.measures.correlation)


def _draws(random: np.random.Generator, n_steps: int) -> Iterator[list[list[float]]]:
    for start in range(0, n_steps, _CHUNK):
        yield random.random((min(_CHUNK, n_steps - start), 3)).tolist()


def published_plans(
    graph: JoinGraph,
    measure: Measure,
    request: AcquisitionRequest,
    options: PublishedOptions | None = None,
) -> FoundPlans:
    """Return the plan that the published search finds for a request, if it finds one."""
    options = options or PublishedOptions()
    started = time.monotonic()
    known = KnownPlans(graph, request, measure)
    best = _searched(known, request, options)
    n_evaluated = sum(plan.is_measured for plan in known.all())
    plans = (FoundPlan(best.tree, best.measures, False, 1.0),) if best else ()
    reason = "" if best else "No plan that was met is within all bounds."
    return FoundPlans(plans, reason, len(known.all()), n_evaluated, time.monotonic() - started)


def _searched(
    known: KnownPlans, request: AcquisitionRequest, options: PublishedOptions
) -> KnownPlan | None:
    """Return the best plan on the lightest minimal graph that is within the bounds."""
    graph = known.graph
    tables = {table for terminal in request.terminals for table in terminal.tables}
    for subgraph in minimal_graphs(graph, request, landmarks_of(graph, tables, options.seed)):
        if (
            len(subgraph.tables) <= request.max_tables
            and subgraph.weight <= request.max_informativeness
        ):
            return best_plan(JoinChoices(subgraph, known), options)
    return None
