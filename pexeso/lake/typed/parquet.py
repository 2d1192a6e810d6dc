"""Parquet to a table: every type becomes text."""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pexeso.errors import TableReadError
from pexeso.lake.readers.budget import ReadingBudget
from pexeso.lake.readers.table import Table, check_width
from pexeso.lake.readers.typed import check_footer, open_parquet
from pexeso.lake.typed.text import TextColumns, is_coded, parts_of
from pexeso.runtime.formatting import first_line

_ROWS_A_BATCH = 4096
_ROWS_A_PROBE = 16
_MAX_REPEATED_BYTES = 256


def parse_parquet(
    shown: str,
    data: bytes,
    *,
    max_bytes: int,
    max_cell_bytes: int,
    budget: ReadingBudget | None = None,
) -> Table:
    """Read a Parquet file as strings: dates and times in ISO form, nested values as JSON text.

    See `TextColumns` for cells that have no text.

    A file of a few hundred bytes may say a long text as often as it likes. So columns with long
    ones are read as Parquet stores them, a list of different texts and numbers into it, and it is
    known how much they come to before they are written out. Besides `data` and the columns, memory
    holds one page of each column, of at most 2 GiB.
    """
    budget = budget or ReadingBudget(shown, len(data), max_bytes)
    try:
        file = open_parquet(pa.BufferReader(data))
        check_width(shown, len(file.schema_arrow))
        check_footer(budget, file.metadata)
        # What was written as a dictionary is read as one: Arrow would make it one by a cast, which
        # a wrong byte breaks off.
        coded = {field.name for field in file.schema_arrow if is_coded(field.type)}
        coded |= _long_texts(file, data, max_bytes // (4 * _ROWS_A_BATCH), budget)
        if coded:
            file = open_parquet(pa.BufferReader(data), coded)
        columns = TextColumns(
            budget, file.schema_arrow.names, max_bytes=max_bytes, max_cell_bytes=max_cell_bytes
        )
        for batch in file.iter_batches(batch_size=_ROWS_A_BATCH, use_threads=False):
            columns.add(batch.columns)
        return columns.table()
    except (pa.ArrowException, OSError) as error:
        raise TableReadError(
            f"{shown} is no readable Parquet file: {first_line(error)}."
        ) from error


def _long_texts(file: pq.ParquetFile, data: bytes, limit: int, budget: ReadingBudget) -> set[str]:
    """Return the columns whose dictionary holds a text of more bytes than the limit.

    The limit is at most 256 bytes for columns where a cell holds many texts.
    """
    leaves = [file.schema.column(number) for number in range(len(file.schema))]
    texts = [leaf for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
    paths: set[str] = set()
    for leaf in texts:
        coded = open_parquet(pa.BufferReader(data), [leaf.path])
        is_flat = leaf.max_repetition_level == 0
        max_bytes = limit if is_flat else min(limit, _MAX_REPEATED_BYTES)
        n_rows = _ROWS_A_BATCH if is_flat else _ROWS_A_PROBE
        longest = 0
        for group in range(file.num_row_groups):
            # The list comes with the first value, in all its length.
            batches = coded.iter_batches(
                n_rows, row_groups=[group], columns=[leaf.path], use_threads=False
            )
            for batch in batches:
                budget.check_seconds()
                longest = max(map(_longest, batch.columns), default=0)
                if longest:
                    break
            if longest > max_bytes:
                paths.add(leaf.path)
                break
    return paths


def _longest(values: pa.Array) -> int:
    """Return the bytes of the longest text that is listed anywhere in an array."""
    if is_coded(values.type):
        return pc.max(pc.binary_length(values.dictionary)).as_py() or 0
    return max(map(_longest, parts_of(values)), default=0)
