"""Charts of results; matplotlib is imported when one is drawn, and no style of it is changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pexeso.results.match_kinds import LABELS
from pexeso.runtime.extras import require
from pexeso.runtime.formatting import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MAX_CURVES = 8
"""Most columns of a chart: they differ by colour and by kind of line."""

COLOURS = {"exact": "#0f766e", "alias": "#0b6299", "spelling": "#a34a07", "meaning": "#6d32c4"}
"""By kind of match, as on the pages: each has a contrast of at least 4.5 with white."""

_STYLES = ("solid", "dashed", "dotted", "dashdot")
_MAX_LABEL = 48

Curve = tuple[str, np.ndarray, np.ndarray]


def axes_of(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    require("matplotlib", "A chart")
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]


def plot_curves(
    curves: Sequence[Curve], n_found: int, max_distance: float, counted: str, ax: Axes | None = None
) -> Axes:
    """Draw joinability over distance, a line for each column.

    Parameters
    ----------
    curves : sequence of (str, float64 (n,), float64 (n,))
        The name of a column, distances ascending, and the joinability within each.
    n_found : int
        Columns found, of which these are the first.
    """
    ax = axes_of(ax)
    colours, lines = list(COLOURS.values()), []
    for number, (_, distances, joinability) in enumerate(curves):
        start = joinability[:1] if len(distances) and distances[0] == 0 else np.zeros(1)
        end = joinability[-1:] if len(joinability) else np.zeros(1)
        x = np.concatenate([[0.0], distances, [max_distance]])
        (line,) = ax.step(
            x,
            np.concatenate([start, joinability, end]),
            where="post",
            color=colours[number % len(colours)],
            linestyle=_STYLES[(number + number // len(colours)) % len(_STYLES)],
        )
        lines.append(line)
    ax.set_xlim(0, max_distance or 1)
    ax.set_ylim(0, 1.02)
    ax.set_xlabel(f"distance, up to that of the search ({max_distance:g})")
    ax.set_ylabel(f"joinability (share of {counted})")
    first = f", the first {len(curves)}" if n_found > len(curves) else ""
    ax.set_title(f"{n_found:,} column{'' if n_found == 1 else 's'} found{first}")
    if lines:
        # Names are set afterwards: a legend leaves out those that begin with an underscore.
        legend = ax.legend(
            lines, [""] * len(lines), loc="upper center", bbox_to_anchor=(0.5, -0.16), frameon=False
        )
        for text, (name, _, _) in zip(legend.get_texts(), curves, strict=True):
            _set_text(text, name)
    return ax


def plot_kinds(name: str, matched: Mapping[str, int], counted: str, ax: Axes | None = None) -> Axes:
    ax = axes_of(ax)
    kinds = list(matched)
    labels, colours = [LABELS.get(kind, kind) for kind in kinds], [COLOURS[kind] for kind in kinds]
    bars = ax.barh(labels, list(matched.values()), color=colours)
    ax.bar_label(bars, labels=[f"{number:,}" for number in matched.values()], padding=3)
    ax.invert_yaxis()
    ax.set_xlim(0, 1.1 * max(1, *matched.values()))
    ax.locator_params(axis="x", integer=True)
    ax.set_xlabel(f"{counted} of the query column that match")
    _set_text(ax.set_title(""), name)
    return ax


def _set_text(text: object, name: str) -> None:
    """Set a text that a user chose; a dollar in it begins no formula."""
    text.set_parse_math(False)  # type: ignore[attr-defined]
    text.set_text(plain(name, _MAX_LABEL))  # type: ignore[attr-defined]
