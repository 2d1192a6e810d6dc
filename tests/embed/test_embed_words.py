"""Splitting, hashing and finding words, compared with plain Python."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from embed import words as words_module
from embed.subword import count_ngrams, hash_ngrams
from embed.words import Vocabulary, hash_strings, split_words
from pexeso.runtime.ranges import runs_of_lists

TEXT = st.text(st.sampled_from("ab é東👍\t\u00a0"), max_size=12)
WORD = st.text(st.sampled_from("abé東👍</>s"), min_size=1, max_size=8)


def strings(words: list[str]) -> pa.LargeStringArray:
    return pa.array(words, pa.large_string())


def fnv(text: str) -> int:
    """32-bit FNV-1a over signed bytes, one byte at a time."""
    state = 2166136261  # the offset of FNV-1a
    for byte in text.encode():
        state ^= byte if byte < 128 else byte | 0xFFFFFF00
        state = state * 16777619 % 2**32
    return state


def plain_ngrams(word: str, min_n: int, max_n: int) -> list[str]:
    if word == "</s>":
        return []
    text = f"<{word}>"
    spans = [
        (start, n)
        for start in range(len(text))
        for n in range(min_n, max_n + 1)
        if start + n <= len(text)
    ]
    return [text[start : start + n] for start, n in spans if n > 1 or 0 < start < len(text) - 1]


@given(values=st.lists(st.one_of(st.none(), TEXT), max_size=15))
def test_words_of_values(values: list) -> None:
    index = split_words(values)
    words = index.words.to_pylist()
    assert words == sorted(
        {word for value in values for word in (value or "").split()}, key=str.encode
    )
    for value, start, stop in zip(values, index.offsets, index.offsets[1:], strict=False):
        ids = index.word_ids[start:stop]
        assert [words[place] for place in ids] == sorted((value or "").split(), key=str.encode)


@given(words=st.lists(WORD, max_size=12), min_n=st.integers(1, 4), more=st.integers(0, 4))
def test_ngrams_of_words(words: list[str], min_n: int, more: int) -> None:
    hashes, offsets = hash_ngrams(strings(words), min_n, min_n + more)
    for word, start, stop in zip(words, offsets, offsets[1:], strict=False):
        assert hashes[start:stop].tolist() == [
            fnv(piece) for piece in plain_ngrams(word, min_n, min_n + more)
        ]
    np.testing.assert_array_equal(
        np.diff(offsets), count_ngrams(strings(words), min_n, min_n + more)
    )


def test_no_ngrams_are_asked_for() -> None:
    hashes, offsets = hash_ngrams(strings(["abc", "d"]), 0, 0)
    assert (len(hashes), offsets.tolist()) == (0, [0, 0, 0])


@given(known=st.lists(WORD, unique=True, max_size=12), words=st.lists(WORD, max_size=12))
def test_words_are_found_where_they_stand(known: list[str], words: list[str]) -> None:
    expected = [known.index(word) if word in known else -1 for word in words]
    assert Vocabulary(strings(known)).find(strings(words)).tolist() == expected
    padded = strings(["x", *known]).slice(1)
    assert Vocabulary(padded).find(strings(["x", *words]).slice(1)).tolist() == expected


def test_words_are_told_apart_when_their_hashes_are_equal(monkeypatch) -> None:
    monkeypatch.setattr(words_module, "hash_strings", lambda words: np.zeros(len(words), np.uint64))
    assert Vocabulary(strings(["a"])).find(strings(["b", "a"])).tolist() == [-1, 0]
    assert Vocabulary(strings(["a", "b", "a"])).find(strings(["b", "c", "a"])).tolist() == [
        1,
        -1,
        0,
    ]


def hash_of(text: str) -> int:
    """The hash of a text, one byte at a time in numbers of any size."""
    data, multiplier = text.encode(), 0x9E3779B97F4A7C15
    total = sum((byte + 1) * multiplier**power for power, byte in enumerate(data, 1))
    number = total % 2**64 ^ len(data)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        number = (number ^ number >> shift) * factor % 2**64
    return number ^ number >> 31


@given(texts=st.lists(st.one_of(st.just(""), WORD), max_size=12), start=st.integers(0, 3))
def test_hashes_depend_on_the_string_alone(texts: list, start: int) -> None:
    assert hash_strings(strings(texts)[start:]).tolist() == [hash_of(t) for t in texts[start:]]


def test_words_are_spelled_in_latin_letters_where_that_tells_them_apart():
    from embed.lexical import spelled_words

    words = ["oslo", "москва", "koeln", "서울", "東京", "北京", "القاهرة", "ירושלים", "σπάρτα"]
    spelled = spelled_words(pa.array(words, pa.large_string())).to_pylist()
    assert [text.partition("\x1f")[2] for text in spelled] == [
        *("", "moskva", "koln", "seoul", "", "", "alqahra", "irushlim", "sparta")
    ]
    assert [text.partition("\x1f")[0] for text in spelled] == words


@given(texts=st.lists(st.one_of(st.just(""), WORD), max_size=12))
def test_runs_of_texts_leave_no_text_out(texts: list) -> None:
    offsets = np.cumsum([0, *(len(text.encode()) for text in texts)])
    runs = [at for run in runs_of_lists(offsets, 3) for at in range(run.start, run.stop)]
    assert runs == list(range(len(texts)))
