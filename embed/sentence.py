"""Sentence-transformer models: whole values read by a language model.

An extra, slower by far, with a sense of meaning.

The arithmetic of a transformer hangs a little on the shape of the batch. So that a value's vector
does not depend on the values around it, each batch has the same number of rows, all with the same
number of tokens, and is filled up with copies.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from embed import stored
from embed.protocol import Values
from embed.subword import normalise_rows, row_lengths
from embed.words import as_strings
from pexeso.errors import EmbedderError
from pexeso.runtime.extras import require

ROWS_PER_BATCH = 32
_MODEL_FOLDER = "model"


class SentenceEmbedder(stored.ArrayModel):
    """A sentence-transformers model as an embedder."""

    kind = "sentence"

    def __init__(self, model: Any, name: str, *, fingerprint: str | None = None) -> None:
        self._model = model
        self._name = name
        self._fingerprint = fingerprint
        self.dimensions = len(self._encode(["x"])[0])

    def embed(self, values: Values) -> np.ndarray:
        """Embed values; see :meth:`embed.protocol.Embedder.embed`.

        Equal values are read once a call.
        """
        encoded = pc.utf8_trim_whitespace(as_strings(values)).dictionary_encode()
        distinct = encoded.dictionary.to_pylist()
        vectors = np.zeros((len(distinct), self.dimensions), np.float32)
        for positions in self._batches(distinct):
            rows = self._encode([distinct[position] for position in positions]).astype(np.float64)
            vectors[positions] = normalise_rows(rows, row_lengths(rows)).astype(np.float32)
        return vectors[encoded.indices.to_numpy()]

    def save(self, folder: str | Path) -> None:
        """Write `embedder.json` and the model's own files (safetensors and JSON).

        The folder must be new or empty.
        """
        folder = Path(folder)
        with stored.writing_model(folder):
            self._model.save(str(folder / _MODEL_FOLDER))
            stored.write_description(folder, self.kind, {"name": self._name}, self.fingerprint)

    @classmethod
    def from_stored(cls, model: stored.StoredModel) -> SentenceEmbedder:
        loaded = _load_model(str(model.folder / _MODEL_FOLDER))
        return cls(loaded, model.option("name", str), fingerprint=model.fingerprint)

    def recompute_fingerprint(self) -> str:
        """Return a digest of the weights, the tokens and the longest input, as they are."""
        return _fingerprint(self._model)

    def _encode(self, texts: list[str]) -> np.ndarray:
        full = texts + [texts[-1]] * (ROWS_PER_BATCH - len(texts))
        rows = self._model.encode(
            full, batch_size=ROWS_PER_BATCH, convert_to_numpy=True, show_progress_bar=False
        )
        return np.asarray(rows, np.float32)[: len(texts)]

    def _batches(self, texts: list[str]) -> Iterator[np.ndarray]:
        """Cut the texts that are not empty into batches of equal numbers of tokens."""
        lengths = np.array(
            [len(tokens) for tokens in self._model.tokenizer(texts)["input_ids"]] if texts else []
        )
        filled = np.array([text != "" for text in texts], bool)
        for length in np.unique(lengths[filled]):
            positions = np.flatnonzero(filled & (lengths == length))
            for start in range(0, len(positions), ROWS_PER_BATCH):
                yield positions[start : start + ROWS_PER_BATCH]


def load_sentence_model(name: str) -> SentenceEmbedder:
    return SentenceEmbedder(_load_model(name), name)


def _load_model(name: str) -> Any:
    package = require("sentence_transformers", "A sentence model")
    try:
        model = package.SentenceTransformer(name)
    except (OSError, ValueError, RuntimeError) as error:
        raise EmbedderError(
            f"The sentence model {name!r} cannot be loaded; give a folder or a known name."
        ) from error
    return model.eval()


def _fingerprint(model: Any) -> str:
    import torch

    state = {
        name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()
    }
    parts = {name: tensor.reshape(-1).view(torch.uint8).numpy() for name, tensor in state.items()}
    shapes = {name: [str(tensor.dtype), *tensor.shape] for name, tensor in state.items()}
    tokens = sorted(model.tokenizer.get_vocab().items())
    vocabulary = blake2b(repr(tokens).encode(), digest_size=32).hexdigest()
    options = {"max_seq_length": model.max_seq_length, "vocabulary": vocabulary, "shapes": shapes}
    return stored.fingerprint("sentence", options, parts)
