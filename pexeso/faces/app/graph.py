"""All columns of the lake that join: a picture, a list, and files."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from starlette.requests import Request

from pexeso.errors import InputError
from pexeso.faces.app.jobs import report_count
from pexeso.faces.app.page import (
    ON,
    Form,
    Page,
    Pages,
    controls,
    lake_table_to_search,
    only,
    option_words,
    position_of,
    query_fields,
    url,
)
from pexeso.faces.service.bases import json_pieces
from pexeso.faces.service.graph import GraphRequest, graph_document
from pexeso.faces.service.lake import BrowseRequest
from pexeso.joins.exports.files import OF_FILES, strongest, write_export
from pexeso.joins.graph.graphs import METHODS, OVERLAP, EdgeStream, GraphOptions
from pexeso.options import DEFAULT_COLUMNS
from pexeso.results.pages.join_drawing import BOX_WIDTH, MAX_LINES, MAX_OF_COLUMN, join_drawing
from pexeso.results.pages.lake_map import EDGES_READ, OF_TEMPLATE, LakeMap, lake_map
from pexeso.store.io.temporary import temporary_folder

# Joins that the picture is made from, and those of the list; all are counted, and in the files.
PICTURED, LISTED = 500, 100

OPTIONS = ("method", "min_joinability", "max_distance", "k", "fold_copies")

NUMBERS = ("5", "20", "100", "all")
KINDS = {"csv": "CSV", "parquet": "Parquet", "mmd": "Mermaid", "graphml": "GraphML", "html": "HTML"}

PIECE = 1 << 18


@dataclass(frozen=True)
class GraphSummary:
    """What a page shows of a graph.

    Of `n_columns`, `n_cut` have more edges than the limit; of `n_all` edges, `n_edges` are of
    tables that were looked for.
    """

    n_columns: int
    n_cut: int
    n_all: int
    n_edges: int
    rows: list[dict[str, Any]]
    tables: LakeMap

    @classmethod
    def of(cls, stream: EdgeStream, looked_for: str) -> GraphSummary:
        matching_batches = (_about(batch, looked_for) for batch in stream.batches())
        best, n_edges = strongest(matching_batches, EDGES_READ)
        rows = best.slice(0, PICTURED).to_pylist()
        tables = lake_map(best)
        return cls(stream.n_columns, stream.n_cut, stream.n_edges, n_edges, rows, tables)


def graph(pages: Pages, request: Request) -> Page:
    """Return the page, with an answer where its button was pressed: all columns are compared."""
    url_parameters = dict(request.query_params)
    graph_request = _read(pages, url_parameters)
    if request.url.path.endswith(".json"):
        return Page("graph.html", {}, lambda: graph_file(pages, request, "json"))
    text = url_parameters.get("text", "")
    is_run = url_parameters.get("run") == ON
    summary = (
        pages.served.run(
            graph_request, take=partial(GraphSummary.of, looked_for=text), progress=report_count
        )
        if is_run
        else None
    )

    def shown() -> dict[str, Any]:
        parameters = only(url_parameters, OPTIONS)
        index = pages.served.index
        options = graph_request.options(GraphOptions.min_joinability)
        method = options.method_for(index.store)
        # Of tables that are looked for, all lines are wanted.
        of_column = MAX_LINES if text else MAX_OF_COLUMN
        k = str(graph_request.k or DEFAULT_COLUMNS)
        values = {"method": method, "min_joinability": f"{options.min_joinability:g}", "k": k}
        missing = {OVERLAP} - {*index.parts}
        fields = [
            *controls(GraphRequest, values, missing=missing, k=NUMBERS),
            *controls(BrowseRequest, {"text": text}),
        ]
        words = ["pexeso", "graph", graph_request.index, *option_words(graph_request, OPTIONS)]
        return {
            "method": method,
            "form": Form("/graph", "Compare all columns", fields, {"run": ON}),
            "k": k,
            "looked_for": text,
            "found": summary,
            "listed": summary.rows[:LISTED] if summary else [],
            "drawing": join_drawing(summary.rows, of_column) if summary else None,
            "box_width": BOX_WIDTH,
            "of_column": of_column,
            "kinds": KINDS,
            "files": {kind: url(f"/graph.{kind}", parameters) for kind in (*KINDS, "json")},
            "link": partial(_match_link, method),
            "table_link": lambda name: url("/lake/table", {"name": name}),
            "map": summary.tables if summary else None,
            **OF_TEMPLATE,
            "command": shlex.join(words),
        }

    return Page("graph.html", shown, lambda: None)


def graph_file(pages: Pages, request: Request, kind: str) -> Iterator[bytes]:
    """Return the pieces of a file of all joins, JSON or an export, which is on the disk first."""
    form = OF_FILES.get(f".{kind}")
    if form is None and kind != "json":
        raise InputError(f"A join graph is written as {', '.join(OF_FILES)} or .json.")
    graph_request = _read(pages, dict(request.query_params))
    with temporary_folder("pexeso-graph-") as folder:
        path = folder / f"joins.{kind}"
        write = _write_json if form is None else partial(write_export, form)
        pages.served.run(graph_request, take=lambda edges: write(edges, path))
        stream = path.open("rb")

    def pieces() -> Iterator[bytes]:
        with stream:
            yield from iter(partial(stream.read, PIECE), b"")

    return pieces()


def match_path(pages: Pages, request: Request) -> str:
    """Return the path of the page that explains why two columns of the lake join."""
    parameters = {"left_table": "", "left_column": "", "right_table": "", "right_column": ""}
    parameters |= dict(request.query_params)
    table = lake_table_to_search(pages, parameters["left_table"])
    column = position_of(pages, parameters["left_table"], parameters["left_column"])
    other = f"{parameters['right_table']}:{parameters['right_column']}"
    named = {"column": column, "lake_column": other}
    way = only(parameters, ("method", "max_distance"))
    return url(f"/tables/{table.id}/match", {**named, **way})


def _read(pages: Pages, parameters: dict[str, str]) -> GraphRequest:
    fields = query_fields(GraphRequest, only(parameters, OPTIONS))
    if fields.get("method", OVERLAP) not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}.")
    return GraphRequest.of(index=pages.served.path, **fields)


def _about(batch: pa.RecordBatch, text: str) -> pa.RecordBatch:
    if not text:
        return batch
    sides = (
        pc.match_substring(batch[f"{side}_table"], text, ignore_case=True)
        for side in ("left", "right")
    )
    return batch.filter(pc.or_(*sides))


def _match_link(method: str, edge: dict[str, Any]) -> str:
    named = {
        f"{side}_{field}": edge[f"{side}_{field}"]
        for side in ("left", "right")
        for field in ("table", "column")
    }
    return url("/graph/match", {**named, "method": method})


def _write_json(stream: EdgeStream, path: Path) -> None:
    header, rows = graph_document(stream)
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(json_pieces(header, "edges", rows))
