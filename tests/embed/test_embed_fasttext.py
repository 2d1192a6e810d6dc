"""Tests that fastText vectors equal those of the package, without output from training."""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from embed import fasttext, load_embedder
from embed.corpus import CorpusCounts
from embed.fasttext import TrainingOptions
from embed.subword import hash_ngrams
from pexeso.errors import EmbedderError, InputError, MissingPackageError

PROBES = [
    "marie", "curie", "marei", "a", "ab", "zürich", "zurich", "東京", "東京都",
    "naïve", "👩‍🔬", "a👍b", "ﬀ", "é", "e\u0301",
    "</s>", "<", ">", "<>", "s", "quarterback" * 30, "x" * 300, "ß" * 100, "0", "12.5",
    "__label__x",
]  # fmt: skip
WORD = st.text(st.characters(exclude_categories=["Cs", "Z", "Cc"]), min_size=1, max_size=40)


def upstream_units(model, words: list[str]) -> np.ndarray:
    vectors = np.array([model.get_word_vector(word) for word in words], np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)


def strings(words: list[str]) -> pa.LargeStringArray:
    return pa.array(words, pa.large_string())


def test_word_means_equal_the_word_vectors_of_fasttext(upstream, binary: Path) -> None:
    words = sorted(set(PROBES) | set(upstream.get_words()))
    ours, known = fasttext.load_binary(binary).word_means(strings(words))
    theirs = np.array([upstream.get_word_vector(word) for word in words])
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(known, np.abs(theirs).max(axis=1) > 0)


@given(words=st.lists(WORD, min_size=1, max_size=20))
def test_uncentred_values_have_the_direction_of_fasttext(
    upstream, binary_embedder, words: list[str]
) -> None:
    np.testing.assert_allclose(
        binary_embedder.embed(words), upstream_units(upstream, words), rtol=0, atol=2e-6
    )


@pytest.fixture(scope="module")
def binary_embedder(binary: Path):
    return fasttext.load_binary(binary, value_vectors="mean")


@given(words=st.lists(WORD, min_size=1, max_size=20))
@example(words=PROBES)
def test_ngram_rows_and_their_order_equal_those_of_fasttext(upstream, words: list[str]) -> None:
    hashes, offsets = hash_ngrams(strings(words), 3, 6)
    vocabulary = upstream.get_words()
    for word, start, stop in zip(words, offsets, offsets[1:], strict=False):
        _, ids = upstream.get_subwords(word)
        own = 1 if word in vocabulary else 0
        assert (hashes[start:stop] % 1000 + len(vocabulary)).tolist() == ids[own:].tolist(), word


def test_centring_takes_the_mean_word_away(upstream, binary: Path) -> None:
    embedder = fasttext.load_binary(binary)
    words = upstream.get_words()
    vectors = np.array([upstream.get_word_vector(word) for word in words], np.float64)
    centred = vectors - vectors.mean(axis=0)
    expected = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    np.testing.assert_allclose(embedder.embed(words), expected, rtol=0, atol=1e-4)


def test_a_value_is_the_mean_of_its_unit_word_vectors_as_published(
    upstream, binary: Path, tmp_path: Path
) -> None:
    values = ["marie curie", "new york oslo oslo", "paris", "curie marei unseen", ""]
    expected = np.zeros((len(values), 12))
    for row, value in zip(expected, values, strict=True):
        row[:] = upstream_units(upstream, value.split()).sum(axis=0) if value else 0
    expected[:-1] /= np.linalg.norm(expected[:-1], axis=1, keepdims=True)
    embedder = fasttext.load_binary(binary, value_vectors="mean")
    np.testing.assert_allclose(embedder.embed(values), expected, rtol=0, atol=2e-6)
    weighted = fasttext.load_binary(binary)
    assert np.abs(weighted.embed(values) - expected).max() > 0.1
    assert embedder.fingerprint != weighted.fingerprint
    embedder.save(tmp_path / "model")
    opened = load_embedder(tmp_path / "model", verify=True)
    assert (opened.kind, weighted.kind) == ("fasttext-mean", "fasttext")
    assert opened.embed(values).tobytes() == embedder.embed(values).tobytes()


def test_a_trained_model_is_saved_and_opened_bit_by_bit(
    corpus: Path, tmp_path: Path, capfd
) -> None:
    embedder = fasttext.train(corpus, TrainingOptions(dimensions=16))
    assert capfd.readouterr() == ("", ""), "training must not print"
    embedder.save(tmp_path / "model")
    opened = load_embedder(tmp_path / "model", verify=True)
    values = ["marie curie", "marei", "oslo", "", None, "東京 paris"]
    assert opened.embed(values).tobytes() == embedder.embed(values).tobytes()
    assert (opened.kind, opened.dimensions, opened.fingerprint) == (
        "fasttext",
        16,
        embedder.fingerprint,
    )
    assert not list((tmp_path / "model").glob("*.bin")), (
        "a stored model must not need the fasttext package"
    )


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "wrong.bin"
    path.write_bytes(b"not a model at all")
    with pytest.raises(EmbedderError, match=r"wrong\.bin is not a fastText model"):
        fasttext.load_binary(path)
    with pytest.raises(EmbedderError, match="There is no fastText model at"):
        fasttext.load_binary(tmp_path / "absent.bin")


def test_a_missing_package_is_named(
    tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("fasttext", "gensim"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError, match=r"pip install 'pexeso\[vectors\]'"):
        fasttext.train(corpus)


def test_gensim_trains_the_same_model_again(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gensim")
    monkeypatch.setitem(sys.modules, "fasttext", None)
    first, second = (fasttext.train(corpus, TrainingOptions(dimensions=16)) for _ in range(2))
    assert first.fingerprint == second.fingerprint
    assert first.dimensions == 16
    one, other = first.embed(["zürich", "zurich"])
    assert np.linalg.norm(one - other) < np.linalg.norm(one - first.embed(["quarterback"])[0])


def test_a_corpus_without_words_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n \n")
    with pytest.raises(EmbedderError, match="has no words to train on"):
        fasttext.train(tmp_path / "empty.txt")
    with pytest.raises(EmbedderError, match="cannot be read: No such file"):
        fasttext.train(tmp_path / "absent.txt")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"dimensions": 0}, "dimensions must be a whole number of at least 1; got 0"),
        ({"dimensions": 5000}, "dimensions must be at most 2000"),
    ],
)
def test_wrong_options_are_refused(wrong: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        TrainingOptions(**wrong)


def test_size_of_the_model_and_passes_follow_the_corpus() -> None:
    options = TrainingOptions(token_budget=1000, max_epochs=10)
    small = CorpusCounts(1, 10, 10, np.array([0, 10]))
    large = CorpusCounts(1, 10_000, 10**7, np.array([0, 10**7]))
    assert (options.epochs(small), options.epochs(large)) == (10, 1)
    assert (options.buckets(small), options.buckets(large)) == (1 << 15, 1 << 21)
