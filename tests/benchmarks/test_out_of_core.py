"""Tests of the command that searches a lake on disk, at a size that takes a second."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks import cli, report
from benchmarks.datasets import Source
from benchmarks.out_of_core import command
from benchmarks.out_of_core import command as running
from benchmarks.out_of_core.command import ONE, Settings, run_out_of_core
from benchmarks.out_of_core.grouping import METHODS, fit_centres, group_columns
from pexeso.errors import InputError


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    settings = Settings(
        "swdc", 0.001, ("jensen-shannon", "mean-vector", "random"), 3, 6, 1, 2, 2, True
    )
    return run_out_of_core(settings, tmp_path_factory.mktemp("lakes"))


def test_the_published_grid_and_fewer_rows_give_the_answers_of_brute_force(tmp_path):
    settings = Settings(
        "swdc", 0.001, ("random",), 2, 3, 1, 0, 3, rows=0.5, published=True, memory=False
    )
    result = run_out_of_core(settings, tmp_path)
    assert result["agree"], result["differences"]
    assert set(result["summary"]) == {"random"}
    assert result["lake"]["values"] < 8_600
    assert command.result_name(settings).startswith(
        f"{settings.data}/out-of-core_0.001-rows0.5-published_random_p2_"
    )


def test_a_lake_of_tables_in_any_number_of_dimensions(tmp_path):
    settings = Settings("demo", 0.05, ("random",), 2, 3, 1, 0, 3, memory=False, dimensions=20)
    result = run_out_of_core(settings, tmp_path)
    assert result["agree"], result["differences"]
    assert result["lake"]["dimensions"] == 20
    assert command.result_name(settings).startswith(
        f"{settings.data}/out-of-core_hashing-20d_random_p2_"
    )
    assert command.table(result).startswith("`demo`")
    with pytest.raises(InputError, match="has vectors of 50 dimensions"):
        run_out_of_core(replace(settings, data="swdc"), tmp_path)


def test_all_indexes_give_the_same_answers_and_those_of_brute_force(result):
    assert result["agree"], result["differences"]
    assert result["columns_found"] >= 6
    assert json.loads(json.dumps(result)) == result


def test_work_and_memory_are_counted(result):
    summary = result["summary"]
    assert set(summary) == {"jensen-shannon", "mean-vector", "random", running.MEMORY, ONE, "cold"}
    assert summary["jensen-shannon"]["ratio_to_jensen-shannon"] == 1.0
    assert (
        summary["jensen-shannon"]["median_bytes_read"]
        == summary[running.MEMORY]["median_bytes_read"]
        > 0
    )
    assert all(
        query["partitions"] + query["partitions_skipped"] == 3 for query in result["warm"]["random"]
    )
    assert 0 < result["own_peak_bytes"] < 1 << 30
    shown = command.table(result)
    assert all(name in shown for name in summary if name != "cold")


def test_columns_are_never_cut_and_partitions_hold_every_column_once(result):
    n_values = {name: sum(index["values"]) for name, index in result["indexes"].items()}
    assert n_values[ONE] <= min(n_values.values())
    assert n_values["jensen-shannon"] < n_values["random"]


@pytest.mark.parametrize("method", METHODS)
def test_columns_are_grouped_by_every_method(method):
    lake = Source("random").load()
    grouped = group_columns(lake, method, 4)
    assert np.unique(grouped).tolist() == [0, 1, 2, 3]
    assert len(grouped) == lake.n_columns
    assert group_columns(lake, method, 4).tolist() == grouped.tolist()


def test_a_wrong_answer_ends_the_command_with_status_1(tmp_path, monkeypatch):
    real = running.ask
    calls = []

    def ask(*given):
        hits, work, seconds = real(*given)
        calls.append(None)
        return (hits[:-1] if len(calls) == 5 else hits), work, seconds

    monkeypatch.setattr(running, "ask", ask)
    monkeypatch.setattr(running.run_out_of_core, "__defaults__", (tmp_path,))
    monkeypatch.setattr(report, "RESULTS", tmp_path / "results")
    given = (
        "out-of-core --data swdc --scale 0.0005 --partitions 2 --queries 3 --repeats 1 "
        "--cold 0 --checked 0 --threads 1 --write"
    )
    done = CliRunner().invoke(cli.main, given.split())
    assert done.exit_code == 1, done.output
    assert "Answers differ: " in done.output
    assert list((tmp_path / "results").rglob("out-of-core_*.json"))


@pytest.mark.parametrize(
    "name", [name for name, method in METHODS.items() if method.between is not None]
)
def test_planted_groups_are_recovered(name):
    generator = np.random.default_rng(0)
    truth = np.repeat(np.arange(4), 30)
    weights = np.full((4, 24), 0.1 / 24)
    for group in range(4):
        weights[group, 6 * group : 6 * group + 6] += 0.9 / 6
    counts = np.array(
        [generator.multinomial(40, weights[group] / weights[group].sum()) for group in truth]
    )
    features = counts / counts.sum(axis=1, keepdims=True)
    clusters, divergences = METHODS[name].nearest(
        features, fit_centres(METHODS[name], features, 4, 1)
    )
    assert (
        len(set(zip(truth.tolist(), clusters.tolist(), strict=True)))
        == len(set(clusters.tolist()))
        == 4
    )
    assert (divergences >= 0).all()
