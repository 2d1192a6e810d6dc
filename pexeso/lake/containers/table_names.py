"""The name of a table of a lake, from the path by which its file is given."""

from __future__ import annotations

import os
from pathlib import Path

from pexeso.lake.containers.formats import format_of
from pexeso.store.io.location import Location


def name_within(lake: Path | Location, file: str | os.PathLike[str]) -> str | None:
    """Return the name that a file has as a table of a lake, or None where it lies elsewhere.

    A link to a file of the lake is a table of its own, under its own name. What leads to a table
    inside a file stands behind the file's name, as in ``book.xlsx#Sheet1``, also where the lake is
    that one file.
    """
    if isinstance(lake, Location):
        return _name_at(lake, str(file))
    root = Path(os.path.realpath(lake))
    for path in (_in_its_folder(Path(file)), Path(os.path.realpath(file))):
        if not path.is_relative_to(root):
            # A table inside the one file that the lake is.
            member = str(path).removeprefix(f"{root}#")
            if member != str(path) and is_file(root):
                return f"{Path(lake).name}#{member}"
            continue
        name = path.relative_to(root).as_posix()
        if path == root:
            return Path(lake).name
        return f"{Path(lake).name}/{name}" if is_file(root) else name
    return None


def is_file(root: Path | Location) -> bool:
    """Return whether a lake is one file."""
    if isinstance(root, Path):
        return os.path.isfile(root)
    entry = root.look()
    return entry is not None and entry.kind == "file"


def holds_several(file: Path | Location) -> bool:
    """Return whether a file may hold several tables, by its name."""
    file_format = format_of(file.name)
    return file_format is not None and file_format.holds_several


def _name_at(lake: Location, file: str) -> str | None:
    begin = str(lake)
    if file == begin:
        return lake.name
    if file.startswith((f"{begin}/", f"{begin}#")) and holds_several(lake) and is_file(lake):
        return f"{lake.name}{file.removeprefix(begin)}"
    return file.removeprefix(f"{begin}/") if file.startswith(f"{begin}/") else None


def _in_its_folder(path: Path) -> Path:
    """Return a path with the links of its folder followed, and no others.

    The folder is the innermost one that is there: what stands behind it leads into a file.
    """
    folder = path.parent
    while not os.path.isdir(folder) and folder != folder.parent:
        folder = folder.parent
    inner = path.relative_to(folder)
    if ".." in inner.parts:
        return Path(os.path.realpath(path))
    return Path(os.path.realpath(folder), inner)
