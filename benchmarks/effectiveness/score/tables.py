"""The study as tables of the documentation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

STUDY, MEAN = "score-study", "mean"

Rows = Mapping[str, Mapping[str, Any]]


def tables(result: Mapping[str, Any]) -> str:
    """Return a study as Markdown: its data sets, figures, differences and calibration."""
    counts = result["counts"]

    def table(rows: Rows, cell: Callable[[Any], str], more: str = "") -> str:
        names = [*counts, more] if more else list(counts)
        return "\n".join(
            [
                f"| | {' | '.join(names)} |",
                f"|{'---|' * (len(names) + 1)}",
                *(
                    f"| {name} | {' | '.join(cell(row[column]) for column in names)} |"
                    for name, row in rows.items()
                ),
            ]
        )

    counts_by_name = {
        name.replace("_", " "): {data_set: sizes[name] for data_set, sizes in counts.items()}
        for name in next(iter(counts.values()))
    }
    return "\n\n".join(
        [
            f"Measured {result['measured']}, with the model lexical:",
            table(counts_by_name, "{:,}".format),
            "Mean average precision, and recall of the cut with a precision of .95:",
            table({**result["measures"], **result["models"]}, _figures, MEAN),
            "95 % of the differences to the single measure that is best on the data set in "
            "hindsight, of the same two figures:",
            table(result["behind"], _intervals),
            "Mean difference between probabilities and how often they are right:",
            table(result["models"], lambda figures: _short(figures["reliability"]["error"])),
        ]
    )


def _figures(figures: Mapping[str, float]) -> str:
    return f"{_short(figures['map'])} {_short(figures['recall_95'])}"


def _intervals(intervals: Mapping[str, tuple[float, float]]) -> str:
    return ", ".join(f"{low:+.3f} to {high:+.3f}" for low, high in intervals.values())


def _short(number: float) -> str:
    return f"{number:.3f}".removeprefix("0")
