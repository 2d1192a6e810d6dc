import json

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from benchmarks import report
from benchmarks.checking import oracle_answer
from benchmarks.cli import main
from benchmarks.declared import Algorithm, Candidate, known_algorithms, load_candidates
from benchmarks.drawing import SIZE_CLASSES, draw_queries, size_class
from benchmarks.harness import Settings, run_benchmark
from benchmarks.memory import peak_memory
from benchmarks.timing import measure_in_turn

CPU = torch.device("cpu")
TINY = Settings(queries=6, repeats=2, threads=1)


def declaration(name):
    import yaml

    from benchmarks.declared import ALGORITHMS

    return yaml.safe_load((ALGORITHMS / name / "config.yml").read_text(encoding="utf-8"))


def test_all_algorithms_agree_on_the_random_lake(small_lake):
    pytest.importorskip("faiss")
    names = [name for name in known_algorithms() if "cpu" in declaration(name)["devices"]]
    assert {"pexeso", "pexeso_h", "brute_gemm", "faiss_flat", "ball_tree"} <= set(names)
    result = run_benchmark(small_lake, load_candidates(names, CPU), TINY)
    assert result["differences"] == []
    assert result["agree"] is True
    assert result["columns_found"] > result["queries"], (
        "columns beyond the query's own must be found"
    )
    assert result["checked"] == {"against_each_other": 6, "against_float64": 6}
    assert set(result["algorithms"]) == set(names)
    assert set(result["ratios_to_pexeso"]) == set(names) - {"pexeso"}
    for name, ratio in result["ratios_to_pexeso"].items():
        medians = [result["algorithms"][method]["median_seconds"] for method in (name, "pexeso")]
        assert ratio == pytest.approx(medians[0] / medians[1])
    values = result["algorithms"]["pexeso"]
    assert set(values["phases"]) == {"map", "block", "verify"}
    assert 0 < values["distances"] < result["algorithms"]["brute_gemm"]["distances"]
    assert values["recall"] == values["precision"] == 1.0
    assert result["machine"]["threads"]["torch"] == 1
    json.dumps(result)


class Answer(Algorithm):
    """Answers with column 0 and a count that no lake has."""

    def build(self, lake):
        self.index_bytes = 1

    def query(self, query):
        return torch.tensor([0]), torch.tensor([10**6])


class Drifting(Algorithm):
    """Right at first: nothing is found, since nothing is asked of it; then something is."""

    n_queries = 0

    def build(self, lake):
        self.index_bytes = 1

    def query(self, query):
        self.n_queries += 1
        column = torch.arange(min(1, self.n_queries // 8))
        return column, column + 1


def test_a_batch_is_one_call_and_every_query_column_in_it_is_checked(small_lake):
    candidates = load_candidates(["pexeso", "brute_gemm"], CPU)
    result = run_benchmark(small_lake, candidates, Settings(queries=12, repeats=2, batched=True))
    assert (result["queries"], result["batch"], result["agree"], result["by_size"]) == (
        12,
        12,
        True,
        [],
    )
    assert result["checked"] == {"against_each_other": 12, "against_float64": 12}
    for values in result["algorithms"].values():
        assert values["median_seconds"] > 0
        assert values["recall"] == 1.0
    one_by_one = run_benchmark(small_lake, candidates, Settings(queries=12, repeats=1))
    assert result["columns_found"] == one_by_one["columns_found"]
    work = [run["algorithms"]["brute_gemm"]["distances"] for run in (result, one_by_one)]
    # Values that stand in several query columns are compared once.
    assert 0 < work[0] <= work[1] == small_lake.n_values * result["query_values"] / 12
    medians = [result["algorithms"][name]["median_seconds"] for name in ("brute_gemm", "pexeso")]
    assert result["ratios_to_pexeso"]["brute_gemm"] == pytest.approx(medians[0] / medians[1])


def test_one_wrong_answer_in_a_batch_is_found(small_lake):
    class WrongOnce(Answer):
        def query_batch(self, queries):
            right = [oracle_answer(small_lake, query) for query in queries]
            right[4] = {0: 10**6}
            return [(torch.tensor(list(hits)), torch.tensor(list(hits.values()))) for hits in right]

    result = run_benchmark(
        small_lake, [Candidate("wrong", WrongOnce, True, {}, {})], Settings(queries=6, batched=True)
    )
    assert len(result["differences"]) == 1
    assert result["differences"][0].startswith("wrong and float64 differ on query 4 ")


def test_a_wrong_algorithm_is_caught_and_named(small_lake):
    candidates = [*load_candidates(["brute_gemm"], CPU), Candidate("wrong", Answer, True, {}, {})]
    result = run_benchmark(small_lake, candidates, TINY)
    assert result["agree"] is False
    assert all(
        text.startswith("wrong and float64 differ on query ") for text in result["differences"]
    )
    assert len({text.partition(":")[0] for text in result["differences"]}) == 6


def test_a_wrong_algorithm_that_runs_first_does_not_become_the_truth(small_lake):
    candidates = [Candidate("wrong", Answer, True, {}, {}), *load_candidates(["brute_gemm"], CPU)]
    result = run_benchmark(small_lake, candidates, TINY)
    assert result["agree"] is False
    assert result["algorithms"]["brute_gemm"]["recall"] == 1.0
    assert not any(text.startswith("brute_gemm") for text in result["differences"])


def test_an_approximate_algorithm_is_graded_not_refused(small_lake):
    candidates = [
        *load_candidates(["brute_gemm"], CPU),
        Candidate("approximate", Answer, False, {}, {}),
    ]
    result = run_benchmark(small_lake, candidates, TINY)
    assert result["agree"] is True
    assert result["algorithms"]["approximate"]["recall"] < 1.0
    assert result["ratios_to_pexeso"] == {}
    assert [values["exact"] for values in result["algorithms"].values()] == [True, False]


def test_answers_that_change_between_repeats_are_caught(small_lake):
    result = run_benchmark(small_lake, [Candidate("drifting", Drifting, False, {}, {})], TINY)
    assert result["agree"] is False
    assert "drifting and its own first answer differ" in result["differences"][0]


def test_algorithms_take_turns_and_none_is_always_first():
    calls = []

    class Named(Answer):
        def __init__(self, name):
            super().__init__(CPU)
            self.name = name

        def query(self, query):
            calls.append((self.name, query))
            self.work = {"distances": 2, "seconds_map": float(len(calls))}
            return super().query(query)

    checked = []
    measured = measure_in_turn(
        {name: Named(name) for name in "ABC"},
        [0, 1],
        2,
        lambda name, number, answer: checked.append((name, number)),
    )
    order = ["A0", "B0", "C0", "A1", "B1", "C1", "B0", "C0", "A0", "B1", "C1", "A1"]
    assert [f"{name}{number}" for name, number in calls] == order
    assert checked == calls
    assert measured["A"].seconds.shape == (2, 2)
    assert (measured["A"].seconds > 0).all()
    assert measured["A"].processor_seconds.shape == (2, 2)
    assert measured["A"].work[0] == {"distances": 2, "seconds_map": (1 + 9) / 2}


def test_queries_come_from_every_class_of_size_and_none_twice(small_lake):
    queries = draw_queries(small_lake, 12, max_distance=0.06, min_joinability=0.6, seed=0)
    assert len({query.name for query in queries}) == 12
    per_class = np.bincount(
        [size_class(len(query)) for query in queries], minlength=len(SIZE_CLASSES)
    )
    there = {size_class(size) for size in np.diff(small_lake.column_offsets).tolist()} - {-1}
    assert all(per_class[number] >= 2 for number in there)
    again = draw_queries(small_lake, 12, max_distance=0.06, min_joinability=0.6, seed=0)
    other = draw_queries(small_lake, 12, max_distance=0.06, min_joinability=0.6, seed=1)
    assert [query.name for query in again] == [query.name for query in queries]
    assert [query.name for query in other] != [query.name for query in queries]
    for query in queries:
        assert query.total == int(query.weights.sum()) + 1
        assert query.needed == -(-6 * query.total // 10)


@pytest.mark.parametrize("name", known_algorithms())
def test_every_declared_grid_can_be_loaded(name):
    config = declaration(name)
    for package in config.get("packages", ()):
        pytest.importorskip(package)
    assert config["description"].endswith(".")
    for grid in config["grids"]:
        for device in config["devices"]:
            assert load_candidates([f"{name}:{grid}"], torch.device(device))


def test_peak_memory_sees_what_a_step_held():
    with peak_memory(CPU) as peak:
        held = np.ones(8 << 20)
        del held
    if peak.n_bytes is None:
        pytest.skip("this system does not tell peak memory")
    assert 60 << 20 < peak.n_bytes < 100 << 20


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    return tmp_path


SMALL = ["run", "--data", "random", "--dimensions", "8", "--repeats", "1", "--threads", "1"]


def test_the_command_fails_when_answers_differ(results, monkeypatch):
    monkeypatch.setattr("benchmarks.algorithms.brute_gemm.module.BruteGemm.query", Answer.query)
    done = CliRunner().invoke(main, [*SMALL, "--queries", "3", "--algorithms", "pexeso,brute_gemm"])
    assert done.exit_code == 1
    assert "ANSWERS DIFFER" in done.stdout
    assert "Answers differ: brute_gemm and float64 differ on query 0 (column " in done.stderr
