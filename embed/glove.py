"""Word vectors from a text file: GloVe's form, or word2vec's with its header line, plain or gzip.

Each line is a word and its numbers, parted by single spaces. Some published files hold words with
spaces in them; what does not split into one word and the numbers from the left is split from the
right.

Source of the vectors' use: a value is the plain average of its words, as for web tables in Dong,
Takeoka, Xiao, Oyamada, "Efficient Joinable Table Discovery in Data Lakes" (ICDE 2021). A word that
is not in the file is unknown.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
from pyarrow import csv

from embed.subword import SubwordEmbedder
from pexeso.errors import EmbedderError

_READ_BYTES = 1 << 24


def load_text(path: str | Path) -> SubwordEmbedder:
    """Read word vectors from a text file."""
    path = Path(path)
    words: list[pa.Array] = []
    rows: list[np.ndarray] = []
    try:
        with _open(path) as file:
            dimensions, blocks = _whole_lines(file, path)
            for block in blocks:
                new_words, new_rows = _parse(block, dimensions, path)
                words.append(new_words)
                rows.append(new_rows)
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or error
        raise EmbedderError(f"The word vectors {path} cannot be read: {reason}.") from error
    table = np.concatenate(rows)
    vocabulary = pa.concat_arrays(words)
    middle = np.zeros(dimensions, np.float32)
    return SubwordEmbedder(
        "glove", table, vocabulary, middle, min_n=0, max_n=0, notes={"centre": False}
    )


def _open(path: Path) -> BinaryIO:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _whole_lines(file: BinaryIO, path: Path) -> tuple[int, Iterator[bytes]]:
    """Return the number of dimensions, and the file in blocks of whole lines without its header."""
    first = file.readline()
    fields = first.split()
    is_header = len(fields) == 2 and all(field.isdigit() for field in fields)
    line = file.readline() if is_header else first
    dimensions = int(fields[1]) if is_header else len(fields) - 1
    if dimensions < 1 or not _is_number(line.split()[-1:]):
        raise EmbedderError(
            f"{path} is not a file of word vectors: its first line is not a word and numbers."
        )
    return dimensions, _blocks(file, line)


def _is_number(fields: list[bytes]) -> bool:
    try:
        return len(fields) == 1 and np.isfinite(float(fields[0]))
    except ValueError:
        return False


def _blocks(file: BinaryIO, rest: bytes) -> Iterator[bytes]:
    while block := file.read(_READ_BYTES):
        block = rest + block
        cut = block.rfind(b"\n") + 1
        rest = block[cut:]
        if cut:
            yield block[:cut]
    if rest.strip():
        yield rest


def _parse(block: bytes, dimensions: int, path: Path) -> tuple[pa.LargeStringArray, np.ndarray]:
    odd: list[str] = []

    def set_aside(row: csv.InvalidRow) -> str:
        odd.append(row.text)
        return "skip"

    names = [str(axis) for axis in range(dimensions)]
    try:
        table = csv.read_csv(
            # Some programs end each line with a space.
            pa.BufferReader(block.replace(b" \n", b"\n")),
            csv.ReadOptions(
                column_names=["word", *names], use_threads=False, block_size=len(block) + 1
            ),
            csv.ParseOptions(delimiter=" ", quote_char=False, invalid_row_handler=set_aside),
            csv.ConvertOptions(
                column_types={"word": pa.large_binary(), **dict.fromkeys(names, pa.float32())},
                null_values=[],
            ),
        )
        odd_words, odd_rows = _parse_odd(odd, dimensions)
    except ValueError as error:
        raise EmbedderError(
            f"{path} is not a file of word vectors: a line is not a word and {dimensions} "
            f"numbers ({error})."
        ) from error
    rows = (
        np.stack([table[name].to_numpy() for name in names], axis=1) if len(table) else odd_rows[:0]
    )
    rows = np.concatenate([rows, odd_rows])
    if not np.isfinite(rows).all():
        raise EmbedderError(f"{path} holds vectors that are not finite numbers.")
    return pa.concat_arrays(
        [_as_text(table["word"].combine_chunks()), pa.array(odd_words, pa.large_string())]
    ), rows


def _parse_odd(lines: list[str], dimensions: int) -> tuple[list[str], np.ndarray]:
    """Split the few lines whose word contains spaces, from the right; ValueError if it fails."""
    words, rows = [], np.zeros((len(lines), dimensions), np.float32)
    for row, line in zip(rows, lines, strict=True):
        word, *numbers = line.rsplit(" ", dimensions)
        if len(numbers) != dimensions:
            raise ValueError(f"got {len(numbers)} in one")
        row[:] = [float(number) for number in numbers]
        words.append(word)
    return words, rows


def _as_text(words: pa.LargeBinaryArray) -> pa.LargeStringArray:
    try:
        return words.cast(pa.large_string())
    except pa.ArrowInvalid:
        # A damaged word can match nothing, and is no reason to refuse the others.
        return pa.array(
            [word.decode("utf-8", errors="replace") for word in words.to_pylist()],
            pa.large_string(),
        )
