"""Requests for tables to buy or fetch, and what answers them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pexeso.acquisition.defaults import (
    DEFAULT_MAX_MEMORY,
    DEFAULT_MAX_SECONDS,
    DEFAULT_MAX_TABLES,
    DEFAULT_PLANS,
)
from pexeso.faces.service.bases import ReadingRequest, RequestError
from pexeso.faces.service.schema import option
from pexeso.options import parse_bytes

if TYPE_CHECKING:
    from pexeso.acquisition.results import AcquisitionResult
    from pexeso.faces.service.verbs import Service


class AcquireRequest(ReadingRequest, frozen=True, kw_only=True):
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

    verb: ClassVar[str] = "acquire"

    index: str
    have: Annotated[
        str | None,
        option(
            "Columns to explain: of your table, or TABLE:COLUMN of the lake.",
            metavar="FILE:COLUMN,...",
        ),
    ] = None
    want: Annotated[
        tuple[str, ...],
        option(
            "A column to get, or COLUMN of any table; without it any column that joins reach. May "
            "be repeated.",
            metavar="TABLE:COLUMN,...",
            is_repeated=True,
        ),
    ] = ()
    budget: Annotated[
        float | None, option("Maximum price of a plan.", metavar="N", default="no limit")
    ] = None
    prices: Annotated[
        str | Mapping[str, Mapping[str, float]] | None,
        option(
            "Prices of columns: none (free), one for each bit of their entropy (entropy), or those "
            "that FILE lists, a table with the columns table, column and price.",
            metavar="free|entropy|FILE",
            default="free, and entropy with --budget",
        ),
    ] = None
    min_quality: Annotated[
        float,
        option(
            "Minimum share of joined rows that break no dependency of the tables.", metavar="0..1"
        ),
    ] = 0.0
    max_informativeness: Annotated[
        float | None,
        option(
            "Maximum sum of join informativeness, from 0 (best) to 1 for each join.",
            metavar="N",
            default="no limit",
            expert=True,
        ),
    ] = None
    max_tables: Annotated[
        int, option("Maximum number of tables of a plan, including yours.", metavar="N")
    ] = DEFAULT_MAX_TABLES
    max_fan_out: Annotated[
        float | None,
        option(
            "Maximum rows of one key in a table that a join leads to; 1 for joins that multiply no "
            "rows.",
            metavar="N",
            default="no limit, and 1 without --want",
            expert=True,
        ),
    ] = None
    exclude_tables: Annotated[
        tuple[str, ...],
        option(
            "A table that no plan may use. May be repeated.",
            "--exclude-table",
            metavar="TABLE",
            is_repeated=True,
        ),
    ] = ()
    exclude_joins: Annotated[
        tuple[str, ...],
        option(
            "Two tables that no plan may join. May be repeated.",
            "--exclude-join",
            metavar="TABLE,TABLE",
            is_repeated=True,
        ),
    ] = ()
    sample_rate: Annotated[
        float | None,
        option(
            "Estimate from samples with this share of the keys.",
            metavar="0..1",
            default="all rows",
            expert=True,
        ),
    ] = None
    seed: Annotated[int, option("Random seed.", metavar="N", expert=True)] = 0
    max_seconds: Annotated[
        float | None,
        option("End the search after so many seconds, proved or not.", metavar="N", expert=True),
    ] = DEFAULT_MAX_SECONDS
    max_memory: Annotated[
        str | int,
        option(
            "Maximum memory for columns, such as 8GiB.",
            metavar="SIZE",
            default="2GiB",
            expert=True,
        ),
    ] = DEFAULT_MAX_MEMORY
    k: Annotated[int, option("The N best plans.", "-k", "--top-k", metavar="N")] = DEFAULT_PLANS

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
    searches = service.searches(arguments.pop("index")).acquisition
    return searches.acquire(have, want or None, **arguments, **live)
