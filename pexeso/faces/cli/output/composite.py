"""Results of searches by composite keys for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pexeso.faces.cli.output.output import table_lines
from pexeso.faces.cli.output.report import (
    INDENT,
    Layout,
    Table,
    milliseconds,
    more_line,
)
from pexeso.runtime.formatting import percent
from pexeso.runtime.shown import many

if TYPE_CHECKING:
    from pexeso.composite.lake.results import CompositeMatch, CompositeResult, FanOut


def fan_out_text(fan_out: FanOut) -> str:
    """Write how many rows a join makes of one.

    Examples
    --------
    >>> from pexeso.composite.lake.results import FanOut
    >>> fan_out_text(FanOut("1:n", 30, 1.5, 1.0, 4, 1))
    '1:n, 1.5 rows a row of yours'
    """
    mean = fan_out.rows_per_query_row
    if fan_out.max_rows_per_query_row == 1:
        return fan_out.relation
    return f"{fan_out.relation}, {mean:.2g} rows a row of yours"


def _table(result: CompositeResult) -> Table:
    rows = [
        (
            percent(match.joinability),
            f"{match.matched_keys:,}/{match.total_keys:,}",
            f"{match.rows:,}",
            fan_out_text(match.fan_out),
            match.table,
            ", ".join(match.columns),
        )
        for match in result
    ]
    return ("joinability", "keys", "rows", "fan-out", "table", "columns"), rows, ">>><<<"


def _why(match: CompositeMatch, n_shown: int) -> list[str]:
    """Lay out the pairs of similar values, where any are to be shown, and say how many more."""
    lines = []
    for column, pairs in match.similar_pairs(None).items() if n_shown else ():
        chosen = pairs[:n_shown]
        rows = [(pair.value, "~", pair.cell, f"{pair.distance:.3f}", column) for pair in chosen]
        lines += [INDENT + line for line in table_lines(("",) * 5, rows, "<<<><")] if rows else []
        lines += more_line(len(pairs) - len(chosen), "pair")
    return lines


def _nothing(result: CompositeResult) -> str:
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
    _table,
    _why,
    _nothing,
    lambda result, waited: (
        f" in {milliseconds(result.stats['seconds'] if waited is None else waited)} ms"
    ),
    (),
    lambda match: [()],
)


def incomplete_rows(result: CompositeResult) -> list[str]:
    """Return how many rows have no key, if any."""
    query = result.query
    missing = query["rows"] - query["complete_rows"]
    if not missing or not query["keys"]:
        return []
    return [
        f"{many(missing, 'row')} of {query['rows']:,} lack a value in a key column and join "
        "nothing."
    ]
