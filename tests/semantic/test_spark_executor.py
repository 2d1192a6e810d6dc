"""Tests that search in Spark's tasks equals local search."""

import copy
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from processes import ran

import pexeso.semantic.spark_executor as distributed
from pexeso.build.updates import delete
from pexeso.errors import IndexNotFoundError, InputError
from pexeso.index import Index, build_index, open_index
from pexeso.results.query import batch_lines
from pexeso.semantic import passes
from pexeso.semantic.batch_file import run_batch

WORDS = [
    f"{first}{second}"
    for first in ("oslo", "rome", "bern", "kyiv", "cork")
    for second in ("", " ab", " city", "x", "y z")
]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """Index 40 small tables of few words, so that many columns tie, in 5 partitions."""
    lake = tmp_path_factory.mktemp("distributed") / "lake"
    lake.mkdir()
    generator = np.random.default_rng(5)
    for number in range(40):
        words = generator.choice(WORDS, size=(8, 2))
        rows = "".join(f"{one},{other}\n" for one, other in words)
        (lake / f"t{number:02d}.csv").write_text(f"one,other\n{rows}", encoding="utf-8")
    path = lake.parent / "lake.pexeso"
    built = build_index(lake, path, model="hashing", dimensions=24, n_partitions=5)
    assert built.store.n_partitions == 5
    return built


def documents(results):
    return [
        {name: value for name, value in result.to_dict(explain=True).items() if name != "stats"}
        for result in results
    ]


@settings(max_examples=6)
@given(
    queries=st.lists(st.lists(st.sampled_from([*WORDS, "", "nowhere"]), max_size=12), max_size=20),
    max_distance=st.sampled_from([0.0, 0.06, 0.2, 0.5]),
    best=st.sampled_from([None, 1, 3, 10]),
    min_joinability=st.sampled_from([None, 0.2, 0.7]),
)
def test_answers_are_those_of_a_search_here(
    spark, index, queries, max_distance, best, min_joinability
):
    options = {"max_distance": max_distance, "k": best, "min_joinability": min_joinability}
    expected = documents(index.search_batch(queries, **options))
    assert (
        documents(distributed.on_spark(index, spark).search_batch(queries, **options)) == expected
    )


@pytest.mark.parametrize(
    "options",
    [
        {"exact": True, "k": 4},
        {"counts": "decide", "min_joinability": 0.3},
        {"ignore_missing": True, "min_joinability": 0.2},
        {"joinability_of": "rows", "min_joinability": 0.2},
    ],
)
def test_other_ways_to_ask(spark, index, options):
    queries = [[*WORDS[start::3], "", "nowhere"] for start in range(3)]
    arguments = {"max_distance": 0.2, **options}
    answers = distributed.on_spark(index, spark).search_batch(queries, **arguments)
    expected = index.search_batch(queries, **arguments)
    if "counts" in options:
        # How far a column is counted once it is sure is no part of the answer.
        answers, expected = (
            [{(m.table, m.column) for m in result} for result in results]
            for results in (answers, expected)
        )
        assert answers == expected
    else:
        assert documents(answers) == documents(expected)
    assert any(map(len, expected))


def test_a_table_can_be_left_out(spark, index, tmp_path):
    query = {"id": 1, "file": str(index.lake / "t03.csv"), "column": "one"}
    path = tmp_path / "queries.jsonl"
    path.write_text(json.dumps(query), encoding="utf-8")
    for name, searcher in (("here", index), ("there", distributed.on_spark(index, spark))):
        run_batch(
            searcher, batch_lines(path), tmp_path / name, k=5, max_distance=0.3, exclude_self=True
        )
    here, there = (
        json.loads((tmp_path / name).read_text(encoding="utf-8")) for name in ("here", "there")
    )
    assert here["results"] == there["results"] != []
    assert "t03.csv" not in {result["table"] for result in there["results"]}


def test_the_work_of_all_tasks_is_counted(spark, index):
    queries = [WORDS[:6]] * 40
    stats = distributed.on_spark(index, spark).search_batch(queries, exact=True)[0].stats
    assert stats["partitions"] == index.store.n_partitions
    assert stats["distances"] == index.search(WORDS[:6], exact=True).stats["distances"]


@pytest.mark.parametrize(
    ("n_queries", "n_wanted", "n_chunks"),
    [(1, 8, 1), (16, 8, 2), (40, 3, 3), (64, 1, 1), (65, 1, 2), (300, 2, 5)],
)
def test_queries_are_divided_evenly(index, n_queries, n_wanted, n_chunks):
    from pexeso.results.query import query_from_values
    from pexeso.semantic.encoded_query import prepare

    prepared = prepare(query_from_values(["oslo", "rome"]), index.normaliser, index.embedder)
    chunks = distributed.divide([prepared] * n_queries, list(range(n_queries)), n_wanted)
    assert len(chunks) == n_chunks
    assert sorted(place for chunk in chunks for place in chunk.positions) == list(range(n_queries))
    assert all(chunk.options == chunk.positions for chunk in chunks)
    sizes = [len(chunk.queries) for chunk in chunks]
    assert max(sizes) - min(sizes) <= 1


def test_nothing_asked_is_nothing_found(spark, index):
    assert distributed.on_spark(index, spark).search_batch([]) == []


@pytest.mark.long
def test_searches_stay_on_spark_after_every_update(spark, tmp_path, monkeypatch):
    lake = tmp_path / "lake"
    lake.mkdir()
    for number in range(3):
        (lake / f"t{number}.csv").write_text(
            "city\n" + "\n".join(WORDS[number::2]), encoding="utf-8"
        )
    here = build_index(lake, tmp_path / "lake.pexeso", model="hashing", dimensions=24)
    there = distributed.on_spark(here, spark)

    def tables():
        with monkeypatch.context() as patch:
            # Tasks run in processes of their own, which this does not reach.
            patch.setattr(passes, "passes_of", refuse)
            return [
                match.table
                for match in there.search(
                    WORDS[::2], k=9, max_distance=0.0, rerank=False, fold_copies=False
                )
            ]

    assert tables() == ["t0.csv", "t2.csv"]
    delete(here.path, ["t2.csv"])
    (lake / "t2.csv").unlink()  # or it would be new
    assert there.refresh()
    assert tables() == ["t0.csv"]
    (lake / "t3.csv").write_text("city\n" + "\n".join(WORDS[::2]), encoding="utf-8")
    assert there.append().new == 1
    assert tables() == ["t0.csv", "t3.csv"]
    assert there.delete(["t0.csv"]).committed
    assert tables() == ["t3.csv"]
    assert there.compact(everything=True).committed
    assert tables() == ["t3.csv"]
    assert here.search(WORDS[::2], k=9, max_distance=0.0)[0].table == "t0.csv"


def refuse(*given):
    raise RuntimeError("The driver searched.")


def test_an_index_on_spark_is_copied_and_not_sent(spark, index):
    there = distributed.on_spark(index, spark)
    for copied in (copy.copy(there), copy.deepcopy(there)):
        assert documents(copied.search_batch([WORDS[:6]], k=3)) == documents(
            index.search_batch([WORDS[:6]], k=3)
        )
    with pytest.raises(InputError, match="Send the index that on_spark was given"):
        pickle.dumps(there)


def test_passes_keep_all_cores_busy(spark, index):
    assert 1 <= distributed.passes_of(index, spark) <= distributed.MAX_PASSES
    wanted = distributed.TASKS_PER_CORE * spark.sparkContext.defaultParallelism
    assert distributed.passes_of(index, spark) * index.store.n_partitions >= wanted


@pytest.mark.long
def test_a_killed_run_is_taken_up_where_it_stopped(index, tmp_path):
    queries = tmp_path / "queries.jsonl"
    lines = [{"id": f"q{number}", "values": WORDS[number % 7 :: 3]} for number in range(40)]
    queries.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    run_batch(index, batch_lines(queries), tmp_path / "here.jsonl", k=3, max_distance=0.2)
    # Five queries a pass, and one pass a job, so that there is something to interrupt.
    program = (
        "import pexeso.semantic.batch_file, pexeso.semantic.spark_executor as d, sys; "
        "pexeso.semantic.batch_file.MAX_CHUNK_QUERIES = 5; d.MAX_PASSES = 1; "
        "from pexeso.faces.cli.main import main; main(sys.argv[1:])"
    )
    output = tmp_path / "there.jsonl"
    command = [
        *(sys.executable, "-c", program, "batch", str(index.path), str(queries), "-o", str(output)),
        *(
            "-k",
            "3",
            "--max-distance",
            "0.2",
            "--spark-master",
            "local[2]",
            "--spark-conf",
            "spark.driver.memory=700m",
            "--spark-conf",
            "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        ),
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and process.poll() is None:
            if output.exists() and output.read_bytes().count(b"\n") >= 5:
                break
            time.sleep(0.02)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    before = output.read_bytes().splitlines(keepends=True)
    complete = [line for line in before if line.endswith(b"\n")]
    assert 5 <= len(complete) < 40
    done = ran([*command, "--resume"], timeout=200)
    assert done.returncode == 0, done.stderr
    assert (
        done.stderr
        == f"40 lines answered, {len(complete)} of them in an earlier run, in '{output}'\n"
    )
    after = output.read_bytes().splitlines(keepends=True)
    assert after[: len(complete)] == complete
    here = (tmp_path / "here.jsonl").read_bytes().splitlines()
    assert [without_stats(line) for line in after] == [without_stats(line) for line in here]


def without_stats(line):
    return {name: value for name, value in json.loads(line).items() if name != "stats"}


# The last tests of the file, since the workers of a task that failed start anew.


def test_an_error_of_ours_in_a_task_arrives_as_itself(spark, index):
    searching = distributed.on_spark(index, spark, kernel="none")
    with pytest.raises(InputError, match="The kernel must be one of"):
        searching.search(["oslo"])


@pytest.mark.long
def test_an_index_that_is_there_for_the_driver_alone_is_told_as_such(spark, index):
    broken = open_index(index.path)
    moved = replace(broken._opened, whole=replace(broken.store, path=index.path / "moved"))
    vars(moved)["embedder"] = broken.embedder  # the model is open
    broken = Index(moved)
    with pytest.raises(IndexNotFoundError, match="There is no index at"):
        distributed.on_spark(broken, spark).search(["oslo"])
