"""How results of searches are written: tables, JSON, CSV, and the work of a search."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from pexeso.faces.cli.errors import seconds_waited
from pexeso.faces.cli.options import CountOrAll
from pexeso.faces.cli.output import (
    MAX_NAME,
    display_width,
    heading,
    table_lines,
    talk,
    warn,
    write_csv,
    write_json,
    write_json_line,
)
from pexeso.faces.cli.streams import styled
from pexeso.options import ROWS
from pexeso.runtime.formatting import many, percent, plain

if TYPE_CHECKING:
    from pexeso.lake.left_out import ReasonGroup
    from pexeso.results.column_matches import ColumnMatch, ColumnMatches, Hints, Matches
    from pexeso.results.match_kinds import KindCounts
    from pexeso.results.matches import Match, Pair, SearchResult
    from pexeso.semantic.combined import CombinedMatch, CombinedResult
    from pexeso.sets.results import TokenMatch, TokenSearchResult
    from pexeso.transform.search.results import TransformMatch


# Characters for the names of what a join brings: fewer on a narrow terminal, within these bounds.
BRINGS_WIDTH, MIN_BRINGS_WIDTH = 40, 16
# Longest label among these.
MAX_LABEL = 24
# Copies of a column that are named.
MAX_COPIES_NAMED = 5

_POSITION = re.compile(r"#[0-9]+", re.ASCII)

# Names of columns, rows of cells, and `<` or `>` for each column.
Table = tuple[Sequence[str], Sequence[Sequence[str]], str]


class Column(NamedTuple):
    """A column of a table of results: its name, ``<`` or ``>``, and its cell of a match."""

    name: str
    align: str
    cell: Callable[[Any], str]
    # Left out where all its cells are empty.
    is_optional: bool = False


def table_of(columns: Sequence[Column], matches: Sequence[Any]) -> Table:
    cells = [(column, [column.cell(match) for match in matches]) for column in columns]
    kept = [(column, texts) for column, texts in cells if any(texts) or not column.is_optional]
    rows = list(zip(*(texts for _, texts in kept), strict=True))
    return ([column.name for column, _ in kept], rows, "".join(column.align for column, _ in kept))


def shared_lines(result: Matches[Any]) -> list[list[Any]]:
    """Put columns found that are keys of one table, and so name the same rows, on one line."""
    lines: dict[Any, list[Any]] = {}
    for position, match in enumerate(result):
        is_key = getattr(match, "rows_per_value", None) == 1 and not match.copies
        lines.setdefault(match.table if is_key else position, []).append(match)
    return list(lines.values())


def table_with_context(columns: Sequence[Column], matches: Sequence[Any]) -> Table:
    """Return a table of columns found, with their copies and what they bring, as there is room."""
    columns, width = (*columns, COPIES), BRINGS_WIDTH
    if sys.stdout.isatty():
        used = max(map(display_width, table_lines(*table_of(columns, matches), limit=MAX_NAME)))
        width = min(max(get_terminal_size().columns - used - 2, MIN_BRINGS_WIDTH), BRINGS_WIDTH)
    brings = Column("brings", "<", lambda match: brought(match.brings, width), is_optional=True)
    return table_of((*columns, brings), matches)


COPIES = Column(
    "copies", ">", lambda match: f"+{len(match.copies):,}" if match.copies else "", is_optional=True
)
NAMES = (
    Column("table", "<", lambda match: match.table),
    Column("column", "<", lambda match: match.column),
)


def fan_out_column(result: ColumnMatches[Any]) -> Column:
    return Column("fan-out", "<", result._fan_out, is_optional=True)


def brought(labels: Sequence[str], width: int) -> str:
    """Write the first labels that fit into a width, and how many more there are.

    Examples
    --------
    >>> brought(["born", "died", "country", "field"], 40)
    'born, died, country, field'
    >>> brought(["born", "died", "country", "field"], 20)
    'born, died, +2 more'

    Columns without a name of their own are counted alone:

    >>> brought(["#1", "born", "#3"], 40), brought(["#1"], 40)
    ('born, +2 more', '1 column')
    """
    shown = [shortened(label, MAX_LABEL) for label in labels if not _POSITION.fullmatch(label)]
    for n_shown in range(len(shown), 0, -1):
        n_more = len(labels) - n_shown
        text = ", ".join([*shown[:n_shown], *([f"+{n_more:,} more"] if n_more else [])])
        if display_width(text) <= width:
            return text
    return many(len(labels), "column") if labels else ""


def copies_line(match: ColumnMatch) -> list[str]:
    if not match.copies:
        return []
    named = [f"{copy.table}:{copy.column}" for copy in match.copies[:MAX_COPIES_NAMED]]
    n_more = len(match.copies) - len(named)
    rest = [f"and {n_more:,} more (--no-fold-copies lists each)"] if n_more else []
    return [f"{INDENT}same values: {plain(', '.join([*named, *rest]), MAX_NAME)}"]


def rest_lines(result: Matches[Any]) -> list[str]:
    """Return the line about what was found beyond those shown, and how to see them."""
    lines = []
    twice = f"-k {2 * max(len(result), 1)}"
    if getattr(result.options, "min_joinability", 0) is not None:
        twice += ", or -k all"
    if result.n_more:
        lines.append(f"and {many(result.n_more, f'more {result.noun}')} ({twice})")
    elif result.n_more is None:
        lines.append(f"and there may be more {result.noun}s ({twice})")
    if any(match.copies for match in result):
        lines.append("copies hold the same values, or nearly (--no-fold-copies lists each)")
    return lines


def hint_lines(hints: Hints) -> list[str]:
    lines = [plain(one.sentence(), MAX_NAME) for one in hints.readings]
    if hints.nearest:
        rows = [
            (
                percent(near_column.share),
                f"{near_column.matched:,}/{near_column.total:,}",
                "" if near_column.max_distance is None else f"{near_column.max_distance:.3g}",
                near_column.table,
                near_column.column,
            )
            for near_column in hints.nearest
        ]
        names = ("reaches", "matched", "within distance", "table", "column")
        align = ">>><<"
        if not any(row[2] for row in rows):
            rows = [(*row[:2], *row[3:]) for row in rows]
            names, align = ("has", "values", "table", "column"), ">><<"
        lines += ["Nearest:", *indented(rows, align, names)]
    columns, files = (
        [group for group in hints.left_out if group.kind == kind] for kind in ("columns", "tables")
    )
    left_out = [*_left_out_groups(columns, 2), *_left_out_groups(files, 1)]
    if left_out:
        lines += ["Not in this index (pexeso info --left-out lists all):", *left_out]
    if any(group.reason == "numbers" for group in columns):
        lines.append("Columns of numbers join by equal values: pexeso search --method overlap.")
    return lines


def _left_out_groups(groups: Sequence[ReasonGroup], limit: int) -> list[str]:
    """Write the largest groups of what was left out, and how many are in others."""
    lines = [f"{INDENT}{group.counted()}: {plain(group.reason)}" for group in groups[:limit]]
    n_more = sum(group.count for group in groups[limit:])
    noun = "more column" if groups and groups[0].kind == "columns" else "more file"
    return [*lines, f"{INDENT}{many(n_more, noun)}"] if n_more else lines


def shortened(text: str, limit: int) -> str:
    text = plain(text, MAX_NAME)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def indented(
    rows: Sequence[Sequence[str]], align: str, names: Sequence[str] | None = None
) -> list[str]:
    """Lay out rows below a line, with a header if it is given."""
    if not rows:
        return []
    return [INDENT + line for line in table_lines(names or ("",) * len(align), rows, align)]


ALL_PAIRS = sys.maxsize
INDENT = "    "


class PairsCount(CountOrAll):
    """A whole number of pairs to show, or ``all``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number = super().convert(value, param, ctx)
        return number if isinstance(number, int) else ALL_PAIRS


class Layout(NamedTuple):
    """How the results of one kind of search are written."""

    # From a result.
    columns: Callable[[Any], Sequence[Column]]
    # From a match and how many values to show: lines below its row.
    why: Callable[[Any, int], list[str]]
    # From an empty result.
    nothing: Callable[[Any], str]
    # From a result, and the seconds that were waited for it where it is the only one: the text
    # after the number of columns found.
    work: Callable[[Any, float | None], str]
    # Columns that an explanation adds to CSV.
    details: tuple[str, ...]
    # From a match to the cells of these columns.
    detail_rows: Callable[[Any], Iterable[Sequence[Any]]]


def write_results(
    layout: Layout,
    results: Sequence[Any],
    form: str | None,
    n_shown: int,
    *,
    explain: bool,
    name_queries: bool,
) -> None:
    """Write the result of each query column, all with the same options, in one form or as tables.

    With `explain` the values that match are written too, in a table `n_shown` of each column. With
    `name_queries` each result is headed by its query column.
    """
    if form == "csv":
        _write_csv(layout, results, explain, name_queries)
        return
    for position, result in enumerate(results):
        if form == "json":
            document = result.to_dict(explain=explain, hints=True)
            (write_json_line if name_queries else write_json)(document)
        else:
            if name_queries:
                click.echo(
                    f"{chr(10) if position else ''}{plain(result.query['column'], MAX_NAME)}"
                )
            if len(result):
                click.echo("\n".join(result_lines(layout, result, n_shown if explain else 0)))
                for line in hint_lines(result.hints()):
                    talk(line)
            else:
                report_nothing(layout, result)


def report_nothing(layout: Layout, result: Any) -> None:
    """Write on stderr that nothing was found, what came near, and what the index lacks."""
    warn(layout.nothing(result))
    for line in hint_lines(result.hints()):
        talk(line)


def report_work(layout: Layout, results: Sequence[Any], *, name_queries: bool) -> None:
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
    """Lay out the columns found, best first, each with up to `n_shown` of its matching values."""
    shared = [[match] for match in result] if n_shown else shared_lines(result)
    labels = {id(line[0]): [match.column for match in line] for line in shared if len(line) > 1}
    of_line = Column("column", "<", lambda match: ", ".join(labels.get(id(match), [match.column])))
    columns = [
        of_line if labels and column is NAMES[1] else column for column in layout.columns(result)
    ]
    names, rows, alignment = table_with_context(columns, [line[0] for line in shared])
    header, *lines = table_lines(names, rows, alignment, limit=MAX_NAME)
    # What the columns are ranked by comes first, and is aligned to the right.
    width = max(len(row[0]) for row in (names, *rows))
    header = heading(header)
    lines = [styled(line[:width], fg="cyan") + line[width:] for line in lines]
    if not n_shown:
        same = ["columns on one line identify the same rows (--json lists each)"] if labels else []
        return [header, *lines, *same, *rest_lines(result)]
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
    # All have the same options, and so the same fields.
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


def pair_lines(pairs: Sequence[Pair]) -> list[str]:
    from pexeso.results.match_kinds import LABELS

    rows = [
        (
            pair.query,
            "=" if pair.query == pair.value else "~",
            pair.value,
            f"{pair.distance:.3f}",
            LABELS.get(pair.kind, pair.kind) + (f": {pair.key}" if pair.kind == "alias" else ""),
        )
        for pair in pairs
    ]
    return indented(rows, "<<<><")


def first_pair_lines(match: Match, n_shown: int) -> list[str]:
    """Lay out the first pairs of a match, and say how many more there are."""
    pairs = match.pairs(n_shown)
    return [*pair_lines(pairs), *more_line(match.n_pairs - len(pairs), "pair")]


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
    return [*indented(chosen, "<<<"), *more_line(len(pairs) - len(chosen), "pair")]


def more_line(n_more: int, noun: str) -> list[str]:
    """Return the line that counts those left out, if any, with the option that shows them."""
    return [f"{INDENT}and {many(n_more, f'more {noun}')} (--pairs all)"] if n_more else []


def _equal_columns(result: TokenSearchResult) -> list[Column]:
    def overlap(match: TokenMatch) -> str:
        return "" if match.estimated else f"{match.overlap:,}/{result.query['values']:,}"

    return [
        # With ~ before an estimate.
        Column(
            "containment",
            ">",
            lambda match: f"{'~' if match.estimated else ''}{percent(match.containment)}",
        ),
        Column("overlap", ">", overlap),
        Column("values", ">", lambda match: f"{match.size:,}"),
        *NAMES,
        fan_out_column(result),
    ]


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


def _combined_columns(result: CombinedResult) -> list[Column]:
    """Return the share, what each search found, and the values that a program joins, if any."""

    def equal(match: CombinedMatch) -> str:
        if match.equal_text is None:
            return ""
        return f"{match.equal_text.overlap:,}/{result.query['values']:,} values"

    def by_program(match: CombinedMatch) -> str:
        if match.transform is None:
            return ""
        return f"{match.transform.matched:,}/{match.transform.total:,} values"

    return [
        Column("share", ">", lambda match: percent(match.share)),
        Column("semantic", ">", _semantically),
        Column("equal values", ">", equal),
        Column("by program", ">", by_program, is_optional=True),
        *NAMES,
        fan_out_column(result),
    ]


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
    """Format the program that joins a column, if any, and its pairs or shared values."""
    if match.transform is not None:
        program = f"{INDENT}program: {plain(match.transform.program, MAX_NAME)}"
        return [program, *_combined_values(match, n_shown)]
    return _combined_values(match, n_shown)


def _combined_values(match: CombinedMatch, n_shown: int) -> list[str]:
    if match.meaning is not None:
        return first_pair_lines(match.meaning, n_shown)
    if match.equal_text is not None:
        return value_lines(match.equal_text, n_shown)
    return [] if match.transform is None else transformed_lines(match.transform, n_shown)


def _shared(match: TokenMatch) -> list[tuple[str]]:
    return [(value,) for value in match.shared()]


EQUAL = Layout(
    _equal_columns,
    value_lines,
    _nothing_equal,
    lambda result, waited: (
        f" in {milliseconds(result.stats['seconds'] if waited is None else waited)} ms"
    ),
    ("value",),
    _shared,
)
COMBINED = Layout(
    _combined_columns,
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
    from pexeso.results.match_kinds import LABELS

    shown = kinds.shares.items()
    return ", ".join(f"{percent(share)} {LABELS.get(kind, kind)}" for kind, share in shown)


def unmatchable(result: SearchResult) -> list[str]:
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
    how = "they count as not matched" if counts else "they are not counted"
    name = "the query" if query["column"] is None else f"'{plain(query['column'])}'"
    return [
        f"Of the {many(query['rows'], 'row')} of {name} these match nothing: {', '.join(parts)} "
        f"({how})."
    ]


def order_lines(result: Any) -> list[str]:
    """Write in which order dates were read that do not say whether the day comes first."""
    from pexeso.results.query import order_note

    if "day_first" not in result.query:
        return []
    return [order_note("Dates", day_first=result.query["day_first"])]


def milliseconds(seconds: float) -> str:
    value = 1000 * seconds
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}"
