"""What is joined where no rule relates two columns: draws, listings, and scores by kind."""

import json
from contextlib import nullcontext

import pyarrow as pa
import pytest
from click.testing import CliRunner

from benchmarks import report
from benchmarks.cli import main
from benchmarks.effectiveness.tasks import Task, incidence_of
from benchmarks.transform import restraint
from benchmarks.transform.restraint import drawn_pairs, lake_columns, task_row
from benchmarks.transform.tables import restraint_tables

NAMES = ("Rome", "Oslo", "Lima", "Bern", "Kyiv")
CITIES = [f"{name}{number}" for number in range(5) for name in NAMES]


@pytest.fixture
def lakes(tmp_path):
    for lake in ("one", "two"):
        (tmp_path / lake).mkdir()
        for table in range(3):
            rows = [f"{lake}{table} {city},{n + table},x" for n, city in enumerate(CITIES)]
            text = "\n".join(["city,number,few", *rows]) + "\n"
            (tmp_path / lake / f"t{table}.csv").write_text(text)
    return {lake: tmp_path / lake for lake in ("one", "two")}


def test_columns_with_enough_values_are_drawn_from_also_those_of_numbers(lakes):
    columns = list(lake_columns(lakes))
    assert len(columns) == 12
    assert {column.name for column in columns} == {"city", "number"}
    assert columns[0].key == "one/t0.csv#0"
    assert columns[0].cells().to_pylist()[0] == "one0 Rome0"
    assert list(lake_columns(lakes, min_values=26)) == []


def test_draws_are_the_same_for_a_seed_and_of_different_tables(lakes):
    columns = list(lake_columns(lakes))
    pairs = drawn_pairs(columns, 8, 1)
    assert pairs == drawn_pairs(reversed(columns), 8, 1)
    assert pairs[:3] == drawn_pairs(columns, 3, 1)
    assert pairs != drawn_pairs(columns, 8, 2)
    assert all((one.lake, one.table) != (other.lake, other.table) for one, other in pairs)
    for side in zip(*pairs, strict=True):
        assert len({column.key for column in side}) == len(side)


def test_what_each_kind_joins_in_a_task_is_counted_against_its_truth():
    left = ["Ann Lee", "Bob Ray", "Cid Moe", "Dan Fox", "Eva Sun", "same"]
    right = ["lee, a", "ray, b", "moe, c", "fox, d", "sun, e", "same"]
    # Of five that the rule derives, the truth has four; the equal ones are wrong in it.
    truth = incidence_of([0, 1, 2, 3], [0, 1, 2, 3], (6, 6))
    task = Task("t", "t", pa.array(left), pa.array(right), truth)
    row = task_row("set", task)
    assert row["kinds"] == {
        "equal": {"pairs": 1, "right": 0},
        "program": {"pairs": 5, "right": 4},
    }
    assert (row["precision"], row["recall"]) == (pytest.approx(4 / 6), 1.0)
    assert (row["cardinality"], row["values"], row["true_pairs"]) == ("1:1", [6, 6], 4)


def test_a_rule_that_makes_one_key_of_several_values_joins_nothing_in_a_task():
    left = [f"{city} {quarter}" for city in CITIES for quarter in ("north", "south")]
    truth = incidence_of(list(range(50)), [row // 2 for row in range(50)], (50, 25))
    row = task_row("set", Task("t", "t", pa.array(left), pa.array(CITIES), truth))
    assert row["refused"] == "50 source values became 25"
    assert (row["joined"], row["kinds"]) == (0, {})


def test_the_result_lists_every_program(lakes, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(restraint, "LAKES", tuple(lakes))
    monkeypatch.setattr(restraint, "unpacked", lambda name: nullcontext(lakes[name]))
    monkeypatch.setattr(restraint, "_tasks", lambda: iter(()))
    arguments = ["transform", "restraint", "--pairs", "6", "--draws", "2", "--write"]
    done = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    result = json.loads((tmp_path / "transform" / "restraint.json").read_text())
    assert result["random"]["columns"] == 12
    draws = result["random"]["draws"]
    assert [(draw["seed"], draw["pairs"]) for draw in draws] == [(0, 6), (1, 6)]
    # Cities of two tables differ in a prefix, so there are programs.
    programs = [row for draw in draws for row in draw["programs"]]
    assert programs
    assert sum(draw["with_programs"] for draw in draws) == len(programs)
    assert restraint_tables(result) in done.output
    assert all(row["source"] and row["samples"] for row in programs)
