"""Forms of pages, made of the fields of requests, and the values that their URLs bring back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import msgspec

from pexeso.errors import InputError
from pexeso.faces.service.schema import (
    alternatives,
    bare,
    bounds_of,
    facts_of,
    help_text,
    hints_of,
    option,
)
from pexeso.runtime.formatting import shown

if TYPE_CHECKING:
    from pexeso.faces.service.bases import Request

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
    """Return the fields of a request that a URL has, with their types.

    Examples
    --------
    >>> from pexeso.faces.service.requests import SearchRequest
    >>> query_fields(SearchRequest, {"k": "5", "max_distance": "0.2", "exclude_self": "1"})
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
    )
