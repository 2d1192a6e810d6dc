"""Remove files that are known to be pexeso's own, and nothing else."""

import contextlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from pexeso.errors import InputError
from pexeso.store.paths import PARTITIONS, plain_file_size, require_folder, require_relative


def remove_files(root: Path, relative_paths: Iterable[str]) -> None:
    """Remove plain files of index folders and the folders that this leaves empty.

    These are folders within the index folders and above them.
    """
    folders = set()
    for relative in relative_paths:
        if plain_file_size(root, relative) is not None:
            (root / relative).unlink()
        folders.add(own_folder(relative))
    for folder in folders:
        for parent, _, _ in os.walk(root / folder, topdown=False):
            _remove_if_empty(Path(parent))
    _remove_if_empty(root / PARTITIONS)


def remove_tree(path: Path) -> None:
    """Remove a file, a link, or a folder with all that is in it; nothing where there is nothing."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def own_file(name: str) -> str:
    """Return `name` if it is a file in a folder of an index."""
    if require_relative(name) == own_folder(name):
        raise InputError(f"{name!r} is not a file in a folder of an index.")
    return name


def own_folder(name: str) -> str:
    """Return the folder of an index that a file is in."""
    parts = name.split("/")
    return require_folder("/".join(parts[: 2 if parts[0] == PARTITIONS else 1]))


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not there, or something else is in it
        folder.rmdir()


def empty_folder(folder: Path) -> None:
    """Remove what an earlier attempt left in a folder."""
    remove_tree(folder)
    folder.mkdir(parents=True)
