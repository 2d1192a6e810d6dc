"""Tests of many processes on one index: readers, readers beside writers, and two writers."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from long_runs import EVERYTHING

from pexeso.build.diagnostics.info import check_index
from pexeso.index import open_index

ROUNDS = int(os.environ.get("PEXESO_ROUNDS", "3"))
"""Searches of each reader; a longer run: ``PEXESO_ROUNDS=1000``."""

READERS = 4 if EVERYTHING else 2
VALUES = ["Oslo", "rome", "MADRID", "Vienna", "Bern"]

READER = """
import json, sys
import pexeso

index, values, rounds = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
held = pexeso.open_index(index)
first = None
print("open", flush=True)
for number in range(rounds) if rounds else iter(int, 1):
    answers = []
    for each in (held, pexeso.open_index(index)):
        found = each.search(values, min_joinability=0.2)
        answers.append([[match.table, match.column, match.matched] for match in found.matches])
    first = first or answers[0]
    assert answers[0] == first, "an open index must answer as it did"
    print(json.dumps(answers[1]), flush=True)
"""


def start(*arguments: object) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def start_reader(index: Path, rounds: int = ROUNDS) -> subprocess.Popen:
    return start("-c", READER, index, json.dumps(VALUES), rounds)


def start_command(*arguments: object) -> subprocess.Popen:
    return start("-m", "pexeso", *arguments)


def finished(process: subprocess.Popen) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err[-2000:]
    return out


def answers_of(output: str) -> list[list]:
    return [json.loads(line) for line in output.splitlines()[1:]]


def answer(index: Path) -> list[list]:
    result = open_index(index).search(VALUES, min_joinability=0.2)
    return [[match.table, match.column, match.matched] for match in result.matches]


def failures(index: Path) -> list[str]:
    return [problem.sentence for problem in check_index(index) if problem.is_failure]


@pytest.fixture
def index(small_index: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(small_index, tmp_path / "copy.pexeso"))


def test_processes_that_search_give_the_same_answers(index: Path):
    expected = answer(index)
    assert expected
    for output in [finished(reader) for reader in [start_reader(index) for _ in range(READERS)]]:
        assert answers_of(output) == [expected] * ROUNDS


def test_two_writers_at_once_both_write_or_one_is_told_to_wait(index: Path):
    generation = open_index(index).store.manifest.generation
    tables = ["cities.csv", "nested/companies.csv"]
    processes = [start_command("delete", index, table) for table in tables]
    outcomes = [(*process.communicate(timeout=300), process.returncode) for process in processes]
    written = [table for table, (_, _, code) in zip(tables, outcomes, strict=True) if code == 0]
    assert written
    for _, error, code in outcomes:
        assert "Traceback" not in error
        assert code == 0 or (code == 1 and "Another build is writing" in error), error
    assert failures(index) == []
    assert open_index(index).store.manifest.generation == generation + len(written)
    left = {table for table, _, _ in answer(index)}
    assert left.isdisjoint(written)
    assert set(tables) - set(written) <= left


def test_readers_beside_an_append_and_a_compaction_see_one_state_or_the_other(
    index: Path, small_lake, tmp_path
):
    lake = Path(shutil.copytree(small_lake, tmp_path / "lake"))
    more = "town\n" + "\n".join([*VALUES, "Paris"]) + "\n"
    (lake / "more.csv").write_text(more, encoding="utf-8")
    states = [answer(index)]
    readers = [start_reader(index, 0) for _ in range(READERS)]
    try:
        for reader in readers:
            assert reader.stdout.readline() == "open\n"
        writer = open_index(index)
        for change in (lambda: writer.append(lake), lambda: writer.compact(everything=True)):
            change()
            states.append(answer(index))
        assert states[0] != states[1]
        assert ["more.csv", "town", 5] in states[1]
        assert sorted(states[1]) == sorted(states[2])
        for reader in readers:  # each must have seen the last state before it is ended
            seen = [states[0]]
            while seen[-1] != states[2]:
                line = reader.stdout.readline()
                assert line, reader.stderr.read()[-2000:]
                seen.append(json.loads(line))
                assert seen[-1] in states
    finally:
        for reader in readers:
            reader.kill()
            reader.communicate()
    assert failures(index) == []
