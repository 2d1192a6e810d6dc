"""What reads cost: linear in what is read, fitted to times taken on the storage itself (thesis, chapter 3; J3)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pexeso.errors import InputError
from pexeso.overlap.index import OverlapIndex

_ROUNDS = 3
SAMPLES = 1000
"""Sets, and posting lists, that are timed, as in the source."""


@dataclass(frozen=True)
class ReadCosts:
    """The cost of a read, in any one unit.

    Attributes
    ----------
    set_fixed, set_per_token : float
        S(z) = s0 + s1 z, for the last z tokens of a set; nothing for none.
    list_fixed, list_per_entry : float
        L(f) = l0 + l1 f, for a posting list with f entries.
    least : float
        No read costs less: a fitted intercept may be negative.
    step : float
        What a search takes to decide what is read next; reads that cost less are put together.

    Raises
    ------
    InputError
        A cost is not a finite number.

    Examples
    --------
    >>> costs = ReadCosts(10, 0.1, 5, 0.05)
    >>> costs.of_sets(np.array([0, 100])).tolist(), costs.of_lists(np.array([10])).tolist()
    ([0.0, 20.0], [5.5])
    """

    set_fixed: float
    set_per_token: float
    list_fixed: float
    list_per_entry: float
    least: float = 0.0
    step: float = 0.0

    def __post_init__(self) -> None:
        for name, cost in vars(self).items():
            if not np.isfinite(cost):
                raise InputError(f"The cost {name} of a read must be a finite number. Got {cost!r}.")

    def of_sets(self, tokens: np.ndarray) -> np.ndarray:
        """Give the costs of reading so many tokens of a set: float64."""
        costs = np.maximum(self.least, self.set_fixed + self.set_per_token * np.asarray(tokens, np.float64))
        return np.where(np.asarray(tokens) > 0, costs, 0.0)

    def of_lists(self, entries: np.ndarray) -> np.ndarray:
        """Give the costs of reading posting lists of these lengths: float64."""
        return np.maximum(self.least, self.list_fixed + self.list_per_entry * np.asarray(entries, np.float64))


DISK = ReadCosts(-9.42, 0.00125, 1.01, 0.00166, least=1.0)
"""Milliseconds of the authors' code for PostgreSQL on an SSD."""

MAPPED = ReadCosts(10, 0.03, 10, 0.045, step=600)
"""Microseconds of this code for mapped files on an SSD, asked for together: an order of magnitude where nothing was measured."""


def fit_costs(
    set_tokens: np.ndarray, set_times: np.ndarray, list_entries: np.ndarray, list_times: np.ndarray
) -> ReadCosts:
    """Fit the costs of reads to times (J3).

    Parameters
    ----------
    set_tokens, set_times : (a,)
        Tokens read of each set, and how long it took.
    list_entries, list_times : (b,)
        The same of posting lists.

    Returns
    -------
    ReadCosts
        In the unit of the times; `least` is the shortest of them.

    Raises
    ------
    InputError
        No times, not one for each read, or some are negative or no numbers.

    Notes
    -----
    Least squares of relative errors: a long read is off by more than a short one, and would decide the intercept. Weights are those of the fit before.

    Examples
    --------
    >>> fitted = fit_costs(np.array([1, 100]), np.array([3.0, 201.0]), np.array([1, 10]), np.array([1.5, 6.0]))
    >>> [round(number, 6) for number in (fitted.set_fixed, fitted.set_per_token, fitted.list_fixed, fitted.list_per_entry)]
    [1.0, 2.0, 1.0, 0.5]
    """
    sets, lists = _line(set_tokens, set_times, "sets"), _line(list_entries, list_times, "lists")
    return ReadCosts(*sets, *lists, least=float(min(np.min(set_times), np.min(list_times))))


def measure_costs(
    index: OverlapIndex, *, samples: int = SAMPLES, seed: int = 0, clock: Callable[[], float] = time.perf_counter
) -> ReadCosts:
    """Time reads of sets and posting lists of all sizes, and fit their costs, in seconds.

    What was read lately is still in memory, and is read faster: where an index is larger than memory, measure before it is used.

    Parameters
    ----------
    index
        With one set at least.
    samples : int
        Sets, and lists, that are read; fewer where there are fewer.
    seed : int
    clock

    Raises
    ------
    InputError
        The index is empty.
    """
    if not index.n_sets:
        raise InputError("Reads of an overlap index cannot be timed, since it has no sets: build it over a lake first.")
    rng = np.random.default_rng(seed)
    sizes, frequencies = np.diff(index.set_offsets), np.diff(index.token_offsets)
    sets, lists = _stratified(sizes, samples, rng), _stratified(frequencies, samples, rng)
    set_times = [_timed(clock, lambda row=row: index.suffix(row, 0).sum()) for row in sets.tolist()]
    list_times = [_timed(clock, lambda row=row: index.posting_list(row).sizes.sum()) for row in lists.tolist()]
    return fit_costs(sizes[sets], np.array(set_times), frequencies[lists], np.array(list_times))


def _timed(clock: Callable[[], float], read: Callable[[], object]) -> float:
    begin = clock()
    read()
    return max(clock() - begin, 1e-9)


def _stratified(sizes: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
    """Draw rows of all orders of magnitude: as many of each power of two, as far as there are so many."""
    order = rng.permutation(np.arange(len(sizes)))
    stratum = np.log2(np.maximum(sizes[order], 1)).astype(np.int64)
    by_stratum = np.argsort(stratum, kind="stable")
    starts = np.searchsorted(stratum[by_stratum], stratum[by_stratum])
    turn = np.arange(len(order)) - starts
    return order[by_stratum[np.argsort(turn, kind="stable")[:samples]]]


def _line(sizes: np.ndarray, times: np.ndarray, of_what: str) -> tuple[float, float]:
    sizes, times = np.asarray(sizes, np.float64), np.asarray(times, np.float64)
    if not len(times) or sizes.shape != times.shape or not (np.isfinite(times) & (times >= 0)).all():
        raise InputError(
            f"The cost of reading {of_what} is fitted to one time for each read, 0 or more. Got {times.shape} times for {sizes.shape} sizes."
        )
    weights = np.ones(len(times))
    floor = max(times.max(), 1e-300) * 1e-6
    for _ in range(_ROUNDS):
        rows = np.stack([np.ones(len(sizes)), sizes], axis=1) * weights[:, None]
        (fixed, per_item), *_ = np.linalg.lstsq(rows, times * weights, rcond=None)
        if per_item < 0:  # noise: what is longer is not read faster
            fixed, per_item = np.average(times, weights=weights**2), 0.0
        weights = 1 / np.maximum(fixed + per_item * sizes, floor)
    return float(fixed), float(per_item)
