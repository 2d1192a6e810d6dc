"""What the command line says about thresholds that an index has chosen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pexeso.faces.cli.output.output import talk

if TYPE_CHECKING:
    from pexeso.options import SearchOptions
    from pexeso.semantic.thresholds.advice import Advice


def tell_advice(options: Iterable[SearchOptions]) -> None:
    """Say on stderr which thresholds were chosen and why, once for searches that got the same."""
    reported = set()
    for settings in options:
        chosen = (settings.max_distance, settings.min_joinability)
        if settings.advice is not None and chosen not in reported:
            again = reported and settings.advice.min_joinability is not None
            talk(
                f"Chosen for a column of few values: {thresholds(*chosen)}"
                if again
                else advice_line(settings.advice, settings.min_joinability)
            )
            reported.add(chosen)


def advice_line(advice: Advice, min_joinability: float | None) -> str:
    """Write the thresholds chosen, and why, on a line.

    Examples
    --------
    >>> from pexeso.semantic.thresholds.advice import Advice
    >>> advice_line(Advice(0.31, 0.5, "unrelated neighbours are rare."), 0.5)
    'Chosen: --max-distance 0.31 --min-joinability 0.5: unrelated neighbours are rare.'
    >>> advice_line(Advice(0.31, 0.5, "unrelated neighbours are rare."), 0.75)
    'Chosen: --max-distance 0.31 --min-joinability 0.75: unrelated neighbours are \
rare. Of a column of so few values more must match: fewer could be chance.'
    """
    chosen = None if advice.min_joinability is None else min_joinability
    line = f"Chosen: {thresholds(advice.max_distance, chosen)}: {advice.why}"
    if chosen is None or chosen <= advice.min_joinability:
        return line
    return f"{line} Of a column of so few values more must match: fewer could be chance."


def thresholds(max_distance: float, min_joinability: float | None) -> str:
    """Write thresholds as the options that give them."""
    share = "" if min_joinability is None else f" --min-joinability {min_joinability:.4g}"
    return f"--max-distance {max_distance:g}{share}"
