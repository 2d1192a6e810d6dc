"""Tables with a log that says which of their files count: Delta Lake and Apache Iceberg.

Files of older versions lie beside the live ones, so the folder alone does not tell the rows of such
a table. Its log is read by the library of its format, where that is installed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pexeso.runtime.formatting import first_line

_LOG = re.compile(
    r"(?P<folder>.*?)/?(?:(?P<delta>_delta_log/)|(?P<iceberg>metadata/[^/]+\.metadata\.json$))"
)

NOTE = "its log says which of its files count"
"""What is noted of such a table: it is not moved away from its catalog and log."""


_MAX_DELTA_READER = 3
_DELTA_FEATURES = frozenset(
    ("columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck")
)
"""Features that change nothing, or are looked at below."""


class CannotRead(Exception):
    """The live files of a table cannot be told: a clause."""


@dataclass(frozen=True)
class LoggedTable:
    """A folder with a log."""

    folder: str
    kind: str


def logged_tables(names: Iterable[str]) -> list[LoggedTable]:
    """Return the tables with a log among the files of a lake.

    Examples
    --------
    >>> logged_tables(["a/_delta_log/0.json", "a/part-0.parquet", "b/metadata/v1.metadata.json"])
    [LoggedTable(folder='a', kind='delta'), LoggedTable(folder='b', kind='iceberg')]
    """
    kinds = {}
    for name in names:
        match = _LOG.match(name)
        if match is not None:
            kind = "delta" if match["delta"] else "iceberg"
            kinds.setdefault(match["folder"] or ".", kind)
    return [LoggedTable(folder, kind) for folder, kind in sorted(kinds.items())]


def log_in(folder: Path) -> LoggedTable | None:
    """Return the table whose log lies in a folder of this machine; None where there is no log."""
    if (folder / "_delta_log").is_dir():
        return LoggedTable(".", "delta")
    if any((folder / "metadata").glob("*.metadata.json")):
        return LoggedTable(".", "iceberg")
    return None


def live_files(folder: Path, kind: str) -> list[str]:
    """Return the files of a table that hold its rows as they are now.

    Returns
    -------
    list of str
        POSIX paths relative to the folder, sorted.
    """
    read: Callable[[Path], list[str]] = {"delta": _of_delta, "iceberg": _of_iceberg}[kind]
    try:
        locations = read(folder)
    except ModuleNotFoundError:
        name, extra = {
            "delta": ("a Delta table", "delta"),
            "iceberg": ("an Iceberg table", "iceberg"),
        }[kind]
        raise CannotRead(
            f"it is {name}: install what reads its log with pip install 'pexeso[{extra}]'"
        ) from None
    except CannotRead:
        raise
    except Exception as error:  # of two libraries, whose errors have no common base
        raise CannotRead(f"its log cannot be read: {first_line(error)}") from error
    return sorted(_inside(folder, location) for location in locations)


def _of_delta(folder: Path) -> list[str]:
    from deltalake import DeltaTable

    table = DeltaTable(str(folder))
    protocol = table.protocol()
    unknown = set(protocol.reader_features or ()) - _DELTA_FEATURES
    if protocol.min_reader_version > _MAX_DELTA_READER or unknown:
        what = ", ".join(sorted(unknown)) or f"version {protocol.min_reader_version}"
        raise CannotRead(f"its log asks of readers what pexeso does not know: {what}")
    if table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
        raise CannotRead("its log gives its columns other names than its files have")
    if table.deletion_vectors().read_all().num_rows:  # whether or not its protocol names them
        raise CannotRead("its log deletes rows that its files have")
    return table.file_uris()


def _of_iceberg(folder: Path) -> list[str]:
    from pyiceberg.table import StaticTable

    metadata = sorted((folder / "metadata").glob("*.metadata.json"), key=_version)
    table = StaticTable.from_metadata(str(metadata[-1]))
    names = [
        {field.field_id: field.name for field in schema.fields} for schema in table.metadata.schemas
    ]
    now = {field.field_id: field.name for field in table.schema().fields}
    if any(now.get(number, name) != name for some in names for number, name in some.items()):
        raise CannotRead("its log gives its columns other names than its files have")
    tasks = list(table.scan().plan_files())
    if any(task.delete_files for task in tasks):
        raise CannotRead("its log deletes rows that its files have")
    return [task.file.file_path for task in tasks]


def _version(path: Path) -> tuple[int, str]:
    """Return what orders the versions of Iceberg's metadata: ``v3``, ``00003-<uuid>``."""
    number = re.match(r"v?(\d+)", path.name)
    return (int(number[1]) if number else -1, path.name)


def _inside(folder: Path, location: str) -> str:
    """Return a path of a log relative to its table's folder."""
    path = Path(unquote(urlsplit(location).path) if "://" in location else location)
    path = folder / path  # the path alone, if it is absolute
    try:
        inside = path.resolve().relative_to(folder.resolve())
    except ValueError:
        raise CannotRead(f"its log names the file {location}, which lies elsewhere") from None
    return inside.as_posix()
