"""Step 2 of the search: a random walk over the plans on a minimal graph (the paper's Algorithm 1).

A step draws one of the joins that have several join sets, and another join set for it, both with
equal chances. The new plan is taken if it keeps all bounds, with probability
min(1, CORR(new) / CORR(old)). So on the plans within the bounds the walk is a Metropolis chain: as
far as single steps connect these, it is at each in proportion to its correlation.

As printed, the algorithm never scores the plan that it starts from, wants a correlation above 0,
and takes no step from a plan outside the bounds to another. The literal mode does so and finds
nothing where each join has one join set. The repaired mode scores the start, walks freely until it
meets a plan within the bounds, and starts several walks. In both, 0/0 counts as 1, and the new plan
joins by all columns that both tables share in it (`JoinTree.closed`), as the graph's labels do. The
walk is over the drawn join sets, closed or not: over closed ones steps back would be missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import chain, product

import numpy as np

from pexeso.acquisition.search.published.known_plans import JoinChoices, KnownPlan
from pexeso.acquisition.search.published.options import PublishedOptions

_CHUNK = 4096
"""Steps whose random numbers are drawn at once."""


def best_plan(choices: JoinChoices, options: PublishedOptions) -> KnownPlan | None:
    """Return the best plan that is met on a minimal graph.

    Parameters
    ----------
    choices : JoinChoices
        The plans on it.
    options : PublishedOptions
        Mode, steps, walks and seed.

    Returns
    -------
    KnownPlan or None
        Within all bounds. Of equal correlations (to 1e-12) the cheapest, then the first; in the
        literal mode the one met first.
    """
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
    """Yield where the walk is after each step, and whether it went there in this step.

    Parameters
    ----------
    choices : JoinChoices
        The plans on a minimal graph.
    start : tuple of int
        A choice.
    n_steps : int
        How many steps; none if no join has several join sets.
    random : numpy.random.Generator
        What steps are drawn with: three numbers each.
    mode : {"repaired", "literal"}
        Whether a walk outside the bounds may go to plans outside.
    """
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
    """Return the probability of a step between plans of these correlations.

    Examples
    --------
    >>> acceptance(0.5, 0.2), acceptance(0.2, 0.5), acceptance(0.0, 0.0)
    (0.4, 1.0, 1.0)
    """
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
