"""Formats of table files by the ends of their names, and why other files are not read."""

from __future__ import annotations

import os
from dataclasses import dataclass

from pexeso.lake.readers.options import SETTINGS_NAME

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
    ".pt .bin .dat .msgpack .pb .tfrecord .mdb .accdb .numbers .fwf",
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


# All formats that are read; the last are of folders that are one table.
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
    *(FileFormat(kind, ()) for kind in ("delta", "iceberg", "hive")),
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

    Examples
    --------
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
    """Return a name without the extension that says how the file is packed.

    Examples
    --------
    >>> without_packing("data.csv.gz")
    'data.csv'
    """
    stem, extension = os.path.splitext(name)
    return stem if extension.lower() in PACKED_EXTENSIONS else name


def reason_not_read(path: str | os.PathLike[str]) -> str:
    """Return why a file is not read as a table, a clause.

    Examples
    --------
    >>> reason_not_read("logo.png")
    'not a table: a picture'
    """
    name = os.path.basename(os.fspath(path)).lower()
    if name == SETTINGS_NAME:
        return "the settings of a lake; they count in the lake's own folder alone"
    text = without_packing(name)
    if text != name and _FORMAT_OF_EXTENSION.get(os.path.splitext(text)[1]) is not None:
        return "a packed file of a format that is packed already; unpack it"
    return _REASON_OF_EXTENSION.get(os.path.splitext(name)[1], _NOT_A_TABLE)
