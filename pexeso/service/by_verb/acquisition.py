"""Requests for tables to buy or fetch, and what answers them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pexeso.acquisition.defaults import (
    DEFAULT_MAX_MEMORY,
    DEFAULT_MAX_SECONDS,
    DEFAULT_MAX_TABLES,
    DEFAULT_PLANS,
)
from pexeso.options import parse_bytes
from pexeso.service.bases import IndexRequest, ReadingRequest, RequestError

if TYPE_CHECKING:
    from pexeso.acquisition.results import AcquisitionResult
    from pexeso.service.verbs import Service


@dataclass(frozen=True, kw_only=True)
class AcquireRequest(IndexRequest, ReadingRequest, verb="acquire"):
    """Find tables to buy or fetch for a budget; see `pexeso.Index.acquire`.

    It says how the file of `have` is read.

    Attributes
    ----------
    have : str or None
        ``FILE:COLUMN``, ``FILE:COLUMN,COLUMN``, or ``TABLE:COLUMN`` of the lake.
    want : tuple of str
        Each ``TABLE:COLUMN``, ``TABLE:COLUMN,COLUMN`` or ``COLUMN``; without any, all that joins
        reach.
    prices : str or mapping, optional
        ``"free"``, ``"entropy"``, a file, or prices by table and column; with a budget
        ``"entropy"`` if not given, otherwise ``"free"``.
    exclude_joins : tuple of str
        Pairs of tables, each ``TABLE,TABLE``.
    """

    have: str | None = None
    want: tuple[str, ...] = ()
    budget: float | None = None
    min_quality: float = 0.0
    max_informativeness: float | None = None
    prices: str | Mapping[str, Mapping[str, float]] | None = None
    max_tables: int = DEFAULT_MAX_TABLES
    max_fan_out: float | None = None
    exclude_tables: tuple[str, ...] = ()
    exclude_joins: tuple[str, ...] = ()
    max_seconds: float | None = DEFAULT_MAX_SECONDS
    max_memory: str | int = DEFAULT_MAX_MEMORY
    sample_rate: float | None = None
    seed: int = 0
    k: int = DEFAULT_PLANS

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.have is None and not self.want:
            raise RequestError("Give {have}, {want}, or both: there is nothing to look for.")
        parse_bytes(self.max_memory)

    def _got_no_file(self) -> str | None:
        return None if self.have is not None else "no {have}"


def acquire(service: Service, request: AcquireRequest, **live: Any) -> AcquisitionResult:
    """Answer a request for tables to buy."""
    arguments = request.arguments()
    have, want = arguments.pop("have"), arguments.pop("want")
    searches = service.open_acquisition(arguments.pop("index"))
    return searches.acquire(have, want or None, **arguments, **live)
