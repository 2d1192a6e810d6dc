"""Links to pages, and the lines of a shell and of Python that do the same as a page."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from pexeso.faces.app.forms import OFF, ON
from pexeso.faces.service.schema import defaults_of, option_names

if TYPE_CHECKING:
    from pexeso.faces.app.tables import QueryTable
    from pexeso.faces.service.bases import QueryRequest, Request
    from pexeso.faces.service.requests import SearchRequest
    from pexeso.lake.readers.options import ReadingOptions


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


# What a name of a column has a meaning for in `FILE:COLUMN`: such a column goes by position.
_MARKS = ":,~"


def command_line(
    request: QueryRequest,
    table: QueryTable,
    column: str,
    index: str,
    *more: str,
    options: Iterable[str],
) -> str:
    """Return the command line that does the same, in the folder of the file that was given."""
    if any(mark in column for mark in _MARKS):
        column = str(request.column)
    words = ["pexeso", request.verb, index, f"{_own_name(table)}:{column}", *more]
    return shlex.join([*words, *option_words(request, options), *reading_words(request)])


def option_words(request: Request, options: Iterable[str]) -> list[str]:
    """Return the options of a shell command that a request was given, of those named."""
    words: list[str] = []
    for option, default in defaults_of(type(request)).items():
        value = getattr(request, option)
        if option not in options or value == default:
            continue
        name = option_names(type(request), option)[0]
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
    request: SearchRequest, table: QueryTable, column: str, index: str, options: Iterable[str]
) -> str:
    # A table in memory is not known as the lake's own; it is left out of the results.
    names = {*options} - {"exclude_self"}
    arguments = [
        f"{field}={value!r}"
        for field, default in defaults_of(type(request)).items()
        if field in names and (value := getattr(request, field)) != default
    ]
    on = column[1:] if column.startswith("#") else repr(column)
    lines = [
        "import pandas",
        "import pexeso",
        "",
        f"table = {_reading(table)}",
        f"index = pexeso.open_index({index!r})",
        f"found = index.search({', '.join(['table', f'on={on}', *arguments])})",
    ]
    if request.exclude_self:
        lines.append(f"found = [match for match in found if match.table != {table.name!r}]")
    return "\n".join(lines)


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
