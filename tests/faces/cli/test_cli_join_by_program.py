"""`pexeso join --transform`: your table with one of the lake, by a learned or a saved program."""

from __future__ import annotations

import csv
import io
import json

import pyarrow.parquet as pq
import pytest

from pexeso.faces.service.verbs import Service

CITIES = ["OSLO (NO)", "ROME (IT)", "MADRID (ES)", "VIENNA (AT)", "LISBON (PT)", "DUBLIN (IE)"]
COUNTRIES = {"Oslo": "Norway", "Rome": "Italy", "Madrid": "Spain", "Vienna": "Austria"}
COUNTRIES |= {"Lisbon": "Portugal", "Dublin": "Ireland"}


@pytest.fixture
def visits(tmp_path):
    path = tmp_path / "visits.csv"
    rows = [f"{number},{city}" for number, city in enumerate([*CITIES, "OSLO (NO)", "ATLANTIS"])]
    path.write_text("n,where\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def records(text):
    return list(csv.DictReader(io.StringIO(text)))


def expected(where):
    city = where.partition(" ")[0].title()
    return COUNTRIES.get(city, "") and {"match_value": city, "country": COUNTRIES[city]}


def test_rows_are_joined_by_a_learned_program(run, small_index, visits):
    result = run("join", small_index, f"{visits}:where", "cities.csv:city", "--transform")
    rows = records(result.stdout)
    assert [row["n"] for row in rows] == [str(n) for n in range(8)]
    for row in rows:
        match = expected(row["where"])
        assert row["match_value"] == (match["match_value"] if match else "")
        assert row["country"] == (match["country"] if match else "")
        assert row["match_distance"] == ("0.0" if match else "")
    program, summary = result.stderr.splitlines()[:2]
    assert program.startswith('Program 1: part 1 of "where" split at ')
    assert summary == (
        "Joined with cities.csv:city: 85.7 % of the keys match (6 of 7), 7 of 8 rows joined; 8 rows"
    )


def test_the_best_table_is_taken_where_none_is_named(run, small_index, visits):
    answer = run("search", small_index, f"{visits}:where", "--method", "transform", "--json")
    best = json.loads(answer.stdout)["results"][0]
    named = f"{best['table']}:{best['column']}"
    expected = run("join", small_index, f"{visits}:where", named, "--transform")
    result = run("join", small_index, f"{visits}:where", "--transform")
    assert result.stdout == expected.stdout
    assert f"Joined with {named}: " in result.stderr


def test_nothing_is_joined_where_no_column_is_found(fail, small_index, write):
    path = write("odd.csv", "code\n" + "\n".join(f"zq{n}wx" for n in range(30)) + "\n")
    said = fail(2, "join", small_index, f"{path}:code", "--transform")
    assert said.splitlines()[-1] == (
        "Error: No column of the lake joins 'code' by a program. Name TABLE or TABLE:COLUMN to "
        "learn one from two tables alone."
    )


def test_the_options_of_a_join_hold(run, small_index, visits, tmp_path):
    output = tmp_path / "joined.parquet"
    run(
        "join", small_index, f"{visits}:where", "cities.csv:city", "--transform",
        "--type", "inner", "--suffix", "_lake", "--provenance", "table,value",
        "--aggregate", "people=mean", "-o", output, "--conflicts", tmp_path / "conflicts.csv",
    )  # fmt: skip
    table = pq.read_table(output)
    assert table.column_names == [
        "n", "where", "match_table", "match_value", "city", "country", "people",
    ]  # fmt: skip
    assert table["where"].to_pylist() == [*CITIES, "OSLO (NO)"]
    assert table["people"].to_pylist()[0] == 717710.0
    assert set(table["match_table"].to_pylist()) == {"cities.csv"}
    assert (tmp_path / "conflicts.csv").read_text().startswith("kind,query_value,lake_value")


def test_a_saved_program_joins_as_the_learned_one(run, small_index, visits, tmp_path):
    rule = tmp_path / "rule.json"
    target = f"{small_index}:cities.csv:city"
    run("transform", f"{visits}:where", target, "--save", rule)
    learned = run("join", small_index, visits, "cities.csv:city", "--transform")
    saved = run("join", small_index, visits, "cities.csv:city", "--transform", "--program", rule)
    assert saved.stdout == learned.stdout


def test_without_a_program_equal_values_are_joined_and_you_are_told(run, small_index, write):
    path = write("odd.csv", "where\nOslo\nqqqq\nxxxx\n")
    result = run("join", small_index, f"{path}:where", "cities.csv:city", "--transform")
    assert [row["country"] for row in records(result.stdout)] == ["Norway", "", ""]
    assert result.stderr.startswith("No program: 'where' of the first table and 'city' of the s")
    assert "33.3 % of the keys match (1 of 3); 3 rows" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--program", "rule.json"], 2, "--program is for a table of the lake that you name: "),
        (["cities.csv:city", "--values", "all"], 2, "A join by a program has no use for --values"),
        (
            ["cities.csv:city", "--program", "none.json"],
            2,
            "The program 'none.json' cannot be read",
        ),
    ],
)
def test_misuse_is_told(fail, small_index, visits, arguments, code, words):
    said = fail(code, "join", small_index, f"{visits}:where", *arguments, "--transform")
    assert words in said
    assert said.splitlines()[-1].startswith("Error: ")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("broken.parquet", "The table 'broken.parquet' is not in the index: "),
        ("notes.txt:a", "is not in the index: notes.txt is text without columns, not delimited"),
    ],
)
def test_tables_that_are_not_indexed(fail, small_index, visits, table, words):
    assert words in fail(2, "join", small_index, visits, table, "--transform")


def test_a_service_answers_with_the_programs(small_index, visits):
    answer = Service().answer(
        {
            "verb": "join",
            "index": str(small_index),
            "query": [*CITIES, "ATLANTIS"],
            "lake_column": "cities.csv:city",
            "transform": True,
        }
    )
    document = json.loads(json.dumps(answer))
    assert document["programs"] == ['part 1 of "values" split at " ", with a capital for each word']
    assert document["tried"] is None
    assert document["query"] == {"file": None, "columns": ["values"], "rows": 7}
    assert (document["matched_keys"], document["total_keys"]) == (6, 7)
    assert [row[0] for row in document["rows"]] == [*CITIES, "ATLANTIS"]
