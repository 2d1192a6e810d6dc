"""Columns as tokens: the leaves of flat and nested schemas, under names that tables share.

Specification of R2D2, section on schema tokens.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import InputError
from pexeso.lake.readers.plain_arrays import plain
from pexeso.redundancy.type_families import is_list

Token = tuple[str | None, ...]
"""A path of names; `ARRAY` stands for the elements of an array."""

ARRAY = None


@dataclass(frozen=True)
class Leaf:
    """A leaf of a schema with its cells, one a row."""

    token: Token
    values: pa.Array


def leaves(names: Sequence[str], columns: Sequence[pa.Array | pa.ChunkedArray]) -> list[Leaf]:
    """Flatten columns: a struct to its fields, an array of structs to an array of each field.

    A field of a struct that is missing is missing. A map is one leaf, and so are an array of other
    values and a struct without fields. Types become those of
    `pexeso.lake.readers.plain_arrays.plain`.

    Parameters
    ----------
    columns : sequence of Arrow arrays
        Of equal length.

    Examples
    --------
    >>> user = pa.array([{"name": "Ann"}, None])
    >>> [(render(leaf.token), leaf.values.to_pylist()) for leaf in leaves(["user"], [user])]
    [('user.name', ['Ann', None])]
    """
    all_leaves = []
    for name, column in zip(names, columns, strict=True):
        values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        all_leaves += [Leaf(token, cells) for token, cells in _leaves((name,), plain(values))]
    return all_leaves


def _leaves(path: Token, values: pa.Array) -> Iterator[tuple[Token, pa.Array]]:
    kind = values.type
    if pa.types.is_struct(kind) and kind.num_fields:
        for field, part in zip(kind, values.flatten(), strict=True):
            yield from _leaves((*path, field.name), part)
    elif is_list(kind) and _holds_struct(kind.value_type):
        lists = values.cast(pa.large_list(kind.value_type))
        lengths = pc.list_value_length(lists).fill_null(0).cast(pa.int64())
        ends = pc.cumulative_sum(lengths)
        missing = lists.is_null() if lists.null_count else None
        offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
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
    return [(leaf.token, leaf.values.type) for leaf in leaves(schema.names, empty)]


def folded(token: Token) -> Token:
    """Return a token in lower case."""
    return tuple(part if part is None else part.lower() for part in token)


def canonical_tokens(
    tokens: Sequence[Token],
    *,
    case_sensitive: bool = False,
    synonyms: Mapping[Token, Token] | None = None,
) -> list[Token]:
    """Return the tokens by which the columns of a table are compared with others.

    Examples
    --------
    >>> canonical_tokens([("Id",), ("Name",)]), canonical_tokens([("id",), ("ID",)])
    ([('id',), ('name',)], [('id',), ('ID',)])
    """
    forms = list(tokens)
    if not case_sensitive:
        lower = [folded(token) for token in tokens]
        forms = lower if len(set(lower)) == len(set(tokens)) else forms
    if not synonyms:
        return forms
    known = {ours if case_sensitive else folded(ours): target for ours, target in synonyms.items()}
    mapped = [known.get(token if case_sensitive else folded(token), token) for token in forms]
    return (
        mapped
        if case_sensitive
        else [folded(a) if a != b else a for a, b in zip(mapped, forms, strict=True)]
    )


def render(token: Token) -> str:
    """Return a token for people: ``items[].price``.

    Examples
    --------
    >>> render(("items", ARRAY, "price"))
    'items[].price'
    """
    text = ""
    for part in token:
        text += "[]" if part is None else f".{part}" if text else part
    return text


def read_synonyms(path: str | os.PathLike[str]) -> dict[Token, Token]:
    """Read a file of names that stand for others.

    The file is TOML with a table ``[synonyms]``: ``customer_no = "customer_id"``. The name of a
    nested field is a text with a JSON list: ``'["user", "zip"]' = '["address", "zip"]'``.

    Raises
    ------
    InputError
        The file cannot be read as such.
    """
    try:
        with open(path, "rb") as file:
            document = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"The synonyms in '{os.fspath(path)}' cannot be read: {reason}."
        ) from error
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


def _token(text: object, path: str | os.PathLike[str]) -> Token:
    if isinstance(text, str) and not text.startswith("["):
        return (text,)
    try:
        parts = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        parts = None
    if not isinstance(parts, list) or not all(
        part is None or isinstance(part, str) for part in parts
    ):
        raise InputError(
            f"A name in '{os.fspath(path)}' must be a text, or a text with a JSON list of names. "
            f"Got {text!r}."
        )
    return tuple(parts)
