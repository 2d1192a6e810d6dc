"""Answers of a bounded length, whatever a lake holds."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pexeso.errors import InputError
from pexeso.faces.mcp.answers import (
    MAX_TOKENS,
    MIN_TOKENS,
    count_tokens,
    page,
    readable,
    require_tokens,
    written,
)
from pexeso.runtime.formatting import is_hidden

TEXTS = st.text(max_size=400) | st.sampled_from(
    ["漢" * 5000, "\u202e" * 3000, '"\\' * 4000, "\U0001f600" * 2000, "\x00" * 9000, "é" * 70_000]
)
CELLS = TEXTS | st.integers() | st.floats() | st.booleans() | st.none()
ENTRIES = st.lists(
    st.dictionaries(TEXTS, CELLS | st.lists(CELLS, max_size=40), max_size=12)
    | st.lists(CELLS, max_size=60),
    max_size=25,
)


def texts_of(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from (name, *texts_of(inner))
    elif isinstance(value, list):
        for inner in value:
            yield from texts_of(inner)


@given(ENTRIES, st.integers(MIN_TOKENS, MAX_TOKENS), st.integers(1, 30))
def test_a_page_fits_and_pages_reach_every_entry_once(entries, max_tokens, limit):
    seen, offset = 0, 0
    while offset is not None:
        answer = page(
            {"note": "Best first."},
            "entries",
            entries,
            offset=offset,
            limit=limit,
            max_tokens=max_tokens,
        )
        assert count_tokens(answer) <= max_tokens
        assert json.loads(written(answer)) == answer
        assert not [text for text in texts_of(answer) if any(map(is_hidden, text))]
        assert answer["total"] == len(entries)
        assert answer["truncated"] is (answer["next_offset"] is not None)
        assert len(answer["entries"]) == (answer["next_offset"] or len(entries)) - offset
        assert answer["entries"] or not entries
        seen, offset = seen + len(answer["entries"]), answer["next_offset"]
    assert seen == len(entries)


def test_long_texts_say_how_long_they_were():
    assert readable("x" * 1000, 20).endswith("… (1,000 chars)")
    assert len(readable("x" * 1000, 20)) == 20


def test_what_must_lead_back_is_not_touched():
    assert readable({"id": "a" * 500, "b": ["c" * 500]}, 20, keep=("id",))["id"] == "a" * 500


def test_tokens_are_counted_by_bytes():
    assert count_tokens("ab") == 2  # with the quotation marks
    assert count_tokens("漢" * 10) == 11


@pytest.mark.parametrize("max_tokens", [0, MIN_TOKENS - 1, MAX_TOKENS + 1])
def test_lengths_out_of_range_are_refused(max_tokens):
    with pytest.raises(InputError, match="max_tokens is 1,000 to 20,000"):
        require_tokens(max_tokens)
