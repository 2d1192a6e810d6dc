"""Tables as files: their fingerprints, and moves that overwrite nothing and can be killed.

A table is a plain file or a folder of plain files. Within a file system it moves by one rename. To
another it is copied, synced and compared; its original then loses its name by one rename, and is
removed only after each file of it was found equal to its copy.
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
from collections.abc import Callable, Mapping
from pathlib import Path

from pexeso.lake.readers.content import fingerprint_file
from pexeso.store.files import sync_file, sync_folder
from pexeso.store.local.folders import sync_tree

_WORKING_FOLDER, _NOT_OVER = -100, 1  # AT_FDCWD and RENAME_NOREPLACE of Linux
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
    """Copy a table under a name that nobody else uses, sync it, and compare it.

    What an earlier attempt has left under that name is replaced.

    Raises
    ------
    TableRefused
        The copy differs: the table was changed meanwhile.
    OSError
        It cannot be copied; nothing is left of the attempt.
    """
    remove_tree(target)
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


def remove_tree(path: Path) -> None:
    """Remove a copy: a file or a folder; nothing where there is nothing."""
    if not os.path.lexists(path):
        return
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        os.unlink(path)


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
