"""Lines of text for many edges at once: pieces are written for each distinct name, and joined."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

Piece = str | pa.Array


def written(values: pa.Array, write: Callable[[object], str]) -> pa.Array:
    """Return a text for each value; `write` is called once for each distinct one.

    Examples
    --------
    >>> written(pa.array(["a", "b", "a"]), repr).to_pylist()
    ["'a'", "'b'", "'a'"]
    """
    encoded = values.dictionary_encode()
    texts = [write(value) for value in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.large_string()).take(encoded.indices)


def joined(pieces: Iterable[Piece]) -> pa.Array:
    """Return a text for each edge: pieces one after the other, texts the same for all.

    Examples
    --------
    >>> joined(["<", pa.array(["a", "b"]), ">"]).to_pylist()
    ['<a>', '<b>']
    """
    kind = pa.large_string()
    texts = [
        pa.scalar(piece, kind) if isinstance(piece, str) else piece.cast(kind) for piece in pieces
    ]
    return pc.binary_join_element_wise(*texts, pa.scalar("", kind))


def write_lines(path: Path, lines: Iterable[Iterable[str]]) -> None:
    """Write lines to a file, some at a time."""
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        for some in lines:
            stream.writelines(f"{line}\n" for line in some)
