"""A tiny fastText model, trained once for all tests of this room."""

from pathlib import Path

import numpy as np
import pytest

WORDS = [
    "marie",
    "curie",
    "paris",
    "oslo",
    "zürich",
    "東京",
    "naïve",
    "søren",
    "quarterback",
    "new",
    "york",
    "são",
    "paulo",
]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a corpus of 400 lines of four words."""
    generator = np.random.default_rng(3)
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text(
        "".join(" ".join(generator.choice(WORDS, 4)) + "\n" for _ in range(400)), encoding="utf-8"
    )
    return path


@pytest.fixture(scope="session")
def upstream(corpus: Path):
    """Return a model of the fasttext package itself."""
    fasttext = pytest.importorskip("fasttext")
    return fasttext.train_unsupervised(
        str(corpus),
        model="skipgram",
        dim=12,
        epoch=5,
        minn=3,
        maxn=6,
        bucket=1000,
        minCount=1,
        thread=12,
        verbose=0,
    )


@pytest.fixture(scope="session")
def binary(upstream, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return that model as a .bin file."""
    path = tmp_path_factory.mktemp("binary") / "model.bin"
    upstream.save_model(str(path))
    return path
