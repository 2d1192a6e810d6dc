"""Columns as tokens, the leaves of schemas under names that tables share, and families of types.

Specification of R2D2, sections on schema tokens and on the type gate. Values of one family can be
equal, values of two cannot; the source compares names of columns alone.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import InputError
from pexeso.lake.typed.value_texts import plain

NULL = "null"  # the family of columns without any value: compatible with all

_NUMBERS = frozenset({"int", "decimal"})  # compared by their number

_SIMPLE = (
    (pa.types.is_null, NULL),
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_integer, "int"),
    (pa.types.is_decimal, "decimal"),
    (pa.types.is_floating, "float"),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_string_view, "string"),
    (pa.types.is_binary, "binary"),
    (pa.types.is_large_binary, "binary"),
    (pa.types.is_binary_view, "binary"),
    (pa.types.is_fixed_size_binary, "binary"),
    (pa.types.is_date, "date"),
    (pa.types.is_time, "time"),
)

_LISTS = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)


def family(kind: pa.DataType) -> str:
    """Return the family of a type.

    >>> family(pa.int8()), family(pa.list_(pa.float32())), family(pa.timestamp("ms", "UTC"))
    ('int', 'array<float>', 'timestamp')
    >>> family(pa.struct([("b", pa.int8()), ("a", pa.string())]))
    'struct<"a":string,"b":int>'
    """
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return family(kind.storage_type)
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return family(kind.value_type)
    for is_kind, name in _SIMPLE:
        if is_kind(kind):
            return name
    if types.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    if types.is_map(kind):
        return f"map<{family(kind.key_type)},{family(kind.item_type)}>"
    if is_list(kind):
        return f"array<{family(kind.value_type)}>"
    if types.is_struct(kind):
        inner = (f"{json.dumps(field.name)}:{family(field.type)}" for field in kind)
        return f"struct<{','.join(sorted(inner))}>"
    return str(kind)


def is_list(kind: pa.DataType) -> bool:
    return any(is_kind(kind) for is_kind in _LISTS)


def compatible(ours: str, theirs: str) -> bool:
    """Return whether values of two families can be equal.

    >>> compatible("int", "decimal"), compatible("int", "float"), compatible("null", "string")
    (True, False, True)
    """
    if ours == theirs or NULL in (ours, theirs) or {ours, theirs} <= _NUMBERS:
        return True
    for kind in ("array<", "map<", "struct<"):
        if ours.startswith(kind) and theirs.startswith(kind):
            inner = _parts(ours[len(kind) : -1]), _parts(theirs[len(kind) : -1])
            return len(inner[0]) == len(inner[1]) and all(
                our_name == their_name and compatible(our_family, their_family)
                for (our_name, our_family), (their_name, their_family) in zip(*inner, strict=True)
            )
    return False


_NAME = re.compile(r'"(?:[^"\\]|\\.)*":?')
_SIGNS = re.compile(rf"{_NAME.pattern}|[<>,]")


def _parts(inner: str) -> list[tuple[str, str]]:
    depth, begin, parts = 0, 0, []
    for sign in _SIGNS.finditer(f"{inner},"):
        depth += (sign[0] == "<") - (sign[0] == ">")
        if sign[0] == "," and not depth:
            part = inner[begin : sign.start()]
            name = match[0] if (match := _NAME.match(part)) else ""
            parts.append((name, part[len(name) :]))
            begin = sign.end()
    return parts if inner else []


Token = tuple[str | None, ...]  # a path of names; `ARRAY` means the elements of an array

ARRAY = None


def leaves(
    names: Sequence[str], columns: Sequence[pa.Array | pa.ChunkedArray]
) -> list[tuple[Token, pa.Array]]:
    """Flatten columns: a struct to its fields, an array of structs to an array of each field.

    A field of a struct that is missing is missing. A map is one leaf, and so are an array of other
    values and a struct without fields. Types become those of
    `pexeso.lake.typed.value_texts.plain`.

    >>> user = pa.array([{"name": "Ann"}, None])
    >>> [(token, values.to_pylist()) for token, values in leaves(["user"], [user])]
    [(('user', 'name'), ['Ann', None])]
    """
    pairs = zip(names, columns, strict=True)
    return [
        leaf
        for name, column in pairs
        for leaf in _leaves(
            (name,),
            plain(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column),
        )
    ]


def _leaves(path: Token, values: pa.Array) -> Iterator[tuple[Token, pa.Array]]:
    kind = values.type
    if pa.types.is_struct(kind) and kind.num_fields:
        for field, part in zip(kind, values.flatten(), strict=True):
            yield from _leaves((*path, field.name), part)
    elif is_list(kind) and _holds_struct(kind.value_type):
        lists = values.cast(pa.large_list(kind.value_type))
        lengths = pc.list_value_length(lists).fill_null(0).cast(pa.int64())
        missing = lists.is_null() if lists.null_count else None
        offsets = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths)])
        for token, part in _leaves((*path, ARRAY), lists.flatten()):
            yield token, pa.LargeListArray.from_arrays(offsets, part, mask=missing)
    else:
        yield ((*path, ARRAY) if is_list(kind) else path), values


def _holds_struct(kind: pa.DataType) -> bool:
    return (pa.types.is_struct(kind) and kind.num_fields > 0) or (
        is_list(kind) and _holds_struct(kind.value_type)
    )


def leaf_types(schema: pa.Schema) -> list[tuple[Token, pa.DataType]]:
    """Return the tokens of a schema and the types of their cells, as `leaves` has them."""
    empty = [pa.array([], kind) for kind in schema.types]
    return [(token, values.type) for token, values in leaves(schema.names, empty)]


def folded(token: Token) -> Token:
    return tuple(part if part is None else part.lower() for part in token)


def canonical_tokens(
    tokens: Sequence[Token],
    *,
    case_sensitive: bool = False,
    synonyms: Mapping[Token, Token] | None = None,
) -> list[Token]:
    """Return the tokens by which the columns of a table are compared with others."""
    forms = list(tokens)
    if not case_sensitive:
        lower = [folded(token) for token in tokens]
        forms = lower if len(set(lower)) == len(set(tokens)) else forms
    if not synonyms:
        return forms
    if case_sensitive:
        return [synonyms.get(token, token) for token in forms]
    known = {folded(ours): target for ours, target in synonyms.items()}
    return [
        token if (target := known.get(folded(token), token)) == token else folded(target)
        for token in forms
    ]


def read_synonyms(path: str | os.PathLike[str]) -> dict[Token, Token]:
    """Read a file of names that stand for others.

    The file is TOML with a table ``[synonyms]``: ``customer_no = "customer_id"``. The name of a
    nested field is a text with a JSON list: ``'["user", "zip"]' = '["address", "zip"]'``.
    """
    document = read_toml(path, "synonyms")
    named = document.get("synonyms")
    if set(document) != {"synonyms"} or not isinstance(named, dict):
        raise InputError(
            f"'{os.fspath(path)}' must have one table, [synonyms], and nothing else. Got "
            f"{', '.join(document) or 'nothing'}."
        )
    synonyms = {}
    for ours, target in named.items():
        entry = _token(ours, path), _token(target, path)
        if any(not token or token[0] is None or "" in token for token in entry):
            raise InputError(
                f"The entry {ours!r} = {target!r} in '{os.fspath(path)}' has an empty name. Both "
                "must be names of columns, or lists that begin with one: leave the entry out, or "
                "name the column in its table."
            )
        synonyms[entry[0]] = entry[1]
    return synonyms


def read_toml(path: str | os.PathLike[str], what: str) -> dict[str, Any]:
    """Read a document; `what` it holds is named in the refusal."""
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"The {what} in '{os.fspath(path)}' cannot be read: {reason}.") from error


def _token(text: object, path: str | os.PathLike[str]) -> Token:
    if isinstance(text, str) and not text.startswith("["):
        return (text,)
    try:
        parts = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        parts = None
    if not isinstance(parts, list) or not all(isinstance(part, str | None) for part in parts):
        raise InputError(
            f"A name in '{os.fspath(path)}' must be a text, or a text with a JSON list of names. "
            f"Got {text!r}."
        )
    return tuple(parts)
