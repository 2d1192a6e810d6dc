"""Tests of the page of a join by programs: its texts, its bounds, and that cells are only texts."""

import random

import pytest
from hand_made import HOSTILE, require_only_texts
from test_redundancy_page import Reader

import pexeso
from pexeso.results.pages.page import MAX_CODE, transform_page
from pexeso.transform.joins.details import MAX_LISTED, MAX_STEPS, page_report
from tests.transform.joins.small_tables import (
    EMAILS,
    MAILS,
    MIXED,
    MIXED_MAILS,
    NAMES,
    PEOPLE,
    TEACHERS,
)

learn = pexeso.learn_transformation


@pytest.fixture(scope="module")
def mixed():
    odd = ["Known, Nobody", "cher", "Anna Meyer", None]
    return learn({"who": [*MIXED["who"], *odd]}, MIXED_MAILS)


def test_a_page_says_what_joins_which_rows(mixed):
    text = Reader(mixed.to_html()).text
    assert "who joined with mail" in text
    assert "2 programs write the key from who ." in text
    assert "30 rows" in text
    assert "1:1 : each key has one row in either table" in text
    assert "96.3 % of the keys that could be joined are joined by equality or a program" in text
    for said in ("equal 6.7 % (2 rows)", "by a program 80.0 % (24 rows)"):
        assert said in text
    assert "nearly equal 3.3 % (1 row) not joined 10.0 % (3 rows)" in text
    assert "Known, Nobody known,.nobody@firm.de nobody@firm.de 0." in text
    assert "cher cher@firm.de is no key" in text
    assert "empty nothing: no program applies" in text
    assert "Keys without a row" not in text


def test_values_that_are_nearly_equal_where_there_is_no_program_are_said_to_have_none():
    names = [*"ABCDEFGH", "Springfield North", "Kingston upon Hull"]
    near = [*"ABCDEFGH", "Springfeld North", "Kingston upon Hul"]
    joined = learn({"city": names}, {"name": near}, columns="city", target_columns="name")
    report = page_report(joined)
    assert not report["programs"]
    assert [row["written"] for row in report["fuzzy"]["rows"]] == [None, None]
    text = Reader(joined.to_html()).text
    assert "Springfield North nothing: no program applies Springfeld North" in text


def test_each_program_shows_its_own_steps(mixed):
    report = page_report(mixed)
    assert [program["number"] for program in report["programs"]] == [1, 2]
    assert [program["n_rows"] for program in report["programs"]] == [12, 12]
    text = Reader(mixed.to_html()).text
    for program in report["programs"]:
        assert len(program["rows"]) == MAX_STEPS
        for row in program["rows"]:
            [cell] = row["cells"]
            assert cell == MIXED["who"][row["number"] - 1]
            assert "".join(row["pieces"]) == row["key"]
            assert (cell, row["key"], "program") in mixed.pairs
            said = [str(row["number"]), cell, *row["pieces"], row["key"]]
            assert " ".join(" ".join(said).split()) in text
    assert text.index("Program 1") < text.index("anna.meier@firm.de")
    assert text.index("Program 2") < text.index("lena . meier @firm.de lena.meier@firm.de")


def test_the_code_is_there_as_it_is_written(mixed):
    reader = Reader(mixed.to_html())
    for code in (mixed.sql(), mixed.sql("spark"), mixed.python):
        assert code in reader.texts
    assert "Of several programs these take the first that applies to a row" in reader.text


def test_a_key_of_two_columns_has_a_column_for_each():
    text = Reader(learn(PEOPLE, MAILS).to_html()).text
    assert "first , last are joined with mail ." in text
    assert "1 Anna Meier a . meier @firm.de a.meier@firm.de" in text


def test_files_are_named_without_their_folders(tmp_path, write):
    path = write("teachers.csv", "Name\n" + "\n".join(TEACHERS["Name"]) + "\n")
    text = Reader(learn(f"{path}:Name", EMAILS).to_html()).text
    assert "Name of teachers.csv joined with Email" in text
    assert str(tmp_path) not in text


def test_without_a_program_the_page_says_why():
    joined = learn({"k": ["alpha", "beta", "x"]}, {"k": ["beta", "y", "z"]})
    text = Reader(joined.to_html()).text
    assert f"No program joins them: {joined.tried}." in text
    assert "k is joined with k ." in text
    assert "Program 1" not in text
    assert "SQL" not in text
    assert "2 values of k that no row is joined with k y z" in text


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ((2, 1), "N:1 : keys have several rows in the first table"),
        ((1, 2), "1:N : keys have several rows in the second table"),
        ((2, 2), "N:M : keys have several rows in the first table and in the second"),
    ],
)
def test_repeated_keys_are_told(times, said):
    tables = NAMES["name"] * times[0], MAILS["mail"] * times[1]
    joined = learn({"name": tables[0]}, {"mail": tables[1]})
    assert said in Reader(joined.to_html()).text


def test_lists_are_bounded_and_say_what_is_left_out():
    drawn = random.Random(2)
    words = ["".join(drawn.choices("abcdefghijklmnop", k=7)) for _ in range(700)]
    n_joined, n_lost = 60, MAX_LISTED + 50
    names = [f"{words[at]} {words[at + 1]}" for at in range(0, 2 * n_joined, 2)]
    mails = [f"{name.split()[1]}@x.org" for name in names]
    lost, unused = words[200 : 200 + n_lost], words[400 : 400 + n_lost]
    joined = learn({"name": names + lost}, {"mail": mails + unused}, fuzzy=False)
    assert joined.n_rows["program"] == n_joined
    report, text = page_report(joined), Reader(joined.to_html()).text
    for kind, cells, noun in (("unjoined", lost, "row"), ("unused", unused, "key")):
        assert report[kind]["total"] == n_lost
        assert len(report[kind]["rows"]) == MAX_LISTED
        assert cells[MAX_LISTED - 1] in text
        assert cells[MAX_LISTED] not in text
        assert f"50 more {noun}s of {n_lost} not listed here." in text


def hostile_tables():
    names = [f"{HOSTILE}{first} {HOSTILE}" for first in PEOPLE["first"]]
    keys = [f"{first}|{HOSTILE}" for first in PEOPLE["first"]]
    return {HOSTILE: [*names, f"{HOSTILE}lost"]}, {f"{HOSTILE}key": [*keys, f"{HOSTILE}unused"]}


def test_cells_and_names_are_only_texts():
    joined = learn(*hostile_tables(), fuzzy=False)
    assert joined.programs
    require_only_texts(joined.to_html(), joined._repr_html_())


def test_control_characters_and_long_cells_are_shown_in_part():
    source = {"name": [f"{name}\x07" for name in NAMES["name"]] + ["x" * 100_000, "\u202eabc"]}
    page = learn(source, MAILS).to_html()
    assert len(page) < 60_000
    assert "… (100,000 chars)" in page
    assert not set(page) & {"\x07", "\u202e"}


def test_code_that_is_too_long_is_left_out(mixed):
    report = {**page_report(mixed), "sql": "x" * (MAX_CODE + 1)}
    text = Reader(transform_page(report)).text
    assert "50,001 characters are too many to be shown; --json has them." in text


def test_a_page_can_go_to_a_stream(mixed, tmp_path):
    with (tmp_path / "page.html").open("w", encoding="utf-8") as stream:
        assert mixed.to_html(stream) is None
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == mixed.to_html()


def test_notebooks_show_programs_and_pairs(mixed):
    text = Reader(mixed._repr_html_()).text
    assert text.startswith("2 equal, 24 by a program, 1 nearly equal, 3 not joined; 1:1")
    assert f"Program 2: {mixed.programs[1]}" in text
    assert "27 pairs, the first 20" in text
    assert "Anna Meier anna.meier@firm.de program" in text
