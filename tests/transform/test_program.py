"""What programs write for single rows."""

from __future__ import annotations

import pytest

from pexeso.transform.programs.program import Extract, Split, lower, title, upper


@pytest.mark.parametrize(
    ("operator", "text", "piece"),
    [
        (Extract(0, start=1, length=2), "abc", "bc"),
        (Extract(0, start=2, length=2), "abc", None),
        (Extract(0, start=3), "abc", None),
        (Extract(0, start=-3), "abc", "abc"),
        (Extract(0, start=-4), "abc", None),
        (Extract(0, start=-2, length=1), "abc", "b"),
        (Extract(0), "", ""),
        (Extract(0, start=-1), "", None),
        (Extract(0), None, None),
        (Extract(0, (Split("-", 1),)), "abc", None),
        (Extract(0, (Split("-", -1),)), "a-b-c", "c"),
        (Extract(0, (Split("-", -4),)), "a-b-c", None),
        (Extract(0, (Split("-", 1),)), "a--c", ""),
        (Extract(0, (Split("aa", 1),)), "aaa", "a"),
        (Extract(0, (Split("-", -2, "to"),)), "a-b-c", "a-b"),
        (Extract(0, (Split("-", 1, "from"),)), "a-b-c", "b-c"),
        (Extract(0, (Split("-", 3, "from"),)), "a-b-c", None),
        (Extract(0, casing="upper", replacements=(("-", " "), ("c", ""))), "a-b-c", "A B "),
        (Extract(0, length=5, shorter=True), "abc", "abc"),
        (Extract(0, start=3, length=5, shorter=True), "abc", None),
        (Extract(0, start=-2, length=5, shorter=True), "abc", "bc"),
    ],
)
def test_a_step_that_does_not_apply_writes_nothing_and_is_not_cut_short(operator, text, piece):
    assert operator.of([text]) == piece


PLACES = [*range(-4, 5)]


@pytest.mark.parametrize("shorter", [False, True])
@pytest.mark.parametrize("length", [None, 1, 2, 3, 5])
@pytest.mark.parametrize("start", PLACES)
def test_a_piece_is_there_from_a_number_of_characters_on(start, length, shorter):
    extract = Extract(0, start=start, length=length, shorter=shorter)
    min_length = extract.min_length
    for n_characters in range(10):
        piece = extract.of(["abcdefghij"[:n_characters]])
        assert (piece is not None) == (min_length is not None and n_characters >= min_length)


def test_letters_are_cased_one_by_one():
    assert lower("ΑΣ") == "\N{GREEK SMALL LETTER ALPHA}\N{GREEK SMALL LETTER SIGMA}"
    assert lower("İ") == "i"
    assert upper("ﬁne ß") == "ﬁNE SS"
    assert title("McDONALD's 3rd_x") == "Mcdonald'S 3Rd_X"


def test_a_greek_letter_with_an_iota_has_one_capital():
    assert upper("ᾳ ᾼ ῲ ǆ") == "ᾼ ᾼ ῲ Ǆ"
