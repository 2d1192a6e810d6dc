"""Pages of searches, explanations and learned programs: templates of Jinja escape every text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import numpy as np

import pexeso
from pexeso.options import ROWS
from pexeso.results.match_kinds import LABELS
from pexeso.runtime.formatting import MAX_CELL, figure, human_bytes, percent, plain

if TYPE_CHECKING:
    from jinja2 import Environment

    from pexeso.results.column_matches import Unmatched
    from pexeso.results.matches import Explanation, Match, SearchResult


# The kind of rows without a match.
NONE = "none"


class Limits(NamedTuple):
    columns_found: int = 24
    listed: int = 200
    pairs: int = 100
    unmatched: int = 25
    rows: int = 20
    columns: int = 8
    words: int = 12


# Pairs that are seen before the others are opened.
PAIRS_FIRST = 8

# Pairs of the values that match least, seen next to the first ones.
WEAKEST = 4

HISTOGRAM_BARS = 20

OF_RESULTS = Limits()
OF_EXPLANATION = Limits(pairs=1000, unmatched=200, rows=50)


def section_of_result(
    result: SearchResult, number: int, n_cards: int, limits: Limits = OF_RESULTS
) -> dict[str, Any]:
    """Lay out the columns found for one query column, the first `n_cards` of them in full."""
    shown = result.matches[:n_cards]
    if shown:
        result.matches[0]._details.find(range(len(shown)))
    is_least = result.options.are_lower_bounds
    listed = [
        {"anchor": _anchor(number, position), "match": match, "bar": _bar(match)}
        if position < n_cards
        else {"anchor": None, "match": match, "bar": ()}
        for position, match in enumerate(result.matches[: limits.listed])
    ]
    return {
        "query": result.query,
        "options": result.options,
        "is_explanation": False,
        "is_least": is_least,
        "reranked": result.reranked,
        "listed": listed,
        "n_found": len(result) + (result.n_more or 0),
        "n_cards": len(shown),
        "cards": _cards(shown, number, is_least, limits),
    }


def section_of_explanation(
    explanation: Explanation, limits: Limits = OF_EXPLANATION
) -> dict[str, Any]:
    return {
        "query": explanation.query,
        "options": explanation.options,
        "is_explanation": True,
        "is_least": False,
        "reranked": False,
        "listed": [],
        "n_found": 1,
        "n_cards": 1,
        "cards": _cards((explanation.match,), 1, False, limits),
    }


def _cards(
    matches: tuple[Match, ...], number: int, is_least: bool, limits: Limits
) -> Iterator[dict[str, Any]]:
    """Yield what is shown of each column found: the first of its pairs and unmatched texts."""
    if not matches:
        return
    tables = matches[0]._details.two_tables()
    for position, match in enumerate(matches):
        evidence, at = match._details, match._position
        pairs = evidence.table(at)
        unmatched = match.unmatched(limits.unmatched)
        n_unmatched = evidence.n_unmatched(at)
        yield {
            "anchor": _anchor(number, position),
            "match": match,
            "is_least": is_least,
            "noun": "row" if match.joinability_of == ROWS else "value",
            "bar": _bar(match),
            "fan_out": _fan_out(match),
            "contributions": match.word_contributions(limits.words),
            "pairs": evidence.pairs(at, limits.pairs),
            "n_pairs": len(pairs),
            "forms": match.forms(limits.pairs),
            "weakest": evidence.weakest(at, WEAKEST) if len(pairs) > PAIRS_FIRST else [],
            "unmatched": unmatched,
            "n_unmatched": n_unmatched,
            "lake_values": evidence.lake_values(at)
            if match.joinability_of != ROWS and not is_least
            else None,
            "histogram": partial(_histogram, match, unmatched, n_unmatched),
            "tables": tables.show(
                match.table, match.column, pairs, n_rows=limits.rows, n_columns=limits.columns
            ),
        }


def _histogram(
    match: Match, unmatched: Sequence[Unmatched], n_unmatched: int
) -> list[dict[str, float]]:
    """Return bars: how many values have their nearest at which distance, matches below others.

    A bar has `x` and `width`, and `y` and `height` from the top, as shares of the drawing.
    """
    if match.joinability_of == ROWS or n_unmatched > len(unmatched):
        return []
    distances, joinability = match.curve()
    matched = np.diff(joinability * match.total, prepend=0)
    others = [one.distance for one in unmatched if one.reason == "too far"]
    counts = np.array(
        [
            np.histogram(distances, HISTOGRAM_BARS, (0, 1), weights=matched)[0],
            np.histogram(others, HISTOGRAM_BARS, (0, 1))[0],
        ]
    )
    heights = counts / max(1, counts.sum(0).max())
    tops = 1 - np.cumsum(heights, 0)
    return [
        {
            "is_match": not row,
            "x": bar / HISTOGRAM_BARS,
            "width": 1 / HISTOGRAM_BARS,
            "y": tops[row, bar],
            "height": heights[row, bar],
        }
        for row, bar in zip(*np.nonzero(counts), strict=True)
    ]


def _fan_out(match: Match) -> str | None:
    """Return what a join with a column makes of a row of the user's."""
    mean = match.rows_per_value
    if mean is None:
        return None
    rows = "one row" if mean == 1 else f"{figure(mean)} rows on average"
    few = " It has few values, which say little about a row." if match.is_small_domain else ""
    return f"The table has {rows} for each value of this column.{few}"


def _anchor(number: int, position: int) -> str:
    return f"found-{number}-{position + 1}"


def _bar(match: Match) -> list[dict[str, Any]]:
    matched = match.kinds().matched
    counts = {**matched, NONE: match.total - sum(matched.values())}
    total = max(1, match.total)
    return [
        {"kind": kind, "matched": number, "share": number / total}
        for kind, number in counts.items()
    ]


# Longest value shown on a page, in characters; longer ones are cut, with their length.
MAX_VALUE = 160

# The same for names of tables, columns and files.
MAX_NAME = 240

# The same for sentences that say why something is not shown.
MAX_SENTENCE = 1000

BUFFER_SIZE = 64


def results_page(results: Sequence[SearchResult]) -> Iterator[str]:
    """Return the page of one or several search results, in pieces.

    At most 24 columns found are shown in full, shared evenly by the results, and 200 of each result
    are listed.
    """
    n_cards = max(1, OF_RESULTS.columns_found // max(1, len(results)))
    sections = (
        section_of_result(result, number, n_cards) for number, result in enumerate(results, 1)
    )
    queries = {_query_name(result.query["column"]) for result in results}
    title = (
        "Columns that join with "
        f"{queries.pop() if len(queries) == 1 else f'{len(queries)} of your columns'}"
    )
    yield from _page(title, sections, len(results))


def explanation_page(explanation: Explanation) -> Iterator[str]:
    query, match = _query_name(explanation.query["column"]), explanation.match
    verb = "joins" if match.matched else "does not join"
    title = (
        f"Why {query} {verb} with {plain(match.table, MAX_NAME)} : {plain(match.column, MAX_NAME)}"
    )
    yield from _page(title, iter([section_of_explanation(explanation)]), 1)


def written(pieces: Iterator[str], stream: TextIO | None) -> str | None:
    if stream is None:
        return "".join(pieces)
    for piece in pieces:
        stream.write(piece)
    return None


def _page(title: str, sections: Iterator[dict[str, Any]], n_sections: int) -> Iterator[str]:
    template = environment().get_template("page.html")
    stream = template.stream(
        title=title, sections=sections, n_sections=n_sections, version=pexeso.__version__
    )
    stream.enable_buffering(BUFFER_SIZE)
    yield from stream


def rendered(template: str, shown: Mapping[str, Any]) -> str:
    return environment().get_template(template).render(shown, version=pexeso.__version__)


def _query_name(column: str | None) -> str:
    return "your values" if column is None else plain(column, MAX_NAME)


@cache
def environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    # Everything that is not markup of the templates themselves is escaped.
    environment = Environment(
        loader=PackageLoader("pexeso.results", "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "figure": figure,
        "kind": lambda kind: LABELS.get(kind, kind),
        "percent": percent,
        "number": lambda number: f"{number:,}",
        "value": lambda text: plain(text, MAX_VALUE),
        "word": lambda text: plain(text, MAX_CELL),
        "name": lambda text: plain(text, MAX_NAME),
        "sentence": lambda text: plain(text, MAX_SENTENCE),
        "size": human_bytes,
        "distance": lambda distance: f"{distance:.3f}",
        "similarity": "{:.2f}".format,
        "width": lambda share: f"{100 * share:.3f}%",
    }
    return environment


# Characters of SQL or Python above which it is left out.
MAX_CODE = 50_000

NOTEBOOK_PAIRS = 20

# Kinds of a join, the colours that they have on all pages, and what they are called.
_KINDS = (
    ("equal", "exact", "equal"),
    ("program", "alias", "by a program"),
    ("fuzzy", "spelling", "nearly equal"),
    ("none", "none", "not joined"),
)

CARDINALITIES = {
    "none": "no key is joined",
    "1:1": "each key has one row in either table",
    "N:1": "keys have several rows in the first table",
    "1:N": "keys have several rows in the second table",
    "N:M": "keys have several rows in the first table and in the second; where one has in both, "
    "rows multiply",
}


def transform_page(report: Mapping[str, Any]) -> str:
    return rendered("transform.html", transform_shown(report))


def transform_shown(report: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "title": f"{_columns(report['source'])} joined with {_columns(report['target'])}",
        "segments": _segments(report["rows"]),
        "n_rows": sum(report["rows"].values()),
        "cardinality_said": CARDINALITIES[report["cardinality"]],
        "code": _code,
        **report,
    }


def transform_table(report: Mapping[str, Any]) -> str:
    shown = {"report": report, "segments": _segments(report["rows"]), "most": NOTEBOOK_PAIRS}
    return rendered("transform_notebook.html", {**shown, "one": _one})


def _segments(rows: Mapping[str, int]) -> list[dict[str, Any]]:
    total = max(1, sum(rows.values()))
    return [
        {"kind": colour, "said": name, "matched": rows[kind], "share": rows[kind] / total}
        for kind, colour, name in _KINDS
    ]


def _columns(side: Mapping[str, Any]) -> str:
    names = ", ".join(side["columns"])
    return plain(f"{names} of {side['file']}" if side["file"] else names, MAX_NAME)


def _code(text: str) -> str | None:
    """Return lines of code with what cannot be seen escaped; None where they are too many."""
    if len(text) > MAX_CODE:
        return None
    return "\n".join(plain(line, MAX_CODE) for line in text.split("\n"))


def _one(value: str | Sequence[str]) -> str:
    return value if isinstance(value, str) else ", ".join(value)
