"""The text that a model is trained on, written from the values of a lake.

The words of such a text are also counted here.

A value alone gives its words little company, so lines are formed of a few values that belong
together: the values of one group (a column, or a table) are shuffled and written some to a line.
The sample and its order hang on a hash of (group, value) alone, so that the same lake gives the
same corpus however its batches arrive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embed.vocabulary import hash_strings
from embed.words import as_strings
from pexeso.errors import EmbedderError, InputError, OutputError
from pexeso.runtime.mixing import mixed

GROUP, VALUE = "group", "value"
MAX_TOKENS = 20_000_000
"""Default bound of a corpus; training on so many tokens takes minutes, and more adds little."""

_SLACK = 1.25
_LINES_PER_WRITE = 1 << 16
_READ_BYTES = 1 << 24


@dataclass(frozen=True)
class CorpusOptions:
    """How a corpus is written.

    Attributes
    ----------
    values_per_line : int
        Values of one group on a line; 1 writes each value alone.
    max_tokens : int
        Most words in the corpus. Of a larger lake a sample of (group, value) pairs is taken, each
        with the same chance.
    seed : int
        Another seed, another sample and order; at least 0.
    """

    # One value a line trains in half the time; in eights the words of a column become each other's
    # company, and on the wikitables lake recall of aliases at 70 % precision rose from 44 to 57 %.
    values_per_line: int = 8
    max_tokens: int = MAX_TOKENS
    seed: int = 0

    def __post_init__(self) -> None:
        for name, minimum in (("values_per_line", 1), ("max_tokens", 1), ("seed", 0)):
            number = getattr(self, name)
            if not isinstance(number, int) or number < minimum:
                raise InputError(
                    f"The corpus option {name} must be a whole number of at least {minimum}; got "
                    f"{number!r}."
                )


@dataclass(frozen=True)
class CorpusCounts:
    """Words of a corpus.

    Attributes
    ----------
    n_lines, n_tokens, n_words : int
        Lines, words, and distinct words.
    words_by_count : numpy.ndarray, int64
        Entry c is the number of distinct words that occur c times; the last entry stands for that
        often or more.
    """

    n_lines: int
    n_tokens: int
    n_words: int
    words_by_count: np.ndarray

    def least_count(self, max_words: int) -> int:
        """Return the least number of occurrences that leaves at most `max_words` words.

        It is at least 1. Where no number leaves that few words, it is the one that leaves the
        fewest.
        """
        at_least = np.cumsum(self.words_by_count[::-1])[::-1]
        enough = np.flatnonzero(at_least[1:] <= max_words)
        return int(enough[0]) + 1 if len(enough) else max(len(at_least) - 1, 1)


def write_corpus(
    batches: Iterable[pa.RecordBatch | pa.Table],
    path: str | Path,
    options: CorpusOptions | None = None,
) -> int:
    """Write a corpus of UTF-8 lines.

    Parameters
    ----------
    batches : iterable of pyarrow record batches or tables
        With the columns `group` (integer) and `value` (string, already normalised); each pair once.
    path : path
        Text file to write; what is there is replaced.

    Returns
    -------
    int
        Number of lines written.

    Notes
    -----
    Memory is that of the sample: at most 1.25 times `max_tokens` words of text and 24 bytes a
    value, and twice that while lines are formed.
    """
    options = options or CorpusOptions()
    sample = _Sample(options)
    for batch in batches:
        sample.add(batch.column(GROUP), batch.column(VALUE))
    lines = sample.lines()
    try:
        with Path(path).open("wb") as file:
            for start in range(0, len(lines), _LINES_PER_WRITE):
                block = lines.slice(start, _LINES_PER_WRITE)
                file.write(b"\n".join(block.cast(pa.large_binary()).to_pylist()) + b"\n")
    except OSError as error:
        raise OutputError(
            f"The training corpus {path} cannot be written: {error.strerror or error}."
        ) from error
    return len(lines)


def count_corpus(path: str | Path, *, largest_count: int = 1000) -> CorpusCounts:
    """Count lines, words and distinct words of a corpus."""
    n_lines, words = _count_words(path)
    counts = np.fromiter(words.values(), np.int64, len(words))
    by_count = np.bincount(np.minimum(counts, largest_count), minlength=2)
    return CorpusCounts(n_lines, int(counts.sum()), len(words), by_count)


def frequent_words(path: str | Path, max_words: int) -> tuple[pa.LargeStringArray, np.ndarray, int]:
    """Return the words that occur most often in a corpus.

    Returns
    -------
    words : pyarrow.LargeStringArray of length v
        Most frequent first, then in the order of their bytes.
    counts : numpy.ndarray of shape (v,), int64
        Occurrences of each.
    n_tokens : int
        Occurrences of all words of the corpus.
    """
    _, words = _count_words(path)
    top_words = sorted(words.items(), key=lambda item: (-item[1], item[0]))[:max_words]
    names = pa.array(
        [word.decode("utf-8", errors="replace") for word, _ in top_words], pa.large_string()
    )
    return names, np.array([count for _, count in top_words], np.int64), words.total()


def _count_words(path: str | Path) -> tuple[int, Counter[bytes]]:
    """Count lines and words of a file, read in blocks."""
    words: Counter[bytes] = Counter()
    n_lines, rest = 0, b""
    try:
        with Path(path).open("rb") as file:
            while block := file.read(_READ_BYTES):
                n_lines += block.count(b"\n")
                block = rest + block
                # The last piece may go on in the next block.
                cut = max(block.rfind(b" "), block.rfind(b"\n")) + 1
                rest = block[cut:]
                words.update(block[:cut].split())
    except OSError as error:
        raise EmbedderError(
            f"The training corpus {path} cannot be read: {error.strerror or error}."
        ) from error
    words.update(rest.split())
    return n_lines, words


class _Sample:
    """The (group, value) pairs of smallest priority whose words fit the bound.

    Priorities are hashes.
    """

    def __init__(self, options: CorpusOptions) -> None:
        self._options = options
        self._ceiling = np.uint64(0xFFFFFFFFFFFFFFFF)
        self._pieces: list[pa.Table] = []
        self._n_tokens = 0

    def add(self, groups: pa.Array | pa.ChunkedArray, values: pa.Array | pa.ChunkedArray) -> None:
        words = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(as_strings(values)))
        texts = pc.binary_join(words, pa.scalar(" ", pa.large_string()))
        groups = np.asarray(groups).astype(np.int64)
        seed = np.uint64(self._options.seed)
        priority = mixed(
            hash_strings(texts) ^ mixed(groups.view(np.uint64) ^ mixed(np.atleast_1d(seed)))
        )
        n_tokens = pc.list_value_length(words).to_numpy(zero_copy_only=False)
        rows = pa.array(
            np.flatnonzero((priority <= self._ceiling) & (pc.binary_length(texts).to_numpy() > 0))
        )
        piece = pa.table(
            {"group": groups, "priority": priority, "tokens": n_tokens, "text": texts}
        ).take(rows)
        self._pieces.append(piece)
        self._n_tokens += pc.sum(piece["tokens"]).as_py() or 0
        if self._n_tokens > _SLACK * self._options.max_tokens:
            self._trim()

    def _trim(self) -> None:
        """Keep the pairs of smallest priority that fit, and let in none above them from now on."""
        table = pa.concat_tables(self._pieces)
        order = np.argsort(table["priority"].to_numpy(), kind="stable")
        tokens = np.cumsum(table["tokens"].to_numpy()[order])
        rows = order[: np.searchsorted(tokens, self._options.max_tokens, side="right")]
        if len(rows) < len(order):
            self._ceiling = np.minimum(
                self._ceiling, table["priority"].to_numpy()[order[len(rows)]]
            )
        table = table.take(pa.array(np.sort(rows)))
        self._pieces = [table]
        self._n_tokens = int(tokens[len(rows) - 1]) if len(rows) else 0

    def lines(self) -> pa.Array:
        """Return the lines in a shuffled order that hangs on the pairs and the seed alone."""
        if not self._pieces:
            return pa.array([], pa.large_string())
        self._trim()
        table = self._pieces[0].combine_chunks()
        groups, priority = table["group"].to_numpy(), table["priority"].to_numpy()
        order = np.lexsort((priority, groups))
        texts = table["text"].take(pa.array(order)).combine_chunks()
        groups = groups[order]
        position = np.arange(len(groups)) - np.searchsorted(groups, groups)
        starts = np.flatnonzero(position % self._options.values_per_line == 0)
        bounds = pa.array(np.append(starts, len(groups)), pa.int64())
        lines = pc.binary_join(
            pa.LargeListArray.from_arrays(bounds, texts), pa.scalar(" ", pa.large_string())
        )
        shuffled = np.random.Generator(np.random.Philox(self._options.seed)).permutation(len(lines))
        return lines.take(pa.array(shuffled))
