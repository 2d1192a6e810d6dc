"""`pexeso search` and `pexeso explain`: what they print, to the letter."""

import csv
import io
import json

import pytest

from pexeso.semantic import similarity

TABLE = """\
similarity  joinability  matched  table                 column   ahead by     brings
      0.75       75.0 %      3/4  nested/companies.csv  place    column name  name, +2 more
      0.75       75.0 %      3/4  cities.csv            city                  country, people
      0.75       75.0 %      3/4  nested/capitals.tsv   Capital               Seat since
"""

WHY = """\
75.0 % of the values match (3 of 4) within distance 0.35.
Of these values: 33.3 % exact, 66.7 % spelling, 0.0 % similar.
Word contributions: madrid 33.3 %, oslo 33.3 %, rome 33.3 %.

3 matching pairs:
    Oslo      ~  OSLO    0.000  spelling
    rome      ~  ROME    0.000  spelling
     MADRID   ~  MADRID  0.000  exact
"""


def test_a_table_for_people(run, small_index, places):
    result = run("search", small_index, f"{places}:place")
    assert result.stdout == TABLE
    notes, stats = result.stderr.splitlines()
    assert notes == "Of the 5 rows of 'place' these match nothing: 1 empty (they are not counted)."
    assert stats.startswith("3 columns in ")
    assert [part.split()[0] for part in stats.partition("(")[2].split(", ")] == [
        "start", "open", "embed", "map", "block", "verify", "rerank",
    ]  # fmt: skip


def test_csv_has_the_similarity_of_json(run, small_index, places, monkeypatch):
    monkeypatch.setattr(similarity, "MAX_HITS", 2)
    command = ("search", small_index, f"{places}:place")
    rows = list(csv.DictReader(io.StringIO(run(*command, "--csv").stdout)))
    results = json.loads(run(*command, "--json").stdout)["results"]
    measures = ["table", "column", "joinability", "matched", "total", "joinability_of"]
    assert list(rows[0]) == [*measures, "n_copies", "brings", "similarity"]
    assert [list(result)[:7] for result in results] == [[*measures, "similarity"]] * 3
    assert [float(row["similarity"]) for row in rows[:2]] == [
        result["similarity"] for result in results[:2]
    ]
    assert (rows[2]["similarity"], results[2]["similarity"]) == ("", None), "it was not looked at"


def test_csv_of_nothing_found_has_the_same_header(run, small_index, places):
    result = run("search", small_index, f"{places}:place", "--min-joinability", 1, "--csv")
    assert (
        result.stdout
        == "table,column,joinability,matched,total,joinability_of,n_copies,brings,similarity\n"
    )


def test_without_a_column_the_widest_text_column_is_taken_and_named(run, small_index, places):
    result = run("search", small_index, places, "-k", 1)
    assert "No column was named: searching with 'place'." in result.stderr
    assert "nested/companies.csv" in result.stdout


def test_rows_are_counted_where_they_are_asked_for(run, small_index, places):
    result = run("search", small_index, f"{places}:place", "--joinability-of", "rows", "-k", 1)
    assert result.stdout.splitlines()[0].split("  ")[2] == "rows matched"
    assert "60.0 %           3/5  nested/companies.csv" in result.stdout
    assert "1 empty (they count as not matched)" in result.stderr


def test_the_n_best_and_a_threshold_together_both_hold(run, small_index, places):
    result = run("search", small_index, f"{places}:place", "-k", 5, "--min-joinability", 0.76)
    assert result.stdout == ""
    assert (
        "No column matches at least 76.0 % of the 4 values within distance 0.35." in result.stderr
    )


def test_nothing_on_a_terminal_can_be_forged_by_a_value(run, small_index, write):
    path = write("evil.csv", 'place\n"\x1b[31mOslo"\n')
    options = ("-k", 1, "--max-distance", 1, "--explain", "--no-rerank")
    result = run("search", small_index, f"{path}:place", *options)
    assert "\x1b" not in result.stdout
    assert "\\x1b[31mOslo" in result.stdout


def test_why_two_columns_match(run, small_index, places):
    result = run("explain", small_index, f"{places}:place", "nested/capitals.tsv:Capital")
    assert result.stdout.startswith(WHY)
    *_, title, nearest = result.stdout.splitlines()
    assert title == "1 value without a match:"
    assert nearest.startswith("    Xyzzyx  nearest  ")


def test_without_a_lake_column_the_first_found_is_explained(run, fail, small_index, places):
    first = run("explain", small_index, f"{places}:place", "--json")
    searched = json.loads(run("search", small_index, f"{places}:place", "--json").stdout)
    named = "{table}:{column}".format(**searched["results"][0])
    assert first.stdout == run("explain", small_index, f"{places}:place", named, "--json").stdout
    assert f"The lake's column is {named}." in first.stderr
    said = fail(2, "explain", small_index, f"{places}:place,visits")
    assert "has no part for composite keys" in said  # which finds one


def test_two_files_are_compared_without_an_index(run, fail, small_lake, places, tmp_path):
    cities = small_lake / "cities.csv"
    page = tmp_path / "why.html"
    result = run("explain", f"{places}:place", f"{cities}:city", "--json", "--html", page)
    document = json.loads(result.stdout)
    assert (document["table"], document["column"]) == ("cities.csv", "city")
    assert (document["matched"], document["total"]) == (3, 4)
    assert document["pairs"][0] == ["Oslo", "Oslo", 0.0, "exact"]
    assert "Why place joins with cities.csv : city" in page.read_text(encoding="utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["places.csv", "why.html"]
    key = run("explain", f"{cities}:city,country", f"{cities}:city,country", "--json")
    assert json.loads(key.stdout)["table"] == "cities.csv"
    said = fail(1, "explain", f"{places}:place", "nothing.csv:city")
    assert "There is no file 'nothing.csv': without an index, both tables must be files." in said


def test_a_table_without_rows(run, small_index, write):
    path = write("header.csv", "place,visits\n")
    result = run("search", small_index, f"{path}:place")
    assert result.stdout == ""
    assert (
        result.stderr.splitlines()[0]
        == "The query column has no rows: there is nothing to look for."
    )


def test_a_column_without_values(run, small_index, write):
    path = write("blank.csv", "place,visits\n,1\n,2\n")
    said = run("search", small_index, f"{path}:place").stderr
    assert "The query column has no values: there is nothing to look for." in said


def test_a_page_of_the_columns_found(run, fail, small_index, places, tmp_path):
    page = tmp_path / "found.html"
    command = ("search", small_index, f"{places}:place", "--html", page)
    result = run(*command)
    assert result.stdout == TABLE
    assert f"Page for the browser: '{page}' (" in result.stderr
    text = page.read_text(encoding="utf-8")
    assert "Columns that join with place" in text
    assert text.count("<article") == 3
    assert text.count("similarity <b>0.") == 3
    assert "<bdi>Nordlys Energi</bdi>" in text, "a cell beside the key, from the file of the lake"
    assert "<bdi>Oslo</bdi></td><td><bdi>3</bdi>" in text, "and one of the user's file"
    assert f"'{page}' is there already. Replace it by --overwrite" in fail(1, *command)
    run(*command, "--overwrite")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_page_of_every_column_of_a_file(run, small_index, small_lake, tmp_path):
    page = tmp_path / "found.html"
    run("search", small_index, small_lake / "cities.csv", "--all-columns", "-k", 1, "--html", page)
    assert "Columns that join with 2 of your columns" in page.read_text(encoding="utf-8")


def test_a_page_of_an_explanation(run, small_index, places, tmp_path):
    page = tmp_path / "why.html"
    command = ("explain", small_index, f"{places}:place", "nested/capitals.tsv:Capital", "--json")
    assert run(*command, "--html", page).stdout == run(*command).stdout
    text = page.read_text(encoding="utf-8")
    assert "Why place joins with nested/capitals.tsv : Capital" in text
    assert "Xyzzyx" in text


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--overwrite",), 2, "--overwrite is for the file of --html, and none was named."),
        (("--html", ""), 2, "--html needs the name of a file, such as --html report.html."),
        (("--html", "."), 1, "'.' is a folder: give the name of a file."),
        (
            ("--html", "no/where.html"),
            1,
            "'no/where.html' cannot be written: there is no folder 'no'.",
        ),
    ],
)
def test_a_page_that_cannot_be_written_is_refused_before_any_work(fail, options, code, words):
    assert words in fail(code, "search", "no.pexeso", "no.csv:x", *options)
    assert words in fail(code, "explain", "no.pexeso", "no.csv:x", "a.csv:b", *options)


@pytest.mark.parametrize("command", ["search"])
def test_an_empty_query_is_told_as_one(fail, small_index, command):
    assert "A table is named by its path, such as" in fail(1, command, small_index, "")


def test_how_dates_of_either_order_are_read_is_said(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, days in {"a.csv": ["05/01/2024", "06/01/2024"], "b.csv": ["2024-01-05"]}.items():
        (tmp_path / name).write_text("\n".join(["day", *days, ""]))
    run("index", "b.csv", "ix", "--column-rule", "min_rows=1", "--column-rule", "min_distinct=1")
    note = "ates may have the day or the month first, and are read with the day first."
    for command in (
        "search ix a.csv:day",
        "explain a.csv:day b.csv:day",
        "join a.csv:day b.csv:day",
    ):
        assert note in run(*command.split()).stderr
