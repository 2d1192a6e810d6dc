"""What a page shows is its URL: parameters of URLs as requests, and requests as lines to copy."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin
from urllib.parse import urlencode

from pexeso.errors import InputError
from pexeso.faces.service.schema import alternatives, bare, defaults_of, hints_of, option_names
from pexeso.runtime.formatting import shown

if TYPE_CHECKING:
    from pexeso.faces.app.tables import QueryTable
    from pexeso.faces.service.bases import QueryRequest, Request
    from pexeso.lake.readers.options import ReadingOptions

AnyRequest = TypeVar("AnyRequest", bound="Request")

ON = "1"
OFF = "0"


def fields_of_query(kind: type[Request], given: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a request that stand in an URL, with their types.

    Examples
    --------
    >>> from pexeso.faces.service.requests import SearchRequest
    >>> fields_of_query(SearchRequest, {"k": "5", "max_distance": "0.2", "exclude_self": "1"})
    {'k': 5, 'max_distance': 0.2, 'exclude_self': True}
    """
    hints = hints_of(kind)
    return {
        name: _value(hints[name], text, name)
        for name, text in given.items()
        if name in kind.__struct_fields__ and text != ""
    }


def _value(hint: Any, text: str, name: str) -> Any:
    kinds = [bare(kind) for kind in alternatives(hint)]
    if bool in kinds:
        return is_on(text, name)
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


def is_on(text: str, name: str) -> bool:
    """Return whether a parameter is on."""
    if text not in (ON, OFF):
        raise InputError(f"{name} must be {ON} or {OFF}. Got {shown(text)} instead.")
    return text == ON


def url(path: str, parameters: Mapping[str, Any]) -> str:
    """Return a path with parameters; those that are None are left out.

    Examples
    --------
    >>> url("/lake", {"text": "a&b", "page": None, "left_out": True})
    '/lake?text=a%26b&left_out=1'
    """
    query = {
        name: (ON if value else OFF) if isinstance(value, bool) else value
        for name, value in parameters.items()
        if value is not None
    }
    return f"{path}?{urlencode(query)}" if query else path


_MARKS = ":,~"
"""What a name of a column has a meaning for in ``FILE:COLUMN``: such a column goes by position."""


def command_line(
    request: QueryRequest,
    table: QueryTable,
    column: str,
    index: str,
    *more: str,
    options: Iterable[str],
) -> str:
    """Return what does the same in a shell, beside the file that was given."""
    if any(mark in column for mark in _MARKS):
        column = str(request.column)
    words = ["pexeso", request.verb, index, f"{_own_name(table)}:{column}", *more]
    for field, default in defaults_of(type(request)).items():
        value = getattr(request, field)
        if field not in options or value == default:
            continue
        name = option_names(type(request), field)[0]
        if isinstance(value, bool):
            words.append(name if value else f"--no-{name[2:]}")
        elif isinstance(value, Mapping):
            for column, way in value.items():
                words += [name, way if column == "*" else f"{column}={way}"]
        elif isinstance(value, tuple):
            words += [name, ",".join(map(str, value)) or "none"]
        else:
            words += [name, str(value)]
    return shlex.join([*words, *reading_words(request)])


def reading_words(request: QueryRequest) -> list[str]:
    r"""Return the options of a shell command that say how the file of the query is read.

    Examples
    --------
    >>> from pexeso.faces.service.requests import SearchRequest
    >>> reading_words(SearchRequest.of(index="i", query="f:c", delimiter="\t", skip_rows=2))
    ['--read', 'delimiter=tab', '--read', 'skip_rows=2']
    """
    options = request.reading.to_dict()
    if options.get("delimiter") == "\t":
        options["delimiter"] = "tab"
    return [word for name, value in options.items() for word in ("--read", f"{name}={value}")]


def python_lines(
    request: Request, table: QueryTable, column: str, index: str, call: str, options: Iterable[str]
) -> str:
    """Return the same as lines of Python."""
    # A table in memory does not tell that it is the lake's own; it is left out of what is found.
    names = {*options} - {"exclude_self"}
    arguments = [
        f"{field}={value!r}"
        for field, default in defaults_of(type(request)).items()
        if field in names and (value := getattr(request, field)) != default
    ]
    name, _, after = call.partition("\n")
    on = column[1:] if column.startswith("#") else repr(column)
    lines = [
        "import pandas",
        "import pexeso",
        "",
        f"table = {_reading(table)}",
        f"index = pexeso.open_index({index!r})",
        f"found = index.{name}({', '.join(['table', f'on={on}', *arguments])})",
    ]
    if getattr(request, "exclude_self", False):
        lines.append(f"found = [match for match in found if match.table != {table.name!r}]")
    return "\n".join([*lines, *([after] if after else [])])


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
