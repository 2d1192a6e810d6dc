"""The result of the part ``held-back`` as tables in Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.acquisition.judging import MODELS
from benchmarks.acquisition.plan_tables import NONE
from benchmarks.report import markdown_table

Result = dict[str, Any]


def target_tables(result: Result) -> str:
    """Return a stored result as text.

    Parameters
    ----------
    result : dict
        Of the part ``held-back``.
    """
    targets = result["targets"]
    names = list(targets[0]["strategies"])
    parts = [
        "Gain over the base table alone (R2 or accuracy on rows held back), the mean over splits; "
        "and whether the plan's is at least that of the best published strategy.",
        markdown_table(
            ("target", "rows", "candidates", "model", "base", *names, "plan at least the best"),
            (row for target in targets for row in _gains(target, names)),
        ),
        "Columns chosen, seconds to choose them, and gain of trees for a second.",
        markdown_table(
            ("target", *(f"{name}: columns, s, gain/s" for name in names)),
            (
                (target["problem"], *(_cost(target["strategies"][name]) for name in names))
                for target in targets
            ),
        ),
    ]
    return "\n\n".join(parts)


def _gains(target: Result, names: Sequence[str]) -> Iterator[Sequence[Any]]:
    for model in MODELS:
        held = target["against"]["plan"][model]
        yield (
            target["problem"],
            target["rows"],
            target["candidates"],
            model,
            f"{statistics.mean(target['base'][model]):.3f}",
            *(f"{target['strategies'][name]['gain'][model]:+.3f}" for name in names),
            "yes" if held["at_least"] else f"no, {held['gain'] - held['best_gain']:+.3f}",
        )


def _cost(strategy: Result) -> str:
    columns = statistics.mean(map(len, strategy["names"]))
    seconds = statistics.mean(strategy["seconds"])
    per_second = strategy["gain_per_second"][MODELS[0]]
    gained = NONE if per_second is None else f"{per_second:.2f}"
    return f"{columns:.1f}, {seconds:.2f}, {gained}"
