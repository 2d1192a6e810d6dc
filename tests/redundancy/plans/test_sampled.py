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
from long_runs import EVERYTHING, long_but

from benchmarks.redundancy.contents import read_contents
from benchmarks.redundancy.fixed import WORKED_EDGES, messy_lake, worked_lake
from benchmarks.redundancy.oracle import containment
from benchmarks.redundancy.synthetic import synthetic_lake
from pexeso.errors import InputError, LakeError
from pexeso.redundancy.column_stats import refutes
from pexeso.redundancy.plans.sampled.footers import facts_of_parquet
from pexeso.redundancy.plans.sampled.samples import drawn_rows, required_samples, seed_of
from pexeso.redundancy.plans.sampled.search import SampleOptions, find_by_samples

WAYS = [
    SampleOptions(n_rows=n_rows, n_columns=n_columns, compared=compared, sampler=sampler, seed=seed)
    for seed, (n_rows, n_columns, compared, sampler) in enumerate(
        itertools.product((1, 10), (1, 4), ("all", "drawn"), ("uniform", "predicate"))
    )
]
if not EVERYTHING:
    WAYS = WAYS[::5]  # each of both values of everything, twice


def stems(pairs):
    return {(Path(parent).stem, Path(child).stem) for parent, child in pairs}


@pytest.mark.parametrize("n_files", [1, 3])
@pytest.mark.parametrize("seed", long_but([0, 1], range(5)))
def test_the_worked_lake(tmp_path, n_files, seed):
    worked_lake(tmp_path, n_files=n_files)
    containments = find_by_samples(None, tmp_path, SampleOptions(seed=seed))
    assert stems(containments.pairs) == set(WORKED_EDGES)
    counts = [(stage.name, stage.edges) for stage in containments.stages[1:]]
    assert counts == [
        ("schema", 50),
        ("types", 50),
        ("rows", 39),
        ("min_max", 28),
        ("sampled", 20),
    ]


@pytest.mark.spark
def test_tasks_of_spark_find_what_threads_find(spark, tmp_path):
    worked_lake(tmp_path, n_files=3)
    options = SampleOptions(n_rows=1, compared="drawn", n_columns=1)
    alone, tasks = (find_by_samples(session, tmp_path, options) for session in (None, spark))
    assert tasks.pairs == alone.pairs
    assert len(alone.pairs) > len(WORKED_EDGES)


def test_no_contained_table_of_a_messy_lake_is_lost(tmp_path):
    messy_lake(tmp_path)
    truth = set(containment(read_contents(tmp_path)))
    assert len(truth) > 50
    for options in WAYS:
        assert truth <= set(find_by_samples(None, tmp_path, options).pairs), options


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_as_many_rows_as_there_are_leave_what_is_contained(tmp_path, file_format):
    synthetic_lake(tmp_path, n_bytes=200_000, n_tables=20, n_roots=4, file_format=file_format)
    truth = set(containment(read_contents(tmp_path)))
    for sampler in ("uniform", "predicate"):
        result = find_by_samples(None, tmp_path, SampleOptions(n_rows=100_000, sampler=sampler))
        assert set(result.pairs) == truth
    for options in WAYS:
        assert truth <= set(find_by_samples(None, tmp_path, options).pairs), options


def test_june_and_may(tmp_path):
    """Columns agree as sets; rows do not, which all columns show and one does not."""
    pq.write_table(pa.table({"m": ["June", "May"], "d": [20, 12]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"m": ["June", "May"], "d": [12, 20]}), tmp_path / "b.parquet")
    containments = find_by_samples(None, tmp_path, SampleOptions(n_rows=1))
    assert (containments.stages[-2].edges, containments.pairs) == (2, ())
    weak = SampleOptions(n_rows=2, n_columns=1, compared="drawn")
    assert len(find_by_samples(None, tmp_path, weak).pairs) == 2


def test_nan_and_zeros_of_both_signs_are_found(tmp_path):
    pq.write_table(pa.table({"x": [math.nan, -0.0, 1.0]}), tmp_path / "parent.parquet")
    pq.write_table(pa.table({"x": [math.nan, 0.0]}), tmp_path / "child.parquet")
    assert find_by_samples(None, tmp_path).pairs == (("parent.parquet", "child.parquet"),)


@pytest.mark.parametrize(
    ("epsilon", "delta", "rows"),
    [
        (0.5, 0.05, 5),
        (0.5, 0.01, 7),
        (0.2, 0.05, 14),
        (0.1, 0.05, 29),
        (0.1, 0.01, 44),
        (0.05, 0.05, 59),
        (0.01, 0.05, 299),
        (0.01, 0.01, 459),
        (0.001, 0.05, 2995),
    ],
)
def test_required_samples(epsilon, delta, rows):
    assert required_samples(epsilon, delta) == rows
    assert required_samples(0.1, 0.05, 600) == 90
    with pytest.raises(InputError, match="above 0 and below 1"):
        required_samples(0, delta)


def test_rows_pass_as_often_as_the_theorem_says():
    """Of a table of which nine rows in ten are contained, ten drawn rows pass in .349 of trials."""
    trials = 2000
    for n_rows, expected in ((10, 0.9**10), (29, 0.9**29)):
        draws = [drawn_rows(10_000, n_rows, seed_of(seed, "t", "1")) for seed in range(trials)]
        passed = sum(all(row % 10 for row in rows) for rows in draws)
        spread = math.sqrt(expected * (1 - expected) / trials)
        assert abs(passed / trials - expected) < 4 * spread
    assert drawn_rows(3, 10, "any") == [0, 1, 2]


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
        for scan in (False, True):
            n_rows, facts = facts_of_parquet(path.name, str(path), scan=scan)
            assert n_rows == number % 7
            tables.append(({fact.token[0]: fact.stats for fact in facts}, cells))
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
    blind = {fact.token[0]: fact.stats for fact in facts_of_parquet("t", str(path), scan=False)[1]}
    assert blind["n"].min is None


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


def test_a_filter_of_row_groups_reads_what_it_draws(tmp_path):
    """Drawn rows are those of their numbers, however the table lies in files and row groups."""
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
        containments = find_by_samples(None, tmp_path, SampleOptions(seed=seed, n_rows=20))
        assert len(containments.pairs) == 6 + 3


def test_wrong_options_and_lakes_are_refused(tmp_path):
    with pytest.raises(InputError, match="n_rows is at least 1"):
        SampleOptions(n_rows=0)
    with pytest.raises(InputError, match="sampler must be one of"):
        SampleOptions(sampler="best")
    with pytest.raises(LakeError, match="no table"):
        find_by_samples(None, tmp_path)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1" + bytes(40) + b"PAR1")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    assert [entry.table for entry in find_by_samples(None, tmp_path).left_out] == ["broken.parquet"]
