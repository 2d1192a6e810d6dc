"""``pexeso acquire``: tables to buy or fetch for a budget that explain your columns."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from pexeso.faces.cli.options import (
    Command,
    GroupedCommand,
    cli_option,
    index_argument,
    reading_option,
    takes,
)
from pexeso.faces.cli.output import (
    MAX_NAME,
    output_options,
    page_options,
    plain,
    require_page,
    talk,
    write_answer,
    write_page,
)
from pexeso.faces.service.acquisition import AcquireRequest
from pexeso.faces.service.verbs import run
from pexeso.runtime.formatting import figure, many, percent, shown

if TYPE_CHECKING:
    from pexeso.acquisition.results import AcquisitionPlan, AcquisitionResult


# Characters of a statement, a condition or a sentence that are shown.
_LONGEST = 5000


class _Acquire(GroupedCommand):
    """Says where columns go that were given as search and other commands take them."""

    allow_extra_args = True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        extra = super().parse_args(ctx, args)
        if extra and not ctx.resilient_parsing:
            ctx.fail(
                "Name columns by options: those to explain by --have, those to get by --want. Got "
                f"the argument {shown(extra[0])}."
            )
        return extra


def _exclude_option(function: Command) -> Command:
    """Add ``--exclude``, for a table or for two tables that no plan may join."""

    @wraps(function)
    def with_tables(*, excluded: tuple[str, ...], **others: Any) -> Any:
        joins = tuple(spec for spec in excluded if "," in spec)
        tables = tuple(spec for spec in excluded if "," not in spec)
        return function(exclude_tables=tables or None, exclude_joins=joins or None, **others)

    return cli_option(
        "--exclude",
        "excluded",
        multiple=True,
        metavar="TABLE[,TABLE]",
        help="A table that no plan may use, or two tables that no plan may join. May be repeated.",
    )(with_tables)


@click.command(cls=_Acquire)
@index_argument
@reading_option(of="FILE of --have")
@page_options
@output_options("json")
@_exclude_option
@takes(
    AcquireRequest,
    without=("seed", "max_informativeness", "max_memory", "exclude_tables", "exclude_joins"),
)
def acquire(request: AcquireRequest, html: str | None, overwrite: bool, form: str | None) -> None:
    """Find tables to buy or fetch that explain your columns.

    \b
    Example:
      pexeso acquire lake.pexeso --have sales.csv:amount --want weather.csv:rain
      pexeso acquire lake.pexeso --have sales.csv:amount --budget 20 --prices prices.csv
      pexeso acquire lake.pexeso --have sales.csv:amount --want rain,wind --html plans.html

    A plan is a set of columns of the lake that can be joined with yours, with the joins. It says
    how much of your column the new columns explain in the joined rows: 100 % if it follows from
    them. The plans that explain most come first. No listed plan is beaten by another in price,
    quality and explained share at once. "proved best" means that no plan within the bounds explains
    more for its price and quality. Without --want there is one plan for each column, ranked by what
    it explains beyond chance. Each plan has the SQL that selects its columns. This command buys and
    fetches nothing.

    In Python: pexeso.open_index(INDEX).acquire(FILE:COLUMN, [TABLE:COLUMN], budget=N).
    """  # noqa: D301  click reads \b
    require_page(html, overwrite=overwrite)
    result = run(request)
    write_answer(result, form, plan_lines)
    if form != "json":
        talk(_searched(result))
    if html is not None:
        write_page([result.to_html() or ""], html, overwrite=overwrite)


def plan_lines(result: AcquisitionResult) -> list[str]:
    if not result.plans:
        from pexeso.results.pages.acquisition import best_seen_lines

        reason = plain(result.reason or "", _LONGEST)
        return [
            reason if reason.startswith("No plan") else f"No plan: {reason}",
            *(f"{text}: {number}" for text, number in best_seen_lines(result.best_seen)),
            *_notes(result),
        ]
    lines = [_query_text(result)]
    for number, plan in enumerate(result, 1):
        lines += ["", *_plan(result, plan, number)]
    if result.n_more:
        lines += ["", f"{many(result.n_more, 'more plan')} (-k shows more)."]
    return [*lines, "", *_explained(result), *_notes(result)]


def _notes(result: AcquisitionResult) -> list[str]:
    return [f"Note: {plain(note, _LONGEST)}" for note in result.stats.get("notes", ())]


def _explained(result: AcquisitionResult) -> list[str]:
    yours = "your columns" if result.query["have"] else "the columns"
    lines = [
        f"explains: how much less is unknown of {yours} in the joined rows, once the columns to "
        "get are known; 0 % is nothing, 100 % all."
    ]
    if "bits" in result.unit:
        lines.append("bits: what is unknown; 1 bit is a question answered by yes or no.")
    if "units" in result.unit:
        units = plain(result.unit[result.unit.index("units") :], MAX_NAME)
        lines.append(f"{units}: what is unknown of numbers is measured by how far apart they lie.")
    if result.query["want"] is None:
        lines.append(
            "by chance: what the column explains with its values shuffled. Columns are ranked by "
            "what is above that, times the share of your rows that find a partner."
        )
    lines.append(
        "informativeness: 0 for a join in which all keys find a partner, up to 1 if few do; the "
        "sum over the joins."
    )
    return lines


def _query_text(result: AcquisitionResult) -> str:
    query = result.query
    have = ", ".join(query["have"])
    explained = plain(f"{have} of {query['table']}" if have else "each other", MAX_NAME)
    if query["want"] is None:
        return f"Columns that explain most of {explained}, of all that joins reach:"
    want = plain(", ".join(query["want"]), MAX_NAME)
    return f"How {want} can explain most of {explained}:"


def _intervals(plan: AcquisitionPlan) -> list[str]:
    """Return the intervals of estimates from samples, or why there are none."""
    if plan.intervals is None:
        return []
    intervals = []
    for name, interval in plan.intervals.items():
        if not interval["reliable"]:
            return [f"no interval: {interval['reason']}"]
        high = "any value" if interval["high"] is None else figure(interval["high"])
        intervals.append(f"{name} {figure(interval['low'])} to {high}")
    return [", ".join(intervals)]


def _plan(result: AcquisitionResult, plan: AcquisitionPlan, number: int) -> list[str]:
    free = result.options["prices"] == "free"
    price = "free" if free else f"price {plan.price:,.6g}"
    proof = plan.proof
    if plan.chance is None and plan.optimal and number > 1:
        # The first is the best of all, the others those of lower prices or better quality.
        proof += " for its price and quality"
    of = plain(", ".join(result.query["have"]), MAX_NAME) or "each other"
    amount = f"{figure(plan.correlation)} of {figure(plan.uncertainty)} {plain(result.unit)}"
    chance = "" if plan.chance is None else f", {percent(plan.chance_share)} by chance"
    lines = [
        f"Plan {number}: explains {percent(plan.share)} of {of} ({amount}){chance}, {price}, "
        f"quality {percent(plan.quality)}, {proof}"
    ]
    labels: list[tuple[str, list[str]]] = [
        ("get", [f"{table}:{column}" for table, column in plan.want]),
        (
            "join",
            [
                f"{'; '.join(join.condition for join in plan.path)} (informativeness "
                f"{plan.informativeness:.3f}, {many(plan.rows, 'row')})"
            ]
            if plan.path
            else [],
        ),
        ("95 %", _intervals(plan)),
        (
            "SQL",
            [
                f"{table.sql};" + ("" if free else f"  -- price {table.price:,.6g}")
                for table in plan.tables
            ]
            or ["nothing to buy: yours has all columns"],
        ),
        ("note", list(plan.warnings)),
    ]
    for label, texts in labels:
        for at, text in enumerate(texts):
            lines.append(f"  {'' if at else label:<5} {plain(text, _LONGEST)}")
    return lines


def _searched(result: AcquisitionResult) -> str:
    stats = result.stats
    measured = stats["plans_measured"]
    parts = [
        f"{many(stats['columns'], 'column')} and {many(measured, 'plan')} measured"
        if "columns" in stats
        else f"{many(stats['plans_formed'], 'plan')} formed and {measured:,} measured",
        f"{many(stats['tables'], 'table')} with {many(stats['joins'], 'join')}",
    ]
    stopped = f"; stopped by {stats['stopped']}" if stats["stopped"] else ""
    sampled = result.options["sample_rate"]
    estimated = f"; estimated from {percent(sampled)} of the keys" if sampled else ""
    return f"Searched: {', of '.join(parts)}, in {stats['seconds']:.1f} s{stopped}{estimated}"
