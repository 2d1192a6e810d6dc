"""A folder that a trial may read and change, and the proof that it did neither outside."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

MARKER = "lies-beside-the-folder"
_CHANGES = {
    "os.rename": 2, "os.remove": 1, "os.rmdir": 1, "os.mkdir": 1, "os.symlink": 2,
    "os.truncate": 1, "os.chmod": 1, "os.chown": 1, "os.utime": 1, "os.setxattr": 1,
}  # fmt: skip
"""Events of Python's audit, and how many of their arguments are paths."""

_LISTS = ("os.listdir", "os.scandir", "os.walk")
_CACHE = "/__pycache__"
"""Folders that the program itself writes, beside its modules."""
_NEVER = ("os.system", "os.exec", "os.spawn", "socket.connect", "socket.getaddrinfo")
_READER = [sys.executable, "-I", "-c"]
"""How the process begins that reads files by libraries which a file can bring down."""

Seen = dict[str, tuple[int, int] | str]


class LeftSandboxError(AssertionError):
    """A trial read or changed what lies outside its folder, or started what it may not."""


class Sandbox:
    """A folder for trials, beside a folder whose files none of them may read or change.

    Arrow's own readers and other processes are not heard as they read; what they change is seen.

    Parameters
    ----------
    outer : Path
        Where both lie.
    readable : iterable of path
        What else may be read.
    """

    def __init__(self, outer: Path, readable: Iterable[str | Path] = ()) -> None:
        self.folder, self._beside = outer / "inside", outer / "beside"
        self._outer = outer
        for folder in (self.folder, self._beside):
            folder.mkdir(exist_ok=True)
        for name in ("secret.csv", "inside.csv", ".hidden"):
            (self._beside / name).write_text(f"city,secret\nOslo,{MARKER}\nRome,{MARKER}\n")
        program = (*sys.path, sys.prefix, sys.base_prefix, "/usr", "/proc", "/sys", "/dev")
        readable = [*map(str, readable), *program, "/etc/localtime", "/etc/mime.types"]
        self._readable = tuple({os.path.realpath(path) for path in readable if path})
        self._writable = (os.path.realpath(outer), "/dev/null")
        self._closed = os.path.realpath(self._beside)
        self._wrong: list[str] = []
        self._is_heard = False
        sys.addaudithook(self._hear)

    def move_in(self) -> None:
        """Let this process work there, for good: temporary files, and names without a folder."""
        temporary = self._outer / "temporary"
        temporary.mkdir()
        os.environ["TMPDIR"] = tempfile.tempdir = str(temporary)
        os.chdir(self._outer)

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Watch a trial.

        Raises
        ------
        LeftSandboxError
            It left the folder; whatever the trial raises goes first.
        """
        before, self._wrong, self._is_heard = self._seen(), [], True
        try:
            yield
        finally:
            self._is_heard = False
        after = self._seen()
        changed = [name for name in before | after if before.get(name) != after.get(name)]
        if wrong := [*self._wrong, *(f"{name} has changed" for name in changed)]:
            raise LeftSandboxError("; ".join(wrong)[:500])

    def _seen(self) -> Seen:
        """Return what is beside the folder of the trials, and what each is."""
        seen: Seen = {entry.name: "" for entry in os.scandir(self._outer)}
        for entry in os.scandir(self._beside):
            status = entry.stat(follow_symlinks=False)
            seen[entry.path] = status.st_size, status.st_mtime_ns
        return seen

    def _hear(self, event: str, given: tuple[Any, ...]) -> None:
        if not self._is_heard:
            return
        if event == "open":
            path, _, flags = given
            is_step = flags & os.O_PATH  # which reads nothing
            if isinstance(path, str | bytes | os.PathLike) and not is_step:
                writes = bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC))
                self._look(event, path, writes=writes, follows=not flags & os.O_NOFOLLOW)
        elif event == "os.link":
            self._look(event, given[0], writes=False, follows=False)
            self._look(event, given[1], writes=True, follows=False)
        elif event in _CHANGES:
            paths = given[: _CHANGES[event]]
            others = given[_CHANGES[event] :]
            by_descriptor = type(paths[0]) is int or (
                event not in ("os.chmod", "os.chown")
                and any(type(number) is int and number >= 0 for number in others)
            )
            for path in paths if not by_descriptor else ():
                self._look(event, path, writes=True, follows=False)
        elif event in _LISTS and isinstance(given[0], str | bytes | os.PathLike):
            self._look(event, given[0], writes=False)
        elif event in _NEVER or (event == "subprocess.Popen" and list(given[1])[:3] != _READER):
            self._wrong.append(f"{event} {str(given)[:100]}")

    def _look(self, event: str, path: Any, *, writes: bool, follows: bool = True) -> None:
        name = os.path.abspath(os.fsdecode(path))
        if "\0" in name:
            return  # which no system opens
        parent, last = os.path.split(name)
        real = os.path.realpath(name) if follows else os.path.join(os.path.realpath(parent), last)
        allowed = self._writable if writes else (*self._writable, *self._readable)
        is_cache = _CACHE in real and _is_in(real, self._readable)
        if _is_in(real, (self._closed,)) or not (is_cache or _is_in(real, allowed)):
            self._wrong.append(f"{event} {real}")


def _is_in(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)
