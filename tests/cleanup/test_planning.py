"""Plans of deletions: each statement gives its table again, in Spark, on the lake as it is."""

from collections import Counter

import pyarrow.parquet as pq
import pytest

from benchmarks.redundancy.fixed import messy_lake, worked_lake
from benchmarks.redundancy.synthetic import synthetic_lake
from pexeso.cleanup.pipeline import find_containments
from pexeso.cleanup.plan import read_plan, write_plan
from pexeso.cleanup.planning import plan_deletions
from pexeso.cleanup.set_aside.holding import apply_plan
from pexeso.redundancy.costs import Costs


def rows_of(table):
    return Counter(
        tuple("nan" if cell != cell else repr(cell) for cell in row.values())
        for row in table.to_pylist()
    )


def check(spark, lake, plan):
    kept = set(plan.keep)
    for each in plan.delete:
        assert each.parent in kept
        spark.read.parquet(str(lake / each.parent)).createOrReplaceTempView("parent_of_plan")
        sql = each.sql.replace(f"`{each.parent}`", "parent_of_plan")
        expected = spark.read.parquet(str(lake / each.table)).toArrow()
        got = spark.sql(sql).toArrow()
        assert got.column_names == expected.column_names
        assert rows_of(got) == rows_of(expected)
    spark.catalog.dropTempView("parent_of_plan")


def test_the_worked_lake(spark, tmp_path):
    lake = tmp_path / "lake"
    lake.mkdir()
    worked_lake(lake)
    found = find_containments(spark, lake)
    plan = plan_deletions(found, lake, Costs(accesses=0))
    assert plan.optimal
    assert {each.table for each in plan.delete} >= {"R.parquet", "D1.parquet", "F2.parquet"}
    assert plan.cost < plan.keep_all_cost
    check(spark, lake, plan)
    write_plan(tmp_path / "plan.json", plan)
    again = read_plan(tmp_path / "plan.json")
    assert [each.table for each in again.delete] == [each.table for each in plan.delete]
    applied = apply_plan(again, tmp_path / "holding")
    assert len(applied.moved) == len(plan.delete)
    left = find_containments(spark, lake)
    assert {table.name for table in left.tables} == set(plan.keep)


def test_derived_tables(spark, tmp_path):
    synthetic_lake(tmp_path, n_bytes=600_000, n_tables=24, n_roots=4)
    plan = plan_deletions(find_containments(spark, tmp_path), tmp_path, Costs(accesses=0))
    assert len(plan.delete) >= 3
    check(spark, tmp_path, plan)


def test_nothing_goes_that_takes_too_long_or_costs_more_to_rebuild(spark, tmp_path):
    worked_lake(tmp_path)
    found = find_containments(spark, tmp_path)
    for costs in (Costs(max_rebuild_seconds=0), Costs(accesses=1e6)):
        plan = plan_deletions(found, tmp_path, costs)
        assert plan.delete == ()
        assert plan.cost == pytest.approx(plan.keep_all_cost)


def test_tables_that_were_repaired_stay(spark, tmp_path):
    (tmp_path / "whole.csv").write_text("a,b\n1,x\n2,\n")
    (tmp_path / "short.csv").write_text("a,b\n1,x\n2\n")
    plan = plan_deletions(find_containments(spark, tmp_path), tmp_path, Costs(accesses=0))
    assert "short.csv" in plan.keep


def test_a_messy_lake_has_a_plan(spark, tmp_path):
    messy_lake(tmp_path)
    plan = plan_deletions(find_containments(spark, tmp_path), tmp_path, Costs(accesses=0))
    assert plan.optimal
    parquet = [
        each
        for each in plan.delete
        if each.table.endswith(".parquet") and each.parent.endswith(".parquet")
    ]
    assert parquet
    for each in parquet:
        assert pq.read_metadata(tmp_path / each.table).num_rows == each.rows
