"""Which names an index may hold: relative, plain, and never a way out of its folder.

A manifest may come from anywhere, so no name in it is joined to a path before it has passed through
here.
"""

import os
import re
import stat
from pathlib import Path

from pexeso.errors import IndexCorruptError, InputError

MANIFEST = "manifest.json"
BUILDING = ".building"
CATALOG = "catalog"
EMBEDDER = "embedder"
PARTITIONS = "partitions"
RETIRED = "retired"

_FOLDER = re.compile(
    r"(?:catalog|embedder)(?:\.[1-9][0-9]{0,17})?|partitions/[0-9]{5,18}", re.ASCII
)
_MAX_PATH = 1024
"""Letters of a path: every step of it is looked at, and file systems allow four times as many
bytes."""
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f\\]")


def is_unicode(text: str) -> bool:
    """Return whether a text can be written as UTF-8.

    Half of a surrogate pair cannot be written, and it does not come back from JSON either.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def require_relative(path: str) -> str:
    """Return `path` if it is a relative POSIX path that stays below the folder it is joined to."""
    plain = (
        isinstance(path, str)
        and len(path) <= _MAX_PATH
        and is_unicode(path)
        and not _FORBIDDEN.search(path)
    )
    if not plain or any(part in ("", ".", "..") for part in path.split("/")):
        shown = repr(path) if len(repr(path)) <= _MAX_PATH else f"{repr(path)[:40]}..."
        raise InputError(
            f"{shown} is not a relative path inside the index: every part must be a plain name."
        )
    return path


def require_folder(folder: str) -> str:
    """Return `folder` if it is a name the store gives to a folder of its own.

    Those are ``catalog``, ``embedder``, both also with a number (``catalog.2``), and
    ``partitions/00000`` and so on.
    """
    if not isinstance(folder, str) or not _FOLDER.fullmatch(folder):
        raise InputError(
            f"{folder!r} is not a folder of an index: allowed are catalog, embedder (both also "
            "with a number, "
            "as catalog.2) and partitions/ with five digits or more."
        )
    return folder


def plain_file_size(root: Path, relative: str) -> int | None:
    """Return the size in bytes of a file below `root`, or None where there is no such file.

    Every step below `root` is looked at without following links, so that no listed name can lead
    out of the folder.
    """
    path = os.fspath(
        root
    )  # plain texts: this runs once for every file of an index each time it is opened
    parts = relative.split("/")
    for position, part in enumerate(parts):
        path = f"{path}/{part}"
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise IndexCorruptError(
                f"'{path}' cannot be looked at: {error.strerror or error}."
            ) from error
        last = position == len(parts) - 1
        if stat.S_ISLNK(status.st_mode):
            raise IndexCorruptError(
                f"'{path}' is a symbolic link; an index holds plain files and folders only."
            )
        if last and not stat.S_ISREG(status.st_mode):
            raise IndexCorruptError(
                f"'{path}' is not a plain file, but the manifest of the index lists it as one."
            )
    return status.st_size
