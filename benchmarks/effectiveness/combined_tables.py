"""The study of letters and vectors in one space as a table of the documentation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

STUDY = "combined-study"


def tables(result: Mapping[str, Any]) -> str:
    """Return the study as Markdown, one weight a row."""
    weights = result["weights"]
    sets = list(next(iter(weights.values()))["sets"])
    lines = [
        f"Measured {result['measured']}. F1 of columns and of values, each data set at the "
        "distance chosen on the others; recall of pairs of columns by meaning in wikitables:",
        "",
        f"| weight of fastText | distance of all | {' | '.join(sets)} | mean | by meaning, p ≥ .90 "
        "| by meaning, p ≥ .95 |",
        f"|{'---|' * (len(sets) + 5)}",
    ]
    for weight, scores in weights.items():
        f1s = [
            f"{_short(scores['sets'][name]['columns'])} {_short(scores['sets'][name]['values'])}"
            for name in sets
        ]
        recalls = map(_short, scores["semantic_recall"].values())
        cells = [weight, f"{scores['distance']:.2f}", *f1s, _short(scores["mean"]), *recalls]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _short(number: float) -> str:
    return f"{number:.3f}".removeprefix("0")
