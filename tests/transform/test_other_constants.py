"""Programs with another constant: against trying every constant on every row."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

from pexeso.transform.learning.finding import FindingOptions, find_variant, with_other_constants
from pexeso.transform.programs.program import Constant, Extract, Program
from pexeso.transform.texts import TextColumn, TextTable

PROGRAMS = {
    "at the end": Program((Extract(0, length=2, shorter=True), Constant("01"))),
    "at the beginning": Program((Constant("x"), Extract(0))),
    "between": Program((Extract(0, length=1), Constant("-"), Extract(0, start=1))),
}


def texts(cells: list[str]) -> pa.Array:
    return pa.array(cells, pa.large_string())


def plain_constants(program: Program, rows: list[str], keys: list[str]) -> Counter[str]:
    """Count the keys that each constant of any length writes for some row."""
    [at] = [at for at, operator in enumerate(program.operators) if isinstance(operator, Constant)]
    left, right = Program(program.operators[:at]), Program(program.operators[at + 1 :])
    pairs: set[tuple[str, str]] = set()
    for row in rows:
        before, after = (part.of([row]) if part.operators else "" for part in (left, right))
        if before is None or after is None:
            continue
        for key in keys:
            inside = len(key) - len(before) - len(after)
            if inside > 0 and key.startswith(before) and key.endswith(after):
                pairs.add((key[len(before) : len(before) + inside], key))
    return Counter(constant for constant, _ in pairs)


@pytest.mark.parametrize("name", PROGRAMS)
def test_constants_are_those_that_write_most_keys(name):
    program, drawn = PROGRAMS[name], random.Random(2)
    [at] = [at for at, operator in enumerate(program.operators) if isinstance(operator, Constant)]
    compared = 0
    for _ in range(80):
        rows, keys = (
            sorted({"".join(drawn.choices("ab-01", k=drawn.randint(1, 6))) for _ in range(30)})
            for _ in range(2)
        )
        counts = plain_constants(program, rows, keys)
        counts.pop(program.operators[at].text, None)
        wanted = {text: count for text, count in counts.items() if count >= 2}
        variants = with_other_constants(program, [texts(rows)], texts(keys), limit=1000)
        assert {variant.operators[at].text for variant in variants} == set(wanted)
        order = [wanted[variant.operators[at].text] for variant in variants]
        assert order == sorted(order, reverse=True)
        compared += len(variants)
    assert compared > 10


def test_of_many_keys_constants_have_the_length_of_the_program():
    rows = [f"n{number}" for number in range(11_000)]
    keys = [f"n{number}{'zz' if number % 2 else 'yyy'}" for number in range(11_000)]
    program = Program((Extract(0), Constant("ab")))
    variants = with_other_constants(program, [texts(rows)], texts(keys))
    assert [variant.operators[1].text for variant in variants] == ["zz"]


def test_a_program_alone_and_a_constant_alone_have_no_variants():
    cells = [texts(["a", "b"])]
    for program in (Program((Extract(0),)), Program((Constant("a"),))):
        assert with_other_constants(program, cells, texts(["a1", "b1"])) == []


def test_a_variant_is_accepted_as_programs_are():
    names = ["anna", "bertram", "cyd", "dorothea", "emil", "fritz", "gustav", "hanna"]
    source = TextTable.of({"name": names})
    keys = TextColumn("key", texts([f"{name}101" for name in names[:5]]))
    program = Program((Extract(0), Constant("001")))
    variant = find_variant([program], source, keys, FindingOptions(min_keys=2, min_share=0.0))
    assert variant.program == Program((Extract(0), Constant("101")))
    assert (variant.n_keys, variant.accepted) == (5, True)
    few = FindingOptions(min_keys=6, min_share=0.0)
    assert find_variant([program], source, keys, few) is None
