"""The command ``python -m benchmarks acquisition``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.acquisition import tpch
from benchmarks.acquisition.market import market_of
from benchmarks.acquisition.plan_figures import measured_plans
from benchmarks.acquisition.plan_tables import searches_table
from benchmarks.commands import benchmark, setting
from benchmarks.machine import pin_threads


@dataclass(frozen=True)
class Request:
    scale: float = setting(tpch.SCALE, "Share of the whole of TPC-H.")
    seed: int = setting(0, "Of all that is drawn.")
    max_seconds: float = setting(60.0, "Of one search.")
    repeats: int = setting(3, "Of short searches.")


@benchmark("acquisition", Request, searches_table)
def acquisition_command(request: Request) -> Iterator[tuple[str, dict[str, Any]]]:
    """Search the market of TPC-H for plans of what to buy, in one thread.

    Each query is searched for plans of at most as many tables as lie between its attributes.
    """
    pin_threads(1)
    tables = tpch.tpch_tables(request.scale, seed=request.seed)
    market = market_of(tpch.ABOUT, tables, {"seed": request.seed, "scale": request.scale})
    limits = (request.max_seconds, request.repeats, request.seed)
    plans = measured_plans(market, *limits)
    yield "acquisition/plans", {"options": asdict(request), "markets": [plans]}
