"""Pages: a document for programs, a template for people; their forms, links, columns, scripts."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin
from urllib.parse import quote, urlencode

import msgspec
import pyarrow as pa
from starlette.exceptions import HTTPException
from starlette.responses import Response

import pexeso
from pexeso.errors import InputError
from pexeso.faces.app.jobs import Job, Jobs
from pexeso.faces.app.tables import names_of
from pexeso.faces.service.bases import QueryRequest, Request, json_text
from pexeso.faces.service.schema import (
    alternatives,
    bare,
    bounds_of,
    defaults_of,
    facts_of,
    help_text,
    hints_of,
    option,
    option_names,
)
from pexeso.lake.columns import (
    find_column,
    find_key_columns,
    label_columns,
    names_one_column,
    spec_of,
)
from pexeso.results.pages.page import environment
from pexeso.runtime.formatting import cell_text, shown

if TYPE_CHECKING:
    from jinja2 import Environment
    from starlette.requests import Request as HttpRequest

    from pexeso.faces.app.start import Start
    from pexeso.faces.app.tables import QueryTable, QueryTables
    from pexeso.faces.service.requests import JoinRequest, SearchRequest
    from pexeso.faces.service.verbs import ServedIndex
    from pexeso.lake.readers.options import ReadingOptions


ON = "1"
OFF = "0"


class TableFields(msgspec.Struct):
    """What the first page asks for: a table to search with."""

    file: Annotated[
        bytes,
        option(
            "CSV, TSV, Excel, OpenDocument, Parquet, JSON, SQLite and more. You can drop it on the "
            "button.",
            label="A file",
        ),
    ] = b""
    text: Annotated[
        str,
        option(
            "With its header, as a spreadsheet copies it, or as CSV.",
            label="Or paste a table",
            rows=6,
        ),
    ] = ""


def query_fields(kind: type, given: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a request that a URL has, with their types."""
    hints = hints_of(kind)
    return {
        name: _value(hints[name], text, name)
        for name, text in given.items()
        if name in kind.__struct_fields__ and text != ""
    }


def _value(hint: Any, text: str, name: str) -> Any:
    kinds = [bare(kind) for kind in alternatives(hint)]
    if bool in kinds:
        if text not in (ON, OFF):
            raise InputError(f"{name} must be {ON} or {OFF}. Got {shown(text)} instead.")
        return text == ON
    if any(get_origin(kind) is Literal and text in get_args(kind) for kind in kinds):
        return text
    for kind in (int, float):
        if kind in kinds:
            try:
                return kind(text)
            except ValueError:
                what = "whole number" if kind is int else "number"
                raise InputError(f"{name} must be a {what}. Got {shown(text)} instead.") from None
    return text


@dataclass(frozen=True)
class Control:
    """A control of a form, for a field of a request."""

    name: str
    label: str
    help: str
    kind: Literal["checkbox", "file", "number", "range", "text", "textarea"]
    value: Any
    rows: int = 0
    placeholder: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    missing: Sequence[str] = ()
    bounds: Mapping[str, str] = field(default_factory=dict)
    lake_names: str = ""


@dataclass(frozen=True)
class Form:
    """A form of a page: its path, its button, its controls, and the fields that nobody sees.

    `live` has the id of the part of the page that is renewed while a control is moved.
    """

    action: str
    button: str
    controls: Sequence[Control]
    hidden: Mapping[str, Any] = field(default_factory=dict)
    live: str | None = None


def controls(
    kind: type[Request] | type[msgspec.Struct],
    values: Mapping[str, Any],
    *,
    missing: Sequence[str] = (),
    **choices: Any,
) -> list[Control]:
    """Return controls for fields of a request, with the label and range that it declares.

    `values` are shown, by the names of fields; `missing` are choices that the index does not have.
    `choices` are those of a field where its type has none: values, or pairs of value and text.
    """
    return [_control(kind, name, values[name], missing, choices.get(name)) for name in values]


def _control(
    kind: type, name: str, value: Any, missing: Sequence[str], choices: Sequence[Any] | None
) -> Control:
    hint = hints_of(kind)[name]
    facts, kinds = facts_of(hint), [bare(one) for one in alternatives(hint)]
    if choices is None:
        literals = [one for one in kinds if get_origin(one) is Literal]
        choices = get_args(literals[0]) if literals else ()
    labels, ends, bounds = facts.get("labels", {}), bounds_of(hint), {}
    pairs = [(one, labels.get(one, one)) if isinstance(one, str) else one for one in choices]
    rows, sort = facts.get("rows", 0), "textarea" if facts.get("rows") else "text"
    if float in kinds:
        low = ends.get("minimum", "0.01" if "exclusiveMinimum" in ends else "0")
        bounds = {"min": f"{low}", "step": "0.01" if "maximum" in ends else "any"}
        bounds |= {"max": f"{ends['maximum']}"} if "maximum" in ends else {}
        sort = "range" if facts.get("is_slider") else "number"
    elif bool in kinds or bytes in kinds:
        sort = "checkbox" if bool in kinds else "file"
    text = help_text(kind, name).removesuffix(" May be repeated.")
    return Control(
        name,
        facts.get("label") or text.removesuffix("."),
        text,
        sort,
        "" if value is None else value,
        rows,
        facts.get("placeholder", ""),
        tuple(pairs),
        missing,
        bounds,
        facts.get("lake_names", ""),
    )


def url(path: str, parameters: Mapping[str, Any]) -> str:
    """Return a path with parameters; those that are None are left out."""
    query = {
        name: (ON if value else OFF) if isinstance(value, bool) else value
        for name, value in parameters.items()
        if value is not None
    }
    return f"{path}?{urlencode(query)}" if query else path


# What a name of a column has a meaning for in `FILE:COLUMN`: such a column goes by position.
_MARKS = ":,~"


def command_line(
    request: QueryRequest, table: QueryTable, column: str, *more: str, options: Iterable[str]
) -> str:
    """Return the command line that does the same, in the folder of the file that was given."""
    if any(mark in column for mark in _MARKS):
        column = str(request.column)
    words = ["pexeso", request.verb, request.index, f"{_own_name(table)}:{column}", *more]
    return shlex.join([*words, *option_words(request, options), *reading_words(request)])


def option_words(request: Request, options: Iterable[str]) -> list[str]:
    """Return the options of a shell command that a request was given, of those named."""
    words: list[str] = []
    for option_field, default in defaults_of(type(request)).items():
        value = getattr(request, option_field)
        if option_field not in options or value == default:
            continue
        name = option_names(type(request), option_field)[0]
        if isinstance(value, bool):
            words.append(name if value else f"--no-{name[2:]}")
        elif isinstance(value, Mapping):
            for column, way in value.items():
                words += [name, way if column == "*" else f"{column}={way}"]
        elif isinstance(value, tuple):
            words += [name, ",".join(map(str, value)) or "none"]
        else:
            words += [name, str(value)]
    return words


def reading_words(request: QueryRequest) -> list[str]:
    """Return the options of a shell command that say how the file of the query is read."""
    options = request.reading.to_dict()
    options.pop("columns", None)  # which rights say, in whatever process
    if options.get("delimiter") == "\t":
        options["delimiter"] = "tab"
    return [word for name, value in options.items() for word in ("--read", f"{name}={value}")]


def python_lines(
    request: SearchRequest, table: QueryTable, column: str, options: Iterable[str]
) -> str:
    # A table in memory is not known as the lake's own; it is left out of the results.
    arguments = _arguments(request, {*options} - {"exclude_self"})
    lines = [
        *_opening(table, request.index),
        f"found = index.search({', '.join(['table', _on(column), *arguments])})",
    ]
    if request.exclude_self:
        lines.append(f"found = [match for match in found if match.table != {table.name!r}]")
    return "\n".join(lines)


def python_join_lines(
    request: JoinRequest, table: QueryTable, column: str, lake_column: tuple[str, str]
) -> str:
    """Return the program that joins a table of yours with a column of the lake."""
    of_match = [*map(repr, lake_column), _on(column), *_arguments(request, {"max_distance"})]
    options = [
        _on(column),
        *_arguments(request, {"values", "how", "suffix", "provenance", "many_to_many"}),
        *([f"aggregate={dict(request.aggregate)!r}"] if request.aggregate else []),
    ]
    return "\n".join(
        [
            *_opening(table, request.index),
            f"match = index.explain({', '.join(['table', *of_match])}).match",
            f"joined = match.join({', '.join(['table', *options])})",
        ]
    )


def _arguments(request: Request, names: Container[str]) -> list[str]:
    return [
        f"{field}={value!r}"
        for field, default in defaults_of(type(request)).items()
        if field in names and (value := getattr(request, field)) != default
    ]


def _on(column: str) -> str:
    return f"on={column[1:] if column.startswith('#') else repr(column)}"


def _opening(table: QueryTable, index: str) -> list[str]:
    return [
        "import pandas",
        "import pexeso",
        "",
        f"table = {_reading(table)}",
        f"index = pexeso.open_index({index!r})",
    ]


_AS_TEXT = "dtype=str, keep_default_na=False"
_READERS = {".parquet": "read_parquet", ".feather": "read_feather"}
_SHEET = re.compile(r"([^#]*\.(?:xlsx|xls|ods))#(.*)", re.DOTALL | re.IGNORECASE)


def _reading(table: QueryTable) -> str:
    """Return how pandas reads a table; of what it cannot read alone, what is to be put there."""
    name = table.spec if table.is_of_lake else table.name
    if table.delimiter is not None:
        separator = "" if table.delimiter == "," else f"sep={table.delimiter!r}, "
        arguments = _said_to_pandas(table.reading)
        if arguments is not None:
            return f"pandas.read_csv({name!r}, {separator}{arguments}{_AS_TEXT})"
    if sheet := _SHEET.fullmatch(name):
        return f"pandas.read_excel({sheet[1]!r}, sheet_name={sheet[2]!r}, {_AS_TEXT})"
    reader = _READERS.get(os.path.splitext(name)[1].lower())
    return f"...  # {name!r} as a DataFrame" if reader is None else f"pandas.{reader}({name!r})"


def _said_to_pandas(reading: ReadingOptions) -> str | None:
    """Return options of `pandas.read_csv`; None of what it has no option for."""
    if (reading.header or 0) > 1:
        return None
    values = {"encoding": reading.encoding, "skiprows": reading.skip_rows or None}
    options = [f"{name}={value!r}, " for name, value in values.items() if value is not None]
    return "".join([*options, *(["header=None, "] if reading.header == 0 else [])])


def _own_name(table: QueryTable) -> str:
    if table.is_of_lake:
        return table.spec
    return f"./{table.name}" if table.name.startswith("-") else table.name


FOLDER = "/static"

# Styles of pages that are files, by the names of their templates.
_SHARED = ("page", "drawing", "transform", "redundancy", "acquisition")

# The parameter that has the version in it: another version is another address.
_VERSION = "v"

_TYPES = {".css": "text/css", ".js": "text/javascript"}

_KEPT = "private, max-age=31536000, immutable"


@cache
def assets() -> dict[str, bytes]:
    blobs = {
        file.name: file.read_bytes() for file in (files("pexeso.faces.app") / "static").iterdir()
    }
    of_files = files("pexeso.results.pages")
    names = [*(f"{name}.css" for name in _SHARED), "lake_map.js"]
    return blobs | {name: (of_files / name).read_bytes() for name in names}


@cache
def version() -> str:
    """Return what differs between any two versions of what is served here."""
    digest = blake2b(digest_size=8)
    for name, content in sorted(assets().items()):
        digest.update(f"{name}\n{len(content)}\n".encode() + content)
    return digest.hexdigest()


async def asset_answer(request: HttpRequest) -> Response:
    """Answer with a style or a script, from memory; a browser keeps it under its version."""
    name = request.path_params["name"]
    if name not in assets():
        raise HTTPException(404)
    is_kept = request.query_params.get(_VERSION) == version()
    return Response(
        assets()[name],
        media_type=_TYPES[PurePath(name).suffix],
        headers={"Cache-Control": _KEPT} if is_kept else None,
    )


@dataclass(frozen=True)
class Pages:
    """What pages are made of; `start` takes the files of an index that is not there yet."""

    served: ServedIndex
    tables: QueryTables
    start: Start | None = None
    reconcile_path: str = ""
    jobs: Jobs = field(default_factory=Jobs)

    @property
    def has_index(self) -> bool:
        return self.start is None or self.start.is_done


@dataclass(frozen=True)
class Page:
    """One page: a template and what it shows, which a document does not need.

    `document` returns what the same URL with ``.json`` answers, as the command line prints it; an
    iterator has its pieces. `fragment` is the template of the part that changes while a control
    is moved.
    """

    template: str
    shown: Mapping[str, Any] | Callable[[], Mapping[str, Any]]
    document: Callable[[], Any]
    fragment: str | None = None
    status: int = 200

    def html(self, pages: Pages, request: HttpRequest, **above: Any) -> str:
        """Return the page, or its fragment where a script of the page asks for it."""
        is_part = self.fragment is not None and request.headers.get("hx-request") == "true"
        template = templates().get_template(str(self.fragment if is_part else self.template))
        return template.render(
            self.shown() if callable(self.shown) else self.shown,
            state=pages.served.state() if pages.has_index else "current",
            has_index=pages.has_index,
            index_name=pages.served.path if pages.start is None else "temporary index",
            here=request.url.path,
            url_query=request.url.query,
            version=pexeso.__version__,
            **{"undo": None, **above},
        )

    def json(self) -> str | Iterator[bytes]:
        """Return the document, or its pieces, as the command line prints it."""
        document = self.document()
        return document if isinstance(document, Iterator) else f"{json_text(document)}\n"


TITLES = {
    "/graph": "Comparing all columns",
    "/redundancy": "Comparing all tables",
    "/acquire": "Finding plans",
}


def job_page(pages: Pages, job: Job) -> Page:
    """Return the page that says how far a job is, or that it was cancelled."""
    path = job.address.partition("?")[0]
    back = re.sub("(/tables/[^/]*)/.*", r"\1", path) if pages.has_index else "/"
    shown = {
        "job": job,
        "n_stages": job.n_all_stages,
        "again": job.address if pages.has_index else "/",
        "back": back,
    }
    return Page("working.html", shown, lambda: {}, fragment="progress.html")


# Makes the page that a request asks for.
Handler = Callable[[Pages, "HttpRequest"], Page]


@cache
def templates() -> Environment:
    """Return the templates of the app, with those of pages that are files."""
    from jinja2 import ChoiceLoader, PackageLoader

    of_files = environment()
    together = of_files.overlay(
        loader=ChoiceLoader([PackageLoader("pexeso.faces.app", "templates"), of_files.loader])
    )
    together.globals = {
        **of_files.globals,
        "url": url,
        "asset": lambda name: url(f"{FOLDER}/{name}", {_VERSION: version()}),
    }
    together.filters = {
        **of_files.filters,
        "part": lambda text: quote(text, safe=""),
        "cell": cell_text,
    }
    return together


@dataclass(frozen=True)
class QueryColumns:
    table: QueryTable
    labels: tuple[str, ...]
    parameter: str

    @property
    def is_key(self) -> bool:
        return len(self.labels) > 1

    @property
    def name(self) -> str:
        return ", ".join(self.labels)

    @property
    def spec(self) -> str:
        return spec_of(self.labels) if self.is_key else self.labels[0]

    @property
    def query(self) -> dict[str, Any]:
        """The fields of requests that say what they are called, and how their file is read."""
        query = f"{self.table.spec}:{self.parameter}"
        return {"query": query, **self.table.reading.to_dict()}

    @property
    def path(self) -> str:
        return f"/tables/{self.table.id}"


def query_columns(pages: Pages, request: HttpRequest) -> QueryColumns:
    """Return the columns that an URL names, by ``column=``, which may occur several times."""
    table = pages.tables[request.path_params["table"]]
    names = names_of(table)
    requested = [name for name in request.query_params.getlist("column") if name] or ["#0"]
    if len(requested) == 1 and names_one_column(names, requested[0]):
        position = find_column(names, requested[0])
        return QueryColumns(table, (label_columns(names)[position],), f"#{position}")
    key = find_key_columns(names, requested[0] if len(requested) == 1 else requested)
    marks = [f"#{column.position}{'~' if column.similar else ''}" for column in key]
    return QueryColumns(table, tuple(column.label for column in key), ",".join(marks))


OF_DISTANCE = ("max_distance", "joinability_of")


def only(given: Any, names: Iterable[str]) -> dict[str, Any]:
    return {name: given[name] for name in names if name in given}


def has_part(pages: Pages, name: str) -> bool:
    return name in pages.served.index.store.manifest.options.get("parts", ())


def lake_table(pages: Pages, name: str) -> dict[str, Any]:
    """Return what the catalog has about the table that a name means; see `Catalog.named`."""
    index = pages.served.index
    name = index.catalog.named(name)
    tables = index.catalog.tables(among=pa.array([name], pa.string())).to_pylist()
    if not tables:
        raise InputError(index.catalog.why_not(name, index.lake))
    return tables[0]


def lake_table_to_search(pages: Pages, name: str) -> QueryTable:
    index = pages.served.index
    table = lake_table(pages, name)["table"]
    return pages.tables.add_lake_table(str(index.lake), table, index._opened.view)


def position_of(pages: Pages, table: str, label: str) -> str:
    """Return what names a column of the lake behind the name of a file, as ``#3``."""
    labels = pages.served.index._opened.labels_of(table)
    if label not in labels:
        raise InputError(f"The index has no column {label!r} of {table!r}.")
    return f"#{labels.index(label)}"
