"""Requests for tables to buy or fetch, and what answers them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pexeso.acquisition import (
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

    Both `have` and `want` name columns as ``TABLE:COLUMN`` or ``TABLE:COLUMN,COLUMN``; `have` may
    be of a file, and the request says how that is read. `exclude_joins` are pairs ``TABLE,TABLE``.
    """

    verb: ClassVar[str] = "acquire"

    index: str
    have: Annotated[
        str | None,
        option(
            "Columns to explain: of your table, or TABLE:COLUMN of the lake.",
            label="Column to explain",
            placeholder="table.csv:column",
            lake_names="column",
            metavar="FILE:COLUMN,...",
        ),
    ] = None
    want: Annotated[
        tuple[str, ...],
        option(
            "A column to get, or COLUMN of any table; by default any column that joins reach. May "
            "be repeated.",
            metavar="TABLE:COLUMN,...",
            is_repeated=True,
            label="Columns to get, one on a line",
            placeholder="any, or table.csv:column",
            rows=2,
        ),
    ] = ()
    budget: Annotated[
        float | None,
        option(
            "Maximum price of a plan.",
            metavar="N",
            default="no limit",
            label="Budget (empty: no limit)",
        ),
    ] = None
    prices: Annotated[
        str | Mapping[str, Mapping[str, float]] | None,
        option(
            "Prices of columns: all 0 (free), 1 for each bit of entropy (entropy), or those of "
            "FILE, a table with the columns table, column and price.",
            metavar="free|entropy|FILE",
            label="Prices",
            labels={"": "by the budget", "free": "free", "entropy": "by entropy"},
            default="free, and entropy with --budget",
        ),
    ] = None
    min_quality: Annotated[
        float,
        option(
            "Minimum share of joined rows that violate no dependency of the tables.", metavar="0..1"
        ),
    ] = 0.0
    max_informativeness: float | None = None
    max_tables: Annotated[
        int, option("Maximum number of tables of a plan, including yours.", metavar="N")
    ] = DEFAULT_MAX_TABLES
    max_fan_out: Annotated[
        float | None,
        option(
            "Maximum number of rows that one key has in a joined table; 1 for joins that multiply "
            "no rows.",
            metavar="N",
            default="no limit, and 1 without --want",
            expert=True,
        ),
    ] = None
    exclude_tables: tuple[str, ...] = ()
    exclude_joins: tuple[str, ...] = ()
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
        option(
            "Stop the search after N seconds, with the best plans so far.", metavar="N", expert=True
        ),
    ] = DEFAULT_MAX_SECONDS
    max_memory: Annotated[
        str | int,
        option(
            "Maximum memory for columns, such as 8GiB.",
            "--memory-budget",
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
    arguments = request.arguments()
    have, want = arguments.pop("have"), arguments.pop("want")
    searches = service.searches(arguments.pop("index")).acquisition
    return searches.acquire(have, want or None, **arguments, **live)
