"""The text that a model is trained on, written from the values of a lake, and what words weigh.

A value alone gives its words little company, so lines are formed of a few values that belong
together: the values of one group (a column, or a table) are shuffled and written some to a line.
The sample and its order depend on a hash of (group, value) alone, so that the same lake gives the
same corpus however its batches arrive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embed.words import as_strings, hash_strings
from pexeso.errors import EmbedderError, InputError, OutputError, failing_as
from pexeso.runtime.ranges import mixed
from pexeso.runtime.threads import release_unused

GROUP, VALUE = "group", "value"
MAX_TOKENS = 20_000_000
"""Default bound of a corpus; training on so many tokens takes minutes, and more adds little."""

VALUES_PER_LINE = 8
"""Values of one group on a line: the words of a column become each other's company."""

MAX_WORDS = 500_000
"""Words of a lake that are weighed by how rare they are."""

_SLACK = 1.25
_LINES_PER_WRITE = 1 << 16
_READ_BYTES = 1 << 20
_MAX_COUNT = 1000
"""Words that occur more often are counted as if they occurred so often."""


@dataclass(frozen=True)
class CorpusCounts:
    n_lines: int
    n_tokens: int
    n_words: int  # Distinct ones
    # int64: how many of them occur c times, at c; the last entry is for that often or more
    words_by_count: np.ndarray

    def least_count(self, max_words: int) -> int:
        """Return the least number of occurrences, 1 or more, that leaves at most `max_words` words.

        Where none does, it is the one that leaves the fewest.
        """
        at_least = np.cumsum(self.words_by_count[::-1])[::-1]
        enough = np.flatnonzero(at_least[1:] <= max_words)
        return int(enough[0]) + 1 if len(enough) else max(len(at_least) - 1, 1)


def write_corpus(
    batches: Iterable[pa.RecordBatch | pa.Table],
    path: str | Path,
    *,
    seed: int = 0,
    values_per_line: int = VALUES_PER_LINE,
    max_tokens: int = MAX_TOKENS,
) -> int:
    """Write a corpus of UTF-8 lines, and return their number.

    Batches have the columns `group` (integer) and `value` (string, already normalised), each pair
    once. Of a larger lake a sample of pairs is taken, each with the same chance, of at most
    `max_tokens` words. Memory is that of the sample, and twice that while lines are formed.
    """
    sample = _Sample(max_tokens, seed)
    for batch in batches:
        sample.add(batch.column(GROUP), batch.column(VALUE))
    lines = sample.lines(values_per_line)
    what = f"The training corpus {path} cannot be written"
    with failing_as(OutputError, what), Path(path).open("wb") as file:
        for start in range(0, len(lines), _LINES_PER_WRITE):
            block = lines.slice(start, _LINES_PER_WRITE)
            file.write(b"\n".join(block.cast(pa.large_binary()).to_pylist()) + b"\n")
    n_bytes, n_lines = lines.nbytes, len(lines)
    del lines
    release_unused(n_bytes)
    return n_lines


def count_corpus(path: str | Path) -> CorpusCounts:
    """Count lines, words and distinct words of a corpus."""
    n_lines, words = _count_words(path)
    counts = np.fromiter(words.values(), np.int64, len(words))
    by_count = np.bincount(np.minimum(counts, _MAX_COUNT), minlength=2)
    return CorpusCounts(n_lines, int(counts.sum()), len(words), by_count)


def weighed_words(path: str | Path | None) -> tuple[pa.LargeStringArray, np.ndarray]:
    """Return the most frequent words of a corpus and their weights (`rarity`); none without one.

    Words as frequent as each other are in the order of their bytes.
    """
    if path is None:
        return pa.array([], pa.large_string()), np.ones(1, np.float32)
    _, words = _count_words(path)
    top_words = sorted(words.items(), key=lambda item: (-item[1], item[0]))[:MAX_WORDS]
    names = pa.array(
        [word.decode("utf-8", errors="replace") for word, _ in top_words], pa.large_string()
    )
    counts = np.array([count for _, count in top_words], np.int64)
    return names, rarity(names, counts, words.total())


def _count_words(path: str | Path) -> tuple[int, Counter[bytes]]:
    words: Counter[bytes] = Counter()
    n_lines, rest = 0, b""
    what = f"The training corpus {path} cannot be read"
    with failing_as(EmbedderError, what), Path(path).open("rb") as file:
        while block := file.read(_READ_BYTES):
            n_lines += block.count(b"\n")
            block = rest + block
            # The last piece may go on in the next block.
            cut = max(block.rfind(b" "), block.rfind(b"\n")) + 1
            rest = block[cut:]
            words.update(block[:cut].split())
    words.update(rest.split())
    return n_lines, words


class _Sample:
    """The (group, value) pairs of smallest priority whose words fit the bound.

    Priorities are hashes.
    """

    def __init__(self, max_tokens: int, seed: int) -> None:
        self._max_tokens, self._seed = max_tokens, seed
        self._ceiling = np.uint64(0xFFFFFFFFFFFFFFFF)
        self._pieces: list[pa.Table] = []
        self._n_tokens = 0

    def add(self, groups: pa.Array | pa.ChunkedArray, values: pa.Array | pa.ChunkedArray) -> None:
        words = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(as_strings(values)))
        texts = pc.binary_join(words, pa.scalar(" ", pa.large_string()))
        groups = np.asarray(groups).astype(np.int64)
        seed = np.uint64(self._seed)
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
        if self._n_tokens > _SLACK * self._max_tokens:
            self._trim()

    def _trim(self) -> None:
        """Keep the pairs of smallest priority that fit, and let in none above them from now on."""
        table = pa.concat_tables(self._pieces)
        order = np.argsort(table["priority"].to_numpy(), kind="stable")
        tokens = np.cumsum(table["tokens"].to_numpy()[order])
        rows = order[: np.searchsorted(tokens, self._max_tokens, side="right")]
        if len(rows) < len(order):
            self._ceiling = np.minimum(
                self._ceiling, table["priority"].to_numpy()[order[len(rows)]]
            )
            table = table.take(pa.array(np.sort(rows)))
        self._pieces = [table]
        self._n_tokens = int(tokens[len(rows) - 1]) if len(rows) else 0

    def lines(self, values_per_line: int) -> pa.Array:
        """Return the lines in a shuffled order that depends on the pairs and the seed alone."""
        if not self._pieces:
            return pa.array([], pa.large_string())
        self._trim()
        table = self._pieces.pop()
        groups = table["group"].to_numpy()
        order = np.lexsort((table["priority"].to_numpy(), groups))
        texts = table["text"].combine_chunks()
        del table
        texts = texts.take(pa.array(order))
        groups = groups[order]
        release_unused(texts.nbytes)
        position = np.arange(len(groups)) - np.searchsorted(groups, groups)
        starts = np.flatnonzero(position % values_per_line == 0)
        bounds = pa.array(np.append(starts, len(groups)), pa.int64())
        lines = pc.binary_join(
            pa.LargeListArray.from_arrays(bounds, texts), pa.scalar(" ", pa.large_string())
        )
        del texts
        shuffled = np.random.Generator(np.random.Philox(self._seed)).permutation(len(lines))
        return lines.take(pa.array(shuffled))


VALUE_VECTORS = WEIGHTED, MEAN = ("weighted", "mean")
"""How the vectors of its words make up that of a value: centred and weighted by rarity, or their
plain mean, as published."""

_DIGITS = 30
"""Of a weight before it is rounded."""

MOST_OF_A_NUMBER = 10
"""Occurrences beyond which a word with a digit is not taken to be more common."""


def rarity(words: pa.LargeStringArray, counts: np.ndarray, n_tokens: int) -> np.ndarray:
    """Return the weights of words: low for words that are common, high for rare ones.

    The weight of a word that makes up a share p of all words is ``log(1 + 1 / p) ** 2``: the
    inverse document frequency, with words for documents (Sparck Jones, Journal of Documentation,
    1972), squared, since what two names of one thing share are their rare words. A word with a
    digit in it is common by its spelling alone and still distinguishes things: it counts as if it
    occurred ten times at most. A word never seen is more often a misspelling of a common word than
    a rare one: it gets the average weight of the words of the corpus, the last of the v + 1.
    """
    counts = np.maximum(counts, 1)
    is_number = pc.match_substring_regex(words, r"\d").to_numpy(zero_copy_only=False)
    capped_counts = np.where(is_number, np.minimum(counts, MOST_OF_A_NUMBER), counts)
    few, which = np.unique(capped_counts, return_inverse=True)
    # In decimal numbers, which are the same on every machine: the logarithm of a library may differ
    # from that of another in its last bits.
    with localcontext() as context:
        context.prec = _DIGITS
        few_weights = [(1 + max(n_tokens, 1) / Decimal(int(number))).ln() ** 2 for number in few]
        times = np.bincount(which, weights=counts, minlength=len(few)).astype(np.int64).tolist()
        total = sum((weight * n for weight, n in zip(few_weights, times, strict=True)), Decimal(0))
        average = float(total / sum(times)) if len(counts) else 1.0
    return np.append(np.array(few_weights, np.float64)[which], average).astype(np.float32)


def check_value_vectors(value_vectors: str) -> None:
    """Raise InputError unless it names a way in which words make up a value."""
    if value_vectors not in VALUE_VECTORS:
        raise InputError(
            f"value_vectors must be {' or '.join(map(repr, VALUE_VECTORS))}. Got {value_vectors!r}."
        )
