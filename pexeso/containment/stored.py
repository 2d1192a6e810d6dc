"""An index for containment search on disk: a document, and its arrays as ``.npy`` files that are opened memory-mapped."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from pexeso.containment.bands import BandTables
from pexeso.containment.ensemble import Ensemble
from pexeso.containment.options import EnsembleOptions
from pexeso.containment.postings import Postings
from pexeso.errors import IndexCorruptError, IndexNotFoundError, IndexVersionError, InputError, OutputError
from pexeso.store.arrays import open_array, write_arrays
from pexeso.store.files import read_document, write_document, writing

VERSION = 1
DOCUMENT = "containment.json"

_DTYPES = {
    **dict.fromkeys(("sets", "sizes", "starts", "token_offsets"), np.int64),
    **dict.fromkeys(("signatures", "table_values", "posting_halves"), np.uint32),
    **dict.fromkeys(("table_sets", "posting_sets"), np.int32),
    "tokens": np.uint64,
}


def save_ensemble(index: Ensemble, folder: str | Path) -> None:
    """Write an index into a new folder; the document comes last, so that a folder that has one is whole.

    Parameters
    ----------
    index : Ensemble
    folder : path
        Must not exist, or be empty.

    Raises
    ------
    OutputError
        Something is there, or it cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> save_ensemble(Ensemble.build(np.array([4, 5], np.uint64), np.array([0, 2])), folder)
    >>> open_ensemble(folder).search(np.array([4], np.uint64), 1.0).sets
    array([0])
    """
    folder = Path(folder)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise OutputError(
                f"'{folder}' must be empty to take an index for containment search; choose another folder."
            )
    arrays = {name: getattr(index, name) for name in ("sets", "sizes", "starts", "signatures")}
    if index.tables is not None:
        arrays |= {"table_values": index.tables.values, "table_sets": index.tables.sets}
    if index.tokens is not None:
        arrays |= {"tokens": index.tokens[0], "token_offsets": index.tokens[1]}
        arrays |= {"posting_halves": index.postings.halves, "posting_sets": index.postings.sets}
    entries = write_arrays(folder, {name: _signed(array) for name, array in arrays.items()})
    files = [asdict(entry) for entry in entries]
    write_document(folder / DOCUMENT, {"version": VERSION, "options": asdict(index.options), "files": files})


def open_ensemble(folder: str | Path) -> Ensemble:
    """Open an index that `save_ensemble` wrote; its arrays are read when they are used.

    Raises
    ------
    IndexNotFoundError
        There is no such index.
    IndexVersionError
        Another version wrote it.
    IndexCorruptError
        A file is missing, cut short or changed in size, or arrays do not fit together.
    """
    folder = Path(folder)
    path = folder / DOCUMENT
    if not path.is_file():
        raise IndexNotFoundError(f"'{folder}' holds no index for containment search: it has no '{DOCUMENT}'.")
    document = read_document(path)
    version = document.get("version") if isinstance(document, dict) else None
    if version != VERSION:
        raise IndexVersionError(
            f"'{path}' is of version {version!r}; this pexeso reads version {VERSION}: build it again."
        )
    options, sizes = _options(document, path), _file_sizes(document, path)
    wanted = {"sets", "sizes", "starts", "signatures"}
    wanted |= {"table_values", "table_sets"} if options.tables else set()
    wanted |= {"tokens", "token_offsets", "posting_halves", "posting_sets"} if options.keep_tokens else set()
    if set(sizes) != wanted:
        raise IndexCorruptError(
            f"'{path}' must list the arrays {', '.join(sorted(wanted))}. Got {', '.join(sorted(sizes))}."
        )
    arrays = {name: _opened(folder / f"{name}.npy", n_bytes, _DTYPES[name]) for name, n_bytes in sizes.items()}
    _require_shapes(arrays, options, folder)
    return Ensemble(
        options,
        *(arrays[name] for name in ("sets", "sizes", "starts", "signatures")),
        tables=BandTables(arrays["table_values"], arrays["table_sets"]) if options.tables else None,
        tokens=(arrays["tokens"], arrays["token_offsets"]) if options.keep_tokens else None,
        postings=Postings(arrays["posting_halves"], arrays["posting_sets"]) if options.keep_tokens else None,
    )


def _signed(array: np.ndarray) -> np.ndarray:
    """Give the same bits as a signed type, as the store knows no others of these widths."""
    return array.view(f"i{array.dtype.itemsize}") if array.dtype.kind == "u" else array


def _opened(path: Path, n_bytes: int, dtype: type) -> np.ndarray:
    array = np.asarray(open_array(path, n_bytes))
    if array.dtype.kind != "i" or array.dtype.itemsize != np.dtype(dtype).itemsize:
        raise IndexCorruptError(
            f"'{path}' must hold {np.dtype(dtype)} numbers or the signed ones as wide. Got {array.dtype}."
        )
    return array.view(dtype)


def _options(document: dict[str, Any], path: Path) -> EnsembleOptions:
    try:
        return EnsembleOptions(**document["options"])
    except (KeyError, TypeError, InputError) as error:
        raise IndexCorruptError(f"'{path}' does not hold the options of an index: {error}.") from error


def _file_sizes(document: dict[str, Any], path: Path) -> dict[str, int]:
    try:
        return {entry["path"].removesuffix(".npy"): int(entry["n_bytes"]) for entry in document["files"]}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise IndexCorruptError(f"'{path}' does not list the files of an index.") from error


def _require_shapes(arrays: dict[str, np.ndarray], options: EnsembleOptions, folder: Path) -> None:
    """Refuse arrays that would lead loops out of them: those that are short are looked through, of the large ones the shapes."""
    sizes, starts, m = arrays["sizes"], arrays["starts"], options.permutations
    n_sets = len(sizes) if sizes.ndim == 1 else -1
    shapes = {"sets": (n_sets,), "signatures": (n_sets, m), "table_values": (m, n_sets), "table_sets": (m, n_sets)}
    sound = all(arrays[name].shape == shape for name, shape in shapes.items() if name in arrays)
    sound = sound and starts.ndim == 1 and len(starts) > 0 and starts[0] == 0 and starts[-1] == n_sets
    sound = sound and not (np.diff(starts) <= 0).any() and not (np.diff(sizes) < 0).any()
    if sound and options.keep_tokens:
        offsets, tokens = arrays["token_offsets"], arrays["tokens"]
        sound = offsets.shape == (n_sets + 1,) and tokens.ndim == 1 and offsets[0] == 0 and offsets[-1] == len(tokens)
        sound = sound and bool((np.diff(offsets) == sizes).all())
        sound = sound and arrays["posting_halves"].shape == arrays["posting_sets"].shape == tokens.shape
    if not sound:
        raise IndexCorruptError(f"The arrays in '{folder}' do not fit together: restore the index, or build it again.")
