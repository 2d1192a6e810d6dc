"""Parquet to a table: every type becomes text."""

import json
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pexeso.errors import TableReadError
from pexeso.lake.readers.table import (
    Table,
    check_width,
    clean_name,
    empty_to_null,
    join_chunks,
    strings,
    too_big_note,
)

_ROWS_A_BATCH = 4096
_ROWS_A_PROBE = 16
_MAX_REPEATED_BYTES = 256


def parse_parquet(shown: str, data: bytes, *, max_bytes: int, max_cell_bytes: int) -> Table:
    """Read a Parquet file as strings: dates and times in ISO form, nested values as JSON text.

    Bytes that are not UTF-8, and types that have no text form, leave their column without values,
    with a note.

    A file of a few hundred bytes may say a long text as often as it likes. So columns with long
    ones are read as Parquet stores them, a list of different texts and numbers into it, and it is
    known how much they come to before they are written out. Besides `data` and the columns, memory
    holds one page of each column, of at most 2 GiB.

    Parameters
    ----------
    shown
        The file's name for messages.
    max_bytes
        Limit on the size of all columns as text; reading stops there, since encodings may unpack to
        any size.
    max_cell_bytes
        Larger cells become null.
    """
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        check_width(shown, len(file.schema_arrow))
        long_texts = _long_texts(file, data, max_bytes // (4 * _ROWS_A_BATCH))
        if long_texts:
            file = pq.ParquetFile(pa.BufferReader(data), read_dictionary=long_texts)
        return _read(shown, file, max_bytes, max_cell_bytes)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise TableReadError(f"{shown} is no readable Parquet file: {reason}.") from error


def _read(shown: str, file: pq.ParquetFile, max_bytes: int, max_cell_bytes: int) -> Table:
    names = file.schema_arrow.names
    pieces: list[list[pa.StringArray]] = [[] for _ in names]
    unreadable: dict[int, str] = {}
    n_too_big = n_bytes = 0
    for batch in file.iter_batches(batch_size=_ROWS_A_BATCH, use_threads=False):
        for position, values in enumerate(batch.columns):
            values, n_left_out = _without_big_cells(values, max_cell_bytes)
            if n_bytes + _text_bytes(values) > max_bytes:
                raise _too_much(shown, max_bytes)
            piece, n_piece_too_big = empty_to_null(
                _as_text(values, position, unreadable), max_cell_bytes
            )
            n_too_big += n_left_out + n_piece_too_big
            n_bytes += piece.nbytes
            pieces[position].append(piece)
        if n_bytes > max_bytes:
            raise _too_much(shown, max_bytes)
    notes = [
        f"column {names[p]!r} (#{p}) is not text everywhere: {why}" for p, why in unreadable.items()
    ]
    if n_too_big:
        notes.append(too_big_note(n_too_big, max_cell_bytes))
    return Table(
        [clean_name(name) for name in names], [join_chunks(p) for p in pieces], notes=notes
    )


def _long_texts(file: pq.ParquetFile, data: bytes, limit: int) -> list[str]:
    """Return the columns whose dictionary holds a text of more bytes than the limit.

    The limit is at most 256 bytes for columns where a cell holds many texts.
    """
    leaves = [file.schema.column(number) for number in range(len(file.schema))]
    texts = [leaf for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
    found: set[str] = set()
    for leaf in texts:
        coded = pq.ParquetFile(
            pa.BufferReader(data), metadata=file.metadata, read_dictionary=[leaf.path]
        )
        most = limit if leaf.max_repetition_level == 0 else min(limit, _MAX_REPEATED_BYTES)
        for group in range(file.num_row_groups):
            # The list comes with the first value, in all its length.
            batches = coded.iter_batches(
                _ROWS_A_PROBE, row_groups=[group], columns=[leaf.path], use_threads=False
            )
            longest = (max(map(_longest, batch.columns), default=0) for batch in batches)
            if next(filter(None, longest), 0) > most:
                found.add(leaf.path)
                break
    return sorted(found)


def _longest(values: pa.Array) -> int:
    """Return the bytes of the longest text that is listed anywhere in an array."""
    if _is_coded(values.type):
        return pc.max(pc.binary_length(values.dictionary)).as_py() or 0
    return max(map(_longest, _parts(values)), default=0)


def _parts(values: pa.Array) -> list[pa.Array]:
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


def _too_much(shown: str, max_bytes: int) -> TableReadError:
    return TableReadError(
        f"{shown} unpacks to more than {max_bytes:,} bytes, the most that is read (max_bytes)."
    )


def _is_coded(kind: pa.DataType) -> bool:
    """Return whether values are numbers into a list of different texts."""
    texts = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_binary,
        pa.types.is_large_binary,
    )
    return pa.types.is_dictionary(kind) and any(is_kind(kind.value_type) for is_kind in texts)


def _without_big_cells(values: pa.Array, max_cell_bytes: int) -> tuple[pa.Array, int]:
    """Replace dictionary values over the limit by null, and count the affected cells.

    Returns the values and the number of cells.
    """
    if not _is_coded(values.type):
        return values, 0
    too_big = pc.greater(pc.binary_length(values.dictionary), max_cell_bytes)
    if not pc.any(too_big).as_py():
        return values, 0
    kept = pc.if_else(too_big, pa.scalar(None, values.type.value_type), values.dictionary)
    n_too_big = pc.sum(too_big.take(values.indices)).as_py() or 0
    return pa.DictionaryArray.from_arrays(values.indices, kept), n_too_big


def _text_bytes(values: pa.Array) -> int:
    """Return the bytes that the texts of an array come to when each is written out."""
    if _is_coded(values.type):
        lengths = pc.cast(pc.binary_length(values.dictionary), pa.int64())
        return pc.sum(lengths.take(values.indices)).as_py() or 0
    return sum(map(_text_bytes, _parts(values)))


def _as_text(values: pa.Array, position: int, unreadable: dict[int, str]) -> pa.StringArray:
    try:
        text = _text_of(values.type)(values)
        text.validate(full=True)  # a writer may have put anything where strings should be
        return text
    except (pa.ArrowException, ValueError, RecursionError) as error:
        unreadable.setdefault(
            position, str(error).splitlines()[0] if str(error) else type(error).__name__
        )
        return pa.nulls(len(values), pa.string())


def _text_of(kind: pa.DataType) -> Callable[[pa.Array], pa.StringArray]:
    if pa.types.is_dictionary(kind):
        return lambda values: _as_decoded(values)
    if pa.types.is_nested(kind):
        return _as_json
    if pa.types.is_duration(kind):
        return lambda values: values.cast(pa.int64()).cast(pa.string())
    if pa.types.is_timestamp(kind):
        return _timestamp_text
    return lambda values: values.cast(pa.string())


def _as_decoded(values: pa.DictionaryArray) -> pa.StringArray:
    decoded = values.dictionary_decode()
    return _text_of(decoded.type)(decoded)


def _timestamp_text(values: pa.TimestampArray) -> pa.StringArray:
    """Write ISO times, without the fraction of a second where it is zero throughout the values."""
    whole = values.cast(pa.timestamp("s", values.type.tz), safe=False)
    return (whole if pc.all(pc.equal(whole.cast(values.type), values)).as_py() else values).cast(
        pa.string()
    )


def _as_json(values: pa.Array) -> pa.StringArray:
    texts = [
        None if v is None else json.dumps(v, ensure_ascii=False, default=str)
        for v in values.to_pylist()
    ]
    return strings(texts)
