"""Plans of deletions: prices, least cost against all plans, and statements run on the lake."""

import time
from collections import Counter
from dataclasses import replace
from itertools import product
from zipfile import ZipFile

import numpy as np
import pyarrow.parquet as pq
import pytest
from long_runs import EVERYTHING

from benchmarks.redundancy.measuring import find_containments
from benchmarks.redundancy.synthetic import synthetic_lake
from pexeso.errors import InputError
from pexeso.index import build_index
from pexeso.redundancy.holding import apply_plan
from pexeso.redundancy.plan import read_plan, write_plan
from pexeso.redundancy.planning import (
    Costs,
    RetentionProblem,
    best_with_statements,
    dominated,
    greedily_kept,
    plan_retention,
    read_accesses,
    read_costs,
    with_sources,
)
from pexeso.redundancy.schema_tokens import read_synonyms
from pexeso.redundancy.search import find_redundancy
from tests.redundancy.messy_lakes import messy_lake, worked_lake


def rows_of(table):
    return Counter(
        tuple("nan" if cell != cell else repr(cell) for cell in row.values())
        for row in table.to_pylist()
    )


def check(spark, lake, plan):
    kept = set(plan.keep)
    for deletion in plan.delete:
        assert deletion.parent in kept
        spark.read.parquet(str(lake / deletion.parent)).createOrReplaceTempView("parent_of_plan")
        sql = deletion.sql.replace(f"`{deletion.parent}`", "parent_of_plan")
        expected = spark.read.parquet(str(lake / deletion.table)).toArrow()
        got = spark.sql(sql).toArrow()
        assert got.column_names == expected.column_names
        assert rows_of(got) == rows_of(expected)
    spark.catalog.dropTempView("parent_of_plan")


def test_the_worked_lake(spark, tmp_path):
    lake = tmp_path / "lake"
    lake.mkdir()
    worked_lake(lake)
    plan = find_redundancy(lake, costs=Costs(accesses=0)).plan
    assert plan.optimal
    assert {deletion.table for deletion in plan.delete} >= {"R.parquet", "D1.parquet", "F2.parquet"}
    assert plan.cost < plan.keep_all_cost
    check(spark, lake, plan)
    write_plan(tmp_path / "plan.json", plan)
    again = read_plan(tmp_path / "plan.json")
    assert [child.table for child in again.delete] == [child.table for child in plan.delete]
    applied = apply_plan(again, tmp_path / "holding")
    assert len(applied.moved) == len(plan.delete)
    left = find_containments(spark, lake)
    assert {table.name for table in left.tables} == set(plan.keep)


def test_prices_are_those_of_the_paper():
    costs = Costs(storage=1, maintenance=2, maintenances=3, read=5, write=7, read_seconds=11)
    parent, child = np.array([2e9]), np.array([1e9])
    assert costs.keeping(parent) == 2 * (1 + 2 * 3)
    assert costs.rebuilding(parent, child, np.array([4.0])) == 4 * (5 * 2 + 7 * 1)
    assert costs.seconds(parent, child) == 11 * 2 + 20 * 1


def test_accesses_of_no_table_of_the_lake_are_refused(tmp_path):
    worked_lake(tmp_path)
    known = Costs(accesses=0, accesses_of={"D1.parquet": 1e9, "gone.csv": 3})
    assert "D1.parquet" in find_redundancy(tmp_path, costs=known).plan.keep
    absolute = replace(known, accesses_of={str(tmp_path / "D1.parquet"): 1e9})
    with pytest.raises(InputError, match="The accesses are of no table of"):
        find_redundancy(tmp_path, costs=absolute)


@pytest.mark.long
def test_derived_tables(spark, tmp_path):
    synthetic_lake(tmp_path, n_bytes=600_000, n_tables=24, n_roots=4)
    plan = find_redundancy(tmp_path, costs=Costs(accesses=0)).plan
    assert len(plan.delete) >= 3
    check(spark, tmp_path, plan)


@pytest.mark.parametrize(
    "costs",
    [Costs(max_rebuild_seconds=0), pytest.param(Costs(accesses=1e6), marks=pytest.mark.long)],
    ids=["takes too long", "costs more"],
)
def test_nothing_goes_that_takes_too_long_or_costs_more_to_rebuild(tmp_path, costs):
    worked_lake(tmp_path)
    plan = find_redundancy(tmp_path, costs=costs).plan
    assert plan.delete == ()
    assert plan.cost == pytest.approx(plan.keep_all_cost)


def test_tables_that_were_repaired_stay(tmp_path):
    (tmp_path / "whole.csv").write_text("a,b\n1,x\n2,\n")
    (tmp_path / "short.csv").write_text("a,b\n1,x\n2\n")
    (tmp_path / "whole.json").write_text('[{"n": 1}, {"n": 2}]')
    (tmp_path / "some.json").write_text('{"license": "ours", "data": [{"n": 1}]}')
    (tmp_path / "alone.json").write_text('{"data": [{"n": 1}]}')
    plan = find_redundancy(tmp_path, costs=Costs(accesses=0)).plan
    assert {deletion.table for deletion in plan.delete} == {"alone.json", "whole.csv"}
    assert "short.csv" in plan.keep


def test_a_plan_is_written_beside_an_archive_whose_names_lead_out_of_it(tmp_path):
    lake = tmp_path / "lake"
    lake.mkdir()
    worked_lake(lake)
    with ZipFile(lake / "odd.zip", "w") as archive:
        for name in ("../../a.csv", "/b.csv", "c.csv"):
            archive.writestr(name, "city\nOslo\nRome\n")
    index = build_index(lake, tmp_path / "lake.pexeso", parts=["redundancy"])
    result = find_redundancy(index.path)
    assert {"odd.zip/../../a.csv", "odd.zip//b.csv"} <= {entry.table for entry in result.left_out}
    result.write_plan(tmp_path / "plan.json")
    assert "odd.zip/c.csv" in read_plan(tmp_path / "plan.json").keep


def test_a_messy_lake_has_a_plan(tmp_path):
    messy_lake(tmp_path)
    plan = find_redundancy(tmp_path, costs=Costs(accesses=0)).plan
    assert plan.optimal
    parquet = [
        deletion
        for deletion in plan.delete
        if deletion.table.endswith(".parquet") and deletion.parent.endswith(".parquet")
    ]
    assert parquet
    for deletion in parquet:
        assert pq.read_metadata(tmp_path / deletion.table).num_rows == deletion.rows


class Known:
    """Statements of which it is known beforehand which there are."""

    def __init__(self, feasible):
        self.feasible, self.requested = feasible, set()

    def look_for(self, pairs):
        self.requested |= set(pairs)

    def of(self, parent, child):
        assert (parent, child) in self.requested
        return "SELECT" if (parent, child) in self.feasible else None


@pytest.mark.long
def test_looking_only_for_statements_that_are_needed_finds_a_plan_of_least_cost():
    rng = np.random.default_rng(5)
    n_asked = n_pairs = 0
    for _ in range(200):
        n = int(rng.integers(2, 25))
        pairs = [(a, b) for a in range(n) for b in range(n) if a != b and rng.random() < 0.6]
        parents, children = np.array(pairs, np.int64).reshape(-1, 2).T
        problem = RetentionProblem(
            rng.integers(5, 30, n).astype(float),
            parents,
            children,
            rng.integers(0, 20, len(pairs)).astype(float),
        )
        works = rng.random(len(pairs)) < rng.choice([0.0, 0.5, 0.95])
        known = Known({pair for pair, good in zip(pairs, works, strict=True) if good})
        plan = best_with_statements(problem, known, 10.0)
        cheapest = plan_retention(
            RetentionProblem(
                problem.keep_cost, parents[works], children[works], problem.rebuild_cost[works]
            )
        )
        assert plan.cost == pytest.approx(cheapest.cost)
        assert plan.optimal
        for child in np.flatnonzero(~plan.kept).tolist():
            assert (int(plan.source[child]), child) in known.feasible
        n_asked, n_pairs = n_asked + len(known.requested), n_pairs + len(pairs)
    assert n_asked < n_pairs


def test_costs_of_tables():
    costs = Costs(storage=2, maintenance=0.5, maintenances=4, read=0.1, write=1)
    sizes = np.array([100e9, 60e9])
    np.testing.assert_allclose(costs.keeping(sizes), [400, 240])
    np.testing.assert_allclose(costs.rebuilding(sizes[:1], sizes[1:], np.array([5.0])), [350])
    np.testing.assert_allclose(costs.seconds(sizes[:1], sizes[1:]), [100 * 10 + 60 * 20])


def test_files_of_costs_and_accesses(tmp_path):
    path = tmp_path / "costs.toml"
    path.write_text('storage = 1\nmax_rebuild_seconds = 60\n[accesses_of]\n"a.csv" = 3\n')
    assert read_costs(path) == Costs(storage=1, max_rebuild_seconds=60, accesses_of={"a.csv": 3})
    table = tmp_path / "accesses.csv"
    table.write_text("table,accesses\na.csv,2\nb.csv,0.5\n")
    assert read_accesses(table) == {"a.csv": 2.0, "b.csv": 0.5}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("storge = 1", "storge"),
        ("storage = -1", "0 or more"),
        ("storage = 'x'", "is a number"),
        ("storage = true", "is a number"),
        ("accesses_of = 3", "a table of names"),
        ("storage = ", "cannot be read"),
    ],
)
def test_wrong_costs_are_refused(tmp_path, text, said):
    path = tmp_path / "costs.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        read_costs(path)


@pytest.mark.parametrize("read", [read_costs, read_synonyms])
def test_a_file_that_is_not_there_is_told_without_numbers_of_errors(tmp_path, read):
    with pytest.raises(InputError, match=r"' cannot be read: No such file or directory\.$"):
        read(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("table,n\na.csv,2\n", "its columns are table, n"),
        ("a.csv,30\n", "its columns are a.csv, 30"),
        ("", "its columns are none"),
        ("table,accesses\na.csv,many\n", "many"),
        ("table,accesses\na.csv\n", "TypeError"),
        ("table,accesses\na.csv,30\na.csv,1\n", "it names 'a.csv' twice"),
    ],
)
def test_wrong_accesses_are_refused(tmp_path, text, said):
    path = tmp_path / "accesses.csv"
    path.write_text(text)
    with pytest.raises(InputError, match="columns table and accesses, and a number") as caught:
        read_accesses(path)
    assert said in str(caught.value)


N_GRAPHS = 1500 if EVERYTHING else 600


def problem(keep, edges):
    rows = np.array(edges, float).reshape(-1, 3)
    ends = rows[:, :2].astype(np.int64)
    return RetentionProblem(np.array(keep, float), ends[:, 0], ends[:, 1], rows[:, 2])


def least_cost(given, able=None):
    """Try all sets of kept tables."""
    keep = given.keep_cost
    matrix = np.full((len(keep), len(keep)), np.inf)
    np.minimum.at(matrix, (given.parents, given.children), given.rebuild_cost)
    best = np.inf
    for kept in product([False, True], repeat=len(keep)):
        kept = np.array(kept, bool)
        if able is None or not (kept & ~able).any():
            rebuilt = matrix[kept].min(axis=0, initial=np.inf)
            best = min(best, np.where(kept, keep, rebuilt).sum())
    return best


def check_retention(problem, plan):
    """Check a plan against the rules, by plain loops."""
    edges = {}
    ends = zip(problem.parents.tolist(), problem.children.tolist(), strict=True)
    for edge, cost in zip(ends, problem.rebuild_cost.tolist(), strict=True):
        edges[edge] = min(cost, edges.get(edge, cost))
    total = 0.0
    for table, source in enumerate(plan.source.tolist()):
        if plan.kept[table]:
            assert source == -1, f"table {table} is kept and has the source {source}"
            total += float(problem.keep_cost[table])
        else:
            assert (source, table) in edges, f"table {table} cannot be rebuilt from {source}"
            assert plan.kept[source], f"table {table} is rebuilt from {source}, which is deleted"
            total += edges[source, table]
    assert total == pytest.approx(plan.cost, rel=1e-9, abs=1e-9), "costs"
    assert plan.cost <= plan.keep_all_cost * (1 + 1e-9)


def drawn(rng, n):
    edges = [
        (parent, child, int(rng.integers(0, 6)))
        for parent in range(n)
        for child in range(n)
        if parent != child and rng.random() < 0.35
    ]
    return problem(rng.integers(0, 8, n), edges)


def test_no_plan_costs_less():
    rng = np.random.default_rng(3)
    for _ in range(N_GRAPHS):
        given = drawn(rng, int(rng.integers(1, 8)))
        plan = plan_retention(given)
        check_retention(given, plan)
        assert plan.optimal
        assert plan.cost == pytest.approx(least_cost(given))
        greedy = with_sources(given, greedily_kept(given), plan.bound)
        check_retention(given, greedy)
        assert greedy.cost >= plan.cost - 1e-9


def drawn_copies(rng):
    """Draw tables in classes of copies, most edges of whose closure are there."""
    n = int(rng.integers(2, 8))
    kind = rng.integers(0, rng.integers(1, n + 1), n)
    size = rng.integers(1, 6, n) if rng.random() < 0.5 else rng.integers(1, 6, n)[kind]
    accesses = rng.integers(0, 4, n) if rng.random() < 0.5 else np.full(n, rng.integers(0, 4))
    parents, children = np.nonzero(
        (kind[:, None] <= kind)
        & ~np.eye(n, dtype=bool)
        & (rng.random((n, n)) < rng.choice([0.7, 1]))
    )
    if rng.random() < 0.5:
        costs = accesses[children] * (rng.integers(0, 3) * size[parents] + size[children])
    else:
        costs = rng.integers(0, 5, len(parents))
    given = RetentionProblem(3.0 * size, parents, children, costs.astype(float))
    return given.with_edges(given.rebuild_cost < given.keep_cost[children])


@pytest.mark.long
def test_dominated_tables_are_kept_by_no_plan_that_is_needed():
    rng, n_dominated = np.random.default_rng(4), 0
    for _ in range(2 * N_GRAPHS):
        given = drawn_copies(rng)
        able = ~dominated(given)
        expected = least_cost(given)
        assert least_cost(given, able) == expected
        plan = plan_retention(given)
        assert plan.optimal
        assert plan.cost == pytest.approx(expected)
        n_dominated += not able.all()
    assert n_dominated > N_GRAPHS // 2


@pytest.mark.parametrize(
    ("sets", "cost"), [(["123", "456", "145", "236", "345"], 114), (["123", "145", "346"], 115)]
)
def test_sets_that_cover_all_elements(sets, cost):
    edges = [(0, 1 + number, 0) for number in range(len(sets))]
    edges += [
        (1 + number, len(sets) + int(element), 2)
        for number, elements in enumerate(sets)
        for element in elements
    ]
    edges += [(0, len(sets) + element, 40) for element in range(1, 7)]
    given = problem([100] + [1] * len(sets) + [50] * 6, edges)
    assert plan_retention(given).cost == pytest.approx(cost)


def test_a_solver_out_of_time_says_so_and_its_plan_holds():
    rng = np.random.default_rng(6)
    n = 300
    ends = rng.integers(0, n, (n * 60, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    keep = rng.integers(50, 100, n).astype(float)
    given = RetentionProblem(
        keep, ends[:, 0], ends[:, 1], rng.integers(1, 90, len(ends)).astype(float)
    )
    plan = plan_retention(given, time_limit=1e-3)
    check_retention(given, plan)
    assert not plan.optimal
    assert 0 < plan.gap < 1
    assert plan.cost < plan.keep_all_cost


def test_a_deleted_table_without_a_source_is_refused():
    with pytest.raises(InputError, match="Table 1 is deleted, and no table"):
        with_sources(problem([1, 1], []), np.array([True, False]), 0.0)


@pytest.mark.parametrize("unit", [1e-12, 1e-7, 1.0, 1e9])
def test_the_plan_does_not_depend_on_the_unit_of_costs(unit):
    sizes = np.array([903.0, 598.0, 903.0, 310.0])
    parents, children = np.array([0, 2, 0, 2, 0, 2]), np.array([2, 0, 1, 1, 3, 3])
    plan = plan_retention(RetentionProblem(sizes * unit, parents, children, np.zeros(6)))
    assert plan.kept.sum() == 1
    assert plan.optimal
    assert plan.cost == pytest.approx(903 * unit)


def test_of_equal_copies_one_is_kept_and_that_is_proved_in_seconds():
    n = 1500
    parents, children = np.nonzero(~np.eye(n, dtype=bool))
    accesses = np.random.default_rng(0).integers(1, 4, n)
    given = RetentionProblem(np.full(n, 9.0), parents, children, accesses[children].astype(float))
    plan_retention(RetentionProblem(np.ones(2), parents[:1], children[:1], np.zeros(1)))  # compiled
    begin = time.perf_counter()
    plan = plan_retention(given)
    assert time.perf_counter() - begin < 30
    assert plan.optimal
    assert plan.kept.sum() == 1
    assert accesses[plan.kept] == 3
    assert plan.cost == 9 + accesses.sum() - 3


def families(rng, n):
    """Return sizes and edges of tables in families: selections of selections, and copies of them.

    Every table holds its copies and what was selected from it or from a copy, however often.
    """
    sizes, edges = [], []
    while len(sizes) < n:
        begin, above, copies = len(sizes), [[]], [[0]]
        own = [float(rng.integers(100, 10_000))]
        for table in range(1, int(rng.integers(20, 140))):
            other = int(rng.integers(0, table))
            if rng.random() < 0.45:
                own.append(own[other])
                above.append(above[other])
                copies.append(copies[other])
                copies[other].append(table)
            else:
                own.append(own[other] * float(rng.random()))
                above.append([*above[other], copies[other]])
                copies.append([table])
        for table in range(len(own)):
            holders = {holder for group in [*above[table], copies[table]] for holder in group}
            edges += [(begin + holder, begin + table) for holder in sorted(holders - {table})]
        sizes += own
    return np.array(sizes), np.array(edges)


def test_ten_thousand_tables_are_proved_in_seconds():
    rng = np.random.default_rng(2)
    size, edges = families(rng, 10_000)
    accesses = rng.lognormal(0, 1, len(size))
    assert len(size) > 10_000
    assert len(edges) > 137_248
    parents, children = edges.T
    costs = accesses[children] * (0.1 * size[parents] + 0.02 * size[children])
    given = RetentionProblem(size, parents, children, costs)
    begin = time.perf_counter()
    plan = plan_retention(given)
    assert time.perf_counter() - begin < 10
    check_retention(given, plan)
    assert plan.optimal
    assert plan.cost < plan.keep_all_cost / 2
