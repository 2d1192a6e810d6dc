"""Figures of an order and of a cut, their differences when queries are drawn again, reliability."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.effectiveness.score.pairs import Pairs

PRECISION, RESAMPLES, BINS, DIGITS = 0.95, 200, 10, 9


class Ranked:
    """Pairs with a score, its order and its cuts.

    Parameters
    ----------
    pairs : Pairs
    scores : float64 (n,)
        Equal ones are cut together; within a query their order is that of the search.
    """

    def __init__(self, pairs: Pairs, scores: np.ndarray) -> None:
        self.pairs, self.scores = pairs, scores.round(DIGITS)
        self._order = np.argsort(-self.scores, kind="stable")
        ranked = self.scores[self._order]
        self._last = np.append(ranked[1:] != ranked[:-1], True)
        self.precisions, self.first = self._per_query()

    def _per_query(self) -> tuple[np.ndarray, np.ndarray]:
        """Return average precision, and whether the first is right; NaN without a right column."""
        order = np.lexsort((-self.scores, self.pairs.query))
        query, right = self.pairs.query[order], self.pairs.right[order]
        n = len(self.pairs.n_right)
        starts = np.searchsorted(query, np.arange(n))
        rank = np.arange(len(query)) - starts[query] + 1
        before = np.concatenate([[0], np.cumsum(right)])
        hits = before[1:] - before[starts[query]]
        sums = np.bincount(query, right * hits / rank, n)
        joinable = self.pairs.n_right > 0
        precisions, first = np.full(n, np.nan), np.full(n, np.nan)
        precisions[joinable] = sums[joinable] / self.pairs.n_right[joinable]
        first[joinable] = np.bincount(query, right & (rank == 1), n)[joinable]
        return precisions, first

    def mean_precision(self, weights: np.ndarray | None = None) -> float:
        """Return the mean average precision over query columns that can be joined."""
        joinable = ~np.isnan(self.precisions)
        if weights is None:
            return float(self.precisions[joinable].mean())
        return float(np.average(self.precisions[joinable], weights=weights[joinable] + 1e-12))

    def counts(self, weights: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return right and wrong pairs above each possible cut, best first."""
        weights = np.ones(len(self.pairs.n_right)) if weights is None else weights
        pair_weights, right = weights[self.pairs.query[self._order]], self.pairs.right[self._order]
        true, false = np.cumsum(pair_weights * right), np.cumsum(pair_weights * ~right)
        return true[self._last], false[self._last]

    def recall(self, weights: np.ndarray | None = None, precision: float = PRECISION) -> float:
        """Return the highest recall of a cut with at least a precision, over all queries."""
        true, false = self.counts(weights)
        enough = true >= precision * (true + false) - 1e-9
        weights = np.ones(len(self.pairs.n_right)) if weights is None else weights
        return float(true[enough].max(initial=0) / max(weights @ self.pairs.n_right, 1e-9))

    def figures(self) -> dict[str, float]:
        """Return mean average precision, share of right first ones, and recalls of cuts."""
        figures = {
            "map": self.mean_precision(),
            "first": float(np.nanmean(self.first)),
            "recall_95": self.recall(),
            "recall_90": self.recall(precision=0.9),
        }
        return {name: round(figure, 4) for name, figure in figures.items()}


def difference(one: Ranked, other: Ranked, seed: int = 0) -> dict[str, list[float]]:
    """Return 95 % intervals of how far one is above another, by drawing queries again.

    Returns
    -------
    dict
        ``map`` and ``recall_95``, each the low and the high end.
    """
    generator, n = np.random.default_rng(seed), len(one.pairs.n_right)
    drawn = generator.multinomial(n, np.full(n, 1 / n), size=RESAMPLES).astype(float)
    rows = [
        (
            one.mean_precision(weights) - other.mean_precision(weights),
            one.recall(weights) - other.recall(weights),
        )
        for weights in drawn
    ]
    low, high = np.quantile(rows, [0.025, 0.975], axis=0).round(4).tolist()
    return {name: [low[at], high[at]] for at, name in enumerate(("map", "recall_95"))}


def reliability(probabilities: np.ndarray, right: np.ndarray) -> dict[str, Any]:
    """Compare probabilities with how often they are right, in bins of equal width.

    Returns
    -------
    dict
        ``bins``: mean probability, share of right pairs, pairs, of each bin that has any;
        ``error``: the mean difference of the first two, weighted by the third.

    Examples
    --------
    >>> reliability(np.array([0.1, 0.1, 0.9]), np.array([False, False, True]))["error"]
    0.1
    """
    bins = np.minimum((probabilities * BINS).astype(int), BINS - 1)
    rows = [
        [float(probabilities[mask].mean()), float(right[mask].mean()), int(mask.sum())]
        for mask in (bins == number for number in range(BINS))
        if mask.any()
    ]
    error = sum(abs(predicted - true) * n for predicted, true, n in rows) / len(right)
    return {
        "bins": [[round(predicted, 4), round(true, 4), n] for predicted, true, n in rows],
        "error": round(error, 4),
    }
