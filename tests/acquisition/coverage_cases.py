"""Tables whose joins are estimated from samples, and what is asked of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from benchmarks.datasets.tables import web_sources
from pexeso.acquisition.intervals import Estimate, correlation_estimate, quality_estimate
from pexeso.acquisition.key_hashes import KeyTest
from pexeso.acquisition.quality import Dependency
from pexeso.acquisition.samples import SampledJoin, TreeEdge, sample_join
from tests.acquisition.sampled_pairs import SampledPair, correlated_sample, key_summary


@dataclass(frozen=True)
class Pair:
    """Two whole tables and what is asked of their join."""

    name: str
    left: pa.Table
    right: pa.Table
    on: tuple[str, ...]
    x: tuple[str, ...]
    y: tuple[str, ...]
    numbers: tuple[str, ...]
    dependencies: tuple[Dependency, ...]
    numeric: tuple[str, ...] = field(default=())

    def drawn(self, rate: float, seed: int) -> SampledPair:
        tests, tables = [KeyTest(self.on, rate)], (self.left, self.right)
        samples = [correlated_sample(table, tests, seed=seed).rows for table in tables]
        one, two = (key_summary(table, self.on, seed=seed) for table in tables)
        return SampledPair(*samples, self.on, rate, seed=seed, summaries=(one, two))

    def measures(self) -> dict[str, Callable[[SampledPair], Estimate]]:
        numeric = {*self.numeric, *self.numbers}
        measures = {
            "CORR": lambda pair: pair.correlation(self.x, self.y, numeric=self.numeric),
            "Q": lambda pair: pair.quality(self.dependencies),
        }
        if self.numbers:
            measures["CORR numerical"] = lambda pair: pair.correlation(
                self.numbers, self.y, numeric=numeric
            )
        return measures


@dataclass(frozen=True)
class Chain:
    """Three whole tables, joined on two edges that are sampled by independent tests."""

    name: str
    tables: dict[str, pa.Table]

    def drawn(self, rate: float, seed: int) -> tuple[SampledJoin, float, int]:
        tests = [KeyTest((name,), rate) for name in "kl"]
        of_tables = {"A": tests[:1], "B": tests, "C": tests[1:]}
        samples = {
            name: correlated_sample(table, of_tables[name], seed=seed).rows
            for name, table in self.tables.items()
        }
        edges = [TreeEdge("A", "B", ("k",)), TreeEdge("B", "C", ("l",))]
        columns = {"A": ["x"], "C": ["y"]}
        return sample_join(samples, edges, columns, keep_keys=True), rate, seed

    def measures(self) -> dict[str, Callable[[tuple[SampledJoin, float, int]], Estimate]]:
        def estimate(measure: Callable[..., Estimate], *of: object) -> Callable[..., Estimate]:
            def of_drawn(drawn: tuple[SampledJoin, float, int]) -> Estimate:
                join, rate, seed = drawn
                tests = [KeyTest((name,), rate) for name in "kl"]
                options = {"seed": seed, "key_columns": join.key_columns}
                return measure(join.rows, join.counts, tests, *of, **options)

            return of_drawn

        return {
            "CORR": estimate(correlation_estimate, ["A.x"], ["C.y"]),
            "Q": estimate(quality_estimate, [Dependency(("A.x",), "C.y")]),
        }


Case = Pair | Chain


def random_pairs(seed: int = 0, n_keys: int = 3000) -> list[Pair]:
    """Return pairs of random tables whose keys have from equal to very unequal numbers of rows."""
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
        used_keys = np.sort(rng.permutation(n_keys)[: n_keys * 4 // 5])
        weights = np.arange(1.0, len(used_keys) + 1) ** -exponent
        counts = np.maximum(np.round(weights / weights.sum() * 2 * len(used_keys)), 1).astype(int)
        keys = np.repeat(used_keys, rng.permutation(counts))
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


def random_chains(seed: int = 0, n_keys: int = 2000) -> list[Chain]:
    """Return chains of three random tables with two joins."""
    rng = np.random.default_rng(seed)
    return [_random_chain(f"chain, {n} values", rng, n_keys, n) for n in (3, 8)]


def _random_chain(name: str, rng: np.random.Generator, n_keys: int, n_values: int) -> Chain:
    kinds = rng.integers(0, n_values, (2, n_keys))
    sides = []
    for kind in kinds:
        keys = rng.integers(0, n_keys, 3 * n_keys // 2)
        values = np.where(
            rng.random(len(keys)) < 0.7, kind[keys], rng.integers(0, n_values, len(keys))
        )
        sides.append((keys, values.astype(str)))
    k = rng.integers(0, n_keys, 2 * n_keys)
    by_kind = np.argsort(kinds[1], kind="stable")
    first = np.searchsorted(kinds[1][by_kind], np.arange(n_values + 1))
    sizes = np.maximum(np.diff(first), 1)[kinds[0][k]]
    same = by_kind[np.minimum(first[kinds[0][k]] + rng.integers(0, sizes), n_keys - 1)]
    ends = np.where(rng.random(len(k)) < 0.6, same, rng.integers(0, n_keys, len(k)))
    return Chain(
        name,
        {
            "A": pa.table({"k": sides[0][0], "x": sides[0][1]}),
            "B": pa.table({"k": k, "l": ends}),
            "C": pa.table({"l": sides[1][0], "y": sides[1][1]}),
        },
    )


def lake_pairs() -> list[Pair]:
    """Return pairs of tables of the shared lakes, joined on their natural keys."""
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


RATES = (0.1, 0.25, 0.5)


def measure(
    n_trials: int = 1000,
    seed: int = 0,
    *,
    cases: Sequence[Case] | None = None,
    rates: Sequence[float] = RATES,
) -> list[dict[str, object]]:
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
