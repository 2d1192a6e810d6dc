"""The join graph of a lake and the searches in it, as `AcquisitionSearches` calls them."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from pexeso.acquisition.graph.coded import CodedColumns
from pexeso.acquisition.search import exact as exact_search
from pexeso.acquisition.search.candidates import rank_candidates
from pexeso.acquisition.search.defaults import DEFAULT_MAX_TABLES
from pexeso.acquisition.search.evaluation import Evaluator
from pexeso.acquisition.search.published.options import PublishedOptions
from pexeso.acquisition.search.published.rounds import published_plans
from pexeso.acquisition.search.request import AcquisitionRequest, Terminal
from pexeso.acquisition.search.row_counts import RowsOf
from pexeso.acquisition.search.sampled import SampledPlans, with_intervals
from pexeso.acquisition_search.defaults import DEFAULT_LOOKED_AT, DEFAULT_MAX_MEMORY
from pexeso.acquisition_search.graphs.market_graph import market_graph
from pexeso.acquisition_search.graphs.stored_graph import (
    StoredGraph,
    fingerprints_of,
    load_graph,
    save_graph,
    updated_graph,
)
from pexeso.acquisition_search.graphs.table_pairs import TablePairs
from pexeso.acquisition_search.market.lake_market import Market as LakeMarket

if TYPE_CHECKING:
    from pexeso.acquisition.graph.joins import JoinGraph
    from pexeso.acquisition.search.found_plans import FoundPlans
    from pexeso.search.open_index import OpenIndex

Method = Literal["exact", "published"]
Prices = str | os.PathLike[str] | Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class OwnTable:
    """The user's table.

    Attributes
    ----------
    name : str
        What plans call it: the name of its file, or ``yours``.
    rows : pyarrow.Table
        All of it, under unique labels; texts where it was read from a file.
    columns : tuple of str
        Those to be explained.
    file : str or None
        Where it came from.
    """

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
    graph : str or None
        File of a saved graph: made where it is absent, updated where it is stale.
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
    graph: str | None = None


@dataclass(frozen=True)
class Market:
    """What a request searches.

    Attributes
    ----------
    graph : JoinGraph
        The tables and their joins.
    coded : CodedColumns
        Reads their columns.
    samples : SampledPlans or None
        Samples that plans are measured on; None for all rows.
    stats : dict
        What is told of how the graph was made: ``tables``, ``joins``, ``notes``.
    """

    graph: JoinGraph
    coded: CodedColumns
    samples: SampledPlans | None = None
    stats: dict[str, Any] = field(default_factory=dict)

    @property
    def rows_of(self) -> RowsOf | None:
        """Which rows of the tables of a plan are looked at; None for all."""
        is_sampled = self.samples is not None and self.samples.rate < 1
        return self.samples.rows_of if is_sampled else None


@dataclass(frozen=True)
class Limits:
    """What ends a search early, and how it searches.

    Attributes
    ----------
    method : {"exact", "published"}
    max_seconds : float
        Infinite without a limit.
    seed : int
        Of the published search.
    """

    method: str = "exact"
    max_seconds: float = math.inf
    seed: int = 0


def market_of(opened: OpenIndex, options: MarketOptions) -> Market:
    """Return the join graph of what a request can use of a lake, with the user's table in it.

    Raises
    ------
    InputError
        A price is missing, negative or no number, or a wanted table or column is not there.
    TableReadError
        The list of prices, or a table, cannot be read.
    """
    own_table, coded = options.own, CodedColumns(options.max_bytes)
    saved, of_saved = None, []
    if options.graph is not None:
        saved, of_saved = saved_graph(opened, options.graph, coded)
    graph, coded, notes = market_graph(
        opened,
        own=[] if own_table is None else [(own_table.name, own_table.rows)],
        wanted=options.wanted,
        have=options.have,
        prices=options.prices,
        max_tables=options.max_looked_at,
        max_joins=max(options.max_tables - 1, 1),
        exclude=options.exclude,
        coded=coded,
        saved=saved,
    )
    samples = None
    if options.sample_rate is not None:
        samples = SampledPlans(graph, options.sample_rate, options.seed, coded)
    notes = [*of_saved, *notes]
    stats = {"tables": len(graph.tables), "joins": len(graph.edges), "notes": notes}
    return Market(graph, coded, samples, stats)


def saved_graph(opened: OpenIndex, path: str, coded: CodedColumns) -> tuple[StoredGraph, list[str]]:
    """Return the join graph of a lake from a file, after bringing the file up to date.

    Parameters
    ----------
    opened : OpenIndex
        The index of the lake.
    path : str
        The file; it is made where it is absent.
    coded : CodedColumns
        Reads the columns of tables that are new or have changed.

    Returns
    -------
    (StoredGraph, list of str)
        The graph, and sentences on what was done and left out.

    Raises
    ------
    InputError
        The file is no saved graph.
    OutputError
        It cannot be written.
    """
    market = LakeMarket.of(opened)
    before = load_graph(path) if os.path.exists(path) else None
    if before is not None and before.fingerprints == fingerprints_of(market):
        return before, []
    graph, changes = updated_graph(market, before, coded=coded)
    notes = list(changes.notes)
    if before is None or changes.added or changes.changed or changes.removed:
        save_graph(graph, path)
        n_tables, n_joins = len(graph.fingerprints), len(graph.edges)
        notes.insert(
            0,
            f"The join graph of the lake, {n_tables:,} tables with {n_joins:,} joins, was "
            f"{'made' if before is None else 'brought up to date'} in '{path}'.",
        )
    return graph, notes


def joins_of(opened: OpenIndex, table: str) -> set[str]:
    """Return the tables of the lake that have columns by which a table of it can be joined."""
    pairs, _ = TablePairs.of_market(LakeMarket.of(opened)).of_tables([table])
    return {name for ends in pairs for name in ends} - {table}


def plans_of(market: Market, request: AcquisitionRequest, limits: Limits) -> FoundPlans:
    """Find the plans for wanted columns."""
    evaluator = Evaluator(market.graph, request, market.coded, rows_of=market.rows_of)
    if limits.method == "exact":
        exact = exact_search.Limits(max_seconds=limits.max_seconds)
        answer = exact_search.find_plans(market.graph, request, market.coded, exact, evaluator)
    else:
        options = PublishedOptions(first_rate=1.0, seed=limits.seed)
        answer = published_plans(lambda _: (market.graph, evaluator.measures), request, options)
    if market.samples is None:
        return answer
    return with_intervals(answer, market.samples, request)


def candidates_of(
    market: Market, have: Sequence[Terminal], bounds: dict[str, Any], limits: Limits
) -> FoundPlans:
    """Find the plans for any column that joins reach: each may be wanted.

    `bounds` are those of `AcquisitionRequest`, by name.
    """
    return rank_candidates(
        market.graph,
        have,
        bounds,
        market.coded,
        exact_search.Limits(max_seconds=limits.max_seconds),
        seed=limits.seed,
        rows_of=market.rows_of,
    )
