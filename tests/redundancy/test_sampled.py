"""R2D2 as published: what footers say is sound, and sampled rows lose no contained table."""

import datetime
import itertools
import math
from decimal import Decimal
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from long_runs import long_but
from refutation import refutes

from benchmarks.redundancy.measuring import find_by_samples
from benchmarks.redundancy.synthetic import synthetic_lake
from pexeso.errors import InputError, LakeError
from pexeso.redundancy.candidates import ColumnStats
from pexeso.redundancy.planning import Costs
from pexeso.redundancy.sampled import facts_of_parquet, footer_stats
from pexeso.redundancy.search import find_redundancy
from tests.redundancy.messy_lakes import WORKED_EDGES, messy_lake, rewrite_as_csv, worked_lake
from tests.redundancy.row_contents import read_contents
from tests.redundancy.row_oracle import containment

FREE = Costs(accesses=0)


def pairs(result):
    assert not any(edge.exact for edge in result.edges)
    return {(edge.parent, edge.child) for edge in result.edges}


def checked_pairs(result):
    return {(edge.parent, edge.child) for edge in result.edges if edge.exact}


@pytest.mark.parametrize("n_files", [1, 3])
@pytest.mark.parametrize("seed", long_but([0, 1], range(5)))
def test_the_worked_lake(tmp_path, n_files, seed):
    worked_lake(tmp_path, n_files=n_files)
    result = find_by_samples(None, tmp_path, seed=seed)
    stems = {(Path(parent).stem, Path(child).stem) for parent, child in pairs(result)}
    assert stems == set(WORKED_EDGES)
    counts = [(stage.name, stage.edges) for stage in result.stages[1:]]
    assert counts == [("schema", 50), ("types", 50), ("rows", 39), ("min_max", 28), ("sampled", 20)]


def test_tasks_of_spark_find_what_threads_find(spark, tmp_path):
    worked_lake(tmp_path, n_files=3)
    alone, tasks = (find_by_samples(session, tmp_path, sample_rows=1) for session in (None, spark))
    assert tasks.edges == alone.edges
    assert len(alone.edges) >= len(WORKED_EDGES)


def test_no_contained_table_of_a_messy_lake_is_lost(tmp_path):
    messy_lake(tmp_path)
    truth = set(containment(read_contents(tmp_path)))
    assert len(truth) > 50
    for seed, sample_rows in enumerate((1, 2, 10)):
        assert truth <= pairs(find_by_samples(None, tmp_path, sample_rows=sample_rows, seed=seed))


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_as_many_rows_as_there_are_leave_what_is_contained(tmp_path, file_format):
    synthetic_lake(tmp_path, n_bytes=200_000, n_tables=20, n_roots=4)
    if file_format == "csv":
        rewrite_as_csv(tmp_path)
    truth = set(containment(read_contents(tmp_path)))
    assert pairs(find_by_samples(None, tmp_path, sample_rows=100_000)) == truth
    for seed, sample_rows in enumerate((1, 2, 10)):
        assert truth <= pairs(find_by_samples(None, tmp_path, sample_rows=sample_rows, seed=seed))


def test_columns_that_agree_as_sets_are_told_apart_by_one_row(tmp_path):
    pq.write_table(pa.table({"m": ["June", "May"], "d": [20, 12]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"m": ["June", "May"], "d": [12, 20]}), tmp_path / "b.parquet")
    result = find_by_samples(None, tmp_path, sample_rows=1)
    assert (result.stages[-2].edges, result.edges) == (2, ())


def planted_lake(folder, seed):
    """Write parents, selections of their rows, and selections with one row of another.

    The selections with a strange row pass a few drawn rows nearly always.
    """
    rng = Random(seed)
    truth = set()
    for number in range(3):
        n = 400
        parent = pa.table(
            {"id": pa.array(range(n)), "kind": [f"k{rng.randrange(9)}" for _ in range(n)]}
        )
        name = f"parent{number}.parquet"
        # Another parent has other kinds, so that neither holds rows of the other.
        parent = parent.set_column(1, "kind", pc.binary_join_element_wise(parent["kind"], name, ""))
        pq.write_table(parent, folder / name)
        for part in range(3):
            begin = rng.randrange(0, 200)
            some = parent.slice(begin, 100 + part)
            pq.write_table(some, folder / f"part{number}-{part}.parquet")
            truth.add((name, f"part{number}-{part}.parquet"))
            cells = some["kind"].to_pylist()
            cells[rng.randrange(len(cells))] = parent["kind"][0].as_py()[:1] + "strange"
            strange = some.set_column(1, "kind", pa.array(cells))
            strange = pa.concat_tables([strange, parent.slice(0, 1)])
            pq.write_table(strange, folder / f"strange{number}-{part}.parquet")
    return truth


@pytest.mark.parametrize("file_format", long_but(["parquet"], ["parquet", "csv"]))
@pytest.mark.parametrize("seed", long_but([0], range(4)))
def test_planted_tables_are_found_and_nothing_else_can_go(tmp_path, file_format, seed):
    lake = tmp_path / "lake"
    lake.mkdir()
    planted = planted_lake(lake, seed)
    if file_format == "csv":
        rewrite_as_csv(lake)
        planted = {tuple(name.replace("parquet", "csv") for name in pair) for pair in planted}
    truth = set(containment(read_contents(lake)))
    assert planted <= truth
    result = find_redundancy(lake, method="sampled", sample_rows=3, costs=FREE)
    left = {(edge.parent, edge.child) for edge in result.edges}
    assert truth <= left
    assert left - truth, "no false edge passed, so that nothing is tested"
    assert checked_pairs(result) <= truth
    assert {(item.parent, item.table) for item in result.plan.delete} <= checked_pairs(result)
    assert {(edge.parent, edge.child) for edge in result.plan.edges} == checked_pairs(result)
    exact = find_redundancy(lake, costs=FREE)
    assert {item.table for item in result.plan.delete} == {item.table for item in exact.plan.delete}
    assert result.plan.cost == exact.plan.cost
    for item, other in zip(result.plan.delete, exact.plan.delete, strict=True):
        assert item == other or item.derived != other.derived or item.parent != other.parent


def test_a_plan_of_samples_can_be_verified_and_applied(tmp_path):
    lake = tmp_path / "lake"
    lake.mkdir()
    truth = planted_lake(lake, 5)
    result = find_redundancy(lake, method="sampled", sample_rows=1, costs=FREE, verified=True)
    assert result.refuted == {}
    assert {(item.parent, item.table) for item in result.plan.delete} == truth
    assert all(item.verified for item in result.plan.delete)
    assert result.to_dict()["stages"][-2]["name"] == "sampled"


def test_a_table_that_changes_after_it_was_sampled_stays(tmp_path, monkeypatch):
    from pexeso.redundancy import sampled

    pq.write_table(pa.table({"a": list(range(50))}), tmp_path / "whole.parquet")
    pq.write_table(pa.table({"a": list(range(20))}), tmp_path / "part.parquet")
    real = sampled.read_files

    def changed(*given):
        pq.write_table(pa.table({"a": [1, 99]}), tmp_path / "part.parquet")
        return real(*given)

    monkeypatch.setattr(sampled, "read_files", changed)
    result = find_redundancy(tmp_path, method="sampled", costs=FREE)
    assert (result.plan.delete, result.edges) == ((), ())


def test_footers_never_say_more_than_the_values(tmp_path):
    """What footers refute is not contained, for all kinds of columns."""
    rng = Random(7)
    day = datetime.datetime(2020, 1, 1)
    kinds = {
        "int": (pa.int32(), lambda: rng.randrange(-5, 5)),
        "unsigned": (pa.uint32(), lambda: rng.choice([0, 1, 2**31, 2**32 - 1])),
        "float": (pa.float64(), lambda: rng.choice([math.nan, -0.0, 0.0, 1.5, -1.5])),
        "text": (pa.string(), lambda: rng.choice("ab") * rng.choice([1, 70, 6000])),
        "bytes": (pa.binary(), lambda: rng.choice([b"\xff", b"\x00", b"a"]) * rng.choice([1, 80])),
        "decimal": (pa.decimal128(20, 2), lambda: Decimal(rng.randrange(-300, 300)) / 100),
        "date": (pa.date32(), lambda: (day + datetime.timedelta(rng.randrange(9))).date()),
        "moment": (pa.timestamp("us"), lambda: day + datetime.timedelta(rng.randrange(9))),
    }
    tables = []
    for number in range(60):
        cells = {
            name: pa.array([rng.choice([None, draw(), draw()]) for _ in range(number % 7)], kind)
            for name, (kind, draw) in kinds.items()
        }
        path = tmp_path / f"{number}.parquet"
        pq.write_table(
            pa.table(cells),
            path,
            row_group_size=1 + number % 3,
            write_statistics=rng.choice([True, ["int", "text", "float"]]),
            use_deprecated_int96_timestamps=bool(number % 2),
        )
        n_rows, facts = facts_of_parquet(path.name, str(path))
        assert n_rows == number % 7
        tables.append(({fact.token[0]: fact.stats for fact in facts}, cells))
        stats = footer_stats(pq.ParquetFile(path))
        tables.append(({name: stats.get((name,), ColumnStats()) for name in kinds}, cells))
    n_refuted = 0
    for (ours, our_cells), (theirs, their_cells) in itertools.permutations(tables, 2):
        for name in kinds:
            child, parent = our_cells[name], their_cells[name]
            if refutes(ours[name], theirs[name]):
                n_refuted += 1
                values = {str(cell) for cell in parent.to_pylist()}
                assert any(
                    str(cell) not in values and not _equal_zero(cell, parent)
                    for cell in child.to_pylist()
                )
    assert n_refuted > 1000


def _equal_zero(value, others):
    return value == 0 and any(other == 0 for other in others.to_pylist())


def test_bounds_that_a_footer_lacks_are_read_where_they_are_numbers(tmp_path):
    path = tmp_path / "t.parquet"
    table = pa.table({"n": [3, 9], "s": ["a", "b"]})
    pq.write_table(table, path, write_statistics=False)
    stats = {fact.token[0]: fact.stats for fact in facts_of_parquet("t", str(path))[1]}
    assert (stats["n"].min, stats["n"].max, stats["n"].min_witness) == (3, 9, True)
    assert (stats["s"].min, stats["s"].null_count) == (None, None)
    assert footer_stats(pq.ParquetFile(path))["n",].min is None


def test_columns_inside_of_others_have_their_own_footers(tmp_path):
    inner = [{"tags": ["x"], "at": {"zip": 5}}, {"tags": [], "at": None}]
    table = pa.table({"list": [[1, 2], [3]], "user": inner, "n": [7, 8]})
    pq.write_table(table, tmp_path / "t.parquet")
    stats = {
        fact.token: fact.stats for fact in facts_of_parquet("t", str(tmp_path / "t.parquet"))[1]
    }
    assert (stats["user", "at", "zip"].max, stats["user", "at", "zip"].null_count) == (5, 1)
    assert (stats["n",].min, stats["n",].max) == (7, 8)
    assert stats["list", None].min is None


def test_drawn_rows_are_those_of_their_numbers_in_any_files_and_row_groups(tmp_path):
    whole = pa.table({"x": pa.array(range(1000)), "y": pa.array(range(1000, 2000))})
    for name, size in (("a", 1000), ("b", 7)):
        pq.write_table(whole, tmp_path / f"{name}.parquet", row_group_size=size)
    (tmp_path / "c").mkdir()
    for part in range(4):
        rows = whole.slice(part * 250, 250)
        pq.write_table(rows, tmp_path / "c" / f"part-{part}.parquet", row_group_size=11)
    half = whole.filter(pc.less(whole["x"], 500))
    pq.write_table(half, tmp_path / "half.parquet")
    for seed in range(10):
        result = find_by_samples(None, tmp_path, seed=seed, sample_rows=20)
        assert len(result.edges) == 6 + 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": "some"}, "method must be one of exact, sampled. Got 'some'"),
        ({"sample_rows": 0}, "sample_rows is a whole number from 1 on. Got 0"),
        ({"method": "sampled", "min_containment": 0.5}, "min_containment below 1 needs all rows"),
    ],
)
def test_wrong_options_are_refused(tmp_path, options, said):
    with pytest.raises(InputError, match=said):
        find_redundancy(tmp_path, **options)


def test_what_is_no_folder_is_refused(spark, tmp_path):
    with pytest.raises(InputError, match="tables of Spark are none"):
        find_redundancy({}, method="sampled")
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(InputError, match="an index has all rows at hand"):
        find_redundancy(tmp_path, method="sampled")
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(LakeError, match="no table"):
        find_by_samples(None, tmp_path)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1" + bytes(40) + b"PAR1")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    assert [entry.table for entry in find_by_samples(None, tmp_path).left_out] == ["broken.parquet"]
