"""What a user says about how a table is read, in place of what would be found.

For one file by options, for those of a lake by the file `lake.toml` in its folder.
"""

from __future__ import annotations

import codecs
import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import translate
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from pexeso.errors import InputError, LakeError, PlaceError, failing_as
from pexeso.runtime.formatting import shown
from pexeso.store.io.location import Location, read_up_to
from pexeso.store.io.table_history import plain_state

# The file in a lake's own folder that says how its files are read.
SETTINGS_NAME = "lake.toml"

MAX_HEADER_ROWS = 20
MAX_SKIPPED_ROWS = 1_000_000

_DELIMITER_OF_NAME = {"tab": "\t", "\\t": "\t", "space": " "}
_NO_DELIMITERS = frozenset("\"'\r\n\0\ufeff")
_NOT_FOR_FILES = frozenset(
    {"idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape", "mbcs", "oem"}
)


@dataclass(frozen=True)
class ReadingOptions:
    r"""How to read a delimited text, or which state of a table. None: the reader finds it.

    Formats without a delimiter (Parquet, JSON lines and others) take no notice of options of texts,
    and tables that keep no history none of `as_of`.

    Attributes
    ----------
    delimiter
        What separates cells, one character that is no letter, digit, quotation mark or line break;
        ``tab``, ``\t`` and ``space`` stand for theirs.
    encoding
        A text encoding that Python knows. It is stored under Python's own name for it.
    header
        Number of header rows, 0 to 20. The names of two or more rows are joined by a space
        ("Sales 2019"). With 0 the columns have no names, and are called ``#0``, ``#1`` and so on
        as all columns without names.
    skip_rows
        Number of lines before the header that are left out, 0 to 1,000,000. With 0 the text
        begins with its header.
    as_of
        State of a Delta or Iceberg table: a moment in ISO 8601, in UTC where it names no zone, or
        the number of a version or snapshot. By default the current one.
    columns
        Labels of the columns that are read, in the order of the file; by default all.

    Raises
    ------
    InputError
        A value is not one of those allowed.

    Examples
    --------
    >>> ReadingOptions(delimiter="tab", encoding="latin1").to_dict()
    {'delimiter': '\t', 'encoding': 'iso8859-1'}
    """

    delimiter: str | None = None
    encoding: str | None = None
    header: int | None = None
    skip_rows: int | None = None
    as_of: str | int | None = None
    columns: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.delimiter is not None:
            object.__setattr__(self, "delimiter", _checked_delimiter(self.delimiter))
        if self.encoding is not None:
            object.__setattr__(self, "encoding", _checked_encoding(self.encoding))
        _check_count("header", "header rows", self.header, MAX_HEADER_ROWS)
        _check_count("skip_rows", "lines to leave out", self.skip_rows, MAX_SKIPPED_ROWS)
        if self.as_of is not None:
            object.__setattr__(self, "as_of", plain_state(self.as_of))
        if self.columns is not None:
            object.__setattr__(self, "columns", _checked_columns(self.columns))

    def of_text(self) -> ReadingOptions:
        """Return the options of a delimited text alone."""
        if self.as_of is self.columns is None:
            return self
        return replace(self, as_of=None, columns=None)

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.to_dict().items())
        return f"ReadingOptions({arguments})"

    def __bool__(self) -> bool:
        return bool(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return what is set, as plain JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        plain = {name: value for name, value in values.items() if value is not None}
        return plain if self.columns is None else {**plain, "columns": list(self.columns)}

    def require_none(self, got: str) -> None:
        """Refuse what is set, as what is read is no file.

        got: what it is instead, for the message.
        """
        if self:
            raise InputError(f"{', '.join(self.to_dict())} say how a file is read. Got {got}.")


def _checked_columns(value: object) -> tuple[str, ...]:
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        columns = tuple(value)
        if all(isinstance(column, str) for column in columns):
            return columns
    raise InputError(f"columns must be a list of names of columns. Got {shown(value)}.")


def _checked_delimiter(value: object) -> str:
    delimiter = _DELIMITER_OF_NAME.get(value, value) if isinstance(value, str) else value
    if (
        not isinstance(delimiter, str)
        or len(delimiter) != 1
        or delimiter.isalnum()
        or delimiter in _NO_DELIMITERS
        or "\ud800" <= delimiter <= "\udfff"
    ):
        raise InputError(
            "delimiter must be one character that is no letter, digit, quotation mark or line "
            f"break, or 'tab' or 'space'. Got {value!r}."
        )
    return delimiter


def _checked_encoding(value: object) -> str:
    if isinstance(value, str):
        try:
            encoding = codecs.lookup(value).name
            "".encode(encoding)  # refuses what makes bytes of bytes, such as base64
        except (LookupError, UnicodeError, ValueError):
            encoding = ""
        if encoding and encoding.replace("-", "_") not in _NOT_FOR_FILES:
            return encoding
    raise InputError(
        "encoding must be the name of a text encoding, such as utf-8, latin-1, cp1252 or utf-16. "
        f"Got {value!r}."
    )


def _check_count(name: str, what: str, value: object, limit: int) -> None:
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= limit:
        raise InputError(
            f"{name} must be a number of {what}, a whole number from 0 to {limit:,}. Got {value!r}."
        )


# The reader finds everything.
AS_FOUND = ReadingOptions()


MAX_SETTINGS_BYTES = 1 << 20
MAX_ENTRIES = 1_000

_NAMES = [field.name for field in fields(ReadingOptions) if field.name != "columns"]
_KEYS = {name.replace("_", "-"): name for name in _NAMES}
_EXAMPLE = '[[files]] with pattern = "exports/*.csv" and delimiter = ";"'


@dataclass(frozen=True)
class FileSettings:
    pattern: str
    options: ReadingOptions


@dataclass(frozen=True)
class LakeSettings:
    """How the tables of a lake are read: as its file says, and in a state that is general.

    In a pattern ``*`` stands for any characters but a slash, ``?`` for one such character, ``**``
    between slashes for any number of folders, also none. A pattern is for the whole name of a
    table relative to the lake: ``*.csv`` is for tables of the lake's own folder, ``**/*.csv`` for
    those of all folders. Capital letters differ from small ones.

    Where several entries are for a table, later ones win, key by key: general entries come first.

    Examples
    --------
    >>> settings = LakeSettings((
    ...     FileSettings("**/*.csv", ReadingOptions(delimiter=";", header=1)),
    ...     FileSettings("exports/*.csv", ReadingOptions(header=2)),
    ... ))
    >>> settings.options_of("exports/sales.csv").to_dict()
    {'delimiter': ';', 'header': 2}
    >>> settings.digest_of("notes.tsv") is None
    True
    """

    files: tuple[FileSettings, ...] = ()
    as_of: str | None = None

    @classmethod
    def load(cls, root: Path | Location, as_of: str | None = None) -> LakeSettings:
        data = _content(root)
        if data is None:
            return cls(as_of=as_of)
        shown = f"'{root / SETTINGS_NAME}'"
        if len(data) > MAX_SETTINGS_BYTES:
            raise LakeError(
                f"{shown} holds more than {MAX_SETTINGS_BYTES:,} bytes, the most that the settings "
                "of a lake may have."
            )
        try:
            document = tomllib.loads(data.decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:  # also what is not UTF-8
            raise LakeError(
                f"{shown} is no TOML: {error}. It holds entries such as {_EXAMPLE}."
            ) from error
        return cls(_entries(shown, document), as_of)

    def options_of(self, table: str) -> ReadingOptions:
        options: dict[str, Any] = {} if self.as_of is None else {"as_of": self.as_of}
        for entry in self.files:
            if _is_for(entry.pattern, table):
                options |= entry.options.to_dict()
        return ReadingOptions(**options)

    def makes_text(self, table: str) -> bool:
        """Return whether an entry for a file says by the end of its name how such are read."""
        end = PurePosixPath(table).suffix or table.rpartition("/")[2]
        return any(
            bool(entry.options.of_text())
            and entry.pattern.endswith(end)
            and _is_for(entry.pattern, table)
            for entry in self.files
        )

    def digest_of(self, table: str, *, has_log: bool = True) -> str | None:
        """Return a short text that is equal where a table is read alike.

        None where no entry is for the table. Without a log a table has one state. The text does
        not depend on the order or number of entries, on the machine or on the version of Python.
        """
        chosen = self.options_of(table)
        options = (chosen if has_log else chosen.of_text()).to_dict()
        return json.dumps(options, sort_keys=True, separators=(",", ":")) if options else None


def _content(root: Path | Location) -> bytes | None:
    path = root / SETTINGS_NAME
    if isinstance(path, Location):
        entry = path.look()
        if entry is None:
            return None
        try:
            with path.open() as stream:
                return read_up_to(stream, MAX_SETTINGS_BYTES + 1)
        except PlaceError as error:
            if entry.kind != "file":
                raise _no_file(path) from error
            raise
    with failing_as(LakeError, f"'{path}' cannot be read"):
        if not path.exists():
            return None
        if not path.is_file():
            raise _no_file(path)
        with path.open("rb") as stream:
            return stream.read(MAX_SETTINGS_BYTES + 1)


def _no_file(path: Path | Location) -> LakeError:
    return LakeError(f"'{path}' is not a regular file; rename it, or put settings into a file.")


def _entries(shown: str, document: dict[str, Any]) -> tuple[FileSettings, ...]:
    for key in document:
        if key != "files":
            raise LakeError(
                f"{shown} has the key '{key}'; the only one allowed is 'files', in entries such "
                f"as {_EXAMPLE}."
            )
    entries = document.get("files", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise LakeError(f"{shown}: 'files' must be a list of entries, such as {_EXAMPLE}.")
    if len(entries) > MAX_ENTRIES:
        raise LakeError(
            f"{shown} has {len(entries):,} entries under 'files'; at most {MAX_ENTRIES:,} are "
            "allowed."
        )
    return tuple(
        _entry(f"{shown}: entry {n} of 'files'", entry) for n, entry in enumerate(entries, 1)
    )


def _entry(where: str, entry: dict[str, Any]) -> FileSettings:
    for key in entry:
        if key != "pattern" and key not in _KEYS:
            raise LakeError(
                f"{where} has the key '{key}'; allowed are 'pattern', "
                f"{', '.join(map(repr, _KEYS))}."
            )
    pattern = entry.get("pattern")
    if not isinstance(pattern, str) or not _is_pattern(pattern):
        raise LakeError(
            f"{where}: 'pattern' must be the name of a table relative to the lake, in which *, ** "
            f"and ? may stand, such as 'exports/*.csv'. Got {pattern!r}."
        )
    try:
        options = ReadingOptions(
            **{_KEYS[key]: value for key, value in entry.items() if key != "pattern"}
        )
    except InputError as error:
        message = str(error)  # with keys as the file names them
        for key, name in _KEYS.items():
            message = message.replace(name, key)
        raise LakeError(f"{where} ('{pattern}'): {message}") from error
    if not options:
        raise LakeError(
            f"{where} ('{pattern}') sets nothing; allowed are {', '.join(map(repr, _KEYS))}."
        )
    return FileSettings(pattern, options)


def _is_pattern(pattern: str) -> bool:
    parts = pattern.split("/")
    return "\\" not in pattern and not any(part in ("", ".", "..") for part in parts)


def _is_for(pattern: str, table: str) -> bool:
    """Return whether a pattern is for a table.

    Takes at most as many steps as the pattern has parts times those of the name.
    """
    names = table.split("/")
    reached = {0}  # how many parts of the name the parts of the pattern so far may stand for
    for part in _parts(pattern):
        if part is None:
            reached = set(range(min(reached), len(names) + 1))
        else:
            reached = {
                n + 1 for n in reached if n < len(names) and part.fullmatch(names[n]) is not None
            }
        if not reached:
            return False
    return len(names) in reached


@lru_cache(maxsize=MAX_ENTRIES)
def _parts(pattern: str) -> tuple[re.Pattern[str] | None, ...]:
    parts = pattern.split("/")
    if parts[-1] == "**":
        parts.append("*")  # what is in folders, not a table of their name
    # Brackets are plain characters here.
    texts = [translate(part.replace("[", "[[]")) for part in parts]
    return tuple(
        None if part == "**" else re.compile(text) for part, text in zip(parts, texts, strict=True)
    )
