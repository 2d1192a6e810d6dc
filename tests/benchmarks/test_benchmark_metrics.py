import numpy as np
import pytest
import torch

from benchmarks.checking import compare, normal_form, oracle_answer, oracle_sample
from benchmarks.lake import BenchmarkLake, BenchmarkQuery
from benchmarks.metrics import Run, evaluate
from benchmarks.timing import Measured


def run(answers, right, seconds=((1.0, 3.0, 2.0), (5.0, 4.0, 9.0), (7.0, 7.0, 7.0)), work=()):
    return Run(
        Measured(np.array(seconds), np.array(seconds) / 2, list(work)),
        answers,
        right,
        1.5,
        100,
        None,
        20,
    )


def query(n_values=2, name="q"):
    return BenchmarkQuery(
        name, torch.zeros((n_values, 3)), torch.ones(n_values, dtype=torch.int64), n_values, 0.06, 1
    )


def test_times_are_quantiles_over_queries_of_medians_over_repeats():
    values = evaluate(run([{}] * 3, [{}] * 3))
    assert values["median_seconds"] == 5.0  # of 2, 5, 7
    assert values["p90_seconds"] == pytest.approx(6.6)
    assert values["median_processor_seconds"] == 2.5
    assert values["repeat_spread"] == 1.0  # of 2/2, 5/5, 0
    assert (values["build_seconds"], values["index_bytes"]) == (1.5, 100)
    assert (values["peak_build_bytes"], values["peak_query_bytes"]) == (None, 20)


def test_a_batch_is_told_whole_and_for_each_query_column():
    seconds = np.array([[8.0, 4.0, 6.0, 5.0, 7.0]])
    work = [{"distances": 40, "bytes_read": 1200, "seconds_map": 2.0}]
    batch = Measured(seconds, seconds / 2, work, batch=4)
    values = evaluate(Run(batch, [{}] * 4, [{}] * 4, 1.5, 100, None, 20))
    assert values["median_seconds"] == 1.5
    assert values["p90_seconds"] == pytest.approx(7.6 / 4)  # over repeats
    assert values["median_processor_seconds"] == 0.75
    assert values["repeat_spread"] == pytest.approx(4 / 6)
    assert (values["distances"], values["bytes_read"]) == (10, 300)
    assert values["phases"] == {"map": 0.5}


def test_recall_is_not_told_where_nothing_exact_was_run():
    assert evaluate(run([{1: 5}] * 3, [None] * 3))["recall"] is None
    # The second query alone is known: one of two columns found, nothing wrong in it.
    values = evaluate(run([{8: 1}, {1: 5}, {}], [None, {1: 5, 2: 5}, None]))
    assert (values["recall"], values["precision"]) == (0.5, 1.0)


def test_recall_and_precision_count_columns_over_all_queries():
    right = [{1: 5, 2: 5}, {3: 1}, {}]
    assert evaluate(run([{1: 5}, {3: 1, 4: 1}, {}], right))["recall"] == pytest.approx(2 / 3)
    assert evaluate(run([{1: 5}, {3: 1, 4: 1}, {}], right))["precision"] == pytest.approx(2 / 3)
    nothing = evaluate(run([{}, {}, {}], right))
    assert (nothing["recall"], nothing["precision"]) == (0.0, 1.0)


def test_work_is_a_mean_over_queries_and_phases_are_medians():
    work = [
        {"distances": 1, "seconds_map": 0.1},
        {"distances": 5, "seconds_map": 0.3},
        {"distances": 3, "seconds_map": 0.2},
    ]
    values = evaluate(run([{}] * 3, [{}] * 3, work=work))
    assert values["distances"] == 3
    assert values["bytes_read"] is None
    assert values["phases"] == {"map": 0.2}


def test_a_column_given_twice_is_an_error():
    with pytest.raises(ValueError, match="column 3 more than once"):
        normal_form((torch.tensor([3, 3]), torch.tensor([1, 1])))


def test_float64_overrules_the_first_algorithm():
    answers = {"a": [{1: 1}, {2: 2}], "b": [{1: 1}, {2: 2}]}
    queries = [query(name="first"), query(name="second")]
    assert compare(answers, ["a", "b"], {}, queries) == []
    mismatches = compare(answers, ["a", "b"], {1: {2: 3}}, queries)
    assert [str(mismatch) for mismatch in mismatches] == [
        f"{name} and float64 differ on query 1 (second): column 2 has 2 matches, not 3 (1 in all)"
        for name in "ab"
    ]


def test_algorithms_that_are_not_exact_need_not_agree():
    answers = {"a": [{1: 1}], "b": [{}]}
    assert compare(answers, ["a"], {0: {1: 1}}, [query()]) == []
    assert len(compare(answers, ["a", "b"], {}, [query()])) == 1


def hand_made_lake():
    vectors = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=np.float32)
    return BenchmarkLake(
        "hand",
        vectors,
        np.array([0, 2, 3, 3]),
        np.array([0, 1, 2]),
        np.array([1, 1, 1]),
        np.array([2, 1, 4]),
        ["both", "third", "none"],
        {},
    )


def test_the_oracle_counts_rows_with_a_match():
    benchmark_query = BenchmarkQuery(
        "q",
        torch.tensor([[1.0, 0, 0], [0, 0, 1.0]]),
        torch.tensor([4, 1]),
        6,
        max_distance=0.06,
        needed=1,
    )
    assert oracle_answer(hand_made_lake(), benchmark_query) == {0: 4, 1: 1}


def test_the_oracle_is_asked_within_its_bound_and_once_at_least():
    lake, queries = hand_made_lake(), [query(5), query(2), query(4)]
    assert oracle_sample(lake, queries, max_pairs=10**6) == [0, 1, 2]
    assert oracle_sample(lake, queries, max_pairs=1) == [1]
    some = oracle_sample(lake, queries, max_pairs=20)
    assert 0 < sum(len(queries[number]) * 3 for number in some) <= 20
