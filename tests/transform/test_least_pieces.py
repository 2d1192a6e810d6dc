"""The least number of pieces that keys consist of: a bound on the operators of any program."""

from __future__ import annotations

import random
import re
from functools import cache

import pytest

from pexeso.transform.learning.examples_to_program import least_pieces, piece_starts
from pexeso.transform.programs.conversions import lists, lower
from pexeso.transform.programs.program import upper
from tests.transform.test_learning import drawn_program, drawn_rows


def fewest(key: str, held: list[str], keys: list[str]) -> int:
    """Return the least number of pieces by trying every cut, or more than there are letters."""

    @cache
    def rest(at: int) -> int:
        if at == len(key):
            return 0
        pieces = [
            1 + rest(end)
            for end in range(at + 1, len(key) + 1)
            if any(key[at:end] in text for text in held) or all(key[at:end] in k for k in keys)
        ]
        return min(pieces, default=len(key) + 1)

    return min(rest(0), len(key) + 1)


def plain(text: str) -> str:
    return "".join(filter(str.isalnum, lower(upper(text))))


def held_by(cell: str) -> list[str]:
    """Return a cell, what lists make of its words, and its numbers with zeros in front."""
    words = re.findall(r"[^\W_]+", lower(cell))
    listed = [entries[word] for word in words for entries in lists().values() if word in entries]
    return list(map(plain, [cell, *listed, *(f"{0:08}{word}" for word in words if word.isdigit())]))


def drawn_text(drawn: random.Random, letters: str) -> str:
    return "".join(drawn.choices(letters, k=drawn.randint(1, 7)))


@pytest.mark.parametrize("letters", ["ab-", "aB1 ."])
def test_it_is_what_trying_every_cut_finds(letters):
    drawn = random.Random(5)
    for _ in range(300):
        n_examples = drawn.randint(1, 3)
        rows = [
            [drawn_text(drawn, letters), drawn.choice([None, drawn_text(drawn, letters)])]
            for _ in range(n_examples)
        ]
        keys = [drawn_text(drawn, letters) for _ in range(n_examples)]
        expected = [
            fewest(
                plain(key),
                [text for cell in row if cell for text in held_by(cell)],
                [plain(k) for k in keys],
            )
            for row, key in zip(rows, keys, strict=True)
        ]
        assert least_pieces(rows, keys) == expected


def test_no_program_has_fewer_operators():
    drawn = random.Random(11)
    checked = 0
    while checked < 400:
        rows = [drawn_rows(drawn, ["name", "date", "last"]) for _ in range(3)]
        program = drawn_program(drawn, rows)
        keys = [program.of(row) for row in rows]
        if all(keys):
            checked += 1
            assert max(least_pieces(rows, keys)) <= len(program.operators)


def test_signs_and_casings_count_for_nothing():
    assert least_pieces([["Baby Gear & Co"]], ["BABY_GEAR"]) == [1]
    assert least_pieces([["Straße ΟΔΟΣ"], ["x"]], ["STRASSE-οδος", "x"]) == [1, 1]
    assert least_pieces([["--"], ["??"]], ["!!", "."]) == [0, 0]


def test_what_stands_nowhere_takes_more_than_all_letters():
    assert least_pieces([["abc"], ["def"]], ["abq", "def"]) == [4, 1]


@pytest.mark.parametrize(
    ("row", "key", "starts"),
    [
        (["Moore, Kelly", None, "x"], "KMOORE", [(0, 1, 0), (0, 0, 0)]),
        # No piece reaches from one word into the next, and the longest counts, not the first.
        (["34-05", "405"], "405", [(1, 0, 0)]),
        (["ab abc"], "a.bc-b", [(0, 1, 0), (0, 0, 1)]),
        (["ab"], "xaay", [(-1, -1, -1), (0, 0, 0), (0, 0, 0), (-1, -1, -1)]),
        ([None, ""], "a", [(-1, -1, -1)]),
        (["a"], "-", []),
    ],
)
def test_where_the_pieces_of_a_key_begin(row, key, starts):
    assert piece_starts(row, key) == tuple(starts)


def test_pieces_are_as_long_as_any_word_allows():
    drawn = random.Random(3)
    for _ in range(300):
        row = [" ".join(drawn_text(drawn, "ab1") for _ in range(2)) for _ in range(2)]
        key = drawn_text(drawn, "ab1")
        at = 0
        for cell, number, begin in piece_starts(row, key):
            lengths = [
                length
                for text in row
                for word in text.split()
                for length in range(1, len(key) - at + 1)
                if key[at : at + length] in word
            ]
            longest = max(lengths, default=1)
            if cell >= 0:
                word = row[cell].split()[number]
                assert word[begin : begin + longest] == key[at : at + longest]
            else:
                assert not lengths
            at += longest
        assert at == len(key)
