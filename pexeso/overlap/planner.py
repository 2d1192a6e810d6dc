"""The planner: JOSIE or MergeList, by what both took on columns of the lake itself.

Both are exact. Where a read is a trip to a disk or further, JOSIE pays; where lists are short or lie in memory, counting them all is sooner done than
thinking about it. The cost of all posting lists of a query, known before any is read, tells which: below some cost MergeList was faster, from there
on JOSIE.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from pexeso.errors import InputError
from pexeso.overlap.costs import ReadCosts, measure_costs
from pexeso.overlap.index import OverlapIndex
from pexeso.overlap.josie import JosieOptions, josie
from pexeso.overlap.merge import merge_list
from pexeso.overlap.query import OverlapQuery, Values, as_query, query_of_tokens
from pexeso.overlap.reading import OverlapSource
from pexeso.overlap.topk import Overlaps, require_k

BATCHES = (5, 20, 100)
"""Sizes of batches that are tried."""

SAMPLE_QUERIES = 50


@dataclass(frozen=True)
class Planner:
    """What was measured, and what follows for a query.

    Attributes
    ----------
    costs : ReadCosts
        Costs of reads on the storage of the index.
    options : JosieOptions
        How JOSIE goes about it.
    break_even : float
        The cost of all posting lists of a query from which on JOSIE was faster; infinite where it never was.
    mean_set_cost : float
        The cost of reading a set of the index whole, on average.
    """

    costs: ReadCosts
    options: JosieOptions
    break_even: float
    mean_set_cost: float

    def choose(self, query: OverlapQuery, k: int) -> str:
        """Say what answers a query: ``"josie"`` or ``"merge_list"``.

        MergeList also where all lists cost less than k sets would, which JOSIE must know the overlaps of before it can stop.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from pexeso.overlap.index import build_index
        >>> from pexeso.overlap.query import prepare_query
        >>> query = prepare_query(build_index(np.array([4, 9]), pa.array(["oslo", "oslo"])), ["oslo"])
        >>> planner = Planner(ReadCosts(1, 0, 5, 0), JosieOptions(), break_even=0, mean_set_cost=1)
        >>> planner.choose(query, 1), planner.choose(query, 10)
        ('josie', 'merge_list')
        """
        all_lists = float(self.costs.of_lists(query.frequencies).sum())
        return "josie" if all_lists >= max(self.break_even, k * self.mean_set_cost) else "merge_list"

    def search(
        self, source: OverlapSource, values: Values | OverlapQuery, k: int, *, exclude: Collection[int] = ()
    ) -> Overlaps:
        """Find the k sets that share most tokens with a query, by what is expected to be faster; as `pexeso.overlap.josie.josie`."""
        require_k(k)
        query = as_query(source, values, distinct_lists=self.options.distinct_lists)
        if self.choose(query, k) == "josie":
            return josie(source, query, k, self.options, costs=self.costs, exclude=exclude)
        return merge_list(source, query, k, costs=self.costs, exclude=exclude)


def measure_planner(
    index: OverlapIndex,
    *,
    k: int = 10,
    samples: int = SAMPLE_QUERIES,
    costs: ReadCosts | None = None,
    seed: int = 0,
    clock: Callable[[], float] = time.perf_counter,
) -> Planner:
    """Time both ways on sets of the index, each as a query that is not to find itself.

    Parameters
    ----------
    index
        With one set at least.
    k : int
        Sets wanted in these searches.
    samples : int
        Queries; fewer where there are fewer sets.
    costs
        Of reads; None measures them, in seconds.
    seed : int
    clock

    Returns
    -------
    Planner
        With the size of batches that reads least by the cost model, and the cost from which on JOSIE took less time.

    Raises
    ------
    InputError
        The index is empty, or k is no integer from 1 on.
    """
    require_k(k)
    costs = measure_costs(index, seed=seed, clock=clock) if costs is None else costs
    if not index.n_sets:
        raise InputError(
            "Searches of an overlap index cannot be timed, since it has no sets: build it over a lake first."
        )
    rows = np.random.default_rng(seed).permutation(index.n_sets)[:samples]
    own = [[int(set_id)] for set_id in index.ids_of(rows)]
    queries = [query_of_tokens(index, index.suffix(int(row), 0)) for row in rows]
    options = JosieOptions(batch=_best_batch(index, queries, own, k, costs))
    list_costs, josie_times, merge_times = [], [], []
    for query, exclude in zip(queries, own, strict=True):
        list_costs.append(float(costs.of_lists(query.frequencies).sum()))
        begin = clock()
        josie(index, query, k, options, costs=costs, exclude=exclude)
        middle = clock()
        merge_list(index, query, k, costs=costs, exclude=exclude)
        josie_times.append(middle - begin)
        merge_times.append(clock() - middle)
    mean_set_cost = float(costs.of_sets(np.diff(index.set_offsets)).mean())
    return Planner(costs, options, break_even(list_costs, josie_times, merge_times), mean_set_cost)


def break_even(list_costs: Sequence[float], josie_times: Sequence[float], merge_times: Sequence[float]) -> float:
    """Give the cost of all lists from which on JOSIE should be taken, so that all queries together take least time.

    Parameters
    ----------
    list_costs, josie_times, merge_times : (q,)

    Returns
    -------
    float
        One of `list_costs`, or infinity for none.

    Examples
    --------
    >>> break_even([1, 10, 100], [5, 5, 5], [1, 4, 30]), break_even([1], [2], [1])
    (100.0, inf)
    """
    order = np.argsort(list_costs, kind="stable")
    ascending = np.asarray(list_costs, np.float64)[order]
    gained = np.asarray(merge_times, np.float64)[order] - np.asarray(josie_times, np.float64)[order]
    by_josie_from = np.concatenate([np.cumsum(gained[::-1])[::-1], [0.0]])
    # Queries of equal cost go the same way: only the first of them can be a border.
    first = np.concatenate([[True], ascending[1:] > ascending[:-1], [True]]) if len(order) else np.array([True])
    return float(np.append(ascending, np.inf)[np.argmax(np.where(first, by_josie_from, -np.inf))])


def _best_batch(
    index: OverlapIndex, queries: list[OverlapQuery], own: list[list[int]], k: int, costs: ReadCosts
) -> int:
    """Choose the size of batches with which the queries read least by the cost model."""
    read = [
        sum(
            josie(index, query, k, JosieOptions(batch=batch), costs=costs, exclude=exclude).reads.cost
            for query, exclude in zip(queries, own, strict=True)
        )
        for batch in BATCHES
    ]
    return BATCHES[int(np.argmin(read))]
