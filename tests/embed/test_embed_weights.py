"""Rare words count more, unknown words count as the average word does."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from embed import corpus, create_embedder, fasttext, hashing, load_embedder
from embed.corpus import rarity
from embed.fasttext import TrainingOptions
from embed.subword import SubwordEmbedder
from pexeso.errors import EmbedderError, InputError


def test_hand_computed_weights() -> None:
    # log(1 + 4/3) ** 2 and log(1 + 4/1) ** 2; the average word weighs (3 * 0.7179 + 2.5903) / 4.
    np.testing.assert_allclose(
        rarity(_words("a", "b"), np.array([3, 1]), 4), [0.717914, 2.590290, 1.186008], rtol=1e-5
    )
    np.testing.assert_array_equal(rarity(_words(), np.zeros(0, np.int64), 0), [1])
    assert rarity(_words("a"), np.array([5]), 5)[0] > 0, (
        "a word that is the whole corpus must not vanish"
    )


def test_words_with_a_digit_count_as_rare_however_often_they_stand() -> None:
    weights = rarity(_words("county", "1992", "u21", "seldom"), np.array([500, 500, 500, 10]), 2000)
    assert weights[0] < weights[1] == weights[2] == weights[3]


def _words(*words: str) -> pa.LargeStringArray:
    return pa.array(words, pa.large_string())


def test_weights_turn_a_value_towards_its_rare_word() -> None:
    rows, words = np.eye(2, dtype=np.float32), pa.array(["up", "right"], pa.large_string())
    weights = np.array([3, 4, 1], np.float32)
    embedder = SubwordEmbedder(
        "glove", rows, words, np.zeros(2, np.float32), min_n=0, max_n=0, weights=weights
    )
    np.testing.assert_allclose(embedder.embed(["up right", "up"]), [[0.6, 0.8], [1, 0]], atol=1e-6)


@pytest.mark.parametrize(
    ("weights", "message"), [([1, 1], "one weight more; got 2"), ([1, 0, 1], "finite and above 0")]
)
def test_wrong_weights_are_refused(weights: list[float], message: str) -> None:
    words = pa.array(["up", "right"], pa.large_string())
    arguments = {"min_n": 0, "max_n": 0, "weights": np.array(weights, np.float32)}
    with pytest.raises(EmbedderError, match=message):
        SubwordEmbedder(
            "glove", np.eye(2, dtype=np.float32), words, np.zeros(2, np.float32), **arguments
        )


def test_frequent_words_come_by_count_then_by_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "corpus").write_text("b a c\nb ü a\n", encoding="utf-8")
    monkeypatch.setattr(corpus, "MAX_WORDS", 3)
    words, weights = corpus.weighed_words(tmp_path / "corpus")
    assert words.to_pylist() == ["a", "b", "c"]
    np.testing.assert_array_equal(weights, rarity(words, np.array([2, 2, 1]), 6))


def test_hashing_weighs_by_a_corpus_and_keeps_the_vectors_of_words(tmp_path: Path) -> None:
    (tmp_path / "corpus").write_text("lake oslo\n" + "lake\n" * 50)
    plain = hashing.create()
    weighted = create_embedder("hashing", corpus=tmp_path / "corpus")
    assert (
        weighted.embed(["lake", "oslo", "new"]).tobytes()
        == plain.embed(["lake", "oslo", "new"]).tobytes()
    )
    oslo = plain.embed(["oslo"])[0]
    assert weighted.embed(["lake oslo"])[0] @ oslo > plain.embed(["lake oslo"])[0] @ oslo + 0.1
    weighted.save(tmp_path / "model")
    opened = load_embedder(tmp_path / "model", verify=True)
    assert opened.embed(["lake oslo x"]).tobytes() == weighted.embed(["lake oslo x"]).tobytes()


def test_fasttext_weighs_by_its_own_counts(corpus: Path, binary: Path, upstream) -> None:
    words, counts = upstream.get_words(include_freq=True)
    embedder = fasttext.load_binary(binary)
    np.testing.assert_array_equal(
        embedder._weights, rarity(pa.array(words, pa.large_string()), counts, counts.sum())
    )
    with pytest.raises(InputError, match=r"must be 'weighted' or 'mean'\. Got 'idf'"):
        TrainingOptions(value_vectors="idf")
