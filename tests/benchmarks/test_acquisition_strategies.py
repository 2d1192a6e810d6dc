"""Strategies that choose joined columns find what was planted, and are judged on unseen rows."""

import json
from unittest.mock import ANY

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from long_runs import long_but

from benchmarks import report
from benchmarks.acquisition import features as features_module
from benchmarks.acquisition import held_back, strategies
from benchmarks.acquisition.features import Validation, features_of
from benchmarks.acquisition.held_back import DEMO, planted, real_problem
from benchmarks.acquisition.judging import (
    MODELS,
    Problem,
    against_published,
    held_back_rows,
    judged,
)
from benchmarks.acquisition.plan_strategy import STRATEGIES
from benchmarks.acquisition.strategies import (
    PUBLISHED,
    Choice,
    noise_like,
    one_at_a_time,
    sparse_weights,
    standardised,
)
from benchmarks.cli import main
from pexeso.errors import InputError, LakeError

TASKS = ("regression", "classification")
SHARED = held_back.EXAMPLES.parent.parent / "shared" / "data"
LAKES = ("fivethirtyeight", "pudding", "countries", "wikitables")


@pytest.fixture(scope="module", autouse=True)
def _small_forests():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(features_module, "_TREES", 8)
        yield


@pytest.fixture(scope="module", params=long_but(["classification"], TASKS))
def problem(request):
    return planted(1, task=request.param, n_rows=200, n_true=2, n_noise=8)


@pytest.fixture(scope="module")
def choices(problem):
    return {
        name: strategy(problem.base, problem.target, problem.candidates, problem.task, 0)
        for name, strategy in PUBLISHED.items()
    }


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_helps_most_is_found_and_most_noise_is_not(problem, choices, name):
    choice = choices[name]
    assert {"true-0", "true-1"} <= set(choice.names)
    noise = sum(column.startswith("noise") for column in choice.names)
    # Those that are ranked once and cut by a noisy score keep more of it.
    assert noise <= (4 if name == "all joins" else 2)
    assert set(choice.names) <= problem.candidates.keys()
    assert choice.seconds > 0
    assert choice.fits > 3


@pytest.mark.parametrize("name", PUBLISHED)
def test_choices_are_the_same_for_a_seed(name):
    made = planted(4, n_rows=60, n_true=1, n_noise=2)
    one, two = (
        PUBLISHED[name](made.base, made.target, made.candidates, made.task, 0) for _ in range(2)
    )
    assert (one.names, one.fits) == (two.names, two.fits)


@pytest.mark.parametrize("name", PUBLISHED)
def test_without_candidates_nothing_is_chosen(problem, name):
    choice = PUBLISHED[name](problem.base, problem.target, {}, problem.task, 0)
    assert choice.names == ()


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_base_table_without_features_is_enough(name):
    made = planted(2, n_rows=100, n_true=1, n_noise=5)
    base = made.base.drop(columns="own")
    assert "true-0" in PUBLISHED[name](base, "target", made.candidates, made.task, 0).names


@pytest.mark.parametrize("queries", [1, 5])
def test_one_at_a_time_keeps_to_its_queries(problem, queries):
    choice = one_at_a_time(
        problem.base, problem.target, problem.candidates, problem.task, 0, queries=queries
    )
    assert choice.fits <= 3 * queries
    assert bool(choice.names) == (queries > 1)


def test_one_at_a_time_drops_what_is_not_needed(monkeypatch):
    # Columns are worth: 0 alone 1, 1 alone 2, both 2; so 0 would not stay beside 1.
    worth = {(): 0.0, (0,): 1.0, (1,): 0.5, (0, 1): 2.0, (1, 2): 3.0, (0, 1, 2): 3.0, (0, 2): 1.0}

    class Known(Validation):
        def score(self, columns):
            return worth[tuple(sorted(columns))]

    monkeypatch.setattr(strategies, "Validation", Known)
    monkeypatch.setattr(strategies, "_profiled", lambda features, task, seed: [0, 1, 2])
    base = pd.DataFrame({"target": np.arange(6.0)})
    columns = {name: np.arange(6.0) for name in "abc"}
    worth[(2,)] = 0.2
    choice = one_at_a_time(base, "target", columns, "regression", 0, queries=50)
    assert choice.names == ("b", "c")


def test_all_joins_keeps_the_best_number(monkeypatch):
    class Known(Validation):
        def importances(self, matrix, seed):
            return np.arange(matrix.shape[1], 0, -1.0)

        def score(self, columns):
            return -abs(len(list(columns)) - best)

    monkeypatch.setattr(strategies, "Validation", Known)
    base = pd.DataFrame({"target": np.arange(6.0)})
    columns = {f"c{at:02}": np.arange(6.0) for at in range(23)}
    for best in range(24):
        choice = strategies.all_joins(base, "target", columns, "regression", 0)
        assert choice.names == tuple(columns)[:best]


def test_random_injection_keeps_what_is_ahead_of_all_noise_more_often_than_a_share(monkeypatch):
    weights = iter([[3.0, 1.0, 0.1, 2.0], [3.0, 2.5, 0.1, 2.0]] * 5)
    scores = {(): 0.0, (0,): 2.0, (0, 1): 1.0, (0, 1, 2): 9.0}

    class Known(Validation):
        def importances(self, matrix, seed):
            return np.array(next(weights))

        def score(self, columns):
            return scores[tuple(sorted(columns))]

    monkeypatch.setattr(strategies, "Validation", Known)
    monkeypatch.setattr(strategies, "sparse_weights", lambda *_: np.zeros(4))
    base = pd.DataFrame({"target": np.arange(6.0)})
    columns = {name: np.arange(6.0) for name in "abc"}
    # Ahead of the noise in all, in half and in none of ten: never c, and from .6 on only a.
    choice = strategies.random_injection(base, "target", columns, "regression", 0)
    assert choice.names == ("a",)


def test_noise_is_as_the_rows_are():
    rng = np.random.default_rng(0)
    matrix = standardised(rng.normal(size=(5, 40)) + np.arange(5)[:, None])
    noise = np.column_stack([noise_like(matrix, rng) for _ in range(4000)])
    assert noise_like(matrix, rng).shape == (5, 8)
    assert np.allclose(noise.mean(axis=1), matrix.mean(axis=1), atol=0.05)
    assert np.allclose(np.cov(noise), np.cov(matrix), atol=0.05)


def test_standardised_columns_have_mean_0_and_deviation_1():
    matrix = standardised(np.array([[1.0, 5.0], [3.0, np.nan], [np.nan, 5.0]]))
    assert matrix.tolist() == [[-1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("task", TASKS)
def test_sparse_weights_are_those_of_what_counts(task):
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(300, 6))
    values = matrix[:, 2] * 2
    if task == "classification":
        values = np.where(values > 0, "yes", "no").astype(object)
    weights = sparse_weights(matrix, values, task)
    assert weights.argmax() == 2
    assert np.median(weights) < 0.05 * weights.max()
    assert not sparse_weights(np.zeros((300, 2)), values, task).any()


def test_features_are_of_the_base_table_first():
    base = pd.DataFrame({"t": [1.0, 2.0, 3.0], "a": ["x", "y", None], "same": [1, 1, 1]})
    features = features_of(base, "t", {"b": [1, None, 3]}, "regression")
    assert features.names == ("a", "b")
    assert (features.own, features.candidates, features.texts.tolist()) == ([0], [1], [True, False])
    assert np.array_equal(features.matrix, [[0, 1], [1, np.nan], [np.nan, 3]], equal_nan=True)
    assert features.values.tolist() == [1, 2, 3]


def test_validation_counts_its_fits_once(problem):
    features = features_of(problem.base, problem.target, problem.candidates, problem.task)
    validation = Validation(features, problem.task, 0)
    true = features.names.index("true-0")
    assert validation.score([0, true]) == validation.score([true, 0]) > validation.score([])
    assert validation.fits == 6


def everything(base, target, candidates, task, seed):
    return Choice(tuple(candidates), 0.0, 0)


def nothing(base, target, candidates, task, seed):
    return Choice((), 0.0, 0)


def the_truth(base, target, candidates, task, seed):
    return Choice(tuple(name for name in candidates if name.startswith("true")), 0.0, 0)


@pytest.fixture(scope="module")
def result(problem):
    chosen = {"nothing": nothing, "plan": the_truth, "all joins": everything}
    return judged(problem, chosen, splits=2)


def test_gains_are_over_the_base_table(problem, result):
    assert result["strategies"]["nothing"]["gain"] == dict.fromkeys(MODELS, 0.0)
    assert json.loads(json.dumps(result)) == result
    for model in MODELS:
        truth = result["strategies"]["plan"]
        assert truth["gain"][model] > 0.1
        assert len(truth["gains"][model]) == len(result["base"][model]) == 2
        assert truth["gain"][model] == pytest.approx(
            np.mean(truth["scores"][model]) - np.mean(result["base"][model])
        )
    assert result["strategies"]["plan"]["gain"]["trees"] > 0.2
    assert (result["rows"], result["candidates"]) == (200, 12)


def test_a_strategy_is_held_against_the_best_published_one(result):
    comparison = against_published(result, "plan")
    for model in MODELS:
        mine, theirs = (result["strategies"][name]["gain"][model] for name in ("plan", "all joins"))
        assert comparison[model]["best"] == "all joins"
        assert comparison[model]["at_least"] == (mine >= theirs)
        assert 0 <= comparison[model]["wins"] <= 2
    assert not against_published(result, "nothing")["trees"]["at_least"]
    with pytest.raises(InputError, match="beside published"):
        against_published(result, "all joins")


def test_strategies_see_no_row_that_is_held_back(problem):
    seen = []

    def watching(base, target, candidates, task, seed):
        seen.append(set(base["key"]))
        assert all(len(column) == len(base) for column in candidates.values())
        return Choice((), 0.0, 0)

    judged(problem, {"watching": watching}, splits=2)
    for seed, keys in enumerate(seen):
        learn, test = held_back_rows(problem, seed)
        assert sorted([*learn, *test]) == list(range(200))
        assert len(test) == 60
        assert keys == set(problem.base["key"].iloc[learn])
    assert seen[0] != seen[1]


def test_rows_of_candidates_are_those_of_the_base_table():
    base = pd.DataFrame({"id": np.arange(40), "target": np.arange(40.0)})
    twice = Problem("twice", base, "target", "regression", {"id2": np.arange(40) * 2})

    def checking(base, target, candidates, task, seed):
        assert (np.asarray(candidates["id2"]) == 2 * base["id"].to_numpy()).all()
        return Choice(("id2",), 0.0, 0)

    assert judged(twice, {"checking": checking}, splits=1)["strategies"]["checking"]["names"] == [
        ["id2"]
    ]


def test_trees_learn_from_few_rows():
    made = planted(0, n_rows=50, n_true=1, n_noise=0)
    outcome = judged(made, {"plan": the_truth}, splits=3)
    assert outcome["strategies"]["plan"]["gain"]["trees"] > 0.2


def test_what_is_no_candidate_is_refused(problem):
    with pytest.raises(InputError, match="no candidates"):
        judged(problem, {"wrong": lambda *_: Choice(("own",), 0.0, 0)}, splits=1)
    with pytest.raises(InputError, match="at least one split"):
        judged(problem, splits=0)


def test_planted_columns_are_what_they_say():
    made = planted(3, n_rows=2000, n_true=2, n_noise=5)
    target = made.base["target"]
    correlations = {
        name: abs(column.astype(float).abs().corr(target)) if name == "true-1" else None
        for name, column in made.candidates.items()
    }
    assert correlations["true-1"] > 0.3
    assert abs(made.candidates["true-0"].corr(target)) > 0.5
    assert abs(made.candidates["noise-0"].corr(target)) < 0.1
    assert made.candidates["noise-4"].dropna().isin(["red", "green", "blue"]).all()
    assert all(0.05 < column.isna().mean() < 0.15 for column in made.candidates.values())
    again = planted(3, n_rows=2000, n_true=2, n_noise=5)
    assert made.base.equals(again.base)
    classes = planted(3, task="classification").base["target"].value_counts()
    assert classes.max() - classes.min() <= 2


def test_the_demo_target_is_joined_by_equal_text(tmp_path):
    demo = real_problem(DEMO, tmp_path)
    assert (demo.target, demo.task) == ("days", "regression")
    assert demo.candidates
    assert all(len(column) == len(demo.base) for column in demo.candidates.values())
    assert not set(demo.candidates) & set(demo.base.columns)
    assert "country" not in demo.base.columns
    with pytest.raises(LakeError, match="'nowhere'"):
        real_problem("nowhere", tmp_path)


def test_the_command_judges_the_published_strategies(monkeypatch, tmp_path):
    monkeypatch.setattr(held_back, "planted", lambda seed, task: planted(seed, task=task, **SMALL))
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    arguments = ["acquisition", "held-back", "--targets", "planted-regression", "--splits", "1"]
    run = CliRunner().invoke(main, [*arguments, "--write"])
    assert run.exit_code == 0, run.output
    output = json.loads(run.output)
    assert json.loads((tmp_path / "acquisition" / "held-back.json").read_text()) == {
        **output,
        "origin": ANY,
    }
    [target] = output["targets"]
    assert (target["problem"], target["rows"]) == ("planted-regression", 60)
    assert set(target["strategies"]) == set(STRATEGIES)
    wrong = CliRunner().invoke(main, ["acquisition", "held-back", "--targets", "planted"])
    assert wrong.exit_code == 2
    assert "Got 'planted'" in wrong.stderr


SMALL = {"n_rows": 60, "n_true": 1, "n_noise": 2}


@pytest.mark.lakes
@pytest.mark.long
def test_real_targets_are_joined_by_equal_text(tmp_path):
    if not all((SHARED / name / "tables.tar.gz").is_file() for name in LAKES):
        pytest.skip("the real lakes are not on this machine")
    hate_crimes = real_problem("hate-crimes", tmp_path)
    assert hate_crimes.task == "regression"
    assert len(hate_crimes.base) == 50
    assert len(hate_crimes.candidates) > 100
    assert not {"state", hate_crimes.target} & set(hate_crimes.candidates)
    assert all(len(column) == 50 for column in hate_crimes.candidates.values())
