"""Hits that letters of chance would make: by places counted one text at a time, and by drawing."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict

import pytest

from pexeso.transform.learning import chance
from pexeso.transform.learning.chance import bits_of_few, bound_on_luck, hits_by_chance
from pexeso.transform.learning.example_sets import FindingOptions
from pexeso.transform.learning.finding import find_program
from pexeso.transform.texts import TextTable


def form(text: str) -> str:
    return "".join("0" if c.isdigit() else "a" if c.isalpha() else c for c in text)


def plain_hits(written: list[str], keys: list[str], following: float) -> float:
    """Return the expected hits from plain counters, one key after the other."""
    groups = defaultdict(list)
    for text in written:
        groups[form(text)].append(text)
    varied = {
        letter
        for texts in groups.values()
        for column in zip(*texts, strict=True)
        if len(set(column)) > 1 or len(texts) == 1
        for letter in column
        if letter.isalnum()
    }
    n_digits = sum(map(str.isdigit, varied))
    n_varied = {"0": n_digits, "a": len(varied) - n_digits}
    total = 0.0
    for key in keys:
        texts = groups.get(form(key), [])
        own = key in texts
        one, following_digits = float(len(texts)), 2
        columns = list(zip(*texts, strict=True))
        for place, letter in enumerate(key if texts else ""):
            first = columns.index(columns[place])
            count = Counter(columns[place])
            if first != place:
                one *= key[first] == letter
            elif form(letter) in n_varied and (len(count) > 1 or len(texts) == 1):
                others = len(texts) - own + n_varied[form(letter)]
                share = (count[letter] - own + 1) / others
                follows = not letter.isdigit() or following_digits > 0
                following_digits -= letter.isdigit()
                one *= min(1.0, following * share if follows else share)
            elif letter not in count:
                one = 0.0
        total += min(1.0, one)
    return total


@pytest.mark.parametrize("following", [1.0, 2.0])
@pytest.mark.parametrize("letters", ["01", "ab1-", "Aé9. x", "0123456789"])
def test_hits_are_those_of_plain_counters(letters, following):
    drawn = random.Random(3)
    for _ in range(150):
        written, keys = (
            sorted({"".join(drawn.choices(letters, k=drawn.randint(1, 4))) for _ in range(size)})
            for size in (drawn.randint(1, 30), drawn.randint(1, 30))
        )
        expected = plain_hits(written, keys, following)
        assert hits_by_chance(written, keys, following) == pytest.approx(expected, abs=1e-9)


def test_a_sample_tells_nearly_the_same(monkeypatch):
    drawn = random.Random(4)
    written = sorted({f"{drawn.randint(0, 99999):05}" for _ in range(9000)})
    keys = sorted({f"{drawn.randint(0, 99999):05}" for _ in range(7000)})
    whole = hits_by_chance(written, keys)
    monkeypatch.setattr(chance, "_MANY", 2000)
    assert hits_by_chance(written, keys) == pytest.approx(whole, rel=0.1)
    # That is what independent draws really hit.
    assert len({*written} & {*keys}) == pytest.approx(whole, rel=0.1)


def test_few_long_keys_say_more_than_few_digits_behind_a_constant():
    units = ["France.01", "United States.01", "United States.03"]
    assert bits_of_few(units, units, [*units, "France.03"], 4) > 30
    numbers = [f"T-AO-19{digit}" for digit in range(8)]
    digits = ["1", "2", "3", "5", "7"]
    assert bits_of_few(digits[:3], digits, numbers, 5) < 10, "too little for one operator"
    # What a key has in common with the one before it says nothing again.
    assert bits_of_few(numbers[:3], numbers, numbers, 5) < bits_of_few(units, units, numbers, 5)
    # Nor does what all of them end with.
    ended = [f"{digit})" for digit in digits]
    assert bits_of_few(ended[:3], ended, [f"Cup ({digit})" for digit in "123468"], 5) < 10


@pytest.mark.parametrize(
    ("source", "keys"),
    [
        (["1922", "1991", "1980", "1902", "1884"], [f"T-AO-19{at}" for at in range(6)]),
        (["2", "6", "26", "25", "15", "8", "1"], ["8:00pm", "1:00pm", "4:15pm", "2:00pm"]),
        (
            ["7.95", "7.97", "4.69", "3.31", "5.94", "1.2", "9.1", "12.5", "20.3", "18.7", "2.1"],
            [*(f"World Snooker Championship ({n})" for n in range(1, 12)), *"abcdefgh"],
        ),
        (["Ayon", "Tnabe", "Scott", "Albert"], ["AL", "TN", "SC", "SD", "NM", "AY"]),
    ],
    ids=["digits", "hours", "digits before a sign", "two letters"],
)
def test_few_short_pieces_are_refused(source, keys):
    fit = find_program(TextTable.of({"a": source}), TextTable.of({"b": keys}).columns)
    assert fit is None or not fit.accepted


STATES = "AL AR AZ CA CO DE GA IL IN LA MA MD ME MN MO MS NC NE NY PA SC SD TN VA"
TEAMS = "Canada Colombia Germany Japan Brazil Nigeria Norway Sweden Mexico France Spain China Chile"


def test_a_list_that_joins_less_than_a_third_joins_columns_that_are_named_alone():
    tables = TextTable.of({"a": STATES.split()}), TextTable.of({"b": TEAMS.split()}).columns
    for named in (True, False):
        fit = find_program(*tables, FindingOptions(named=named))
        assert fit is not None
        assert fit.accepted == named
    assert fit.why.startswith("less than a third")
    # Codes of the same countries are joined either way.
    codes = "CA CO DE JP BR NG NO SE MX FR ES CN CL US IT GB"
    countries = TextTable.of({"a": codes.split()})
    by_list = find_program(countries, tables[1], FindingOptions(named=False))
    assert by_list is not None
    assert by_list.accepted


@pytest.mark.parametrize(("hits", "expected"), [(4_000, 2_390.5), (400, 239.0), (3, 0.5), (40, 39)])
def test_the_bound_is_that_of_its_formula_for_many_hits_too(hits, expected):
    formula = math.exp(hits * math.log(expected / hits) + hits - expected)
    assert formula * 0.999 <= bound_on_luck(hits, expected) <= formula * math.e
