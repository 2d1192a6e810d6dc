"""Builds: what ends up in an index, what stops a build, and what a failed one leaves."""

import errno
import os
import re
import shutil

import pytest

from pexeso.build.diagnostics.info import check_index, last_report
from pexeso.build.job import stage_names
from pexeso.build.spark.session import error_in, plain_task_errors
from pexeso.build.updates import append, compact
from pexeso.errors import (
    EmbedderError,
    IndexNotFoundError,
    InputError,
    LakeError,
    OutputError,
    SparkError,
)
from pexeso.index import build_index, open_index
from pexeso.lake.catalog import Catalog


@pytest.fixture
def lake(tmp_path):
    folder = tmp_path / "lake"
    folder.mkdir()
    rows = "".join(
        f"{name},{number}\n"
        for number, name in enumerate(["Oslo", "Rome", "Madrid", "Vienna", "Lisbon"])
    )
    (folder / "cities.csv").write_text(f"city,n\n{rows}", encoding="utf-8")
    return folder


def test_the_catalog_lists_every_file_and_column_with_the_reason(small_index):
    store = open_index(small_index).store
    tables = Catalog(store.catalog_files).tables().to_pylist()
    assert [row["table"] for row in tables if row["reason"] is None] == [
        "cities.csv", "nested/capitals.tsv", "nested/companies.csv", "numbers.csv", "short.csv",
    ]  # fmt: skip
    assert {row["table"] for row in tables if row["reason"]} == {"broken.parquet", "notes.txt"}
    columns = Catalog(store.catalog_files).columns().to_pylist()
    keys = [(row["table"], row["name"], row["position"]) for row in columns]
    assert keys == sorted(keys)
    assert [row["column_id"] for row in columns if row["reason"] is None] == list(range(7))
    assert all((row["column_id"] is None) == (row["reason"] is not None) for row in columns)


def test_stages_are_told_as_they_start(lake, tmp_path):
    stages = []
    index = build_index(
        lake,
        tmp_path / "out.pexeso",
        model="hashing",
        dimensions=16,
        parts=["containment", "composite", "redundancy"],
        progress=stages.append,
    )
    assert stages == [stage for stage in stage_names() if stage != "changes"]
    assert index.search(["oslo"], min_joinability=1)[0].table == "cities.csv"
    assert not (tmp_path / "out.pexeso" / ".building").exists()


def broken_off(lake, path, after):
    """Build until a stage begins, and be interrupted there."""

    def progress(stage):
        if stage == after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_index(lake, path, model="hashing", dimensions=16, progress=progress)


def test_a_build_that_was_broken_off_goes_on_unless_the_lake_has_changed(lake, tmp_path):
    path = tmp_path / "out.pexeso"
    broken_off(lake, path, "partition")
    with pytest.raises(IndexNotFoundError, match=r"a build of one.*"):
        open_index(path)
    index = build_index(lake, path, model="hashing", dimensions=16)
    assert last_report(index.store).facts["taken_up"] == ["read", "catalog", "train", "embed"]
    assert index.check() == []
    assert not (path / ".building").exists()
    broken_off(lake, tmp_path / "two.pexeso", "embed")
    (lake / "more.csv").write_text(
        (lake / "cities.csv").read_text(encoding="utf-8"), encoding="utf-8"
    )
    index = build_index(lake, tmp_path / "two.pexeso", model="hashing", dimensions=16)
    assert last_report(index.store).facts["taken_up"] == []
    assert {
        match.table for match in index.search(["oslo"], min_joinability=1, fold_copies=False)
    } == {"cities.csv", "more.csv"}


def test_a_build_with_other_options_begins_anew(lake, tmp_path):
    path = tmp_path / "out.pexeso"
    broken_off(lake, path, "partition")
    index = build_index(lake, path, model="hashing", dimensions=24)
    assert last_report(index.store).facts["taken_up"] == []
    assert index.info().dimensions == 24


def test_a_dataframe_and_a_table_of_the_catalog_are_lakes(tmp_path, spark):
    cities = ["Oslo", "Rome", "Madrid", "Vienna", "Lisbon"]
    frame = spark.createDataFrame(
        [(city, number) for number, city in enumerate(cities)], "city string, n int"
    )
    index = build_index(frame, tmp_path / "frame.pexeso", model="hashing", dimensions=16)
    [match] = index.search(cities)
    assert (match.table, match.column, match.matched) == ("dataframe", "city", 5)
    with pytest.raises(LakeError, match="What has changed in Spark tables"):
        index.append()
    frame.createOrReplaceTempView("cities")
    with pytest.raises(
        LakeError, match="is neither a file or folder, nor a table or database in Spark's catalog"
    ):
        build_index("nowhere.cities", tmp_path / "none.pexeso", model="hashing", dimensions=16)


@pytest.mark.parametrize("bad", ["lake", "index", "folder of both"])
def test_a_path_that_is_not_utf8_is_refused_before_spark_is_started(
    lake, tmp_path, monkeypatch, bad
):
    """Neither Arrow nor Java can name it."""
    monkeypatch.setattr("pexeso.build.job.spark_session", None)  # nobody may call it
    odd = tmp_path / os.fsdecode(b"odd\xff")
    shutil.copytree(lake, odd / "lake")
    monkeypatch.chdir(odd if bad == "folder of both" else tmp_path)
    given, index = {
        "lake": (odd / "lake", tmp_path / "out.pexeso"),
        "index": (lake, odd / "out.pexeso"),
        "folder of both": ("lake", "out.pexeso"),
    }[bad]
    with pytest.raises(InputError, match=r"cannot use the path b'.*odd\\xff.* is not UTF-8"):
        build_index(given, index)
    assert [path.name for path in odd.iterdir()] == ["lake"]
    assert not (tmp_path / "out.pexeso").exists()


def test_an_index_whose_path_is_not_utf8_says_so(small_index, tmp_path):
    index = tmp_path / os.fsdecode(b"odd\xff.pexeso")
    shutil.copytree(small_index, index)
    for ask in (open_index, check_index, append, compact):
        with pytest.raises(InputError, match=r"cannot use the path b'.*odd\\xff\.pexeso'"):
            ask(index)


def test_a_lake_without_tables(tmp_path):
    (tmp_path / "lake").mkdir()
    with pytest.raises(
        LakeError, match=r"There is no table in .* \.csv, \.xlsx, \.json, .* Left out: nothing"
    ):
        build_index(tmp_path / "lake", tmp_path / "out.pexeso")
    (tmp_path / "lake" / "notes.xyz").write_text("prose", encoding="utf-8")
    (tmp_path / "lake" / ".hidden").touch()
    with pytest.raises(
        LakeError, match=r"There is no table in .* hidden \(1 file: .hidden\); .*notes.xyz\)\."
    ):
        build_index(tmp_path / "lake", tmp_path / "out.pexeso")


def test_a_lake_without_a_column_to_join_by_says_why(tmp_path):
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "numbers.csv").write_text("a\n1\n2\n3\n4\n5\n", encoding="utf-8")
    with pytest.raises(
        LakeError,
        match=r"No column in .* can be a join key\. Left out: numbers \(1 column: numbers.csv:a\)",
    ):
        build_index(tmp_path / "lake", tmp_path / "out.pexeso", model="hashing")
    assert not (tmp_path / "out.pexeso").exists()


def test_an_index_is_replaced_only_when_told_and_only_by_a_finished_one(lake, tmp_path):
    path = tmp_path / "out.pexeso"
    build_index(lake, path, model="hashing", dimensions=16)
    with pytest.raises(OutputError, match="overwrite"):
        build_index(lake, path, model="hashing")
    with pytest.raises(EmbedderError):
        build_index(lake, path, model=str(tmp_path / "missing.bin"), overwrite=True)
    assert open_index(path).check() == []
    assert open_index(path).search(["Oslo"], min_joinability=1)[0].matched == 1
    assert (
        build_index(lake, path, model="hashing", dimensions=24, overwrite=True).info().dimensions
        == 24
    )
    assert open_index(path).check() == []


def test_an_index_keeps_how_words_make_up_a_value(lake, tmp_path):
    pytest.importorskip("fasttext")
    path = tmp_path / "out.pexeso"
    build_index(lake, path, model="fasttext", dimensions=8, value_vectors="mean")
    index = open_index(path)
    assert (index.embedder.kind, index.usual_max_distance) == ("fasttext-mean", 0.06)
    assert index.check() == []


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (EmbedderError("The model is gone."), EmbedderError, r"^The model is gone\.$"),
        (
            ZeroDivisionError("of nothing"),
            SparkError,
            r"^[^\n]*while building 'x.pexeso': ZeroDivisionError: of nothing[^\n]*$",
        ),
        (OSError(28, "No space left on device"), OutputError, "The disk is full"),
    ],
)
def test_an_error_in_a_worker_is_one_sentence(spark, error, kind, said):
    def fail(batches):
        raise error
        yield

    with pytest.raises(kind, match=said), plain_task_errors("building 'x.pexeso'", "free some"):
        spark.range(1).mapInArrow(fail, "id long").collect()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (errno.ENOSPC, "The disk is full"),
        (errno.EDQUOT, "The disk is full"),
        (errno.EFBIG, "A file is too large for the disk (ulimit -f)"),
    ],
)
def test_a_full_disk_in_this_process_is_told_as_one(code, said):
    with (
        pytest.raises(OutputError, match=f"^{re.escape(said)}: free some$"),
        plain_task_errors("building 'x.pexeso'", "free some"),
    ):
        raise OSError(code, "Error writing bytes to file")


def test_an_interrupt_is_one_where_spark_fails_behind_it(spark):
    from pyspark.errors import PySparkException

    def collect():
        try:
            raise KeyboardInterrupt
        finally:
            raise PySparkException("java.io.IOException: Broken pipe")

    with pytest.raises(KeyboardInterrupt), plain_task_errors("building 'x.pexeso'"):
        collect()


def test_no_error_of_ours_in_a_text_is_none():
    assert error_in("ValueError: pexeso") is None
