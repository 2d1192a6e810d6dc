"""Formats of table files by the ends of their names, and the tables inside one file.

The name of a table inside a file is the file's own, followed by what leads into it: ``/`` and a
path in an archive, ``#`` and the name of a sheet or of a database's table: ``file.zip/inner.csv``,
``book.xlsx#Sheet1``, ``file.zip/book.xlsx#Sheet1``.

An archive comes from anywhere. It is never unpacked to disk; a member is read into memory under a
limit, and an archive that unpacks to far more than archives of tables do is refused.
"""

from __future__ import annotations

import os
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from pexeso.errors import TableReadError
from pexeso.lake.readers.options import SETTINGS_NAME
from pexeso.lake.readers.table import FileSource, ReadingBudget, check_size, unpacked
from pexeso.runtime.formatting import coded_name, first_line, listed_names
from pexeso.store.io.location import Location

if TYPE_CHECKING:
    from pexeso.lake.typed.sandbox import SandboxedFormat, TypedTable


# How the names of packed files of text end, after the extension of the text.
PACKED_EXTENSIONS = (".gz", ".bz2", ".xz", ".zst")
_KINDS_OF_FILES = {
    "a document": ".pdf .doc .docx .odt .rtf .tex .epub .pages",
    "prose": ".md .rst .adoc .org",
    "slides": ".ppt .pptx .odp .key",
    "a picture": ".png .jpg .jpeg .gif .svg .webp .bmp .tif .tiff .ico .eps .psd .ai",
    "sound or film": ".mp3 .mp4 .wav .ogg .flac .mov .avi .mkv .webm",
    "a web page; save its tables as CSV": ".html .htm .xhtml .mhtml",
    "markup or settings": ".xml .yaml .yml .toml .ini .cfg .conf .css .scss .rss .kml .gml .gpx",
    "program code": ".py .r .rmd .sql .js .ts .ipynb .sh .java .scala .c .h .cpp .go .rs .jl .do "
    ".m .php .rb .pl .bat .ps1 .mk",
    "an archive of a kind that is not opened; unpack it": ".tar .tgz .tbz .tbz2 .txz .7z .rar .jar "
    ".gz .bz2 .xz .zst .lz4 .z .cab .iso .dmg .whl",
    "a map": ".shp .shx .prj .cpg .gpkg .topojson .mbtiles .sbn .sbx",
    "a file of statistics software; export it as CSV or Parquet": ".sav .por .dta .sas7bdat .xpt "
    ".rds .rda .rdata .mat",
    "a dBASE table; export it as CSV": ".dbf",
    "data of a program; export it as CSV or Parquet": ".pkl .pickle .npy .npz .h5 .hdf5 .nc .hdf "
    ".pt .bin .msgpack .pb .tfrecord .mdb .accdb .numbers .fwf",
    "data of a program, or text; say in lake.toml how it is read if it is text": ".dat .data .dsv",
    "a log or a temporary file": ".log .lock .tmp .bak .swp .crc .md5 .sha1 .sha256 .checksum",
}
_REASON_OF_EXTENSION = {
    extension: f"not a table: {kind}"
    for kind, extensions in _KINDS_OF_FILES.items()
    for extension in extensions.split()
}


@dataclass(frozen=True)
class FileFormat:
    name: str
    extensions: tuple[str, ...]
    is_text: bool = False
    holds_several: bool = False
    reader: int = 1


# All formats that are read; the last are of folders that are one table, and of databases.
FORMATS = (
    FileFormat("delimited", (".csv", ".tsv", ".tab", ".psv", ".txt"), is_text=True, reader=4),
    FileFormat("jsonlines", (".jsonl", ".ndjson"), is_text=True, reader=3),
    FileFormat("json", (".json", ".geojson"), is_text=True, reader=3),
    FileFormat("parquet", (".parquet",), reader=5),
    FileFormat("arrow", (".feather", ".arrow", ".arrows", ".ipc"), reader=4),
    FileFormat("orc", (".orc",), reader=3),
    FileFormat("avro", (".avro",), reader=3),
    FileFormat(
        "spreadsheet", (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), holds_several=True, reader=4
    ),
    FileFormat(
        "database",
        (".sqlite", ".sqlite3", ".db", ".db3", ".duckdb", ".ddb"),
        holds_several=True,
        reader=3,
    ),
    FileFormat("archive", (".zip",), holds_several=True, reader=5),
    *(FileFormat(kind, (), reader=2) for kind in ("delta", "iceberg")),
    *(FileFormat(kind, ()) for kind in ("hive", "postgresql")),
)

# The version of the reader of each format, which an index records.
READERS = {file_format.name: file_format.reader for file_format in FORMATS}

_FORMAT_OF_EXTENSION = {
    extension: file_format for file_format in FORMATS for extension in file_format.extensions
}

# How the names of table files end, packed ones left out.
TABLE_EXTENSIONS = tuple(_FORMAT_OF_EXTENSION)

_NOT_A_TABLE = (
    f"not a table by its extension; tables end in {', '.join(TABLE_EXTENSIONS)} "
    f"(text also in {', '.join(PACKED_EXTENSIONS)})"
)


def format_of(path: str | os.PathLike[str]) -> FileFormat | None:
    """Return the format that a file's name stands for, None where it stands for none.

    >>> format_of("Cities.CSV.gz").name
    'delimited'
    >>> format_of("book.xlsx").holds_several
    True
    >>> format_of("notes.pdf") is None
    True
    """
    name = os.path.basename(os.fspath(path)).lower()
    text = without_packing(name)
    file_format = _FORMAT_OF_EXTENSION.get(os.path.splitext(text)[1])
    is_packed_twice = text != name and file_format is not None and not file_format.is_text
    return None if is_packed_twice else file_format


def holds_several(name: str) -> bool:
    file_format = format_of(name)
    return file_format is not None and file_format.holds_several


def table_format(path: str | os.PathLike[str]) -> str | None:
    """Return the name of the format that a file's name stands for; None where there is none."""
    file_format = format_of(path)
    return file_format.name if file_format else None


def without_packing(name: str) -> str:
    """Return a name without the extension that says how the file is packed."""
    stem, extension = os.path.splitext(name)
    return stem if extension.lower() in PACKED_EXTENSIONS else name


def reason_not_read(path: str | os.PathLike[str]) -> str:
    """Return why a file is not read as a table, a clause."""
    name = os.path.basename(os.fspath(path)).lower()
    if name == SETTINGS_NAME:
        return "the settings of a lake; they count in the lake's own folder alone"
    text = without_packing(name)
    if text != name and _FORMAT_OF_EXTENSION.get(os.path.splitext(text)[1]) is not None:
        return "a packed file of a format that is packed already; unpack it"
    return _REASON_OF_EXTENSION.get(os.path.splitext(name)[1], _NOT_A_TABLE)


# Members of an archive that are looked at; the others are listed with this reason.
MAX_MEMBERS = 10_000

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
_NAMES_SHOWN = 8


class Member(NamedTuple):
    """One file in an archive, its size unpacked, and why it is not read."""

    name: str
    n_bytes: int
    reason: str | None = None


class Archive:
    """An archive that is opened once, when it is first read; to be closed.

    After an error it is opened again: what holds it open turns the errors of its storage into ours,
    and does so once.
    """

    def __init__(self, source: FileSource) -> None:
        self.source = source
        self._stack = ExitStack()
        self._file: zipfile.ZipFile | None = None
        self._by_path: dict[str, zipfile.ZipInfo] = {}

    def close(self) -> None:
        self._file = None
        self._stack.close()

    def members(self) -> list[Member]:
        with self._opened() as file:
            infos = _files(file)
            self._check_sizes(file, infos)
            return [self._member(info, number) for number, info in enumerate(infos)]

    def _member(self, info: zipfile.ZipInfo, number: int) -> Member:
        path = normalised_path(info.filename)
        if self._by_path[path] is not info:
            reason = "another file of the archive has the same path"
            return Member(info.filename, info.file_size, reason)
        return Member(path, info.file_size, _reason(info, number, self.source.max_bytes))

    def find(self, *names: str) -> str:
        with self._opened():
            path = next((name for name in names if name in self._by_path), None)
        if path is None:
            raise TableReadError(f"{self.source.shown} holds no such file: {names[0]!r}.")
        return path

    def read(self, path: str) -> FileSource:
        source, path = self.source, self.find(path)
        shown = f"{source.shown}/{path}"
        with self._opened() as file:
            info = self._by_path[path]
            self._check_sizes(file, [info])
            if (reason := _reason(info, 0, source.max_bytes)) is not None:
                raise TableReadError(f"{shown} cannot be read: {reason}.")
            with file.open(info) as stream:
                data = stream.read(source.max_bytes + 1)
        check_size(shown, len(data), source.max_bytes)
        return FileSource(shown, data=data, max_bytes=source.max_bytes, n_stored=info.compress_size)

    def _check_sizes(self, archive: zipfile.ZipFile, infos: list[zipfile.ZipInfo]) -> None:
        stream, shown = archive.fp, self.source.shown
        if stream is None:
            raise TableReadError(f"{shown} was closed while it was read.")
        n_packed = stream.seek(0, 2)
        if sum(info.compress_size for info in infos) > n_packed:
            raise TableReadError(
                f"{shown} is refused: its members lie in the same bytes, as in a zip bomb."
            )
        n_unpacked = sum(info.file_size for info in infos)
        allowed = ReadingBudget(shown, n_packed, sys.maxsize).max_unpacked
        if n_unpacked > allowed:
            raise TableReadError(
                f"{shown} is refused: its {n_packed:,} bytes unpack to {n_unpacked:,}, at most "
                f"{allowed:,} are allowed. Unpack it yourself if that is meant."
            )

    @contextmanager
    def _opened(self) -> Iterator[zipfile.ZipFile]:
        try:
            if self._file is None:
                self._file = self._stack.enter_context(_opened(self.source))
                self._by_path = _by_path(self._file)
            yield self._file
        except BaseException:
            self._file = None
            self._stack.__exit__(*sys.exc_info())  # raises it in words
            raise


@contextmanager
def _opened(source: FileSource) -> Iterator[zipfile.ZipFile]:
    try:
        with source.open() as stream, zipfile.ZipFile(stream) as archive:
            yield archive
    except (zipfile.BadZipFile, EOFError, zlib.error, OverflowError, ValueError) as error:
        reason = first_line(error) if str(error) else "it ends too early"
        raise TableReadError(
            f"{source.shown} is no zip archive, or a damaged one ({reason}); write or download it "
            "again."
        ) from error
    except (NotImplementedError, RuntimeError, OSError) as error:
        raise TableReadError(f"{source.shown} cannot be unpacked: {first_line(error)}.") from error


def normalised_path(name: str) -> str:
    """Return the path of a file in an archive: its name without empty parts and dots.

    A name that leads out of the archive stays as it is.

    >>> normalised_path("./d//a.csv"), normalised_path("../a.csv"), normalised_path("//a.csv")
    ('d/a.csv', '../a.csv', '//a.csv')
    """
    return name if _leads_out(_parts(name), name) else str(PurePosixPath(name))


def _parts(name: str) -> tuple[str, ...]:
    return PurePosixPath(name.replace("\\", "/")).parts


def _leads_out(parts: tuple[str, ...], name: str) -> bool:
    return not parts or parts[0].startswith("/") or ".." in parts or "\0" in name


def _files(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Return the files in the order of the archive; of those of one name the last, as unpacked."""
    by_name = {info.filename: info for info in archive.infolist() if info.filename[-1:] != "/"}
    return list(by_name.values())


def _by_path(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Return the files by their paths: of several the one that is called so, else the first."""
    files: dict[str, zipfile.ZipInfo] = {}
    for info in _files(archive):
        path = normalised_path(info.filename)
        if path not in files or path == info.filename:
            files[path] = info
    return files


def _reason(info: zipfile.ZipInfo, number: int, max_bytes: int) -> str | None:
    parts = _parts(info.filename)
    if _leads_out(parts, info.filename):
        return "its name leads out of the archive"
    if any(part.startswith((".", "__MACOSX")) for part in parts):
        return "hidden: its name starts with a dot"
    if number >= MAX_MEMBERS:
        return f"the archive has more than {MAX_MEMBERS:,} files, the most that are read"
    if info.flag_bits & 0x1:
        return "it is protected by a password"
    if info.compress_type not in _METHODS:
        return "it is packed by a method that is not read; pack it again"
    if info.file_size > max_bytes:
        return f"it holds more than {max_bytes:,} bytes, the most that is read (max_bytes)"
    return None


@dataclass(frozen=True)
class TableInside:
    """A table inside a file, or what is none.

    `n_bytes` are those of what it is read from, shared out among the tables of a book or database.
    """

    member: str
    format: str
    n_bytes: int
    reason: str | None = None


def tables_inside(source: FileSource, n_bytes: int) -> list[TableInside]:
    file_format = format_of(source.shown)
    if file_format is None or not file_format.holds_several:
        raise TableReadError(f"{source.shown} is no file that holds several tables.")
    if file_format.name != "archive":
        return _in_book(source, file_format.name, n_bytes)
    with closing(Archive(source)) as archive:
        return [table for member in archive.members() for table in _in_member(archive, member)]


def _in_member(archive: Archive, member: Member) -> list[TableInside]:
    path, file_format, reason = f"/{member.name}", format_of(member.name), member.reason
    kind = "archive"
    if reason is None and file_format is None:
        reason = reason_not_read(member.name)
    elif reason is None and file_format.name == "archive":
        reason = "an archive inside an archive; unpack it"
    elif reason is None:
        kind = file_format.name
        if file_format.holds_several:
            try:
                tables = _in_book(archive.read(member.name), kind, member.n_bytes)
                return [replace(table, member=f"{path}{table.member}") for table in tables]
            except TableReadError as error:
                reason = str(error)
    return [TableInside(path, kind, member.n_bytes, reason)]


def _in_book(source: FileSource, kind: str, n_bytes: int) -> list[TableInside]:
    tables = _sandboxed(kind).tables_in(source)
    share = n_bytes // max(1, len(tables))
    return [TableInside(f"#{coded_name(name)}", kind, share, reason) for name, reason in tables]


def _sandboxed(kind: str) -> SandboxedFormat:
    if kind == "spreadsheet":
        from pexeso.lake.typed.spreadsheets import SHEETS

        return SHEETS
    from pexeso.lake.typed.databases import DATABASES

    return DATABASES


def read_inner(source: FileSource, name: str) -> TypedTable:
    file_format = format_of(source.shown)
    return _sandboxed(file_format.name if file_format else "").read(source, name)


class Container:
    """A file that holds several tables, opened and hashed once for all of them.

    To be closed. The book that a table was last taken of is held in memory.
    """

    def __init__(self, source: FileSource) -> None:
        self.source = source
        self._archive = Archive(source)
        self._book: FileSource | None = None

    def close(self) -> None:
        self._book = None
        self._archive.close()

    def enter(self, member: str) -> tuple[FileSource, str | None]:
        """Return the file that holds the rows of a table, and the name of the sheet or table there.

        The name is None for a file of one table.
        """
        if member.startswith("#"):
            return self.source, unquote(member[1:])
        path = normalised_path(member[1:])
        # A '#' may be a part of a name in the archive: the longest one that exists is meant.
        ends = [len(path), *(position for position, sign in enumerate(path) if sign == "#")]
        name = self._archive.find(*(path[:end] for end in sorted(ends, reverse=True)))
        shown = f"{self.source.shown}/{name}"
        if self._book is None or self._book.shown != shown:
            self._book = None  # both would be in memory
            stored = self._archive.read(name)
            data = unpacked(shown, stored.data or b"", stored.max_bytes, stored.n_stored)
            inside = replace(stored, data=data)
            if name == path:
                return inside, None
            self._book = inside
        return self._book, unquote(path[len(name) + 1 :])


def split_member(path: Path | Location) -> tuple[Path | Location, str | None]:
    """Split the name of a table into the file and what leads into it; None where all is a file."""
    if isinstance(path, Location):
        for end in _ends_of_files(path.url):
            file = replace(path, url=path.url[:end], path=path.path[: end - len(path.url)])
            entry = file.look()
            if entry is not None and entry.kind == "file":
                return file, path.url[end:]
        return path, None
    text = str(path)
    # Not the methods of paths, which raise for names that no file can have.
    for end in () if os.path.exists(text) else _ends_of_files(text):
        if os.path.isfile(text[:end]):
            return Path(text[:end]), text[end:]
    return path, None


def _ends_of_files(text: str) -> Iterator[int]:
    for end, sign in enumerate(text):
        if sign in "/#" and end and holds_several(text[:end]):
            yield end


def only_member(source: FileSource) -> str:
    tables = tables_inside(source, 0)
    readable = [table.member for table in tables if table.reason is None]
    if len(readable) == 1:
        return readable[0]
    if not readable:
        why = tables[0].reason if len(tables) == 1 else "none of them"
        raise TableReadError(f"{source.shown} holds no table that can be read: {why}.")
    names = listed_names([f"{source.shown}{member}" for member in readable], _NAMES_SHOWN)
    raise TableReadError(
        f"{source.shown} holds {len(readable):,} tables; name one of them: {names}."
    )
