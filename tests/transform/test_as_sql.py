"""DuckDB, Spark and Python write what programs write; programs in words, and steps of a row."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from functools import cache

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import EVERYTHING, long_but

from pexeso.errors import InputError
from pexeso.transform.programs.conversions import quoted
from pexeso.transform.programs.program import Constant, Extract, Program, Split, cased
from pexeso.transform.programs.renderings import as_python, as_sql, in_words, steps_of_row
from tests.transform.random_programs import (
    CASINGS,
    ROWS,
    SEPARATORS,
    TEXTS,
    programs,
    random_programs,
    rows,
    texts,
)
from tests.transform.test_program import EVERY_CHARACTER

NAMES = ('Na"me`1`', "it's ${env:HOME} \\ -- ;")

NEW_SMALL_LETTERS = (
    *range(0x10D50, 0x10D66),
    *range(0x16EA0, 0x16EB9),
    *(0x1C89, 0xA7CB, 0xA7CC, 0xA7CE, 0xA7D2, 0xA7D4, 0xA7DA, 0xA7DC),
)
"""Capitals that have a small letter since Unicode 16 or 17, which Spark knows and Python does not
up to 3.13."""
NEW_CAPITALS = (
    *range(0x10D70, 0x10D86),
    *range(0x16EBB, 0x16ED4),
    *(0x19B, 0x264, 0x1C8A, 0xA7CD, 0xA7CF, 0xA7D3, 0xA7D5, 0xA7DB),
)

Rows = Sequence[tuple[str | None, str | None]]


@cache
def duckdb_connection() -> duckdb.DuckDBPyConnection:
    """Return the one connection of all tests: opening one takes longer than most statements."""
    return duckdb.connect()


def in_duckdb(programs_: Sequence[Program], table: Rows) -> list[list[str | None]]:
    """Return a column for each program."""
    connection = duckdb_connection()
    columns = zip(*table, strict=True) if table else ((), ())
    source = pa.table(
        {name: pa.array(cells, pa.string()) for name, cells in zip(NAMES, columns, strict=True)}
    )
    connection.register("source", source)
    expressions = (as_sql(program, NAMES, "duckdb") for program in programs_)
    selected = ", ".join(f"{expression} AS c{n}" for n, expression in enumerate(expressions))
    made = connection.sql(f"SELECT {selected} FROM source").to_arrow_table()
    assert len(made) == len(table)
    return [column.to_pylist() for column in made.columns]


def in_spark(spark, programs_: Sequence[Program], table: Rows) -> list[list[str | None]]:
    """Return a column for each program, from a statement in which Spark replaces variables."""
    cells = zip(*table, strict=True)
    source = pa.table(
        {name: pa.array(cells, pa.string()) for name, cells in zip(NAMES, cells, strict=True)}
    )
    spark.createDataFrame(source).coalesce(1).createOrReplaceTempView("transform_source")
    expressions = (as_sql(program, NAMES, "spark") for program in programs_)
    selected = ", ".join(f"{expression} AS c{n}" for n, expression in enumerate(expressions))
    made = spark.sql(f"SELECT {selected} FROM transform_source").toArrow()
    return [column.to_pylist() for column in made.columns]


def differences(
    programs_: Sequence[Program], table: Rows, columns: list[list[str | None]]
) -> list[tuple[Program, tuple[str | None, ...], str | None]]:
    assert len(columns) == len(programs_)
    return [
        (program, row, text)
        for program, column in zip(programs_, columns, strict=True)
        for row, text in zip(table, column, strict=True)
        if text != program.of(row)
    ]


@settings(max_examples=60)
@given(programs, rows)
def test_duckdb_writes_what_programs_write(program, table):
    assert differences([program], table, in_duckdb([program], table)) == []


def test_duckdb_on_hard_rows():
    drawn = random_programs(200, seed=3)
    assert differences(drawn, ROWS, in_duckdb(drawn, ROWS)) == []


@pytest.mark.parametrize("seed", long_but([4], [4, 5]))
def test_spark_on_hard_rows(spark, seed):
    drawn = random_programs(100, seed)
    assert differences(drawn, ROWS, in_spark(spark, drawn, ROWS)) == []


def test_a_third_part_needs_two_whole_separators():
    programs_ = [
        Program((Extract(0, (Split("aa", part, span),)),))
        for part in (2, -3, 3, -4)
        for span in ("one", "to", "from")
    ]
    table = [("a" * n, None) for n in range(8)]
    assert differences(programs_, table, in_duckdb(programs_, table)) == []


QUOTED = (*SEPARATORS, "''", "\\'", "\\\\", "/*", "--", "\n", "\\n", "\U000e0067", "$1")
QUOTING = [
    Program(
        (
            Constant(text),
            Extract(
                0,
                (Split(separator, 1, span),),
                replacements=((separator, text),) if span == "to" else (),
            ),
        )
    )
    for separator in QUOTED
    for text in (*TEXTS, separator)
    for span in ("one", "to", "from")
]
QUOTING_ROWS = [(f"a{separator}b", None) for separator in QUOTED]


def test_duckdb_takes_no_text_for_sql():
    assert differences(QUOTING, QUOTING_ROWS, in_duckdb(QUOTING, QUOTING_ROWS)) == []


def test_spark_takes_no_text_for_sql(spark):
    # Every fourth has each text and each kind of part.
    some = QUOTING if EVERYTHING else QUOTING[::4]
    assert differences(some, QUOTING_ROWS, in_spark(spark, some, QUOTING_ROWS)) == []


CASED = [Program((Extract(0, casing=casing),)) for casing in ("lower", "upper", "title")]
NO_LINE_BREAKS = [character for character in EVERY_CHARACTER if character != "\n"]
CHARACTER_ROWS = [
    ("\n".join(f"{sign}a{sign}" for sign in NO_LINE_BREAKS[start : start + 500]), None)
    for start in range(0, len(NO_LINE_BREAKS), 500)
]
"""A line for each character, since a million rows take Spark long."""


def characters_that_differ(columns: list[list[str | None]]) -> list[set[int]]:
    differing = []
    for column, program in zip(columns, CASED, strict=True):
        made = "\n".join(column).split("\n")
        expected = "\n".join(program.of(row) for row in CHARACTER_ROWS).split("\n")
        differing.append(
            {
                ord(character)
                for character, here, there in zip(NO_LINE_BREAKS, made, expected, strict=True)
                if here != there
            }
        )
    return differing


def of_later_scripts(points: set[int]) -> bool:
    """Return whether characters are outside of those that texts of today consist of."""
    return not any(
        point < 0x860 or 0x3000 <= point < 0x9FFD or 0xAC00 <= point < 0x10000 for point in points
    )


def test_duckdb_cases_every_character():
    small, capitals, title = characters_that_differ(in_duckdb(CASED, CHARACTER_ROWS))
    assert small == capitals == set()
    assert of_later_scripts(title)
    if unicodedata.unidata_version == "14.0.0":
        assert {unicodedata.category(chr(point)) for point in title} == {"Cn"}


@pytest.mark.long
def test_spark_cases_every_character_that_both_know(spark):
    small, capitals, title = characters_that_differ(in_spark(spark, CASED, CHARACTER_ROWS))
    assert small == set(NEW_SMALL_LETTERS)
    assert capitals == set(NEW_CAPITALS)
    assert of_later_scripts(title - {0x19B, 0x264})
    assert len(title) < 600


@given(texts.filter(lambda name: name and "\x00" not in name))
def test_duckdb_finds_a_column_of_any_name(name):
    connection = duckdb_connection()
    quoted = as_sql(Program((Extract(0),)), [name], "duckdb")
    assert connection.execute(f"SELECT {quoted} FROM (SELECT 'x' AS {quoted})").fetchall() == [
        ("x",)
    ]


def test_one_condition_for_all_operators():
    program = Program(
        (
            Extract(0, (Split(", ", 1),), casing="lower"),
            Constant(" \\ it's"),
            Extract(0, (Split(", ", 0),), start=0, length=1),
            Extract(0, (Split("/", -3),)),
        )
    )
    assert as_sql(program, ["a"], "duckdb") == (
        "CASE WHEN contains(\"a\", ', ')\n"
        "  AND length(split_part(\"a\", ', ', 1)) >= 1\n"
        "  AND length(\"a\") - length(replace(\"a\", '/', '')) >= 2\n"
        "THEN lower(split_part(\"a\", ', ', 2)) || ' \\ it''s' || "
        "substring(split_part(\"a\", ', ', 1), 1, 1) || split_part(\"a\", '/', -3) END"
    )
    assert as_sql(Program((Constant("it's \\"),)), ["a"], "spark") == r"'it\'s \\'"
    assert as_sql(Program((Extract(0),)), ["a`b"], "spark") == "`a``b`"


@pytest.mark.parametrize(
    ("split", "duckdb_text", "spark_text"),
    [
        (Split("-", -1, "from"), "split_part(\"a\", '-', -1)", "split_part(`a`, '-', -1)"),
        (Split("-", 0, "to"), "split_part(\"a\", '-', 1)", "split_part(`a`, '-', 1)"),
        (Split("-", 0, "from"), '"a"', "`a`"),
        (
            Split(".", 1, "from"),
            "array_to_string(string_split(\"a\", '.')[2:], '.')",
            r"get(split(`a`, '\\.', 2), 1)",
        ),
    ],
)
def test_several_parts_are_written_shortly(split, duckdb_text, spark_text):
    program = Program((Extract(0, (split,)),))
    assert as_sql(program, ["a"], "duckdb").endswith(f"\nTHEN {duckdb_text} END")
    assert as_sql(program, ["a"], "spark").endswith(f"\nTHEN {spark_text} END")


@pytest.mark.parametrize(
    ("names", "dialect", "message"),
    [
        (["a\x00"], "duckdb", "has a NUL character in its name, which SQL cannot spell"),
        (["a"], "mysql", "dialect is 'mysql'; it must be one of duckdb, spark"),
        ([""], "spark", "reads a column named '', but the name of a column"),
        (["a", "a"], "spark", "must be the only one of its kind"),
    ],
)
def test_what_no_sql_can_say_is_refused(names, dialect, message):
    with pytest.raises(InputError, match=message):
        as_sql(Program((Extract(0),)), names, dialect)


NAMES_IN_PYTHON = ('Na"me\\', "it's\n    return 1 # \u202e")


def function_of(program: Program, names: tuple[str, ...] = NAMES_IN_PYTHON) -> Callable:
    """Run the source in an empty namespace, as a person would who pastes it."""
    namespace: dict = {}
    exec(compile(as_python(program, names), "pasted", "exec"), namespace)
    return namespace["transform"]


@given(programs, rows)
def test_the_function_writes_what_the_program_writes(program, table):
    function = function_of(program)
    for row in table:
        assert function(dict(zip(NAMES_IN_PYTHON, row, strict=True))) == program.of(row)


def test_hard_rows():
    for program in random_programs(300, seed=2):
        function = function_of(program)
        for row in ROWS:
            assert function(dict(zip(NAMES_IN_PYTHON, row, strict=True))) == program.of(row), (
                program
            )


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
