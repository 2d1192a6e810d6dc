"""Tables as files: their fingerprints, and moves that overwrite nothing and can be killed.

A table is a plain file or a folder of plain files. Within a file system it moves by one rename. To
another it is copied, synced and compared; its original then loses its name by one rename, and is
removed only after each file of it was found equal to its copy.

Whatever changes a folder does so in the folder that was opened, step by step and following no link:
a folder that becomes a link between a check and a move leads nowhere.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import hashlib
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pexeso.lake.readers.table import fingerprint_file
from pexeso.runtime.system import has_writer, open_folder, open_step, open_unlinked, sync_folder

_NOT_OVER = 1  # RENAME_NOREPLACE of Linux
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_SETTLED_SECONDS = 3600
_PIECE_BYTES = 1 << 20
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM)

Snapshot = tuple[tuple[str, int, int, int], ...]


class TableRefused(Exception):
    """A table cannot be moved; the message is a clause that says why."""


def table_files(path: Path) -> list[tuple[str, Path]]:
    """Return the files of a table, sorted, by their paths relative to it; of a file by ""."""
    _require_plain(path)
    if not path.is_dir():
        return [("", path)]
    paths = []
    for parent, folders, files in os.walk(path, onerror=_reraise):
        for name in (*folders, *files):
            _require_plain(Path(parent, name))
        paths += [Path(parent, name) for name in files]
    return sorted((file.relative_to(path).as_posix(), file) for file in paths)


def table_fingerprint(path: Path, known: Mapping[str, str] | None = None) -> str:
    if not path.is_dir():
        _require_plain(path)
        return _file_fingerprint(path)
    running = hashlib.blake2b(digest_size=16)
    for relative, file in table_files(path):
        fingerprint = (known or {}).get(relative) or _file_fingerprint(file)
        running.update(os.fsencode(relative) + b"\0" + fingerprint.encode() + b"\n")
    return running.hexdigest()


def fingerprint_there(path: Path) -> str | None:
    """Return the fingerprint of a table; None where there is none that can be moved."""
    try:
        return table_fingerprint(path)
    except (TableRefused, OSError):
        return None


def snapshot(path: Path) -> Snapshot:
    """Return what tells cheaply whether a table was touched; a rename of it changes nothing."""
    return tuple(
        (relative, status.st_ino, status.st_size, status.st_mtime_ns)
        for relative, file in table_files(path)
        for status in [os.lstat(file)]
    )


@contextlib.contextmanager
def opened_folder(path: Path) -> Iterator[int]:
    """Open a folder by its absolute path, no step of which may be a link."""
    descriptor = open_step(path.anchor)
    try:
        for part in path.parts[1:]:
            above, descriptor = descriptor, open_step(part, dir_fd=descriptor)
            os.close(above)
        readable = open_folder(".", dir_fd=descriptor)
    except OSError as error:
        error.filename = os.fspath(path)
        raise
    finally:
        os.close(descriptor)
    try:
        yield readable
    finally:
        os.close(readable)


def make_folders(root: Path, relative: str) -> None:
    """Make the folders above a name below `root`, and wait until they are on the disk."""
    folder = root
    for part in relative.split("/")[:-1]:
        with opened_folder(folder) as above, contextlib.suppress(FileExistsError):
            os.mkdir(part, dir_fd=above)
            os.fsync(above)
        folder = folder / part


def remove_empty_folders(root: Path, relative: str) -> None:
    """Remove the folders above a name below `root` that are empty."""
    folder = (root / relative).parent
    while folder != root:
        try:
            with opened_folder(folder.parent) as above:
                os.rmdir(folder.name, dir_fd=above)
        except OSError:  # something is in it
            return
        folder = folder.parent


def rename_new(source: Path, target: Path) -> None:
    """Rename a file or folder to a name that is free, and wait until that is on the disk."""
    _rename_over_nothing(source, target)
    sync_folder(target.parent)
    if source.parent != target.parent:
        sync_folder(source.parent)


def copy_whole(source: Path, target: Path, fingerprint: str) -> None:
    """Copy a table under a name that is free, sync it, and compare it."""
    if os.path.lexists(target):
        raise TableRefused(f"'{target}' is there and no copy of it; move it elsewhere")
    try:
        with opened_folder(source.parent) as left, opened_folder(target.parent) as right:
            _copy(left, source, right, target)
        sync_folder(target.parent)
        if table_fingerprint(target) != fingerprint:
            raise TableRefused("it was changed while it was copied")
    except BaseException:
        with contextlib.suppress(OSError):
            remove_tree(target)
        raise


def require_copied(left: Path, kept: Path) -> None:
    """Raise TableRefused unless each file of `left` has an equal one in `kept`."""
    copies = dict(table_files(kept))
    for relative, file in table_files(left):
        if relative not in copies or _file_fingerprint(file) != _file_fingerprint(copies[relative]):
            raise TableRefused(f"'{file}' differs from its copy in '{kept}', and both were left")


def is_part_of(copy: Path, whole: Path) -> bool:
    """Return whether all bytes of an unfinished copy are those that `whole` begins with."""
    try:
        files = dict(table_files(whole))
        return all(
            relative in files and _begins(files[relative], file)
            for relative, file in table_files(copy)
        )
    except TableRefused:
        return False


def require_not_written(path: Path, shown: Path) -> bool:
    """Raise TableRefused where a program has a file of a table open and may write to it.

    What it writes later would go into a file without a name. Return whether that is known of all
    files: some file systems have no leases, and some systems no lease on files of other owners.
    """
    is_known = True
    for _, file in table_files(path):
        descriptor = open_unlinked(file, os.O_RDONLY)
        try:
            writer = has_writer(descriptor)
        finally:
            os.close(descriptor)
        if writer:
            raise TableRefused(f"a program has '{shown}' open for writing; end it, and try again")
        is_known = is_known and writer is not None
    return is_known


def has_settled(path: Path) -> bool:
    """Return whether no file of a table was written or renamed for an hour."""
    recent = time.time() - _SETTLED_SECONDS
    statuses = [os.lstat(file) for _, file in table_files(path)] + [os.lstat(path)]
    return all(max(status.st_mtime, status.st_ctime) < recent for status in statuses)


def remove_tree(path: Path) -> None:
    """Remove a copy: a file or a folder; nothing where there is nothing. No link is followed."""
    with _opened_parent(path) as parent:
        if parent is None:
            return
        if stat.S_ISDIR(os.lstat(path.name, dir_fd=parent).st_mode):
            shutil.rmtree(path.name, dir_fd=parent)
        else:
            os.unlink(path.name, dir_fd=parent)


def allow_changes(path: Path) -> None:
    """Let the owner change the folders of a copy, which has the modes of its original."""
    with _opened_parent(path) as parent:
        if parent is None:
            return
        for _, _, _, folder in os.fwalk(path.name, dir_fd=parent, follow_symlinks=False):
            if not os.access(".", os.W_OK | os.X_OK, dir_fd=folder):
                with contextlib.suppress(PermissionError):  # reported when what is in it is removed
                    os.fchmod(folder, 0o700)


@contextlib.contextmanager
def _opened_parent(path: Path) -> Iterator[int | None]:
    """Open the folder of a name; None where there is no such name."""
    try:
        with opened_folder(path.parent) as parent:
            yield parent if _has(parent, path.name) else None
    except FileNotFoundError as error:
        if error.filename != os.fspath(path.parent):
            raise
        yield None


def _has(folder: int, name: str) -> bool:
    """Return whether an opened folder has a name, be it that of a link."""
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _copy(left: int, source: Path, right: int, target: Path) -> None:
    """Copy a file or a folder between two opened folders and sync it; errors name both paths."""
    try:
        reading = open_unlinked(source.name, os.O_RDONLY, dir_fd=left)
        try:
            _copy_opened(reading, source, right, target)
        finally:
            os.close(reading)
    except OSError as error:
        if error.filename2 is not None:  # of what is in it
            raise
        raise OSError(error.errno, error.strerror, str(source), None, str(target)) from error


def _copy_opened(reading: int, source: Path, right: int, target: Path) -> None:
    status = os.fstat(reading)
    is_folder = stat.S_ISDIR(status.st_mode)
    if is_folder:
        os.mkdir(target.name, 0o700, dir_fd=right)
    elif not stat.S_ISREG(status.st_mode):
        raise TableRefused(f"'{source}' is no plain file any more")
    writing = (
        open_folder(target.name, dir_fd=right)
        if is_folder
        else open_unlinked(target.name, _NEW_FILE, 0o600, dir_fd=right)
    )
    try:
        for name in sorted(os.listdir(reading)) if is_folder else ():
            _copy(reading, source / name, writing, target / name)
        while not is_folder and (piece := os.read(reading, _PIECE_BYTES)):
            while piece:
                piece = piece[os.write(writing, piece) :]
        with contextlib.suppress(PermissionError):  # only root may give a file to somebody else
            os.fchown(writing, status.st_uid, status.st_gid)
        for key in _attributes(reading):
            with contextlib.suppress(OSError):  # not every file system has them
                os.setxattr(writing, key, os.getxattr(reading, key))
        os.fchmod(writing, stat.S_IMODE(status.st_mode))
        os.utime(writing, ns=(status.st_atime_ns, status.st_mtime_ns))
        os.fsync(writing)
    finally:
        os.close(writing)


def _attributes(descriptor: int) -> list[str]:
    try:
        return os.listxattr(descriptor) if hasattr(os, "listxattr") else []
    except OSError:
        return []


def _begins(whole: Path, part: Path) -> bool:
    with open(whole, "rb") as left, open(part, "rb") as right:
        while piece := right.read(_PIECE_BYTES):
            if left.read(len(piece)) != piece:
                return False
    return True


def _rename_over_nothing(source: Path, target: Path) -> None:
    rename = _linux_rename()
    with opened_folder(source.parent) as left, opened_folder(target.parent) as right:
        if rename is not None:
            names = os.fsencode(source.name), os.fsencode(target.name)
            if rename(left, names[0], right, names[1], _NOT_OVER) == 0:
                return
            number = ctypes.get_errno()
            if number not in _UNSUPPORTED:
                raise OSError(number, os.strerror(number), str(source), None, str(target))
        # A file system that cannot do both at once: whoever takes the name right here loses it.
        if _has(right, target.name):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        os.rename(source.name, target.name, src_dir_fd=left, dst_dir_fd=right)


@functools.cache
def _linux_rename() -> Callable[..., int] | None:
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is not None:
        rename.argtypes = [
            ctypes.c_int,
            ctypes.c_char_p,
            ctypes.c_int,
            ctypes.c_char_p,
            ctypes.c_uint,
        ]
    return rename


def _file_fingerprint(path: Path) -> str:
    fingerprint = fingerprint_file(path)
    if fingerprint is None:
        raise TableRefused(f"'{path}' cannot be read")
    return fingerprint


def _require_plain(path: Path) -> None:
    mode = os.lstat(path).st_mode
    if stat.S_ISLNK(mode):
        raise TableRefused(f"'{path}' is a symbolic link; only plain files and folders are moved")
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise TableRefused(f"'{path}' is no plain file; only plain files and folders are moved")


def _reraise(error: OSError) -> None:
    raise error
