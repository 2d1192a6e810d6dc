"""Texts of a batch in which some cells have none: the others keep theirs.

A batch is worked on cell by cell only when it could not be as a whole.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.readers.table import strings
from pexeso.lake.typed.value_texts import is_text

UNREADABLE = (pa.ArrowException, ValueError, OverflowError, RecursionError)
"""What making a text may raise: bytes that are not UTF-8, dates that Python does not know."""

_NO_TEXT = "bytes that are not UTF-8"
_CELLS_A_SLICE = 256
_MOST_BYTES = 1 << 30
"""Of texts that are mended at once: a wrong byte becomes three."""


@dataclass(frozen=True)
class MendedTexts:
    """What texts there are.

    Attributes
    ----------
    n_mended : int
        Cells in which wrong bytes became the replacement character.
    n_lost : int
        Cells without a text, which have a value.
    """

    texts: pa.StringArray
    n_mended: int = 0
    n_lost: int = 0
    why: str = ""


def mended_texts(values: pa.Array, error: Exception) -> MendedTexts:
    """Return the texts of an array that could not be made all at once.

    In texts, which should be UTF-8, wrong bytes become the replacement character, as they do in
    delimited text. Bytes that are not UTF-8 need be no text at all, and two of them would become
    the same: they have none.
    """
    try:
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if is_text(values.type) or _is_bytes(values.type):
            return _in_slices(values.cast(pa.large_binary()), is_text(values.type))
        if pa.types.is_nested(values.type):
            return _of_nested(values)
    except UNREADABLE as other:
        error = other
    nothing = pa.nulls(len(values), pa.string())
    n_lost = len(values) - values.null_count
    return MendedTexts(nothing, n_lost=n_lost, why=_reason(error))


def sound(values: pa.Array) -> pa.Array:
    """Return values of a file with the types that they have, without what is no value of them.

    Texts that are not UTF-8 are mended, and nested values with such texts are missing: whatever is
    given an array takes for granted that there are none.
    """
    if not (is_text(values.type) or pa.types.is_nested(values.type)):
        return values
    try:
        values.validate(full=True)
    except pa.ArrowInvalid as error:
        texts = mended_texts(values, error).texts
        if is_text(values.type):
            return texts.cast(values.type)
        return pc.if_else(texts.is_valid(), values, pa.scalar(None, values.type))
    return values


def nested_text(value: object) -> str | None:
    """Return a nested value as JSON."""
    return None if value is None else json.dumps(value, ensure_ascii=False, default=str)


def _is_bytes(kind: pa.DataType) -> bool:
    types = pa.types
    is_fixed = types.is_fixed_size_binary(kind)
    is_any = types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)
    return is_fixed or is_any


def _in_slices(values: pa.Array, are_texts: bool) -> MendedTexts:
    """Work on bytes a slice at a time: most are good, and Python's texts take much memory."""
    parts = []
    n_bytes = 0
    for start in range(0, len(values), _CELLS_A_SLICE):
        parts.append(_of_slice(values.slice(start, _CELLS_A_SLICE), are_texts))
        n_bytes += parts[-1].texts.nbytes
        if n_bytes > _MOST_BYTES:
            raise ValueError(f"wrong bytes among more than {_MOST_BYTES:,}")
    texts = pa.concat_arrays([part.texts for part in parts])
    n_mended, n_lost = (sum(part.n_mended for part in parts), sum(part.n_lost for part in parts))
    return MendedTexts(texts, n_mended, n_lost, _NO_TEXT)


def _of_slice(values: pa.Array, are_texts: bool) -> MendedTexts:
    try:
        return MendedTexts(values.cast(pa.string()))
    except pa.ArrowInvalid:
        cells = values.to_pylist()
    texts = [_decoded(cell) for cell in cells]
    n_wrong = texts.count(None) - cells.count(None)
    if not are_texts:
        return MendedTexts(strings(texts), n_lost=n_wrong)
    mended = (cell if cell is None else cell.decode("utf-8", "replace") for cell in cells)
    return MendedTexts(strings(list(mended)), n_mended=n_wrong)


def _decoded(cell: bytes | None) -> str | None:
    try:
        return None if cell is None else cell.decode()
    except UnicodeDecodeError:
        return None


def _of_nested(values: pa.Array) -> MendedTexts:
    texts: list[str | None] = []
    n_lost, why = 0, ""
    for cell in values:
        try:
            text = nested_text(cell.as_py())
        except UNREADABLE as error:
            text = None
            n_lost += 1
            why = why or _reason(error)
        texts.append(text)
    return MendedTexts(strings(texts), n_lost=n_lost, why=why)


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return _NO_TEXT
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__
