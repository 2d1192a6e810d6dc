"""The join graph of a lake and the searches in it, as `AcquisitionSearches` calls them."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from pexeso.acquisition.search.request import AcquisitionRequest, Terminal

if TYPE_CHECKING:
    from pexeso.acquisition.graph.coded import CodedColumns
    from pexeso.acquisition.graph.joins import JoinGraph
    from pexeso.acquisition.search.found import FoundPlans
    from pexeso.search.open_index import OpenIndex

METHODS = ("exact", "published")
"""All plans, with a proof; or the paper's search, which looks at some."""

DEFAULT_PLANS = 10

DEFAULT_MAX_MEMORY = 2 << 30

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
    prices: Prices = "free"
    sample_rate: float | None = None
    seed: int = 0
    max_bytes: int = DEFAULT_MAX_MEMORY
    graph: str | None = None


@dataclass(frozen=True)
class Market:
    """The join graph with what reads its columns, and what is told of how it was made."""

    graph: JoinGraph
    coded: CodedColumns
    stats: dict[str, Any] = field(default_factory=dict)


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
    """Return the join graph of the lake of an index, with the user's table in it.

    Raises
    ------
    InputError
        A price is missing, negative or no number.
    TableReadError
        The list of prices, or a table, cannot be read.
    """
    raise NotImplementedError


def plans_of(market: Market, request: AcquisitionRequest, limits: Limits) -> FoundPlans:
    """Find the plans for wanted columns."""
    raise NotImplementedError


def candidates_of(
    market: Market, have: Sequence[Terminal], bounds: dict[str, Any], limits: Limits
) -> FoundPlans:
    """Find the plans for any column that joins reach: each may be wanted.

    `bounds` are those of `AcquisitionRequest`, by name.
    """
    raise NotImplementedError
