"""Columns that tell more of a target than chance are chosen, without asking a model."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.acquisition.held_back import measured_targets, planted
from benchmarks.acquisition.judging import MODELS
from benchmarks.acquisition.plan_strategy import (
    LEAST_ROWS,
    OURS,
    as_joined,
    plan,
)
from benchmarks.acquisition.strategies import PUBLISHED
from benchmarks.acquisition.target_tables import target_tables

TASKS = ("regression", "classification")


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("seed", range(3))
def test_what_is_planted_is_chosen_and_most_noise_is_not(task, seed):
    made = planted(seed, task=task, n_rows=400, n_true=3)
    choice = plan(made.base, made.target, made.candidates, task, seed)
    assert "true-0" in choice.names
    assert sum(name.startswith("true") for name in choice.names) >= 2
    assert sum(name.startswith("noise") for name in choice.names) <= 1
    assert choice.fits == 0
    assert choice.seconds > 0
    assert choice.names == plan(made.base, made.target, made.candidates, task, seed).names


@pytest.mark.parametrize("task", TASKS)
def test_of_noise_alone_hardly_anything_is_chosen(task):
    chosen = [
        len(plan(made.base, made.target, made.candidates, task, 0).names)
        for made in (planted(seed, task=task, n_true=0, n_rows=100) for seed in range(8))
    ]
    assert np.mean(chosen) < 1.5  # of 20 columns and the joins of 20


def test_that_rows_find_a_partner_is_told_by_one_column_of_texts():
    n_chosen = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        joined = rng.random(200) < 0.5
        base = pd.DataFrame({"target": joined * 5.0 + rng.random(200)})
        columns = {
            "number": pd.Series(np.where(joined, rng.random(200), np.nan)),
            "text": pd.Series(np.where(joined, rng.choice(list("ab"), 200), None)),
            "other text": pd.Series(np.where(joined, rng.choice(list("ab"), 200), None)),
        }
        names = plan(base, "target", columns, "regression", 0).names
        assert {"text", "other text"} & set(names)
        n_chosen.append(len(names))
        only = {"number": columns["number"]}
        assert plan(base, "target", only, "regression", 0).names == ("number",)
    assert np.median(n_chosen) == 1


def test_a_partner_that_nearly_all_rows_have_tells_nothing():
    rng = np.random.default_rng(0)
    base = pd.DataFrame({"target": rng.random(200)})
    lacking = {}
    for n_lacking in (LEAST_ROWS - 1, 40):
        base.loc[: n_lacking - 1, "target"] = 99.0
        cells = pd.Series(np.r_[np.full(n_lacking, np.nan), np.tile([1.0, 2.0], 100)[n_lacking:]])
        lacking[n_lacking] = plan(base, "target", {"it": cells}, "regression", 0).names
    assert lacking == {LEAST_ROWS - 1: (), 40: ("it",)}


def test_a_copy_of_the_target_is_chosen_and_noise_beside_it_is_not():
    rng = np.random.default_rng(1)
    for task in TASKS:
        values = rng.random(60) if task == "regression" else rng.choice(list("xyz"), 60)
        base = pd.DataFrame({"target": values})
        copies = {"same": pd.Series(values), "noise": pd.Series(rng.random(60))}
        assert plan(base, "target", copies, task, 0).names == ("same",)


def test_without_candidates_nothing_is_chosen():
    made = planted(0, n_rows=50)
    assert plan(made.base, made.target, {}, made.task, 0).names == ()
    assert as_joined(made.base, made.target, made.candidates, made.task, 0).names == tuple(
        made.candidates
    )


def test_targets_are_measured_beside_the_published_strategies(monkeypatch):
    def small(seed, task):
        return planted(seed, task=task, n_rows=80, n_true=1, n_noise=3)

    monkeypatch.setattr("benchmarks.acquisition.held_back.planted", small)
    monkeypatch.setattr("benchmarks.acquisition.features._TREES", 5)
    [target] = measured_targets(("planted-regression",), splits=1)["targets"]
    assert set(PUBLISHED) < set(target["strategies"])
    assert set(target["against"]) == set(OURS)
    for model in MODELS:
        mine = target["strategies"]["plan"]
        assert target["against"]["plan"][model]["gain"] == mine["gain"][model]
        seconds = np.mean(mine["seconds"])
        assert mine["gain_per_second"][model] == pytest.approx(mine["gain"][model] / seconds)
        assert target["strategies"]["enrich"]["gain_per_second"][model] is None
    lines = target_tables({"targets": [target]}).splitlines()
    gains = [line for line in lines if line.startswith("| planted-regression |")]
    assert len(gains) == len(MODELS) + 1
    mine = target["strategies"]["plan"]
    assert f"| {mine['gain']['trees']:+.3f} |" in gains[0]
    assert f"{len(mine['names'][0]):.1f}, {mine['seconds'][0]:.2f}, " in gains[-1]
    assert "-" in gains[-1].split("|")[-2]
