"""Model strings, and what importing the package costs."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from embed import Embedder, create_embedder, hashing, load_embedder, needs_corpus
from embed.registry import check_model
from pexeso.errors import EmbedderError, InputError
from pexeso.options import BuildOptions

ROOT = Path(__file__).resolve().parents[2]


def test_importing_embed_loads_no_heavy_package() -> None:
    program = (
        "import sys, embed; print(sorted({'torch', 'fasttext', 'pyspark', 'pandas'} & "
        "set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_each_form_of_model_string_makes_its_kind(
    corpus: Path, binary: Path, tmp_path: Path
) -> None:
    (tmp_path / "words.vec").write_text("paris 3 4\n")
    trained = create_embedder("fasttext", corpus=corpus, dimensions=10)
    assert (trained.kind, trained.dimensions) == ("fasttext", 10)
    assert create_embedder(str(binary)).dimensions == 12
    assert create_embedder(str(tmp_path / "words.vec"), dimensions=2).kind == "glove"
    assert create_embedder("hashing", dimensions=7, seed=3).embed(["a"]).shape == (1, 7)
    trained.save(tmp_path / "model")
    again = create_embedder(str(tmp_path / "model"))
    assert again.fingerprint == trained.fingerprint
    assert all(isinstance(one, Embedder) for one in (trained, again))


@pytest.mark.parametrize(
    ("model", "arguments", "message"),
    [
        ("word2vec", {}, 'The model must be "lexical" or "hashing".*got \'word2vec\''),
        ("sentence:", {}, "got 'sentence:'"),
        ("fasttext", {}, "give the text to train on"),
        (
            "fasttext",
            {"corpus": "x", "dimensions": 0},
            "dimensions must be a whole number of at least 1; got 0",
        ),
        (
            "hashing",
            {"dimensions": 0},
            "dimensions of a hashing embedder must be a whole number of at least 1; got 0",
        ),
        (
            "hashing",
            {"seed": -1},
            "seed of a hashing embedder must be a whole number of at least 0; got -1",
        ),
    ],
)
def test_wrong_arguments_are_refused(model: str, arguments: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        create_embedder(model, **arguments)


def test_how_words_make_up_a_value_is_chosen(corpus: Path, binary: Path, tmp_path: Path) -> None:
    for model in ("fasttext", str(binary)):
        kinds = [
            create_embedder(model, corpus=corpus, value_vectors=chosen).kind
            for chosen in (None, "weighted", "mean")
        ]
        assert kinds == ["fasttext", "fasttext", "fasttext-mean"]
    (tmp_path / "words.vec").write_text("paris 3 4\n")
    plain, mean = (
        create_embedder(str(tmp_path / "words.vec"), value_vectors=chosen)
        for chosen in (None, "mean")
    )
    assert plain.fingerprint == mean.fingerprint


@pytest.mark.parametrize(
    ("model", "chosen", "message"),
    [
        ("lexical", "mean", "is for fasttext, .* Got 'mean' with the model 'lexical'"),
        ("hashing", "weighted", "Got 'weighted' with the model 'hashing': leave it out"),
        ("sentence:any", "mean", "Got 'mean' with the model 'sentence:any': leave it out"),
        ("glove.txt.gz", "weighted", r"glove\.txt\.gz does not say how rare .* must be 'mean'"),
        ("fasttext", "sum", r"value_vectors must be 'weighted' or 'mean'\. Got 'sum'"),
    ],
)
def test_a_model_without_the_choice_refuses_it(model: str, chosen: str, message: str) -> None:
    for refusing in (create_embedder, BuildOptions):
        with pytest.raises(InputError, match=message):
            refusing(model=model, value_vectors=chosen)


def test_with_several_models_the_choice_is_for_those_that_have_it(tmp_path: Path) -> None:
    assert BuildOptions(model="lexical,fasttext", value_vectors="mean").models[1] == "fasttext"
    with pytest.raises(InputError, match="Got 'mean' with the model 'lexical': leave it out"):
        BuildOptions(model="lexical,hashing", value_vectors="mean")
    with pytest.raises(InputError, match=r"glove\.txt does not say how rare"):
        BuildOptions(model="lexical,fasttext,glove.txt", value_vectors="weighted")


def test_dimensions_of_a_model_that_is_read_are_its_own(binary: Path) -> None:
    with pytest.raises(InputError, match="has 12 dimensions; got dimensions=50"):
        create_embedder(str(binary), dimensions=50)


def test_only_training_needs_a_corpus() -> None:
    assert [needs_corpus(model) for model in ("fasttext", "hashing", "model.bin")] == [
        True,
        False,
        False,
    ]


def test_hashing_is_the_same_everywhere_and_for_ever() -> None:
    embedder = hashing.create(4, seed=1, buckets=64)
    assert embedder.fingerprint == hashing.create(4, seed=1, buckets=64).fingerprint
    assert embedder.fingerprint != hashing.create(4, seed=2, buckets=64).fingerprint
    # Written down once: a change of the table, the hash or the arithmetic would break every stored
    # index.
    np.testing.assert_allclose(embedder.embed(["oslo"])[0], FIXED, atol=1e-6)


FIXED = [-0.8660254, 0.2886751, 0.2886751, -0.2886751]


def test_hashing_puts_misspellings_near_and_other_words_apart() -> None:
    vectors = hashing.create().embed(["reykjavik", "reykjavic", "nairobi"]).astype(np.float64)
    near, far = np.linalg.norm(vectors[1:] - vectors[0], axis=1)
    assert near < 0.95 < 1.2 < far


def test_a_word_has_a_share_of_its_own() -> None:
    plain, own = (
        hashing.create(400, whole_word_share=share)
        .embed(["reykjavik", "reykjavic"])
        .astype(np.float64)
        for share in (0.0, 0.25)
    )
    # Nothing of the share is common to two words: three quarters of the cosine are left, but for
    # what random rows differ by.
    assert abs(own[0] @ own[1] - 0.75 * (plain[0] @ plain[1])) < 0.1


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_hashing_refuses_a_wrong_share_of_words(share: float) -> None:
    with pytest.raises(EmbedderError, match="at least 0 and less than 1"):
        hashing.create(whole_word_share=share)


def test_hashing_survives_saving(tmp_path: Path) -> None:
    embedder = hashing.create(5)
    embedder.save(tmp_path / "new" / "model")
    opened = load_embedder(tmp_path / "new" / "model", verify=True)
    assert opened.embed(["a b", "ça"]).tobytes() == embedder.embed(["a b", "ça"]).tobytes()


@pytest.mark.parametrize(
    ("model", "error", "sentence"),
    [
        ("nowhere.bin", EmbedderError, r"^There is no fastText model at nowhere\.bin\.$"),
        (
            "nowhere.vec.gz",
            EmbedderError,
            r"^There is no file of word vectors at nowhere\.vec\.gz\.$",
        ),
        ("fast-text", InputError, "got 'fast-text'"),
        ("sentence:", InputError, "got 'sentence:'"),
    ],
)
def test_a_model_string_is_checked_before_work(model, error, sentence):
    with pytest.raises(error, match=sentence):
        check_model(model)


@pytest.mark.parametrize("model", ["fasttext", "hashing", "sentence:all-minilm"])
def test_a_model_string_that_may_do_passes(model):
    check_model(model)
