"""Tests of the code around sentence-transformers, with a stand-in for the package."""

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from embed import create_embedder, load_embedder
from embed.sentence import ROWS_PER_BATCH
from pexeso.errors import EmbedderError, MissingPackageError


class StandInTokenizer:
    def __call__(self, texts: list[str]) -> dict:
        return {"input_ids": [text.split() for text in texts]}

    def get_vocab(self) -> dict[str, int]:
        return {"a": 0}


class StandInModel:
    """A model that encodes a text by its letters, disturbed by the shape of the batch.

    Real kernels are disturbed in the same way.
    """

    max_seq_length = 16
    weight = 1.0

    def __init__(self, name: str) -> None:
        if name == "absent":
            raise OSError("no such model")
        self.tokenizer = StandInTokenizer()
        path = Path(name) / "weights.txt"
        self.weight = float(path.read_text()) if path.is_file() else 1.0

    def eval(self) -> "StandInModel":
        return self

    def state_dict(self) -> dict[str, torch.Tensor]:
        return {"weight": torch.tensor(self.weight)}

    def encode(self, texts: list[str], batch_size: int, **_) -> np.ndarray:
        assert batch_size == ROWS_PER_BATCH
        longest = max(len(text.split()) for text in texts)
        disturbance = 1e-7 * (len(texts) - ROWS_PER_BATCH + longest)
        rows = [[text.count("a") + 1, text.count("b") + self.weight, len(text)] for text in texts]
        return np.array(rows, np.float32) + np.float32(disturbance)

    def save(self, folder: str) -> None:
        Path(folder).mkdir()
        (Path(folder) / "weights.txt").write_text(str(self.weight))


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("sentence_transformers")
    module.SentenceTransformer = StandInModel
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)


def test_each_value_has_one_vector_whatever_is_around_it() -> None:
    embedder = create_embedder("sentence:any")
    values = [f"{'a' * (place % 7)}b {'c ' * (place % 4)}" for place in range(100)] + [
        None,
        "",
        "  ",
    ]
    vectors = embedder.embed(values)
    assert (embedder.kind, embedder.dimensions, vectors.dtype) == ("sentence", 3, np.float32)
    assert not vectors[-3:].any()
    np.testing.assert_allclose(np.linalg.norm(vectors[:-3], axis=1), 1, atol=1e-6)
    for place in (0, 1, 50, 99):
        assert embedder.embed([values[place]])[0].tobytes() == vectors[place].tobytes()
    assert embedder.embed([]).shape == (0, 3)


def test_saving_keeps_model_and_fingerprint_and_finds_changes(tmp_path: Path) -> None:
    embedder = create_embedder("sentence:any")
    embedder.save(tmp_path / "model")
    opened = load_embedder(tmp_path / "model", verify=True)
    assert opened.fingerprint == embedder.fingerprint
    assert opened.embed(["ab"]).tobytes() == embedder.embed(["ab"]).tobytes()
    (tmp_path / "model" / "model" / "weights.txt").write_text("1.5")
    with pytest.raises(EmbedderError, match=r"weights\.txt has been changed"):
        load_embedder(tmp_path / "model", verify=True)


def test_a_missing_package_or_model_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EmbedderError, match="sentence model 'absent' cannot be loaded"):
        create_embedder("sentence:absent")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'pexeso\[sentence\]'"):
        create_embedder("sentence:any")
