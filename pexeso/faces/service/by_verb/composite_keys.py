"""Requests whose query names several columns of a file: a composite key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pexeso.faces.service.bases import RequestError
from pexeso.faces.service.responses import JoinResponse

if TYPE_CHECKING:
    from pexeso.composite.key_explanation import KeyExplanation
    from pexeso.composite.lake.query import KeyTable
    from pexeso.composite.lake.searches import CompositeSearches
    from pexeso.faces.service.requests import ExplainRequest, JoinRequest

OF_JOIN = ("how", "aggregate", "suffix", "provenance", "many_to_many")


def join_key(searches: CompositeSearches, request: JoinRequest, key: KeyTable) -> JoinResponse:
    """Join a table with one of the lake by a composite key."""
    request.require_use(("index", "query", "lake_column", *OF_JOIN), "A join by a composite key")
    if request.lake_column is None:
        result = searches.search(key, k=1, exclude_self=True)
        if not result.matches:
            raise RequestError(
                "No table of the lake has a row with a whole key of '%s': %s.",
                key.file,
                ", ".join(column.label for column in key.key),
            )
        table, columns = result[0].table, list(result[0].columns)
    else:
        table, columns = searches.opened.catalog.split(request.lake_column)
    pair = searches.pair(key, None, table)
    options = {name: getattr(request, name) for name in OF_JOIN}
    lake_key = pair.theirs(columns)
    return JoinResponse(
        key.describe(), pair.keys_joined(lake_key), None, pair.join(lake_key, options)
    )


def explain_key(
    searches: CompositeSearches, request: ExplainRequest, key: KeyTable
) -> KeyExplanation:
    """Explain how a composite key and a table of the lake compare."""
    request.require_use(("index", "query", "lake_column"), "The explanation of a composite key")
    from pexeso.composite.key_evidence import explain_keys  # brings numba

    table, columns = searches.opened.catalog.split(request.lake_column)
    return explain_keys(searches.pair(key, None, table), columns)
