"""`pexeso acquire`: what it prints and writes, and what it says where it cannot."""

from __future__ import annotations

import inspect
import json
import re

import pandas as pd
import pytest

from pexeso.acquisition.searches import AcquisitionSearches
from pexeso.faces.service.acquisition import AcquireRequest
from pexeso.faces.service.schema import defaults_of
from tests.acquisition.small_market import LAKE, PEOPLE, ZIPS, small_index


def opened_as(monkeypatch, index):
    monkeypatch.setattr("pexeso.semantic.open_index.open_without_models", lambda path: index)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return small_index(tmp_path_factory.mktemp("market"))


@pytest.fixture
def market(monkeypatch, index):
    """Let every index be that of the small market."""
    opened_as(monkeypatch, index)


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    pd.DataFrame(PEOPLE).to_csv(path, index=False)
    return path


@pytest.fixture
def prices(tmp_path):
    path = tmp_path / "prices.csv"
    lines = [f"{name},{column},2" for name, columns in LAKE.items() for column in columns]
    path.write_text("\n".join(["table,column,price", *lines]) + "\n")
    return path


@pytest.fixture
def acquire(run, market, people):
    """Return a function that runs the command for the column sick of people.csv."""

    def invoke(*options):
        return run("acquire", "lake.pexeso", "--have", f"{people}:sick", *options)

    return invoke


@pytest.fixture
def refused(fail, market, people):
    def invoke(code, *options):
        return fail(code, "acquire", "lake.pexeso", "--have", f"{people}:sick", *options)

    return invoke


def test_plans_are_told_in_words(acquire, prices):
    result = acquire("--want", "states.csv:smog", "--budget", 10, "--prices", prices)
    assert result.stdout == (
        "How states.csv:smog can explain most of sick of people.csv:\n"
        "\n"
        "Plan 1: explains 100.0 % of sick (0.971 of 0.971 bits), price 8, quality 100.0 %, proved "
        "best\n"
        "  get   states.csv:smog\n"
        "  join  people.csv:zip = zips.csv:zip; zips.csv:state = states.csv:state "
        "(informativeness 0.000, 50 rows)\n"
        '  SQL   SELECT "state", "zip" FROM "zips.csv";  -- price 4\n'
        '        SELECT "smog", "state" FROM "states.csv";  -- price 4\n'
        "  note  In zips.csv:state = states.csv:state keys repeat in both tables (up to 2 and 2 "
        "rows), so that rows multiply.\n"
        "\n"
        "explains: how much less is unknown of your columns in the joined rows, once the columns"
        " to "
        "get are known; 0 % is nothing, 100 % all.\n"
        "bits: what is unknown; 1 bit is a question answered by yes or no.\n"
        "informativeness: 0 for a join in which all keys find a partner, up to 1 if few do; the "
        "sum over the joins.\n"
    )
    searched = (
        r"Searched: \d plans? formed and 1 measured, of 4 tables with 4 joins, in \d+\.\d s\n"
    )
    assert re.fullmatch(searched, result.stderr)


def test_a_budget_that_is_too_small_says_the_least_that_would_do(acquire, prices):
    options = ("--want", "smog_level", "--prices", prices, "--budget", 3.5)
    result = acquire(*options)
    reason = "No plan keeps the bounds: the budget of 3.5 is too small: the least that a plan "
    reason += "costs is 4."
    assert result.stdout == (
        f"{reason}\nThe least price of a plan that keeps all other bounds: 4\n"
    )
    document = json.loads(acquire(*options, "--json").stdout)
    assert document["plans"] == []
    assert document["best_seen"] == {"price": 4.0}
    assert document["reason"] == reason


def test_notes_stand_at_the_end_and_in_the_machine_form(acquire):
    note = (
        "Correlation, quality and rows are those of samples, and correlation comes out too high; "
        "the 95 % intervals are those of all rows."
    )
    options = ("--want", "smog_level", "--sample-rate", "0.5")
    assert acquire(*options).stdout.endswith(f"\nNote: {note}\n")
    nothing = acquire("--want", "alone.csv:moon", *options[2:]).stdout
    assert f"\nNote: {note}\n" in nothing
    assert json.loads(acquire(*options, "--json").stdout)["stats"]["notes"] == [note]


def test_exclusions_come_in_by_options(acquire):
    text = acquire(
        "--want", "smog_level", "--exclude", "people.csv,direct.csv",
        "--exclude", "states.csv", "--exclude", "alone.csv",
    ).stdout  # fmt: skip
    assert "people.csv:zip = zips.csv:zip; zips.csv:zip = direct.csv:zip" in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--want", "smog", "--budget", "x"], "'x' is not a valid float"),
        (["--want", "smog", "--overwrite"], "--overwrite is for the file of --html"),
    ],
)
def test_what_is_refused(refused, options, words):
    assert words in refused(2, *options)


def test_a_column_without_an_option_is_told_where_it_goes(fail, market, people):
    said = fail(2, "acquire", "lake.pexeso", f"{people}:sick")
    assert "those to explain by --have, those to get by --want. Got the argument " in said


def test_control_characters_are_shown_escaped(run, monkeypatch, tmp_path):
    odd = "a\x1b[31m\u202e"
    lake = {f"{odd}.csv": {"zip": ZIPS, odd: ["x", "y", "y", "x"]}}
    opened_as(monkeypatch, small_index(tmp_path, lake))
    path = tmp_path / "people.csv"
    pd.DataFrame(PEOPLE).to_csv(path, index=False)
    result = run("acquire", "lake.pexeso", "--have", f"{path}:sick", "--want", odd)
    assert "Plan 1" in result.stdout
    assert not set(result.stdout) & {"\x1b", "\u202e"}


def test_defaults_are_those_of_python():
    python = inspect.signature(AcquisitionSearches.acquire).parameters
    same = (
        "budget", "min_quality", "max_informativeness", "max_tables", "exclude_tables",
        "exclude_joins", "max_seconds", "max_memory", "seed", "sample_rate", "k", "prices",
        "max_fan_out",
    )  # fmt: skip
    defaults = defaults_of(AcquireRequest)
    assert {name: defaults[name] for name in same} == {name: python[name].default for name in same}


def test_a_page_is_written_and_not_replaced_unasked(acquire, refused, tmp_path):
    page = tmp_path / "page.html"
    done = acquire("--want", "smog_level", "--html", page)
    assert f"Page for the browser: '{page}' (" in done.stderr
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "<title>Columns that explain sick</title>" in text
    assert "is there already" in refused(1, "--want", "smog_level", "--html", page)
    acquire("--want", "smog", "--html", page, "--overwrite")
    assert page.read_text(encoding="utf-8") != text
