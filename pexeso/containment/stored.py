"""An index for containment search on disk: a document, and its arrays as ``.npy`` files that are opened memory-mapped.

All names begin with ``containment``, so that an index can lie in a folder beside other files, such as those of an index for overlap search, whose posting
lists it then uses.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from pexeso.containment.bands import BandTables
from pexeso.containment.ensemble import Ensemble
from pexeso.containment.hashed_lists import HashedLists
from pexeso.containment.lists import CsrLists, TokenLists
from pexeso.containment.options import EnsembleOptions
from pexeso.errors import IndexCorruptError, IndexNotFoundError, IndexVersionError, InputError
from pexeso.store.arrays import open_array, write_arrays
from pexeso.store.files import read_document, write_document
from pexeso.store.manifest import FileEntry

VERSION = 1
DOCUMENT = "containment.json"

_PREFIX = "containment_"
_INDEX = {"sets": "i8", "sizes": "i8", "starts": "i8", "signatures": "u4"}
_TABLES = {"table_values": "u4", "table_sets": "i4"}
_LISTS = {
    "hashes": "u8",
    "numbers": "i4 i8",
    "token_offsets": "i8",
    "list_sets": "i4",
    "set_offsets": "i8",
    "set_tokens": "i4 i8",
}


def write_ensemble(index: Ensemble, folder: Path) -> list[FileEntry]:
    """Write an index into an existing folder that has none; the document comes last.

    Hashed posting lists are written; others belong to what they were made of, and are handed to `read_ensemble` again.

    Parameters
    ----------
    index : Ensemble
    folder : Path
        May hold other files.

    Returns
    -------
    list[FileEntry]
        Name, size and checksum of each file.

    Raises
    ------
    OutputError
        A file exists, or cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> entries = write_ensemble(Ensemble.build(np.array([4, 5], np.uint64), np.array([0, 2])), folder)
    >>> read_ensemble(folder).search(np.array([4], np.uint64), 1.0).sets
    array([0])
    """
    arrays = {name: getattr(index, name) for name in _INDEX}
    if index.tables is not None:
        arrays |= {"table_values": index.tables.values, "table_sets": index.tables.sets}
    hashed = isinstance(index.lists, HashedLists)
    if hashed:
        arrays |= {name: getattr(index.lists, name) for name in ("hashes", "numbers")}
        arrays |= {name: getattr(index.lists.lists, name) for name in CsrLists.__dataclass_fields__}
    entries = write_arrays(folder, {_PREFIX + name: _signed(array) for name, array in arrays.items()})
    document = {"version": VERSION, "options": asdict(index.options), "hashed_lists": hashed}
    return [*entries, write_document(folder / DOCUMENT, document)]


def read_ensemble(folder: Path, lists: TokenLists | None = None) -> Ensemble:
    """Open an index that `write_ensemble` wrote. Only headers are read, and numbers when they are used; `checking.check_ensemble` reads them all.

    Parameters
    ----------
    folder : Path
    lists : TokenLists, optional
        Of the same sets, in place of those that were written with the index.

    Raises
    ------
    IndexNotFoundError
        There is no such index.
    IndexVersionError
        Another version wrote it.
    IndexCorruptError
        A file is missing or cut short, or arrays do not fit together.
    """
    options, hashed = _document(folder)
    wanted = _INDEX | (_TABLES if options.tables else {}) | (_LISTS if hashed and lists is None else {})
    arrays = {name: _opened(folder / f"{_PREFIX}{name}.npy", allowed) for name, allowed in wanted.items()}
    _require_shapes(arrays, options, folder)
    tables = BandTables(arrays["table_values"], arrays["table_sets"]) if options.tables else None
    if hashed and lists is None:
        csr = CsrLists(*(arrays[name] for name in CsrLists.__dataclass_fields__))
        lists = HashedLists(arrays["hashes"], arrays["numbers"], csr)
    index = Ensemble(options, *(arrays[name] for name in _INDEX), tables=tables, lists=None)
    try:
        return index.with_lists(lists)
    except InputError as error:
        raise IndexCorruptError(f"The index for containment search in '{folder}': {error}") from error


def _document(folder: Path) -> tuple[EnsembleOptions, bool]:
    path = folder / DOCUMENT
    if not path.is_file():
        raise IndexNotFoundError(f"'{folder}' holds no index for containment search: it has no '{DOCUMENT}'.")
    document: Any = read_document(path)
    version = document.get("version") if isinstance(document, dict) else None
    if type(version) is not int or version != VERSION:
        raise IndexVersionError(
            f"'{path}' is of version {version!r}; this pexeso reads version {VERSION}: build it again."
        )
    hashed = document.get("hashed_lists")
    try:
        if type(hashed) is not bool:
            raise InputError(f"'hashed_lists' must be true or false. Got {hashed!r}")
        return EnsembleOptions(**document["options"]), hashed
    except (KeyError, TypeError, InputError) as error:
        raise IndexCorruptError(f"'{path}' does not hold the options of an index: {error}.") from error


def _signed(array: np.ndarray) -> np.ndarray:
    """Give the same bits as a signed type, as the store knows no others of these widths."""
    return array.view(f"i{array.dtype.itemsize}") if array.dtype.kind == "u" else array


def _opened(path: Path, allowed: str) -> np.ndarray:
    array = np.asarray(open_array(path))
    for name in allowed.split():
        dtype = np.dtype(name)
        if array.dtype.kind == "i" and array.dtype.itemsize == dtype.itemsize:
            return array.view(dtype)
    raise IndexCorruptError(f"'{path}' must hold integers of {allowed} or the signed ones as wide. Got {array.dtype}.")


def _require_shapes(arrays: dict[str, np.ndarray], options: EnsembleOptions, folder: Path) -> None:
    """Refuse arrays whose shapes would lead loops out of them; of numbers only those of partitions are looked at, which are few."""
    n_sets, m = arrays["sizes"].size, options.permutations
    shapes = {name: (n_sets,) for name in ("sets", "sizes")} | {"signatures": (n_sets, m)}
    shapes |= dict.fromkeys(_TABLES, (m, n_sets))
    if "hashes" in arrays:
        n_tokens, n_pairs = arrays["hashes"].size, arrays["list_sets"].size
        shapes |= {"hashes": (n_tokens,), "numbers": (n_tokens,), "token_offsets": (n_tokens + 1,)}
        shapes |= {"list_sets": (n_pairs,), "set_tokens": (n_pairs,), "set_offsets": (arrays["set_offsets"].size,)}
    wrong = [name for name, shape in shapes.items() if name in arrays and arrays[name].shape != shape]
    starts = arrays["starts"]
    sound = starts.ndim == 1 and len(starts) and starts[0] == 0 and starts[-1] == n_sets and (np.diff(starts) > 0).all()
    if wrong or not sound or ("set_offsets" in arrays and not arrays["set_offsets"].size):
        raise IndexCorruptError(
            f"The arrays of the index for containment search in '{folder}' do not fit together, as "
            f"{', '.join(wrong) or 'starts'} tells: restore it from a copy, or build it again."
        )
