"""fastText models: trained on the lake itself, or read from a `.bin` file.

Training needs no download and learns, from what stands together in a lake, which words and
spellings are alike. The input table, the words and the centre are kept; the rest of a fastText
model serves training only. Training is not repeatable to the bit, because the program's threads
write to one table without locks; the trained model is therefore stored with the index.

Source: Bojanowski, Grave, Joulin, Mikolov, "Enriching Word Vectors with Subword Information" (TACL
2017).
"""

from __future__ import annotations

import contextlib
import io
import struct
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from embed.corpus import CorpusCounts, count_corpus
from embed.lexical.subword import SubwordEmbedder, mean_word_vector
from embed.lexical.weights import WEIGHTED, check_value_vectors, rarity
from pexeso.errors import EmbedderError, InputError, MissingPackageError
from pexeso.runtime.jit import loop

# Check that a fastText `.bin` file is whole, before the package reads it.
#
# The package takes what is missing at the end for zeros, or goes on reading for ever.
#
# Source of the layout: `FastText::saveModel` of fastText 0.9.2.

MAGIC = 793712314
_HEAD = struct.Struct("<2i 12i d 3i 2q")
"""Magic number and version; options; entries, words, labels, tokens and pruned rows."""
_SHAPE = struct.Struct("<?2q")
"""Whether a matrix is quantised, and its rows and columns; float32 numbers follow."""


def require_whole(path: Path) -> None:
    """Raise EmbedderError unless a file is a fastText model, complete and not quantised."""
    try:
        n_bytes = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(_HEAD.size)
        if len(head) < _HEAD.size or struct.unpack_from("<i", head)[0] != MAGIC:
            raise EmbedderError(f"{path} is not a fastText model (a .bin file saved by fastText).")
        *_, n_entries, _, _, _, n_pruned = _HEAD.unpack(head)
        data = np.memmap(path, np.uint8, "r")
    except OSError as error:
        raise EmbedderError(f"{path} cannot be read: {error.strerror or error}.") from error
    offset = end_of_entries(data, _HEAD.size, n_entries) + 8 * max(n_pruned, 0)
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
        offset += _SHAPE.size + 4 * n_rows * n_columns
    else:
        if offset <= n_bytes:
            return
    raise EmbedderError(
        f"{path} is a fastText model that is damaged or cut short, at {n_bytes:,} bytes: copy or "
        "download it again."
    )


@loop
def end_of_entries(data: np.ndarray, start: int, n_entries: int) -> int:
    """Return where the entries of a dictionary end, beyond the data where these are too short.

    Each is a text that a zero ends, a count of eight bytes and a kind of one.
    """
    offset = start
    for _ in range(n_entries):
        while offset < len(data) and data[offset] != 0:
            offset += 1
        offset += 10
        if offset > len(data):
            break
    return offset


THREADS = 12
"""Never below 11.

With fewer threads the program leaves part of its table uninitialised (fastText issue 1061).
"""

MIN_BUCKETS, MAX_BUCKETS = 1 << 15, 1 << 21


@dataclass(frozen=True)
class TrainingOptions:
    """How a model is trained on a corpus.

    The defaults were chosen on the web tables of WikiTableQuestions (102,542 distinct values in
    7,218 columns, 367,000 words), by the share of 3,000 misspelt values (one random edit of a word
    of five letters or more) within 0.12, 0.3 and 0.5 of the original, and by how many of the 4.5
    million pairs of 3,000 different values lie as near; all words weighing alike:

    ==================  =======================  ======================
    options             misspelt values          different pairs
    ==================  =======================  ======================
    the defaults        2.3 %, 31 %, 68 %        0, 54, 3,702
    50 dimensions       3.2 %, 32 %, 68 %        0, 282, 16,942
    5 passes            6.3 %, 42 %, 75 %        10, 1,243, 27,554
    not centred         7.6 %, 51 %, 85 %        0, 337, 26,435
    ==================  =======================  ======================

    Attributes
    ----------
    dimensions : int
        Length of the vectors, 1 to 2,000.
    min_n, max_n : int
        Shortest and longest n-gram in characters.
    learning_rate : float
        First step size, above 0.
    max_epochs, min_epochs : int
        Passes over the corpus: as many as `token_budget` allows, between these two.
    token_budget : int
        Aim for tokens of the corpus times passes over it; bounds the time of training.
    max_words : int
        Most words that get a row of their own; the rarest beyond that are met through their n-grams
        alone.
    negatives : int
        Negative samples for each word in training.
    value_vectors : {"weighted", "mean"}
        ``"weighted"``: the mean word vector is taken away from each word, and rare words count more
        in a value (module `embed.lexical.weights`); ``"mean"``: the mean of the words' unit
        vectors.
    """

    dimensions: int = 100
    min_n: int = 3
    max_n: int = 6
    learning_rate: float = 0.1
    max_epochs: int = 10
    min_epochs: int = 1
    token_budget: int = 20_000_000
    max_words: int = 500_000
    negatives: int = 5
    value_vectors: str = WEIGHTED

    def __post_init__(self) -> None:
        for name, minimum in (
            ("dimensions", 1),
            ("min_epochs", 1),
            ("token_budget", 1),
            ("max_words", 1),
            ("negatives", 1),
        ):
            number = getattr(self, name)
            if not isinstance(number, int) or number < minimum:
                raise InputError(
                    f"The training option {name} must be a whole number of at least {minimum}; got "
                    f"{number!r}."
                )
        if self.dimensions > 2000:
            raise InputError(
                f"The training option dimensions must be at most 2000; got {self.dimensions}."
            )
        if not 1 <= self.min_n <= self.max_n:
            raise InputError(
                f"N-gram lengths must satisfy 1 <= min_n <= max_n; got {self.min_n} and "
                f"{self.max_n}."
            )
        if self.max_epochs < self.min_epochs:
            raise InputError(
                f"max_epochs must be at least min_epochs; got {self.max_epochs} and "
                f"{self.min_epochs}."
            )
        check_value_vectors(self.value_vectors)
        if not 0 < self.learning_rate <= 1:
            raise InputError(
                f"The training option learning_rate must lie in (0, 1]; got {self.learning_rate!r}."
            )

    def epochs(self, counts: CorpusCounts) -> int:
        """Return the passes over a corpus that the token budget allows."""
        return int(
            np.clip(self.token_budget // max(counts.n_tokens, 1), self.min_epochs, self.max_epochs)
        )

    def buckets(self, counts: CorpusCounts) -> int:
        """Return the number of n-gram rows, a power of two.

        It is about eight for each distinct word of the corpus.
        """
        n_buckets = 1 << (8 * max(counts.n_words, 1) - 1).bit_length()
        return int(np.clip(n_buckets, MIN_BUCKETS, MAX_BUCKETS))


def train(corpus: str | Path, options: TrainingOptions | None = None) -> SubwordEmbedder:
    """Train a model on a corpus; see :func:`embed.corpus.write_corpus` for how to write one.

    Notes
    -----
    Memory is twice ``4 * dimensions * (words + buckets)`` bytes in training, and as much once more
    when the table is taken over.
    """
    options = options or TrainingOptions()
    fasttext = _fasttext()
    counts = count_corpus(corpus)
    if counts.n_tokens == 0:
        raise EmbedderError(f"The corpus {corpus} has no words to train on.")
    settings = {
        "epoch": options.epochs(counts),
        "bucket": options.buckets(counts),
        "minCount": counts.least_count(options.max_words),
        "dim": options.dimensions,
        "minn": options.min_n,
        "maxn": options.max_n,
        "lr": options.learning_rate,
        "neg": options.negatives,
    }
    try:
        with _silence():
            model = fasttext.train_unsupervised(
                str(corpus), model="skipgram", loss="ns", thread=THREADS, verbose=0, **settings
            )
    except (RuntimeError, ValueError) as error:
        raise EmbedderError(f"fastText could not be trained on {corpus}: {error}.") from error
    return _take_over(model, options.value_vectors, {"trained": True, **settings})


def load_binary(path: str | Path, *, value_vectors: str = WEIGHTED) -> SubwordEmbedder:
    """Read a fastText `.bin` file.

    Parameters
    ----------
    path : path
        A model saved by fastText, not quantised.
    value_vectors : {"weighted", "mean"}
        See `TrainingOptions`.

    Returns
    -------
    SubwordEmbedder
        Of kind ``"fasttext"``, or ``"fasttext-mean"``, of which a single word gets the direction
        of `get_word_vector`.
    """
    path = Path(path)
    check_value_vectors(value_vectors)
    if not path.is_file():
        raise EmbedderError(f"There is no fastText model at {path}.")
    require_whole(path)
    fasttext = _fasttext()
    try:
        with _silence():
            model = fasttext.load_model(str(path))
    except (RuntimeError, ValueError, MemoryError) as error:
        raise EmbedderError(
            f"{path} is not a fastText model (a .bin file saved by fastText)."
        ) from error
    return _take_over(model, value_vectors, {"trained": False}, f"The fastText model {path}")


def _take_over(
    model: Any, value_vectors: str, notes: dict[str, Any], name: str = "The trained fastText model"
) -> SubwordEmbedder:
    """Keep the input table, the words, their weights and the centre of a fastText model."""
    settings = model.f.getArgs()
    min_n, max_n = (settings.minn, settings.maxn) if settings.maxn > 0 else (0, 0)
    names, counts = model.get_words(include_freq=True, on_unicode_error="replace")
    words = pa.array(names, pa.large_string())
    rows = np.ascontiguousarray(model.get_input_matrix(), np.float32)
    if not np.isfinite(rows).all():
        raise EmbedderError(f"{name} has vectors that are not finite numbers; train it again.")
    kind, middle, weights = "fasttext-mean", np.zeros(rows.shape[1], np.float32), None
    if value_vectors == WEIGHTED:
        kind, middle = "fasttext", mean_word_vector(rows, words, min_n=min_n, max_n=max_n)
        weights = rarity(words, counts, int(counts.sum()))
    return SubwordEmbedder(
        kind, rows, words, middle, min_n=min_n, max_n=max_n, weights=weights, notes=notes
    )


def _fasttext() -> ModuleType:
    try:
        import fasttext
    except ImportError as error:
        raise MissingPackageError(
            "fastText models need the package fasttext-numpy2; install it with: pip install "
            "fasttext-numpy2"
        ) from error
    return fasttext


@contextlib.contextmanager
def _silence() -> Any:
    """Suppress what the fastText package prints to the terminal from Python.

    Its C++ part is silent with verbose=0.
    """
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        yield
