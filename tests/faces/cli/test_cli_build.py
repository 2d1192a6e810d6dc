"""`pexeso index`: options reach the build, what it says, and how it ends."""

import json
import shlex

import pytest

import pexeso.build.build
import pexeso.index
from pexeso.errors import OutputError
from pexeso.faces.cli.commands.maintain.build import summary
from pexeso.lake.normalise.rules import DEFAULT_RULES
from pexeso.registry import DEFAULT_FILTERS


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
    given = "--model hashing --dimensions 8 --vector-precision single --metric angular"
    given += (
        " --partition-bytes 2MB --column-types text,number --column-rule min_rows=2,min_distinct=3 "
        "--column-rule max_number_fraction=0.25 --column-rule max-median-tokens=6"
    )
    given += (
        " --column-rule max_missing_fraction=0.75 --max-table-bytes 5MB --include containment "
        "--aliases a.csv --overwrite --spark-master local[1]"
    )
    given += " --spark-conf spark.driver.memory=3g --spark-conf a=b=c"
    result = run("index", "some lake", "out", *given.split())
    assert result.exit_code == 0, result.output
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
    assert options.pop("normaliser") is not None
    assert options == {
        "model": "hashing",
        "dimensions": 8,
        "value_vectors": None,
        "vector_precision": "single",
        "metric": "angular",
        "n_pivots": 5,
        "n_levels": 6,
        "pivot_choice": "pca",
        "n_partitions": None,
        "partition_bytes": 2_000_000,
        "map": "auto",
        "n_axes": None,
        "cells": "blocks",
        "max_table_bytes": 5_000_000,
        "parts": ("containment",),
        "row_filters": DEFAULT_FILTERS,
        "seed": 0,
        "overwrite": True,
        "master": "local[1]",
        "conf": {"spark.driver.memory": "3g", "a": "b=c"},
        "aliases": "a.csv",
        "progress": None,
        "preset": None,
        "min_partitions": 1,
    }


def test_a_preset_and_what_it_leaves_open_reach_the_build(run, builds):
    given = "--preset published --model wiki.bin --dimensions 50"
    result = run("index", "lake", "out", *given.split(), "--partition-bytes", "1GiB")
    assert result.exit_code == 0, result.output
    ((_, _, options),) = builds
    expected = {
        "preset": "published",
        "model": "wiki.bin",
        "dimensions": 50,
        "value_vectors": "mean",
        "vector_precision": "single",
        "map": "pivots",
        "n_pivots": 5,
        "cells": "grid",
        "n_levels": None,
        "n_partitions": None,
        "min_partitions": 10,
        "partition_bytes": 1 << 30,
        "seed": 0,
        "master": None,
    }
    assert {name: options[name] for name in expected} == expected


def test_what_agrees_with_a_preset_may_be_given(run, builds):
    given = "--preset published --value-vectors mean --metric euclidean"
    assert run("index", "lake", "out", *given.split()).exit_code == 0
    assert (builds[0][2]["cells"], builds[0][2]["metric"]) == ("grid", "euclidean")


@pytest.mark.parametrize(
    "command", ["append", "compact", "add-model", "add-part", "search", "batch"]
)
def test_a_preset_is_for_builds_alone(run, command, small_index):
    result = run(command, small_index, "x", "--preset", "published")
    assert result.exit_code == 2
    assert "No such option" in result.stderr


def test_an_estimate_takes_a_preset(run, small_lake):
    document = json.loads(run("estimate", small_lake, "--preset", "published", "--json").stdout)
    assert (document["dimensions"], document["vector_precision"]) == (100, "single")
    assert document["partitions"] == document["columns_indexed"] == 7


def test_how_words_make_up_a_value_is_passed_on_and_refused_without_them(run, builds):
    given = "--model", "fasttext", "--value-vectors", "mean"
    assert run("index", "lake", "out", *given).exit_code == 0
    assert builds[0][2]["value_vectors"] == "mean"
    result = run("index", "lake", "out", "--value-vectors", "mean")
    assert result.exit_code == 2
    assert "Got 'mean' with the model 'lexical': leave it out." in result.stderr


def test_rules_for_normalising_are_switched_by_name(run, builds):
    result = run(
        "index", "lake", "out", "--rule", "articles", "--rule", "counts", "--rule", "no-opponents"
    )
    assert result.exit_code == 0, result.output
    rules = builds[0][2]["normaliser"].rules
    assert set(rules) == {*DEFAULT_RULES, "articles", "counts"} - {"opponents"}


def test_a_rule_that_is_not_there_is_told_before_any_work(run, builds):
    result = run("index", "lake", "out", "--rule", "no-datse")
    assert result.exit_code == 2
    assert (
        "There is no rule 'datse' (did you mean 'dates'?). The rules are accents, case, "
        in result.stderr
    )
    assert builds == []


def test_the_defaults_are_those_of_the_library(run, builds):
    from pexeso.options import BuildOptions

    assert run("index", "lake", "out", "--partition-bytes", "2MiB").exit_code == 0
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
        summary(whole, 1.25)
        == f"Indexed 1 table, 1 column and 1 distinct value into '{info.path}' (2.5 MB) in 1.2 s."
    )


def test_ctrl_c_says_how_to_run_again(run, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(pexeso.index, "build_index", interrupted)
    result = run("index", "my lake", "out", "--spark-conf", "a=b c")
    assert result.exit_code == 130
    assert result.stdout == ""
    again = "pexeso index 'my lake' out --spark-conf 'a=b c'"
    assert result.stderr == (
        "\nInterrupted: 'out' was not written, what it held before is as it was, and what is "
        "finished is kept for the next run. "
        f"Go on: {again}\n"
    )
    assert shlex.split(again)[1:] == ["index", "my lake", "out", "--spark-conf", "a=b c"]


def test_a_lake_that_is_not_there(fail, tmp_path):
    said = fail(1, "index", tmp_path / "none", tmp_path / "out")
    assert (
        said == f"Error: {tmp_path / 'none'} is neither a folder nor a file; give the folder that "
        "holds the tables.\n"
    )


def test_a_folder_with_files_of_others_is_left_alone(fail, small_lake, tmp_path, monkeypatch):
    def no_spark(*arguments, **options):
        raise OutputError("Spark was started")

    monkeypatch.setattr(pexeso.build.build, "spark_session", no_spark)
    (tmp_path / "thesis.txt").write_text("years of work", encoding="utf-8")
    for options in ([], ["--overwrite"]):
        said = fail(1, "index", small_lake, tmp_path, *options)
        assert "thesis.txt" in said
        assert (tmp_path / "thesis.txt").read_text(encoding="utf-8") == "years of work"
        assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_an_index_that_is_there_is_not_replaced_unasked(fail, small_lake, small_index):
    before = (small_index / "manifest.json").read_bytes()
    assert "overwrite" in fail(1, "index", small_lake, small_index)
    assert (small_index / "manifest.json").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--model", "hashing", "--dimensions", "1"],
            "dimensions must be a whole number of at least 2 and at most 4,096. Got 1 instead.",
        ),
        (["--column-types", "text,colour"], "kinds must be one or more of text, date, number."),
        (["--column-rule", "min_rows=0"], "min_rows must be a whole number, 1 or more. Got 0."),
        (["--column-rule", "rows=3"], "--column-rule takes NAME=N, a name of min_rows, "),
        (["--column-rule", "min_rows=x"], "--column-rule takes NAME=N, a name of min_rows, "),
        (
            ["--partition-bytes", "many"],
            "A size must be a number with a unit, such as 8GiB, 500MB or 1048576,",
        ),
        (
            ["--spark-conf", "spark.driver.memory"],
            "--spark-conf must be KEY=VALUE, such as spark.driver.memory=8g.",
        ),
        (
            ["--dimensions", "64"],
            "dimensions is for models of vectors, and the model 'lexical' has none. Got "
            "dimensions=64: leave it out, or name a model, such as 'hashing'.",
        ),
        (["--preset", "fast"], "'fast' is not 'published'."),
        # Also what is the default of builds.
        (
            ["--preset", "published", "--vector-precision", "half"],
            "The preset 'published' sets vector_precision to 'single'. Got vector_precision='half'",
        ),
        (
            ["--preset", "published", "--model", "lexical"],
            "The preset 'published' takes a model of word vectors: 'fasttext', its default,",
        ),
        (
            ["--metric", "cosine"],
            "'cosine' is not one of 'euclidean', 'angular'.",
        ),
    ],
)
def test_options_out_of_range(fail, small_lake, tmp_path, arguments, words):
    assert words in fail(2, "index", small_lake, tmp_path / "out", *arguments)
    assert not (tmp_path / "out").exists()
