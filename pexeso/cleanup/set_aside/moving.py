"""Tables as files: their fingerprints, and moves that overwrite nothing and can be killed.

A table is a plain file or a folder of plain files. Within a file system it moves by one rename. To
another it is copied, synced and compared; its original then loses its name by one rename, and is
removed only after each file of it was found equal to its copy.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import functools
import hashlib
import os
import shutil
import signal
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pexeso.lake.readers.content import fingerprint_file
from pexeso.store.files import sync_file, sync_folder
from pexeso.store.local.folders import sync_tree

_WORKING_FOLDER, _NOT_OVER = -100, 1  # AT_FDCWD and RENAME_NOREPLACE of Linux
_PIECE_BYTES = 1 << 20
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM)

Snapshot = tuple[tuple[str, int, int, int], ...]


class TableRefused(Exception):
    """A table cannot be moved; the message is a clause that says why."""


def table_files(path: Path) -> list[tuple[str, Path]]:
    """Return the files of a table, sorted, by their paths relative to it; of a file by "".

    Raises
    ------
    TableRefused
        It is neither a plain file nor a folder of plain files and folders.
    OSError
        It is not there, or cannot be listed.
    """
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
    """Compute the fingerprint of a table.

    That of a file is `Content.fingerprint`; that of a folder is one over the relative paths and the
    fingerprints of its files.

    Parameters
    ----------
    path : Path
    known : dict, optional
        Fingerprints of files of a folder by their paths relative to it, which are not read then.

    Raises
    ------
    TableRefused, OSError
        It cannot be read as a table's files.
    """
    if not path.is_dir():
        _require_plain(path)
        return _file_fingerprint(path)
    running = hashlib.blake2b(digest_size=16)
    for relative, file in table_files(path):
        fingerprint = (known or {}).get(relative) or _file_fingerprint(file)
        running.update(os.fsencode(relative) + b"\0" + fingerprint.encode() + b"\n")
    return running.hexdigest()


def snapshot(path: Path) -> Snapshot:
    """Return what tells cheaply whether a table was touched; a rename of it changes nothing."""
    return tuple(
        (relative, status.st_ino, status.st_size, status.st_mtime_ns)
        for relative, file in table_files(path)
        for status in [os.lstat(file)]
    )


def make_folders(root: Path, relative: str) -> None:
    """Make the folders above a name below `root`, and wait until they are on the disk."""
    folder = root
    for part in relative.split("/")[:-1]:
        above, folder = folder, folder / part
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder)
            sync_folder(above)


def remove_empty_folders(root: Path, relative: str) -> None:
    """Remove the folders above a name below `root` that are empty."""
    folder = (root / relative).parent
    while folder != root:
        try:
            os.rmdir(folder)
        except OSError:  # something is in it
            return
        folder = folder.parent


def rename_new(source: Path, target: Path) -> None:
    """Rename a file or folder to a name that is free, and wait until that is on the disk.

    Raises
    ------
    FileExistsError
        The name is taken.
    OSError
        It cannot be renamed; `errno.EXDEV` to another file system.
    """
    _rename_over_nothing(source, target)
    sync_folder(target.parent)
    if source.parent != target.parent:
        sync_folder(source.parent)


def copy_whole(source: Path, target: Path, fingerprint: str) -> None:
    """Copy a table under a name that is free, sync it, and compare it.

    Raises
    ------
    TableRefused
        The name is taken, or the copy differs: the table was changed meanwhile.
    OSError
        It cannot be copied; nothing is left of the attempt.
    """
    if os.path.lexists(target):
        raise TableRefused(f"'{target}' is there and no copy of it; move it elsewhere")
    try:
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True, copy_function=shutil.copy2)
            sync_tree(target)
        else:
            shutil.copy2(source, target, follow_symlinks=False)
            sync_file(target)
        _keep_owners(source, target)
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


def require_not_written(path: Path, shown: Path) -> None:
    """Raise TableRefused where a program has a file of a table open and may write to it.

    What it writes later would go into a file without a name. Files of file systems that have no
    leases, and those of other owners, pass.
    """
    for _, file in table_files(path):
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            # Whoever opens it this instant breaks the lease, which is told by a signal: one that
            # is ignored unless somebody wants it.
            fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EWOULDBLOCK):
                raise TableRefused(
                    f"a program has '{shown}' open for writing; end it, and try again"
                ) from error
        finally:
            os.close(descriptor)


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
                with contextlib.suppress(PermissionError):  # told when what is in it is removed
                    os.fchmod(folder, 0o700)


@contextlib.contextmanager
def _opened_parent(path: Path) -> Iterator[int | None]:
    """Open the folder of a name, which is no link; None where there is no such name."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        parent = os.open(path.parent, flags)
    except FileNotFoundError:
        yield None
        return
    try:
        is_there = path.name in os.listdir(parent)
        yield parent if is_there else None
    finally:
        os.close(parent)


def _begins(whole: Path, part: Path) -> bool:
    with open(whole, "rb") as left, open(part, "rb") as right:
        while piece := right.read(_PIECE_BYTES):
            if left.read(len(piece)) != piece:
                return False
    return True


def _rename_over_nothing(source: Path, target: Path) -> None:
    rename = _linux_rename()
    if rename is not None:
        names = os.fsencode(source), os.fsencode(target)
        if rename(_WORKING_FOLDER, names[0], _WORKING_FOLDER, names[1], _NOT_OVER) == 0:
            return
        number = ctypes.get_errno()
        if number not in _UNSUPPORTED:
            raise OSError(number, os.strerror(number), str(source), None, str(target))
    # A file system that cannot do both at once: whoever takes the name right here loses it.
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    os.rename(source, target)


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


def _keep_owners(source: Path, target: Path) -> None:
    pairs = [(source, target)]
    if source.is_dir():
        pairs += [(path, target / path.relative_to(source)) for path in source.rglob("*")]
    for original, copied in pairs:
        status = os.lstat(original)
        with contextlib.suppress(PermissionError):  # only root may give a file to somebody else
            os.chown(copied, status.st_uid, status.st_gid, follow_symlinks=False)


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
