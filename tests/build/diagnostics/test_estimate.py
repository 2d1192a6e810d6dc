"""Tests of the estimate: exact on a whole lake, near on a part, and marked accordingly."""

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from equal_text_lakes import place_rows
from processes import ran

from pexeso.build.diagnostics.estimate import BASE_BYTES, BYTES_PER_PROCESS, estimate_build
from pexeso.build.job import stage_names
from pexeso.build.parts.base import Placed
from pexeso.build.parts.sample import LakeSample, choose_sample, format_name
from pexeso.build.source import READ_MEMORY_FACTOR
from pexeso.composite.part import ROW_KEYS_PART
from pexeso.errors import InputError, LakeError
from pexeso.index import open_index
from pexeso.lake.choose import ColumnRules
from pexeso.lake.files import TableFile, find_tables
from pexeso.lake.records import lake_records
from pexeso.options import BuildOptions
from pexeso.redundancy.part import ROW_HASHES_PART
from pexeso.semantic.part.estimate import BUILD_MEMORY_FACTOR
from pexeso.sets.part import TOKEN_SETS_PART
from pexeso.sets.part.open import Shard
from pexeso.sets.part.write import write_shard

STAGES = tuple(
    stage
    for stage in stage_names()
    if stage not in ("changes", *ROW_KEYS_PART.stages, *ROW_HASHES_PART.stages)
)
OPTIONS = BuildOptions(model="hashing", dimensions=16)


def shard_of_lake(lake, folder, parts):
    """Build a shard of all columns of a lake without Spark."""
    for kind, fields in (
        ("set", ("table", "position", "label")),
        ("token", ("table", "position", "value")),
    ):
        rows = [
            batch.filter(pc.equal(batch["record"], kind)).select(list(fields))
            for file in find_tables(lake)[0]
            for batch in lake_records(
                [file], OPTIONS.rules, OPTIONS.normaliser, wanted=[TOKEN_SETS_PART.records]
            )
        ]
        place_rows(folder / "placed", f"{kind}s", pa.Table.from_batches(rows))
    written = folder / "shard"
    written.mkdir()
    write_shard(Placed(folder / "placed", [0], 1), 0, written, parts=parts)
    return Shard(written, parts, np.empty(0, np.int64))


def file(name, n_bytes, kind="delimited"):
    return TableFile(name, Path(name), kind, n_bytes)


@pytest.fixture(scope="module")
def wide_lake(tmp_path_factory):
    """Write 60 similar tables with a private and a shared column of 20 words each."""
    lake = tmp_path_factory.mktemp("wide")
    for number in range(60):
        rows = "".join(f"w{number:02d}x{row:02d},common{row:02d}\n" for row in range(20))
        (lake / f"t{number:02d}.csv").write_text(f"own,shared\n{rows}", encoding="utf-8")
    return lake


def test_a_lake_sampled_whole_is_counted_as_the_build_counts_it(small_lake, small_index):
    estimate = estimate_build(small_lake, OPTIONS)
    info = open_index(small_index).info()
    assert estimate.exact
    assert (estimate.tables, estimate.columns, estimate.columns_indexed) == (
        info.tables,
        info.columns,
        info.columns_indexed,
    )
    assert (estimate.values, estimate.postings) == (info.values, info.postings)
    assert (estimate.files, estimate.skipped) == (5 + 2, 0)
    assert sum(facts["files"] for facts in estimate.by_format.values()) == estimate.files
    assert (
        sum(facts["bytes"] for facts in estimate.by_format.values())
        == estimate.bytes
        == estimate.sampled_bytes
    )


def test_a_sample_is_scaled_up(wide_lake):
    estimate = estimate_build(wide_lake, OPTIONS, sample_files=20)
    assert not estimate.exact
    assert (estimate.files, estimate.sampled_files) == (60, 20)
    assert (estimate.tables, estimate.columns, estimate.columns_indexed, estimate.postings) == (
        60,
        120,
        120,
        2400,
    )
    # 60 * 20 words of one table each, and 20 that all share; Heaps' law fits a power to the sample:
    # near, not exact.
    assert estimate.values == pytest.approx(1220, rel=0.1)


@pytest.mark.parametrize("parts", [("overlap",), ("overlap", "containment")])
def test_parts_are_counted_where_they_are_asked_for(small_lake, tmp_path, parts):
    estimate = estimate_build(small_lake, replace(OPTIONS, parts=parts))
    bare = estimate_build(small_lake, OPTIONS)
    index = shard_of_lake(small_lake, tmp_path, parts)
    n_bytes = sum(path.stat().st_size for path in index.folder.iterdir())
    assert estimate.equal_text | {"bytes": 0} == {
        "parts": parts,
        "columns": index.overlap.n_sets,
        "tokens": index.overlap.n_tokens,
        "pairs": len(index.overlap.set_tokens),
        "shards": 1,
        "bytes": 0,
    }
    # Headers of 128 bytes and more each, which weigh in so small an index, are not in the estimate.
    assert n_bytes - 12_000 < estimate.equal_text["bytes"] < n_bytes
    assert estimate.index_bytes - estimate.equal_text["bytes"] == bare.index_bytes
    assert tuple(estimate.seconds) == STAGES
    assert all(seconds > 0 for seconds in estimate.seconds.values())
    assert bare.equal_text == {
        "parts": (),
        "columns": 0,
        "tokens": 0,
        "pairs": 0,
        "shards": 0,
        "bytes": 0,
    }


def test_parts_of_a_sample_are_scaled_up(wide_lake):
    equal_text = estimate_build(
        wide_lake, replace(OPTIONS, parts=("overlap",)), sample_files=20
    ).equal_text
    assert (equal_text["columns"], equal_text["pairs"]) == (120, 2400)
    assert equal_text["tokens"] == pytest.approx(1220, rel=0.1)


def test_the_same_seed_draws_the_same_files(wide_lake):
    files = [file(f"f{number}", 10) for number in range(100)]
    assert choose_sample(files, 3, 10, 1000) == choose_sample(files, 3, 10, 1000)
    assert choose_sample(files, 3, 10, 1000) != choose_sample(files, 4, 10, 1000)


def test_the_sample_keeps_its_bounds_and_has_each_format():
    files = [file(f"f{number}.csv", 10) for number in range(100)] + [
        file("a.parquet", 10, "parquet"),
        file("b.csv.gz", 10),
    ]
    chosen = choose_sample(files, 0, 5, 1000)
    assert len(chosen) == 5
    assert Counter(map(format_name, chosen)) == {"delimited": 3, "parquet": 1, "delimited.gz": 1}
    assert sum(table_file.n_bytes for table_file in choose_sample(files, 0, 50, 35)) <= 35


def test_files_too_large_to_sample_are_passed_over_unless_there_is_no_other():
    assert choose_sample([file("big.csv", 100), file("small.csv", 5)], 0, 9, 50) == [
        file("small.csv", 5)
    ]
    assert choose_sample([file("big.csv", 100), file("bigger.csv", 200)], 0, 9, 50) == [
        file("big.csv", 100)
    ]


def test_partitions_follow_from_bytes_or_from_the_wish(wide_lake):
    assert estimate_build(wide_lake, OPTIONS).partitions == 1
    assert estimate_build(wide_lake, BuildOptions(model="hashing", n_partitions=7)).partitions == 7


def test_more_dimensions_take_more_bytes(wide_lake):
    small, large = (
        estimate_build(wide_lake, BuildOptions(model="hashing", dimensions=dimensions))
        for dimensions in (16, 64)
    )
    assert (
        large.index_bytes - large.model_bytes - (small.index_bytes - small.model_bytes)
        == 2 * 48 * small.values
    )
    assert large.model_bytes > small.model_bytes


def test_the_rules_count(wide_lake):
    options = BuildOptions(model="hashing", rules=ColumnRules(min_rows=21))
    with pytest.raises(
        LakeError,
        match=r"None of the 5 files of .* that were sampled has a column that can be a join key",
    ):
        estimate_build(wide_lake, options, sample_files=5)


def test_a_model_that_is_trained_is_trained_on_the_sample(wide_lake):
    estimate = estimate_build(wide_lake, OPTIONS, sample_files=10)
    assert estimate.seconds["train"] > 0
    assert tuple(estimate.seconds) == tuple(
        stage for stage in STAGES if stage not in TOKEN_SETS_PART.stages
    )
    assert all(seconds > 0 for seconds in estimate.seconds.values())
    assert estimate.model_bytes > 1 << 15


def test_progress_is_told(wide_lake):
    steps = []
    estimate_build(
        wide_lake, OPTIONS, sample_files=3, progress=lambda done, total: steps.append((done, total))
    )
    assert steps == [(1, 3), (2, 3), (3, 3)]


def test_the_default_model_is_estimated_without_torch(small_lake):
    program = (
        "import sys; from pexeso.build.diagnostics.estimate import estimate_build; "
        f"estimate_build({str(small_lake)!r}); print('torch' in sys.modules)"
    )
    done = ran([sys.executable, "-c", program])
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr


def test_a_model_that_is_none(wide_lake):
    with pytest.raises(InputError, match="The model must be"):
        estimate_build(wide_lake, BuildOptions(model="magic"), sample_files=1)


def test_memory_is_that_of_tasks_that_run_side_by_side(tmp_path, monkeypatch):
    """One file is large, and there is one partition, whatever the cores."""
    monkeypatch.setattr(LakeSample, "cores", 8)
    monkeypatch.setattr(LakeSample, "factor", 1.0)
    (tmp_path / "large.csv").write_text("word\n" + "".join(f"w{n}\n" for n in range(60_000)))
    for number in range(3):
        (tmp_path / f"t{number}.csv").write_text("word\nw1\nw2\n")
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    costs = estimate_build(tmp_path, OPTIONS)
    assert costs.cores == 8
    assert costs.of_parts["partitions"] == 1
    partition = BUILD_MEMORY_FACTOR * (costs.index_bytes - costs.of_parts["model_bytes"])
    reading = READ_MEMORY_FACTOR * sum(sizes)
    beside = BASE_BYTES + 8 * BYTES_PER_PROCESS
    assert costs.memory_bytes == beside + max(partition, reading)
