"""The formats that join graphs are written in."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from pexeso.errors import InputError, OutputError
from pexeso.joins.exports.dbt import DBT
from pexeso.joins.exports.edges import Edges
from pexeso.joins.exports.formats import ExportFormat, Naming
from pexeso.joins.exports.graphml import GRAPHML
from pexeso.joins.exports.mermaid import MERMAID
from pexeso.joins.exports.openmetadata import OPENMETADATA
from pexeso.joins.exports.plain_files import CSV, JSONL, PARQUET
from pexeso.runtime.formatting import shown
from pexeso.store.io.whole_files import require_free, written_whole

OF_FILES = {
    file_format.suffix: file_format for file_format in (JSONL, CSV, PARQUET, MERMAID, GRAPHML)
}
"""By what the name of a file ends in."""

FORMATS = {
    export_format.name: export_format for export_format in (DBT, OPENMETADATA, MERMAID, GRAPHML)
}
"""For other tools, by name."""


def format_of_file(path: str) -> ExportFormat:
    """Return the format that the name of a file asks for.

    Examples
    --------
    >>> format_of_file("joins.mmd").name
    'mermaid'
    """
    export_format = OF_FILES.get(Path(path).suffix.lower())
    if export_format is None:
        *others, last = OF_FILES
        raise InputError(
            f"A file of a join graph must end in {', '.join(others)} or {last}. Got {path!r}."
        )
    return export_format


def format_named(name: str) -> ExportFormat:
    """Return a format for another tool.

    Examples
    --------
    >>> format_named("dbt").file
    'lake_joins.yml'
    """
    if name not in FORMATS:
        raise InputError(f"format must be one of {', '.join(FORMATS)}. Got {shown(name)} instead.")
    return FORMATS[name]


def write_export(
    form: ExportFormat,
    edges: Edges,
    path: str | os.PathLike[str],
    *,
    naming: Naming | None = None,
    overwrite: bool = False,
) -> Path:
    """Write edges to a file, whole or not at all.

    Parameters
    ----------
    form : ExportFormat
    edges : Edges
    path : path
        The file; of a format that is read from folders the folder, which is made if it is absent.
    naming : Naming, optional
    overwrite : bool
        Replace a file that is there.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    OutputError
        The file is there, or cannot be written.
    """
    target = target_of(form, path, overwrite=overwrite)
    folders = [] if form.file is None else _make_folder(target.parent)
    try:
        with written_whole(target, overwrite=overwrite) as temporary:
            form.write(edges, temporary, Naming() if naming is None else naming)
    except BaseException:
        with suppress(OSError):  # somebody else has put something into it
            for folder in folders:
                folder.rmdir()
        raise
    return target


def _make_folder(folder: Path) -> list[Path]:
    """Make a folder that may be there, and return those that were made, the innermost first."""
    absent = [path for path in (folder, *folder.parents) if not os.path.exists(path)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"The folder '{folder}' cannot be made: {error.strerror or error}."
        ) from error
    return absent


def target_of(form: ExportFormat, path: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """Return the file that edges go to; refuse one that is there, or in no folder."""
    target = Path(path) if form.file is None else Path(path) / form.file
    if form.file is None or os.path.lexists(target):  # a folder that is absent is made
        require_free(target, overwrite=overwrite)
    return target
