"""A model on disk: a JSON file that describes it, and plain .npy and Arrow files.

None of the files runs code.

::

    embedder.json    format version, kind, options, fingerprint; size and digest of each other file;
                     `precision`, "half", where vectors are rounded (`embed.stored`)
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

import hashlib
import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import blake2b
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy

from embed.protocol import Embedder, Values
from pexeso.errors import EmbedderError, OutputError, failing_as
from pexeso.runtime.buffers import string_buffers
from pexeso.runtime.checks import require_choice

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


class ArrayModel:
    """Base of embedders: their fingerprint, and how those of arrays and words are saved."""

    kind: str
    _fingerprint: str | None = None

    @property
    def options(self) -> Mapping[str, Any]:
        """What decides a vector besides the arrays, as saved in `embedder.json`."""
        raise NotImplementedError

    def _arrays(self) -> dict[str, Part]:
        raise NotImplementedError

    @property
    def fingerprint(self) -> str:
        """Digest of kind, options and arrays; computed once, in a pass over all of them."""
        if self._fingerprint is None:
            self._fingerprint = self.recompute_fingerprint()
        return self._fingerprint

    def recompute_fingerprint(self) -> str:
        """Return the fingerprint of the arrays as they are, reading all of them."""
        return fingerprint(self.kind, dict(self.options), self._arrays())

    def save(self, folder: str | Path) -> None:
        """Write `embedder.json`, arrays and words into a folder that is new or empty."""
        path, model_fingerprint = Path(folder), self.fingerprint
        with writing_model(path):
            for name, part in self._arrays().items():
                _write_part(path, name, part)
            write_description(path, self.kind, self.options, model_fingerprint)


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


def check_weights(kind: str, weights: np.ndarray, n_words: int) -> None:
    """Raise EmbedderError unless each word, and any other, has a weight that can be used."""
    if weights.shape != (n_words + 1,):
        raise EmbedderError(
            f"A {kind} model with {n_words:,} words needs one weight more; got {weights.size:,}."
        )
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        raise EmbedderError(
            f"The weights of the words of a {kind} model must be finite and above 0."
        )


def fingerprint(kind: str, options: Mapping[str, Any], parts: Mapping[str, Part]) -> str:
    """Return the digest of everything that decides a vector.

    Type, shape and every byte of the parts count; how they are laid out in files does not.
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


@contextmanager
def writing_model(folder: Path) -> Iterator[None]:
    """Make a folder to write a model into; OutputError if it is not empty or a write fails."""
    with failing_as(OutputError, f"The folder {folder} for the model cannot be made"):
        folder.mkdir(parents=True, exist_ok=True)
        occupied = any(folder.iterdir())
    if occupied:
        raise OutputError(f"The folder {folder} is not empty; save the model to a new folder.")
    with failing_as(OutputError, f"The model cannot be written to {folder}"):
        yield


def write_description(
    folder: Path, kind: str, options: Mapping[str, Any], model_fingerprint: str
) -> None:
    """Write `embedder.json` for the files that lie in the folder: it marks a finished model."""
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
    with failing_as(OutputError, f"The model cannot be written to {folder}"):
        (folder / DESCRIPTION).write_bytes(_pretty({**description, "precision": precision}))


def load(folder: Path, *, verify: bool = False) -> StoredModel:
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
    with path.open("rb") as file:
        return hashlib.file_digest(file, partial(blake2b, digest_size=_DIGEST_BYTES)).hexdigest()


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
            # As np.save does, which reports a full disk without its error number.
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


HALF, SINGLE = PRECISIONS = ("half", "single")
"""Of vectors: entries of 16 or of 32 bits."""

ENTRY_BYTES = {HALF: 2, SINGLE: 4}


class HalfPrecision:
    """An embedder whose vectors have entries that float16 holds.

    Rounding belongs to the model, not to the file: a value of the lake and one of a query get the
    same vector, and every search, oracle and estimate sees the numbers that are stored.

    It moves an entry ``x`` by at most ``2**-11 |x|``, or ``2**-25`` where it is small, so a vector
    of length L by ``2**-11 L + sqrt(d) 2**-25``, and by the triangle inequality a distance of two
    vectors by twice that: for unit vectors of up to 4,096 dimensions, by less than 0.0005 of the
    largest distance there is, 2 (under the angular metric, which compares chords, this is said of
    the chord). The Manhattan distance has the same bound, as ``|v|_1 <= sqrt(d) |v|_2`` and the
    largest distance is ``2 sqrt(d)``. Only a pair that is no farther than this from `max_distance`
    can match with one precision and not with the other.
    """

    precision = HALF

    def __init__(self, whole: Embedder) -> None:
        self.whole, self.kind, self.dimensions = whole, whole.kind, whole.dimensions

    @cached_property
    def fingerprint(self) -> str:
        """Digest of everything that decides a vector: `whole`, and that it is rounded."""
        return blake2b(f"{HALF} {self.whole.fingerprint}".encode(), digest_size=32).hexdigest()

    def embed(self, values: Values) -> np.ndarray:
        """Embed values as `whole` does, and round each entry to float16.

        Vectors are float32, and of length 1 to within ``2**-10.9``, or zeros.
        """
        return in_half(self.whole.embed(values))

    def save(self, folder: str | Path) -> None:
        """Write the model; `embed.load_embedder` gives it back with its precision."""
        self.whole.save(folder)
        set_precision(Path(folder), HALF)


def in_half(vectors: np.ndarray) -> np.ndarray:
    """Round each entry to the nearest float16 number, a tie to the even one; float32."""
    with np.errstate(over="ignore"):  # what is infinite then is refused where vectors are checked
        return vectors.astype(np.float16).astype(np.float32)


def with_precision(embedder: Embedder, precision: str) -> Embedder:
    """Return an embedder that gives vectors of a precision.

    One without vectors of its own (``"lexical"``), and one that rounds already, stays as it is.
    """
    check_precision(precision)
    is_dense = embedder.kind != "lexical" and not isinstance(embedder, HalfPrecision)
    return HalfPrecision(embedder) if precision == HALF and is_dense else embedder


def check_precision(precision: object) -> None:
    require_choice("vector_precision", precision, PRECISIONS)
