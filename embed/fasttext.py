"""fastText models: trained on the lake itself, or read from a `.bin` file.

Training needs no download and learns, from what occurs together in a lake, which words and
spellings are alike. The input table, the words and the centre are kept; the rest of a fastText
model serves training only. The package of fastText trains where it is installed, which has wheels
for few systems, and gensim elsewhere. Training by the former is not repeatable to the bit, because
the program's threads write to one table without locks; the trained model is stored with the index.

Source: Bojanowski, Grave, Joulin, Mikolov, "Enriching Word Vectors with Subword Information" (TACL
2017).
"""

from __future__ import annotations

import contextlib
import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from embed.corpus import WEIGHTED, CorpusCounts, check_value_vectors, count_corpus, rarity
from embed.subword import SubwordEmbedder, mean_word_vector
from pexeso.errors import EmbedderError, InputError, failing_as
from pexeso.runtime.compiled import compiled
from pexeso.runtime.extras import require

loops = compiled("embed.loops")

MAGIC = 793712314
_HEAD = struct.Struct("<2i 12i d 3i 2q")
"""Magic number and version; options; entries, words, labels, tokens and pruned rows."""
_SHAPE = struct.Struct("<?2q")
"""Whether a matrix is quantised, and its rows and columns; float32 numbers follow."""
_WITHOUT_NGRAMS, _SUPERVISED = 11, 3
"""Models of this version and kind have no n-grams, whatever their options say."""


class WordTable(NamedTuple):
    """What is kept of a model: a row for each word and n-gram, the words and their counts."""

    rows: np.ndarray
    words: pa.Array
    counts: np.ndarray
    min_n: int
    max_n: int


class _Layout(NamedTuple):
    """Where the parts of a `.bin` file are that is whole."""

    min_n: int
    max_n: int
    n_words: int
    entries: tuple[int, int]
    rows: int
    shape: tuple[int, int]


def require_whole(path: Path) -> _Layout:
    """Raise EmbedderError unless a file is a fastText model, complete and not quantised.

    The layout is that of `FastText::saveModel` of fastText 0.9.2.
    """
    with failing_as(EmbedderError, f"{path} cannot be read"):
        n_bytes = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(_HEAD.size)
        if len(head) < _HEAD.size or struct.unpack_from("<i", head)[0] != MAGIC:
            raise EmbedderError(f"{path} is not a fastText model (a .bin file saved by fastText).")
        _, version, *options, n_entries, n_words, _, _, n_pruned = _HEAD.unpack(head)
        data = np.memmap(path, np.uint8, "r")
    dimensions, kind, min_n, max_n = (options[place] for place in (0, 7, 9, 10))
    end = loops.end_of_entries(data, _HEAD.size, n_entries)
    offset, shapes = end + 8 * max(n_pruned, 0), []
    for _ in ("words", "output"):
        if offset + _SHAPE.size > n_bytes:
            break
        is_quantised, n_rows, n_columns = _SHAPE.unpack_from(data, offset)
        if is_quantised:
            raise EmbedderError(
                f"{path} is a quantised fastText model, whose vectors cannot be read; use the .bin "
                "file instead."
            )
        if n_rows < 0 or n_columns < 0:
            break
        shapes.append((n_rows, n_columns))
        offset += _SHAPE.size + 4 * n_rows * n_columns
    is_whole = offset <= n_bytes and len(shapes) == 2 and 0 <= n_words <= n_entries
    if not is_whole or shapes[0][0] < n_words + (max_n > 0) or shapes[0][1] != dimensions:
        raise EmbedderError(
            f"{path} is a fastText model that is damaged or cut short, at {n_bytes:,} bytes: copy "
            "or download it again."
        )
    if max_n <= 0 or (version == _WITHOUT_NGRAMS and kind == _SUPERVISED):
        min_n = max_n = 0
    first_row = end + 8 * max(n_pruned, 0) + _SHAPE.size
    return _Layout(min_n, max_n, n_words, (_HEAD.size, end), first_row, shapes[0])


WITHOUT_TRAINING = "use a .bin file or the model hashing"

THREADS = 12
"""Never below 11: the program leaves part of its table uninitialised then (fastText issue 1061)."""

MIN_BUCKETS, MAX_BUCKETS = 1 << 15, 1 << 21
MIN_N, MAX_N = 3, 6
"""Shortest and longest n-gram in characters."""

LEARNING_RATE, NEGATIVES = 0.1, 5
MAX_WORDS = 500_000
"""Most words that get a row of their own; rarer ones are met through their n-grams alone."""

MAX_DIMENSIONS = 2000


@dataclass(frozen=True)
class TrainingOptions:
    """How a model is trained on a corpus.

    The defaults keep misspelt values near the original, and different values apart.

    Attributes
    ----------
    dimensions : int
        Length of the vectors, 1 to 2,000.
    max_epochs, min_epochs : int
        Passes over the corpus: as many as `token_budget` allows, between these two.
    token_budget : int
        Aim for tokens of the corpus times passes over it; bounds the time of training.
    value_vectors : {"weighted", "mean"}
        ``"weighted"``: the mean word vector is taken away from each word, and rare words count more
        in a value (module `embed.corpus`); ``"mean"``: the mean of the words' unit vectors.
    """

    dimensions: int = 100
    max_epochs: int = 10
    min_epochs: int = 1
    token_budget: int = 20_000_000
    value_vectors: str = WEIGHTED

    def __post_init__(self) -> None:
        if not isinstance(self.dimensions, int) or self.dimensions < 1:
            raise InputError(
                "The training option dimensions must be a whole number of at least 1; got "
                f"{self.dimensions!r}."
            )
        if self.dimensions > MAX_DIMENSIONS:
            raise InputError(
                f"The training option dimensions must be at most {MAX_DIMENSIONS}; got "
                f"{self.dimensions}."
            )
        check_value_vectors(self.value_vectors)

    def epochs(self, counts: CorpusCounts) -> int:
        """Return the passes over a corpus that the token budget allows."""
        epochs = self.token_budget // max(counts.n_tokens, 1)
        return int(np.clip(epochs, self.min_epochs, self.max_epochs))

    def buckets(self, counts: CorpusCounts) -> int:
        """Return the number of n-gram rows, a power of two: some eight for each distinct word."""
        n_buckets = 1 << (8 * max(counts.n_words, 1) - 1).bit_length()
        return int(np.clip(n_buckets, MIN_BUCKETS, MAX_BUCKETS))


def train(corpus: str | Path, options: TrainingOptions | None = None) -> SubwordEmbedder:
    """Train a model on a corpus; see :func:`embed.corpus.write_corpus` for how to write one."""
    options = options or TrainingOptions()
    counts = count_corpus(corpus)
    if counts.n_tokens == 0:
        raise EmbedderError(f"The corpus {corpus} has no words to train on.")
    settings = {
        "epoch": options.epochs(counts),
        "bucket": options.buckets(counts),
        "minCount": counts.least_count(MAX_WORDS),
        "dim": options.dimensions,
        "minn": MIN_N,
        "maxn": MAX_N,
        "lr": LEARNING_RATE,
        "neg": NEGATIVES,
    }
    by_fasttext = find_spec("fasttext") is not None
    try:
        with _silence():
            table = (_train_fasttext if by_fasttext else _train_gensim)(corpus, settings)
    except (RuntimeError, ValueError) as error:
        raise EmbedderError(f"fastText could not be trained on {corpus}: {error}.") from error
    notes = {"trained": True, **settings}
    return _embedder(table, options.value_vectors, notes, "The trained fastText model")


def _train_fasttext(corpus: str | Path, settings: dict[str, Any]) -> WordTable:
    """Train by the package of fastText, in several threads."""
    fasttext = import_module("fasttext")
    return trained_table(
        fasttext.train_unsupervised(
            str(corpus), model="skipgram", loss="ns", thread=THREADS, verbose=0, **settings
        )
    )


def _train_gensim(corpus: str | Path, settings: dict[str, Any]) -> WordTable:
    """Train by gensim, in one thread, so that the same corpus gives the same model."""
    models = require("gensim", "Training a fastText model", instead=WITHOUT_TRAINING).models
    model = models.FastText(
        sg=1,
        negative=settings["neg"],
        vector_size=settings["dim"],
        bucket=settings["bucket"],
        min_count=settings["minCount"],
        min_n=settings["minn"],
        max_n=settings["maxn"],
        alpha=settings["lr"],
        sample=1e-4,
        workers=1,
        seed=1,
    )
    model.build_vocab(corpus_file=str(corpus))
    model.train(
        corpus_file=str(corpus),
        epochs=settings["epoch"],
        total_examples=model.corpus_count,
        total_words=model.corpus_total_words,
    )
    vectors = model.wv
    words = vectors.index_to_key
    counts = np.array([vectors.get_vecattr(word, "count") for word in words], np.int64)
    rows = np.concatenate([vectors.vectors_vocab, vectors.vectors_ngrams]).astype(np.float32)
    return WordTable(
        rows, pa.array(words, pa.large_string()), counts, settings["minn"], settings["maxn"]
    )


def load_binary(path: str | Path, *, value_vectors: str = WEIGHTED) -> SubwordEmbedder:
    """Read a fastText `.bin` file."""
    path = Path(path)
    check_value_vectors(value_vectors)
    if not path.is_file():
        raise EmbedderError(f"There is no fastText model at {path}.")
    return _embedder(
        read_table(path), value_vectors, {"trained": False}, f"The fastText model {path}"
    )


def read_table(path: Path) -> WordTable:
    """Return what is kept of a `.bin` file."""
    layout = require_whole(path)
    words, counts = _read_words(path, layout)
    rows = np.fromfile(path, "<f4", layout.shape[0] * layout.shape[1], offset=layout.rows)
    rows = rows.reshape(layout.shape).astype(np.float32, copy=False)
    return WordTable(rows, words, counts, layout.min_n, layout.max_n)


def _read_words(path: Path, layout: _Layout) -> tuple[pa.Array, np.ndarray]:
    """Return the words of a file and how often each was met, int64 (n_words,)."""
    start, end = layout.entries
    with path.open("rb") as file:
        file.seek(start)
        data = file.read(end - start)
    names, counted, begin = [], np.empty(layout.n_words, np.int64), 0
    for number in range(layout.n_words):
        stop = data.index(b"\0", begin)
        names.append(data[begin:stop].decode("utf-8", "replace"))
        counted[number] = int.from_bytes(data[stop + 1 : stop + 9], "little", signed=True)
        begin = stop + 10
    return pa.array(names, pa.large_string()), counted


def trained_table(model: Any) -> WordTable:
    """Take a model of the fastText package apart."""
    settings = model.f.getArgs()
    names, counts = model.get_words(include_freq=True, on_unicode_error="replace")
    rows = np.ascontiguousarray(model.get_input_matrix(), np.float32)
    return WordTable(rows, pa.array(names, pa.large_string()), counts, settings.minn, settings.maxn)


def _embedder(
    table: WordTable, value_vectors: str, notes: dict[str, Any], name: str
) -> SubwordEmbedder:
    """Make an embedder of the input table, with the weights of the words and the centre."""
    rows, words, counts, min_n, max_n = table
    if not np.isfinite(rows).all():
        raise EmbedderError(f"{name} has vectors that are not finite numbers; train it again.")
    kind, middle, weights = "fasttext-mean", np.zeros(rows.shape[1], np.float32), None
    if value_vectors == WEIGHTED:
        kind, middle = "fasttext", mean_word_vector(rows, words, min_n=min_n, max_n=max_n)
        weights = rarity(words, counts, int(counts.sum()))
    return SubwordEmbedder(
        kind, rows, words, middle, min_n=min_n, max_n=max_n, weights=weights, notes=notes
    )


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Suppress what the Python part of the fastText package prints; verbose=0 silences the rest."""
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        yield
