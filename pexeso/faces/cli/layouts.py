"""The layouts of results: what a table, CSV and messages have for each kind of search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pexeso.faces.cli.output import MAX_NAME
from pexeso.faces.cli.report import (
    INDENT,
    NAMES,
    Column,
    Layout,
    indented,
    milliseconds,
    more_line,
    shortened,
    transformed_lines,
)
from pexeso.runtime.formatting import many, percent, plain

if TYPE_CHECKING:
    from pexeso.composite.results import CompositeMatch, CompositeResult, FanOut
    from pexeso.transform.search.results import TransformMatch, TransformSearchResult


# Characters of a program in a table.
MAX_PROGRAM = 60


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


def fan_out_text(fan_out: FanOut) -> str:
    """Write how many rows a join makes of one.

    Examples
    --------
    >>> from pexeso.composite.results import FanOut
    >>> fan_out_text(FanOut("1:n", 30, 1.5, 1.0, 4, 1))
    '1:n, 1.5 rows for each row'
    """
    mean = fan_out.rows_per_query_row
    if fan_out.max_rows_per_query_row == 1:
        return fan_out.relation
    return f"{fan_out.relation}, {mean:.2g} rows for each row"


def _composite_columns(result: CompositeResult) -> list[Column]:
    return [
        Column("joinability", ">", lambda match: percent(match.joinability)),
        Column("keys", ">", lambda match: f"{match.matched_keys:,}/{match.total_keys:,}"),
        Column("rows", ">", lambda match: f"{match.rows:,}"),
        Column("fan-out", "<", lambda match: fan_out_text(match.fan_out)),
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
