"""The study of models as tables of the documentation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

STUDY = "model-study"


def tables(result: Mapping[str, Any]) -> str:
    """Return the study as Markdown: F1s at the default distances, and at those of other sets."""
    models = result["models"]
    dates = sorted({model["measured"] for model in models.values()})
    measured = f"Measured {' to '.join(dict.fromkeys((dates[0], dates[-1])))}."
    if name := models.get("sentence", {}).get("model"):
        measured += f" The sentence model is {name}."
    defaults = {name: model["at_default"] for name, model in models.items()}
    chosen = {
        name: {
            "distance": model["distance"],
            "sets": {key: (f1s["columns"], f1s["values"]) for key, f1s in model["sets"].items()},
            "mean": model["mean"],
        }
        for name, model in models.items()
    }
    return "\n\n".join(
        [
            measured,
            "F1 of columns and of values at the default distance of each model:",
            _table(defaults, "distance"),
            "The same, each data set at the distance chosen on the others:",
            _table(chosen, "distance of all"),
        ]
    )


def _table(rows: Mapping[str, Mapping[str, Any]], distance: str) -> str:
    sets = list(next(iter(rows.values()))["sets"])
    return "\n".join(
        [
            f"| | {distance} | {' | '.join(sets)} | mean |",
            f"|{'---|' * (len(sets) + 3)}",
            *(
                f"| {name} | {row['distance']:.2f} | "
                f"{' | '.join(' '.join(map(_short, row['sets'][key])) for key in sets)} | "
                f"{_short(row['mean'])} |"
                for name, row in rows.items()
            ),
        ]
    )


def _short(number: float) -> str:
    return f"{number:.3f}".removeprefix("0")
