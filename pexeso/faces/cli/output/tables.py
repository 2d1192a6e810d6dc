"""Write an Arrow table to a file, in the format that its name asks for, or as CSV on stdout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pexeso.errors import InputError
from pexeso.faces.cli.output.output import escapes_formulas, write_data
from pexeso.lake.frames.writing import WRITERS, csv_text, write_file
from pexeso.store.io.whole_files import require_free

if TYPE_CHECKING:
    import pyarrow as pa


def require_writable(
    path: str, *, overwrite: bool, option: str, formats: tuple[str, ...] = ()
) -> None:
    """Refuse a file, given by an option, that cannot be written.

    Its name has no ending of `formats`, or its folder is not there, or it is and may not be
    replaced.
    """
    allowed = formats or tuple(WRITERS)
    if not path.lower().endswith(allowed):
        *others, last = allowed
        listed = f"{', '.join(others)} or {last}" if others else last
        raise InputError(f"{option} must end in {listed}. Got {path!r} instead.")
    require_free(path, overwrite=overwrite)


def write_table(table: pa.Table, path: str | None, *, overwrite: bool) -> None:
    """Write a table to a file, whole or not at all; without a path as CSV on stdout.

    Lists become JSON texts in CSV. Other formats keep the types that the table has.
    """
    if path is None:
        write_data(csv_text(table, escape_formulas=escapes_formulas()))
        return
    write_file(table, path, overwrite=overwrite, escape_formulas=escapes_formulas())
