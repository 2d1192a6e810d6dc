"""The folders that an agent may read from and write to, and nothing outside them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from pexeso.errors import InputError, OutputError
from pexeso.results.query import split_spec

ENDINGS = (".csv", ".parquet")
_NOT_IN_NAMES = re.compile(r"[/\\:\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_NUMBERED = [f"{port}{number}" for port in ("COM", "LPT") for number in "0123456789"]
# On another system, to which a folder may be synced or exported, such a file cannot be opened.
_DEVICES = frozenset(["AUX", "CON", "NUL", "PRN", *_NUMBERED])


def folder_of(path: str | os.PathLike[str]) -> Path:
    """Return a folder that exists, with all links followed."""
    folder = Path(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise InputError(f"'{path}' is no folder: name one that exists.")
    return folder


def readable_spec(spec: str, folders: Sequence[Path]) -> str:
    """Return ``FILE`` or ``FILE:COLUMN`` with the file's whole path, where it may be read."""
    if not folders:
        raise InputError(
            "No files may be read: give values or a column of the lake, or start the server with "
            "--allow-read FOLDER."
        )
    for folder in folders:
        whole = os.path.join(folder, spec)  # an absolute path stays as it is
        if "\0" in whole:
            break
        file, column = split_spec(whole)
        path = Path(os.path.realpath(file))
        named = str(path) if column is None else f"{path}:{column}"
        # What reads it splits it again, and may mean nothing but this file.
        is_this = split_spec(named) == (str(path), column)
        if is_this and path.is_relative_to(folder) and os.path.lexists(path):
            return named
    raise InputError(
        f"There is no file {spec!r} in the folders that may be read: "
        f"{', '.join(str(folder) for folder in folders)}."
    )


def writable_file(name: str, folder: Path, *, overwrite: bool) -> Path:
    """Return the path of a file to write, in a folder and not below it."""
    if not name.lower().endswith(ENDINGS) or "\0" in name:
        raise InputError(f"A joined table is written as .csv or .parquet. Got {name!r}.")
    stem = name.split(".", 1)[0].rstrip().upper()
    if name.startswith(".") or _NOT_IN_NAMES.search(name) or stem in _DEVICES:
        raise InputError(
            f"Joined tables are written inside '{folder}' alone, under plain names such as "
            "joined.csv: without separators, colons, control characters and leading dots, and not "
            f"those of devices. Got {name!r}."
        )
    if os.path.realpath(folder) != str(folder) or not os.path.isdir(folder):
        raise OutputError(f"There is no folder '{folder}' any more: ask the user to make it again.")
    path = folder / name
    is_there = os.path.lexists(path)
    if is_there and (os.path.islink(path) or not os.path.isfile(path)):
        raise OutputError(f"'{name}' is a link or a folder: choose another name.")
    if is_there and not overwrite:
        raise OutputError(f"'{name}' is there already: choose another name, or set overwrite.")
    return path
