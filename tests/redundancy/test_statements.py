"""Statements of files are data: what is not in the grammar is refused by its place."""

import random
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from drawn_statements import ALLOWED, REFUSED

from pexeso.errors import InputError
from pexeso.redundancy.rebuilds import Statement, read_statements, verify_statements
from pexeso.redundancy.statements import MAX_BYTES, MAX_TOKENS, checked_statement
from pexeso.redundancy.transformations import literal


@pytest.mark.parametrize("sql", ALLOWED)
def test_a_query_is_written_from_its_tree(sql):
    written = checked_statement(sql, "t")
    assert written == ALLOWED[sql]
    assert checked_statement(written, "t") == written


@pytest.mark.parametrize(("sql", "line", "column"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_is_none_of_the_grammar_is_refused_by_its_place(sql, line, column):
    with pytest.raises(InputError, match=rf"At line {line}, column {column or '[0-9]+'} of") as why:
        checked_statement(sql, "t")
    assert "Allowed are SELECT" in str(why.value)
    assert len(str(why.value)) < 500


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("", "is empty"),
        (" -- nothing", "is empty"),
        ("SELECT 'a", "no end"),
        ("SELECT `a", "no end"),
        ("SELECT '\ud800'", "half of one"),
        (f"SELECT '{'x' * MAX_BYTES}'", "1,048,576 bytes"),
        ("SELECT 1" + ",1" * MAX_TOKENS, "100,000 words"),
    ],
    ids=lambda value: value[:20].encode("ascii", "replace").decode(),
)
def test_statements_are_bounded_before_they_are_parsed(sql, said):
    started = time.perf_counter()
    with pytest.raises(InputError, match=said):
        checked_statement(sql, "t")
    assert time.perf_counter() - started < 20


def test_long_chains_are_no_depth():
    many = " AND ".join(f"a{n} = {n}" for n in range(3000))
    assert checked_statement(f"SELECT a FROM t WHERE {many}", "t").count(" AND ") == 2999


def test_names_and_texts_are_quoted_whatever_is_in_them():
    name = "x`; DROP ' \" -- /*+ \n${env:HOME}"
    sql = f"SELECT `{name.replace('`', '``')}` FROM `{name.replace('`', '``')}`"
    assert checked_statement(sql, name) == sql
    texts = ["\x0012", "\\n", "'\"`", "\u2028é\U0001f600", "\r\n\t", "%_", "\\u0041", "${env:HOME}"]
    texts += ["".join(random.Random(n).choices("\\'\"\n\r\t\0u01xZ%_`", k=12)) for n in range(300)]
    for text in texts:
        written = literal(text, pa.string())
        assert checked_statement(f"SELECT {written} FROM t", "t") == f"SELECT {written} FROM `t`"


def test_a_file_of_statements_is_refused_as_it_is_read(tmp_path):
    path = tmp_path / "known.toml"
    path.write_text(
        "[[rebuild]]\ntable = 'child'\nparent = 't'\n"
        "sql = '''\nSELECT a,\n TRANSFORM(a) USING \"id\" AS (a string) FROM t'''\n",
        encoding="utf-8",
    )
    with pytest.raises(InputError) as why:
        read_statements(path)
    assert "statement for 'child' that cannot be run. At line 2, column 2" in str(why.value)
    assert "may not name TRANSFORM" in str(why.value)
    path.write_text("[[rebuild]]\ntable = 'c'\nparent = 't'\nsql = 'select A from t -- x'\n")
    assert read_statements(path) == {("t", "c"): "SELECT `A` FROM `t`"}
    path.write_text(f"a = {'[' * 5000}", encoding="utf-8")
    with pytest.raises(InputError, match="must be TOML"):
        read_statements(path)


def test_texts_with_the_signs_of_variables_are_texts(spark, tmp_path):
    whole = pa.table({"user": ["a", "${env:HOME}", "${spark.app.name}"], "`${x}": [1, 2, 3]})
    pq.write_table(whole, tmp_path / "a.parquet")
    pq.write_table(whole.slice(1, 1), tmp_path / "b.parquet")
    sql = "SELECT user, ```${x}` FROM `a.parquet` WHERE user = '${env:HOME}'"
    statement = Statement("b.parquet", "a.parquet", sql)
    assert verify_statements(spark, tmp_path, [statement]) == {}
