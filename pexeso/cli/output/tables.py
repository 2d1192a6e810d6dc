"""Write an Arrow table to a file, in the format that its name asks for, or as CSV on stdout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pexeso.cli.output.output import escapes_formulas, write_data
from pexeso.service.table_files import csv_text, write_table_file

if TYPE_CHECKING:
    import pyarrow as pa


def write_table(table: pa.Table, path: str | None, *, overwrite: bool) -> None:
    """Write a table to a file, whole or not at all; without a path as CSV on stdout."""
    escape = escapes_formulas()
    if path is None:
        write_data(csv_text(table, escape_formulas=escape))
    else:
        write_table_file(table, path, overwrite=overwrite, escape_formulas=escape)
