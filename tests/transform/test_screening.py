"""Likely pairs screened: in which direction a program writes enough of them."""

from __future__ import annotations

import random

import pytest

from pexeso.transform.search import searches
from pexeso.transform.search.searches import screen

FIRST = ["Suhela", "Maureen", "Carolyn", "Kelly", "Missy", "Barack", "Ronald", "Bill", "George"]
LAST = ["Chowdhury", "Paluzzi", "Craddock", "Moore", "Payne", "Obama", "Reagan", "Clinton", "Bush"]
NAMES = [f"{first} {last}" for first in FIRST for last in LAST][::2]


def test_the_side_that_holds_more_is_read():
    dated = [
        f"{name.split()[1]}, {name.split()[0]} ({1900 + at}-)" for at, name in enumerate(NAMES)
    ]
    assert screen(NAMES, dated) == "target to source"
    assert screen(dated, NAMES) == "source to target"


def test_a_third_of_the_pairs_suffices():
    drawn = random.Random(0)
    mails = [f"{name.split()[0][0]}{name.split()[1]}@a.us".lower() for name in NAMES]
    wrong = mails[15:]
    drawn.shuffle(wrong)
    assert screen(NAMES, [*mails[:15], *wrong]) == "source to target"


def test_pairs_of_chance_are_written_by_nothing():
    drawn = random.Random(1)
    noise = ["".join(drawn.choices("abcdefghij", k=9)) for _ in NAMES]
    assert screen(NAMES, noise) is None


@pytest.mark.parametrize("pairs", [[], [("a b", "b a")], [("a b", "b a")] * 50])
def test_too_few_different_pairs(pairs):
    assert screen([one for one, _ in pairs], [other for _, other in pairs]) is None


def test_long_texts_are_left_out():
    long = ["x" * 100_000 + name for name in NAMES]
    assert screen(NAMES, long) is None


def test_no_effort_no_program(monkeypatch):
    upper = [name.upper() for name in NAMES]
    assert screen(NAMES, upper) is not None
    monkeypatch.setattr(searches, "MAX_EFFORT", 0)
    assert screen(NAMES, upper) is None
