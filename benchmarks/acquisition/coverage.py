"""How often the 95 % intervals of estimates from samples cover the values of the whole tables.

Each trial draws the samples of a case, a pair or a chain of tables, with a seed of its own and asks
for the estimates of join informativeness, correlation and quality. A cell is one case, rate and
measure; it must cover in at least 93 % of the trials. An interval that says it is not reliable is
what is possible at all, so it covers; how often that happens is a column of its own.

The rule that small domains are not sampled is off, as it would make cells trivial.

    python -m benchmarks.acquisition.coverage --trials 1000
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import numpy as np
import pandas as pd
import torch

from benchmarks import report
from benchmarks.acquisition.coverage_cases import Case, lake_pairs, random_chains, random_pairs
from benchmarks.machine import describe_machine
from pexeso.acquisition.intervals import Estimate

RATES = (0.1, 0.25, 0.5)
MIN_SHARE = 0.93


def measure(
    n_trials: int = 1000,
    seed: int = 0,
    *,
    cases: Sequence[Case] | None = None,
    rates: Sequence[float] = RATES,
) -> list[dict[str, object]]:
    """Return the coverage of each cell.

    Parameters
    ----------
    n_trials : int
        Samples of each case at each rate.
    seed : int
        Of the random tables and of the samples.
    cases : sequence of Case, optional
        Without it all random ones and those of the shared lakes.
    rates : sequence of float
        Of the samples.

    Returns
    -------
    list of dict
        case, rate, measure, exact value, trials, coverage, share of reliable intervals, coverage
        and mean width of these, mean of the estimates, mean of the plug-in values.
    """
    cases = [*random_pairs(seed), *random_chains(seed), *lake_pairs()] if cases is None else cases
    return [row for case in cases for row in _rows(case, n_trials, seed, rates)]


def _rows(
    case: Case, n_trials: int, seed: int, rates: Sequence[float]
) -> Iterator[dict[str, object]]:
    measures = case.measures()
    whole = case.drawn(1.0, seed)
    exact = {name: estimate(whole).value for name, estimate in measures.items()}
    for rate in rates:
        by_measure: dict[str, list[Estimate]] = {name: [] for name in measures}
        for trial in range(n_trials):
            drawn = case.drawn(rate, seed * 1_000_003 + trial)
            for name, estimate in measures.items():
                by_measure[name].append(estimate(drawn))
        for name, estimates in by_measure.items():
            yield {
                "case": case.name,
                "rate": rate,
                "measure": name,
                "exact": exact[name],
                **_summary(estimates, exact[name]),
            }


def _summary(estimates: list[Estimate], exact: float) -> dict[str, object]:
    tolerance = 1e-9 * max(1.0, abs(exact))
    covers = np.array([e.low - tolerance <= exact <= e.high + tolerance for e in estimates])
    reliable = np.array([e.reliable for e in estimates])
    widths = np.array([e.high - e.low for e in estimates])[reliable]
    selected = [e for e in estimates if e.reliable]
    return {
        "trials": len(estimates),
        "coverage": float(covers.mean()),
        "reliable": float(reliable.mean()),
        "coverage_reliable": float(covers[reliable].mean()) if len(selected) else math.nan,
        "mean_width": float(widths.mean()) if len(selected) else math.nan,
        "mean_value": float(np.mean([e.value for e in selected])) if selected else math.nan,
        "mean_plug_in": float(np.mean([e.plug_in for e in selected])) if selected else math.nan,
    }


def _keep(rows: list[dict[str, object]], options: dict[str, int], seed: int) -> None:
    """Write the cells so far: a run that is stopped leaves the cases that it ended."""
    result = {
        "part": "coverage",
        "machine": describe_machine(torch.device("cpu")),
        "seed": seed,
        "options": options,
        "cells": json.loads(pd.DataFrame(rows).to_json(orient="records")),
    }
    report.write_result(report.RESULTS / "acquisition" / "coverage.json", result)


@click.command()
@click.option("--trials", default=1000, show_default=True, help="Samples of each pair and rate.")
@click.option("--seed", default=0, show_default=True, help="Of the tables and the samples.")
@click.option("--random/--no-random", default=True, help="Measure the random tables.")
@click.option("--lakes/--no-lakes", default=True, help="Measure the tables of the shared lakes.")
@click.option("--every", default=1, show_default=True, help="Measure each case of so many.")
@click.option("--write", is_flag=True, help="Keep the rows in benchmarks/results/acquisition.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the rows to this CSV file.")
def main(
    trials: int, seed: int, random: bool, lakes: bool, every: int, write: bool, out: Path | None
) -> None:
    """Print the coverage of each cell, and which of them cover too seldom."""
    start = time.monotonic()
    cases: list[Case] = [*random_pairs(seed), *random_chains(seed)] if random else []
    cases += lake_pairs() if lakes else []
    rows: list[dict[str, object]] = []
    for case in cases[::every]:
        rows += measure(trials, seed, cases=[case])
        if out is not None:
            pd.DataFrame(rows).to_csv(out, index=False)
        if write:
            _keep(rows, {"trials": trials, "every": every}, seed)
        print(pd.DataFrame(rows[-len(RATES) * len(case.measures()) :]).to_string(), flush=True)
    low = [row for row in rows if row["coverage"] < MIN_SHARE]
    print(
        f"{len(rows)} cells in {time.monotonic() - start:.0f} s, {len(low)} below {MIN_SHARE:.0%}"
    )
    for row in low:
        print(row)


if __name__ == "__main__":
    main()
