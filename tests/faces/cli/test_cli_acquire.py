"""`pexeso acquire`: what it prints and writes, and what it says where it cannot."""

from __future__ import annotations

import inspect
import json
import re

import pandas as pd
import pytest

from pexeso.acquisition.searches import AcquisitionSearches
from pexeso.faces.service.by_verb.acquisition import AcquireRequest
from pexeso.faces.service.schema import defaults_of
from pexeso.faces.service.verbs import Service
from tests.acquisition.small_market import LAKE, PEOPLE, ZIPS, small_index


def opened_as(monkeypatch, index):
    monkeypatch.setattr(
        "pexeso.semantic.open_index.open_without_models",
        lambda path: index,
    )


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
    assert result.exit_code == 0, result.output
    assert result.stdout == (
        "How to get states.csv:smog so that it tells most of sick of people.csv:\n"
        "\n"
        "Plan 1: tells 100.0 % of sick (0.971 of 0.971 bits), price 8, quality 100.0 %, proved "
        "best\n"
        "  get   states.csv:smog\n"
        "  join  people.csv:zip = zips.csv:zip; zips.csv:state = states.csv:state "
        "(informativeness 0.000, 50 rows)\n"
        '  SQL   SELECT "state", "zip" FROM "zips.csv";  -- price 4\n'
        '        SELECT "smog", "state" FROM "states.csv";  -- price 4\n'
        "  note  In zips.csv:state = states.csv:state keys repeat in both tables (up to 2 and 2 "
        "rows), so that rows multiply.\n"
        "\n"
        "tells: how much less is unknown of your columns in the joined rows, once the columns to "
        "get are known; 0 % is nothing, 100 % all.\n"
        "bits: what is unknown; 1 bit is a question answered by yes or no.\n"
        "informativeness: 0 for a join in which all keys find a partner, up to 1 if few do; the "
        "sum over the joins.\n"
    )
    searched = (
        r"Searched: \d plans? formed and 1 measured, of 4 tables with 4 joins, in \d+\.\d s\n"
    )
    assert re.fullmatch(searched, result.stderr)


def test_the_wanted_column_can_be_left_out(acquire):
    result = acquire("-k", 2, "--max-fan-out", 2)
    assert result.exit_code == 0, result.output
    first = result.stdout.splitlines()[0]
    assert first == "What tells most of sick of people.csv, of all columns that joins reach:"
    best, second = (line for line in result.stdout.splitlines() if line.startswith("Plan "))
    ends = " % by chance, free, quality 100.0 %, best of all plans for this column"
    assert best.startswith("Plan 1: tells 100.0 % of sick (0.971 of 0.971 bits), ")
    assert second.startswith("Plan 2: tells 100.0 % of sick (0.8113 of 0.8113 bits), ")
    assert best.endswith(ends)
    assert second.endswith(ends)
    assert "Plan 3: " not in result.stdout
    assert "more plan" not in result.stdout
    assert "by chance: what the column tells with its values shuffled. " in result.stdout
    assert result.stderr.startswith("Searched: 7 columns and ")
    first = acquire("-k", 1, "--max-fan-out", 2).stdout
    assert first.splitlines()[2] == best
    assert "1 more plan (-k shows more)." in first


def test_by_default_no_row_multiplies_without_a_wanted_column(acquire):
    printed = json.loads(acquire("--json").stdout)
    assert printed["options"]["max_fan_out"] == 1
    assert [plan["want"] for plan in printed["plans"]] == [
        [{"table": "zips.csv", "column": "state"}]
    ]
    [plan] = printed["plans"]
    assert 0 < plan["chance_share"] < plan["share"] == pytest.approx(1)
    assert plan["proof"] == "best of all plans for this column"
    assert printed["stats"]["columns"] == 7
    refused = acquire("--want", "smog", "--max-fan-out", 1).stdout
    assert "No plan keeps the bounds: max_fan_out of 1 excludes all plans: " in refused
    assert "The least rows of one key of a plan that keeps all other bounds: 2\n" in refused


def test_the_machine_form_is_that_of_a_service(acquire, people):
    printed = json.loads(acquire("--want", "smog_level", "--json").stdout)
    assert set(printed) == {"query", "options", "plans", "n_more", "unit", "stats"}
    assert set(printed["plans"][0]) > {
        "tables", "path", "price", "correlation", "quality", "informativeness", "optimal", "gap",
    }  # fmt: skip
    assert (printed["plans"][0]["optimal"], printed["plans"][0]["gap"]) == (True, 0.0)
    assert printed["stats"]["notes"] == []
    request = {
        "verb": "acquire",
        "index": "lake.pexeso",
        "have": f"{people}:sick",
        "want": ["smog_level"],
    }
    answer = json.loads(json.dumps(Service().answer(request)))
    for document in (printed, answer):
        del document["stats"]["seconds"]
    assert answer == printed


def test_a_budget_that_is_too_small_says_the_least_that_would_do(acquire, prices):
    options = ("--want", "smog_level", "--prices", prices, "--budget", 3.5)
    result = acquire(*options)
    assert result.exit_code == 0
    reason = "No plan keeps the bounds: the budget of 3.5 is too small: the least that a plan "
    reason += "costs is 4."
    assert result.stdout == (
        f"{reason}\nThe least price of a plan that keeps all other bounds: 4\n"
    )
    document = json.loads(acquire(*options, "--json").stdout)
    assert document["plans"] == []
    assert document["best_seen"] == {"price": 4.0}
    assert document["reason"] == reason


def test_no_path_is_told(acquire):
    result = acquire("--want", "alone.csv:moon")
    assert result.exit_code == 0
    assert result.stdout.startswith("No plan: No joins of at most 6 tables (max_tables) lead from ")
    assert result.stdout.count("\n") == 1


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
        "--want", "smog_level", "--exclude-join", "people.csv,direct.csv",
        "--exclude-table", "states.csv", "--exclude-table", "alone.csv",
    ).stdout  # fmt: skip
    assert "people.csv:zip = zips.csv:zip; zips.csv:zip = direct.csv:zip" in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--want", "fog"], "No table of the lake has a column 'fog'."),
        (["--want", "smog", "--budget", "-1"], "budget must be a number from 0. Got -1.0."),
        (["--want", "smog", "--budget", "x"], "'x' is not a valid float"),
        (
            ["--want", "smog", "--min-quality", "2"],
            "min_quality must be a number from 0 to 1. Got 2.0.",
        ),
        (["--want", "smog", "--exclude-table", "x"], "The lake has no table 'x'."),
        (["--want", "smog", "--exclude-join", "x"], "exclude_joins are pairs of tables"),
        (["--want", "smog", "--exclude-join", "x,y"], "The lake has no table 'x'."),
        (
            ["--want", "smog", "--exclude-join", "alone.csv,zips.csv"],
            "'alone.csv' and 'zips.csv' have no join to leave out.",
        ),
        (["--want", "smog", "--max-fan-out", "0"], "max_fan_out must be a number from 1. Got 0.0."),
        (["--want", "smog", "--max-memory", "x"], "A size must be a number with a unit"),
        (["--want", "smog", "-k", "0"], "k must be a whole number of at least 1. Got 0 instead."),
        (["--want", "smog", "--overwrite"], "--overwrite is for the file of --html"),
    ],
)
def test_what_is_refused(refused, options, words):
    assert words in refused(2, *options)


def test_nothing_to_look_for(fail, market):
    said = fail(2, "acquire", "lake.pexeso")
    assert "Give --have, --want, or both: there is nothing to look for." in said


def test_a_column_without_an_option_is_told_where_it_goes(fail, market, people):
    said = fail(2, "acquire", "lake.pexeso", f"{people}:sick")
    assert "those to be explained by --have, those to get by --want. Got the argument " in said


def test_prices_that_cannot_be_used(refused, tmp_path):
    path = tmp_path / "prices.csv"
    path.write_text("table,column,price\nzips.csv,zip,-1\n")
    said = refused(2, "--want", "smog", "--prices", path)
    assert "table 'zips.csv', column 'zip': a price must be a number from 0, such as 2.50" in said
    path.write_text("table,column,price\nzips.csv,zip,1\n")
    assert "There is no price for 'smog', 'state' of 'states.csv'. Add a line" in refused(
        2, "--want", "smog", "--prices", path
    )


def test_a_table_of_yours_that_is_not_there(fail, market, tmp_path):
    said = fail(1, "acquire", "lake.pexeso", "--have", f"{tmp_path / 'none.csv'}:x", "--want", "y")
    assert "none.csv" in said


def test_control_characters_are_shown_escaped(run, monkeypatch, tmp_path):
    odd = "a\x1b[31m\u202e"
    lake = {f"{odd}.csv": {"zip": ZIPS, odd: ["x", "y", "y", "x"]}}
    opened_as(monkeypatch, small_index(tmp_path, lake))
    path = tmp_path / "people.csv"
    pd.DataFrame(PEOPLE).to_csv(path, index=False)
    result = run("acquire", "lake.pexeso", "--have", f"{path}:sick", "--want", odd)
    assert result.exit_code == 0, result.output
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
