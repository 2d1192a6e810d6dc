"""One picture of a sweep: time a query column, and below it the distances computed for it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pexeso.errors import MissingPackageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Told apart by the colour-blind as well (Okabe and Ito).

Markers tell them apart in black and white.
"""
MARKERS = "osD^vPX"
STYLES = ("-", "--", "-.", ":")
"""Lines that lie on each other can both be seen."""

DECADES = 10.0
"""From this ratio of the largest to the smallest value on, an axis is logarithmic."""

_FEW = 8
"""So many values of the thing varied, and no more, are all written below the axis."""

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class _Panel:
    metric: str
    low: str | None
    high: str | None
    label: str
    factor: float

    def numbers(self, row: Mapping[str, Any]) -> tuple[float, float, float]:
        """Return the value of a row and the ends of its band, in the unit of the label."""
        names = (self.metric, self.low or self.metric, self.high or self.metric)
        return tuple(float(row[name]) * self.factor for name in names)


_PANELS = (
    _Panel("median_seconds", "p10_seconds", "p90_seconds", "time per query column (ms)", 1000.0),
    _Panel("distances", None, None, "distances per query column (number)", 1.0),
)


def plot_sweep(result: Mapping[str, Any], path: Path) -> None:
    """Draw the result of a sweep into a PNG file.

    Lines where the sweep has an axis, else one row for each point. Medians are marked, from the 10
    % to the 90 % quantile is a band or a bar.

    Parameters
    ----------
    result : mapping
        What `benchmarks.sweeps.run_sweep` gives.
    path : Path
        Its folder must be there.

    Raises
    ------
    MissingPackageError
        When matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPackageError("Plots need matplotlib: pip install -e '.[dev]'.") from error
    panels = [
        panel
        for panel in _PANELS
        if any(row.get(panel.metric) is not None for row in result["rows"])
    ]
    if result["declared"]["axis"] is None:
        figure = Figure(figsize=(10, 2.2 + 0.42 * len(result["rows"])), layout="constrained")
        _draw_points(figure, result["rows"], panels)
    else:
        figure = Figure(figsize=(8, 3 + 2.6 * len(panels)), layout="constrained")
        _draw_lines(figure, result, panels)
    FigureCanvasAgg(figure)
    figure.suptitle(f"{result['declared']['title']} ({result['data']})", fontsize=13)
    width = int(figure.get_figwidth() * 13)
    figure.supxlabel("\n".join(textwrap.wrap(_caption(result), width)), fontsize=8, color="0.35")
    figure.savefig(path, dpi=130, metadata={"Software": None})


def _draw_lines(figure: Figure, result: Mapping[str, Any], panels: Sequence[_Panel]) -> None:
    lines = list(dict.fromkeys(row["line"] for row in result["rows"]))
    for panel, axes in zip(
        panels, _several(figure.subplots(len(panels), 1, sharex=True)), strict=True
    ):
        known = _known(result["rows"], panel)
        for number, line in enumerate(lines):
            rows = sorted((row for row in known if row["line"] == line), key=lambda row: row["x"])
            if rows:
                _draw_line(axes, panel, rows, number)
        axes.set_ylabel(panel.label)
        _finish(
            axes, "y", [number for row in known for number in panel.numbers(row)], from_zero=True
        )
    xs = [row["x"] for row in result["rows"]]
    axes.set_xlabel(result["declared"]["axis"])
    _finish(axes, "x", xs)
    if len(set(xs)) <= _FEW:
        axes.set_xticks(
            sorted(set(xs)), [_plain(x) for x in sorted(set(xs))]
        )  # where something was measured
        axes.minorticks_off()
    if len(lines) > 1:
        figure.axes[0].legend(
            frameon=False, ncols=min(len(lines), 4), loc="lower left", bbox_to_anchor=(0, 1)
        )


def _draw_line(axes: Axes, panel: _Panel, rows: Rows, number: int) -> None:
    xs, colour = [row["x"] for row in rows], COLOURS[number % len(COLOURS)]
    middle, low, high = zip(*(panel.numbers(row) for row in rows), strict=True)
    style, marker = STYLES[number % len(STYLES)], MARKERS[number % len(MARKERS)]
    axes.plot(xs, middle, style, color=colour, marker=marker, markersize=5, label=rows[0]["line"])
    if panel.low:
        axes.fill_between(xs, low, high, color=colour, alpha=0.13, linewidth=0)


def _draw_points(figure: Figure, rows: Rows, panels: Sequence[_Panel]) -> None:
    """Draw one row for each point, as a dot.

    It is not a bar, since a logarithmic axis has no zero at which a bar could start.
    """
    for panel, axes in zip(
        panels, _several(figure.subplots(1, len(panels), sharey=True)), strict=True
    ):
        known = _known(rows, panel)
        for row in known:
            level = rows.index(row)
            middle, low, high = panel.numbers(row)
            if panel.low:
                axes.plot([low, high], [level, level], color=COLOURS[0], alpha=0.35, linewidth=5)
            axes.plot(middle, level, "o", color=COLOURS[0])
        axes.set_xlabel(panel.label)
        _finish(
            axes, "x", [number for row in known for number in panel.numbers(row)], from_zero=True
        )
    figure.axes[0].set_yticks(range(len(rows)), [str(row["x"]) for row in rows])
    figure.axes[0].invert_yaxis()


def _known(rows: Rows, panel: _Panel) -> list[Mapping[str, Any]]:
    return [row for row in rows if row.get(panel.metric) is not None]


def _several(axes: Any) -> list[Axes]:
    return list(axes.flat) if hasattr(axes, "flat") else [axes]


def _finish(axes: Axes, which: str, numbers: Sequence[float], from_zero: bool = False) -> None:
    """Make an axis logarithmic where its values span decades, and write its numbers plainly.

    Other axes start at zero if `from_zero` is set.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter

    axis, set_scale = (
        (axes.xaxis, axes.set_xscale) if which == "x" else (axes.yaxis, axes.set_yscale)
    )
    positive, largest = [number for number in numbers if number > 0], max(numbers)
    if (
        positive
        and largest / min(positive) >= DECADES
        and (from_zero or len(positive) == len(numbers))
    ):
        if len(positive) == len(numbers):
            set_scale("log")
            axis.set_major_locator(
                LogLocator(subs=(1, 2, 5) if largest / min(positive) < DECADES**3 else (1,))
            )
        else:
            set_scale("symlog", linthresh=min(positive))  # zeros have a place, below the smallest
            decades = range(ceil(log10(min(positive))), floor(log10(largest)) + 1)
            axis.set_major_locator(FixedLocator([0.0, *(10.0**decade for decade in decades)]))
        axis.set_minor_formatter(NullFormatter())
    elif from_zero:
        (axes.set_xlim if which == "x" else axes.set_ylim)(0, largest * 1.05 or 1)
    axis.set_major_formatter(FuncFormatter(lambda number, _: _plain(number)))
    axes.grid(True, axis=which, which="major", color="0.9")
    axes.set_axisbelow(True)


def _plain(number: float) -> str:
    """Write a number for an axis.

    Examples
    --------
    >>> _plain(0.06), _plain(20000.0), _plain(3000000)
    ('0.06', '20,000', '3 M')
    """
    if abs(number) >= 10**6:
        return f"{number / 10**6:,.10g} M"
    return f"{number:,.10g}"


def _caption(result: Mapping[str, Any]) -> str:
    largest, settings, machine = (
        max(result["lakes"], key=lambda lake: lake["values"]),
        result["settings"],
        result["machine"],
    )
    mode = "in one batch" if settings["batched"] else "one at a time"
    threads = f"{settings['threads']} thread{'s' if settings['threads'] > 1 else ''}"
    device = "" if machine["device"] == "cpu" else f", {machine['device']}"
    repeats = "1 repeat" if settings["repeats"] == 1 else f"median of {settings['repeats']} repeats"
    fixed = [
        f"{words} {settings[name]:g}"
        for name, words in (
            ("max_distance", "largest distance"),
            ("min_joinability", "joinability"),
        )
        if name != result["declared"]["over"]
    ]
    return (
        f"{result['data']}: {largest['values']:,} vectors of {largest['dimensions']} dimensions "
        f"in {largest['columns']:,} columns"
        f"{' at most' if len(result['lakes']) > 1 else ''}; {result['queries']} query columns "
        f"{mode}, {', '.join(fixed)}; "
        f"{repeats}; marks: median over query columns, band: from the 10 % to the 90 % quantile; "
        f"{machine['processor']}, {machine['cores']} cores, {threads}{device}, "
        f"{machine['date'][:10]}; code {result['origin']['code']}"
    )
