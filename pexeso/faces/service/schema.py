"""The schema of requests: what a field says of itself, and how plain values become a request.

A field declares its type, range, default, help text and group once, as
``Annotated[TYPE, option("Help.")]``. The options of the command line, its reference and parameters
of URLs are made of that, and `validated` holds values against it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from pexeso.errors import InputError
from pexeso.runtime.formatting import plain_scalar, shown

Record = TypeVar("Record")

FIND, THRESHOLDS = "What to find", "Thresholds"
READING, OUTPUT, RUNNING, SPARK = "How FILE is read", "Output", "Where it runs", "Spark"
# The groups that options are listed in, in this order; others come before them.
GROUPS = (FIND, THRESHOLDS, READING, OUTPUT, RUNNING, SPARK)

Fraction = Annotated[float, msgspec.Meta(ge=0, le=1)]
Share = Annotated[float, msgspec.Meta(gt=0, le=1)]
Natural = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(ge=1)]

_FIELD = re.compile(r"{(\w+)}")
_PLACE = re.compile(r" - at `\$(.*)`$")
_SCALARS = (str, int, float, bool, NoneType)
_WORDS = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    NoneType: "null",
}


class RequestError(InputError):
    """Fields of a request do not go together, or one of them has a value that it cannot have.

    The text has names of fields in braces, so that a face can write its own for them, and ``%s``
    for each of the values.
    """

    def __str__(self) -> str:
        return self.written(str)

    def written(self, name: Callable[[str], str]) -> str:
        """Return the message with each field under the name that a face has for it."""
        return written(self.args[0], name) % self.args[1:]


def written(text: str, name: Callable[[str], str]) -> str:
    """Return a text with the fields in braces under the names that a face has for them."""
    return _FIELD.sub(lambda match: name(match[1]), text)


def option(
    description: str,
    *names: str,
    group: str = "",
    metavar: str | None = None,
    default: str | None = None,
    usual: str = "",
    **facts: Any,
) -> msgspec.Meta:
    """Return what a field says of itself as an option.

    Parameters
    ----------
    **facts
        `expert`: shown by ``--help-all`` alone. `is_size`: a number of bytes, written as ``8GiB``.
        `is_repeated`: a list that is given one entry at a time. For forms: `label`, `labels` of
        choices, `is_slider`, and of a text `rows`, `placeholder` and `lake_names`, the kind of
        names of the lake that it takes.
    """
    extra = {"names": names, "group": group, "metavar": metavar, "default": default}
    return msgspec.Meta(description=description, extra={**extra, "usual": usual, **facts})


@cache
def hints_of(kind: type) -> dict[str, Any]:
    """Return the declared types of the fields of a request or of a dataclass."""
    return get_type_hints(kind, include_extras=True)


@cache
def defaults_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    return {
        field.name: field.default
        if field.default is not msgspec.NODEFAULT
        else field.default_factory()
        for field in msgspec.structs.fields(kind)
        if not field.required
    }


def meta_of(hint: Any) -> msgspec.Meta | None:
    """Return what a field says of itself as an option; None of one that is none."""
    metas = getattr(hint, "__metadata__", ())
    return next((meta for meta in metas if meta.extra and "names" in meta.extra), None)


def facts_of(hint: Any) -> dict[str, Any]:
    """Return the facts of a field's option other than its help text; see `option`."""
    meta = meta_of(hint)
    return {} if meta is None else dict(meta.extra or {})


def help_text(kind: type, field: str, name: Callable[[str], str] = str) -> str:
    """Return the help text of a field, with other fields under the names that a face has."""
    meta = meta_of(hints_of(kind)[field])
    return written(str(meta.description), name) if meta is not None else ""


def bounds_of(hint: Any) -> dict[str, float]:
    metas = [meta for kind in alternatives(hint) for meta in getattr(kind, "__metadata__", ())]
    words = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum"}
    return {
        word: bound
        for meta in metas
        for name, word in words.items()
        if (bound := getattr(meta, name, None)) is not None
    }


def option_names(kind: type, field: str) -> tuple[str, ...]:
    """Return the names of the option for a field of a request, the one to be shown first."""
    meta = meta_of(hints_of(kind)[field])
    names = meta.extra["names"] if meta is not None and meta.extra else ()
    return names or (f"--{field.replace('_', '-')}",)


def bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def alternatives(hint: Any) -> tuple[Any, ...]:
    hint = bare(hint)
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def validated(kind: type[Record], values: Mapping[str, Any]) -> Record:
    """Return a record made of plain values, each held against its declared type and range."""
    hints = hints_of(kind)
    if is_dataclass(kind) and not set(values) <= set(hints):  # msgspec passes over them
        raise _name_error(kind, values)
    values = {
        name: value if type(value) in _SCALARS else _plain(hints.get(name), value)
        for name, value in values.items()
    }
    try:
        return msgspec.convert(values, kind)
    except UnicodeEncodeError:  # a name with half a letter, which no field has
        raise _name_error(kind, values) from None
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, InputError):
            raise error.__cause__ from None
        raise _refusal(kind, values, str(error)) from None


def _plain(hint: Any, value: Any) -> Any:
    """Return a value without numpy's scalars, paths and objects of dataclasses."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if is_dataclass(kind := bare(hint)) and isinstance(value, Mapping):
        return validated(kind, value)  # type: ignore[type-var]
    return plain_scalar(value)


def _refusal(kind: type, values: Mapping[str, Any], said: str) -> InputError:
    """Return the error of a value: its field, the allowed values, and the value."""
    place = _PLACE.search(said)
    *outer, last = ["", *re.findall(r"\.(\w+)", place[1] if place else "")]
    for name in outer[1:]:
        kind = next(choice for choice in alternatives(hints_of(kind)[name]) if _is_record(choice))
        values = values[name]
    if "missing required" in said or "contains unknown" in said:
        if last:
            kind = next(
                choice for choice in alternatives(hints_of(kind)[last]) if _is_record(choice)
            )
            values = values[last]
        return _name_error(kind, values)
    if not last:
        return InputError(f"{kind.__name__} must be an object. Got {shown(values)} instead.")
    hint = hints_of(kind)[last]
    meta = meta_of(hint)
    usual = f" {meta.extra['usual']}" if meta is not None and meta.extra["usual"] else ""
    allowed = in_words(hint)
    if ", got `" not in said:  # it is of the right type, and out of its range
        allowed = allowed.removesuffix(" or null")
    text = f"{{{last}}} must be {allowed}. Got %s instead.{usual.replace('%', '%%')}"
    return RequestError(text, shown(values[last]))


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and hasattr(kind, "__match_args__")


def _name_error(kind: Any, values: Mapping[str, Any]) -> InputError:
    fields = msgspec.inspect.type_info(kind).fields  # type: ignore[union-attr]
    names = [field.name for field in fields]
    if unknown := sorted(map(str, set(values) - set(names))):
        shown_names = ", ".join(unknown).encode("utf-8", "backslashreplace").decode()
        return InputError(f"Fields of {kind.__name__} are {', '.join(names)}. Got {shown_names}.")
    missing = [field.name for field in fields if field.required and field.name not in values]
    return InputError(f"{kind.__name__} needs {', '.join(missing)}. Got {shown(dict(values))}.")


def in_words(hint: Any) -> str:
    """Return what a value may be."""
    kinds = alternatives(hint)
    if len(kinds) > 1:
        return " or ".join(map(in_words, kinds))
    bounds = [meta for meta in getattr(hint, "__metadata__", ()) if isinstance(meta, msgspec.Meta)]
    origin, inner = get_origin(kinds[0]), get_args(kinds[0])
    if origin is Literal:
        return f"one of {', '.join(inner)}" if len(inner) > 1 else repr(inner[0])
    if origin is None or issubclass(origin, Mapping):
        word = _WORDS.get(kinds[0], "an object")
        return "".join([word, *(_range(meta) for meta in bounds)])
    return f"a list, each entry {in_words(inner[0])}" if inner[0] is not Any else "a list"


def _range(meta: msgspec.Meta) -> str:
    low, high = meta.gt if meta.ge is None else meta.ge, meta.le
    if low is None:
        return "" if high is None else f" of at most {high:,}"
    if high is None:
        return f" {'of at least' if meta.gt is None else 'above'} {low:,}"
    return f" in {'[' if meta.gt is None else '('}{low:,}, {high:,}]"


def to_plain(value: Any) -> Any:
    """Return a value as plain JSON: records and mappings as objects, tuples as arrays."""
    if isinstance(value, Mapping):
        return {name: to_plain(member) for name, member in value.items()}
    return [to_plain(entry) for entry in value] if isinstance(value, tuple | list) else value
