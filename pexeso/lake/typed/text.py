"""Typed columns as texts: dates and times in ISO form, nested values as JSON.

Cells without a text, such as bytes that are not UTF-8, are left without a value, and in texts wrong
bytes become the replacement character, as they do in delimited text; notes say in how many cells. A
batch is worked on cell by cell only when it could not be as a whole.

Dictionaries, runs and views say a value as often as they like: a file of a kilobyte can stand for
any number of bytes. So what values come to is counted before they are written out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.readers.encoding import ENCODED_TWICE, encoded_once
from pexeso.lake.readers.table import (
    ReadingBudget,
    Table,
    check_width,
    clean_name,
    empty_to_null,
    join_chunks,
    strings,
    too_big_note,
)
from pexeso.lake.typed.value_texts import is_bytes, is_text, value_texts

# What making a text may raise: bytes that are not UTF-8, dates that Python does not know.
_UNREADABLE = (pa.ArrowException, ValueError, OverflowError, RecursionError)
_NO_TEXT = "bytes that are not UTF-8"
_OUT_OF_RANGE = "dates or times out of range"
_CELLS_A_SLICE = 256
# Of texts that are mended in one go: a wrong byte becomes three.
_MOST_BYTES = 1 << 30
_VIEW_BYTES = 16
_CODED = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
# What a Parquet file says that a table in memory was written to: its texts are not decoded.
AS_IT_IS = b"pexeso: texts are as they are in memory"
# Of texts that may have been encoded twice; what is between them in one text.
_FEW_TEXTS, _BETWEEN = 1000, "\x1f"


class MendedTexts(NamedTuple):
    """Texts, in how many cells bytes were mended, and how many cells with a value have none."""

    texts: pa.StringArray
    n_mended: int = 0
    n_lost: int = 0
    why: str = ""


def text_table(
    budget: ReadingBudget,
    names: Sequence[str],
    batches: Iterable[Sequence[pa.Array]],
    notes: Iterable[str] = (),
    *,
    max_cell_bytes: int,
) -> Table:
    """Read batches of typed columns as texts; memory holds the columns and one batch.

    A type that has no text form leaves its column without values.
    """
    check_width(budget.shown, len(names))
    columns: list[list[MendedTexts]] = [[] for _ in names]
    n_rows = n_bytes = n_too_big = 0
    for batch in batches:
        budget.check_seconds()
        n_rows += len(batch[0]) if batch else 0
        budget.check_cells(n_rows, len(batch))
        for pieces, values in zip(columns, batch, strict=True):
            values, n_left_out = _without_big_cells(values, max_cell_bytes)
            budget.check_unpacked_columns(n_bytes + total_bytes(values))
            mended = _mended(values)
            texts, n_nulled = empty_to_null(mended.texts, max_cell_bytes)
            n_too_big += n_left_out + n_nulled
            n_bytes += texts.nbytes
            pieces.append(mended._replace(texts=texts))
        budget.check_unpacked_columns(n_bytes)
    notes = [*notes, *_column_notes(names, columns)]
    if n_too_big:
        notes.append(too_big_note(n_too_big, max_cell_bytes))
    return Table(
        [clean_name(name) for name in names],
        [join_chunks([piece.texts for piece in pieces]) for pieces in columns],
        notes=notes,
    )


def table_decoded_once(table: Table) -> Table:
    """Return a table whose texts were encoded as UTF-8 twice as it was before; others as it is."""
    decoded = decoded_once([strings(list(table.names)), *table.columns])
    if decoded is None:
        return table
    names, *columns = decoded
    return replace(
        table,
        names=[clean_name(name) for name in names.to_pylist()],
        columns=columns,
        notes=[*table.notes, ENCODED_TWICE],
    )


def decoded_once(columns: Sequence[Any]) -> list[Any] | None:
    """Return columns whose texts were encoded as UTF-8 twice as they were before; None for others.

    All letters beyond ASCII must be such, as in `encoded_once`. Arrays or chunked arrays.
    """
    odd = [_beyond_ascii(column) for column in columns if is_text(column.type)]
    if not odd:
        return None
    # A few say of nearly every other table that it is none.
    for some in ([texts.slice(0, _FEW_TEXTS) for texts in odd], odd):
        distinct = pc.unique(pa.chunked_array(some))
        one_list = pa.ListArray.from_arrays([0, len(distinct)], distinct)
        joined = pc.binary_join(one_list, pa.scalar(_BETWEEN, distinct.type))
        data = joined[0].as_buffer().to_pybytes()
        if (once := encoded_once(data)) is data:
            return None
    values = pc.split_pattern(pa.array([once.decode()], distinct.type), _BETWEEN).values
    if len(values) != len(distinct):  # a text has what should be between them
        return None

    def decoded(column: Any) -> Any:
        texts = values.take(pc.index_in(column.cast(pa.large_string()), value_set=distinct))
        return pc.coalesce(texts.cast(column.type), column)

    return [decoded(column) if is_text(column.type) else column for column in columns]


def _beyond_ascii(column: Any) -> pa.Array:
    texts = column.cast(pa.large_string())
    texts = texts.filter(pc.invert(pc.string_is_ascii(texts)))
    return texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts


def _column_notes(names: Sequence[str], columns: list[list[MendedTexts]]) -> Iterator[str]:
    for position, (name, pieces) in enumerate(zip(names, columns, strict=True)):
        column = f"column {name!r} (#{position})"
        if n_lost := sum(piece.n_lost for piece in pieces):
            why = next(piece.why for piece in pieces if piece.n_lost)
            yield f"{column} is not text everywhere: cells read as empty: {n_lost:,} ({why})"
        if n_mended := sum(piece.n_mended for piece in pieces):
            yield (
                f"{column} is not all valid UTF-8: cells in which wrong bytes became the "
                f"replacement character: {n_mended:,}"
            )


def _mended(values: pa.Array) -> MendedTexts:
    try:
        texts = as_text(values)
        texts.validate(full=True)  # a writer may have put anything where strings should be
        return MendedTexts(texts, n_lost=_n_out_of_range(values, texts), why=_OUT_OF_RANGE)
    except _UNREADABLE as error:
        return mended_texts(values, error)


def as_text(values: pa.Array) -> pa.StringArray:
    """Return the texts of an array; raises what Arrow does for types that have no text form.

    >>> from datetime import date
    >>> as_text(pa.array([date(1899, 12, 31), None])).to_pylist()
    ['1899-12-31', None]
    """
    if pa.types.is_dictionary(values.type):
        return as_text(values.dictionary_decode())
    if pa.types.is_nested(values.type):
        return strings([_nested_text(value.as_py()) for value in values])
    return value_texts(values, pa.string())


def _nested_text(value: object) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, default=str)


def _n_out_of_range(values: pa.Array, texts: pa.StringArray) -> int:
    if not texts.null_count:
        return 0
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    return texts.null_count - values.null_count if pa.types.is_temporal(values.type) else 0


def mended_texts(values: pa.Array, error: Exception) -> MendedTexts:
    """Return the texts of an array that could not be made as a whole.

    Bytes that are not UTF-8 need be no text at all, and two of them would become the same: they
    have none.
    """
    try:
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if is_text(values.type) or is_bytes(values.type):
            return _in_slices(values.cast(pa.large_binary()), is_text(values.type))
        if pa.types.is_nested(values.type):
            return _nested_texts(values)
    except _UNREADABLE as other:
        error = other
    nothing = pa.nulls(len(values), pa.string())
    return MendedTexts(nothing, n_lost=len(values) - values.null_count, why=_reason(error))


def _in_slices(values: pa.Array, are_texts: bool) -> MendedTexts:
    """Work on bytes a slice at a time: most are good, and Python's texts take much memory."""
    parts: list[MendedTexts] = []
    n_bytes = 0
    for start in range(0, len(values), _CELLS_A_SLICE):
        parts.append(_mended_slice(values.slice(start, _CELLS_A_SLICE), are_texts))
        n_bytes += parts[-1].texts.nbytes
        if n_bytes > _MOST_BYTES:
            raise ValueError(f"wrong bytes among more than {_MOST_BYTES:,}")
    texts, n_mended, n_lost, _ = zip(*parts, strict=True)
    return MendedTexts(pa.concat_arrays(texts), sum(n_mended), sum(n_lost), _NO_TEXT)


def _mended_slice(values: pa.Array, are_texts: bool) -> MendedTexts:
    try:
        return MendedTexts(values.cast(pa.string()))
    except pa.ArrowInvalid:
        cells = values.to_pylist()
    texts = [_decoded(cell) for cell in cells]
    n_wrong = texts.count(None) - cells.count(None)
    if not are_texts:
        return MendedTexts(strings(texts), n_lost=n_wrong)
    mended = [cell if cell is None else cell.decode("utf-8", "replace") for cell in cells]
    return MendedTexts(strings(mended), n_mended=n_wrong)


def _decoded(cell: bytes | None) -> str | None:
    try:
        return None if cell is None else cell.decode()
    except UnicodeDecodeError:
        return None


def _nested_texts(values: pa.Array) -> MendedTexts:
    texts: list[str | None] = []
    reasons: list[str] = []
    for cell in values:
        try:
            texts.append(_nested_text(cell.as_py()))
        except _UNREADABLE as error:
            texts.append(None)
            reasons.append(_reason(error))
    return MendedTexts(strings(texts), n_lost=len(reasons), why=next(iter(reasons), ""))


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return _NO_TEXT
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


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


def is_coded(kind: pa.DataType) -> bool:
    return pa.types.is_dictionary(kind) and kind.value_type in _CODED


def _without_big_cells(values: pa.Array, max_cell_bytes: int) -> tuple[pa.Array, int]:
    if not is_coded(values.type):
        return values, 0
    too_big = pc.greater(pc.binary_length(values.dictionary), max_cell_bytes)
    if not pc.any(too_big).as_py():
        return values, 0
    dictionary = pc.if_else(too_big, pa.scalar(None, values.type.value_type), values.dictionary)
    n_too_big = pc.sum(too_big.take(values.indices)).as_py() or 0
    return pa.DictionaryArray.from_arrays(values.indices, dictionary), n_too_big


def total_bytes(values: pa.Array) -> float:
    """Return the bytes that an array comes to at least; 0 for types that repeat no value."""
    kind, types = values.type, pa.types
    may_repeat = (
        types.is_dictionary(kind)
        or types.is_nested(kind)
        or types.is_run_end_encoded(kind)
        or types.is_string_view(kind)
        or types.is_binary_view(kind)
        or isinstance(kind, pa.BaseExtensionType)
    )
    return float(written_bytes(values).sum()) if may_repeat else 0


def written_bytes(values: pa.Array) -> np.ndarray:
    """Return the bytes of each value at least, one for what is no text: float64 (n,)."""
    kind, types = values.type, pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return written_bytes(values.storage)
    if types.is_run_end_encoded(kind):
        rows = np.arange(values.offset, values.offset + len(values))
        return _at_positions(
            values.values, np.searchsorted(np.asarray(values.run_ends), rows, "right")
        )
    if types.is_dictionary(kind):
        missing = np.asarray(values.indices.is_null())
        positions = np.asarray(values.indices.fill_null(0)).astype(np.int64)
        if not len(values.dictionary):
            return np.zeros(len(values))
        return np.where(missing, 0, written_bytes(values.dictionary)[positions])
    if types.is_struct(kind):
        parts = [written_bytes(values.field(number)) for number in range(kind.num_fields)]
        return np.sum(parts, axis=0) if parts else np.ones(len(values))
    if types.is_map(kind):
        keys, items = (_summed(values, child) for child in (values.keys, values.items))
        return keys + items
    if types.is_fixed_size_list(kind):
        begins = (values.offset + np.arange(len(values))) * kind.list_size
        return _sums(values.values, begins, begins + kind.list_size)
    if hasattr(values, "sizes"):  # a view
        begins = np.asarray(values.offsets).astype(np.int64)[: len(values)]
        return _sums(values.values, begins, begins + np.asarray(values.sizes)[: len(values)])
    if types.is_list(kind) or types.is_large_list(kind):
        return _summed(values, values.values)
    if types.is_string_view(kind) or types.is_binary_view(kind):
        views = np.frombuffer(values.buffers()[1] or b"", np.int32).reshape(-1, _VIEW_BYTES // 4)
        return views[values.offset : values.offset + len(values), 0].astype(np.float64)
    if is_text(kind) or is_bytes(kind):
        return np.asarray(pc.binary_length(values).fill_null(0)).astype(np.float64)
    return np.ones(len(values))


def _summed(values: pa.Array, items: pa.Array) -> np.ndarray:
    offsets = np.asarray(values.offsets).astype(np.int64)
    return _sums(items, offsets[:-1], offsets[1:])


def _sums(items: pa.Array, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
    if not len(begins):
        return np.zeros(0)
    first, last = int(begins.min()), int(ends.max())
    sums = np.concatenate([[0.0], np.cumsum(written_bytes(items.slice(first, last - first)))])
    return sums[ends - first] - sums[begins - first]


def _at_positions(values: pa.Array, positions: np.ndarray) -> np.ndarray:
    if not len(positions):
        return np.zeros(0)
    first = int(positions.min())
    some = values.slice(first, int(positions.max()) + 1 - first)
    return written_bytes(some)[positions - first]
