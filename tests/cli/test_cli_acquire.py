"""`pexeso acquire`: what it prints and writes, and what it says where it cannot."""

from __future__ import annotations

import inspect
import json

import pandas as pd
import pytest

from pexeso.acquisition_search.searches import AcquisitionSearches
from pexeso.service.acquisition import AcquireRequest
from pexeso.service.verbs import Service
from tests.acquisition_search.small_market import LAKE, PEOPLE, SmallIndex, patched


@pytest.fixture
def market(monkeypatch):
    """Let every index be that of the small market."""
    patched(monkeypatch)
    monkeypatch.setattr(
        "pexeso.acquisition_search.searches.open_acquisition_searches",
        lambda path: AcquisitionSearches(SmallIndex()),
    )


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
    assert result.exit_code == 0, result.output
    assert result.stdout == (
        "How to get states.csv:smog so that they tell most of sick of people.csv:\n"
        "\n"
        "Plan 1: 0.971 bits, price 8, quality 100.0 %, proved best\n"
        "  get   states.csv:smog\n"
        "  join  people.csv:zip = zips.csv:zip; zips.csv:state = states.csv:state "
        "(informativeness 0.000, 50 rows)\n"
        '  SQL   SELECT "state", "zip" FROM "zips.csv";  -- price 4\n'
        '        SELECT "smog", "state" FROM "states.csv";  -- price 4\n'
        "  note  In zips.csv:state = states.csv:state keys repeat in both tables (up to 2 and 2 "
        "rows), so that rows multiply.\n"
    )
    assert result.stderr.startswith("Searched: 2 plans formed and 2 measured, of 5 tables with ")
    assert result.stderr.count("\n") == 1


def test_the_wanted_column_can_be_left_out(acquire):
    result = acquire("-k", 2)
    assert result.exit_code == 0, result.output
    first = result.stdout.splitlines()[0]
    assert first == "What tells most of sick of people.csv, of all columns that joins reach:"
    best, second = (line for line in result.stdout.splitlines() if line.startswith("Plan "))
    assert best.endswith(", proved best")
    assert second.endswith(", proved best for its price and quality")
    assert ", free, quality 100.0 %, proved best" in result.stdout
    assert "Plan 3: " not in result.stdout
    assert "more plans (-k shows more)." in result.stdout


def test_the_machine_form_is_that_of_a_service(acquire, people):
    printed = json.loads(acquire("--want", "smog_level", "--method", "published", "--json").stdout)
    assert set(printed) == {"query", "options", "plans", "n_more", "unit", "stats"}
    assert set(printed["plans"][0]) > {
        "tables", "path", "price", "correlation", "quality", "informativeness", "optimal", "gap",
    }  # fmt: skip
    assert (printed["plans"][0]["optimal"], printed["plans"][0]["gap"]) == (False, 0.25)
    request = {
        "verb": "acquire",
        "index": "lake.pexeso",
        "have": f"{people}:sick",
        "want": ["smog_level"],
        "method": "published",
    }
    answer = json.loads(json.dumps(Service().answer(request)))
    for each in (printed, answer):
        del each["stats"]["seconds"]
    assert answer == printed


def test_an_unproved_plan_says_how_near_it_is(acquire):
    text = acquire("--want", "smog_level", "--method", "published").stdout
    assert "within 25.0 % of the best" in text


def test_a_budget_that_is_too_small_says_the_least_that_would_do(acquire, prices):
    options = ("--want", "smog_level", "--prices", prices, "--budget", 3.5)
    result = acquire(*options)
    assert result.exit_code == 0
    assert result.stdout == (
        "No plan: No plan keeps the bound of the price.\n"
        "The least price of a plan that keeps all other bounds: 4\n"
    )
    document = json.loads(acquire(*options, "--json").stdout)
    assert document["plans"] == []
    assert document["best_seen"] == {"price": 4.0}
    assert document["reason"] == "No plan keeps the bound of the price."


def test_no_path_is_told(acquire):
    result = acquire("--want", "alone.csv:moon")
    assert result.exit_code == 0
    assert result.stdout == "No plan: No joins connect what you have with what you want.\n"


def test_exclusions_come_in_by_options(acquire):
    text = acquire(
        "--want", "smog_level", "--exclude-join", "people.csv,direct.csv",
        "--exclude-table", "states.csv", "--exclude-table", "alone.csv",
    ).stdout  # fmt: skip
    assert "people.csv:zip = zips.csv:zip; zips.csv:zip = direct.csv:zip" in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--want", "fog"], "No table has a column 'fog'."),
        (["--want", "smog", "--budget", "-1"], "budget must be a number from 0. Got -1.0."),
        (["--want", "smog", "--budget", "x"], "'x' is not a valid float"),
        (["--want", "smog", "--min-quality", "2"], "min_quality must be from 0 to 1, got 2.0."),
        (["--want", "smog", "--method", "best"], "'best' is not one of 'exact', 'published'."),
        (["--want", "smog", "--exclude-table", "x"], "There is no table 'x' to leave out."),
        (["--want", "smog", "--exclude-join", "x"], "exclude_joins are pairs of tables"),
        (["--want", "smog", "--max-memory", "x"], "A size must be a number with a unit"),
        (["--want", "smog", "-k", "0"], "k must be a whole number of at least 1. Got 0."),
        (["--want", "smog", "--overwrite"], "--overwrite is for the file of --html"),
    ],
)
def test_what_is_refused(refused, options, words):
    assert words in refused(2, *options)


def test_nothing_to_look_for(fail, market):
    said = fail(2, "acquire", "lake.pexeso")
    assert "Give --have, --want, or both: there is nothing to look for." in said


def test_prices_that_cannot_be_used(refused, tmp_path):
    path = tmp_path / "prices.csv"
    path.write_text("table,column,price\nzips.csv,zip,-1\n")
    said = refused(2, "--want", "smog", "--prices", path)
    assert said.startswith("Error: The price of 'zip' of 'zips.csv' must be a finite number from 0")
    path.write_text("table,column,price\nzips.csv,zip,1\n")
    assert "There is no price for 'zip' of" in refused(2, "--want", "smog", "--prices", path)


def test_a_table_of_yours_that_is_not_there(fail, market, tmp_path):
    said = fail(1, "acquire", "lake.pexeso", "--have", f"{tmp_path / 'none.csv'}:x", "--want", "y")
    assert "none.csv" in said


def test_control_characters_are_shown_escaped(run, monkeypatch, tmp_path):
    patched(monkeypatch)
    odd = "a\x1b[31m\u202e"
    lake = {f"{odd}.csv": {"zip": ["1", "2", "3"], odd: ["x", "y", "y"]}}
    monkeypatch.setattr(
        "pexeso.acquisition_search.searches.open_acquisition_searches",
        lambda path: AcquisitionSearches(SmallIndex(lake)),
    )
    path = tmp_path / "people.csv"
    pd.DataFrame(PEOPLE).to_csv(path, index=False)
    told = run("acquire", "lake.pexeso", "--have", f"{path}:sick", "--want", odd)
    assert told.exit_code == 0, told.output
    assert "Plan 1" in told.stdout
    assert not set(told.stdout) & {"\x1b", "\u202e"}


def test_defaults_are_those_of_python():
    python = inspect.signature(AcquisitionSearches.acquire).parameters
    same = (
        "budget", "min_quality", "max_informativeness", "max_tables", "method", "exclude_tables",
        "exclude_joins", "max_seconds", "max_memory", "seed", "sample_rate", "graph", "k", "prices",
    )  # fmt: skip
    assert {name: getattr(AcquireRequest, name) for name in same} == {
        name: python[name].default for name in same
    }


def test_a_page_is_written_and_not_replaced_unasked(acquire, refused, tmp_path):
    page = tmp_path / "page.html"
    done = acquire("--want", "smog_level", "--html", page)
    assert done.exit_code == 0, done.output
    assert f"Page for the browser: '{page}' (" in done.stderr
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "<title>What tells most of sick</title>" in text
    assert "is there already" in refused(1, "--want", "smog_level", "--html", page)
    assert acquire("--want", "smog", "--html", page, "--overwrite").exit_code == 0
    assert page.read_text(encoding="utf-8") != text
    missing = tmp_path / "none" / "page.html"
    assert "there is no folder" in refused(1, "--want", "smog_level", "--html", missing)
