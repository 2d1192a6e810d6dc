"""Joins of samples along trees: against joins formed row by row, and laws of thinning by chance."""

import math
from collections import Counter
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from long_runs import EVERYTHING
from scipy.stats import chisquare

from pexeso.acquisition import samples as thinned_join
from pexeso.acquisition.intervals import correlation_estimate
from pexeso.acquisition.key_hashes import KeyTest
from pexeso.acquisition.samples import TreeEdge, sample_join
from pexeso.joins.measures import correlation
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
        sizes = [intermediate(tables, seed, rho=rho).n_rows for seed in range(150)]
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
    n_seeds = 700 if EVERYTHING else 300
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
