"""Programs in words, and the steps of a row."""

from __future__ import annotations

import pytest
from hypothesis import given

from pexeso.errors import InputError
from pexeso.transform.programs.conversions import quoted
from pexeso.transform.programs.program import Constant, Extract, Program, Split
from pexeso.transform.programs.renderings import in_words, steps_of_row
from tests.transform.random_programs import programs, rows, texts


@pytest.mark.parametrize(
    ("operator", "words"),
    [
        (Constant(" "), "a space"),
        (Constant(", "), '", "'),
        (Extract(0), '"Name"'),
        (Extract(1, (Split("-", -1),)), 'the last part of "Year" split at "-"'),
        (Extract(1, (Split("-", -2),)), 'part 2 from the end of "Year" split at "-"'),
        (
            Extract(0, (Split("(", 0), Split(", ", 1)), start=1),
            'part 2 of (part 1 of "Name" split at "(") split at ", " from character 2 on',
        ),
        (Extract(0, (Split("-", 0, "to"),)), 'the first part of "Name" split at "-"'),
        (Extract(0, (Split("-", 1, "to"),)), 'the first 2 parts of "Name" split at "-"'),
        (Extract(0, (Split("-", -1, "to"),)), 'all parts of "Name" split at "-"'),
        (Extract(0, (Split("-", -2, "to"),)), 'all but the last part of "Name" split at "-"'),
        (Extract(0, (Split("-", -3, "to"),)), 'all but the last 2 parts of "Name" split at "-"'),
        (Extract(0, (Split("-", 0, "from"),)), 'all parts of "Name" split at "-"'),
        (Extract(0, (Split("-", 1, "from"),)), 'all but the first part of "Name" split at "-"'),
        (Extract(0, (Split("-", 2, "from"),)), 'all but the first 2 parts of "Name" split at "-"'),
        (Extract(0, (Split("-", -1, "from"),)), 'the last part of "Name" split at "-"'),
        (Extract(0, (Split("-", -2, "from"),)), 'the last 2 parts of "Name" split at "-"'),
        (
            Extract(0, replacements=((".", ""), (" ", "_"))),
            '"Name" with "." left out and " " replaced by "_"',
        ),
        (
            Extract(0, replacements=((".", ""),), length=2, shorter=True),
            'the first 2 characters of ("Name" with "." left out), or as many as there are',
        ),
        (
            Extract(0, (), start=2, length=3, shorter=True),
            'characters 3 to 5 of "Name", or as many as there are',
        ),
        (Extract(0, (), start=-2, length=3, shorter=True), 'the last 2 characters of "Name"'),
        (
            Extract(0, (), start=-2, length=3),
            '3 characters of "Name", beginning with character 2 from the end',
        ),
        (
            Extract(0, (), start=0, length=1, casing="lower"),
            'the first character of "Name", in small letters',
        ),
        (
            Extract(0, (), start=0, length=3, casing="upper"),
            'the first 3 characters of "Name", in capitals',
        ),
        (Extract(0, (), start=2, length=1), 'character 3 of "Name"'),
        (Extract(0, (), start=2, length=4), 'characters 3 to 6 of "Name"'),
        (Extract(0, (), start=-1), 'the last character of "Name"'),
        (Extract(0, (), start=-3, length=3), 'the last 3 characters of "Name"'),
        (Extract(0, (), start=-3, length=1), 'character 3 from the end of "Name"'),
        (
            Extract(0, (), start=-4, length=2, casing="title"),
            '2 characters of "Name", beginning with character 4 from the end, with a capital for '
            "each word",
        ),
    ],
)
def test_words_of_operators(operator, words):
    assert in_words(Program((operator,)), ["Name", "Year"]) == words


def test_words_of_a_program():
    program = Program((Constant("["), Extract(0), Constant("] "), Extract(1)))
    assert in_words(program, ["ID", "Name"]) == '"[", then "ID", then "] ", then "Name"'
    assert in_words(Program(()), []) == "an empty text"


@given(programs)
def test_words_are_one_line_that_can_be_seen(program):
    assert in_words(program, ["line\nbreak\x00", 'quo"te\u202e']).isprintable()


@given(texts, texts)
def test_texts_that_differ_are_quoted_differently(first, second):
    assert (quoted(first) == quoted(second)) == (first == second)
    assert quoted(first + '", "' + second) != quoted(first) + ", " + quoted(second)


def test_a_backslash_is_told_from_an_escape():
    assert quoted("\\n") == r'"\\n"'
    assert quoted("\n") == r'"\n"'


@given(programs, rows)
def test_steps_are_the_pieces_of_the_whole(program, table):
    names = ["Name", "Year"]
    for row in table:
        steps = steps_of_row(program, row, names)
        pieces = [piece for _, piece in steps]
        assert program.of(row) == (None if None in pieces else "".join(pieces))
        if steps:
            assert ", then ".join(words for words, _ in steps) == in_words(program, names)


def test_names_that_are_missing_are_refused():
    program = Program((Extract(2),))
    with pytest.raises(InputError, match="reads column 3, but only 2 columns are named; pass"):
        in_words(program, ["a", "b"])
    with pytest.raises(InputError, match="reads column 3"):
        steps_of_row(program, ["a", "b", "c"], ["a", "b"])
