"""Parts of cells as letters, and the order in which operators are tried, against plain loops."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pexeso.transform.learning.example_parts import CASINGS, MAX_STEPS, NO_LETTER, examples_of
from pexeso.transform.programs.program import lower, upper

ALPHABETS = {"ASCII": "ab-1 Z(", "others": "aé ß.İΣ-"}


def drawn_examples(alphabet, seed):
    drawn = random.Random(seed)
    rows = [["".join(drawn.choices(alphabet, k=drawn.randint(1, 9)))] for _ in range(3)]
    return rows, ["".join(drawn.choices(alphabet, k=4)) for _ in rows]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_lines_are_in_the_order_of_preference(alphabet, seed):
    examples = examples_of(*drawn_examples(ALPHABETS[alphabet], seed))
    n_steps = [
        len(splits) + len(others) + bool(name) for _, splits, others, name in examples.extractors
    ]
    expected = []
    for number, sizes in enumerate(examples.size.tolist()):
        for backward in (0, 1) if len(set(sizes)) > 1 else (0,):
            for start in range(min(sizes)):
                expected += [
                    (n_steps[number], backward, start, casing, number)
                    for casing in range(len(CASINGS))
                ]
    expected.sort()
    lines = [(line[0], line[1], line[2], line[3]) for line in examples.lines.tolist()]
    assert lines == [(e, casing, backward, start) for _, backward, start, casing, e in expected]
    groups = [sum(steps < limit for steps, *_ in expected) for limit in range(MAX_STEPS + 2)]
    assert examples.groups.tolist() == groups


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_letters_are_cased_one_by_one(alphabet, seed):
    rows, keys = drawn_examples(ALPHABETS[alphabet], seed)
    examples = examples_of(rows, keys)
    plain = "".join(map(chr, examples.plain.tolist()))
    assert plain.startswith("".join(row[0] for row in rows))
    for case, letters in ((lower, examples.small), (upper, examples.large)):
        made = [case(letter) for letter in plain]
        assert letters.tolist() == [ord(m) if len(m) == 1 else NO_LETTER for m in made]
    assert examples.is_letter.tolist() == [letter.isalpha() for letter in plain]
    assert examples.is_letter.dtype == np.bool_
