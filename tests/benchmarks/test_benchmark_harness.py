import json
import types

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from benchmarks import datasets, report
from benchmarks.checking import oracle_answer
from benchmarks.cli import main
from benchmarks.declared import Algorithm, Candidate, known_algorithms, load_candidates
from benchmarks.drawing import SIZE_CLASSES, draw_queries, size_class
from benchmarks.harness import Settings, run_benchmark
from benchmarks.machine import describe_machine, find_device
from benchmarks.memory import peak_memory
from benchmarks.source import Source
from benchmarks.timing import ask_batch, measure_in_turn
from pexeso.errors import DeviceError, InputError, LakeError, MissingPackageError

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
    assert set(result["processor_ratios_to_pexeso"]) == set(result["ratios_to_pexeso"])
    values = result["algorithms"]["pexeso"]
    assert set(values["phases"]) == {"map", "block", "verify"}
    assert 0 < values["distances"] < result["algorithms"]["brute_gemm"]["distances"]
    assert values["recall"] == values["precision"] == 1.0
    assert result["machine"]["threads"]["torch"] == 1
    json.dumps(result)


class Answer(Algorithm):
    """Answers with column 0 and a count that no lake has."""

    def build(self, lake, arguments):
        self.index_bytes = 1

    def query(self, query):
        return torch.tensor([0]), torch.tensor([10**6])


class Drifting(Algorithm):
    """Right at first: nothing is found, since nothing is asked of it; then something is."""

    n_queries = 0

    def build(self, lake, arguments):
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
        assert 0 < values["median_seconds"] < values["batch_seconds"]
        assert values["recall"] == 1.0
    one_by_one = run_benchmark(small_lake, candidates, Settings(queries=12, repeats=1))
    assert result["columns_found"] == one_by_one["columns_found"]
    work = [run["algorithms"]["brute_gemm"]["distances"] for run in (result, one_by_one)]
    # Values that stand in several query columns are compared once.
    assert 0 < work[0] <= work[1] == small_lake.n_values * result["query_values"] / 12
    medians = [result["algorithms"][name]["median_seconds"] for name in ("brute_gemm", "pexeso")]
    assert result["ratios_to_pexeso"]["brute_gemm"] == pytest.approx(medians[0] / medians[1])


def test_a_batch_that_the_algorithm_answers_at_once_is_left_to_it():
    class AtOnce(Answer):
        def query_batch(self, queries):
            self.work = {"distances": 7}
            return [(torch.tensor([0]), torch.tensor([number])) for number, _ in enumerate(queries)]

    algorithm = AtOnce(CPU)
    assert [int(count) for _, count in ask_batch(algorithm, [1, 2, 3])] == [0, 1, 2]
    assert algorithm.work == {"distances": 7}


def test_counters_of_a_batch_answered_one_by_one_are_added_up():
    class OneByOne(Answer):
        def query(self, query):
            self.work = {"distances": query, "seconds_map": 0.5}
            return super().query(query)

    algorithm = OneByOne(CPU)
    assert len(ask_batch(algorithm, [1, 2, 3])) == 3
    assert algorithm.work == {"distances": 6, "seconds_map": 1.5}


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


def test_a_batch_with_an_answer_too_few_is_an_error(small_lake):
    class TooFew(Answer):
        def query_batch(self, queries):
            return [self.query(query) for query in queries[1:]]

    with pytest.raises(ValueError, match="few gave 5 answers to a batch of 6 query columns"):
        run_benchmark(
            small_lake, [Candidate("few", TooFew, True, {}, {})], Settings(queries=6, batched=True)
        )


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


def test_more_queries_than_columns_are_refused(small_lake):
    with pytest.raises(InputError, match=r"between 1 and 40, .* Got 41 instead"):
        draw_queries(small_lake, 41, max_distance=0.06, min_joinability=0.6, seed=0)


def test_a_grid_is_the_product_of_its_arguments():
    names = [candidate.name for candidate in load_candidates(["pexeso:sizes"], CPU)]
    assert len(names) == len(set(names)) == 15
    assert names[0] == "pexeso:sizes(n_levels=2,n_pivots=3)"


@pytest.mark.parametrize("name", known_algorithms())
def test_every_declared_grid_can_be_loaded(name):
    config = declaration(name)
    for package in config.get("packages", ()):
        pytest.importorskip(package)
    assert config["description"].endswith(".")
    for grid in config["grids"]:
        for device in config["devices"]:
            assert load_candidates([f"{name}:{grid}"], torch.device(device))


@pytest.mark.parametrize(
    ("specs", "says"),
    [
        (["annoy"], "Algorithms are ball_tree, brute_gemm, .* Got 'annoy'"),
        (["pexeso:huge"], "pexeso has the grids default, .* Got 'huge'"),
        (["pexeso", "pexeso"], "named once"),
    ],
)
def test_what_is_not_declared_is_refused(specs, says):
    with pytest.raises(InputError, match=says):
        load_candidates(specs, CPU)


def test_a_device_that_is_not_declared_is_refused():
    with pytest.raises(InputError, match=r"faiss_flat runs on cpu\. Got the device cuda"):
        load_candidates(["faiss_flat"], torch.device("cuda"))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA GPU")
def test_cuda_where_there_is_none_is_refused():
    for name in ("cuda", "cuda:1"):
        with pytest.raises(
            DeviceError, match=f"device {name} was asked for, and torch finds no CUDA GPU here"
        ):
            find_device(name)


@pytest.mark.parametrize("name", ["gpu", "cpu:0", "cuda:x", "", "cuda:-1"])
def test_devices_that_are_none_are_refused(name):
    with pytest.raises(InputError, match="must be cpu, cuda or cuda:N"):
        find_device(name)
    assert find_device("cpu") == CPU


def test_the_machine_tells_what_seconds_depend_on():
    machine = describe_machine(CPU)
    assert machine["device"] == "cpu"
    assert machine["cores"] >= 1
    assert machine["memory_gib"] >= 1
    assert machine["processor"]


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match="faiss_flat needs faiss"):
        load_candidates(["faiss_flat"], CPU)


@pytest.mark.parametrize("name", ["pexeso", "faiss_flat", "brute_gemm"])
def test_query_arguments_that_are_not_known_are_refused(name):
    if name == "faiss_flat":
        pytest.importorskip("faiss")
    (candidate,) = load_candidates([name], CPU)
    with pytest.raises(InputError, match="Got colour instead"):
        candidate.adapter(CPU).set_query_arguments({"colour": 1})


def test_an_unknown_data_set_is_refused():
    with pytest.raises(
        InputError, match=r"Data sets are web, demo, random, swdc, open, lwdc\. Got 'gittables'"
    ):
        datasets.data_set("gittables")


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


def test_the_command_prints_one_object_and_keeps_it(results):
    command = [*SMALL, "--queries", "3", "--algorithms", "pexeso,brute_gemm", "--json", "--write"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    printed = json.loads(done.stdout)
    assert (printed["data"], printed["queries"], printed["agree"]) == ("random", 3, True)
    assert set(printed["algorithms"]) == {"pexeso", "brute_gemm"}
    assert printed["algorithms"]["pexeso"]["median_seconds"] > 0
    assert set(printed["ratios_to_pexeso"]) == {"brute_gemm"}
    (path,) = results.rglob("*.json")
    assert path.parent.name == "random"
    assert printed["origin"]["command"]
    assert "commit" in printed["origin"]


def test_the_command_asks_a_batch(results):
    command = [*SMALL, "--batch", "4", "--algorithms", "pexeso,brute_gemm"]
    printed = json.loads(CliRunner().invoke(main, [*command, "--json"]).stdout)
    assert (printed["queries"], printed["batch"], printed["agree"]) == (4, 4, True)
    assert set(printed["ratios_to_pexeso"]) == {"brute_gemm"}
    assert not list(results.rglob("*.json"))
    both = CliRunner().invoke(main, [*command, "--queries", "4"])
    assert (both.exit_code, both.stderr.count("\n")) == (2, 1)
    assert "--queries cannot be given as well" in both.stderr


class MadeUp:
    """A data set that tells its scale, and its dimensions by its model."""

    name = "swdc"

    def __init__(self, scale):
        self.scale = scale
        self.model = types.SimpleNamespace(dimensions=50)


def test_a_scale_is_passed_on_only_where_it_is_asked_for(monkeypatch):
    requests = []
    monkeypatch.setattr(
        "benchmarks.source.data_set",
        lambda name, **given: (requests.append((name, given)), MadeUp(given.get("scale", 1)))[1],
    )
    assert Source("swdc", seed=3).variant == "50d"
    assert Source("swdc", dimensions=50, scale=0.1).variant == "50d-x0.1"
    assert requests == [
        ("swdc", {"model": "fasttext", "seed": 3}),
        ("swdc", {"model": "fasttext", "seed": 0, "dimensions": 50, "scale": 0.1}),
    ]
    with pytest.raises(InputError, match=r"swdc has vectors of 50 dimensions\. Got 100"):
        Source("swdc", dimensions=100).data_set()


def test_a_scale_or_dimensions_are_not_taken_where_they_change_nothing(monkeypatch):
    monkeypatch.setattr("benchmarks.source.data_set", lambda name, **given: object())
    assert Source("web").variant == "own"
    with pytest.raises(
        InputError, match=r"The data set web comes in one size\. Got the scale 0\.1"
    ):
        Source("web", scale=0.1).data_set()


@pytest.mark.parametrize(
    ("wrong", "says"), [({"scale": 0}, "scale must lie"), ({"dimensions": 0}, "at least 1")]
)
def test_sources_out_of_range_are_refused(wrong, says):
    with pytest.raises(InputError, match=says):
        Source("random", **wrong)


def test_the_command_fails_when_answers_differ(results, monkeypatch):
    monkeypatch.setattr("benchmarks.algorithms.brute_gemm.module.BruteGemm.query", Answer.query)
    done = CliRunner().invoke(main, [*SMALL, "--queries", "3", "--algorithms", "pexeso,brute_gemm"])
    assert done.exit_code == 1
    assert "ANSWERS DIFFER" in done.stdout
    assert "Answers differ: brute_gemm and float64 differ on query 0 (column " in done.stderr


def test_the_command_says_in_one_line_what_is_wrong(results):
    done = CliRunner().invoke(main, [*SMALL, "--algorithms", "annoy"])
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: Algorithms are ")
    assert done.stderr.count("\n") == 1


def test_the_real_lakes_are_asked_for_by_name(monkeypatch, tmp_path, results):
    tables = pytest.importorskip("benchmarks.datasets.tables")
    monkeypatch.setattr(tables, "SHARED", tmp_path / "nowhere")
    with pytest.raises(
        LakeError, match=r"\.\./shared/data/wikitables/tables\.tar\.gz.* is not there"
    ):
        datasets.data_set("web", model="hashing").load()
