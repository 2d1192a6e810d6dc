"""What a search for plans found, or why there is no plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pexeso.acquisition.sampling.intervals import Estimate
from pexeso.acquisition.search.plans import JoinTree, PlanMeasures


@dataclass(frozen=True)
class PlanEstimates:
    """What samples tell of a plan.

    Attributes
    ----------
    correlation, quality : Estimate
        With their intervals.
    n_rows : int
        Rows of the join of the samples.
    """

    correlation: Estimate
    quality: Estimate
    n_rows: int


@dataclass(frozen=True)
class FoundPlan:
    """A plan with what it is worth, and how sure it is that none is better.

    Attributes
    ----------
    tree : JoinTree
        Tables, joins and columns.
    measures : PlanMeasures
        Measured on the tables of the graph: estimates where these are samples.
    optimal : bool
        It is proved that no plan within the bounds of the request costs at most as much, has at
        least its quality and a higher correlation. Of the first plan: none within the bounds has a
        higher correlation.
    gap : float
        The share by which the correlation of such a plan could exceed that of this one, from 0 to
        1: (bound - correlation) / bound; 0 where it is optimal.
    chance : float or None
        The correlation if the columns to be explained are shuffled, so that nothing but chance is
        left; None if it was not measured.
    estimates : PlanEstimates or None
        What samples tell, if the plan was measured on samples.
    """

    tree: JoinTree
    measures: PlanMeasures
    optimal: bool
    gap: float
    chance: float | None = None
    estimates: PlanEstimates | None = None


@dataclass(frozen=True)
class FoundPlans:
    """The answer to a request.

    Attributes
    ----------
    plans : tuple of FoundPlan
        None of them is beaten by another in price, quality and correlation at once; by correlation,
        highest first, then price, then signature. Empty if no plan is within the bounds.
    reason : str
        If there is none: a sentence that says why and what would help.
    n_trees : int
        Trees that were formed.
    n_evaluated : int
        Those whose correlation was measured.
    seconds : float
        How long it took.
    stopped : str
        Which limit ended the search early, "" if none did.
    best_seen : mapping of str to float
        If there is no plan: the least price, least informativeness and highest quality of plans
        that keep all other bounds, as far as such were met.
    """

    plans: tuple[FoundPlan, ...]
    reason: str = ""
    n_trees: int = 0
    n_evaluated: int = 0
    seconds: float = 0.0
    stopped: str = ""
    best_seen: Mapping[str, float] = field(default_factory=dict)
