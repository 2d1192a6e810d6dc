"""Options of the published search."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import chain, product
from math import prod

import numpy as np

from benchmarks.dance_published.graphs import MAX_COVERS, MinimalGraph, landmarks_of, minimal_graphs
from pexeso.acquisition.graph import JoinGraph
from pexeso.acquisition.plans import (
    AcquisitionRequest,
    FoundPlan,
    FoundPlans,
    Join,
    JoinTree,
    PlanMeasures,
)
from pexeso.errors import InputError

MODES = ("repaired", "literal")
"""The walk with its repairs, or word for word as it is printed."""


@dataclass(frozen=True)
class PublishedOptions:
    """Options of the published search; the paper leaves all of them open but the mode."""

    n_landmarks: int | None = None
    max_covers: int = MAX_COVERS
    prune: bool = True
    max_graphs: int = 1
    mode: str = "repaired"
    n_steps: int = 1000
    n_walks: int = 4
    auto_exhaustive: bool = True
    first_rate: float = 0.1
    growth: float = 2.0
    max_rounds: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InputError(f"mode must be one of {MODES}, got {self.mode!r}.")
        for name in ("max_graphs", "n_steps", "n_walks"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be 1 or more, got {getattr(self, name)}.")
        for name in ("n_landmarks", "max_rounds"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} must be 1 or more, got {value}.")
        if self.max_covers < 0:
            raise InputError(f"max_covers must be 0 or more, got {self.max_covers}.")
        if not 0 < self.first_rate <= 1:
            raise InputError(f"first_rate must be above 0 and at most 1, got {self.first_rate}.")
        if not self.growth > 1:
            raise InputError(f"growth must be above 1, got {self.growth}.")


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
    """Plans by their signature."""

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
        """Return all of them by signature."""
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
    if options.mode == "literal":
        return _literal_best(choices, options, start)
    if options.auto_exhaustive and choices.n_choices <= options.n_steps:
        return _best(choices.plan(chosen) for chosen in product(*map(range, choices.sizes)))
    best = None
    for i in range(options.n_walks):
        random = walk_random(options.seed, choices, i)
        if i:
            drawn = random.random(len(start)).tolist()
            start = tuple(int(u * n) for u, n in zip(drawn, choices.sizes, strict=True))
        plans = (plan for plan, _ in walk(choices, start, options.n_steps, random))
        best = _best(chain([best, choices.plan(start)], plans))
    return best


def walk(
    choices: JoinChoices,
    start: tuple[int, ...],
    n_steps: int,
    random: np.random.Generator,
    *,
    mode: str = "repaired",
) -> Iterator[tuple[KnownPlan | None, bool]]:
    """Yield where the walk is after each step, and whether it went there in this step."""
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
            is_step = plan is not current
            if not is_step or _is_accepted(current, plan, of_step, mode):
                chosen, current = proposed, plan
                yield current, is_step
            else:
                yield current, False


def acceptance(current: float, proposed: float) -> float:
    """Return the probability of a step between plans of these correlations."""
    return min(1.0, proposed / current) if current > 0 else 1.0


def walk_random(seed: int, choices: JoinChoices, i: int) -> np.random.Generator:
    """Return the random numbers of a walk: those of its graph and number, whatever ran before."""
    minimal = choices.minimal
    text = repr((seed, minimal.pairs, minimal.have, minimal.want, i))
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little")))


def _literal_best(
    choices: JoinChoices, options: PublishedOptions, start: tuple[int, ...]
) -> KnownPlan | None:
    best, max_correlation = None, 0.0
    random = walk_random(options.seed, choices, 0)
    for plan, is_step in walk(choices, start, options.n_steps, random, mode="literal"):
        if is_step and plan is not None and plan.measures.correlation > max_correlation:
            best, max_correlation = plan, plan.measures.correlation
    return best


def _best(plans: Iterable[KnownPlan | None]) -> KnownPlan | None:
    best = None
    for plan in plans:
        if plan is not None and plan is not best and plan.is_within and plan.is_better(best):
            best = plan
    return best


def _is_accepted(
    current: KnownPlan | None, proposed: KnownPlan | None, draw: float, mode: str
) -> bool:
    if mode == "repaired" and (current is None or not current.is_within):
        return True
    if proposed is None or not proposed.is_within:
        return False
    if current is None:
        return True
    return draw < acceptance(current.measures.correlation, proposed.measures.correlation)


def _draws(random: np.random.Generator, n_steps: int) -> Iterator[list[list[float]]]:
    for start in range(0, n_steps, _CHUNK):
        yield random.random((min(_CHUNK, n_steps - start), 3)).tolist()


GraphAt = Callable[[float], tuple[JoinGraph, Measure]]
"""Returns the graph of samples at a rate, and what measures plans on these samples."""

_MAX_JOINED = 16
"""Plans that are joined for their quality alone, to say what a request would have to allow."""


def published_plans(
    graph_at: GraphAt,
    request: AcquisitionRequest,
    options: PublishedOptions | None = None,
    *,
    bound: float | None = None,
) -> FoundPlans:
    """Return the plan that the published search finds for a request, or why there is none.

    It starts with small samples. Where no plan is within the bounds it asks for larger ones, up to
    whole tables: on these a plan can cost less informativeness or have a better quality.
    """
    options = options or PublishedOptions()
    started = time.monotonic()
    n_trees = n_evaluated = n_rounds = 0
    rate = options.first_rate
    while True:
        graph, measure = graph_at(rate)
        known = KnownPlans(graph, request, measure)
        best, reason = _searched(known, request, options)
        seen = {} if best else _best_seen(known.all())
        n_rounds += 1
        n_trees += len(known.all())
        n_evaluated += sum(plan.is_measured for plan in known.all())
        is_last = rate >= 1 or n_rounds == options.max_rounds
        if best or is_last:
            break
        rate = min(1.0, options.growth * rate)
    if best:
        plans, reason, stopped = (_with_bound(best, bound),), "", ""
    else:
        plans, reason = (), " ".join([reason, *_advice(request, seen)])
        stopped = "" if rate >= 1 else f"max_rounds={n_rounds}, at samples of rate {rate:g}"
    seconds = time.monotonic() - started
    return FoundPlans(plans, reason, n_trees, n_evaluated, seconds, stopped, seen)


def _searched(
    known: KnownPlans, request: AcquisitionRequest, options: PublishedOptions
) -> tuple[KnownPlan | None, str]:
    """Return the best plan of one round, or why there is none."""
    graph = known.graph
    tables = {table for terminal in request.terminals for table in terminal.tables}
    landmarks = landmarks_of(graph, tables, n_landmarks=options.n_landmarks, seed=options.seed)
    connected = minimal_graphs(
        graph, request, landmarks, prune=options.prune, max_covers=options.max_covers
    )
    small = [subgraph for subgraph in connected if len(subgraph.tables) <= request.max_tables]
    light = [subgraph for subgraph in small if subgraph.weight <= request.max_informativeness]
    if not light:
        for subgraph in small:
            known.plan(subgraph.tree(graph))
        return None, _no_graph(request, connected, small)
    best = None
    for subgraph in light[: options.max_graphs]:
        known.plan(subgraph.tree(graph))  # a literal walk without steps never meets its own start
        plan = best_plan(JoinChoices(subgraph, known), options)
        if plan and plan.is_better(best):
            best = plan
    return best, "" if best else _no_plan(known.all(), options, len(light))


def _no_graph(
    request: AcquisitionRequest,
    connected: Sequence[MinimalGraph],
    small: Sequence[MinimalGraph],
) -> str:
    if not connected:
        names = ", ".join(repr(terminal.column) for terminal in request.terminals)
        return f"No joins connect tables that have all of {names}."
    if not small:
        min_tables = min(len(subgraph.tables) for subgraph in connected)
        return (
            f"The connections that were found have {min_tables} tables or more, max_tables is "
            f"{request.max_tables}."
        )
    return (
        f"The connection of least informativeness that was found has {small[0].weight:.6g}, "
        f"max_informativeness is {request.max_informativeness:g}."
    )


def _no_plan(plans: Sequence[KnownPlan], options: PublishedOptions, n_graphs: int) -> str:
    if any(plan.is_within for plan in plans):
        return (
            "Plans within the bounds were met, but the literal mode scores no start and no "
            "correlation of 0: take mode='repaired'."
        )
    left = n_graphs - options.max_graphs
    more = f" {left} connections were not tried: raise max_graphs." if left > 0 else ""
    return f"None of {len(plans)} plans that were met is within all bounds.{more}"


def _best_seen(plans: Sequence[KnownPlan]) -> dict[str, float]:
    """Return for each bound the best value among plans that break it and keep all others."""
    seen = {}
    by_price = sorted(
        (plan for plan in plans if not plan.is_cheap and plan.is_informative),
        key=lambda plan: plan.price,
    )
    by_weight = sorted(
        (plan for plan in plans if plan.is_cheap and not plan.is_informative),
        key=lambda plan: plan.informativeness,
    )
    cheapest = next((plan for plan in by_price[:_MAX_JOINED] if plan.is_good), None)
    lightest = next((plan for plan in by_weight[:_MAX_JOINED] if plan.is_good), None)
    if cheapest:
        seen["price"] = cheapest.price
    if lightest:
        seen["informativeness"] = lightest.informativeness
    qualities = [plan.measures.quality for plan in plans if plan.is_cheap and plan.is_informative]
    if qualities:
        seen["quality"] = max(qualities)
    return seen


def _advice(request: AcquisitionRequest, seen: dict[str, float]) -> list[str]:
    sentences = {
        "price": f"The cheapest that keeps the other bounds costs {{:.6g}}, the budget is "
        f"{request.budget:g}.",
        "informativeness": "The least informativeness of those that keep the other bounds is "
        f"{{:.6g}}, max_informativeness is {request.max_informativeness:g}.",
        "quality": "The highest quality of those that keep the other bounds is {:.6g}, "
        f"min_quality is {request.min_quality:g}.",
    }
    return [sentences[name].format(value) for name, value in seen.items()]


def _with_bound(plan: KnownPlan, bound: float | None) -> FoundPlan:
    if bound is None:
        return FoundPlan(plan.tree, plan.measures, False, 1.0)
    missing = max(bound - plan.measures.correlation, 0.0)
    return FoundPlan(plan.tree, plan.measures, missing == 0, missing / bound if missing else 0.0)
