"""Typed columns as texts: dates and times in ISO form, nested values as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import TableReadError
from pexeso.lake.readers.budget import ReadingBudget
from pexeso.lake.readers.table import (
    Table,
    check_width,
    clean_name,
    empty_to_null,
    join_chunks,
    strings,
    too_big_note,
)
from pexeso.lake.readers.written_bytes import total_bytes
from pexeso.lake.typed.bad_cells import UNREADABLE, MendedTexts, mended_texts, nested_text
from pexeso.lake.typed.table import TypedTable
from pexeso.lake.typed.value_texts import value_texts

_OUT_OF_RANGE = "dates or times out of range"


class TextColumns:
    """Columns of texts made of typed ones, a batch of rows at a time.

    Cells without a text, such as bytes that are not UTF-8, are left without a value, and in texts
    wrong bytes become the replacement character; notes say in how many cells. A type that has no
    text form leaves its column without values.
    """

    def __init__(
        self, budget: ReadingBudget, names: Sequence[str], *, max_bytes: int, max_cell_bytes: int
    ) -> None:
        check_width(budget.shown, len(names))
        self._budget, self._names = budget, names
        self._max_bytes, self._max_cell_bytes = max_bytes, max_cell_bytes
        self._pieces: list[list[pa.StringArray]] = [[] for _ in names]
        self._n_lost: Counter[int] = Counter()
        self._n_mended: Counter[int] = Counter()
        self._why_lost: dict[int, str] = {}
        self._n_too_big = self._n_bytes = self._n_rows = 0

    def add(self, columns: Sequence[pa.Array]) -> None:
        """Add rows: of each column an array, all of equal length."""
        self._budget.check_seconds()
        self._n_rows += len(columns[0]) if columns else 0
        self._budget.check_cells(self._n_rows, len(columns))
        for position, values in enumerate(columns):
            values, n_left_out = _without_big_cells(values, self._max_cell_bytes)
            if self._n_bytes + total_bytes(values) > self._max_bytes:
                raise self._too_much()
            piece, n_piece_too_big = empty_to_null(
                self._as_text(values, position), self._max_cell_bytes
            )
            self._n_too_big += n_left_out + n_piece_too_big
            self._n_bytes += piece.nbytes
            self._pieces[position].append(piece)
        if self._n_bytes > self._max_bytes:
            raise self._too_much()

    def table(self, notes: Sequence[str] = ()) -> Table:
        """Return all rows that were added."""
        all_notes = [*notes, *self._notes_of_columns()]
        if self._n_too_big:
            all_notes.append(too_big_note(self._n_too_big, self._max_cell_bytes))
        return Table(
            [clean_name(name) for name in self._names],
            [join_chunks(pieces) for pieces in self._pieces],
            notes=all_notes,
        )

    def _too_much(self) -> TableReadError:
        return TableReadError(
            f"{self._budget.shown} unpacks to more than {self._max_bytes:,} bytes, the most that "
            "is read (max_bytes)."
        )

    def _notes_of_columns(self) -> Iterator[str]:
        for position, name in enumerate(self._names):
            column = f"column {name!r} (#{position})"
            if n_lost := self._n_lost[position]:
                why = self._why_lost[position]
                yield f"{column} is not text everywhere: cells read as empty: {n_lost:,} ({why})"
            if n_mended := self._n_mended[position]:
                yield (
                    f"{column} is not all valid UTF-8: cells in which wrong bytes became the "
                    f"replacement character: {n_mended:,}"
                )

    def _as_text(self, values: pa.Array, position: int) -> pa.StringArray:
        try:
            text = as_text(values)
            text.validate(full=True)  # a writer may have put anything where strings should be
            mended = MendedTexts(text, n_lost=_n_out_of_range(values, text), why=_OUT_OF_RANGE)
        except UNREADABLE as error:
            mended = mended_texts(values, error)
        self._n_mended[position] += mended.n_mended
        if mended.n_lost:
            self._n_lost[position] += mended.n_lost
            self._why_lost.setdefault(position, mended.why)
        return mended.texts


def text_table(
    budget: ReadingBudget, typed: TypedTable, *, max_bytes: int, max_cell_bytes: int
) -> Table:
    """Read a typed table as texts; see `TextColumns`.

    Memory holds the columns and one batch.
    """
    columns = TextColumns(budget, typed.names, max_bytes=max_bytes, max_cell_bytes=max_cell_bytes)
    for batch in typed.batches:
        columns.add(batch)
    return columns.table(typed.notes)


def is_coded(kind: pa.DataType) -> bool:
    """Return whether values are numbers into a list of different texts."""
    texts = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_binary,
        pa.types.is_large_binary,
    )
    return pa.types.is_dictionary(kind) and any(is_kind(kind.value_type) for is_kind in texts)


def parts_of(values: pa.Array) -> list[pa.Array]:
    """Return the arrays that an array of nested values is made of."""
    kind = values.type
    if pa.types.is_struct(kind):
        return [values.field(number) for number in range(kind.num_fields)]
    if pa.types.is_map(kind):
        return [values.keys, values.items]
    is_list = (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )
    return [values.values] if is_list else []


def _without_big_cells(values: pa.Array, max_cell_bytes: int) -> tuple[pa.Array, int]:
    """Replace dictionary values over the limit by null, and count the affected cells.

    Returns the values and the number of cells.
    """
    if not is_coded(values.type):
        return values, 0
    too_big = pc.greater(pc.binary_length(values.dictionary), max_cell_bytes)
    if not pc.any(too_big).as_py():
        return values, 0
    dictionary = pc.if_else(too_big, pa.scalar(None, values.type.value_type), values.dictionary)
    n_too_big = pc.sum(too_big.take(values.indices)).as_py() or 0
    return pa.DictionaryArray.from_arrays(values.indices, dictionary), n_too_big


def as_text(values: pa.Array) -> pa.StringArray:
    """Return the texts of an array; raises what Arrow does for types that have no text form.

    Examples
    --------
    >>> from datetime import date
    >>> as_text(pa.array([date(1899, 12, 31), None])).to_pylist()
    ['1899-12-31', None]
    """
    return _text_of(values.type)(values)


def _text_of(kind: pa.DataType) -> Callable[[pa.Array], pa.StringArray]:
    if pa.types.is_dictionary(kind):
        return lambda values: _as_decoded(values)
    if pa.types.is_nested(kind):
        return _as_json
    if pa.types.is_duration(kind):
        return lambda values: values.cast(pa.int64()).cast(pa.string())
    return lambda values: value_texts(values, pa.string())


def _as_decoded(values: pa.DictionaryArray) -> pa.StringArray:
    decoded = values.dictionary_decode()
    return _text_of(decoded.type)(decoded)


def _n_out_of_range(values: pa.Array, texts: pa.StringArray) -> int:
    """Return the number of dates and times that have no text."""
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if not pa.types.is_temporal(kind) or not texts.null_count:
        return 0
    if kind != values.type:
        values = values.dictionary_decode()
    return texts.null_count - values.null_count


def _as_json(values: pa.Array) -> pa.StringArray:
    return strings([nested_text(value.as_py()) for value in values])
