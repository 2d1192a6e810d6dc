"""Storage of an index for containment search: a document and ``.npy`` arrays.

The arrays are opened memory-mapped.

All names begin with ``containment``, so that an index can lie in a folder beside other files, such
as those of an index for overlap search, whose posting lists it uses.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from pexeso.errors import IndexCorruptError, IndexNotFoundError, IndexVersionError, InputError
from pexeso.sets.containment.bands import BandTables
from pexeso.sets.containment.ensemble import Ensemble
from pexeso.sets.containment.lists import TokenLists
from pexeso.sets.containment.options import DOCUMENT, LISTS_ALONE, EnsembleOptions
from pexeso.store.arrays import open_array, write_arrays
from pexeso.store.files import read_document, write_document
from pexeso.store.manifest import FileEntry

VERSION = 2
READ_VERSIONS = (1, 2)
"""Of bands; in version 1 signatures have 32 bits."""

_PREFIX = "containment_"
_INDEX = {"sets": ("i8",), "sizes": ("i8",), "starts": ("i8",), "signatures": ("u2", "u4")}
_TABLES = {"table_values": ("u2", "u4"), "table_sets": ("u2", "i4")}
_ALWAYS = {"tables": True, "keep_tokens": True}
"""Options that the format has a place for, and that every index of this version has."""


def write_ensemble(index: Ensemble, folder: Path) -> list[FileEntry]:
    """Write an index into an existing folder that has none; the document comes last.

    Posting lists belong to what they were made of, and are handed to `read_ensemble` again.

    Parameters
    ----------
    folder : Path
        May hold other files.

    Returns
    -------
    list[FileEntry]
        Name, size and checksum of each file.
    """
    arrays = {name: getattr(index, name) for name in _INDEX}
    arrays |= {"table_values": index.tables.values, "table_sets": index.tables.sets}
    entries = write_arrays(
        folder, {_PREFIX + name: _signed(array) for name, array in arrays.items()}
    )
    document = {
        "version": VERSION,
        "options": asdict(index.options) | _ALWAYS,
        "hashed_lists": False,
    }
    return [*entries, write_document(folder / DOCUMENT, document)]


def read_ensemble(folder: Path, lists: TokenLists) -> Ensemble | None:
    """Open an index that `write_ensemble` wrote; None where posting lists alone answer.

    Only headers are read, and numbers when they are used; `checking.check_ensemble` reads them all.
    """
    options = _document(folder)
    if options is None:
        return None
    dtypes = _INDEX | _TABLES
    arrays = {
        name: _opened(folder / f"{_PREFIX}{name}.npy", dtype) for name, dtype in dtypes.items()
    }
    _require_shapes(arrays, options, folder)
    tables = BandTables(arrays["table_values"], arrays["table_sets"])
    try:
        return Ensemble(options, *(arrays[name] for name in _INDEX), tables=tables, lists=lists)
    except InputError as error:
        raise IndexCorruptError(
            f"The index for containment search in '{folder}': {error}"
        ) from error


def _document(folder: Path) -> EnsembleOptions | None:
    path = folder / DOCUMENT
    if not path.is_file():
        raise IndexNotFoundError(
            f"'{folder}' holds no index for containment search: it has no '{DOCUMENT}'."
        )
    document: Any = read_document(path)
    version = document.get("version") if isinstance(document, dict) else None
    versions = (*READ_VERSIONS, LISTS_ALONE)
    if type(version) is not int or version not in versions:
        raise IndexVersionError(
            f"'{path}' is of version {version!r}; this pexeso reads the versions "
            f"{', '.join(map(str, versions))}: build it again."
        )
    if version == LISTS_ALONE:
        return None
    try:
        options = dict(document["options"])
        always = {name: options.pop(name) for name in _ALWAYS}
        if always != _ALWAYS or document["hashed_lists"] is not False:
            raise InputError("it must have tables, and no posting lists of its own")
        return EnsembleOptions(**options)
    except (KeyError, TypeError, InputError) as error:
        raise IndexCorruptError(
            f"'{path}' does not hold the options of an index: {error}."
        ) from error


def _signed(array: np.ndarray) -> np.ndarray:
    """Return the same bits as a signed type, as the store knows no others of these widths."""
    return array.view(f"i{array.dtype.itemsize}") if array.dtype.kind == "u" else array


def _opened(path: Path, names: tuple[str, ...]) -> np.ndarray:
    array = np.asarray(open_array(path))
    for name in names:
        if array.dtype == np.dtype(f"i{np.dtype(name).itemsize}"):
            return array.view(name)
    raise IndexCorruptError(
        f"'{path}' must hold integers of {' or '.join(names)}, as the signed ones as wide. Got "
        f"{array.dtype}."
    )


def _require_shapes(arrays: dict[str, np.ndarray], options: EnsembleOptions, folder: Path) -> None:
    """Raise IndexCorruptError if the shapes would lead loops out of the arrays.

    Of the numbers only those of partitions are examined, which are few.
    """
    n_sets, m = arrays["sizes"].size, options.permutations
    shapes = {name: (n_sets,) for name in ("sets", "sizes")} | {"signatures": (n_sets, m)}
    shapes |= dict.fromkeys(_TABLES, (m, n_sets))
    wrong = [name for name, shape in shapes.items() if arrays[name].shape != shape]
    if arrays["signatures"].dtype != arrays["table_values"].dtype:
        wrong.append("table_values")
    starts = arrays["starts"]
    sound = (
        starts.ndim == 1
        and len(starts)
        and starts[0] == 0
        and starts[-1] == n_sets
        and (np.diff(starts) > 0).all()
    )
    if wrong or not sound:
        raise IndexCorruptError(
            f"The arrays of the index for containment search in '{folder}' do not fit together, as "
            f"{', '.join(wrong) or 'starts'} tells: restore it from a copy, or build it again."
        )
