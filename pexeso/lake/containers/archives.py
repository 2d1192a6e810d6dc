"""Zip archives: what they hold, and the bytes of one member.

An archive comes from anywhere. It is never unpacked to disk; a member is read into memory under a
limit, and an archive that unpacks to far more than archives of tables do is refused.
"""

from __future__ import annotations

import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

from pexeso.errors import TableReadError
from pexeso.lake.readers.budget import ReadingBudget
from pexeso.lake.readers.content import check_size
from pexeso.lake.readers.file_source import FileSource
from pexeso.runtime.formatting import first_line

MAX_MEMBERS = 10_000
"""Members of an archive that are looked at; the others are listed with this reason."""


@dataclass(frozen=True)
class Member:
    """One file in an archive.

    Attributes
    ----------
    n_bytes : int
        Unpacked.
    reason : str or None
        Why it is not read; None where it can be.
    """

    name: str
    n_bytes: int
    reason: str | None = None


class Archive:
    """An archive that is opened once, when it is first read, and closed as a context manager.

    After an error it is opened anew: what holds it open turns the errors of its storage into ours,
    and does so once.
    """

    def __init__(self, source: FileSource) -> None:
        self.source = source
        self._stack = ExitStack()
        self._file: zipfile.ZipFile | None = None
        self._by_path: dict[str, zipfile.ZipInfo] = {}

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file = None
        self._stack.close()

    def members(self) -> list[Member]:
        """List the files of the archive in its order; folders are left out."""
        source = self.source
        with self._opened() as file:
            infos = _files(file)
            _check_sizes(source, file, infos)
            return [self._member(info, number) for number, info in enumerate(infos)]

    def _member(self, info: zipfile.ZipInfo, number: int) -> Member:
        path = normalised_path(info.filename)
        if self._by_path[path] is not info:
            reason = "another file of the archive has the same path"
            return Member(info.filename, info.file_size, reason)
        return Member(path, info.file_size, _reason(info, number, self.source.max_bytes))

    def find(self, *names: str) -> str:
        """Return the first of some paths that a file of the archive has."""
        with self._opened():
            path = next((name for name in names if name in self._by_path), None)
        if path is None:
            raise TableReadError(f"{self.source.shown} holds no such file: {names[0]!r}.")
        return path

    def read(self, name: str) -> bytes:
        """Read one file of the archive into memory, at most `max_bytes` of the source."""
        source, name = self.source, self.find(name)
        shown = f"{source.shown}/{name}"
        with self._opened() as file:
            info = self._by_path[name]
            _check_sizes(source, file, [info])
            if (reason := _reason(info, 0, source.max_bytes)) is not None:
                raise TableReadError(f"{shown} cannot be read: {reason}.")
            with file.open(info) as stream:
                data = stream.read(source.max_bytes + 1)
            check_size(shown, len(data), source.max_bytes)
            return data

    def packed_bytes(self, name: str) -> int:
        """Return the size of one file as it lies in the archive, in bytes."""
        with self._opened():
            return self._by_path[self.find(name)].compress_size

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

    Examples
    --------
    >>> normalised_path("./d//a.csv"), normalised_path("../a.csv"), normalised_path("//a.csv")
    ('d/a.csv', '../a.csv', '//a.csv')
    """
    return name if _leads_out(name) else str(PurePosixPath(name))


def _leads_out(name: str) -> bool:
    parts = PurePosixPath(name.replace("\\", "/")).parts
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
    allowed = ReadingBudget(source.shown, n_packed, sys.maxsize).max_unpacked
    if n_unpacked > allowed:
        raise TableReadError(
            f"{source.shown} is refused: its {n_packed:,} bytes unpack to {n_unpacked:,}, at most "
            f"{allowed:,} are allowed. Unpack it yourself if that is meant."
        )


def _reason(info: zipfile.ZipInfo, number: int, max_bytes: int) -> str | None:
    if _leads_out(info.filename):
        return "its name leads out of the archive"
    parts = PurePosixPath(info.filename.replace("\\", "/")).parts
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
