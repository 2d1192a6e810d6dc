"""A model on disk: a JSON file that describes it, and plain .npy and Arrow files.

None of the files runs code.

::

    embedder.json    format version, kind, options, fingerprint; size and digest of each other file;
                     `precision`, "half", where vectors are rounded (`embed.half`)
    rows.npy         float32 (v + buckets, dimensions), of trained models
    signs.npy        uint8 (buckets, ceil(dimensions / 8)), of untrained ones
    centre.npy       float32 (dimensions,)
    weights.npy      float32 (v + 1,)
    words.arrow      one column `word` of v strings

Opening maps the arrays into memory and reads none of them; with `verify=True` every byte is read
and checked. Arrays are used as they are mapped: nothing is unpacked, so that processes that have
one model open share its memory. What a model may be made from is one string,
`embed.registry.MODEL_FORMS`.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy

from embed.words import string_buffers
from pexeso.errors import EmbedderError, OutputError

DESCRIPTION = "embedder.json"
FORMAT_VERSION = 2
"""Raised whenever the files, or the vectors that the same files give, change."""

_DIGEST_BYTES = 32
_BLOCK_BYTES = 1 << 24

_HEADER_ERRORS = (
    OSError,
    ValueError,
    EOFError,
    OverflowError,
    MemoryError,
    RecursionError,
    SyntaxError,
    TypeError,
    TokenError,
)
"""What NumPy raises for a file whose header is damaged: it parses that as Python."""

Part = np.ndarray | pa.LargeStringArray


@dataclass(frozen=True)
class StoredModel:
    """A model folder that has been opened."""

    folder: Path
    kind: str
    options: Mapping[str, Any]
    fingerprint: str
    precision: str | None = None

    def option(self, name: str, kind: type) -> Any:
        """Return one option, or raise EmbedderError if it is missing or not of the type."""
        value = self.options.get(name)
        if type(value) is not kind:
            raise EmbedderError(
                f"{self.folder / DESCRIPTION} has no option {name!r} of type {kind.__name__}."
            )
        return value

    def array(self, name: str, dtype: type, n_axes: int) -> np.ndarray:
        """Map an array into memory, copy-on-write so that the file cannot be changed through it."""
        path = self.folder / f"{name}.npy"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a header that looks like one of Python 2
                array = np.load(path, mmap_mode="c", allow_pickle=False)
        except _HEADER_ERRORS as error:
            raise EmbedderError(
                f"{path} is not a complete array file; build the model again."
            ) from error
        if array.dtype != dtype or array.ndim != n_axes:
            raise EmbedderError(
                f"{path} holds {array.dtype} with {array.ndim} axes; {np.dtype(dtype)} with "
                f"{n_axes} is needed."
            )
        return np.asarray(array)

    def words(self, name: str) -> pa.LargeStringArray:
        """Map a list of words into memory."""
        path = self.folder / f"{name}.arrow"
        try:
            column = pa.ipc.open_file(pa.memory_map(str(path))).read_all().column("word")
            column.validate(full=True)  # all of them are read with the first value that is embedded
        except (OSError, KeyError, ValueError, pa.ArrowException) as error:
            raise EmbedderError(
                f"{path} is not a complete file of words; build the model again."
            ) from error
        if column.type != pa.large_string() or column.null_count:
            raise EmbedderError(
                f"{path} must hold words; got {column.type} with {column.null_count} nulls."
            )
        return column.combine_chunks()


def fingerprint(kind: str, options: Mapping[str, Any], parts: Mapping[str, Part]) -> str:
    """Return the digest of everything that decides a vector.

    Parameters
    ----------
    parts : mapping of str to array or words
        Their type, shape and every byte count; how they are laid out in files does not.
    """
    digest = blake2b(digest_size=_DIGEST_BYTES)
    digest.update(_canonical({"format": FORMAT_VERSION, "kind": kind, "options": options}))
    for name in sorted(parts):
        for piece_name, piece in _pieces(name, parts[name]):
            digest.update(
                _canonical({"part": piece_name, "type": piece.dtype.str, "shape": piece.shape})
            )
            _feed(digest, piece)
    return digest.hexdigest()


def save(
    folder: Path,
    kind: str,
    options: Mapping[str, Any],
    model_fingerprint: str,
    parts: Mapping[str, Part],
) -> None:
    """Write a model into a new or empty folder.

    The description is written last, so that an unfinished folder has none.
    """
    prepare_folder(folder)
    try:
        for name, part in parts.items():
            _write_part(folder, name, part)
        write_description(folder, kind, options, model_fingerprint)
    except OSError as error:
        raise OutputError(
            f"The model cannot be written to {folder}: {error.strerror or error}."
        ) from error


def prepare_folder(folder: Path) -> None:
    """Make the folder, or raise OutputError if it exists and is not empty."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        occupied = any(folder.iterdir())
    except OSError as error:
        raise OutputError(
            f"The folder {folder} for the model cannot be made: {error.strerror or error}."
        ) from error
    if occupied:
        raise OutputError(f"The folder {folder} is not empty; save the model to a new folder.")


def write_description(
    folder: Path, kind: str, options: Mapping[str, Any], model_fingerprint: str
) -> None:
    """Write `embedder.json` for the files that lie in the folder."""
    files = {
        path.relative_to(folder).as_posix(): {
            "bytes": path.stat().st_size,
            "blake2b": file_digest(path),
        }
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    description = {
        "format": FORMAT_VERSION,
        "kind": kind,
        "options": dict(options),
        "fingerprint": model_fingerprint,
        "files": files,
    }
    (folder / DESCRIPTION).write_bytes(_pretty(description))


def set_precision(folder: Path, precision: str) -> None:
    """Note in the description of a model that was just written how its vectors are rounded."""
    description, _ = _read_description(folder)
    try:
        (folder / DESCRIPTION).write_bytes(_pretty({**description, "precision": precision}))
    except OSError as error:
        raise OutputError(
            f"The model cannot be written to {folder}: {error.strerror or error}."
        ) from error


def load(folder: Path, *, verify: bool = False) -> StoredModel:
    """Open a model folder.

    Parameters
    ----------
    verify : bool
        Also read every file and compare its digest; without it only presence and size are checked.
    """
    description, raw = _read_description(folder)
    if description.get("format") != FORMAT_VERSION:
        raise EmbedderError(
            f"The model in {folder} has format {description.get('format')!r} and this version "
            "reads format "
            f"{FORMAT_VERSION}; build the index again."
        )
    kind, options = description.get("kind"), description.get("options")
    mark, files = description.get("fingerprint"), description.get("files")
    precision = description.get("precision")
    if not (
        isinstance(kind, str)
        and isinstance(options, dict)
        and isinstance(mark, str)
        and isinstance(files, dict)
        and precision in (None, "half")
    ):
        raise EmbedderError(f"{folder / DESCRIPTION} is not complete; build the model again.")
    if verify and raw != _pretty(description):
        raise EmbedderError(f"{folder / DESCRIPTION} has been changed; build the model again.")
    for name, entry in files.items():
        _check_file(folder, name, entry, verify)
    return StoredModel(folder, kind, options, mark, precision)


def file_digest(path: Path) -> str:
    """Return the BLAKE2b digest of a file, as 64 hexadecimal digits."""
    digest = blake2b(digest_size=_DIGEST_BYTES)
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def _read_description(folder: Path) -> tuple[dict[str, Any], bytes]:
    path = folder / DESCRIPTION
    try:
        raw = path.read_bytes()
        description = json.loads(raw)
    except FileNotFoundError:
        raise EmbedderError(f"{folder} holds no model: there is no {DESCRIPTION} in it.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise EmbedderError(f"{path} cannot be read; build the model again.") from error
    if not isinstance(description, dict):
        raise EmbedderError(f"{path} is not a description of a model; build the model again.")
    return description, raw


def _check_file(folder: Path, name: str, entry: Any, verify: bool) -> None:
    path = folder / name
    # A description may come from anywhere: joined to an absolute path, a folder is forgotten.
    if ".." in Path(name).parts or Path(name).is_absolute() or "\0" in name or not path.is_file():
        raise EmbedderError(f"The model in {folder} lacks its file {name}; build the model again.")
    size = entry.get("bytes") if isinstance(entry, dict) else None
    if path.stat().st_size != size:
        raise EmbedderError(
            f"{path} has {path.stat().st_size:,} bytes instead of {size}; build the model again."
        )
    if verify and file_digest(path) != entry.get("blake2b"):
        raise EmbedderError(f"{path} has been changed since it was written; build the model again.")


def _write_part(folder: Path, name: str, part: Part) -> None:
    if isinstance(part, np.ndarray):
        with (folder / f"{name}.npy").open("wb") as file:
            # As np.save does, which tells of a full disk without its error number.
            array = np.asarray(part, order="C")
            npy.write_array_header_1_0(file, npy.header_data_from_array_1_0(array))
            file.write(array.reshape(-1).view(np.uint8).data)
        return
    table = pa.table({"word": part})
    with pa.ipc.new_file(str(folder / f"{name}.arrow"), table.schema) as writer:
        # One batch, so that the words come back as one array without a copy.
        writer.write_table(table, max_chunksize=max(len(part), 1))


def _pieces(name: str, part: Part) -> list[tuple[str, np.ndarray]]:
    if isinstance(part, np.ndarray):
        return [(name, part)]
    text, offsets = string_buffers(part)
    return [
        (f"{name}.offsets", offsets - offsets[0]),
        (f"{name}.text", text[offsets[0] : offsets[-1]]),
    ]


def _feed(digest: Any, array: np.ndarray) -> None:
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    for start in range(0, len(flat), _BLOCK_BYTES):
        digest.update(flat[start : start + _BLOCK_BYTES])


def _canonical(content: Any) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def _pretty(content: Any) -> bytes:
    return (json.dumps(content, sort_keys=True, indent=2) + "\n").encode()
