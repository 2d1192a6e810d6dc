"""How often the 95 % intervals of estimates from samples cover the values of the whole tables.

Each trial draws the samples of a pair of tables with a seed of its own and asks for the estimates
of join informativeness, correlation and quality. A cell is one pair, rate and measure; it must
cover in at least 93 % of the trials. An interval that says it is not reliable is what is possible
at all, so it covers; how often that happens is a column of its own.

The rule that small domains are not sampled is off, as it would make cells trivial.

    python -m benchmarks.acquisition.coverage --trials 1000
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click
import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv

from benchmarks.datasets.tables import web_sources
from pexeso.acquisition.measures.quality import Dependency
from pexeso.acquisition.sampling.correlated import KeyTest, correlated_sample
from pexeso.acquisition.sampling.intervals import Estimate
from pexeso.acquisition.sampling.key_summaries import key_summary
from pexeso.acquisition.sampling.pairs import SampledPair

RATES = (0.1, 0.25, 0.5)
ASKED = 0.93


@dataclass(frozen=True)
class Pair:
    """Two whole tables and what is asked of their join.

    Attributes
    ----------
    name : str
        What the results call it.
    left, right : pyarrow.Table
        The tables.
    on : tuple of str
        The columns of the join.
    x, y : tuple of str
        The attributes to correlate.
    numeric : tuple of str
        Those of them, or of `numbers`, that are numerical.
    numbers : tuple of str
        Attributes to correlate with Y as numbers.
    dependencies : tuple of Dependency
        By which quality is measured.
    """

    name: str
    left: pa.Table
    right: pa.Table
    on: tuple[str, ...]
    x: tuple[str, ...]
    y: tuple[str, ...]
    numbers: tuple[str, ...]
    dependencies: tuple[Dependency, ...]
    numeric: tuple[str, ...] = field(default=())

    def measures(self) -> dict[str, Callable[[SampledPair], Estimate]]:
        """Return what is estimated, by name."""
        numeric = {*self.numeric, *self.numbers}
        found = {
            "JI": lambda pair: pair.informativeness(),
            "CORR": lambda pair: pair.correlation(self.x, self.y, numeric=self.numeric),
            "Q": lambda pair: pair.quality(self.dependencies),
        }
        if self.numbers:
            found["CORR numerical"] = lambda pair: pair.correlation(
                self.numbers, self.y, numeric=numeric
            )
        return found


def measure(
    n_trials: int = 1000,
    seed: int = 0,
    *,
    pairs: Sequence[Pair] | None = None,
    rates: Sequence[float] = RATES,
) -> list[dict[str, object]]:
    """Return the coverage of each cell.

    Parameters
    ----------
    n_trials : int
        Samples of each pair at each rate.
    seed : int
        Of the random tables and of the samples.
    pairs : sequence of Pair, optional
        Without it all random ones and those of the shared lakes.
    rates : sequence of float
        Of the samples.

    Returns
    -------
    list of dict
        pair, rate, measure, exact value, trials, coverage, share of reliable intervals, coverage
        and mean width of these, mean of the estimates, mean of the plug-in values.
    """
    pairs = [*random_pairs(seed), *lake_pairs()] if pairs is None else pairs
    return [row for pair in pairs for row in _rows(pair, n_trials, seed, rates)]


def _rows(
    pair: Pair, n_trials: int, seed: int, rates: Sequence[float]
) -> Iterator[dict[str, object]]:
    measures = pair.measures()
    whole = SampledPair(pair.left, pair.right, pair.on, 1.0)
    exact = {name: estimate(whole).value for name, estimate in measures.items()}
    for rate in rates:
        found: dict[str, list[Estimate]] = {name: [] for name in measures}
        for trial in range(n_trials):
            drawn = _drawn(pair, rate, seed * 1_000_003 + trial)
            for name, estimate in measures.items():
                found[name].append(estimate(drawn))
        for name, estimates in found.items():
            yield {
                "pair": pair.name,
                "rate": rate,
                "measure": name,
                "exact": exact[name],
                **_summary(estimates, exact[name]),
            }


def _drawn(pair: Pair, rate: float, seed: int) -> SampledPair:
    tests = [KeyTest(pair.on, rate)]
    tables = pair.left, pair.right
    samples = [correlated_sample(table, tests, seed=seed).rows for table in tables]
    one, two = (key_summary(table, pair.on, seed=seed) for table in tables)
    return SampledPair(*samples, pair.on, rate, seed=seed, summaries=(one, two))


def _summary(estimates: list[Estimate], exact: float) -> dict[str, object]:
    tolerance = 1e-9 * max(1.0, abs(exact))
    covers = np.array([e.low - tolerance <= exact <= e.high + tolerance for e in estimates])
    reliable = np.array([e.reliable for e in estimates])
    widths = np.array([e.high - e.low for e in estimates])[reliable]
    kept = [e for e in estimates if e.reliable]
    return {
        "trials": len(estimates),
        "coverage": float(covers.mean()),
        "reliable": float(reliable.mean()),
        "coverage_reliable": float(covers[reliable].mean()) if len(kept) else math.nan,
        "mean_width": float(widths.mean()) if len(kept) else math.nan,
        "mean_value": float(np.mean([e.value for e in kept])) if kept else math.nan,
        "mean_plug_in": float(np.mean([e.plug_in for e in kept])) if kept else math.nan,
    }


def random_pairs(seed: int = 0, n_keys: int = 3000) -> list[Pair]:
    """Return pairs of random tables whose keys have from equal to very unequal numbers of rows.

    Parameters
    ----------
    seed : int
        Of the tables.
    n_keys : int
        Distinct keys of both sides together; three fifths are in both.

    Returns
    -------
    list of Pair
    """
    shapes = [("equal", 0.0, 0.0), ("Zipf 0.5", 0.5, 0.5), ("Zipf 0.8", 0.8, 0.8)]
    shapes += [("Zipf 1 left", 1.0, 0.0), ("Zipf 1.2", 1.2, 1.2)]
    rng = np.random.default_rng(seed)
    return [
        _random_pair(f"random, {name}", rng, n_keys, left, right, n_values)
        for name, left, right in shapes
        for n_values in (6, 40)
    ]


def _random_pair(
    name: str, rng: np.random.Generator, n_keys: int, left: float, right: float, n_values: int
) -> Pair:
    kind = rng.integers(0, n_values, n_keys)
    tables = []
    for exponent, columns in ((left, ("x", "size")), (right, ("y",))):
        kept = np.sort(rng.permutation(n_keys)[: n_keys * 4 // 5])
        weights = np.arange(1.0, len(kept) + 1) ** -exponent
        counts = np.maximum(np.round(weights / weights.sum() * 2 * len(kept)), 1).astype(int)
        keys = np.repeat(kept, rng.permutation(counts))
        values = np.where(
            rng.random(len(keys)) < 0.7, kind[keys], rng.integers(0, n_values, len(keys))
        )
        content = {"k": keys, columns[0]: values.astype(str)}
        if "size" in columns:
            content["size"] = np.exp(rng.normal(size=len(keys))) * (1 + values % 3)
        tables.append(pa.table(content))
    dependencies = (Dependency(("x",), "y"),)
    return Pair(
        f"{name}, {n_values} values", *tables, ("k",), ("x",), ("y",), ("size",), dependencies
    )


def lake_pairs() -> list[Pair]:
    """Return pairs of tables of the shared lakes, joined on their natural keys.

    Returns
    -------
    list of Pair
    """
    with web_sources(["baseball", "fivethirtyeight"]).open() as folders:
        return _lake_pairs(folders["baseball"], folders["fivethirtyeight"])


def _lake_pairs(baseball: Path, news: Path) -> list[Pair]:
    def on(left: str, right: str) -> tuple[Dependency, ...]:
        return (Dependency((left,), right),)

    people = _read(baseball, "People", ["playerID", "birthCountry", "bats", "throws", "height"])
    salaries = _read(baseball, "Salaries", ["playerID", "yearID", "lgID", "teamID", "salary"])
    batting = _read(baseball, "BattingPost", ["playerID", "yearID", "round", "AB"])
    fielding = _read(baseball, "FieldingOFsplit", ["playerID", "yearID", "POS", "InnOuts"])
    awards = _read(baseball, "AwardsPlayers", ["playerID", "awardID", "lgID"])
    college = _read(baseball, "CollegePlaying", ["playerID", "schoolID"])
    schools = _read(baseball, "Schools", ["schoolID", "state", "country"])
    births = [
        _read(news, f"births__US_births_{years}", ["year", "month", "date_of_month", name])
        for years, name in (("1994-2003_CDC_NCHS", "day_of_week"), ("2000-2014_SSA", "births"))
    ]
    # A number that falls into the same week: the day of the month, as another name.
    births[0] = births[0].append_column("day", births[0]["date_of_month"])
    visits = _read(news, "gop-candidate-visits-2024__candidate_visits", [*_VISITS, "State"])
    earlier = _read(news, "gop-candidate-visits-2024__candidate_visits_2024-01-11", _VISITS)
    earlier = earlier.rename_columns(["City", "candidate"])
    visits = visits.append_column("day", pa.array(np.arange(visits.num_rows) % 365))
    day = ("year", "month", "date_of_month")
    key = ("playerID",)
    season = ("playerID", "yearID")
    rows = [
        ("people, salaries", people, salaries, key, "bats", "lgID", "salary", on("bats", "lgID")),
        (
            "people, awards",
            people,
            awards,
            key,
            "throws",
            "awardID",
            "height",
            on("awardID", "lgID"),
        ),
        (
            "salaries, batting",
            salaries,
            batting,
            season,
            "lgID",
            "round",
            "salary",
            on("teamID", "round"),
        ),
        (
            "salaries, fielding",
            salaries,
            fielding,
            season,
            "teamID",
            "POS",
            "salary",
            on("teamID", "lgID"),
        ),
        (
            "college, schools",
            college,
            schools,
            ("schoolID",),
            "playerID",
            "state",
            None,
            on("state", "country"),
        ),
        (
            "births, weekdays",
            *births,
            day,
            "day_of_week",
            "births",
            "day",
            on("day_of_week", "month"),
        ),
        (
            "visits, visits",
            visits,
            earlier,
            ("City",),
            "Candidate name",
            "candidate",
            "day",
            on("candidate", "Candidate name"),
        ),
    ]
    return [
        Pair(
            name,
            left,
            right,
            keys,
            (x,),
            (y,),
            (number,) if number else (),
            dependencies,
            ("births",) if y == "births" else (),
        )
        for name, left, right, keys, x, y, number, dependencies in rows
    ]


_VISITS = ["City", "Candidate name"]


def _read(folder: Path, name: str, columns: list[str]) -> pa.Table:
    path = next(folder.rglob(f"{name}.csv"))
    return csv.read_csv(path).select(columns)


@click.command()
@click.option("--trials", default=1000, show_default=True, help="Samples of each pair and rate.")
@click.option("--seed", default=0, show_default=True, help="Of the tables and the samples.")
@click.option("--random/--no-random", default=True, help="Measure the random tables.")
@click.option("--lakes/--no-lakes", default=True, help="Measure the tables of the shared lakes.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the rows to this CSV file.")
def main(trials: int, seed: int, random: bool, lakes: bool, out: Path | None) -> None:
    """Print the coverage of each cell, and which of them cover too seldom."""
    start = time.monotonic()
    pairs = [*(random_pairs(seed) if random else []), *(lake_pairs() if lakes else [])]
    rows = []
    for pair in pairs:
        rows += measure(trials, seed, pairs=[pair])
        if out is not None:
            pd.DataFrame(rows).to_csv(out, index=False)
        print(pd.DataFrame(rows[-len(RATES) * len(pair.measures()) :]).to_string(), flush=True)
    low = [row for row in rows if row["coverage"] < ASKED]
    print(f"{len(rows)} cells in {time.monotonic() - start:.0f} s, {len(low)} below {ASKED:.0%}")
    for row in low:
        print(row)


if __name__ == "__main__":
    main()
