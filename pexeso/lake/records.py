"""One table as a stream of records.

The records are the table, its columns, and the distinct values of the columns that are kept.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import PlaceError, TableReadError
from pexeso.lake.choose import ColumnRules, reason_left_out, reason_too_few
from pexeso.lake.columns import label_columns
from pexeso.lake.files import TableFile
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.readers.content import DEFAULT_MAX_BYTES, Content, read_content
from pexeso.lake.readers.reader import parse_table
from pexeso.lake.readers.table import DEFAULT_MAX_CELL_BYTES, Table
from pexeso.lake.record_schema import MAX_RECORDS, batch_of, batch_of_columns
from pexeso.lake.sniff import ColumnProfile, profile_columns, profile_counted


@dataclass(frozen=True)
class ColumnValues:
    """Distinct normalised values of a column, with one raw text and the cell count of each."""

    values: pa.StringArray
    texts: pa.StringArray
    counts: pa.Int64Array


@dataclass(frozen=True)
class ReadColumn:
    """A column of a table that was read.

    Attributes
    ----------
    cells : texts
        With repeats or without, as they stand in the file.
    profile : ColumnProfile or None
        None: nothing is known of it.
    values : ColumnValues or None
        None where it is left out of the catalog's columns.
    """

    position: int
    label: str
    cells: pa.Array | pa.ChunkedArray
    profile: ColumnProfile | None
    values: ColumnValues | None


@dataclass(frozen=True)
class ReadTable:
    """A table that was read, or one column of it, and the rules by which columns are kept."""

    name: str
    columns: Sequence[ReadColumn]
    rules: ColumnRules


Records = Callable[[ReadTable], Iterator[pa.RecordBatch]]
"""What a part of an index wants of a table, as batches of `record_schema.SCHEMA`."""


def value_records(table: ReadTable) -> Iterator[pa.RecordBatch]:
    """Yield one record of each distinct value of the columns that are kept."""
    yield from _value_batches(
        table.name, {each.position: each.values for each in table.columns if each.values}
    )


def table_records(
    file: TableFile,
    rules: ColumnRules,
    normaliser: Normaliser,
    *,
    max_bytes: int = DEFAULT_MAX_BYTES,
    max_cell_bytes: int = DEFAULT_MAX_CELL_BYTES,
    wanted: Sequence[Records] = (value_records,),
) -> Iterator[pa.RecordBatch]:
    """Read a table file into records: one for the table and one for each column.

    Records that are `wanted` follow.

    Never raises for a bad table or column, whatever is wrong with it: its record carries the
    reason. Memory holds one table and its distinct values; batches are bounded.

    Parameters
    ----------
    rules
        Which columns are kept.
    normaliser
        Gives values their form.
    max_bytes, max_cell_bytes
        Limits of `read_table`.
    wanted
        What gives further records of the table.

    Yields
    ------
    pa.RecordBatch
        Of `record_schema.SCHEMA`, 1 to `MAX_RECORDS` rows. The table comes first, then all columns
        by position, then what is wanted, in that order; values by column, in order of first
        appearance.
    """
    content: Content | None = None
    table: Table | None = None
    reason = None
    try:
        content = read_content(file.path, max_bytes=max_bytes, shown=file.table)
        table = parse_table(file.table, content, max_bytes=max_bytes, max_cell_bytes=max_cell_bytes)
    except TableReadError as error:
        reason = str(error)
    except PlaceError:
        # A storage that breaks off says nothing of the table, without which the index would seem
        # whole.
        raise
    except Exception as error:  # a lake goes on, whatever one of its files makes a library raise
        reason = f"{file.table} cannot be read as a table: {_sentence(error)}"
    fingerprint = content.fingerprint if content else None
    content = None  # the bytes are no longer needed, and may be many
    yield batch_of([_table_record(file, table, fingerprint, reason)])
    if table is not None:
        yield from _column_records(file.table, table, rules, normaliser, wanted)


def _sentence(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}{f': {lines[0]}' if lines else ''}"


def _table_record(
    file: TableFile, table: Table | None, fingerprint: str | None, reason: str | None
) -> dict[str, object]:
    record = {
        "record": "table",
        "table": file.table,
        "format": file.format,
        "n_bytes": file.n_bytes,
    }
    record |= {"modified": file.modified, "version": file.version}
    record |= {"fingerprint": fingerprint, "reason": reason, "notes": table.notes if table else []}
    if table:
        record |= {"encoding": table.encoding, "delimiter": table.delimiter}
        record |= {"n_rows": table.n_rows, "n_columns": len(table.names)}
    return record


def _column_records(
    name: str, table: Table, rules: ColumnRules, normaliser: Normaliser, wanted: Sequence[Records]
) -> Iterator[pa.RecordBatch]:
    profiles, reasons = _profiles(table, rules)
    kept, values = _values(
        table, normaliser, [i for i, reason in enumerate(reasons) if reason is None], reasons
    )
    records, columns, labels = [], [], label_columns(table.names)
    for position, label in enumerate(labels):
        found = values[kept[position]] if position in kept else None
        record, reason = _column_record(profiles[position], found, reasons[position], rules)
        cells = table.columns[position]
        columns.append(
            ReadColumn(
                position, label, cells, profiles[position], found if reason is None else None
            )
        )
        about = {"table": name, "position": position, "label": label, "name": table.names[position]}
        records.append(about | record | {"n_rows": table.n_rows})
    for start in range(0, len(records), MAX_RECORDS):
        yield batch_of(records[start : start + MAX_RECORDS])
    for records_of in wanted:
        yield from records_of(ReadTable(name, columns, rules))


def _column_record(
    profile: ColumnProfile | None,
    values: ColumnValues | None,
    reason: str | None,
    rules: ColumnRules,
) -> tuple[dict[str, object], str | None]:
    """Return the record of a column, and the reason why it is left out.

    The normalised values may be a further reason.
    """
    record: dict[str, object] = {
        "record": "column",
        "n_distinct": profile.n_distinct if profile else None,
    }
    if values is not None:
        record["n_distinct"] = len(values.values)
        if len(values.values) < rules.min_distinct:
            reason = f"normalised: {reason_too_few(len(values.values), rules)}"
    if profile:
        record |= {
            "kind": profile.kind,
            "n_missing": profile.n_missing,
            "median_tokens": profile.median_tokens,
        }
    return record | {"reason": reason}, reason


def counted_column_records(
    about: dict[str, object],
    raw: pa.StructArray,
    n_rows: int,
    rules: ColumnRules,
    normaliser: Normaliser,
    *,
    wanted: Sequence[Records] = (value_records,),
) -> Iterator[pa.RecordBatch]:
    """Convert one column with counted distinct cells into records.

    One record is for the column. Records that are `wanted` follow.

    Parameters
    ----------
    about
        The fields ``table``, ``position``, ``name`` and ``label``.
    raw
        ``values`` and ``counts``: distinct cells as they stand, white space and all, without null,
        and how often each occurs.
    n_rows
        Cells, empty ones included.

    Yields
    ------
    pa.RecordBatch
        As `table_records` does for a column.
    """
    trimmed = pa.table(
        [pc.utf8_trim_whitespace(raw.field("values")), raw.field("counts")], ["value", "n"]
    )
    trimmed = trimmed.filter(pc.greater(pc.binary_length(trimmed["value"]), 0)).group_by(
        "value", use_threads=False
    )
    sums = trimmed.aggregate([("n", "sum")]).combine_chunks()
    found = (pa.chunked_array(sums["value"]).combine_chunks(), sums["n_sum"].to_numpy())
    [profile] = profile_counted([found], [n_rows], max_number_fraction=rules.max_number_fraction)
    reason = reason_left_out(profile, rules)
    values = _normalised_values([raw], normaliser)[0] if reason is None else None
    record, reason = _column_record(profile, values, reason, rules)
    yield batch_of([about | record | {"n_rows": n_rows}])
    column_position, label = int(str(about["position"])), str(about["label"])
    column = ReadColumn(
        column_position, label, raw.field("values"), profile, values if reason is None else None
    )
    for records_of in wanted:
        yield from records_of(ReadTable(str(about["table"]), [column], rules))


def _profiles(
    table: Table, rules: ColumnRules
) -> tuple[list[ColumnProfile | None], list[str | None]]:
    """Profile all columns; where that fails, none of them is kept, and the reason says why."""
    try:
        profiles = profile_columns(table.columns, max_number_fraction=rules.max_number_fraction)
    except Exception as error:  # see table_records
        reason = f"its table could not be profiled: {_sentence(error)}"
        return [None] * len(table.names), [reason] * len(table.names)
    return list(profiles), [reason_left_out(profile, rules) for profile in profiles]


def _values(
    table: Table, normaliser: Normaliser, positions: list[int], reasons: list[str | None]
) -> tuple[dict[int, int], list[ColumnValues]]:
    """Return the values of the columns at `positions`, and the index of each column's values.

    A failure becomes the reason of these columns.
    """
    try:
        found = column_values([table.columns[p] for p in positions], normaliser)
    except Exception as error:  # see table_records
        for position in positions:
            reasons[position] = f"its table could not be normalised: {_sentence(error)}"
        return {}, []
    return {position: i for i, position in enumerate(positions)}, found


def column_values(columns: list[pa.StringArray], normaliser: Normaliser) -> list[ColumnValues]:
    """Return the distinct normalised values of each column, by first appearance.

    Missing values are left out.

    Examples
    --------
    >>> found = column_values([pa.array([" Rome", "ROME", None, "Oslo"])], Normaliser())[0]
    >>> found.values.to_pylist(), found.texts.to_pylist(), found.counts.to_pylist()
    (['rome', 'oslo'], ['Rome', 'Oslo'], [2, 1])
    """
    # Distinct raw values first, white space and all: cells are mostly repeats.
    return _normalised_values([column.drop_null().value_counts() for column in columns], normaliser)


def _normalised_values(raw: list[pa.StructArray], normaliser: Normaliser) -> list[ColumnValues]:
    normalised = normaliser.normalise_columns([counts.field("values") for counts in raw])
    return [_grouped(values, found) for values, found in zip(normalised, raw, strict=True)]


def _grouped(normalised: pa.StringArray, raw: pa.StructArray) -> ColumnValues:
    present = normalised.is_valid()
    encoded = normalised.filter(present).dictionary_encode()
    codes = encoded.indices.to_numpy()
    texts, counts = (
        raw.field("values").filter(present),
        raw.field("counts").filter(present).to_numpy(),
    )
    totals = np.bincount(codes, weights=counts, minlength=len(encoded.dictionary)).astype(np.int64)
    _, first = np.unique(codes, return_index=True)
    return ColumnValues(
        encoded.dictionary, pc.utf8_trim_whitespace(texts.take(pa.array(first))), pa.array(totals)
    )


def _value_batches(name: str, columns: dict[int, ColumnValues]) -> Iterator[pa.RecordBatch]:
    """Yield the value records of one table, small columns together in one batch."""
    pending: list[pa.RecordBatch] = []
    n_pending = 0
    for position, column in columns.items():
        start = 0
        while start < len(column.values):
            length = min(len(column.values) - start, MAX_RECORDS - n_pending)
            pending.append(_value_batch(name, position, column, start, length))
            start, n_pending = start + length, n_pending + length
            if n_pending == MAX_RECORDS:
                yield pa.concat_batches(pending)
                pending, n_pending = [], 0
    if pending:
        yield pa.concat_batches(pending)


def _value_batch(
    name: str, position: int, column: ColumnValues, start: int, length: int
) -> pa.RecordBatch:
    given = {
        "record": pa.repeat("value", length),
        "table": pa.repeat(name, length),
        "position": pa.repeat(pa.scalar(position, pa.int32()), length),
        "value": column.values.slice(start, length),
        "text": column.texts.slice(start, length),
        "count": column.counts.slice(start, length),
    }
    return batch_of_columns(given)
