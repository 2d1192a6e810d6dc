"""What came out, as plain data, as a table and as plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.effectiveness.found import Found
from benchmarks.effectiveness.judged import Judged
from benchmarks.effectiveness.scoring import (
    JOINABILITIES,
    TOP,
    best_f1,
    by_meaning_at,
    cross_validated,
    f1,
    intervals,
    ranked,
    rates,
    truth_of,
)

PRECISIONS = (0.90, 0.95)

Scores = dict[str, Any]


def scores_of(judged: Judged, founds: Sequence[Found]) -> Scores:
    """Score a method: thresholds for the highest F1, and for pairs by meaning at two precisions, each chosen on other query columns.

    Precision is that on the query columns that were held out; where it falls short of the one that was aimed at, that is told, not
    mended.
    """
    truth = truth_of(judged, np.arange(judged.n_columns))
    found, chosen = cross_validated(judged, founds, best_f1)
    precision, recall, by_meaning = rates(found, truth)
    average, at_top = ranked(judged, found)
    scores: Scores = {
        "precision": precision,
        "recall": recall,
        "f1": f1(precision, recall),
        "semantic_only_recall": by_meaning,
        "map": average,
        f"recall_at_{TOP}": at_top,
        "thresholds": chosen,
        "intervals": intervals(judged, found),
    }
    for least in PRECISIONS:
        found, chosen = cross_validated(judged, founds, by_meaning_at(least))
        held_out, _, by_meaning = rates(found, truth)
        name = f"p{round(100 * least)}"
        scores |= {
            f"semantic_only_recall_at_{name}": by_meaning,
            f"semantic_only_precision_at_{name}": held_out,
            f"semantic_only_interval_at_{name}": intervals(judged, found)["semantic_only_recall"],
            f"thresholds_at_{name}": chosen,
        }
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in scores.items()}


def curve_of(judged: Judged, founds: Sequence[Found]) -> list[tuple[float, float, float]]:
    """Return precision, recall and recall of the pairs by meaning at all thresholds; for plots, nothing is chosen by it."""
    truth = truth_of(judged, np.arange(judged.n_columns))
    return [rates(found.from_joinability(least), truth) for found in founds for least in JOINABILITIES]


TABLE = {
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
    "map": "MAP",
    f"recall_at_{TOP}": f"recall at {TOP}",
    "semantic_only_recall_at_p90": "by meaning, p ≥ .90",
    "semantic_only_recall_at_p95": "by meaning, p ≥ .95",
}


def as_table(methods: Mapping[str, Scores]) -> str:
    """Write the scores of all methods as a table in Markdown; the best of each column is bold."""
    lines = ["| method | " + " | ".join(TABLE.values()) + " |", "|---" * (len(TABLE) + 1) + "|"]
    best = {name: max(scores[name] for scores in methods.values()) for name in TABLE}
    for method, scores in methods.items():
        cells = [f"{scores[name]:.3f}".removeprefix("0") for name in TABLE]
        marked = [
            f"**{cell}**" if scores[name] == best[name] else cell for name, cell in zip(TABLE, cells, strict=True)
        ]
        lines.append(f"| {method} | " + " | ".join(marked) + " |")
    return "\n".join(lines)


def plot(curves: Mapping[str, list[tuple[float, float, float]]], path: Path) -> None:
    """Draw, for each method, the highest recall at each precision, of all pairs and of those by meaning."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), sharex=True)
    for axis, column, title in ((axes[0], 1, "all joinable pairs"), (axes[1], 2, "pairs by meaning alone")):
        for method, points in curves.items():
            ordered = sorted(points, reverse=True)
            highest = np.maximum.accumulate([point[column] for point in ordered])
            axis.step([point[0] for point in ordered], highest, where="post", label=method)
        axis.set(title=title, xlabel="precision at least", ylabel="recall", xlim=(0.5, 1.0), ylim=(0, 1))
        axis.grid(alpha=0.3)
    axes[1].legend(loc="upper right", fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)
