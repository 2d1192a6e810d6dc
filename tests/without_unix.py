"""Hides from this process what Windows lacks, and forbids what Windows forbids.

A plugin of pytest (``-p without_unix``), and for programs a module to import before `pexeso`. It
cannot show what else differs there: the separators of paths, encodings, programs.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile  # takes its flags from os when it is imported

with contextlib.suppress(ModuleNotFoundError):
    import psutil  # noqa: F401 - its part for this system, which the tests measure with

MODULES = ("fcntl", "grp", "pwd", "resource")
OF_OS = (
    "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_PATH", "fchown", "fork", "forkpty",
    "fwalk", "geteuid", "getxattr", "killpg", "link", "listxattr", "mkfifo", "nice",
    "posix_fadvise", "posix_fallocate", "register_at_fork", "sched_getaffinity", "setsid",
    "setxattr", "statvfs",
)  # fmt: skip
OF_SIGNAL = ("SIGALRM", "SIGHUP", "SIGPIPE", "SIGURG", "SIGXCPU", "alarm", "setitimer")
OF_MMAP = ("MADV_RANDOM", "MADV_WILLNEED")

_PLACES = re.compile(r"(?:\S+\s+){5}(/.*)")


def _open_paths() -> set[str]:
    paths = set()
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            paths.add(os.readlink(f"/proc/self/fd/{number}"))
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as lines:
        paths.update(match[1] for line in lines if (match := _PLACES.match(line)))
    return paths


def _require_closed(path: str | os.PathLike[str]) -> None:
    """Raise as Windows does where a file, or one in a folder, is open in this process."""
    if isinstance(path, int) or sys._getframe(2).f_globals.get("__name__") == "tempfile":
        return  # a temporary file that goes when it is closed is another call there
    folder, name = os.path.split(os.path.abspath(os.fsdecode(path)))
    whole = os.path.join(os.path.realpath(folder), name)
    for opened in _open_paths():
        if opened == whole or opened.startswith(f"{whole}/"):
            raise PermissionError(errno.EACCES, f"{opened} is open", os.fspath(path))


def _guarded(call, n_paths: int):
    def guarded(*paths, dir_fd=None, src_dir_fd=None, dst_dir_fd=None):
        if (dir_fd, src_dir_fd, dst_dir_fd) != (None, None, None):
            raise NotImplementedError("dir_fd unavailable on this platform")
        for path in paths[:n_paths]:
            _require_closed(path)
        return call(*paths)

    return guarded


def _open(path, flags, mode=0o777, *, dir_fd=None):
    if dir_fd is not None:
        raise NotImplementedError("dir_fd unavailable on this platform")
    if stat.S_ISDIR(_mode(path)):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
    return _os["open"](path, flags, mode)


def _mode(path) -> int:
    try:
        return os.stat(path).st_mode
    except OSError:
        return 0


def _fsync(descriptor):
    with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as lines:
        flags = next(int(line.split()[1], 8) for line in lines if line.startswith("flags:"))
    if flags & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return _os["fsync"](descriptor)


def _kill(process, number):
    if number == 0:
        raise AssertionError("the signal 0 ends a process of Windows")
    return _os["kill"](process, number)


_popen = subprocess.Popen.__init__


def _started(process, *arguments, pass_fds=(), **options):
    if pass_fds:
        raise ValueError("pass_fds not supported on Windows.")
    _popen(process, *arguments, **options)


_os = {name: getattr(os, name) for name in ("open", "fsync", "kill")}
shutil._use_fd_functions = False
shutil._copyxattr = lambda *_, **__: None
tempfile.gettempdir()
for _name in MODULES:
    sys.modules[_name] = None  # type: ignore[assignment]
for _module, _names in ((os, OF_OS), (signal, OF_SIGNAL), (mmap, OF_MMAP)):
    for _name in _names:
        delattr(_module, _name)
for _supported in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
    _supported.clear()
subprocess.Popen.__init__ = _started  # type: ignore[method-assign]
os.open, os.fsync, os.kill = _open, _fsync, _kill
for _name, _count in (("unlink", 1), ("remove", 1), ("rmdir", 1), ("rename", 2), ("replace", 2)):
    setattr(os, _name, _guarded(getattr(os, _name), _count))
