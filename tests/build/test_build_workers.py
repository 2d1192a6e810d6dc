"""Work on small lakes that needs no Spark leaves what Spark would leave."""

import json
import os
import shutil
from pathlib import Path

import pytest

import pexeso
from pexeso.build import build, workers
from pexeso.errors import SparkError

PARTS = ("overlap", "containment", "composite", "redundancy")

pytestmark = pytest.mark.spark


def bytes_of(index: Path) -> dict[str, bytes]:
    """Return what is in the files of an index but for times, whatever folders they lie in."""
    manifest = json.loads((index / "manifest.json").read_text(encoding="utf-8"))
    folders = [*manifest["catalogs"], manifest["embedder"]]
    folders += [entry for entries in manifest["parts"].values() for entry in entries]
    contents = {}
    for number, folder in enumerate(folders):
        for file in folder["files"]:
            if file["path"] != "report.json":
                content = (index / folder["folder"] / file["path"]).read_bytes()
                contents[f"{number}/{file['path']}"] = content
    return contents


@pytest.fixture
def here(monkeypatch):
    """Let work run in this process, in which nothing may start Spark."""

    def start(*_, **__):
        raise AssertionError("Spark was started")

    monkeypatch.setattr(build, "has_session", lambda: False)
    monkeypatch.setattr(build, "spark_session", start)
    return monkeypatch


@pytest.fixture
def lake(small_lake, tmp_path):
    folder = tmp_path / "lake"
    shutil.copytree(small_lake, folder)
    rows = "".join(f"Rome,{number % 3},{number}.5\n" for number in range(40))
    (folder / "more.csv").write_text(f"city,n,share\n{rows}", encoding="utf-8")
    return folder


def report_of(index: Path) -> dict:
    [path] = index.glob("catalog*/report.json")
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("parts", [(), PARTS])
def test_a_build_here_leaves_the_bytes_of_one_on_spark(lake, tmp_path, spark, here, parts):
    aliases = tmp_path / "aliases.csv"
    aliases.write_text("alias,name\nRoma,Rome\n", encoding="utf-8")
    options = {"parts": parts, "aliases": aliases}
    pexeso.build_index(lake, tmp_path / "here.pexeso", **options)
    here.undo()
    pexeso.build_index(lake, tmp_path / "spark.pexeso", **options)
    assert bytes_of(tmp_path / "here.pexeso") == bytes_of(tmp_path / "spark.pexeso")
    report = report_of(tmp_path / "here.pexeso")
    assert (report["facts"]["master"], report["facts"]["cores"]) == ("none", 1)
    counts = [
        {stage["stage"]: stage.get("rows_out") for stage in report_of(index)["stages"]}
        for index in (tmp_path / "here.pexeso", tmp_path / "spark.pexeso")
    ]
    assert counts[0] == counts[1]
    assert counts[0]["read"] > 0


def updated(lake: Path, index: Path) -> None:
    """Do each kind of update to an index of the lake."""
    opened = pexeso.build_index(lake, index)
    (lake / "new.csv").write_text("town,n\nOslo,1\nLima,2\nBern,3\nKyiv,4\nRiga,5\n")
    (lake / "more.csv").write_text("city\nOslo\nLima\nCairo\nRome\nParis\n", encoding="utf-8")
    opened.append()
    opened.add_parts(PARTS)
    os.remove(lake / "new.csv")
    opened.append(delete_missing=True)
    opened.compact(everything=True)


def test_updates_here_leave_the_bytes_of_those_on_spark(lake, tmp_path, spark, here):
    again = tmp_path / "again"
    shutil.copytree(lake, again)
    updated(lake, tmp_path / "here.pexeso")
    here.undo()
    shutil.rmtree(lake)
    again.rename(lake)
    updated(lake, tmp_path / "spark.pexeso")
    ours, sparks = (pexeso.open_index(tmp_path / f"{name}.pexeso") for name in ("here", "spark"))
    for search in (ours.search, ours.overlap, ours.contain):
        on_spark = getattr(sparks, search.__name__)
        for query in (["Oslo", "Lima", "Rome"], ["Madrid", "Paris", "Vienna"]):
            answer, expected = (method(query, k="all").to_dict() for method in (search, on_spark))
            assert answer["results"] == expected["results"]


@pytest.mark.parametrize(
    "setup", [{"master": "local[1]"}, {"conf": {"spark.ui.enabled": "false"}}, {"model": "hashing"}]
)
def test_who_names_spark_gets_spark(lake, tmp_path, here, setup):
    with pytest.raises(AssertionError, match="Spark was started"):
        pexeso.build_index(lake, tmp_path / "index.pexeso", **setup)


def test_larger_files_are_read_on_spark(lake, tmp_path, spark, monkeypatch):
    monkeypatch.setattr(build, "has_session", lambda: False)
    pexeso.build_index(lake, tmp_path / "here.pexeso")
    monkeypatch.setattr(workers, "READ_HERE_BYTES", 0)
    pexeso.build_index(lake, tmp_path / "spark.pexeso")
    assert report_of(tmp_path / "here.pexeso")["facts"]["master"] == "none"
    assert report_of(tmp_path / "spark.pexeso")["facts"]["master"] == "local[2]"
    assert bytes_of(tmp_path / "here.pexeso") == bytes_of(tmp_path / "spark.pexeso")


def test_several_partitions_are_divided_on_spark(lake, tmp_path, spark, monkeypatch):
    index = pexeso.build_index(lake, tmp_path / "spark.pexeso", n_partitions=2)
    monkeypatch.setattr(build, "has_session", lambda: False)
    pexeso.build_index(lake, tmp_path / "here.pexeso", n_partitions=2)
    assert len(index.info().partitions) == 2
    assert bytes_of(tmp_path / "here.pexeso") == bytes_of(tmp_path / "spark.pexeso")


def test_a_build_that_was_stopped_here_goes_on_on_spark(lake, tmp_path, spark, here):
    here.setattr(pexeso.build.tasks, "write_folders", stopped)
    with pytest.raises(KeyboardInterrupt):
        pexeso.build_index(lake, tmp_path / "here.pexeso")
    here.undo()
    pexeso.build_index(lake, tmp_path / "here.pexeso")
    pexeso.build_index(lake, tmp_path / "spark.pexeso")
    assert "read" in report_of(tmp_path / "here.pexeso")["facts"]["taken_up"]
    assert bytes_of(tmp_path / "here.pexeso") == bytes_of(tmp_path / "spark.pexeso")


def stopped(batches, **_):
    raise KeyboardInterrupt


def test_errors_of_spark_are_told_also_where_it_starts_late(lake, tmp_path, here):
    def start(*_, **__):
        raise SparkError("no Java")

    here.setattr(build, "spark_session", start)
    here.setattr(workers, "READ_HERE_BYTES", 0)
    with pytest.raises(SparkError, match="no Java"):
        pexeso.build_index(lake, tmp_path / "index.pexeso")
    assert not (tmp_path / "index.pexeso").exists()


@pytest.mark.parametrize(
    ("n_bytes", "n_parts", "expected"),
    [(8 << 20, 1, True), ((8 << 20) + 1, 1, False), (4 << 20, 2, True), (4 << 20, 3, False)],
)
def test_parts_make_reading_longer(n_bytes, n_parts, expected):
    assert workers.reads_here(n_bytes, n_parts) is expected
