"""Batch search on a cluster answers as a search of this machine alone, even where a worker dies."""

import json
from pathlib import Path

import pytest

import pexeso.semantic.batch_file
from benchmarks.cluster.spark_cluster import running_cluster
from pexeso.index import open_index
from pexeso.results.query import batch_lines

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("search_on_cluster.py")
OPTIONS = {"max_distance": 0.3, "min_joinability": 0.1}


@pytest.fixture
def queries(tmp_path):
    words = ["Oslo", "Rome", "Madrid", "Vienna", "Lisbon", "Bern", "Norway", "Italy", "nowhere", ""]
    lines = [{"id": number, "values": words[number % 5 :: 1 + number % 3]} for number in range(150)]
    path = tmp_path / "queries.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


def answers_in(path):
    answers = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [
        {name: value for name, value in answer.items() if name != "stats"} for answer in answers
    ]


@pytest.mark.long
def test_a_search_outlives_a_worker_and_answers_as_one_machine(
    start_on, small_index, queries, tmp_path
):
    pexeso.semantic.batch_file.run_batch(
        open_index(small_index), batch_lines(queries), tmp_path / "here", **OPTIONS
    )
    with running_cluster() as cluster:
        process = start_on(
            cluster, PROGRAM, small_index, queries, tmp_path / "there", json.dumps(OPTIONS)
        )
        for line in process.stdout:
            if line.strip() == "searching":
                cluster.kill_worker(0)
                break
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said[-4000:]
    expected = answers_in(tmp_path / "here")
    assert answers_in(tmp_path / "there") == expected
    assert sum(len(answer["results"]) for answer in expected) > 100
