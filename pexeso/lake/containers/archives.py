"""Zip archives: what they hold, and the bytes of one member.

An archive comes from anywhere. It is never unpacked to disk; a member is read into memory under a
limit, and an archive that unpacks to far more than archives of tables do is refused.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

from pexeso.errors import TableReadError
from pexeso.lake.readers.content import check_size
from pexeso.lake.readers.file_source import FileSource

MAX_MEMBERS = 10_000
"""Members of an archive that are looked at; the others are listed with this reason."""

MAX_RATIO, ALWAYS_UNPACKED_BYTES = 250, 256 << 20
"""An archive may unpack to so many times its size, and to so many bytes in any case."""


@dataclass(frozen=True)
class Member:
    """One file in an archive.

    Attributes
    ----------
    name : str
        Its path in the archive, with slashes.
    n_bytes : int
        Unpacked.
    reason : str or None
        Why it is not read; None where it can be.
    """

    name: str
    n_bytes: int
    reason: str | None = None


def members_of(source: FileSource) -> list[Member]:
    """List the files of an archive in its order; folders are left out.

    Raises
    ------
    TableReadError
        It is no zip archive, is damaged, or unpacks to far more than it may.
    """
    with _opened(source) as archive:
        by_name = {info.filename: info for info in archive.infolist() if info.filename[-1:] != "/"}
        _check_sizes(source, archive, list(by_name.values()))
        return [
            Member(name, info.file_size, _reason(info, number, source.max_bytes))
            for number, (name, info) in enumerate(by_name.items())
        ]


def read_member(source: FileSource, *names: str) -> tuple[str, bytes]:
    """Read one file of an archive into memory, at most `source.max_bytes`.

    Parameters
    ----------
    source : FileSource
        The archive.
    names : str
        What the file may be called; the first name that is there is meant.

    Returns
    -------
    name, data
        Its name, and what it holds.

    Raises
    ------
    TableReadError
        There is no such file, or it cannot be read.
    """
    with _opened(source) as archive:
        info = next(
            (archive.NameToInfo[name] for name in names if name in archive.NameToInfo), None
        )
        if info is None:
            raise TableReadError(f"{source.shown} holds no such file: {names[0]!r}.")
        name = info.filename
        shown = f"{source.shown}/{name}"
        _check_sizes(source, archive, [info])
        if (reason := _reason(info, 0, source.max_bytes)) is not None:
            raise TableReadError(f"{shown} cannot be read: {reason}.")
        with archive.open(info) as stream:
            data = stream.read(source.max_bytes + 1)
        check_size(shown, len(data), source.max_bytes)
        return name, data


@contextmanager
def _opened(source: FileSource) -> Iterator[zipfile.ZipFile]:
    try:
        with source.open() as stream, zipfile.ZipFile(stream) as archive:
            yield archive
    except (zipfile.BadZipFile, EOFError, zlib.error, OverflowError, ValueError) as error:
        said = str(error).splitlines()[0].rstrip(".") if str(error) else "it ends too early"
        raise TableReadError(
            f"{source.shown} is no zip archive, or a damaged one ({said}); write or download it "
            "again."
        ) from error
    except (NotImplementedError, RuntimeError, OSError) as error:
        said = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise TableReadError(f"{source.shown} cannot be unpacked: {said}.") from error


def _check_sizes(
    source: FileSource, archive: zipfile.ZipFile, infos: list[zipfile.ZipInfo]
) -> None:
    """Refuse an archive that is made to unpack to any size: a zip bomb."""
    stream = archive.fp
    if stream is None:
        raise TableReadError(f"{source.shown} was closed while it was read.")
    n_packed = stream.seek(0, 2)
    if sum(info.compress_size for info in infos) > n_packed:
        raise TableReadError(
            f"{source.shown} is refused: its members lie in the same bytes, as in a zip bomb."
        )
    n_unpacked = sum(info.file_size for info in infos)
    allowed = max(MAX_RATIO * n_packed, ALWAYS_UNPACKED_BYTES)
    if n_unpacked > allowed:
        raise TableReadError(
            f"{source.shown} is refused: its {n_packed:,} bytes unpack to {n_unpacked:,}, at most "
            f"{allowed:,} are allowed. Unpack it yourself if that is meant."
        )


def _reason(info: zipfile.ZipInfo, number: int, max_bytes: int) -> str | None:
    parts = PurePosixPath(info.filename.replace("\\", "/")).parts
    if not parts or parts[0] == "/" or ".." in parts or "\0" in info.filename:
        return "its name leads out of the archive"
    if any(part.startswith((".", "__MACOSX")) for part in parts):
        return "hidden: its name starts with a dot"
    if number >= MAX_MEMBERS:
        return f"the archive has more than {MAX_MEMBERS:,} files, the most that are read"
    if info.flag_bits & 0x1:
        return "it is protected by a password"
    if info.compress_type not in (
        zipfile.ZIP_STORED,
        zipfile.ZIP_DEFLATED,
        zipfile.ZIP_BZIP2,
        zipfile.ZIP_LZMA,
    ):
        return "it is packed by a method that is not read; pack it again"
    if info.file_size > max_bytes:
        return f"it holds more than {max_bytes:,} bytes, the most that is read (max_bytes)"
    return None
