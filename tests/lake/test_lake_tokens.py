"""Tokens: one form for a number, however it is written, and ids that keep their zeros."""

import datetime
import decimal
import re
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pexeso.errors import InputError
from pexeso.lake.cells import MISSING, is_missing_word
from pexeso.lake.tokens import key_texts, tokens_of


def tokens(values, kind=None):
    return tokens_of(pa.array(values, kind)).to_pylist()


def test_one_written_in_four_ways_is_one_token_and_an_id_with_a_zero_is_another():
    same = [
        tokens(["1"]),
        tokens([1]),
        tokens([1.0]),
        tokens(["1.0"]),
        tokens([1], pa.uint8()),
        tokens([1.0], pa.float16()),
    ]
    assert same == [["1"]] * 6
    assert tokens([decimal.Decimal("1.00")]) == ["1"]
    assert tokens(["01", "+1", "1e3", "01.0", "1.10"]) == ["01", "+1", "1e3", "01.0", "1.10"]


def test_numbers_that_are_no_integers_keep_their_shortest_text():
    assert tokens([1.5, -0.25, 1e300]) == ["1.5", "-0.25", "1e+300"]
    assert tokens([0.1], pa.float32()) == ["0.1"]
    assert tokens([float(2**53 - 1), -3.0]) == [str(2**53 - 1), "-3"]
    assert tokens([-0.0]) == tokens(["-0"]) == tokens(["-0.0"]) == ["0"]


def test_what_is_empty_has_no_token():
    assert tokens([None, "", "  \t\u00a0"]) == [None] * 3
    assert tokens([None, float("nan")]) == [None] * 2
    assert tokens([], pa.string()) == tokens([None], pa.null())[:0] == []
    assert tokens([None], pa.null()) == [None]
    assert tokens([float("inf")]) == ["inf"]


def test_texts_that_stand_for_a_missing_value_have_no_token_and_words_and_codes_have():
    missing = [*MISSING, "NULL", "NaN", " N/A ", "#N/A", "—"]
    assert tokens_of(pa.array(missing)).null_count == len(missing)
    kept = ["NA", "AB", "NO", "IT", "-1", "nano", "?!"]
    assert tokens_of(pa.array(kept)).to_pylist() == kept


def test_text_is_stripped_and_composed_and_keeps_its_case():
    assert tokens(["  Oslo ", "e\u0301", "OSLO"]) == ["Oslo", "\u00e9", "OSLO"]


def test_other_types_have_their_texts():
    assert tokens([True, False]) == ["true", "false"]
    assert tokens([datetime.date(2020, 3, 5)]) == ["2020-03-05"]
    assert tokens_of(pa.chunked_array([["a"], ["b"]]).dictionary_encode()).to_pylist() == ["a", "b"]
    assert tokens_of(pa.chunked_array([], pa.string())).to_pylist() == []


@pytest.mark.parametrize("values", [pa.array([[1]]), pa.array([{"a": 1}]), pa.array([b"\xff"])])
def test_what_has_no_text_is_refused(values):
    with pytest.raises(InputError, match="Tokens are made of texts, numbers"):
        tokens_of(values)


@given(
    st.lists(
        st.one_of(
            st.none(), st.text(max_size=8), st.from_regex(r"-?[0-9]{1,3}\.0*", fullmatch=True)
        )
    )
)
def test_a_token_is_its_own_token(values):
    once = tokens_of(pa.array(values, pa.string()))
    assert tokens_of(once).equals(once)


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
    texts = [*ODD, None]
    assert key_texts(pa.array(texts), ()).to_pylist() == [plain(text) for text in texts]


def test_random_texts_have_the_form_that_the_definition_gives():
    rng = np.random.default_rng(5)
    letters = "abcABC 019 -.,éÉßΣςſŸ\u00a0\u2009\u3000\n\tﬀ東Я"
    texts = ["".join(rng.choice(list(letters), rng.integers(0, 12))) for _ in range(5000)]
    assert key_texts(pa.array(texts), ()).to_pylist() == [plain(text) for text in texts]


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
