"""Plans of deletions: each statement gives its table again, in Spark, on the lake as it is."""

from collections import Counter
from dataclasses import replace
from zipfile import ZipFile

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks.redundancy.measuring import find_containments
from benchmarks.redundancy.synthetic import synthetic_lake
from pexeso.errors import InputError
from pexeso.index import build_index
from pexeso.redundancy.holding import apply_plan
from pexeso.redundancy.plan import read_plan, write_plan
from pexeso.redundancy.planning import Costs, RetentionProblem, best_with_statements, plan_retention
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
