"""Reconciliation, as OpenRefine asks for it: columns of the lake are types, and values entities.

It is the protocol of W3C's Entity Reconciliation group in version 0.2, without JSONP; clients of
0.1 understand the answers.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from html import escape
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.routing import Route

from pexeso.errors import InputError, PexesoError
from pexeso.faces.app.entities import (
    MAX_CANDIDATES,
    EntityColumn,
    Expected,
    names_of,
    type_id,
    visible_name,
)
from pexeso.faces.app.guard import RECONCILE_PATH, TooLargeError
from pexeso.results.query import QueryColumn, query_from_values
from pexeso.runtime.checks import require_choice
from pexeso.runtime.formatting import html_table, plain

if TYPE_CHECKING:
    from starlette.requests import Request

    from pexeso.faces.app.page import Pages
    from pexeso.faces.service.verbs import ServedIndex
    from pexeso.index import Index

# Queries of a batch, ids of an extension, and bytes of a request.
BATCH_SIZE = 1_000
MAX_BODY = 8 << 20

DEFAULT_LIMIT = 5

# Columns that are offered as types where a query names none.
TYPES_PROPOSED = 3
SUGGESTIONS, SUGGESTED = ("entity", "property", "type"), 20
PREVIEW_ROWS = 5

# Values of all columns, and bytes of all tables, that are kept for further requests; the one that
# is in use is kept whatever it takes.
VALUES_KEPT = 1_000_000
BYTES_KEPT = 256 << 20


class _Property(msgspec.Struct):
    pid: str
    v: Any


class _Query(msgspec.Struct):
    query: str = ""
    type: str | list[str] | None = None
    limit: float | None = None
    properties: list[_Property] = []


class _Field(msgspec.Struct):
    id: str
    settings: dict[str, Any] | None = None


class _Extension(msgspec.Struct):
    ids: list[str]
    properties: list[_Field]


class Reconciler:
    """Answers by the columns of one index; what it has looked up is kept, up to a bound."""

    def __init__(self, served: ServedIndex) -> None:
        self._served = served
        self._kept: OrderedDict[tuple[object, str], EntityColumn] = OrderedDict()
        self._lock = Lock()

    def _column(self, index: Index, text: str) -> EntityColumn:
        snapshot = index.store.manifest.snapshot
        with self._lock:  # two that ask for a new column at the same time wait for one
            column = self._kept.get((snapshot, text))
            if column is None:
                column = EntityColumn(index, *names_of(text, 2))
                self._kept[snapshot, text] = column
            self._kept.move_to_end((snapshot, text))
            while len(self._kept) > 1 and self._kept_too_much():
                self._kept.popitem(last=False)
            return column

    def _kept_too_much(self) -> bool:
        columns = self._kept.values()
        n_values = sum(len(column.lookup) for column in columns)
        return n_values > VALUES_KEPT or sum(column.nbytes for column in columns) > BYTES_KEPT

    def manifest(self, base: str) -> dict[str, Any]:
        with self._served.turn() as service:
            lake = str(service.open(self._served.path).lake).rpartition("/")[2]
        suggest = {
            kind: {"service_url": base, "service_path": f"/suggest/{kind}"} for kind in SUGGESTIONS
        }
        limit = {
            "name": "limit",
            "label": "Values of a cell, at most",
            "type": "number",
            "default": 0,
            "help_text": "A value of the lake may be in several rows. 0: all of them.",
        }
        preview = f"{base}/preview?id={{{{id}}}}"
        return {
            "versions": ["0.1", "0.2"],
            "name": f"pexeso: {visible_name(lake)}",
            "identifierSpace": f"urn:pexeso:{quote(lake, safe='')}:value",
            "schemaSpace": f"urn:pexeso:{quote(lake, safe='')}:column",
            "batchSize": BATCH_SIZE,
            "view": {"url": preview},
            "preview": {"url": preview, "width": 480, "height": 320},
            "suggest": suggest,
            "extend": {
                "propose_properties": {"service_url": base, "service_path": "/properties"},
                "property_settings": [limit],
            },
        }

    def reconcile(self, text: str) -> dict[str, Any]:
        queries = _decoded(text, dict[str, _Query], "queries")
        _require_few(len(queries), "queries")
        results: dict[str, list[dict[str, Any]]] = {name: [] for name in queries}
        with self._served.turn() as service:
            index = service.open(self._served.path)
            for type_name, names in _by_type(queries).items():
                some = [queries[name] for name in names]
                values = query_from_values([query.query for query in some])
                types = [type_name] if type_name else self._types_of(index, values)
                limits = [_limit(query.limit) for query in some]
                for one in types:
                    column = self._column(index, one)
                    expected = _expected(index, column.table, some)
                    answers = column.candidates(values, expected, limits)
                    for name, candidates in zip(names, answers, strict=True):
                        results[name] += candidates
        for name, candidates in results.items():
            candidates.sort(key=lambda one: (-one["score"], not one["match"]))
            del candidates[_limit(queries[name].limit) :]
            _require_one_match(candidates)
        return {name: {"result": candidates} for name, candidates in results.items()}

    def _types_of(self, index: Index, values: QueryColumn) -> list[str]:
        """Return the columns that the values of a batch join best: OpenRefine guesses types so."""
        matches = index.search(values, k=TYPES_PROPOSED, fold_copies=False)
        return [type_id(match.table, match.column) for match in matches]

    def extend(self, text: str) -> dict[str, Any]:
        extension = _decoded(text, _Extension, "extend")
        _require_few(len(extension.ids), "ids")
        fields = [(field, *names_of(field.id, 2)) for field in extension.properties]
        rows: dict[str, dict[str, list[dict[str, str]]]] = {}
        with self._served.turn() as service:
            index = service.open(self._served.path)
            for entity in dict.fromkeys(extension.ids):
                column, position = self._value(index, entity)
                labels = {label for _, table, label in fields if table == column.table}
                cells = column.rows_at(position, labels.intersection(column.labels))
                rows[entity] = {
                    field.id: _cells(cells, label, field.settings)
                    if table == column.table and label in cells.column_names
                    else []
                    for field, table, label in fields
                }
        meta = [{"id": field.id, "name": visible_name(label)} for field, _, label in fields]
        return {"meta": meta, "rows": rows}

    def _value(self, index: Index, entity: str) -> tuple[EntityColumn, int]:
        table, label, value = names_of(entity, 3)
        column = self._column(index, type_id(table, label))
        return column, column.position_of(value)

    def properties(self, parameters: Mapping[str, str]) -> dict[str, Any]:
        text = parameters.get("type", "")
        table, label = names_of(text, 2)
        with self._served.turn() as service:
            rows = _columns_of(service.open(self._served.path), table)
        proposed = [_property(row) for row in rows if row["label"] != label]
        return {"type": text, "properties": proposed[: _number(parameters, "limit")]}

    def suggest(self, kind: str, parameters: Mapping[str, str]) -> dict[str, Any]:
        require_choice("What is suggested", kind, SUGGESTIONS)
        prefix, start = parameters.get("prefix", ""), _number(parameters, "cursor") or 0
        with self._served.turn() as service:
            index = service.open(self._served.path)
            if kind == "entity":
                result = self._entities(index, prefix, parameters.get("type"))
            else:
                result = _suggested_columns(index, prefix, is_type=kind == "type")
        return {"result": result[start : start + SUGGESTED]}

    def _entities(self, index: Index, prefix: str, text: str | None) -> list[dict[str, Any]]:
        """Suggest values of a column, or of those that were reconciled with, the last one first."""
        if prefix.count("/") == 2:
            try:
                column, position = self._value(index, prefix)
                return [column.suggestion(position)]
            except InputError:
                pass  # a value with slashes
        snapshot = index.store.manifest.snapshot
        with self._lock:
            kept = [column for (known, _), column in self._kept.items() if known == snapshot]
        columns = [self._column(index, text)] if text else kept[::-1]
        encoded = index._opened.encode(query_from_values([prefix]))
        result: dict[str, dict[str, Any]] = {}
        for column in columns:
            begins = pc.starts_with(column.lookup.texts, prefix, ignore_case=True)
            near = column.lookup.near(encoded, column.max_distance, SUGGESTED)
            positions = [
                *np.flatnonzero(begins)[: 10 * SUGGESTED].tolist(),
                *near.position.tolist(),
            ]
            for one in map(column.suggestion, positions):
                result.setdefault(one["id"], one)
        return list(result.values())

    def preview(self, entity: str) -> str:
        with self._served.turn() as service:
            column, position = self._value(service.open(self._served.path), entity)
            try:
                rows = column.rows_at(position, column.labels)
            except (PexesoError, OSError):
                rows = pa.table({column.label: [column.name(position)]})
        title = f"{column.name(position)} ({column.label} of {column.table})"
        some = rows.slice(0, PREVIEW_ROWS)
        cells = zip(*(one.to_pylist() for one in some.columns), strict=True)
        if rows.num_rows > PREVIEW_ROWS:
            title += f", the first {PREVIEW_ROWS} of {rows.num_rows:,} rows"
        table = html_table(plain(title), rows.column_names, cells)
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            f"<title>{escape(plain(title))}</title></head><body>{table}</body></html>"
        )


def _decoded(text: str, kind: Any, name: str) -> Any:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"'{name}' is not the JSON that it must be: {error}.") from error


def _require_few(n: int, what: str) -> None:
    if n > BATCH_SIZE:
        raise TooLargeError(f"A request has at most {BATCH_SIZE:,} {what}. Got {n:,}.")


def _by_type(queries: Mapping[str, _Query]) -> dict[str, list[str]]:
    """Return the names of the queries of each type; the empty one has those that name none."""
    names: dict[str, list[str]] = {}
    for name, query in queries.items():
        types = [query.type] if isinstance(query.type, str) else query.type or [""]
        for one in dict.fromkeys(types):
            names.setdefault(one, []).append(name)
    return names


def _number(parameters: Mapping[str, str], name: str) -> int | None:
    text = parameters.get(name, "")
    if text and not (text.isdecimal() and len(text) < 10):
        raise InputError(f"{name} must be a whole number. Got {plain(text)!r}.")
    return int(text) if text else None


def _limit(limit: float | None) -> int:
    # OpenRefine writes 0 where none was chosen.
    return DEFAULT_LIMIT if limit is None or limit < 1 else int(min(limit, MAX_CANDIDATES))


def _expected(index: Index, table: str, queries: list[_Query]) -> list[list[Expected]]:
    """Return what the properties of each query ask of the values of a table."""
    if not any(query.properties for query in queries):
        return [[]] * len(queries)
    texts: list[str] = []
    properties_of: list[list[tuple[str | None, int, int]]] = []
    for query in queries:
        properties_of.append([])
        for one in query.properties:
            named, label = names_of(one.pid, 2)
            values = one.v if isinstance(one.v, list) else [one.v]
            start = len(texts)
            texts += [str(v.get("name", "") if isinstance(v, dict) else v) for v in values]
            properties_of[-1].append((label if named == table else None, start, len(texts)))
    keys = index.normaliser.normalise(pa.array(texts, pa.string())).to_pylist()
    return [
        [(label, {*keys[start:end]} - {None}) for label, start, end in properties]
        for properties in properties_of
    ]


def _require_one_match(candidates: list[dict[str, Any]]) -> None:
    """Leave the choice to a person where several values are equal to that of the query."""
    if sum(one["match"] for one in candidates) > 1:
        for one in candidates:
            one["match"] = False


def _cells(rows: pa.Table, label: str, settings: Mapping[str, Any] | None) -> list[dict[str, str]]:
    """Return the distinct cells of a column; of a limit of 0 all of them."""
    distinct = rows.column(label).unique().drop_null().to_pylist()
    limit = _number({"limit": str((settings or {}).get("limit", ""))}, "limit")
    return [{"str": cell} for cell in distinct[: limit or None]]


def _columns_of(index: Index, table: str) -> list[dict[str, Any]]:
    rows = index.catalog.columns_of(table, ["table", "label"])
    if not rows.num_rows:
        raise InputError(index.catalog.why_not(table, index.lake))
    return rows.to_pylist()


def _property(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": type_id(row["table"], row["label"]), "name": visible_name(row["label"])}


def _suggested_columns(index: Index, prefix: str, *, is_type: bool) -> list[dict[str, Any]]:
    """Suggest columns with a text in their name or that of their table; types are searchable."""
    rows = index.catalog.columns(["table", "label", "column_id"])
    if is_type:
        rows = rows.filter(pc.is_valid(rows["column_id"]))
    has = [pc.match_substring(rows[name], prefix, ignore_case=True) for name in ("table", "label")]
    rows = rows.filter(pc.or_(*has)).sort_by([("label", "ascending"), ("table", "ascending")])
    return [
        {**_property(row), "description": visible_name(row["table"])} for row in rows.to_pylist()
    ]


def routes(pages: Pages) -> list[Route]:
    reconciler = Reconciler(pages.served)

    def answers(answer: Callable[[Request, dict[str, str]], Any]) -> Callable[..., Any]:
        async def respond(request: Request) -> Response:
            try:
                parameters = await _parameters(request)
                if not pages.has_index:
                    raise InputError("There is no index yet: give files to the app first.")
                document = await run_in_threadpool(answer, request, parameters)
            except PexesoError as error:
                status = 413 if isinstance(error, TooLargeError) else 400
                return _response({"status": "error", "error": str(error)}, status)
            return _response(document)

        return respond

    def endpoint(request: Request, parameters: dict[str, str]) -> Any:
        if "queries" in parameters:
            return reconciler.reconcile(parameters["queries"])
        if "extend" in parameters:
            return reconciler.extend(parameters["extend"])
        base = f"http://{request.headers['host']}{request.url.path}"
        return reconciler.manifest(base)

    def suggest(request: Request, parameters: dict[str, str]) -> Any:
        return reconciler.suggest(request.path_params["kind"], parameters)

    root = f"{RECONCILE_PATH}/{{key}}"
    return [
        Route(root, answers(endpoint), methods=["GET", "POST"]),
        Route(f"{root}/suggest/{{kind}}", answers(suggest), methods=["GET"]),
        Route(f"{root}/properties", answers(lambda _, given: reconciler.properties(given))),
        Route(f"{root}/preview", answers(lambda _, given: reconciler.preview(given.get("id", "")))),
    ]


async def _parameters(request: Request) -> dict[str, str]:
    """Return the parameters of a request, of its address or of a form."""
    parameters = dict(request.query_params)
    if request.method == "POST":
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > MAX_BODY:
                raise TooLargeError(f"A request has at most {MAX_BODY:,} bytes.")
        try:
            parameters |= parse_qsl(body.decode("utf-8", "replace"), max_num_fields=10)
        except ValueError as error:
            raise InputError(f"A request has at most 10 fields: {error}.") from error
    return parameters


def _response(document: Any, status: int = 200) -> Response:
    """Return an answer for any page that knows the address: it has a key in it, and no cookie."""
    headers = {"Access-Control-Allow-Origin": "*"}
    if isinstance(document, str):
        policy = "default-src 'none'"  # other than pages of the app, it may be in a frame
        return Response(
            document, status, {**headers, "Content-Security-Policy": policy}, "text/html"
        )
    return Response(msgspec.json.encode(document), status, headers, "application/json")
