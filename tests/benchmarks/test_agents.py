"""Clients that follow the tools' descriptions: what is drawn, what counts as right."""

import pytest
from click.testing import CliRunner

from benchmarks.agents import DRAWN, Outcome, Task, draw, first_known, main, summary

TASK = Task("wikitables", ("a.csv", "x"), frozenset({("b.csv", "y")}), frozenset({("c.csv", "z")}))


def tasks(name, number):
    return [Task(name, (f"{at}.csv", "x"), frozenset(), frozenset()) for at in range(number)]


def test_as_many_tasks_are_drawn_as_asked_and_the_same_again():
    tasks_by_data = {"wikitables": tasks("wikitables", 500), "autofj": tasks("autofj", 25)}
    drawn = draw(tasks_by_data, 0, 100)
    assert len(drawn) == len({(task.data, task.query) for task in drawn}) == 100
    assert sum(task.data == "autofj" for task in drawn) == 20
    assert draw(tasks_by_data, 0, 100) == drawn != draw(tasks_by_data, 1, 100)
    assert len(draw({"autofj": tasks("autofj", 25)}, 0, 12)) == 12


def test_the_first_data_set_fills_up_what_others_lack():
    tasks_by_data = {name: tasks(name, 300 if name == "wikitables" else 3) for name in DRAWN}
    assert sum(task.data == "wikitables" for task in draw(tasks_by_data, 0, 200)) == 191


@pytest.mark.parametrize(
    ("listed", "reached"),
    [
        (["b.csv:y", "d.csv:w"], "b.csv:y"),
        (["c.csv:z", "d.csv:w"], "d.csv:w"),
        (["c.csv:z"], None),
        ([], None),
    ],
)
def test_candidates_without_truth_are_passed_over(listed, reached):
    candidates = [{"lake_column": name, "copies": []} for name in listed]
    assert first_known(candidates, TASK) == reached


def test_a_summary_counts_by_data_set_and_names_what_was_wrong():
    right = Outcome("autofj", "a:x", True, "b:y", 3, 900, 500, 0.5)
    wrong = Outcome("countries", "c:x", False, None, 1, 100, 100, 0.1, "no table")
    totals = summary([right, right, wrong])
    assert (totals["right"], totals["share"], totals["most_calls"]) == (2, 0.6667, 3)
    assert totals["by_data"]["countries"] == {"tasks": 1, "right": 0}
    assert totals["wrong"] == [
        {"data": "countries", "query": "c:x", "reached": None, "error": "no table"}
    ]


def test_unknown_data_sets_are_named():
    done = CliRunner().invoke(main, ["--data", "nowhere"])
    assert done.exit_code == 2
    assert "known are wikitables" in done.output
