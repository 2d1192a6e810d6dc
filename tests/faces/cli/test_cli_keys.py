"""`pexeso keys`: what people see, and what programs do."""

import json

import pytest

GDP = "country,year,gdp\nfr,2001,1.5\nfr,2002,2.5\nit,2001,3.5\nit,2002,4.5\nit,2003,1.5\n"


@pytest.fixture
def gdp(tmp_path):
    path = tmp_path / "gdp.csv"
    path.write_text(GDP, encoding="utf-8")
    return path


def test_keys_are_listed_with_what_speaks_for_them(run, gdp):
    done = run("keys", gdp)
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "key           kind     unique  missing  why",
        "country,year  unique  100.0 %        0  without country 60.0 %, such as 2001 in 2 rows",
        "country,gdp   unique  100.0 %        0  gdp has decimal or formatted numbers; without "
        "country 80.0 %, such as 1.5 in 2 rows",
        "year,gdp      unique  100.0 %        0  gdp has decimal or formatted numbers; without "
        "year 80.0 %, such as 1.5 in 2 rows",
    ]
    assert done.stderr == "5 rows\n"


def test_rows_that_are_left_out_are_counted(run, gdp):
    gdp.write_text(f"{GDP}it,2003,1.5\n,,\nfr,2002,2.6\n", encoding="utf-8")
    done = run("keys", gdp, "-k", 1, "--nearly", 0.8)
    assert done.stdout.splitlines()[1:] == [
        "country,year  nearly  83.3 %        0  1 row repeated, such as fr, 2002 in 2 rows; "
        "without country 50.0 %, such as 2002 in 3 rows"
    ]
    assert done.stderr == ("8 rows; left out: 1 empty, 1 equal to an earlier one in all columns\n")


def test_no_key_is_said_with_the_reason(run, gdp):
    done = run("keys", gdp, "--max-columns", 1)
    assert done.exit_code == 0
    assert done.stdout == ("No key: no combination of 1 column tells 98.0 % of the rows apart.\n")
    gdp.write_text("country,year\n", encoding="utf-8")
    assert run("keys", gdp).stdout == "No key: the table has no rows.\n"


def test_the_json_document(run, gdp):
    document = json.loads(run("keys", gdp, "--json", "-k", 1).stdout)
    (key,) = document.pop("keys")
    assert document == {
        "table": str(gdp),
        "rows": 5,
        "empty_rows": 0,
        "duplicate_rows": 0,
        "reason": None,
        "notes": [],
    }
    assert key == {
        "key": "country,year",
        "columns": ["country", "year"],
        "distinct": 5,
        "repeated": 0,
        "missing": 0,
        "uniqueness": 1.0,
        "example": [],
        "example_rows": 0,
        "kind": "unique",
        "positions": [0, 1],
        "rarely_keys": {},
        "smaller": [
            {
                "columns": ["country"],
                "distinct": 2,
                "repeated": 3,
                "missing": 0,
                "uniqueness": 0.4,
                "example": ["it"],
                "example_rows": 3,
            },
            {
                "columns": ["year"],
                "distinct": 3,
                "repeated": 2,
                "missing": 0,
                "uniqueness": 0.6,
                "example": ["2001"],
                "example_rows": 2,
            },
        ],
    }


def test_what_was_not_looked_at_is_noted(run, gdp, monkeypatch):
    monkeypatch.setattr("pexeso.composite.unique_columns.MAX_WIDTH", 2)
    assert run("keys", gdp).stderr.splitlines()[1] == (
        "Note: Of combinations of 2 columns those with the last 1 of 3 columns, in the order of "
        "preference, were not looked at."
    )


def test_what_cannot_be_read_or_is_out_of_its_range(fail, gdp, tmp_path):
    assert "--max-columns must be a whole number in [1, 5]. Got 6 instead." in fail(
        2, "keys", gdp, "--max-columns", 6
    )
    assert "--nearly must be a number in (0, 1]. Got 2.0 instead." in fail(
        2, "keys", gdp, "--nearly", 2
    )
    assert fail(2, "keys", gdp, "--max-columns", "two")
    photo = tmp_path / "photo.csv"
    photo.write_bytes(bytes(range(256)) * 9)
    assert "is binary" in fail(1, "keys", photo)
    assert "nothing.csv" in fail(1, "keys", tmp_path / "nothing.csv")
