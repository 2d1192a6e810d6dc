"""The benchmark on a Spark cluster: answers are compared with the truth."""

import json

import psutil
import pytest
from click.testing import CliRunner

from benchmarks import report
from benchmarks.cli import main
from benchmarks.cluster import running
from benchmarks.cluster.running import Setup, answers_in, differences


def test_every_kind_of_difference_is_named():
    truth = [{("t", "a"): 3, ("t", "b"): 2}, {}, {("u", "a"): 1}]
    assert differences(truth, truth, "here") == []
    answers = [{("t", "a"): 4}, {("t", "c"): 1}, {("u", "a"): 1}]
    reported = [
        (difference["query"], difference["column"], difference["expected"], difference["found"])
        for difference in differences(truth, answers, "here")
    ]
    assert reported == [(0, "a", 3, 4), (0, "b", 2, None), (1, "c", None, 1)]
    assert differences(truth, truth[:2], "here") == [
        {"way": "here", "expected_lines": 3, "found_lines": 2}
    ]


def test_answers_are_read_and_a_refused_query_has_none(tmp_path):
    lines = [
        {"id": 0, "results": [{"table": "t", "column": "a", "matched": 2, "total": 4}]},
        {"id": 1, "error": "no values"},
    ]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert answers_in(path) == [{("t", "a"): 2}, {}]


def result_of(agree=True):
    counts = {"tables": 20, "columns": 1000, "values": 5000, "pairs": 8000, "bytes": 10**6}
    return {
        "index": counts,
        "build": {"seconds": 70.0, "stages": {name: {"seconds": 10.0} for name in running.GROWTH}},
        "batch": {"cluster": {"seconds": 9.0}, "here": {"seconds": 2.0}},
        "agree": agree,
        "differences": [] if agree else [{"way": "here", "query": 0}],
        "machine": {"cores": 2},
    }


@pytest.mark.parametrize(("agree", "status"), [(True, 0), (False, 1)])
def test_a_wrong_answer_ends_the_command_with_status_1(agree, status, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "run", lambda setup: result_of(agree))
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    done = CliRunner().invoke(main, ["cluster", "--columns", "1000", "--write"])
    assert done.exit_code == status, done.output
    assert ("Answers differ: " in done.output) is not agree
    (path,) = tmp_path.rglob("*.json")
    assert json.loads(path.read_text())["agree"] is agree


@pytest.mark.spark
@pytest.mark.long
def test_a_small_run_agrees_and_leaves_no_process(tmp_path):
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    setup = Setup(
        columns=500,
        queries=20,
        workers=1,
        partitions=1,
        executor_memory="600m",
        driver_memory="700m",
    )
    result = running.run(setup, tmp_path)
    assert result["agree"], result["differences"]
    assert result["answers"] > 60
    assert {way: batch["answers"] for way, batch in result["batch"].items()} == {
        "cluster": result["answers"],
        "here": result["answers"],
    }
    assert running.GROWTH.keys() <= result["build"]["stages"].keys()
    after = {process.pid for process in psutil.Process().children(recursive=True)}
    assert after <= before
