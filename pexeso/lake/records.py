"""Tables as a stream of records.

The records are the tables, their columns, and the distinct values of the columns that are kept.
Small tables are read into records many at a time, since a pass over an array costs more than the
cells of one of them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import PlaceError, TableReadError
from pexeso.lake.catalog import column_batches, record_batches
from pexeso.lake.cells import CountedCells
from pexeso.lake.choose import (
    ColumnProfile,
    ColumnRules,
    passes_over,
    profile_cells,
    reason_left_out,
    reason_too_few,
)
from pexeso.lake.columns import label_columns
from pexeso.lake.containers.reader import OpenTable, TablesInTurn, reading_options, with_reading
from pexeso.lake.files import TableFile
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.readers.table import (
    DEFAULT_MAX_BYTES,
    DEFAULT_MAX_CELL_BYTES,
    Table,
    fingerprint_file,
)
from pexeso.lake.typed.parquet import TypedRows

# Tables are taken together up to so many bytes of cells; a larger one is taken alone.
BATCH_BYTES = 1 << 20

# What a table is counted for at least, so that empty ones are bounded too.
_RECORD_BYTES = 1 << 10
# The name of a table, the table, and its file.
_Read = tuple[str, Table, OpenTable]


@dataclass(frozen=True)
class ColumnValues:
    """Distinct normalised values of a column, with one raw text and the cell count of each."""

    values: pa.StringArray
    texts: pa.StringArray
    counts: pa.Int64Array


@dataclass(frozen=True)
class ReadColumn:
    """A column of a table that was read.

    It has no `values` where it is left out of the catalog's columns.
    """

    position: int
    label: str
    cells: pa.Array
    profile: ColumnProfile | None
    values: ColumnValues | None


@dataclass(frozen=True)
class TableRows:
    labels: Sequence[str]
    columns: Sequence[pa.StringArray]
    normaliser: Normaliser
    first_row: int = 0
    typed: Callable[[], Iterator[TypedRows]] | None = None

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def resolved(self) -> Sequence[pa.StringArray]:
        if self.normaliser.aliases is None:
            return self.columns
        return [self.normaliser.resolved(column) for column in self.columns]


@dataclass(frozen=True)
class ReadTable:
    """A table that was read, or one column of it, and the rules by which columns are kept.

    It has no `rows` where columns were read one by one. `readings` are those of cells that are
    compared for equality (`pexeso.lake.readings`).
    """

    name: str
    columns: Sequence[ReadColumn]
    rules: ColumnRules
    readings: tuple[str, ...]
    rows: TableRows | None = None


# What a part of an index wants of tables, as batches of `catalog.SCHEMA`.
Records = Callable[[Sequence[ReadTable]], Iterator[pa.RecordBatch]]


def value_records(tables: Sequence[ReadTable]) -> Iterator[pa.RecordBatch]:
    yield from column_batches(
        "value",
        (
            (
                table.name,
                column.position,
                {"value": values.values, "text": values.texts, "count": values.counts},
            )
            for table in tables
            for column in table.columns
            if (values := column.values) is not None
        ),
    )


def lake_records(
    files: Iterable[TableFile],
    rules: ColumnRules,
    normaliser: Normaliser,
    *,
    max_bytes: int = DEFAULT_MAX_BYTES,
    max_cell_bytes: int = DEFAULT_MAX_CELL_BYTES,
    wanted: Sequence[Records] = (value_records,),
) -> Iterator[pa.RecordBatch]:
    """Read table files into records: one for each table and one for each column.

    Records that are `wanted` follow. Those of a table do not depend on the tables that are read
    with it.

    Never raises for a bad table or column, whatever is wrong with it: its record carries the
    reason. Memory holds one table and its distinct values, or `BATCH_BYTES` of small ones; batches
    are bounded.
    """
    records: list[dict[str, object]] = []
    tables: list[_Read] = []
    n_bytes = 0
    with TablesInTurn() as in_turn:
        for file in files:
            record, table, opened = _read(in_turn, file, max_bytes, max_cell_bytes)
            size = sum(column.nbytes for column in table.columns) if table else 0
            if n_bytes + size + _RECORD_BYTES > BATCH_BYTES and records:
                yield from _records(records, tables, rules, normaliser, wanted)
                records, tables, n_bytes = [], [], 0
            records.append(record)
            n_bytes += size + _RECORD_BYTES
            if table is not None and opened is not None:
                tables.append((file.table, table, opened))
    if records:
        yield from _records(records, tables, rules, normaliser, wanted)


def _read(
    in_turn: TablesInTurn, file: TableFile, max_bytes: int, max_cell_bytes: int
) -> tuple[dict[str, object], Table | None, OpenTable | None]:
    opened: OpenTable | None = None
    table: Table | None = None
    reason = fingerprint = None
    try:
        opened = in_turn.open(
            file.path,
            file.member,
            shown=file.table,
            options=reading_options(file.reading),
            max_bytes=max_bytes,
        )
        table = opened.text(max_cell_bytes=max_cell_bytes)
    except TableReadError as error:
        reason = str(error)
        if opened is None and file.member is None and file.n_bytes <= max_bytes:
            # What can be read and not unpacked is the same as long as its bytes are.
            fingerprint = with_reading(fingerprint_file(file.path), file.reading)
    except PlaceError:
        # A storage that breaks off says nothing of the table, without which the index would seem
        # whole.
        raise
    except Exception as error:  # a lake goes on, whatever one of its files makes a library raise
        reason = f"{file.table} cannot be read as a table: {_sentence(error)}"
    if opened is not None:
        fingerprint = with_reading(opened.fingerprint, file.reading)
        if table is not None and opened.format == "delimited":
            # Its rows are those of the texts, so that the file is not held beside them.
            opened = replace(opened, source=replace(opened.source, data=None))
    return _table_record(file, table, fingerprint, reason), table, opened


def _sentence(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}{f': {lines[0]}' if lines else ''}"


def _table_record(
    file: TableFile, table: Table | None, fingerprint: str | None, reason: str | None
) -> dict[str, object]:
    names = ("table", "format", "n_bytes", "modified", "version", "container")
    record = {"record": "table", **{name: getattr(file, name) for name in names}}
    record |= {"fingerprint": fingerprint, "reason": reason, "notes": table.notes if table else []}
    if table:
        record |= {"encoding": table.encoding, "delimiter": table.delimiter}
        record |= {"n_rows": table.n_rows, "n_columns": len(table.names)}
    return record


def _records(
    records: list[dict[str, object]],
    tables: list[_Read],
    rules: ColumnRules,
    normaliser: Normaliser,
    record_sources: Sequence[Records],
) -> Iterator[pa.RecordBatch]:
    yield from record_batches(records)
    pairs = _read_columns(tables, rules, normaliser)
    yield from record_batches(record for _, of_columns in pairs for record in of_columns)
    read = [table for table, _ in pairs]
    for records_of in record_sources:
        yield from records_of(read)


def _read_columns(
    tables: list[_Read], rules: ColumnRules, normaliser: Normaliser
) -> list[tuple[ReadTable, list[dict[str, object]]]]:
    """Return each table with its columns, and the records of these.

    What fails for tables together is done for each by itself; then the reason is that of a table.
    """
    columns = [column for _, table, _ in tables for column in table.columns]
    reasons: list[str | None] = [None] * len(columns)
    raw: list[pa.Array] = list(columns)
    profiles: list[ColumnProfile | None] = [None] * len(columns)
    values: dict[int, ColumnValues] = {}
    doing = "profiled"
    try:
        for run in passes_over(columns):
            cells = CountedCells.of(columns[run])
            read = resolved_cells(cells, normaliser)
            raw[run] = [texts for (texts,) in read.slices(read.texts)]
            n_rows, fraction = list(map(len, columns[run])), rules.max_number_fraction
            some = profile_cells(read.trimmed(), n_rows, max_number_fraction=fraction)
            profiles[run] = some
            reasons[run] = [reason_left_out(profile, rules) for profile in some]
            doing = "normalised"
            numbers = [at for at, reason in enumerate(reasons[run]) if reason is None]
            kept = normalised_values(cells.only(numbers), normaliser)
            values.update(zip([run.start + at for at in numbers], kept, strict=True))
            doing = "profiled"
    except Exception as error:  # see lake_records
        if len(tables) > 1:
            return [pair for entry in tables for pair in _read_columns([entry], rules, normaliser)]
        reason = f"its table could not be {doing}: {_sentence(error)}"
        reasons = [own_reason or reason for own_reason in reasons]
    of_columns = zip(raw, profiles, map(values.get, range(len(columns))), reasons, strict=True)
    return [
        _read_table(entry, rules, [next(of_columns) for _ in entry[1].columns], normaliser)
        for entry in tables
    ]


# Cells, profile and values of a column, and the reason why it is left out.
_OfColumn = tuple[pa.Array, ColumnProfile | None, ColumnValues | None, str | None]


def _read_table(
    read: _Read, rules: ColumnRules, of_columns: Sequence[_OfColumn], normaliser: Normaliser
) -> tuple[ReadTable, list[dict[str, object]]]:
    name, table, opened = read
    records, columns, labels = [], [], label_columns(table.names)
    for position, (label, (cells, profile, values, reason)) in enumerate(
        zip(labels, of_columns, strict=True)
    ):
        record, reason = _column_record(profile, values, reason, rules)
        selected_values = values if reason is None else None
        columns.append(ReadColumn(position, label, cells, profile, selected_values))
        about = {"table": name, "position": position, "label": label, "name": table.names[position]}
        records.append(about | record | {"n_rows": table.n_rows})
    typed = partial(opened.rows, table)
    rows = TableRows(labels, table.columns, normaliser, typed=typed)
    return ReadTable(name, columns, rules, normaliser.readings, rows), records


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
            reason = f"{reason_too_few(len(values.values), rules)}: counted once normalised"
    if profile:
        record |= {"kind": profile.value_kind, "n_missing": profile.n_missing}
        record |= {"median_tokens": profile.median_tokens}
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

    n_rows: cells, empty ones included.
    """
    cells = CountedCells.joined([raw])
    read = resolved_cells(cells, normaliser)
    [profile] = profile_cells(
        read.trimmed(), [n_rows], max_number_fraction=rules.max_number_fraction
    )
    reason = reason_left_out(profile, rules)
    values = normalised_values(cells, normaliser)[0] if reason is None else None
    record, reason = _column_record(profile, values, reason, rules)
    yield from record_batches([about | record | {"n_rows": n_rows}])
    column_position, label = int(str(about["position"])), str(about["label"])
    column = ReadColumn(
        column_position, label, read.texts, profile, values if reason is None else None
    )
    for records_of in wanted:
        table = ReadTable(str(about["table"]), [column], rules, normaliser.readings)
        yield from records_of([table])


def resolved_cells(cells: CountedCells, normaliser: Normaliser) -> CountedCells:
    texts = normaliser.resolved_distinct(cells.texts, cells.columns)
    return cells if texts is cells.texts else cells.replaced(texts, np.ones(len(texts), bool))[0]


def normalised_values(cells: CountedCells, normaliser: Normaliser) -> list[ColumnValues]:
    """Return the distinct normalised values of each column, without missing ones."""
    normalised = normaliser.normalise_distinct(cells.texts, cells.columns)
    present = normalised.is_valid().to_numpy(zero_copy_only=False)
    tally, first = cells.replaced(normalised, present)
    texts = pc.utf8_trim_whitespace(cells.texts.take(pa.array(first)))
    return [
        ColumnValues(*arrays) for arrays in tally.slices(tally.texts, texts, pa.array(tally.counts))
    ]
