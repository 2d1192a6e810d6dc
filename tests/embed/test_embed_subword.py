"""Tests that a vector depends on its value alone."""

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from embed import hashing, subword
from embed.subword import SubwordEmbedder
from pexeso.errors import EmbedderError, InputError
from pexeso.runtime.ranges import runs_within

EMBEDDER = hashing.create(17, buckets=512)
VALUE = st.one_of(st.none(), st.text(st.sampled_from("abcé東 <>/👍"), max_size=30))


def two_words(**changes) -> SubwordEmbedder:
    """Return a model with the words `up` = (3, 4) and `right` = (5, 0) and no n-grams."""
    arguments = {
        "rows": np.array([[3, 4], [5, 0]], np.float32),
        "words": pa.array(["up", "right"], pa.large_string()),
        "centre": np.zeros(2, np.float32),
        "min_n": 0,
        "max_n": 0,
    } | changes
    return SubwordEmbedder("glove", **arguments)


def test_hand_computed_values() -> None:
    # (0.6, 0.8) + (1, 0) = (1.6, 0.8) -> / 1.78885; with `right` twice (2.6, 0.8) -> / 2.72029
    vectors = two_words().embed(
        ["up", "right up", "right up right", "left", "left right", "", None, " \t "]
    )
    expected = [
        [0.6, 0.8],
        [0.894427, 0.447214],
        [0.955780, 0.294086],
        [0, 0],
        [1, 0],
        [0, 0],
        [0, 0],
        [0, 0],
    ]
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    assert vectors.dtype == np.float32


def test_the_centre_is_taken_away_from_known_words_only() -> None:
    # up - centre = (0, 4); right - centre = (2, -4) / 4.47214
    vectors = two_words(centre=np.array([3, 0], np.float32)).embed(["up", "right", "unknown"])
    np.testing.assert_allclose(vectors, [[0, 1], [1, 0], [0, 0]], atol=1e-6)


def test_a_word_at_the_centre_and_words_that_cancel_out_give_zeros() -> None:
    assert not two_words(centre=np.array([3, 4], np.float32)).embed(["up"]).any()
    opposite = two_words(rows=np.array([[1, 2], [-1, -2]], np.float32))
    assert not opposite.embed(["up right"]).any()


@given(values=st.lists(VALUE, max_size=30), data=st.data())
def test_bits_do_not_depend_on_the_batch(values: list, data: st.DataObject) -> None:
    whole = EMBEDDER.embed(values)
    cut = data.draw(st.integers(0, len(values)))
    parts = np.concatenate([EMBEDDER.embed(values[:cut]), EMBEDDER.embed(values[cut:])])
    assert whole.tobytes() == parts.tobytes()
    single = [EMBEDDER.embed([value])[0].tobytes() for value in values]
    assert single == [row.tobytes() for row in whole]


@given(
    words=st.lists(st.text("abcdé", min_size=1, max_size=8), min_size=1, max_size=12),
    data=st.data(),
)
def test_bits_do_not_depend_on_the_order_of_words(words: list[str], data: st.DataObject) -> None:
    other = data.draw(st.permutations(words))
    first, second = EMBEDDER.embed([" ".join(words), "  ".join(other)])
    assert first.tobytes() == second.tobytes()


@given(values=st.lists(VALUE, max_size=30))
def test_rows_are_unit_vectors_or_zeros(values: list) -> None:
    lengths = np.linalg.norm(EMBEDDER.embed(values).astype(np.float64), axis=1)
    blank = np.array([not (value or "").split() for value in values], bool)
    assert np.all(lengths[blank] == 0)
    assert np.all((np.abs(lengths - 1) < 1e-6) | (lengths == 0))


def test_bits_do_not_depend_on_threads_or_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(5)
    words = ["".join(generator.choice(list("abcdefghij"), 7)) for _ in range(3000)]
    values = [" ".join(generator.choice(words, 3)) for _ in range(5000)]
    embedder = hashing.create(100)
    expected = embedder.embed(values).tobytes()
    threads = torch.get_num_threads()
    try:
        for number in (1, 3):
            torch.set_num_threads(number)
            assert embedder.embed(values).tobytes() == expected, f"{number} threads"
    finally:
        torch.set_num_threads(threads)
    monkeypatch.setattr(subword, "WORKING_BYTES", 1 << 16)
    assert embedder.embed(values).tobytes() == expected, "small chunks"


@pytest.mark.parametrize(
    "form", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
)
def test_arrow_types_slices_and_chunks_are_read_alike(form: pa.DataType) -> None:
    values = ["x", "abc", None, "déf abc", "", "c"]
    expected = EMBEDDER.embed(values)
    array = (
        pa.array(values, pa.string()).cast(form)
        if pa.types.is_dictionary(form)
        else pa.array(values, form)
    )
    assert EMBEDDER.embed(array).tobytes() == expected.tobytes()
    assert EMBEDDER.embed(array.slice(1, 3)).tobytes() == expected[1:4].tobytes()
    assert (
        EMBEDDER.embed(pa.chunked_array([array.slice(0, 2), array.slice(2)])).tobytes()
        == expected.tobytes()
    )


def test_an_empty_batch_has_no_rows() -> None:
    assert EMBEDDER.embed([]).shape == (0, 17)
    assert EMBEDDER.embed([None, ""]).shape == (2, 17)


@pytest.mark.parametrize("wrong", [pa.array([1, 2]), [b"x", 3], [object()]])
def test_values_that_are_no_strings_are_refused(wrong) -> None:
    with pytest.raises(InputError, match="Values to embed must be strings"):
        EMBEDDER.embed(wrong)


def test_arrays_that_do_not_fit_together_are_refused() -> None:
    with pytest.raises(
        EmbedderError, match="centre of a glove model has 3 numbers and its rows have 2"
    ):
        two_words(centre=np.zeros(3, np.float32))
    with pytest.raises(EmbedderError, match="has 2 words and only 1 rows"):
        two_words(rows=np.ones((1, 2), np.float32))
    with pytest.raises(EmbedderError, match="n-grams of 3 to 6 characters needs rows"):
        two_words(min_n=3, max_n=6)


@given(costs=st.lists(st.integers(0, 20), max_size=30), budget=st.integers(1, 25))
def test_chunks_cover_everything_within_the_budget(costs: list[int], budget: int) -> None:
    runs = list(runs_within(np.array(costs, np.int64), budget))
    assert [at for run in runs for at in range(run.start, run.stop)] == list(range(len(costs)))
    for run in runs:
        assert run.stop - run.start == 1 or sum(costs[run]) <= budget
