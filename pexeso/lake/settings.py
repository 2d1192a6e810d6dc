"""Settings of a lake: how its files are read, from the file `lake.toml` in the lake's folder."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from pexeso.errors import InputError, LakeError, PlaceError
from pexeso.lake.readers.options import ReadingOptions
from pexeso.store.io.location import Location, read_up_to

SETTINGS_NAME = "lake.toml"
"""The file's name, in the lake's own folder."""

MAX_SETTINGS_BYTES = 1 << 20
MAX_ENTRIES = 1_000

_KEYS = {field.name.replace("_", "-"): field.name for field in fields(ReadingOptions)}
_EXAMPLE = '[[files]] with pattern = "exports/*.csv" and delimiter = ";"'


@dataclass(frozen=True)
class FileSettings:
    """One entry of the settings."""

    pattern: str
    options: ReadingOptions


@dataclass(frozen=True)
class LakeSettings:
    """How the delimited texts of a lake are read.

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

    @classmethod
    def load(cls, root: Path | Location) -> LakeSettings:
        """Read the settings of a lake; a lake without the file has none."""
        data = _content(root)
        if data is None:
            return cls()
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
        return cls(_entries(shown, document))

    def options_of(self, table: str) -> ReadingOptions:
        """Return how a table is read."""
        options: dict[str, Any] = {}
        for entry in self.files:
            if _is_for(entry.pattern, table):
                options |= entry.options.to_dict()
        return ReadingOptions(**options)

    def digest_of(self, table: str) -> str | None:
        """Return a short text that is equal where a table is read alike.

        None where no entry is for the table. The text does not depend on the order or number of
        entries, on the machine or on the version of Python.
        """
        options = self.options_of(table).to_dict()
        return json.dumps(options, sort_keys=True, separators=(",", ":")) if options else None


def _content(root: Path | Location) -> bytes | None:
    """Return the file's bytes, at most one more than are allowed; None where there is none."""
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
    try:
        if not path.exists():
            return None
        if not path.is_file():
            raise _no_file(path)
        with path.open("rb") as stream:
            return stream.read(MAX_SETTINGS_BYTES + 1)
    except OSError as error:
        raise LakeError(f"'{path}' cannot be read: {error.strerror or error}.") from error


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
        raise LakeError(f"{where} ('{pattern}'): {_with_keys(str(error))}") from error
    if not options:
        raise LakeError(
            f"{where} ('{pattern}') sets nothing; allowed are {', '.join(map(repr, _KEYS))}."
        )
    return FileSettings(pattern, options)


def _with_keys(message: str) -> str:
    """Return a message about an option with the option named as in the file."""
    return message.replace("skip_rows", "skip-rows")


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
    """Return an expression for each part of a pattern, None for one that stands for folders."""
    parts = pattern.split("/")
    if parts[-1] == "**":
        parts.append("*")  # what is in folders, not a table of their name
    return tuple(None if part == "**" else _expression(part) for part in parts)


def _expression(part: str) -> re.Pattern[str]:
    """Return the expression of one part of a pattern.

    Each star takes the first place where what follows it fits, and none other is tried, as in the
    standard library's `fnmatch`: a long pattern takes no longer for it.
    """
    first, *fixed = (
        "".join("." if character == "?" else re.escape(character) for character in piece)
        for piece in re.split(r"\*+", part)
    )
    if not fixed:
        return re.compile(first, re.DOTALL)
    middle = "".join(f"(?>.*?{piece})" for piece in fixed[:-1])
    return re.compile(f"{first}{middle}.*{fixed[-1]}", re.DOTALL)
