"""Parquet to a table: every type becomes text."""

import json
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pexeso.errors import TableReadError
from pexeso.lake.table import Table, check_width, clean_name, empty_to_null, join_chunks, strings, too_big_note

_ROWS_A_BATCH = 4096


def parse_parquet(shown: str, data: bytes, *, max_bytes: int, max_cell_bytes: int) -> Table:
    """Read a Parquet file as strings: dates and times in ISO form, nested values as JSON text.

    Bytes that are not UTF-8, and types that have no text form, leave their column without values, with a note.

    Parameters
    ----------
    shown
        The file's name for messages.
    data
        The whole file.
    max_bytes
        Limit on the size of all columns as text; reading stops there, since encodings may unpack to any size.
    max_cell_bytes
        Larger cells become null.

    Raises
    ------
    TableReadError
        The data are no Parquet file, are damaged, or unpack to more than `max_bytes`.
    """
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        check_width(shown, len(file.schema_arrow))
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
            piece, n_piece_too_big = empty_to_null(_as_text(values, position, unreadable), max_cell_bytes)
            n_too_big += n_piece_too_big
            n_bytes += piece.nbytes
            pieces[position].append(piece)
        if n_bytes > max_bytes:
            raise TableReadError(
                f"{shown} unpacks to more than {max_bytes:,} bytes, the most that is read (max_bytes)."
            )
    notes = [f"column {names[p]!r} (#{p}) is not text everywhere: {why}" for p, why in unreadable.items()]
    if n_too_big:
        notes.append(too_big_note(n_too_big, max_cell_bytes))
    return Table([clean_name(name) for name in names], [join_chunks(p) for p in pieces], notes=notes)


def _as_text(values: pa.Array, position: int, unreadable: dict[int, str]) -> pa.StringArray:
    try:
        text = _text_of(values.type)(values)
        text.validate(full=True)  # a writer may have put anything where strings should be
        return text
    except (pa.ArrowException, ValueError, RecursionError) as error:
        unreadable.setdefault(position, str(error).splitlines()[0] if str(error) else type(error).__name__)
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
    return (whole if pc.all(pc.equal(whole.cast(values.type), values)).as_py() else values).cast(pa.string())


def _as_json(values: pa.Array) -> pa.StringArray:
    texts = [None if v is None else json.dumps(v, ensure_ascii=False, default=str) for v in values.to_pylist()]
    return strings(texts)
