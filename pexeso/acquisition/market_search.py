"""The join graph of a lake and the searches in it, as `AcquisitionSearches` calls them."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pexeso.acquisition.candidates import rank_candidates
from pexeso.acquisition.coded_columns import CodedColumns
from pexeso.acquisition.defaults import DEFAULT_LOOKED_AT, DEFAULT_MAX_MEMORY, DEFAULT_MAX_TABLES
from pexeso.acquisition.evaluation import Evaluator
from pexeso.acquisition.exact import Limits, find_plans
from pexeso.acquisition.lake_market import Market as LakeMarket
from pexeso.acquisition.market_graph import TablePairs, market_graph
from pexeso.acquisition.plans import AcquisitionRequest, Terminal
from pexeso.acquisition.row_counts import RowsOf
from pexeso.acquisition.samples import SampledPlans, with_intervals
from pexeso.errors import InputError
from pexeso.lake.key_columns import names_in
from pexeso.runtime.formatting import plain_scalar, shown

if TYPE_CHECKING:
    from pexeso.acquisition.graph import JoinGraph
    from pexeso.acquisition.plans import FoundPlans
    from pexeso.semantic.open_index import OpenIndex


Prices = str | os.PathLike[str] | Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class OwnTable:
    """The user's table."""

    name: str
    rows: pa.Table
    columns: tuple[str, ...]
    file: str | None = None


@dataclass(frozen=True)
class MarketOptions:
    """What the join graph is made of, beside the tables of the lake.

    Attributes
    ----------
    own : OwnTable or None
    wanted : tuple of (str or None, str)
        Columns of a table or of any table; none where any column may be wanted.
    have : tuple of (str, str)
        Tables and columns to be explained.
    exclude : tuple of str
        Tables that are left out.
    max_tables : int
        Tables of a plan.
    max_looked_at : int
        Tables that joins are followed to.
    prices : str, path or mapping
        ``"free"``, ``"entropy"``, a file, or prices by table and column.
    sample_rate : float or None
        Share of the keys of joins that are looked at, above 0 and at most 1; None for all rows.
    seed : int
        Of samples.
    max_bytes : int
        Memory for columns.
    """

    own: OwnTable | None = None
    wanted: tuple[tuple[str | None, str], ...] = ()
    have: tuple[tuple[str, str], ...] = ()
    exclude: tuple[str, ...] = ()
    max_tables: int = DEFAULT_MAX_TABLES
    max_looked_at: int = DEFAULT_LOOKED_AT
    prices: Prices = "free"
    sample_rate: float | None = None
    seed: int = 0
    max_bytes: int = DEFAULT_MAX_MEMORY


@dataclass(frozen=True)
class Market:
    """What a request searches."""

    graph: JoinGraph
    coded: CodedColumns
    samples: SampledPlans | None = None
    stats: dict[str, Any] = field(default_factory=dict)

    @property
    def rows_of(self) -> RowsOf | None:
        """Which rows of the tables of a plan are looked at; None for all."""
        is_sampled = self.samples is not None and self.samples.rate < 1
        return self.samples.rows_of if is_sampled else None


def market_of(opened: OpenIndex, options: MarketOptions) -> Market:
    """Return the join graph of what a request can use of a lake, with the user's table in it."""
    own_table, coded = options.own, CodedColumns(options.max_bytes)
    graph, notes = market_graph(
        opened,
        None if own_table is None else (own_table.name, own_table.rows),
        wanted=options.wanted,
        have=options.have,
        prices=options.prices,
        max_tables=options.max_looked_at,
        max_joins=max(options.max_tables - 1, 1),
        exclude=options.exclude,
        coded=coded,
    )
    samples = None
    if options.sample_rate is not None:
        samples = SampledPlans(graph, options.sample_rate, options.seed, coded)
    stats = {"tables": len(graph.tables), "joins": len(graph.edges), "notes": notes}
    return Market(graph, coded, samples, stats)


def joins_of(opened: OpenIndex, table: str) -> set[str]:
    """Return the tables of the lake that have columns by which a table of it can be joined."""
    pairs = TablePairs.of_market(LakeMarket.of(opened)).of_tables([table])
    return {name for ends in pairs for name in ends} - {table}


def plans_of(market: Market, request: AcquisitionRequest, max_seconds: float) -> FoundPlans:
    """Find the plans for wanted columns."""
    evaluator = Evaluator(market.graph, request, market.coded, rows_of=market.rows_of)
    exact = Limits(max_seconds=max_seconds)
    answer = find_plans(market.graph, request, market.coded, exact, evaluator)
    if market.samples is None:
        return answer
    return with_intervals(answer, market.samples, request)


def candidates_of(
    market: Market,
    have: Sequence[Terminal],
    bounds: dict[str, Any],
    max_seconds: float,
    seed: int,
) -> FoundPlans:
    """Find the plans for any column that joins reach: each may be wanted.

    `bounds` are those of `AcquisitionRequest`, by name.
    """
    return rank_candidates(
        market.graph,
        have,
        bounds,
        market.coded,
        Limits(max_seconds=max_seconds),
        seed=seed,
        rows_of=market.rows_of,
    )


def require_prices(prices: Any) -> None:
    """Raise InputError unless prices are a name or file, or prices by table and column."""
    if isinstance(prices, str | os.PathLike):
        return
    if not isinstance(prices, Mapping):
        raise InputError(
            "prices must be 'free', 'entropy', the file of a list, or prices by table and column, "
            f"such as {{'a.csv': {{'rain': 2.5}}}}. Got {shown(prices)}."
        )
    for table, columns in prices.items():
        if not isinstance(columns, Mapping) or not all(
            isinstance(name, str) for name in (table, *columns)
        ):
            raise InputError(
                "prices of a table are those of its columns, by their names, such as "
                f"{{'a.csv': {{'rain': 2.5}}}}. Got {shown({table: columns})}."
            )
        for column, price in columns.items():
            if not is_number(price, -math.inf, sys.float_info.max) or price < 0:
                raise InputError(
                    f"The price of {column!r} of '{table}' must be a finite number from 0. Got "
                    f"{shown(price)}."
                )


def require_rate(sample_rate: Any) -> None:
    """Raise InputError unless there is such a share of keys to sample."""
    if sample_rate is not None and not is_number(sample_rate, 0, 1):
        raise InputError(
            "sample_rate must be a number above 0 and at most 1 (inclusive): the share of the "
            f"keys that samples have. Got {shown(sample_rate)}."
        )


def priced(prices: Prices) -> str:
    """Return the model of the prices, or the file that lists them."""
    if isinstance(prices, Mapping):
        return "listed"
    return os.fspath(prices)


def names_given(names: Iterable[str], option: str) -> tuple[str, ...]:
    """Return different names, in their order."""
    all_names = _listed(names, option, "names, such as ['a.csv']")
    for name in all_names:
        if not isinstance(name, str):
            raise InputError(f"{option} must be a list of names. Got {shown(name)} among them.")
    return tuple(dict.fromkeys(all_names))


def pairs_given(pairs: Iterable[Sequence[str]]) -> tuple[tuple[str, str], ...]:
    """Return pairs of tables that are not to be joined."""
    table_pairs = []
    for pair in _listed(pairs, "exclude_joins", "pairs of tables, such as [('a.csv', 'b.csv')]"):
        several = list(pair) if isinstance(pair, Iterable) else []
        names = names_in(pair) if isinstance(pair, str) else several
        if len(names) != 2 or not all(isinstance(name, str) for name in names):
            raise InputError(
                f"exclude_joins are pairs of tables, such as ('a.csv', 'b.csv'). Got {shown(pair)}."
            )
        table_pairs.append((names[0], names[1]))
    return tuple(table_pairs)


def _listed(values: Any, option: str, what: str) -> list[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"{option} must be a list of {what}. Got {shown(values)}.")
    return list(values)


def limit(value: Any, name: str) -> float:
    """Return an upper bound; infinite for None."""
    if value is None:
        return math.inf
    number = plain_scalar(value)
    if isinstance(number, bool) or not isinstance(number, int | float) or not number >= 0:
        raise InputError(f"{name} must be a number from 0. Got {shown(value)}.")
    return float(min(number, sys.float_info.max)) if isinstance(number, int) else number


def share(value: Any, name: str) -> float:
    """Return a share, from 0 to 1."""
    number = plain_scalar(value)
    if not is_number(number, -math.inf, 1) or number < 0:
        raise InputError(f"{name} must be a number from 0 to 1. Got {shown(value)}.")
    return float(number)


def fan_out(value: Any, want: Any) -> float:
    """Return the most rows of a key in a table that a join leads to."""
    if value is None:
        return math.inf if want is not None else 1.0
    number = limit(value, "max_fan_out")
    if number < 1:
        raise InputError(f"max_fan_out must be a number from 1. Got {shown(value)}.")
    return number


def is_number(value: Any, above: float, maximum: float) -> bool:
    """Return whether a value is a number above a bound and at most another."""
    number = plain_scalar(value)
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    return is_number and above < number <= maximum
