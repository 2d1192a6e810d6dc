"""The form of cells in which composite keys are compared, against Python's own text functions."""

import re
import unicodedata

import numpy as np
import pyarrow as pa
import pytest

from pexeso.errors import InputError
from pexeso.lake.cells.missing import is_missing_word
from pexeso.lake.key_texts import key_texts

ODD = [
    "Straße", "ΣΊΣΥΦΟΣ", "ﬁne", "İzmir", "ǅ", "a\u3000b", "\u2003x\u2003", "A\u00a0\nB", "①",
    "x\x1fy", "\x85", "é", "e\u0301", "東京", "Москва", "🙂 ok", "ß" * 30, "\u1e9e", "ꭰ", "\t", "",
    " ", "-5", "5", "NaN", "none",
]  # fmt: skip


def plain(text):
    """Write the definition down word for word."""
    if text is None or is_missing_word(text):
        return None
    folded = unicodedata.normalize("NFKC", text).casefold()
    return re.sub(r"\s+", " ", folded).strip() or None


def test_odd_texts_have_the_form_that_the_definition_gives():
    assert key_texts(pa.array([*ODD, None])).to_pylist() == [plain(text) for text in [*ODD, None]]


def test_random_texts_have_the_form_that_the_definition_gives():
    rng = np.random.default_rng(5)
    letters = "abcABC 019 -.,éÉßΣςſŸ\u00a0\u2009\u3000\n\tﬀ東Я"
    texts = ["".join(rng.choice(list(letters), rng.integers(0, 12))) for _ in range(5000)]
    assert key_texts(pa.array(texts)).to_pylist() == [plain(text) for text in texts]


@pytest.mark.parametrize("size", [0, 1])
def test_no_cells_and_missing_ones(size):
    assert key_texts(pa.array([None] * size, pa.string())).to_pylist() == [None] * size
    assert key_texts(pa.chunked_array([], pa.string())).to_pylist() == []


def test_numbers_dates_and_dictionaries_are_texts():
    assert key_texts(pa.array([1.0, 2.5, None, float("nan")])).to_pylist() == [
        "1",
        "2.5",
        None,
        None,
    ]
    assert key_texts(pa.array([1, -2])).to_pylist() == ["1", "-2"]
    assert key_texts(pa.array(["B", "b", None]).dictionary_encode()).to_pylist() == ["b", "b", None]
    chunked = pa.chunked_array([pa.array(["X"]), pa.array(["y "])])
    assert key_texts(chunked).to_pylist() == ["x", "y"]


def test_a_type_without_text_is_refused_by_name():
    with pytest.raises(InputError, match="list"):
        key_texts(pa.array([[1]]))
