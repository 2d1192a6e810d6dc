"""The layouts of results: what a table, CSV and messages have for each kind of search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pexeso.faces.cli.output import MAX_NAME
from pexeso.faces.cli.report import (
    INDENT,
    NAMES,
    Column,
    Layout,
    fan_out_column,
    first_pair_lines,
    indented,
    milliseconds,
    more_line,
    shares,
    shortened,
    transformed_lines,
)
from pexeso.options import ROWS
from pexeso.results.column_matches import fan_out_text
from pexeso.runtime.formatting import many, percent, plain

if TYPE_CHECKING:
    from pexeso.composite.results import CompositeMatch, CompositeResult
    from pexeso.results.matches import Match, SearchResult
    from pexeso.transform.search.results import TransformMatch, TransformSearchResult


# Characters of a program in a table.
MAX_PROGRAM = 60


_PHASES = ("start", "open", "embed", "map", "block", "verify", "rerank", "explain")


def _alike_columns(result: SearchResult) -> list[Column]:
    at_least = ">= " if result.options.are_lower_bounds else ""
    counted = "rows matched" if result.options.joinability_of == ROWS else "matched"
    columns = [
        Column("joinability", ">", lambda match: f"{at_least}{percent(match.joinability)}"),
        Column(counted, ">", lambda match: f"{match.matched:,}/{match.total:,}"),
        *NAMES,
        fan_out_column(result),
        Column("ahead by", "<", result._tie_break, is_optional=True),
    ]
    if not result.reranked:
        return columns
    similarity = Column(
        "similarity",
        ">",
        lambda match: "" if match.similarity is None else f"{match.similarity:.2f}",
    )
    return [similarity, *columns]


def _alike_why(match: Match, n_shown: int) -> list[str]:
    return [f"{INDENT}{shares(match.kinds())}", *first_pair_lines(match, n_shown)]


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


ALIKE = Layout(
    _alike_columns,
    _alike_why,
    _nothing_alike,
    _phases,
    ("query_value", "lake_value", "distance", "kind"),
    lambda match: (pair.to_list() for pair in match.streamed_pairs()),
)


def _transformed_columns(result: TransformSearchResult) -> list[Column]:
    return [
        Column("joinability", ">", lambda match: percent(match.joinability)),
        Column("joined", ">", lambda match: f"{match.matched:,}/{match.total:,}"),
        *NAMES,
        Column("program", "<", lambda match: shortened(match.program, MAX_PROGRAM)),
    ]


def _transformed_why(match: TransformMatch, n_shown: int) -> list[str]:
    """Return the whole program, whose values it reads, and values that are joined by it."""
    whose = "yours" if match.direction == "source to target" else "theirs"
    program = f"{INDENT}reads {whose}: {plain(match.program, MAX_NAME)}"
    return [program, *transformed_lines(match, n_shown)]


def _nothing_transformed(result: TransformSearchResult) -> str:
    if not result.query["values"]:
        return "The query column has no value: there is nothing to look for."
    return (
        f"No program joins a column with yours: {_learned_from(result)} shared enough rare pieces "
        "of text to learn from. pexeso search looks for similar values, --method overlap for "
        "equal ones, and pexeso transform learns from columns of numbers and from several columns."
    )


def _learned_from(result: TransformSearchResult) -> str:
    """Return how many columns programs were learned from, and which ones there were."""
    columns = many(result.stats["columns"], "column")
    return f"{result.stats['candidates']:,} of {columns} of text and dates"


TRANSFORMED = Layout(
    _transformed_columns,
    _transformed_why,
    _nothing_transformed,
    lambda result, waited: (
        f" in {milliseconds(result.stats['seconds'] if waited is None else waited)} ms, learned "
        f"from {_learned_from(result)}; columns of numbers are not compared"
    ),
    ("query_value", "lake_value", "joined"),
    lambda match: match.pairs(),
)


def _composite_fan_out(match: CompositeMatch) -> str:
    fan_out = match.fan_out
    return fan_out_text(fan_out.relation, fan_out.rows_per_query_row)


def _composite_columns(result: CompositeResult) -> list[Column]:
    return [
        Column("joinability", ">", lambda match: percent(match.joinability)),
        Column("keys", ">", lambda match: f"{match.matched_keys:,}/{match.total_keys:,}"),
        Column("rows", ">", lambda match: f"{match.rows:,}"),
        Column("fan-out", "<", _composite_fan_out),
        NAMES[0],
        Column("columns", "<", lambda match: ", ".join(match.columns)),
    ]


def _composite_why(match: CompositeMatch, n_shown: int) -> list[str]:
    """Lay out the pairs of similar values, where any are to be shown, and say how many more."""
    lines = []
    for column, pairs in match.similar_pairs(None).items() if n_shown else ():
        chosen = pairs[:n_shown]
        rows = [(pair.value, "~", pair.cell, f"{pair.distance:.3f}", column) for pair in chosen]
        lines += indented(rows, "<<<><")
        lines += more_line(len(pairs) - len(chosen), "pair")
    return lines


def _nothing_composite(result: CompositeResult) -> str:
    query, options = result.query, result.options
    named = " and ".join(map(repr, query["columns"]))
    if not query["keys"]:
        return (
            f"None of the {many(query['rows'], 'row')} has a value in each of {named}: there is "
            "no key to look for."
        )
    min_joinability = options["min_joinability"]
    share = "any" if min_joinability is None else f"at least {percent(min_joinability)}"
    ways = ["a smaller --min-joinability"] if min_joinability is not None else []
    if "similar" in query:
        ways.append(f"a larger --max-distance than {options['max_distance']:g}")
    ways.append("pexeso search with one of these columns")
    keys = query["keys"]
    phrase = "the one key" if keys == 1 else f"{share} of the {many(keys, 'key')}"
    return f"No table has {phrase} of {named} in its rows. Try {', or '.join(ways)}."


COMPOSITE = Layout(
    _composite_columns,
    _composite_why,
    _nothing_composite,
    lambda result, waited: (
        f" in {milliseconds(result.stats['seconds'] if waited is None else waited)} ms"
    ),
    (),
    lambda match: [()],
)


def incomplete_rows(result: CompositeResult) -> list[str]:
    query = result.query
    missing = query["rows"] - query["complete_rows"]
    if not missing or not query["keys"]:
        return []
    return [
        f"{many(missing, 'row')} of {query['rows']:,} lack a value in a key column and join "
        "nothing."
    ]
