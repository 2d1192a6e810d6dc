"""Joins of samples and plans measured on them: against whole tables, and laws of thinning."""

import math
from collections import Counter
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from long_runs import EVERYTHING
from pyarrow import csv
from scipy.stats import chisquare

from benchmarks.acquisition.plan_figures import measures_of
from benchmarks.dance_published.natural import natural_graph
from benchmarks.datasets.tables import web_sources
from pexeso.acquisition import samples as thinned_join
from pexeso.acquisition.candidates import rank_candidates
from pexeso.acquisition.evaluation import Evaluator
from pexeso.acquisition.exact import find_plans
from pexeso.acquisition.graph import JoinGraph, edges_of
from pexeso.acquisition.intervals import correlation_estimate, quality_estimate
from pexeso.acquisition.key_hashes import KeyTest, hash_positions, with_key_tokens
from pexeso.acquisition.plans import AcquisitionRequest, Join, JoinTree, Terminal
from pexeso.acquisition.quality import Dependency
from pexeso.acquisition.samples import SampledPlans, TreeEdge, sample_join, with_intervals
from pexeso.acquisition.searches import Market
from pexeso.acquisition.tables import CodedColumns
from pexeso.joins.measures import correlation, join_counts
from tests.acquisition.motivating_tables import joined
from tests.acquisition.oracle import market_table, quality
from tests.acquisition.sampled_pairs import correlated_sample

EDGES = [TreeEdge("A", "B", ("k",)), TreeEdge("C", "B", ("l",))]
WANTED = {"A": ["a"], "B": ["b"], "C": ["c"]}


def drawn(rng, n, columns, n_keys=4):
    return pa.table(
        {
            name: pa.array(
                [None if v == n_keys else f"{v}" for v in rng.integers(0, n_keys + 1, n)]
            )
            for name in columns
        }
    )


def chain(rng, n=8, n_keys=4):
    return {
        "A": drawn(rng, n, ["k", "a"], n_keys),
        "B": drawn(rng, n, ["k", "l", "b"], n_keys),
        "C": drawn(rng, n, ["l", "c"], n_keys),
    }


def by_hand(tables, edges, wanted):
    counts = Counter()
    names = sorted(tables)
    for rows in product(*(tables[name].to_pylist() for name in names)):
        row = dict(zip(names, rows, strict=True))
        if all(
            row[e.left][c] is not None and row[e.left][c] == row[e.right][c]
            for e in edges
            for c in e.names
        ):
            counts[tuple(row[name][c] for name in names for c in wanted.get(name, []))] += 1
    return counts


def counted(join):
    rows = zip(*join.rows.to_pydict().values(), strict=True)
    return Counter(dict(zip(rows, join.counts.tolist(), strict=True)))


def shuffled(rng, tables):
    return {
        name: table.take(pa.array(rng.permutation(table.num_rows)))
        for name, table in tables.items()
    }


def test_without_thinning_it_is_the_join_row_by_row():
    rng = np.random.default_rng(0)
    for _ in range(25):
        tables = chain(rng)
        expected = by_hand(tables, EDGES, WANTED)
        for start in (None, "B", "C"):
            join = sample_join(tables, EDGES, WANTED, start=start)
            assert counted(join) == expected
            assert join.thinning == 1
            assert join.n_rows == sum(expected.values()) == join.steps[-1].size


def test_columns_of_one_name_in_tables_that_are_not_joined_on_them_stay_apart():
    rng = np.random.default_rng(1)
    edges = [TreeEdge("A", "B", ("k",)), TreeEdge("B", "C", ("l",)), TreeEdge("C", "D", ("k",))]
    wanted = {"A": ["k"], "B": ["k", "l"], "C": ["k"], "D": ["k", "d"]}
    for _ in range(10):
        tables = {
            "A": drawn(rng, 6, ["k"], 3),
            "B": drawn(rng, 6, ["k", "l"], 3),
            "C": drawn(rng, 6, ["k", "l"], 3),
            "D": drawn(rng, 6, ["k", "d"], 3),
        }
        join = sample_join(tables, edges, wanted)
        assert join.rows.column_names == ["A.k", "B.k", "B.l", "C.k", "D.k", "D.d"]
        assert counted(join) == by_hand(tables, edges, wanted)
    kept = sample_join(tables, edges, {"A": ["k"]}, keep_keys=True)
    assert kept.key_columns == {("k",): [("A.k",), ("C.k",)], ("l",): [("B.l",)]}
    assert kept.rows.column_names == ["A.k", "B.l", "C.k"]


def test_keys_are_compared_as_tokens():
    tables = {
        "A": pa.table({"k": [1, 1, 2], "a": ["x", "y", "z"]}),
        "B": pa.table({"k": ["1", "2.0", "?"], "b": ["u", "v", "w"]}),
    }
    join = sample_join(tables, EDGES[:1], {"A": ["a", "k"], "B": ["b"]})
    assert counted(join) == {("x", "1", "u"): 1, ("y", "1", "u"): 1, ("z", "2", "v"): 1}


def test_the_order_of_rows_changes_nothing_and_the_seed_does():
    rng = np.random.default_rng(2)
    tables = chain(rng, 60, 12)
    options = {"eta": 50, "rho": 0.4}
    joins = [counted(sample_join(tables, EDGES, WANTED, seed=seed, **options)) for seed in (5, 6)]
    assert joins[0] != joins[1]
    for _ in range(3):
        again = sample_join(shuffled(rng, tables), EDGES, WANTED, seed=5, **options)
        assert counted(again) == joins[0]


def test_ac16_no_thinning_up_to_eta_and_never_of_the_last_result():
    tables = chain(np.random.default_rng(3), 30)
    first, last = sample_join(tables, EDGES, WANTED).steps
    assert last.size > first.size > 1
    assert sample_join(tables, EDGES, WANTED, eta=first.size, rho=0.1).thinning == 1
    join = sample_join(tables, EDGES, WANTED, eta=first.size - 1, rho=0.5)
    assert [step.rate for step in join.steps] == [0.5, 1]
    assert join.steps[0].size == first.size
    assert sample_join(tables, EDGES, WANTED, eta=first.size - 1, rho=1.0).n_rows == last.size


def intermediate(tables, seed, **options):
    tables = tables | {"C": pa.table({"l": ["0"], "c": ["c"]})}
    return sample_join(tables, EDGES, {"A": ["a"], "B": ["b"]}, seed=seed, eta=1, **options)


def one_to_many(rng, n):
    b = pa.table({"k": rng.integers(0, 5, n), "l": ["0"] * n, "b": rng.integers(0, 3, n)})
    return {"A": pa.table({"k": rng.integers(0, 5, n), "a": rng.integers(0, 3, n)}), "B": b}


def test_ac16_the_expected_size_is_rho_times_the_size():
    tables = one_to_many(np.random.default_rng(4), 30)
    size = intermediate(tables, 0, rho=1.0).n_rows
    for rho in (0.2, 0.7):
        sizes = [intermediate(tables, seed, rho=rho).n_rows for seed in range(60)]
        deviation = math.sqrt(size * rho * (1 - rho) / len(sizes))
        assert abs(np.mean(sizes) - rho * size) < 4 * deviation
        assert np.std(sizes) == pytest.approx(math.sqrt(size * rho * (1 - rho)), rel=0.3)


def test_ac16_thinning_while_pairs_are_formed_has_the_law_of_thinning_afterwards(monkeypatch):
    monkeypatch.setattr(thinned_join, "_CHUNK", 2)
    tables = {
        "A": pa.table({"k": ["1", "1", "1", "2"], "a": ["x", "x", "x", "y"]}),
        "B": pa.table({"k": ["1", "2", "2"], "l": ["0"] * 3, "b": ["u", "v", "v"]}),
    }
    seen = Counter()
    n_seeds = 700 if EVERYTHING else 150
    for seed in range(n_seeds):
        counts = counted(intermediate(tables, seed, rho=0.4))
        seen[counts["x", "u"], counts["y", "v"]] += 1
    expected = {
        (i, j): math.comb(3, i) * math.comb(2, j) * 0.4 ** (i + j) * 0.6 ** (5 - i - j)
        for i in range(4)
        for j in range(3)
    }
    assert set(seen) <= set(expected)
    observed = [seen[cell] for cell in expected]
    assert chisquare(observed, np.array(list(expected.values())) * n_seeds).pvalue > 0.001


def test_chunks_change_nothing(monkeypatch):
    tables = chain(np.random.default_rng(5), 80, 10)
    options = {"eta": 50, "rho": 0.5, "seed": 1}
    whole = counted(sample_join(tables, EDGES, WANTED, **options))
    monkeypatch.setattr(thinned_join, "_CHUNK", 7)
    assert counted(sample_join(tables, EDGES, WANTED, **options)) == whole


def test_ac15_thinned_estimates_come_nearer_as_rho_grows():
    rng = np.random.default_rng(6)
    x = rng.integers(0, 4, 600)
    tables = {
        "A": pa.table({"k": rng.integers(0, 60, 600), "a": rng.integers(0, 4, 600)}),
        "B": pa.table({"k": rng.integers(0, 60, 600), "l": x, "b": x}),
        "C": pa.table({"l": rng.integers(0, 4, 40), "c": rng.integers(0, 4, 40)}),
    }
    exact = sample_join(tables, EDGES, WANTED)
    true = correlation(exact.rows, ["B.b"], ["C.c"], counts=exact.counts)
    errors = []
    for rho in (0.01, 0.2, 1.0):
        joins = [
            sample_join(tables, EDGES, WANTED, eta=100, rho=rho, seed=seed) for seed in range(10)
        ]
        values = [correlation(one.rows, ["B.b"], ["C.c"], counts=one.counts) for one in joins]
        errors.append(np.mean(np.abs(np.array(values) - true)))
    assert errors[0] > errors[1] > errors[2] == 0


def test_p10_a_cap_bounds_what_is_left_and_a_fixed_rate_does_not():
    tables = one_to_many(np.random.default_rng(7), 200)
    tables["C"] = pa.table({"l": ["0"], "c": ["c"]})
    fixed = sample_join(tables, EDGES, WANTED, eta=500, rho=0.5)
    assert fixed.steps[0].n_rows > 500
    steps = [
        sample_join(tables, EDGES, WANTED, eta=500, rho="cap", seed=seed).steps[0]
        for seed in range(20)
    ]
    assert {step.rate for step in steps} == {500 / fixed.steps[0].size}
    assert np.mean([step.n_rows for step in steps]) == pytest.approx(500, abs=4 * math.sqrt(25))


def test_ac17_count_of_a_chain_by_all_subsets_of_keys():
    rng = np.random.default_rng(9)
    tables = chain(rng, 7, 3)
    whole = sample_join(tables, EDGES, WANTED).n_rows
    rates, expected = (0.5, 0.2), 0.0
    for one, two in product(product([0, 1], repeat=3), repeat=2):
        kept = [[str(i) for i in range(3) if side[i]] for side in (one, two)]
        sampled = dict(tables)
        for name, column, values in (
            ("A", "k", kept[0]),
            ("B", "k", kept[0]),
            ("B", "l", kept[1]),
            ("C", "l", kept[1]),
        ):
            rows = [value in values for value in sampled[name][column].to_pylist()]
            sampled[name] = sampled[name].filter(pa.array(rows, pa.bool_()))
        chance = math.prod(
            rate if keep else 1 - rate
            for side, rate in zip((one, two), rates, strict=True)
            for keep in side
        )
        expected += chance * sample_join(sampled, EDGES, WANTED).n_rows
    assert whole > 5
    assert expected / math.prod(rates) == pytest.approx(whole, rel=1e-12)


def test_an_interval_of_a_tree_with_two_tests_covers_its_correlation():
    rng = np.random.default_rng(10)
    kinds, others = rng.integers(0, 3, 900), rng.integers(0, 3, 900)
    k, l_a, l_c = rng.integers(0, 900, 1500), rng.integers(0, 900, 1500), rng.integers(0, 900, 1500)
    tables = {
        "A": pa.table({"k": k, "a": kinds[k].astype(str)}),
        "B": pa.table({"k": (l_a * 7) % 900, "l": l_a, "b": others[l_a].astype(str)}),
        "C": pa.table({"l": l_c, "c": others[l_c].astype(str)}),
    }
    exact = sample_join(tables, EDGES, WANTED)
    true = correlation(exact.rows, ["B.b"], ["C.c"], counts=exact.counts)
    tests = {"A": ["k"], "B": ["k", "l"], "C": ["l"]}
    edges = [KeyTest(("k",), 0.6), KeyTest(("l",), 0.5)]
    for seed in range(5):
        samples = {
            name: correlated_sample(
                tables[name], [edge for edge in edges if edge.names[0] in names], seed=seed
            )
            for name, names in tests.items()
        }
        join = sample_join(samples, EDGES, WANTED, keep_keys=True)
        estimate = correlation_estimate(
            join.rows,
            join.counts,
            edges,
            ["B.b"],
            ["C.c"],
            seed=seed,
            key_columns=join.key_columns,
        )
        assert estimate.reliable
        assert estimate.low <= true <= estimate.high
        assert estimate.high - estimate.low < 1


def market(natural: bool, n_keys: int = 4000, skewed: bool = False):
    draw = np.random.default_rng(3)
    key = (
        np.minimum(draw.geometric(3 / n_keys, 3 * n_keys), n_keys) - 1
        if skewed
        else (draw.integers(0, n_keys, 3 * n_keys))
    )
    group = np.arange(n_keys) % 3
    kind = np.where(draw.random(len(key)) < 0.7, group[key], draw.integers(0, 3, len(key)))
    people = market_table("people", pa.table({"zip": key, "kind": kind}), owned=True)
    dirty = np.where(draw.random(n_keys) < 0.2, 9, group)
    name = "zip" if natural else "code"
    places = market_table(
        "places",
        pa.table({name: np.arange(n_keys), "group": dirty, "area": group}),
        dependencies=[Dependency(("area",), "group")],
    )
    coded = CodedColumns()
    if natural:
        graph = natural_graph([people, places], coded)
    else:
        tables = {"people": people, "places": places}
        pairs = {("people", "places"): [("zip", "code")]}
        graph = JoinGraph.of(tables.values(), edges_of(tables, pairs, coded))
    have = Terminal.of(graph, "kind", "people")
    want = (Terminal.of(graph, "group", "places"), Terminal.of(graph, "area", "places"))
    return graph, AcquisitionRequest((have,), want), coded


@pytest.mark.parametrize(("natural", "skewed"), [(True, False), (False, False), (True, True)])
def test_intervals_hold_the_measures_of_whole_tables(natural, skewed):
    graph, request, coded = market(natural, skewed=skewed)
    (plan,) = find_plans(graph, request, coded).plans
    held = 0
    for seed in range(20):
        samples = SampledPlans(graph, 0.25, seed)
        estimates = samples.estimates(plan.tree)
        evaluator = Evaluator(graph, coded, rows_of=samples.rows_of)
        measured = measures_of(evaluator, plan.tree)
        assert estimates.correlation.plug_in == pytest.approx(measured.correlation, abs=1e-9)
        assert estimates.quality.plug_in == pytest.approx(measured.quality, abs=1e-9)
        assert estimates.n_rows == measured.n_rows
        assert estimates.n_rows / samples.share_of_rows(plan.tree) == pytest.approx(12_000, rel=0.2)
        assert estimates.correlation.reliable
        held += estimates.correlation.low <= plan.measures.correlation <= estimates.correlation.high
        held += estimates.quality.low <= plan.measures.quality <= estimates.quality.high
    assert held >= 35  # of 40, each with a probability of 95 % or more


def test_all_rows_are_the_measures_themselves():
    graph, request, coded = market(natural=True)
    (plan,) = find_plans(graph, request, coded).plans
    estimates = SampledPlans(graph, 1.0).estimates(plan.tree)
    for estimate, value in (
        (estimates.correlation, plan.measures.correlation),
        (estimates.quality, plan.measures.quality),
    ):
        assert estimate.low == estimate.high == pytest.approx(value, abs=1e-9)


def test_joins_with_few_keys_are_not_thinned():
    graph, request, coded = market(natural=True, n_keys=500)
    (plan,) = find_plans(graph, request, coded).plans
    samples = SampledPlans(graph, 0.1)
    assert samples.rows_of(plan.tree, "people") is None
    assert samples.share_of_rows(plan.tree) == 1


def test_plans_of_samples_are_not_proved():
    graph, request, coded = market(natural=True)
    for rate, is_proved in ((0.25, False), (1.0, True)):
        samples = SampledPlans(graph, rate)
        evaluator = Evaluator(graph, coded, rows_of=samples.rows_of)
        outcome = find_plans(graph, request, coded, evaluator=evaluator)
        (plan,) = with_intervals(outcome, samples).plans
        assert plan.optimal == is_proved
        assert plan.estimates.correlation.plug_in == pytest.approx(plan.measures.correlation)


N = 4000


def market_of_kinds():
    random = np.random.default_rng(3)
    kinds = random.integers(0, 4, N)
    mine = pa.table({"id": np.repeat(np.arange(N), 2), "x": np.repeat(kinds, 2)})
    other = pa.table({"key": [f"{at}.0" for at in range(N)] + [None], "y": [*kinds % 2, 1]})
    tables = {
        "mine": market_table("mine", mine, owned=True),
        "other": market_table("other", other),
    }
    coded = CodedColumns()
    edges = edges_of(tables, {("mine", "other"): [("id", "key")]}, coded)
    return JoinGraph.of(tables.values(), edges), coded


def tree_of(graph):
    edge = graph.edge("mine", "other")
    return JoinTree.of(
        [Join("mine", "other", edge.join_sets[0])], [("mine", "x")], [("other", "y")]
    )


def test_a_key_is_in_both_samples_or_in_none():
    graph, coded = market_of_kinds()
    tree, sampled = tree_of(graph), SampledPlans(graph, 0.25, 1, coded)
    mine, other = sampled.rows_of(tree, "mine"), sampled.rows_of(tree, "other")
    assert np.array_equal(mine[::2], mine[1::2])
    assert np.array_equal(mine[::2], other[:N])
    assert not other[N]  # no key
    assert abs(other.sum() - N / 4) < 4 * np.sqrt(N * 0.25 * 0.75)
    again = SampledPlans(graph, 0.25, 1)
    assert np.array_equal(again.rows_of(tree, "other"), other)
    assert not np.array_equal(SampledPlans(graph, 0.25, 2).rows_of(tree, "other"), other)
    smaller = SampledPlans(graph, 0.1, 1).rows_of(tree, "other")
    assert not (smaller & ~other).any()


def test_plans_are_measured_on_the_rows_of_the_sample():
    graph, coded = market_of_kinds()
    sampled = SampledPlans(graph, 0.25, 0, coded)
    request = AcquisitionRequest(
        (Terminal.of(graph, "x", "mine"),), (Terminal.of(graph, "y", "other"),)
    )
    tree = tree_of(graph)
    expected = measures_of(Evaluator(graph, coded, rows_of=sampled.rows_of), tree)
    assert expected.n_rows == 2 * sampled.rows_of(tree, "other").sum()
    samples = Market(graph, coded, sampled)
    [plan] = samples.plans(request, math.inf).plans
    assert plan.measures == expected
    whole = Market(graph, coded).plans(request, math.inf).plans[0].measures
    assert whole.n_rows == 2 * N
    assert expected.correlation == pytest.approx(whole.correlation, abs=0.05)
    [ranked] = rank_candidates(graph, request.have, coded=coded, rows_of=samples.rows_of).plans
    assert ranked.measures == expected
    assert rank_candidates(graph, request.have, coded=coded).plans[0].measures == whole


def test_a_sample_without_rows_has_no_plan():
    graph, coded = market_of_kinds()
    request = AcquisitionRequest(
        (Terminal.of(graph, "x", "mine"),), (Terminal.of(graph, "y", "other"),)
    )
    market_of_none = Market(graph, coded, SampledPlans(graph, 1e-9, 0, coded))
    outcome = market_of_none.plans(request, math.inf)
    assert outcome.plans == ()
    assert "no join of them has a row" in outcome.reason
    rows_of = market_of_none.rows_of
    assert rank_candidates(graph, request.have, coded=coded, rows_of=rows_of).plans == ()


def test_few_keys_are_not_sampled():
    tables = [
        market_table("a", pa.table({"k": ["x", "y"], "v": [1, 2]})),
        market_table("b", pa.table({"k": ["x", "y"], "w": [1, 2]})),
    ]
    graph = natural_graph(tables, CodedColumns())
    edge = graph.edge("a", "b")
    tree = JoinTree.of([Join("a", "b", edge.join_sets[0])], [("a", "v")], [("b", "w")])
    assert SampledPlans(graph, 0.5).rows_of(tree, "a") is None


def join_of(left, right, key, names):
    """Return the join of two tables over some columns, as distinct rows with counts."""
    left, right = (with_key_tokens(table, (key,)) for table in (left, right))
    sides = [[n for n in names if n in t.column_names and n != key] for t in (left, right)]
    return join_counts(left, right, (key,), left_names=sides[0], right_names=sides[1])


def estimates(left, right, key, x, y, rule, *, rate=1.0, seed=0, unsampled=0.0):
    """Return the correlation and the quality that the join of two samples tells."""
    test, drawn = [KeyTest((key,), rate)], {"seed": seed, "unsampled": [unsampled]}
    rows, counts = join_of(left, right, key, [x, y])
    of_quality = join_of(left, right, key, [*rule.left, rule.right])
    return (
        correlation_estimate(rows, counts, test, [x], [y], **drawn),
        quality_estimate(*of_quality, test, [rule], **drawn),
    )


def test_it_measures_the_join_with_keys_as_tokens():
    rng = np.random.default_rng(0)
    left = pa.table({"k": rng.integers(0, 40, 200), "x": rng.integers(0, 3, 200).astype(str)})
    right = pa.table({"k": rng.integers(0, 60, 300), "y": rng.integers(0, 4, 300).astype(str)})
    texts = right.set_column(0, "k", right["k"].cast(pa.float64()))
    whole = joined(left, right, ["k"])
    for rule in (Dependency(("k",), "y"), Dependency(("y",), "x")):
        of_correlation, of_quality = estimates(left, texts, "k", "x", "y", rule)
        assert of_correlation.value == pytest.approx(correlation(whole, ["x"], ["y"]), rel=1e-12)
        assert of_quality.value == quality(whole, [rule])
    rows, counts = join_of(left, texts, "k", ["y"])
    assert (rows.column_names, int(counts.sum())) == (["k", "y"], whole.num_rows)


def test_rows_without_a_key_do_not_count():
    left = pa.table({"k": ["a", "b", "?", None], "x": ["1", "2", "3", "4"]})
    right = pa.table({"k": ["a", "c", "?", None], "y": ["1", "2", "3", "4"]})
    rows, _ = join_of(left, right, "k", ["x", "y"])
    assert rows.to_pylist() == [{"k": "a", "x": "1", "y": "1"}]


def squares_beyond(left, right, rate, seed):
    """Return the sum of the squared rows of the join of each key that is in no sample."""
    one, other = (Counter(hash_positions(t, ["k"], seed=seed).tolist()) for t in (left, right))
    return float(sum((one[key] * other[key]) ** 2 for key in one if key > rate))


def test_a_missing_giant_is_known_from_what_whole_tables_tell():
    """One key has nine tenths of the join; the samples that lack it look like all others."""
    keys = np.concatenate([np.arange(2000), np.zeros(1000, int)])
    left = pa.table({"k": keys, "x": (keys == 0).astype(str)})
    right = pa.table({"k": keys[:2050], "y": (keys[:2050] % 3).astype(str)})
    n_missing = 0
    for seed in range(12):
        samples = [correlated_sample(t, [KeyTest(("k",), 0.2)], seed=seed) for t in (left, right)]
        if 0 in samples[0]["k"].to_pylist():
            continue
        drawn = {"rate": 0.2, "seed": seed}
        squares = squares_beyond(left, right, 0.2, seed)
        rule = Dependency(("y",), "x")
        for blind in estimates(*samples, "k", "x", "y", rule, **drawn):
            assert blind.reliable
        for warned in estimates(*samples, "k", "x", "y", rule, **drawn, unsampled=squares):
            assert not warned.reliable
            assert "heavy" in warned.reason
        n_missing += 1
    assert n_missing > 5


def require_coverage(left, right, key, x, y, rule, rate, n_trials, share):
    """Draw samples, and require that intervals hold the values of whole tables so often."""
    exact = estimates(left, right, key, x, y, rule)
    drawn = []
    for seed in range(n_trials):
        samples = [correlated_sample(t, [KeyTest((key,), rate)], seed=seed) for t in (left, right)]
        squares = squares_beyond(left.rename_columns({key: "k"}),
                                 right.rename_columns({key: "k"}), rate, seed)  # fmt: skip
        drawn.append(estimates(*samples, key, x, y, rule, rate=rate, seed=seed, unsampled=squares))
    for whole, intervals in zip(exact, zip(*drawn, strict=True), strict=True):
        held = [one.low - 1e-9 <= whole.value <= one.high + 1e-9 for one in intervals]
        widths = [one.high - one.low for one in intervals if one.reliable]
        assert np.mean(held) >= share
        assert len(widths) > 0.2 * n_trials
        assert np.mean(widths) < 1


def test_intervals_cover_the_exact_values_in_most_of_60_samples():
    """Of 95 %, 3 deviations; keys have from one row to a few, by a power law."""
    rng, n_keys, tables = np.random.default_rng(0), 300, []
    kind = rng.integers(0, 6, n_keys)
    for name in "xy":
        used_keys = np.sort(rng.permutation(n_keys)[: n_keys * 4 // 5])
        weights = np.arange(1.0, len(used_keys) + 1) ** -0.5
        counts = np.maximum(np.round(weights / weights.sum() * 2 * len(used_keys)), 1).astype(int)
        keys = np.repeat(used_keys, rng.permutation(counts))
        others = rng.integers(0, 6, len(keys))
        values = np.where(rng.random(len(keys)) < 0.7, kind[keys], others)
        tables.append(pa.table({"k": keys, name: values.astype(str)}))
    require_coverage(*tables, "k", "x", "y", Dependency(("x",), "y"), 0.4, 60, 0.9)


@pytest.mark.lakes
def test_intervals_cover_in_samples_of_shared_tables(shared_lakes):
    with web_sources(["baseball"]).open() as folders:
        people, awards = (
            csv.read_csv(next(folders["baseball"].rglob(f"{name}.csv"))).select(columns)
            for name, columns in (
                ("People", ["playerID", "throws"]),
                ("AwardsPlayers", ["playerID", "awardID", "lgID"]),
            )
        )
    rule = Dependency(("awardID",), "lgID")
    require_coverage(people, awards, "playerID", "throws", "awardID", rule, 0.5, 10, 0.8)
