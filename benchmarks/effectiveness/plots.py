"""Pictures of a result: recall at each precision, and the F1 of each task."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.effectiveness.report import CURVE_PRECISIONS, with_values
from benchmarks.plots import COLOURS, MARKERS, STYLES
from pexeso.errors import MissingPackageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MANY_TASKS, MAX_SHOWN_TASKS = 6, 30
"""From and up to so many tasks, each is shown by itself."""

SOURCE = "Description"
"""The text of a PNG file that holds the fingerprint of the result it was drawn from."""


def plot_result(result: Mapping[str, Any], folder: Path) -> list[Path]:
    """Draw the curves of a result.

    Joinable columns are written to ``NAME.png``, values to ``NAME-values.png``.

    Raises
    ------
    MissingPackageError
        When matplotlib is not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    name, methods = Path(result["data"]).name, result["methods"]
    drawn = []
    for has, draw, ending in (("curve", _columns, ""), ("values", _values, "-values")):
        if any(has in scores for scores in methods.values()):
            path = folder / f"{name}{ending}.png"
            draw(methods).savefig(
                path, dpi=110, metadata={SOURCE: fingerprint(result), "Software": None}
            )
            drawn.append(path)
    return drawn


def fingerprint(result: Mapping[str, Any]) -> str:
    """Name what was measured by its content, wherever it comes from: SHA-256 in hexadecimal.

    Examples
    --------
    >>> fingerprint({"tasks": 3, "origin": {"code": "1"}}) == fingerprint({"tasks": 3})
    True
    """
    measured = {name: value for name, value in result.items() if name != "origin"}
    return hashlib.sha256(json.dumps(measured, sort_keys=True).encode()).hexdigest()


def _figure(width: float, height: float) -> Figure:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPackageError("Plots need matplotlib: pip install -e '.[dev]'.") from error
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _style(number: int, name: str) -> dict[str, Any]:
    """Tell methods apart by colour and stroke; what is ours is drawn heavier."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": STYLES[number % len(STYLES)],
        "linewidth": 2.6 if name == "pexeso" else 1.4,
        "label": name,
    }


def _columns(methods: Mapping[str, Any]) -> Figure:
    figure = _figure(12, 4.2)
    curves = {name: scores["curve"] for name, scores in methods.items() if "curve" in scores}
    for column, (axis, title) in enumerate(
        zip(
            figure.subplots(1, 2, sharey=True),
            ("all joinable pairs", "pairs by meaning alone"),
            strict=True,
        )
    ):
        for number, (name, curve) in enumerate(curves.items()):
            axis.plot(CURVE_PRECISIONS, np.array(curve)[:, column], **_style(number, name))
        _frame(axis, title, "precision at least", "highest recall", (0.5, 1.0))
    _add_legend(figure)
    return figure


def _values(methods: Mapping[str, Any]) -> Figure:
    methods = with_values(methods)
    tasks = list(next(iter(methods.values()))["values"]["tasks"])
    shows_tasks = MANY_TASKS <= len(tasks) <= MAX_SHOWN_TASKS
    figure = _figure(14 if shows_tasks else 8, 5.4 if shows_tasks else 4.2)
    axes = figure.subplots(1, 2, width_ratios=(1, 1.2)) if shows_tasks else [figure.subplots()]
    for number, (name, scores) in enumerate(methods.items()):
        values = scores["values"]
        curve = np.array(values.get("curve", [[values["precision"], values["recall"]]]))
        marker = {"marker": MARKERS[number % len(MARKERS)]} if len(curve) == 1 else {}
        axes[0].plot(curve[:, 1], curve[:, 0], **_style(number, name), **marker)
    _frame(axes[0], "values, mean over tasks, at each threshold", "recall", "precision", (0, 1))
    if shows_tasks:
        _draw_tasks(axes[1], methods, tasks)
    _add_legend(figure)
    return figure


def _draw_tasks(axis: Axes, methods: Mapping[str, Any], tasks: Sequence[str]) -> None:
    """Draw the F1 of each task, in the order of pexeso's or of the first method's."""
    leader = "pexeso" if "pexeso" in methods else next(iter(methods))
    ordered = sorted(tasks, key=lambda task: methods[leader]["values"]["tasks"][task]["f1"])
    for number, (name, scores) in enumerate(methods.items()):
        f1s = [scores["values"]["tasks"][task]["f1"] for task in ordered]
        ours = name == "pexeso"
        axis.plot(
            f1s,
            range(len(ordered)),
            linestyle="none",
            marker=MARKERS[number % len(MARKERS)],
            markersize=9 if ours else 5,
            alpha=1 if ours else 0.75,
            color=COLOURS[number % len(COLOURS)],
            label=name,
            zorder=3 if ours else 2,
        )
    axis.set_yticks(range(len(ordered)), ordered, fontsize=7)
    _frame(axis, "F1 of each task", "F1", "", (0, 1.02))
    axis.set_ylim(-0.7, len(ordered) - 0.3)


def _add_legend(figure: Figure) -> None:
    """Name the methods beside the axes: there are too many to leave room for curves."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, fontsize=8, loc="outside right center")


def _frame(axis: Axes, title: str, below: str, beside: str, limits: tuple[float, float]) -> None:
    axis.set(title=title, xlabel=below, ylabel=beside, xlim=limits, ylim=(0, 1.02))
    axis.grid(alpha=0.3)
