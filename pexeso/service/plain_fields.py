"""Dataclasses from plain JSON and back, each field held against its declared type."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from pexeso.errors import InputError
from pexeso.runtime.formatting import plain_scalar, shown

Record = TypeVar("Record")

_WORDS = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    NoneType: "null",
}


class _Refused(Exception):
    """A value is not of the declared type."""


def to_plain(value: Any) -> Any:
    """Return a value as plain JSON: dataclasses and mappings as objects, tuples as arrays.

    Examples
    --------
    >>> to_plain({"names": ("a", "b")})
    {'names': ['a', 'b']}
    """
    if is_dataclass(value):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: to_plain(member) for name, member in value.items()}
    return [to_plain(entry) for entry in value] if isinstance(value, tuple | list) else value


def from_plain(kind: type[Record], values: Mapping[str, Any]) -> Record:
    """Make a dataclass from plain JSON.

    Parameters
    ----------
    kind : type
        A dataclass, whose fields are declared by ``str``, ``int``, ``float``, ``bool``, ``Any``,
        literals, tuples and mappings of one type, dataclasses, and unions of these.
    values : mapping
        By name of field; those with a default may be left out.

    Raises
    ------
    InputError
        A field is unknown, is missing, or has a value of another type.

    Examples
    --------
    >>> from pexeso.lake.choose import ColumnRules
    >>> from_plain(ColumnRules, {"kinds": ["text"], "min_rows": 3}).kinds
    ('text',)
    >>> from_plain(ColumnRules, {"min_rows": "3"})
    Traceback (most recent call last):
        ...
    pexeso.errors.InputError: min_rows must be a whole number. Got '3' instead.
    """
    declared = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(map(str, set(values) - set(declared))):
        expected = f"Fields of {kind.__name__} are {', '.join(declared)}"
        raise InputError(f"{expected}. Got {', '.join(unknown)}.")
    missing = [
        name
        for name, field in declared.items()
        if name not in values and field.default is MISSING and field.default_factory is MISSING
    ]
    if missing:
        raise InputError(f"{kind.__name__} needs {', '.join(missing)}. Got {shown(dict(values))}.")
    hints = get_type_hints(kind)
    return kind(**{name: typed(hints[name], value, name) for name, value in values.items()})


def typed(hint: Any, value: Any, name: str) -> Any:
    """Return a value as a type: lists as tuples, objects as dataclasses; or raise InputError."""
    try:
        return _as(hint, plain_scalar(value))
    except _Refused:
        raise InputError(f"{name} must be {_in_words(hint)}. Got {shown(value)} instead.") from None


def _as(hint: Any, value: Any) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        for alternative in inner:
            try:
                return _as(alternative, value)
            except _Refused:
                continue
    elif origin is Literal:
        if value in inner:
            return value
    elif origin is not None and issubclass(origin, Mapping):
        if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
            return {name: _as(inner[1], member) for name, member in value.items()}
    elif origin is not None and issubclass(origin, Sequence):
        if isinstance(value, list | tuple):
            return tuple(_as(inner[0], entry) for entry in value)
    elif is_dataclass(hint) and isinstance(value, Mapping):
        return from_plain(hint, value)
    elif hint is str and isinstance(value, os.PathLike):
        return os.fspath(value)
    elif hint is Any or (
        # True is an int to Python, and no number.
        isinstance(value, bool) is (hint is bool)
        and isinstance(value, (int, float) if hint is float else hint)
    ):
        return value
    raise _Refused


def _in_words(hint: Any) -> str:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(map(_in_words, inner))
    if origin is Literal:
        return f"one of {', '.join(inner)}" if len(inner) > 1 else repr(inner[0])
    if origin is None or issubclass(origin, Mapping):
        return _WORDS.get(hint, "an object")
    return f"a list, each entry {_in_words(inner[0])}" if inner[0] is not Any else "a list"
