"""What an index passes to its results, so that they can be shown as pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from pexeso.results.matches import Explanation, SearchResult


class HtmlRenderer:
    """Makes pages and tables of HTML; templates are loaded when the first one is made."""

    def results_page(self, results: Sequence[SearchResult], stream: TextIO | None) -> str | None:
        """Return the page of search results, or write it to a stream.

        See `pexeso.results.pages.page.results_page`.
        """
        from pexeso.results.pages.page import results_page, written

        return written(results_page(results), stream)

    def explanation_page(self, explanation: Explanation, stream: TextIO | None) -> str | None:
        """Return the page of an explanation, or write it to a stream."""
        from pexeso.results.pages.page import explanation_page, written

        return written(explanation_page(explanation), stream)
