"""Sweeps: what is declared, what is varied, and what a result holds."""

import json

import numpy as np
import pytest
import torch

from benchmarks.cutting import cut_columns, cut_rows
from benchmarks.datasets import Source
from benchmarks.datasets.synthetic import RandomData
from benchmarks.declared import load_candidates
from benchmarks.harness import Settings
from benchmarks.sweeps import Sweep, known_sweeps, run_sweep

CPU = torch.device("cpu")
TINY = Settings(queries=4, repeats=1, threads=1)


class Scaled(RandomData):
    """`random` as a data set that can be made at a scale."""

    scale = 1.0


@pytest.fixture
def small_random(monkeypatch):
    """The data set `random`, small; gives the dimensions and scales that were asked for."""
    requests = []

    def make(source):
        dimensions = source.dimensions or 16
        requests.append((dimensions, source.scale))
        sizes = round(60 * source.scale), round(600 * source.scale)
        return Scaled(*sizes, dimensions, 4, source.seed)

    monkeypatch.setattr(Source, "data_set", make)
    return requests


def sweep(over, values=(), algorithms=("brute_gemm",), **more):
    return Sweep("mine", "Mine", over, tuple(algorithms), tuple(values), **more)


def test_the_declared_sweeps_can_be_run():
    sweeps = known_sweeps()
    assert {"ablation", "pivots", "tau", "columns", "dimensions"} <= set(sweeps)
    for declared_sweep in sweeps.values():
        pytest.importorskip("faiss")
        candidates = load_candidates(declared_sweep.algorithms, CPU)
        if declared_sweep.together:
            assert all(declared_sweep.together in one.build_arguments for one in candidates)
    assert sweeps["tau"].values[0] == 0
    assert sweeps["tau"].values[-1] == 0.2
    assert sweeps["columns"].values == (0.01, 0.1, 1)


def lemmas_of(grid):
    return [set(candidate.query_arguments["lemmas"]) for candidate in load_candidates([grid], CPU)]


def test_an_ablation_leaves_out_every_lemma_once_and_has_each_alone():
    from pexeso.engine.vector_space import ALL_LEMMAS

    every = set(ALL_LEMMAS)
    off, alone = [every - {lemma} for lemma in every], [{lemma} for lemma in every]
    (whole, *others) = lemmas_of("pexeso:ablation")
    assert whole == every
    assert sorted(map(sorted, others)) == sorted(map(sorted, [*off, *alone, set()]))


def test_on_blocks_accepting_filters_are_one_switch_and_nothing_browses():
    accepting = {"L2", "L5", "L6"}
    for lemmas in lemmas_of("pexeso:ablation_blocks"):
        assert lemmas & accepting in (set(), accepting)
        assert "QB" not in lemmas


def test_a_sweep_of_the_question_builds_once(small_random, monkeypatch):
    from benchmarks.algorithms.brute_gemm.module import BruteGemm

    builds, questions = [], set()
    build, query = BruteGemm.build, BruteGemm.query
    monkeypatch.setattr(
        BruteGemm,
        "build",
        lambda self, lake, **given: (builds.append(1), build(self, lake, **given)),
    )
    monkeypatch.setattr(
        BruteGemm,
        "query",
        lambda self, one: (questions.add((one.name, one.max_distance)), query(self, one))[1],
    )
    result = run_sweep(sweep("max_distance", (0, 0.05, 0.2)), Source("random"), TINY)
    assert (result["agree"], len(builds), len(result["lakes"])) == (True, 1, 1)
    assert [row["value"] for row in result["rows"]] == [0, 0.05, 0.2]
    hits = [row["columns_found"] for row in result["rows"]]
    assert hits[0] < hits[2], "a larger distance must find more columns, else nothing was varied"
    assert {distance for _, distance in questions} == {0, 0.05, 0.2}
    assert len({name for name, _ in questions}) == 4, "the same query columns at every point"
    json.dumps(result)


def test_a_sweep_over_arguments_has_a_row_for_each_point(small_random):
    few = Settings(queries=1, repeats=1, threads=1)
    declared = sweep("arguments", algorithms=["pexeso:sizes"], together="n_pivots")
    result = run_sweep(declared, Source("random"), few)
    assert result["agree"] is True
    points = {tuple(sorted(row["arguments"].items(), key=str)) for row in result["rows"]}
    assert len(points) == len(result["rows"]) == 15
    result = run_sweep(sweep("arguments", algorithms=["pexeso:ablation"]), Source("random"), few)
    assert len({row["algorithm"] for row in result["rows"]}) == len(result["rows"])
    assert len({row["build_seconds"] for row in result["rows"]}) == 1, "built once for all points"


def test_a_sweep_over_columns_asks_the_same(small_random):
    declared = sweep("columns", (0.1, 0.5, 1), ["brute_gemm", "pexeso"])
    result = run_sweep(declared, Source("random"), TINY)
    assert result["agree"] is True
    assert [row["columns"] for row in result["rows"]] == [6, 6, 30, 30, 60, 60]
    values = [row["values"] for row in result["rows"] if row["algorithm"] == "brute_gemm"]
    distances = [row["distances"] for row in result["rows"] if row["algorithm"] == "brute_gemm"]
    ratios = {distance / n_values for distance, n_values in zip(distances, values, strict=True)}
    assert max(ratios) == pytest.approx(min(ratios)), "the same query values at every size"


def test_a_difference_says_at_which_point(small_random, monkeypatch):
    from benchmarks.algorithms.brute_gemm.module import BruteGemm

    query = BruteGemm.query

    def wrong_at_times(self, one):
        columns, counts = query(self, one)
        return columns, counts + (one.max_distance > 0.1)

    monkeypatch.setattr(BruteGemm, "query", wrong_at_times)
    result = run_sweep(sweep("max_distance", (0.05, 0.2)), Source("random"), TINY)
    assert result["agree"] is False
    assert result["differences"]
    assert all(
        difference.startswith("max_distance 0.2: brute_gemm and float64 differ")
        for difference in result["differences"]
    )


def test_a_cut_lake_keeps_columns_whole():
    lake = RandomData(50, 700, 8, 4, seed=5).load()
    part, smaller = cut_columns(lake, 0.4, seed=1), cut_columns(lake, 0.1, seed=1)
    assert (part.n_columns, smaller.n_columns) == (20, 5)
    assert set(smaller.columns) < set(part.columns) < set(lake.columns)
    assert cut_columns(lake, 1, seed=1) is lake
    assert part.n_values == len(np.unique(part.column_values)) < lake.n_values
    for number, name in enumerate(part.columns):
        old = list(lake.columns).index(name)
        ours, theirs = (
            slice(*side.column_offsets[place : place + 2])
            for side, place in ((part, number), (lake, old))
        )
        assert np.array_equal(
            part.vectors[part.column_values[ours]], lake.vectors[lake.column_values[theirs]]
        )
        assert np.array_equal(part.value_rows[ours], lake.value_rows[theirs])
        assert part.column_rows[number] == lake.column_rows[old]
    assert part.facts["share_of_columns"] == 0.4
    assert part.fingerprint != lake.fingerprint
    assert cut_columns(lake, 1e-9, seed=1).n_columns == 1


def test_a_lake_of_fewer_rows_has_all_columns():
    lake = RandomData(50, 700, 8, 4, seed=5).load()
    part, smaller = cut_rows(lake, 0.5, seed=1), cut_rows(lake, 0.1, seed=1)
    assert cut_rows(lake, 1, seed=1) is lake
    assert part.n_values == len(np.unique(part.column_values)) < lake.n_values
    assert list(part.columns) == list(lake.columns)
    for number in range(lake.n_columns):
        (whole, some, few) = (
            {
                (one.vectors[value].tobytes(), rows)
                for value, rows in zip(
                    one.column_values[slice(*one.column_offsets[number : number + 2])],
                    one.value_rows[slice(*one.column_offsets[number : number + 2])],
                    strict=True,
                )
            }
            for one in (lake, part, smaller)
        )
        assert few <= some < whole
        assert len(some) == round(0.5 * len(whole))
        assert part.column_rows[number] - sum(rows for _, rows in some) == (
            lake.column_rows[number] - sum(rows for _, rows in whole)
        )
    assert part.facts["share_of_values"] == 0.5
