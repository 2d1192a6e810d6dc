"""`pexeso transform`: what it prints and writes, and what it says where it cannot."""

from __future__ import annotations

import csv
import inspect
import json

import pytest

import pexeso
from pexeso.faces.service.schema import defaults_of
from pexeso.faces.service.transform import TransformRequest
from tests.transform.joins.small_tables import MAILS, NAMES, PEOPLE


@pytest.fixture
def files(tmp_path):
    """Return a function that writes a table as CSV and returns its path."""

    def write(name, table):
        path = tmp_path / name
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(table)
            writer.writerows(zip(*table.values(), strict=True))
        return path

    return write


@pytest.fixture
def people(files):
    return files("people.csv", PEOPLE)


@pytest.fixture
def mails(files):
    return files("mails.csv", MAILS)


def test_rows_and_keys_are_told_apart_where_no_program_joins(run, files):
    mine = files("mine.csv", {"team": ["Buffalo Bills", "Chicago Bears", "Oakland"]})
    theirs = files("theirs.csv", {"team": ["Buffalo Bill", "Chicago Bear", "Dallas Cowboys"]})
    rows, keys = run("transform", f"{mine}:team", f"{theirs}:team").stdout.splitlines()[1:3]
    assert rows == "Rows of mine.csv joined: 2 of 3 (2 nearly equal)"
    assert keys.startswith("Keys joined by equal values or a program: 0.0 %")


def test_saved_programs_join_new_rows(run, files, people, mails, tmp_path):
    rule, output = tmp_path / "rule.json", tmp_path / "joined.csv"
    learned = run("transform", people, mails, "--json", "--save", rule)
    assert learned.stderr == f"Program: '{rule}'\n"
    again = run("transform", people, mails, "--json", "--program", rule)
    assert again.stdout == learned.stdout
    new = files("new.csv", {"last": ["Meier", "Neu"], "id": ["7", "8"], "first": ["Anna", "Zoe"]})
    result = run("transform", new, mails, "--program", rule, "-o", output)
    assert "Rows of new.csv joined: 1 of 2 (1 by program)\n" in result.stdout
    assert output.read_text() == (
        "last,id,first,room,mail,match_kind\nMeier,7,Anna,0,a.meier@firm.de,program\n"
        "Neu,8,Zoe,,,\n".replace(
            ",0,", f",{MAILS['room'][MAILS['mail'].index('a.meier@firm.de')]},"
        )
    )


def test_a_table_of_an_index(run, small_index, files):
    cities = {"who": ["OSLO (NO)", "ROME (IT)", "MADRID (ES)", "VIENNA (AT)", "LISBON (PT)"]}
    source = files("cities.csv", cities)
    document = json.loads(
        run("transform", source, f"{small_index}:cities.csv:city", "--json").stdout
    )
    assert document["pairs"] == [
        [text, text.split()[0].title(), "program"] for text in cities["who"]
    ]


def test_repeated_keys_are_told_and_refused(run, fail, files, mails, tmp_path):
    twice = files("twice.csv", {"name": NAMES["name"] * 2})
    mails = files("mails2.csv", {"mail": MAILS["mail"] * 2})
    result = run("transform", twice, mails)
    assert (
        "Keys joined by equal values or a program: 100.0 %; N:M; some keys have several rows in "
        "both tables, which -o refuses\n" in result.stdout
    )
    assert json.loads(run("transform", twice, mails, "--json").stdout)["cardinality"] == "N:M"
    output = tmp_path / "joined.csv"
    others = tmp_path / "rule.json", tmp_path / "page.html"
    said = fail(
        2, "transform", twice, mails, "-o", output, "--save", others[0], "--html", others[1]
    )
    assert said.startswith("Error: Keys have several rows in both tables (N:M), such as '")
    assert "pass many_to_many (--many-to-many)" in said
    assert not any(path.exists() for path in (output, *others))
    run("transform", twice, mails, "-o", output, "--many-to-many")
    assert len(output.read_text().splitlines()) == 1 + 12 * 2 * 2
    same = run("transform", twice, twice)
    assert "program: 100.0 %; N:M" in same.stdout
    assert "No program: all rows are joined by equal values" in same.stdout


def test_defaults_are_those_of_python():
    python = inspect.signature(pexeso.learn_transformation).parameters
    for name in ("program", "fuzzy", "max_programs", "seed"):
        assert defaults_of(TransformRequest)[name] == python[name].default


def test_nothing_is_replaced_unasked(run, fail, people, mails, tmp_path):
    rule, output = tmp_path / "rule.json", tmp_path / "joined.csv"
    for option, path in (("--save", rule), ("-o", output)):
        path.write_text("mine")
        assert "is there already" in fail(1, "transform", people, mails, option, path)
        assert path.read_text() == "mine"
        run("transform", people, mails, option, path, "--overwrite")
        assert path.read_text() != "mine"


def test_a_page_is_written_and_not_replaced_unasked(run, fail, people, mails, tmp_path):
    page = tmp_path / "page.html"
    done = run("transform", people, mails, "--html", page)
    assert done.stderr.startswith(f"Page for the browser: '{page}' (")
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "<title>first, last of people.csv joined with mail of mails.csv</title>" in text
    assert "is there already" in fail(1, "transform", people, mails, "--html", page)
    assert page.read_text(encoding="utf-8") == text


def test_each_output_has_a_file_of_its_own(fail, people, mails, tmp_path):
    for options in (("-o", "--html"), ("-o", "--save"), ("--html", "--save")):
        given = [argument for option in options for argument in (option, tmp_path / "x.csv")]
        said = fail(2, "transform", people, mails, *given)
        assert said == ("Error: OUT, --html and --save name the same file. Give each its own.\n")


def test_formulas_of_spreadsheets_can_be_escaped(run, files, tmp_path):
    names = files("names.csv", {"name": NAMES["name"], "note": ["=1+1"] * 12})
    output = tmp_path / "joined.csv"
    mails = files("mails.csv", {"mail": MAILS["mail"]})
    run("transform", f"{names}:name", mails, "-o", output, "--escape-formulas")
    assert output.read_text().splitlines()[1].startswith("Anna Meier,'=1+1,")


def test_control_characters_are_shown_escaped(run, files):
    names = files("names.csv", {"a\x1b[31m": [f"{name}\x1b[31m" for name in NAMES["name"]]})
    mails = files("mails.csv", {"mail": [f"{mail}\u202e" for mail in MAILS["mail"]]})
    result = run("transform", names, mails)
    assert not set(result.stdout) & {"\x1b", "\u202e"}


@pytest.mark.parametrize("option", ["-o", "--save"])
def test_outputs_that_cannot_be_written_are_refused_before_any_work(
    run, fail, people, mails, tmp_path, option, monkeypatch
):
    monkeypatch.setattr(
        "pexeso.transform.joins.learned.learn_transformation",
        lambda *_, **__: pytest.fail("learned"),
    )
    path = tmp_path / "none" / "joined.csv"
    said = fail(1, "transform", people, mails, option, path)
    assert said == f"Error: '{path}' cannot be written: there is no folder '{path.parent}'.\n"
    if option == "-o":
        said = fail(2, "transform", people, mails, "-o", "joined.txt")
        assert "OUT must end in .csv, .parquet, .arrow, .feather or .xlsx" in said
