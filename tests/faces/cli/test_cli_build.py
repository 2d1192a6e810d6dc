"""`pexeso index`: options reach the build, what it says, and how it ends."""

import json
import re
import shlex
import sqlite3
from pathlib import Path

import pytest

import pexeso
import pexeso.build.job
import pexeso.index
from pexeso.build.job import stage_names
from pexeso.composite.part import ROW_KEYS_PART
from pexeso.errors import OutputError
from pexeso.faces.cli.index import build_summary
from pexeso.lake.normalise.rules import DEFAULT_RULES
from pexeso.redundancy.part import ROW_HASHES_PART
from tests.long_runs import long_but


@pytest.fixture
def builds(monkeypatch, small_index):
    """Catch what the command asks the library to build, and give the small index instead."""
    calls = []

    def build_index(lake, path, **options):
        calls.append((lake, path, options))
        return pexeso.index.open_index(small_index)

    monkeypatch.setattr(pexeso.index, "build_index", build_index)
    return calls


def test_every_option_reaches_the_build(run, builds):
    given = "--model hashing --dimensions 8 --metric angular"
    given += (
        " --partition-bytes 2MB --column-types text,number --column-rule min_rows=2,min_distinct=3 "
        "--column-rule max_number_fraction=0.25 --column-rule max-median-tokens=6"
    )
    given += (
        " --column-rule max_missing_fraction=0.75 --max-table-bytes 5MB --include containment "
        "--aliases a.csv --overwrite --engine spark --spark-master local[1]"
    )
    given += " --spark-conf spark.driver.memory=3g --spark-conf a=b=c"
    run("index", "some lake", "out", *given.split())
    ((lake, path, options),) = builds
    assert (lake, path) == ("some lake", "out")
    assert options.pop("rules").to_dict() == {
        "kinds": ["text", "number"],
        "min_rows": 2,
        "min_distinct": 3,
        "max_number_fraction": 0.25,
        "max_median_tokens": 6.0,
        "max_missing_fraction": 0.75,
    }
    expected = {
        "model": "hashing",
        "dimensions": 8,
        "metric": "angular",
        "partition_bytes": 2_000_000,
        "max_table_bytes": 5_000_000,
        "parts": ("containment",),
        "overwrite": True,
        "engine": "spark",
        "master": "local[1]",
        "conf": {"spark.driver.memory": "3g", "a": "b=c"},
        "aliases": "a.csv",
    }
    assert {name: options[name] for name in expected} == expected


def test_a_preset_and_what_it_leaves_open_reach_the_build(run, builds):
    given = "--preset published --model wiki.bin --dimensions 50"
    run("index", "lake", "out", *given.split(), "--partition-bytes", "1GiB")
    ((_, _, options),) = builds
    expected = {
        "preset": "published",
        "model": "wiki.bin",
        "dimensions": 50,
        "value_vectors": "mean",
        "cells": "grid",
        "n_levels": None,
        "min_partitions": 10,
        "partition_bytes": 1 << 30,
    }
    assert {name: options[name] for name in expected} == expected


def test_an_estimate_takes_a_preset(run, small_lake):
    document = json.loads(run("estimate", small_lake, "--preset", "published", "--json").stdout)
    assert (document["dimensions"], document["vector_precision"]) == (100, "single")
    assert document["partitions"] == document["columns_indexed"] == 7


def test_how_words_make_up_a_value_is_passed_on_and_refused_without_them(run, builds):
    given = "--model", "fasttext", "--value-vectors", "mean"
    run("index", "lake", "out", *given)
    assert builds[0][2]["value_vectors"] == "mean"
    result = run("index", "lake", "out", "--value-vectors", "mean", code=2)
    assert "Got 'mean' with the model 'lexical': leave it out." in result.stderr


def test_rules_for_normalising_are_switched_by_name(run, builds):
    run("index", "lake", "out", "--rule", "articles", "--rule", "counts", "--rule", "no-opponents")
    rules = builds[0][2]["normaliser"].rules
    assert set(rules) == {*DEFAULT_RULES, "articles", "counts"} - {"opponents"}


def test_the_defaults_are_those_of_the_library(run, builds):
    from pexeso.options import BuildOptions

    run("index", "lake", "out", "--partition-bytes", "2MiB")
    ((_, _, options),) = builds
    names = BuildOptions.__dataclass_fields__
    assert BuildOptions(**{name: options[name] for name in names}) == BuildOptions(
        partition_bytes=2 << 20
    )


def test_the_summary_goes_to_stderr(run, builds, small_index):
    result = run("index", "lake", "out")
    assert result.stdout == ""
    first, *rest = result.stderr.splitlines()
    assert first.startswith(
        f"Indexed 5 tables, 7 columns and 33 distinct values into '{small_index}' ("
    )
    assert first.endswith(" s.")
    assert rest == [
        "Left out: 2 files and 5 columns",
        "  1  file     no readable Parquet file (broken.parquet)",
        "  1  file     text without columns, not delimited text (notes.txt)",
        "  4  columns  numbers (cities.csv:people, nested/capitals.tsv:Seat since, "
        "numbers.csv:amount, ...)",
        "  1  column   2 rows, at least 5 needed (min_rows) (short.csv:city)",
        f"'pexeso info {small_index} --left-out' lists each with its reason.",
    ]


def test_the_summary_as_json(run, builds, small_index):
    result = run("index", "lake", "out", "--json")
    document = json.loads(result.stdout)
    assert document == pexeso.index.open_index(small_index).info().to_dict()
    assert [group["reason"] for group in document["left_out"]][-1].startswith("2 rows")
    assert "Left out: 2 files and 5 columns" in result.stderr


def test_a_lake_of_which_nothing_was_left_out(small_index):
    from dataclasses import replace

    info = pexeso.index.open_index(small_index).info()
    whole = replace(
        info,
        left_out=(),
        tables=1,
        columns_indexed=1,
        bytes=2_500_000,
        of_parts={**info.of_parts, "values": 1},
    )
    assert (
        build_summary(whole, 1.25)
        == f"Indexed 1 table, 1 column and 1 distinct value into '{info.path}' (2.5 MB) in 1.2 s."
    )


def test_ctrl_c_says_how_to_run_again(run, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(pexeso.index, "build_index", interrupted)
    result = run("index", "my lake", "out", "--spark-conf", "a=b c", code=130)
    assert result.stdout == ""
    again = "pexeso index 'my lake' out --spark-conf 'a=b c'"
    assert result.stderr == (
        "\nInterrupted: 'out' was not written, what it held before is as it was, and what is "
        "finished is kept for the next run. "
        f"Go on: {again}\n"
    )
    assert shlex.split(again)[1:] == ["index", "my lake", "out", "--spark-conf", "a=b c"]


def test_a_folder_with_files_of_others_is_left_alone(fail, small_lake, tmp_path, monkeypatch):
    def refuse(*arguments, **options):
        raise OutputError("Tasks were run")

    monkeypatch.setattr(pexeso.build.job, "LocalWorkers", refuse)
    (tmp_path / "thesis.txt").write_text("years of work", encoding="utf-8")
    for options in ([], ["--overwrite"]):
        said = fail(1, "index", small_lake, tmp_path, *options)
        assert "thesis.txt" in said
        assert (tmp_path / "thesis.txt").read_text(encoding="utf-8") == "years of work"
        assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--column-rule", "rows=3"], "--column-rule takes NAME=N, a name of min_rows, "),
        (["--column-rule", "min_rows=x"], "--column-rule takes NAME=N, a name of min_rows, "),
        (
            ["--min-rows", "2"],
            "No such option '--min-rows'. Did you mean '--column-rule min_rows=N'?",
        ),
        (["--no-accents"], "'--rule no-accents'?"),
        (
            ["--spark-conf", "spark.driver.memory"],
            "--spark-conf must be KEY=VALUE, such as spark.driver.memory=8g.",
        ),
        (["--preset", "fast"], "'fast' is not 'published'."),
        # Also what is the default of builds.
        (
            ["--preset", "published", "--metric", "euclidean", "--value-vectors", "weighted"],
            "The preset 'published' sets value_vectors to 'mean'. Got value_vectors='weighted'",
        ),
    ],
)
def test_options_out_of_range(fail, small_lake, tmp_path, arguments, words):
    assert words in fail(2, "index", small_lake, tmp_path / "out", *arguments)
    assert not (tmp_path / "out").exists()


STAGES = tuple(
    stage
    for stage in stage_names()
    if stage not in ("changes", *ROW_KEYS_PART.stages, *ROW_HASHES_PART.stages)
)


def test_a_small_lake_is_counted(run, small_lake):
    result = run("estimate", small_lake, "--model", "hashing", "--dimensions", 64)
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"lake     {small_lake}: 7 files, ")
    assert lines[1:4] == [
        "tables   5",
        "columns  12, of which 7 will be indexed",
        "values   33 distinct, in 42 (column, value) pairs",
    ]
    assert lines[-1] == "Counted in all 7 files; bytes, memory and time are rough."
    assert result.stderr == ""


def test_a_larger_lake_is_sampled(run, tmp_path):
    for number in range(240):
        rows = "".join(f"word{number:03d}x{row}\n" for row in range(6))
        (tmp_path / f"t{number:03d}.csv").write_text(f"word\n{rows}", encoding="utf-8")
    lines = run("estimate", tmp_path, "--model", "hashing").stdout.splitlines()
    assert lines[1] == "tables   about 240"
    assert lines[-1].startswith("From 200 of 240 files (83 % of the bytes): a rough figure.")


def test_json(run, small_lake):
    document = json.loads(run("estimate", small_lake, "--model", "hashing", "--json").stdout)
    assert document["exact"] is True
    assert document["values"] == 33
    assert tuple(document["seconds"]) == tuple(
        stage for stage in STAGES if stage not in ("divide", "tokens")
    )


def test_parts_for_equal_text(run, small_lake):
    model = ("--model", "hashing", "--dimensions", 64)
    words = ("estimate", small_lake, *model, "--include", "overlap")
    lines = run(*words).stdout.splitlines()
    assert lines[0].startswith(f"lake        {small_lake}: 7 files, ")
    assert lines[5].startswith(
        "equal text  overlap: 11 columns, 61 distinct values in 66 (column, value) pairs; of the "
        "index about "
    )
    assert lines[5].endswith(" in 1 shard")
    assert ", divide " in lines[7]
    document = json.loads(run(*words, "--json").stdout)
    assert tuple(document["seconds"]) == STAGES
    assert document["equal_text"]["parts"] == ["overlap"]


def test_nothing_to_estimate(fail, tmp_path):
    assert "There is no table in" in fail(1, "estimate", tmp_path)


CITIES = ["Oslo", "Rome", "Bern", "Graz", "Kiel"]
DEMO = Path(pexeso.__file__).parent / "demo" / "lake"


@pytest.fixture
def messy(tmp_path):
    """A folder with tables, two of them in one file, and with what is none."""
    folder = tmp_path / "messy"
    folder.mkdir()
    rows = "".join(f"{city},{number}\n" for number, city in enumerate(CITIES))
    (folder / "good.csv").write_text(f"city,number\n{rows}", encoding="utf-8")
    (folder / "header.csv").write_text("city,number\n", encoding="utf-8")
    (folder / "empty.csv").touch()
    (folder / "broken.xlsx").write_text("junk", encoding="utf-8")
    (folder / "notes.bin").write_bytes(b"\0junk")
    database = sqlite3.connect(folder / "two.sqlite")
    with database:
        for name in ("a", "b"):
            database.execute(f"create table {name} (city)")
            database.executemany(f"insert into {name} values (?)", [(city,) for city in CITIES])
    database.close()
    return folder


@pytest.mark.parametrize("lake", long_but(["messy"], ["demo", "messy"]))
def test_files_tables_and_columns_are_counted_alike(run, messy, tmp_path, lake):
    folder, index = DEMO if lake == "demo" else messy, tmp_path / "lake.pexeso"
    estimate = run("estimate", folder).stdout
    indexed = run("index", folder, index).stderr
    info = run("info", index).stdout
    appended = run("append", index).stderr
    facts = json.loads(run("info", index, "--json").stdout)
    files, tables = f"{facts['files']:,}", f"{facts['tables']:,}"
    columns, searched = f"{facts['columns']:,}", f"{facts['columns_indexed']:,}"
    assert f": {files} files, " in estimate
    assert re.search(rf"^tables +{tables}$", estimate, re.MULTILINE)
    assert f"{columns}, of which {searched} will be indexed" in estimate
    assert f"Counted in all {files} files" in estimate
    assert indexed.startswith(f"Indexed {tables} tables, {searched} columns and ")
    assert f"{files}, of which {tables} are tables" in info
    assert f"{columns}, of which {searched} are indexed" in info
    assert appended.startswith(f"Nothing to append: {files} files unchanged; ")
    document = json.loads(run("estimate", folder, "--json").stdout)
    names = ("files", "tables", "columns", "columns_indexed")
    assert {name: document[name] for name in names} == {name: facts[name] for name in names}
