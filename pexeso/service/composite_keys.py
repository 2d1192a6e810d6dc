"""Requests whose query names several columns of a file: a composite key."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from pexeso.service.bases import QueryRequest, Request, RequestError
from pexeso.service.responses import JoinResponse

if TYPE_CHECKING:
    from pexeso.composite_search.query import KeyTable
    from pexeso.composite_search.searches import CompositeSearches
    from pexeso.explain.key_explanation import KeyExplanation
    from pexeso.service.requests import ExplainRequest, JoinRequest

_OF_JOIN = ("how", "aggregate", "suffix", "provenance")


def key_of(request: QueryRequest) -> KeyTable | None:
    """Return the table and columns of a composite key; None where the query names one column."""
    if not request.may_be_key:
        return None
    from pexeso.composite_search.query import composite_spec

    return composite_spec(request.query)


def open_searches(path: str) -> CompositeSearches:
    """Open what compares keys of an index, without the model and without torch."""
    from pexeso.composite_search.searches import CompositeSearches
    from pexeso.search.open_index import OpenIndex
    from pexeso.search.opening import require_searchable
    from pexeso.store.opening import open_store_anywhere

    store = open_store_anywhere(path)
    require_searchable(store)
    return CompositeSearches(OpenIndex(store))


def join_key(request: JoinRequest, key: KeyTable) -> JoinResponse:
    """Join a table with one of the lake by a composite key."""
    _refuse_useless(request, ("index", "query", "lake_column", *_OF_JOIN))
    searches = open_searches(request.index)
    if request.lake_column is None:
        found = searches.search(key, k=1, exclude_self=True)
        if not found.matches:
            raise RequestError(
                "No table of the lake has a row with a whole key of '%s': %s.",
                key.file,
                ", ".join(column.label for column in key.key),
            )
        table, columns = found[0].table, list(found[0].columns)
    else:
        table, columns = split_lake_key(request.lake_column)
    pair = searches.pair(key, None, table)
    options = {name: getattr(request, name) for name in _OF_JOIN}
    theirs = pair.theirs(columns)
    return JoinResponse(key.describe(), pair.keys_joined(theirs), None, pair.join(theirs, options))


def explain_key(request: ExplainRequest, key: KeyTable) -> KeyExplanation:
    """Explain how a composite key and a table of the lake compare."""
    _refuse_useless(request, ("index", "query", "lake_column"))
    table, columns = split_lake_key(request.lake_column)
    pair = open_searches(request.index).pair(key, None, table)
    from pexeso.explain.key_evidence import explain_keys  # brings numba

    return explain_keys(pair, columns)


def split_lake_key(spec: str) -> tuple[str, str | None]:
    """Split ``TABLE:COLUMN,COLUMN`` of the lake at the last colon; a table alone has no columns.

    Examples
    --------
    >>> split_lake_key("sport/games.csv:year,city"), split_lake_key("sport/games.csv")
    (('sport/games.csv', 'year,city'), ('sport/games.csv', None))
    """
    table, colon, columns = spec.rpartition(":")
    return (table, columns) if colon and table else (spec, None)


def _refuse_useless(request: Request, usable: tuple[str, ...]) -> None:
    useless = [
        f"{{{each.name}}}"
        for each in fields(request)
        if each.name not in usable and getattr(request, each.name) != each.default
    ]
    if useless:
        raise RequestError(
            "Keys of several columns are joined where they are equal, which has no use for "
            f"{', '.join(useless)}: leave {'it' if len(useless) == 1 else 'them'} out."
        )
