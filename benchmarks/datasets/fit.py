"""The fit of the shape of calibrated lakes to the reference rates.

Run it as ``python -m benchmarks.datasets.fit swdc``.

A simplex search over the ten continuous parameters, with the same draws in every step. The printed
shape goes into `benchmarks.datasets.calibrated` by hand; the fixed constants, not this search,
define the lakes.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from dataclasses import dataclass

import numpy as np
import torch

from benchmarks.datasets.calibrated import CalibratedModel, Shape, VectorChunks, calibrated_model
from benchmarks.datasets.calibrated_columns import ColumnPlan, plan_columns, postings
from benchmarks.datasets.profile import pair_shares
from benchmarks.datasets.reference import WEB_NEARER, WEB_RATES
from benchmarks.drawing import size_class

FITTED_EDGES = (0.08, 0.16, 0.2, 0.3, 0.35, 0.4, 0.5, 0.7, 1.0)
_RATE_WEIGHT = 3.0
_SHARES = ("mean", "topic_share", "near_share")
_DECAYS = ("topic_decay", "family_decay", "noise_decay")
_FIXED = ("topics", "families", "words", "column_topics")


@dataclass(frozen=True)
class Sample:
    """What stays the same while a shape is looked for: columns, and which values make the pairs."""

    plan: ColumnPlan
    query_rows: torch.Tensor
    lake_rows: torch.Tensor


def draw_sample(model: CalibratedModel, n_values: int = 40_000, seed: int = 0) -> Sample:
    """Plan a small lake with the model's column sizes and draw 2,000 values of query columns.

    All size classes are drawn equally.
    """
    n_columns = max(400, round(n_values * model.n_columns / model.n_values))
    plan = plan_columns(n_values, n_columns, seed)
    generator = np.random.default_rng(seed)
    values = torch.cat([values for values, _ in postings(plan, torch.device("cpu"))]).numpy()
    ends = plan.sizes.cumsum(0).numpy()
    classes = np.array([size_class(size) for size in plan.sizes.tolist()])
    rows = []
    for number in range(classes.max() + 1):
        members = np.flatnonzero(classes == number)
        for column in generator.choice(members, 100) if len(members) else ():
            rows.append(
                generator.choice(values[ends[column] - int(plan.sizes[column]) : ends[column]], 4)
            )
    return Sample(plan, torch.from_numpy(np.concatenate(rows)).long(), torch.arange(n_values))


def misfit(model: CalibratedModel, shape: Shape, sample: Sample) -> float:
    """Return the weighted mean square log ratio of all rates to those of the reference."""
    chunks = VectorChunks(dataclasses.replace(model, shape=shape), sample.plan, torch.device("cpu"))
    shares = pair_shares(torch.cat(list(chunks)), sample.query_rows, sample.lake_rows)
    nearer = shares["nearer"]
    squares = [
        (_RATE_WEIGHT, _log_ratio(shares[name], rate))
        for name, rate in WEB_RATES.items()
        if name != "duplicate_rate"
    ] + [(1.0, _log_ratio(nearer[edge], WEB_NEARER[edge])) for edge in FITTED_EDGES]
    return sum(weight * ratio**2 for weight, ratio in squares) / sum(
        weight for weight, _ in squares
    )


def _log_ratio(rate: float, target: float) -> float:
    return math.log(max(rate, target * 1e-3) / target)


def _to_line(name: str, value: float) -> float:
    """Map a parameter to the real line.

    Shares are mapped by log-odds, lengths and their sigmas by logarithm. Decays are kept.
    """
    if name in _SHARES:
        return math.log(value / (1.0 - value))
    return value if name in _DECAYS else math.log(value)


def _from_line(name: str, coordinate: float) -> float:
    if name in _SHARES:
        return 1.0 / (1.0 + math.exp(-coordinate))
    return coordinate if name in _DECAYS else math.exp(coordinate)


def fit(model: CalibratedModel, steps: int = 150) -> tuple[Shape, float]:
    """Search from the model's present shape; return the best found and its misfit.

    Parameters
    ----------
    model : CalibratedModel
    steps : int
        Shapes to try, 2 to 10 seconds each, at least one more than there are parameters.
    """
    from scipy.optimize import minimize

    sample = draw_sample(model)
    names = [item.name for item in dataclasses.fields(Shape) if item.name not in _FIXED]
    start = np.array([_to_line(name, getattr(model.shape, name)) for name in names])

    def shape_of(point: np.ndarray) -> Shape:
        values = {
            name: _from_line(name, value) for name, value in zip(names, point.tolist(), strict=True)
        }
        return dataclasses.replace(model.shape, **values)

    simplex = np.vstack([start, start + 0.15 * np.eye(len(start))])
    optimum = minimize(
        lambda point: misfit(model, shape_of(point), sample),
        start,
        method="Nelder-Mead",
        options={"maxfev": steps, "initial_simplex": simplex, "adaptive": True},
    )
    return shape_of(optimum.x), float(optimum.fun)


def main() -> None:
    """Fit one data set, by name, and print the shape."""
    shape, error = fit(calibrated_model(sys.argv[1] if len(sys.argv) > 1 else ""))
    print(shape)
    print(f"root mean square of the natural logarithms of ratios: {math.sqrt(error):.3f}")


if __name__ == "__main__":
    main()
