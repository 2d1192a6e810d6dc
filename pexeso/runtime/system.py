"""What some systems lack: locks, folders as descriptors, links, signals, limits of a process.

Linux has all of it, macOS most, Windows little. No other module names what may be missing; each
function here says what it does instead. Where a system has no locks it also takes no new name for a
file that is open, and removes none that is open or mapped.
"""

from __future__ import annotations

import _thread
import errno
import mmap
import os
import signal
import socket
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

try:
    import fcntl
except ModuleNotFoundError:
    fcntl = None  # type: ignore[assignment]
try:
    import resource
except ModuleNotFoundError:
    resource = None  # type: ignore[assignment]

# Whether open files and folders can be locked, and renamed or removed while they are open.
HAS_LOCKS = fcntl is not None

# Whether a path can be walked step by step in opened folders, following no link.
HAS_FOLDER_STEPS = (
    hasattr(os, "O_DIRECTORY") and hasattr(os, "O_NOFOLLOW") and os.open in os.supports_dir_fd
)

# Whether the system takes advice on how a mapped file will be read.
GIVES_ADVICE = hasattr(mmap, "MADV_WILLNEED")

SHARED, EXCLUSIVE = (fcntl.LOCK_SH, fcntl.LOCK_EX) if HAS_LOCKS else (1, 2)

_LINKS_LINKS = hasattr(os, "link") and os.link in os.supports_follow_symlinks
_CLOSED_LATER = getattr(os, "O_CLOEXEC", 0)  # not passed on to programs that are started
_BYTES = getattr(os, "O_BINARY", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_AS_FOLDER = getattr(os, "O_DIRECTORY", 0)
_MOUNT_POINT = 0xA000_0003  # of the tags that Windows has for names that lead elsewhere


def available_processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def available_memory() -> int | None:
    """Return the bytes of memory that this process may still take; None where that is unknown.

    It is what the machine has free or can free, or what the limit of a container (cgroup) leaves.
    """
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    kilobytes = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), None)
    free = None if kilobytes is None else int(kilobytes) * 1024
    group = Path("/sys/fs/cgroup")
    try:
        limit, used = (
            int((group / name).read_text(encoding="ascii"))
            for name in ("memory.max", "memory.current")
        )
    except (OSError, ValueError):  # there is no limit
        return free
    return limit - used if free is None else min(free, limit - used)


def lock(descriptor: int, kind: int, *, wait: bool = False) -> bool | None:
    """Lock an open file or folder until its descriptor is closed.

    False where another has it and this one does not wait, None where this file system has no locks.
    """
    if not HAS_LOCKS:
        return None
    try:
        fcntl.flock(descriptor, kind if wait else kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def open_file(path: str | os.PathLike[str], flags: int, mode: int = 0o666) -> int:
    """Open a file for bytes, without waiting for a pipe."""
    return os.open(path, flags | _NO_WAIT | _CLOSED_LATER | _BYTES, mode)


def open_unlinked(
    path: str | os.PathLike[str], flags: int, mode: int = 0o666, *, dir_fd: int | None = None
) -> int:
    """Open a file as `open_file` does, and never through a link at its end."""
    if _NO_LINK:
        flags |= _NO_LINK | _NO_WAIT | _CLOSED_LATER | _BYTES
        return os.open(path, flags, mode, dir_fd=dir_fd)
    if flags & os.O_EXCL:  # a link under the name is refused in any case
        return open_file(path, flags, mode)
    before = os.lstat(path)
    descriptor = -1 if is_link(before) else open_file(path, flags, mode)
    if descriptor >= 0 and os.path.samestat(before, os.fstat(descriptor)):
        return descriptor
    if descriptor >= 0:
        os.close(descriptor)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))


def is_link(status: os.stat_result) -> bool:
    """Return whether a name leads elsewhere: a symbolic link, or a mount point of Windows."""
    return stat.S_ISLNK(status.st_mode) or getattr(status, "st_reparse_tag", 0) == _MOUNT_POINT


def open_folder(path: str | os.PathLike[str], *, dir_fd: int | None = None) -> int:
    """Open a folder, to lock it or to write its names to the disk.

    Where a folder has no descriptor, one of nothing is returned, which can neither be locked nor
    written to the disk. With `dir_fd` the folder must be no link.
    """
    if _AS_FOLDER:
        flags = os.O_RDONLY | _AS_FOLDER | _CLOSED_LATER | (0 if dir_fd is None else _NO_LINK)
        return os.open(path, flags, dir_fd=dir_fd)
    if not stat.S_ISDIR(os.stat(path).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), os.fspath(path))
    return os.open(os.devnull, os.O_RDONLY)


def open_step(path: str | os.PathLike[str], *, dir_fd: int | None = None) -> int:
    """Open a folder that is no link, only to open from it: reading it need not be allowed."""
    flags = getattr(os, "O_PATH", os.O_RDONLY) | _AS_FOLDER | _NO_LINK | _CLOSED_LATER
    return os.open(path, flags, dir_fd=dir_fd)


_syncs: ContextVar[bool] = ContextVar("syncs", default=True)


@contextmanager
def without_sync() -> Iterator[None]:
    """Wait for no disk in the block: what is written there does not outlive it."""
    token = _syncs.set(False)
    try:
        yield
    finally:
        _syncs.reset(token)


def sync(descriptor: int) -> None:
    """Wait until what is open is on the disk, unless nobody minds."""
    if _syncs.get():
        os.fsync(descriptor)


def sync_file(path: str | os.PathLike[str]) -> None:
    """Wait until a file is on the disk."""
    # Windows writes to the disk what was opened for writing alone.
    with open(path, "rb" if HAS_LOCKS else "r+b") as file:
        sync(file.fileno())


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Wait until the folder's list of names is on the disk, where the file system can say."""
    descriptor = open_folder(path)
    try:
        sync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(descriptor)


def link_file(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Link a file under another name, a symbolic link itself; OSError where none can be made."""
    if not hasattr(os, "link"):
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), os.fspath(target))
    if _LINKS_LINKS:
        os.link(source, target, follow_symlinks=False)
    else:
        os.link(source, target)


def is_own(status: os.stat_result) -> bool:
    """Return whether a file belongs to the user of this process; True where files have no users."""
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def is_read_only(path: str | os.PathLike[str]) -> bool:
    """Return whether the file system of a path is known to be mounted read-only."""
    return hasattr(os, "statvfs") and bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def has_writer(descriptor: int) -> bool | None:
    """Return whether a program has an open file open for writing; None where nobody can know."""
    if not hasattr(fcntl, "F_SETLEASE"):
        return None
    try:
        # Whoever opens it this instant breaks the lease, which a signal reports: one that is
        # ignored unless somebody wants it.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return True if error.errno in (errno.EAGAIN, errno.EWOULDBLOCK) else None
    return False


def is_running(process: int) -> bool:
    """Return whether a process of this machine runs; True where that cannot be known."""
    if not HAS_LOCKS:  # Windows, where the signal 0 would end the process
        return _runs_on_windows(process)
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


_SYNCHRONIZE, _INVALID_PARAMETER, _STILL_WAITING = 0x0010_0000, 87, 0x102


def _runs_on_windows(process: int) -> bool:
    import ctypes

    kernel = getattr(ctypes, "WinDLL", lambda *_, **__: None)("kernel32", use_last_error=True)
    if kernel is None or not 0 <= process < 1 << 32:
        return True
    kernel.OpenProcess.restype = ctypes.c_void_p
    handle = kernel.OpenProcess(_SYNCHRONIZE, False, process)
    if not handle:  # of a number that no process has, or of a process of somebody else
        return ctypes.get_last_error() != _INVALID_PARAMETER
    handle = ctypes.c_void_p(handle)
    try:
        return kernel.WaitForSingleObject(handle, 0) == _STILL_WAITING
    finally:
        kernel.CloseHandle(handle)


def reuse_port(listener: socket.socket) -> None:
    """Let a socket have a port whose last connections have not timed out yet."""
    if HAS_LOCKS:  # to Windows the option means that two may listen on one port
        import socket

        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)


def signals(*names: str) -> tuple[signal.Signals, ...]:
    """Return the named signals that this system has."""
    return tuple(getattr(signal, name) for name in names if hasattr(signal, name))


# The number of SIGPIPE, in the exit codes of systems without it too.
PIPE_SIGNAL = 13

# What a process ends with whose time is spent: minus the number of SIGXCPU.
OUT_OF_TIME = -24


def interrupt_later(exception: BaseException, seconds: float) -> None:
    """Raise an exception in the main thread, which calls this, a moment later."""

    def stop(*_: object) -> None:
        raise exception

    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, seconds)
    else:
        signal.signal(signal.SIGINT, stop)
        timer = threading.Timer(seconds, _thread.interrupt_main)
        timer.daemon = True
        timer.start()


def limit_process(n_bytes: int, seconds: int) -> None:
    """Limit memory and further time of this process, as far as the system can."""
    if resource is None:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    for what, number in (
        (resource.RLIMIT_AS, n_bytes),
        (resource.RLIMIT_CPU, seconds + int(used.ru_utime + used.ru_stime) + 1),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(what)
        soft = number if hard == resource.RLIM_INFINITY else min(number, hard)
        with suppress(OSError, ValueError):  # some systems know no limit on memory
            resource.setrlimit(what, (soft, hard))


@contextmanager
def ended_in_time(process: subprocess.Popen[bytes], seconds: int) -> Iterator[threading.Event]:
    """End a program that takes longer, where `limit_process` does not; the event says that it was.

    Elsewhere the seconds are of processor time, here those of a clock.
    """
    is_over = threading.Event()
    if resource is not None:
        yield is_over
        return

    def end() -> None:
        is_over.set()
        process.kill()

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield is_over
    finally:
        timer.cancel()


def usage(field: str) -> int:
    """Return what the system counts of this process (`resource.getrusage`), 0 where it does not."""
    return 0 if resource is None else getattr(resource.getrusage(resource.RUSAGE_SELF), field)


def after_fork(action: Callable[[], None]) -> None:
    """Call a function in each process that is forked from this one, where processes are."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=action)
