"""Source that is written for people does what programs do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pexeso.errors import InputError
from pexeso.transform.programs.program import Constant, Extract, Program, Split, cased
from pexeso.transform.programs.renderings import as_python
from tests.transform.random_programs import CASINGS, ROWS, programs, random_programs, rows, texts
from tests.transform.test_cased_arrays import EVERY_CHARACTER

NAMES = ('Na"me\\', "it's\n    return 1 # \u202e")


def function_of(program: Program, names: tuple[str, ...] = NAMES) -> Callable:
    """Run the source in an empty namespace, as a person would who pastes it."""
    namespace: dict = {}
    exec(compile(as_python(program, names), "pasted", "exec"), namespace)
    return namespace["transform"]


@given(programs, rows)
def test_the_function_writes_what_the_program_writes(program, table):
    function = function_of(program)
    for row in table:
        assert function(dict(zip(NAMES, row, strict=True))) == program.of(row)


def test_hard_rows():
    for program in random_programs(300, seed=2):
        function = function_of(program)
        for row in ROWS:
            assert function(dict(zip(NAMES, row, strict=True))) == program.of(row), program


@pytest.mark.parametrize("casing", CASINGS)
def test_every_character_there_is(casing):
    function = function_of(Program((Extract(0, casing=casing),)), ("x",))
    for character in EVERY_CHARACTER:
        text = f"{character}a{character}"
        assert function({"x": text}) == cased(text, casing)


@given(texts.filter(bool), texts, texts.filter(bool))
def test_no_text_leaves_its_quotes(name, constant, separator):
    if "\x00" in name:
        return
    program = Program((Constant(constant), Extract(0, (Split(separator, 1),))))
    assert function_of(program, (name,))({name: f"a{separator}b{separator}"}) == program.of(
        [f"a{separator}b{separator}"]
    )


@given(st.sampled_from(CASINGS))
def test_only_helpers_that_are_needed_are_written(casing):
    source = as_python(Program((Extract(0, casing=casing),)), ["x"])
    expected = {
        "none": set(),
        "lower": {"lower"},
        "upper": {"capital", "upper"},
        "title": {"capital", "upper", "lower", "title"},
    }[casing]
    helpers = {"lower", "capital", "upper", "title"}
    assert {helper for helper in helpers if f"def {helper}(" in source} == expected
    assert ("import" in source) == (casing == "title")


def test_a_long_expression_is_written_once():
    source = as_python(Program((Extract(0, start=1, replacements=((".", ""),)),)), ["x"])
    assert source.count(".replace(") == 1


def test_a_column_without_a_name_is_refused():
    with pytest.raises(InputError, match="reads column 2, but only 1 columns are named"):
        as_python(Program((Extract(1),)), ["a"])
    with pytest.raises(InputError, match="reads a column named 'a', but the name"):
        as_python(Program((Extract(1),)), ["a", "a"])
