"""Search results for people: the table of columns found, their matching values, and what the search did."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from pexeso.cli.output.output import MAX_NAME, count, table_lines, write_csv
from pexeso.runtime.formatting import percent, plain

if TYPE_CHECKING:
    from pexeso.results import Match, Pair, SearchResult
    from pexeso.search.match_kinds import KindCounts

ALL_PAIRS = math.inf
_INDENT = "    "
_PHASES = ("open", "embed", "map", "block", "verify", "rerank", "explain")


class PairsCount(click.ParamType):
    """A whole number of pairs to show, or ``all``."""

    name = "pairs"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the number; `ALL_PAIRS` for ``all``."""
        if value == "all":
            return ALL_PAIRS
        try:
            number = int(value)
        except ValueError:
            number = 0
        if number < 1:
            self.fail(f"{value!r} is neither 'all' nor a whole number of at least 1.", param, ctx)
        return number


def result_lines(result: SearchResult, n_pairs: float) -> list[str]:
    """Lay out the columns found, best first, each with up to so many of its value pairs below it."""
    at_least = ">= " if result.options.counts == "decide" and result.options.k is None else ""
    rows = [
        (f"{at_least}{percent(match.joinability)}", f"{match.matched:,}/{match.total:,}", match.table, match.column)
        for match in result
    ]
    names, alignment = ("joinability", "matched", "table", "column"), ">><<"
    if result.reranked:
        rows = [(_score(match), *row) for match, row in zip(result, rows, strict=True)]
        names, alignment = ("score", *names), f">{alignment}"
    header, *lines = table_lines(names, rows, alignment, most=MAX_NAME)
    if not n_pairs:
        return [header, *lines]
    shown = [header]
    for line, match in zip(lines, result, strict=True):
        shown += [line, *_reason_lines(match), f"{_INDENT}{shares(match.kinds())}"]
        shown += [*pair_lines(match.pairs(), n_pairs), ""]
    return shown[:-1]


def _reason_lines(match: Match) -> list[str]:
    """Return what speaks for a column and against it, where it was looked at for that."""
    sides = [] if match.opinion is None else match.opinion.in_words()
    return [f"{_INDENT}{side}: {'; '.join(phrases)}" for side, phrases in sides]


def _score(match: Match) -> str:
    return "" if match.opinion is None else f"{match.opinion.score:.2f}"


def shares(kinds: KindCounts) -> str:
    """Write which share of the rows that match is of each kind.

    Examples
    --------
    >>> from pexeso.search.match_kinds import KindCounts
    >>> shares(KindCounts({}, {"exact": 2, "spelling": 1, "meaning": 0}))
    '66.7 % exact, 33.3 % spelling, 0.0 % meaning'
    """
    return ", ".join(f"{percent(share)} {kind}" for kind, share in kinds.shares.items())


def pair_lines(pairs: Sequence[Pair], n_pairs: float) -> list[str]:
    """Lay out value pairs, and say how many more there are."""
    chosen = pairs if n_pairs == ALL_PAIRS else pairs[: int(n_pairs)]
    rows = [
        (pair.query, "=" if pair.query == pair.value else "~", pair.value, f"{pair.distance:.3f}", pair.kind)
        for pair in chosen
    ]
    lines = [_INDENT + line for line in table_lines(("",) * 5, rows, "<<<><")] if rows else []
    n_more = len(pairs) - len(chosen)
    return [*lines, f"{_INDENT}and {count(n_more, 'more pair')} (--pairs all)"] if n_more else lines


def write_results_csv(results: Sequence[SearchResult], *, with_pairs: bool, name_queries: bool) -> None:
    """Write results as CSV: a row for each column found, or for each of its pairs."""
    pair_columns = ("query_value", "lake_value", "distance", "kind") if with_pairs else ()
    # All were asked with the same options, so they tell the same.
    columns = (*(("query_column",) if name_queries else ()), *results[0].fields, *pair_columns)
    write_csv(columns, (row for result in results for row in _csv_rows(result, with_pairs, name_queries)))


def _csv_rows(result: SearchResult, with_pairs: bool, name_query: bool) -> Iterable[tuple[Any, ...]]:
    named = (result.query["column"],) if name_query else ()
    for match in result:
        described = match.to_dict()
        facts = (*named, *(described.get(name) for name in result.fields))
        if not with_pairs:
            yield facts
            continue
        for pair in match.pairs():
            yield (*facts, *pair.to_list())


def found_nothing(result: SearchResult) -> str:
    """Return what was looked for in vain, and what could be tried."""
    options, rows = result.options, result.query["rows"]
    if not rows:
        return "The query column has no rows: there is nothing to look for."
    if options.min_joinability is None:
        return (
            f"No column has any value within distance {options.max_distance:g} of the {count(rows, 'row')}. "
            "Try a larger --max-distance."
        )
    return (
        f"No column matches at least {percent(options.min_joinability)} of the {count(rows, 'row')} within distance {options.max_distance:g}. "
        "Try a larger --max-distance, a smaller --min-joinability, or -k 10 for the best there are."
    )


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
    how = "they are not counted" if result.options.ignore_missing else "--ignore-missing leaves them out"
    name = "the query" if query["column"] is None else f"'{plain(query['column'])}'"
    return [f"Of the {count(query['rows'], 'row')} of {name} these match nothing: {', '.join(parts)} ({how})."]


def stats_line(result: SearchResult, *, name: bool = False) -> str:
    """Return the number of columns found and the milliseconds that each phase took."""
    seconds: dict[str, float] = result.stats["seconds"]
    phases = ", ".join(f"{phase} {milliseconds(seconds[phase])}" for phase in sorted(seconds, key=_PHASES.index))
    of = f"{plain(result.query['column'])}: " if name else ""
    return f"{of}{count(len(result), 'column')} in {milliseconds(sum(seconds.values()))} ms ({phases})"


def milliseconds(seconds: float) -> str:
    """Write seconds as milliseconds, with a digit more below ten.

    Examples
    --------
    >>> milliseconds(0.0412), milliseconds(0.0004)
    ('41', '0.4')
    """
    value = 1000 * seconds
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}"
