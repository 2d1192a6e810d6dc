"""Searches by any method, under one name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pexeso.errors import InputError
from pexeso.runtime.checks import require_choice

if TYPE_CHECKING:
    from pexeso.index import Index
    from pexeso.results.matches import SearchResult
    from pexeso.semantic.answers.combined import CombinedResult
    from pexeso.sets.search.results import TokenSearchResult
    from pexeso.transform.search.results import TransformSearchResult

    AnySearchResult = SearchResult | TokenSearchResult | TransformSearchResult | CombinedResult

METHODS = ("semantic", "overlap", "containment", "transform", "all")
"""By values alike, by equal values, by a learned program, by all of these."""

_OPTIONS = {
    "overlap": ("k",),
    "containment": ("k", "min_joinability", "verify"),
    "transform": ("k", "min_joinability", "max_candidates", "seed"),
}
"""What is asked for by each method, but for those that take the options of semantic search."""


def search_by_method(
    index: Index,
    values: Any,
    method: str,
    *,
    exclude_self: bool = False,
    fold_copies: bool = True,
    **options: Any,
) -> AnySearchResult:
    """Find the columns that a query column can be joined with, by a method."""
    require_choice("method", method, METHODS)
    alike: dict[str, Any] = {"exclude_self": exclude_self, "fold_copies": fold_copies}
    if method == "semantic":
        return index.search(values, method="semantic", **alike, **options)
    if method == "all":
        from pexeso.semantic.answers.combined import search_combined

        return search_combined(index, values, **alike, **options)
    unknown = sorted(set(options) - set(_OPTIONS[method]))
    if unknown:
        raise InputError(
            f"A search by the method {method} has the options {', '.join(_OPTIONS[method])}. Got "
            f"{', '.join(unknown)}."
        )
    if method == "transform":
        return index.transform_searches.search(values, **alike, **options)
    if method == "overlap":
        return index.overlap(values, **alike, **options)
    if "min_joinability" in options:
        options["min_containment"] = options.pop("min_joinability")
    return index.contain(values, **alike, **options)
