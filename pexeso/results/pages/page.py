"""The page itself: a template of Jinja that escapes every text, filled piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, TextIO

import pexeso
from pexeso.results.pages.cards import (
    OF_RESULTS,
    Section,
    section_of_explanation,
    section_of_result,
)
from pexeso.runtime.formatting import MAX_CELL, figure, human_bytes, percent, plain

if TYPE_CHECKING:
    from jinja2 import Environment

    from pexeso.results.matches import Explanation, SearchResult

MAX_VALUE = 160
"""Longest value shown on a page, in characters; longer ones are cut, with their length."""

MAX_NAME = 240
"""The same for names of tables, columns and files."""

MAX_SENTENCE = 1000
"""The same for sentences that say why something is not shown."""

PIECES_AT_ONCE = 64


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
        f"{queries.pop() if len(queries) == 1 else f'{len(queries)} columns of yours'}"
    )
    yield from _page(title, sections, len(results))


def explanation_page(explanation: Explanation) -> Iterator[str]:
    """Return the page of one explanation, in pieces."""
    query, match = _query_name(explanation.query["column"]), explanation.match
    verb = "joins" if match.matched else "does not join"
    title = (
        f"Why {query} {verb} with {plain(match.table, MAX_NAME)} : {plain(match.column, MAX_NAME)}"
    )
    yield from _page(title, iter([section_of_explanation(explanation)]), 1)


def written(pieces: Iterator[str], stream: TextIO | None) -> str | None:
    """Write a page to an open text stream, piece by piece; without one give it as a text."""
    if stream is None:
        return "".join(pieces)
    for piece in pieces:
        stream.write(piece)
    return None


def _page(title: str, sections: Iterator[Section], n_sections: int) -> Iterator[str]:
    template = environment().get_template("page.html")
    stream = template.stream(
        title=title, sections=sections, n_sections=n_sections, version=pexeso.__version__
    )
    stream.enable_buffering(PIECES_AT_ONCE)
    yield from stream


def _query_name(column: str | None) -> str:
    return "your values" if column is None else plain(column, MAX_NAME)


@cache
def environment() -> Environment:
    """Return the templates of all pages, with the filters that write numbers and names."""
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
