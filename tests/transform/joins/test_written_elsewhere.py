"""What a join gives as SQL and Python writes, for all rows, what its programs write."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

import pexeso
from pexeso.transform.programs.program import Constant, Extract, Program, Split
from pexeso.transform.programs.renderings import first_as_python, first_as_sql
from tests.transform.joins.small_tables import (
    APPROVAL,
    EMAILS,
    MAILS,
    MIXED,
    MIXED_MAILS,
    PEOPLE,
    PRESIDENTS,
    TEACHERS,
    rows_of,
)
from tests.transform.random_programs import ROWS, random_programs

CASES = {
    "two columns": (PEOPLE, MAILS),
    "presidents": (PRESIDENTS, APPROVAL),
    "teachers": (TEACHERS, EMAILS),
    "several programs": (MIXED, MIXED_MAILS),
}
NAMES = ('Na"me`1`', "it's ${env:HOME} \\ -- ;")
ODD = Program((Constant("def transform(row): # it's\n"), Extract(0, (Split("-", 1),))))


def written(programs, row):
    texts = (program.of(row) for program in programs)
    return next((text for text in texts if text is not None), None)


def in_python(source, rows):
    namespace = {}
    exec(source, namespace)
    return [namespace["transform"](row) for row in rows]


def in_duckdb(expression, table):
    connection = duckdb.connect()
    connection.register("source", table)
    return [text for (text,) in connection.sql(f"SELECT {expression} FROM source").fetchall()]


def in_spark(spark, expression, table):
    spark.createDataFrame(table).coalesce(1).createOrReplaceTempView("first_of_several")
    made = spark.sql(f"SELECT {expression} AS made FROM first_of_several").toArrow()
    return made["made"].to_pylist()


def of_join(case):
    """Return a join, the table that it reads, and what its programs write."""
    source, target = CASES[case]
    joined = pexeso.learn_transformation(source, target)
    table = source if joined.forward else target
    names = joined.reading.texts.names
    rows = rows_of(table)
    programs = joined.rule.programs
    return joined, table, [written(programs, [row[name] for name in names]) for row in rows]


@pytest.mark.parametrize("case", CASES)
def test_python_and_duckdb_write_what_a_join_joins_by(case):
    joined, table, expected = of_join(case)
    assert in_python(joined.python, rows_of(table)) == expected
    assert in_duckdb(joined.sql(), pa.table(table)) == expected
    joined_by = {
        row: key
        for row, (program, key) in enumerate(zip(joined.program_numbers, expected, strict=True))
        if program == 1
    }
    keys = {step.row: step.key for step in joined.steps(100) if step.program == 1}
    assert joined_by == keys
    assert joined_by


def test_spark_writes_what_a_join_joins_by(spark):
    for case in CASES:
        joined, table, expected = of_join(case)
        assert in_spark(spark, joined.sql("spark"), pa.table(table)) == expected


def several(seed):
    drawn = random_programs(60, seed)
    return [[ODD, *drawn[start : start + 3]] for start in range(0, 60, 3)] + [[ODD], [ODD, ODD]]


TABLE = pa.table(
    {name: pa.array([row[at] for row in ROWS], pa.string()) for at, name in enumerate(NAMES)}
)


def test_python_and_duckdb_take_the_first_program_that_applies():
    n_null = 0
    for programs in several(5):
        expected = [written(programs, row) for row in ROWS]
        rows = [dict(zip(NAMES, row, strict=True)) for row in ROWS]
        assert in_python(first_as_python(programs, NAMES), rows) == expected
        assert in_duckdb(first_as_sql(programs, NAMES, "duckdb"), TABLE) == expected
        n_null += expected.count(None)
    assert n_null > 100


def test_spark_takes_the_first_program_that_applies(spark):
    for programs in several(6)[::4]:
        expected = [written(programs, row) for row in ROWS]
        assert in_spark(spark, first_as_sql(programs, NAMES, "spark"), TABLE) == expected
