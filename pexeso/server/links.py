"""What a page shows is its URL: parameters of URLs as requests, and requests as lines to copy."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import fields
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import urlencode

from pexeso.errors import InputError
from pexeso.runtime.formatting import shown

if TYPE_CHECKING:
    from pexeso.server.tables import QueryTable
    from pexeso.service.bases import Request

Asked = TypeVar("Asked", bound="Request")

ON = "1"
OFF = "0"

_OPTION_OF = {"counts": "early-stop", "master": "spark-master", "conf": "spark-conf", "how": "type"}


def fields_of_query(kind: type[Request], given: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a request that stand in an URL, with their types.

    Parameters
    ----------
    kind : type of Request
    given : mapping of str to str
        Parameters; empty ones count as not given, as forms send them.

    Raises
    ------
    InputError
        A text is none of what its field may be. Other names are the page's own, and left alone.

    Examples
    --------
    >>> from pexeso.service.requests import SearchRequest
    >>> fields_of_query(SearchRequest, {"k": "5", "max_distance": "0.2", "exclude_self": "1"})
    {'k': 5, 'max_distance': 0.2, 'exclude_self': True}
    """
    hints = get_type_hints(kind)
    declared = {each.name for each in fields(kind)}
    return {
        name: _value(hints[name], text, name)
        for name, text in given.items()
        if name in declared and text != ""
    }


def _value(hint: Any, text: str, name: str) -> Any:
    kinds = [each for each in (hint, *get_args(hint)) if each is not NoneType]
    if hint is bool:
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


def url(path: str, parameters: Mapping[str, Any]) -> str:
    """Return a path with parameters; those that are None are left out.

    Examples
    --------
    >>> url("/lake", {"text": "a&b", "page": None, "left_out": True})
    '/lake?text=a%26b&left_out=1'
    """
    given = {
        name: (ON if value else OFF) if isinstance(value, bool) else value
        for name, value in parameters.items()
        if value is not None
    }
    return f"{path}?{urlencode(given)}" if given else path


def command_line(
    request: Request, table: QueryTable, column: str, index: str, *more: str, options: Iterable[str]
) -> str:
    """Return what does the same in a shell, beside the file that was given.

    Parameters
    ----------
    request : Request
    table, column
        The query column: a label, which a shell command takes too.
    index : str
        Its path.
    *more : str
        Further arguments.
    options : iterable of str
        The fields that become options where they differ from their defaults.
    """
    words = ["pexeso", request.verb, index, f"{_own_name(table)}:{column}", *more]
    for each in fields(request):
        value = getattr(request, each.name)
        if each.name not in options or value == each.default:
            continue
        name = "-k" if each.name == "k" else f"--{_OPTION_OF.get(each.name, each.name)}"
        name = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(name if value else f"--no-{name[2:]}")
        elif isinstance(value, tuple):
            words += [name, ",".join(map(str, value)) or "none"]
        else:
            words += [name, f"{value:g}" if isinstance(value, float) else str(value)]
    return shlex.join(words)


def python_lines(
    request: Request, table: QueryTable, column: str, index: str, call: str, options: Iterable[str]
) -> str:
    """Return the same as lines of Python.

    Parameters
    ----------
    request, table, column, index
        As of `command_line`.
    call : str
        What is called with the query column and the options, such as ``search``; what follows it
        stands behind a line feed.
    options : iterable of str
        The fields that become arguments where they differ from their defaults.
    """
    given = [
        f"{each.name}={value!r}"
        for each in fields(request)
        if each.name in options and (value := getattr(request, each.name)) != each.default
    ]
    query = f"read_query({_own_name(table)!r}, {column!r})"
    name, _, after = call.partition("\n")
    lines = [
        "import pexeso",
        "",
        f"index = pexeso.open_index({index!r})",
        f"query = pexeso.{query}",
        f"found = index.{name}({', '.join(['query', *given])})",
    ]
    return "\n".join([*lines, *([after] if after else [])])


def _own_name(table: QueryTable) -> str:
    return table.spec if table.is_of_lake else table.name
