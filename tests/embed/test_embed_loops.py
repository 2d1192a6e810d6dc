"""The compiled loops give, bit for bit, what plain steps over whole arrays give."""

from hashlib import blake2b
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

from embed import fasttext, hashing, subword
from embed.subword import SubwordEmbedder, hash_ngrams, normalise_rows, row_lengths
from embed.words import hash_strings, split_words

LETTERS = list("abcé東 <>/👍")


@pytest.fixture(scope="module")
def values() -> list[str | None]:
    """Return varied values: words of many lengths, repeated words, long and blank values."""
    generator = np.random.default_rng(11)
    drawn = ["".join(generator.choice(LETTERS, generator.integers(1, 40))) for _ in range(400)]
    odd = [
        None,
        "",
        " ",
        "a",
        "</s>",
        "<>",
        " </s> x",
        "a b a b a",
        "x" * 900,
        "wide\u3000space",
        "oslo rome",
    ]
    return [*odd, *drawn, "oslo", "ab" * 300, *drawn[:30]]


def units(
    means: np.ndarray, known: np.ndarray, embedder: SubwordEmbedder, words: pa.LargeStringArray
) -> np.ndarray:
    """Weigh the words, all of them at each step."""
    centred = means.astype(np.float64)
    scale = row_lengths(centred)
    centred -= embedder._centre
    centred[~known] = 0.0
    weights = embedder._weights[embedder._vocabulary.find(words)].astype(np.float64)
    return normalise_rows(centred, scale) * weights[:, np.newaxis]


def summed(embedder: SubwordEmbedder, values: list, table: np.ndarray) -> np.ndarray:
    """Add up the words of each value, one after the other."""
    index = split_words(values)
    sums = np.zeros((len(values), table.shape[1]))
    for number in range(len(values)):
        for word in index.word_ids[index.offsets[number] : index.offsets[number + 1]]:
            sums[number] += table[word]
    return normalise_rows(sums, np.diff(index.offsets) * embedder._smallest_weight).astype(
        np.float32
    )


def bags(ids: np.ndarray, rows: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    arrays = (torch.from_numpy(array) for array in (ids, rows, offsets))
    return torch.nn.functional.embedding_bag(*arrays, mode="mean", include_last_offset=True).numpy()


def of_length(vectors: np.ndarray, length: float) -> np.ndarray:
    vectors = vectors.astype(np.float64)
    return normalise_rows(vectors, row_lengths(vectors)) * length


@pytest.mark.parametrize("share", [0.0, 0.25, 0.7])
@pytest.mark.parametrize("dimensions", [1, 7, 8, 17, 100, 129, 256, 300, 1000])
def test_the_hashing_model_gives_what_whole_arrays_give(
    values, corpus: Path, dimensions: int, share: float, monkeypatch
) -> None:
    monkeypatch.setattr(hashing, "MIN_N", 1)
    embedder = hashing.create(
        dimensions, buckets=512, whole_word_share=share, seed=3, corpus=corpus
    )
    rows = (
        np.unpackbits(embedder._arrays()["signs"], axis=1, count=dimensions).astype(np.float32) * 2
        - 1
    )
    words = split_words(values).words
    hashes, offsets = hash_ngrams(words, 1, hashing.MAX_N)
    means = bags((hashes % np.uint32(512)).astype(np.int64), rows, offsets)
    if share:
        own = rows[(hash_strings(words) % np.uint64(512)).astype(np.int64)]
        means = (of_length(means, np.sqrt(1 - share)) + of_length(own, np.sqrt(share))).astype(
            np.float32
        )
    known = np.diff(offsets) > 0
    assert embedder.word_means(words)[0].tobytes() == means.tobytes()
    expected = summed(embedder, values, units(means, known, embedder, words))
    assert embedder.embed(values).tobytes() == expected.tobytes()


@pytest.mark.parametrize("value_vectors", ["weighted", "mean"])
def test_a_trained_model_gives_what_whole_arrays_give(
    values, binary: Path, value_vectors: str
) -> None:
    embedder = fasttext.load_binary(binary, value_vectors=value_vectors)
    words = split_words(values).words
    means, known = embedder.word_means(words)
    expected = summed(embedder, values, units(means, known, embedder, words))
    assert embedder.embed(values).tobytes() == expected.tobytes()


@pytest.mark.parametrize("block", [1, 7, 100])
def test_bits_do_not_depend_on_blocks_of_values(
    values, corpus: Path, block: int, monkeypatch
) -> None:
    embedder = hashing.create(20, buckets=512, corpus=corpus)
    expected = embedder.embed(values).tobytes()
    monkeypatch.setattr(subword, "_VALUES_PER_BLOCK", block)
    monkeypatch.setattr(subword, "_WORDS_PER_BLOCK", 3)
    assert embedder.embed(values).tobytes() == expected
    monkeypatch.setattr(subword, "WORKING_BYTES", 1 << 12)
    assert embedder.embed(values).tobytes() == expected


def test_the_vectors_of_the_default_model_are_those_of_indexes_that_are_there() -> None:
    vectors = hashing.create().embed(
        ["marie curie", "Zürich", "東京 oslo oslo", None, "</s>", "x" * 700]
    )
    assert blake2b(vectors.tobytes(), digest_size=8).hexdigest() == "6b73baef1f349fee"
