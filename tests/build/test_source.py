"""Where tables come from: the same listing, whoever makes it."""

import pyarrow.parquet as pq
import pytest

from pexeso.build.lake_source import source
from pexeso.errors import LakeError
from pexeso.lake.files import find_tables


def rows_in(folder):
    rows = pq.read_table(folder, partitioning=None).to_pylist()
    return sorted(rows, key=lambda row: row["table"])


def test_a_small_lake_is_listed_here_as_a_large_one_is_in_tasks(
    small_lake, tmp_path, spark, monkeypatch
):
    facts = {}
    for name in ("small", "large"):
        if name == "large":
            monkeypatch.setattr(source.FolderSource, "is_small", lambda self: False)
        (tmp_path / name).mkdir()
        facts[name] = source.source_of(small_lake).list_into(spark, tmp_path / name)
    for part in (source.LISTING, source.SKIPPED):
        assert rows_in(tmp_path / "small" / part) == rows_in(tmp_path / "large" / part)
    assert {**facts["small"], "digest": 0} == {**facts["large"], "digest": 0}
    files, skipped = find_tables(small_lake)
    assert [row["table"] for row in rows_in(tmp_path / "small" / source.LISTING)] == [
        file.table for file in files
    ]
    assert facts["small"]["skipped"] == len(skipped)


def test_the_digest_of_a_listing_tells_every_change(small_lake, tmp_path):
    def digest(name):
        (tmp_path / name).mkdir()
        return source.source_of(lake).list_into(None, tmp_path / name)["digest"]

    lake = tmp_path / "lake"
    lake.mkdir()
    (lake / "a.csv").write_text("a\n1\n", encoding="utf-8")
    first = digest("one")
    assert digest("two") == first
    (lake / "a.csv").write_text("a\n12\n", encoding="utf-8")
    second = digest("three")
    (lake / "b.csv").write_text("", encoding="utf-8")
    assert len({first, second, digest("four")}) == 3


def test_a_large_lake_is_told_by_its_first_files(tmp_path, monkeypatch):
    for number in range(5):
        (tmp_path / f"{number}.csv").write_text("a\n", encoding="utf-8")
    assert source.source_of(tmp_path).is_small()
    monkeypatch.setattr(source, "SMALL_LAKE_FILES", 4)
    assert not source.source_of(tmp_path).is_small()
    monkeypatch.setattr(source, "SMALL_LAKE_FILES", 9)
    monkeypatch.setattr(source, "SMALL_LAKE_BYTES", 9)
    assert not source.source_of(tmp_path).is_small()


@pytest.mark.parametrize("lake", ["nowhere", "no where.csv", "a.b.c.d", "/nowhere/at.all"])
def test_what_is_neither_a_path_nor_a_name_of_spark_is_told_at_once(lake, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LakeError, match="neither a folder nor a file"):
        source.source_of(lake)


@pytest.mark.parametrize("lake", ["sales.orders", "spark_catalog.sales.orders"])
def test_a_name_with_a_dot_is_one_of_sparks_catalog(lake, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert isinstance(source.source_of(lake), source.SparkSource)
    assert source.source_of(lake).name == f"spark:{lake}"
