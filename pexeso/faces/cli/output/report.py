"""Results of searches for people and programs.

Tables, matching values, JSON, CSV, and what the search did.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from pexeso.faces.cli.clock import seconds_waited
from pexeso.faces.cli.options import CountOrAll, cli_option
from pexeso.faces.cli.output.beside import copies_line, hint_lines, rest_lines, with_beside
from pexeso.faces.cli.output.output import (
    MAX_NAME,
    heading,
    table_lines,
    talk,
    warn,
    write_csv,
    write_json,
    write_json_line,
)
from pexeso.faces.cli.output.streams import styled
from pexeso.faces.service.schema import OUTPUT
from pexeso.options import ROWS
from pexeso.runtime.formatting import percent, plain
from pexeso.runtime.shown import many

if TYPE_CHECKING:
    from pexeso.results.match_kinds import KindCounts
    from pexeso.results.matches import Match, Pair, SearchResult
    from pexeso.semantic.answers.combined import CombinedMatch, CombinedResult
    from pexeso.sets.search.results import TokenMatch, TokenSearchResult
    from pexeso.transform.search.results import TransformMatch

ALL_PAIRS = sys.maxsize
INDENT = "    "
_PHASES = ("start", "open", "embed", "map", "block", "verify", "rerank", "explain")

Table = tuple[Sequence[str], Sequence[Sequence[str]], str]
"""Names of columns, rows of cells, and ``<`` or ``>`` for each column."""


class PairsCount(CountOrAll):
    """A whole number of pairs to show, or ``all``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read the number; `ALL_PAIRS` for ``all``."""
        number = super().convert(value, param, ctx)
        return number if isinstance(number, int) else ALL_PAIRS


def shown_option(name: str, help_text: str) -> Callable[[Any], Any]:
    """Return the option for the number of values shown of each column.

    It gives the parameter `n_shown`.
    """
    return cli_option(
        name,
        "n_shown",
        group=OUTPUT,
        type=PairsCount(),
        default=5,
        metavar="N|all",
        show_default=True,
        help=help_text,
    )


class Layout(NamedTuple):
    """How the results of one kind of search are written."""

    table: Callable[[Any], Table]
    """From a result."""
    why: Callable[[Any, int], list[str]]
    """From a match and how many values to show: lines below
    its row."""
    nothing: Callable[[Any], str]
    """From an empty result."""
    work: Callable[[Any, float | None], str]
    """From a result, and the seconds that were waited for it where it is the only one: what stands
    behind the number of columns found."""
    details: tuple[str, ...]
    """Columns that an explanation adds to CSV."""
    detail_rows: Callable[[Any], Iterable[Sequence[Any]]]
    """From a match to the cells of these columns."""


def write_results(
    layout: Layout,
    results: Sequence[Any],
    form: str | None,
    n_shown: int,
    *,
    explain: bool,
    name_queries: bool,
) -> None:
    """Write the result of each query column, all asked alike, in a form of `output_options`.

    Without a form they are written as tables.

    With `explain` the values that match are written too, in a table `n_shown` of each column. With
    `name_queries` each result is headed by its query column.
    """
    if form == "csv":
        _write_csv(layout, results, explain, name_queries)
        return
    for position, result in enumerate(results):
        named = {"query_column": result.query["column"]} if name_queries else {}
        if form == "json":
            document = result.to_dict(explain=explain, hints=True)
            (write_json_line if name_queries else write_json)(document)
        elif form == "jsonl":
            for row in result.to_dict(explain=explain)["results"]:
                write_json_line({**named, **row})
        else:
            if name_queries:
                click.echo(
                    f"{chr(10) if position else ''}{plain(result.query['column'], MAX_NAME)}"
                )
            if len(result):
                click.echo("\n".join(result_lines(layout, result, n_shown if explain else 0)))
            else:
                tell_nothing(layout, result)


def tell_nothing(layout: Layout, result: Any) -> None:
    """Write on stderr that nothing was found, what came near, and what the index lacks."""
    warn(layout.nothing(result))
    for line in hint_lines(result.hints()):
        talk(line)


def tell_work(layout: Layout, results: Sequence[Any], *, name_queries: bool) -> None:
    """Write on stderr how many columns each search found, and what that took.

    The time of one search is the time that was waited for it, from the start of the process; that
    of several is on a line of its own.
    """
    seconds = seconds_waited()
    for result in results:
        of = f"{plain(result.query['column'])}: " if name_queries else ""
        noun = result.noun
        more = f" of {many(len(result) + result.n_more, noun)}" if result.n_more else ""
        number = f"{len(result):,}{more}" if more else many(len(result), noun)
        work = layout.work(result, seconds if len(results) == 1 else None)
        talk(f"{of}{number}{work}")
    if len(results) > 1 and work:
        talk(f"{len(results):,} searches in {milliseconds(seconds)} ms")


def result_lines(layout: Layout, result: Any, n_shown: int) -> list[str]:
    """Lay out the columns found, best first.

    Each has up to `n_shown` of its matching values below it.
    """
    names, rows, alignment = with_beside(layout.table(result), result)
    header, *lines = table_lines(names, rows, alignment, limit=MAX_NAME)
    # What the columns are ranked by stands first, and is aligned to the right.
    width = max(len(row[0]) for row in (names, *rows))
    header = heading(header)
    lines = [styled(line[:width], fg="cyan") + line[width:] for line in lines]
    if not n_shown:
        return [header, *lines, *rest_lines(result)]
    below = [[*copies_line(match), *layout.why(match, n_shown)] for match in result]
    apart = [""] if any(below) else []
    shown = [
        text for line, more in zip(lines, below, strict=True) for text in (line, *more, *apart)
    ]
    rest = [*apart, *rest] if (rest := rest_lines(result)) else []
    return [header, *(shown[:-1] if apart else shown), *rest]


def _write_csv(layout: Layout, results: Sequence[Any], explain: bool, name_queries: bool) -> None:
    """Write a row for each column found, or for each of its matching values."""
    details = layout.details if explain else ()
    # All were asked with the same options, so they tell the same.
    columns = (*(("query_column",) if name_queries else ()), *results[0].fields, *details)

    def rows(result: Any) -> Iterable[tuple[Any, ...]]:
        for match, row in zip(result, result.rows(), strict=True):
            cells = [_csv_cell(name, row.get(name)) for name in result.fields]
            named = (result.query["column"],) if name_queries else ()
            for more in layout.detail_rows(match) if details else ((),):
                yield (*named, *cells, *more)

    write_csv(columns, (row for result in results for row in rows(result)))


def _csv_cell(name: str, cell: Any) -> Any:
    """Return a cell; lists are written with blanks between, labels of columns with semicolons."""
    labels = name in ("brings", "columns")
    return ("; " if labels else " ").join(cell) if isinstance(cell, list) else cell


def pair_lines(pairs: Sequence[Pair], n_shown: int) -> list[str]:
    """Lay out value pairs, and say how many more there are."""
    chosen = pairs[:n_shown]
    rows = [
        (
            pair.query,
            "=" if pair.query == pair.value else "~",
            pair.value,
            f"{pair.distance:.3f}",
            f"{pair.kind}: {pair.key}" if pair.kind == "alias" else pair.kind,
        )
        for pair in chosen
    ]
    lines = [INDENT + line for line in table_lines(("",) * 5, rows, "<<<><")] if rows else []
    return [*lines, *more_line(len(pairs) - len(chosen), "pair")]


def value_lines(match: TokenMatch, n_shown: int) -> list[str]:
    """Lay out shared values with your aliases of them, and say how many more there are."""
    values, aliases = match.shared(), match.aliases()
    chosen = values[:n_shown]
    notes = {value: f"  alias: {plain(', '.join(texts))}" for value, texts in aliases.items()}
    lines = [f"{INDENT}{plain(value)}{notes.get(value, '')}" for value in chosen]
    return [*lines, *more_line(len(values) - len(chosen), "value")]


def transformed_lines(match: TransformMatch, n_shown: int) -> list[str]:
    """Lay out values joined after a program, those that are equal last."""
    pairs = sorted(match.pairs(), key=lambda pair: pair[2] == "equal")
    chosen = pairs[:n_shown]
    lines = [INDENT + line for line in table_lines(("",) * 3, chosen, "<<<")] if chosen else []
    return [*lines, *more_line(len(pairs) - len(chosen), "pair")]


def more_line(n_more: int, noun: str) -> list[str]:
    """Return the line that counts those left out, if any, with the option that shows them."""
    return [f"{INDENT}and {many(n_more, f'more {noun}')} (--pairs all)"] if n_more else []


def _alike_table(result: SearchResult) -> Table:
    at_least = ">= " if result.options.are_lower_bounds else ""
    rows = [
        (
            f"{at_least}{percent(match.joinability)}",
            f"{match.matched:,}/{match.total:,}",
            match.table,
            match.column,
        )
        for match in result
    ]
    counted = "rows matched" if result.options.joinability_of == ROWS else "matched"
    names = ("joinability", counted, "table", "column")
    if not result.reranked:
        return names, rows, ">><<"
    similarities = [
        "" if match.similarity is None else f"{match.similarity:.2f}" for match in result
    ]
    return (
        ("similarity", *names),
        [(similarity, *row) for similarity, row in zip(similarities, rows, strict=True)],
        ">>><<",
    )


def _alike_why(match: Match, n_shown: int) -> list[str]:
    """Return the kinds of the matches of a column, and pairs."""
    return [
        f"{INDENT}{shares(match.kinds())}",
        *pair_lines(match.pairs(), n_shown),
    ]


def _nothing_alike(result: SearchResult) -> str:
    options, query = result.options, result.query
    if not query["rows"]:
        return "The query column has no rows: there is nothing to look for."
    if not query["distinct"]:
        return "The query column has no values: there is nothing to look for."
    n_counted, noun = (
        (query["rows"], "row") if options.joinability_of == ROWS else (query["distinct"], "value")
    )
    within = f"of the {many(n_counted, noun)}"
    if options.min_joinability is None:
        return (
            f"No column has any value within distance {options.max_distance:g} {within}. Try "
            "a larger --max-distance."
        )
    # A larger distance than that of dates, numbers or codes finds what is wrong.
    is_by_kind = options.advice is not None and "kind" in options.advice.evidence
    larger = "" if is_by_kind else "a larger --max-distance, "
    return (
        f"No column matches at least {percent(options.min_joinability)} {within} within distance "
        f"{options.max_distance:g}. Try {larger}a smaller --min-joinability, or -k 10 for the best "
        "there are."
    )


def _phases(result: SearchResult, waited: float | None) -> str:
    seconds: dict[str, float] = dict(result.stats["seconds"])
    if waited is not None:
        seconds["start"] = waited - sum(seconds.values())
    phases = ", ".join(
        f"{phase} {milliseconds(seconds[phase])}" for phase in sorted(seconds, key=_PHASES.index)
    )
    return f" in {milliseconds(sum(seconds.values()))} ms ({phases})"


def _equal_table(result: TokenSearchResult) -> Table:
    total = f"{result.query['values']:,}"
    rows = [
        # With ~ before an estimate.
        (
            f"{'~' if match.estimated else ''}{percent(match.containment)}",
            "" if match.estimated else f"{match.overlap:,}/{total}",
            f"{match.size:,}",
            match.table,
            match.column,
        )
        for match in result
    ]
    return ("containment", "overlap", "values", "table", "column"), rows, ">>><<"


def _nothing_equal(result: TokenSearchResult) -> str:
    values = result.query["values"]
    if not values:
        return "The query column has no value: there is nothing to look for."
    share = result.options.get("min_containment")
    phrase = "the one value" if values == 1 else f"the {many(values, 'value')}"
    if share is None:
        return (
            f"No column has {'' if values == 1 else 'any of '}{phrase}. pexeso search looks "
            "for other spellings too."
        )
    return (
        f"No column has {percent(share)} of {phrase}. Try a smaller --min-joinability, or "
        "pexeso search for other spellings."
    )


def _combined_table(result: CombinedResult) -> Table:
    """Lay out the columns that several searches found, a row each.

    A row has the share that the column is ranked by, what matches semantically, the values that it
    shares, and where some column joins after a program, the values that do.
    """
    rows = [
        (
            percent(match.share),
            _semantically(match),
            ""
            if match.equal_text is None
            else f"{match.equal_text.overlap:,}/{result.query['values']:,} values",
            match.table,
            match.column,
        )
        for match in result
    ]
    names, align = ("share", "semantic", "equal values", "table", "column"), ">>><<"
    programs = [match.transform for match in result]
    if not any(programs):
        return names, rows, align
    cells = [
        "" if program is None else f"{program.matched:,}/{program.total:,} values"
        for program in programs
    ]
    rows = [(*row[:3], cell, *row[3:]) for row, cell in zip(rows, cells, strict=True)]
    return (*names[:3], "by program", *names[3:]), rows, f">{align}"


def _semantically(match: CombinedMatch) -> str:
    """Write what matches semantically: by each model, where the index holds several."""
    if match.meaning is None:
        return ""
    by_model = {
        name: model_match for name, model_match in match.by_model.items() if model_match is not None
    }
    named = [
        f"{name} {model_match.matched:,}/{model_match.total:,}"
        for name, model_match in by_model.items()
    ]
    one = f"{match.meaning.matched:,}/{match.meaning.total:,}"
    return f"{', '.join(named) or one} {match.meaning.joinability_of}"


def _combined_why(match: CombinedMatch, n_shown: int) -> list[str]:
    """Format the semantic pairs of a match, or its shared values if there are none.

    The shared values are among the semantic pairs. A program that joins the column comes first.
    """
    if match.transform is not None:
        program = f"{INDENT}program: {plain(match.transform.program, MAX_NAME)}"
        return [program, *_combined_values(match, n_shown)]
    return _combined_values(match, n_shown)


def _combined_values(match: CombinedMatch, n_shown: int) -> list[str]:
    if match.meaning is not None:
        return pair_lines(match.meaning.pairs(), n_shown)
    if match.equal_text is not None:
        return value_lines(match.equal_text, n_shown)
    return [] if match.transform is None else transformed_lines(match.transform, n_shown)


def _shared(match: TokenMatch) -> list[tuple[str]]:
    return [(value,) for value in match.shared()]


ALIKE = Layout(
    _alike_table,
    _alike_why,
    _nothing_alike,
    _phases,
    ("query_value", "lake_value", "distance", "kind"),
    lambda match: [pair.to_list() for pair in match.pairs()],
)
EQUAL = Layout(
    _equal_table,
    value_lines,
    _nothing_equal,
    lambda result, waited: (
        f" in {milliseconds(result.stats['seconds'] if waited is None else waited)} ms"
    ),
    ("value",),
    _shared,
)
COMBINED = Layout(
    _combined_table,
    _combined_why,
    lambda result: (
        "No column was found in any way. Try a larger --max-distance, or a smaller "
        "--min-joinability."
    ),
    lambda result, waited: "",
    (),
    lambda match: [()],
)


def shares(kinds: KindCounts) -> str:
    """Write which share of what matches is of each kind."""
    return ", ".join(f"{percent(share)} {kind}" for kind, share in kinds.shares.items())


def unmatchable(result: SearchResult) -> list[str]:
    """Return how many rows could not match anything, if any."""
    query = result.query
    parts = []
    if query["empty"]:
        parts.append(f"{query['empty']:,} empty")
    if query["unknown"]:
        parts.append(f"{query['unknown']:,} unknown to the model")
    if not parts:
        return []
    options = result.options
    counts = not options.ignore_missing and (query["unknown"] or options.joinability_of == ROWS)
    how = "--ignore-missing leaves them out" if counts else "they are not counted"
    name = "the query" if query["column"] is None else f"'{plain(query['column'])}'"
    return [
        f"Of the {many(query['rows'], 'row')} of {name} these match nothing: {', '.join(parts)} "
        f"({how})."
    ]


def milliseconds(seconds: float) -> str:
    """Write seconds as milliseconds, with a digit more below ten."""
    value = 1000 * seconds
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}"
