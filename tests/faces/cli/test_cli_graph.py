"""`pexeso graph` and `pexeso export`: what they print and write, and what they refuse."""

import json

import pyarrow.parquet as pq
import pytest
import yaml

import pexeso
from pexeso.faces.cli import graph as command
from pexeso.faces.service.verbs import Service
from tests.bare_indexes import without_parts


@pytest.fixture(scope="module")
def rows(small_index):
    return pexeso.open_index(small_index).graph().rows()


def test_more_edges_than_a_table_shows_are_counted(run, small_index, monkeypatch):
    n_edges = len(pexeso.open_index(small_index).graph(method="semantic"))
    assert n_edges > 3
    for shown, said in ((1, f"{n_edges - 1} more edges"), (n_edges - 1, "1 more edge")):
        monkeypatch.setattr(command, "MAX_SHOWN", shown)
        *lines, last = run("graph", small_index, "--method", "semantic").stdout.splitlines()
        assert len(lines) == shown + 1
        assert last == f"{said} (-o FILE or --json has all)"


def test_columns_with_more_edges_are_told(run, small_index):
    options = ("--method", "semantic", "--min-joinability", 0.1)
    done = run("graph", small_index, "-k", 1, *options)
    assert "more than 1 (-k all shows them)." in done.stderr
    done = run("graph", small_index, "-k", "all", *options)
    assert "more than" not in done.stderr


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ({}, ()),
        ({"method": "semantic", "max_distance": 0.2}, ("--max-distance", 0.2)),
        ({"k": 1, "min_joinability": 0.2}, ("-k", 1, "--min-joinability", 0.2)),
        ({"method": "semantic", "fold_copies": True}, ("--method", "semantic", "--fold-copies")),
    ],
)
def test_json_is_what_the_service_answers(run, small_index, fields, options):
    done = run("graph", small_index, "--json", *options)
    answered = Service().answer({"verb": "graph", "index": str(small_index), **fields})
    assert json.loads(done.stdout) == answered
    assert answered["edges"]


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet", "mmd", "graphml"])
def test_a_file_by_its_name(run, fail, small_index, rows, tmp_path, suffix):
    path = tmp_path / f"joins.{suffix}"
    done = run("graph", small_index, "-o", path)
    assert f", in '{path}', in " in done.stderr
    assert done.stdout == ""
    if suffix == "parquet":
        assert pq.read_table(path).to_pylist() == rows
    before = path.read_bytes()
    assert "is there already" in fail(1, "graph", small_index, "-o", path)
    run("graph", small_index, "-o", path, "--overwrite")
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["mermaid", "graphml"])
def test_an_export_is_the_file_of_a_graph(run, small_index, tmp_path, name):
    suffix = {"mermaid": "mmd", "graphml": "graphml"}[name]
    graph, export = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}"
    run("graph", small_index, "-o", graph)
    run("export", name, small_index, "-o", export)
    assert export.read_bytes() == graph.read_bytes()


def test_dbt_takes_whole_containment_unless_asked(run, small_index, rows, tmp_path):
    run("export", "dbt", small_index, "-o", tmp_path / "models", "--namespace", "raw")
    source = yaml.safe_load((tmp_path / "models" / "lake_joins.yml").read_text())["sources"][0]
    assert source["name"] == "raw"
    whole = {(row["left_table"], row["left_column"]) for row in rows if row["joinability"] == 1}
    assert whole == {
        (table["name"], column["name"])
        for table in source["tables"]
        for column in table.get("columns", [])
    }
    run("export", "dbt", small_index, "-o", tmp_path / "more", "--min-joinability", 0.5)
    more = (tmp_path / "more" / "lake_joins.yml").read_text()
    assert more.count('"relationships"') == len(rows)


def test_openmetadata_has_a_line_for_each_table(run, small_index, rows, tmp_path):
    path = tmp_path / "joins.jsonl"
    run("export", "openmetadata", small_index, "-o", path, "--namespace", "files.d.lake")
    tables = [json.loads(line)["table"] for line in path.read_text().splitlines()]
    assert tables == [f'files.d.lake."{name}"' for name in sorted({r["left_table"] for r in rows})]


@pytest.mark.parametrize(
    "options",
    [(), ("--namespace", "files.lake"), ("--namespace", 'files."d.lake'), ("--namespace", "a..b")],
)
def test_openmetadata_needs_the_names_that_tables_have_there(fail, small_index, tmp_path, options):
    said = fail(2, "export", "openmetadata", small_index, "-o", tmp_path / "joins.jsonl", *options)
    assert "--namespace must be SERVICE.DATABASE.SCHEMA for openmetadata" in said
    assert not (tmp_path / "joins.jsonl").exists()


def test_graphs_on_spark_are_the_same(run, small_index, spark, tmp_path, monkeypatch):
    from contextlib import contextmanager

    @contextmanager
    def shared(master, conf=None):
        assert master == "local[2]"
        yield spark

    monkeypatch.setattr("pexeso.build.spark.session.spark_session", shared)
    for method in ("overlap", "semantic"):
        here, there = (
            run("graph", small_index, "--method", method, "--json", *more)
            for more in ((), ("--spark-master", "local[2]"))
        )
        assert there.stdout == here.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--method", "overlap", "--max-distance", 0.1), "compares equal ones: leave it out"),
        (("--method", "overlap", "--model", "hashing"), "has no use for --model: leave it out"),
        (("--spark-conf", "a=b"), "--spark-conf is for a graph made on Spark: give --spark-master"),
        (("-o", "joins.xlsx"), "must end in .jsonl, .csv, .parquet, .mmd, .graphml or .html"),
        (("-o", "a.jsonl", "--json"), "leave --json out"),
        (("--min-joinability", 0), "--min-joinability must be a number in (0, 1]"),
    ],
)
def test_what_does_not_go_together_is_refused(run, small_index, arguments, message):
    done = run("graph", small_index, *arguments, code=None)
    assert done.exit_code in (1, 2)
    assert message in done.stderr.replace("\n", " ")


def test_an_index_without_the_part_says_how_to_add_it(run, fail, small_index, tmp_path):
    bare = without_parts(small_index, tmp_path / "bare.pexeso")
    assert f"pexeso add-part {bare} overlap" in fail(2, "graph", bare, "--method", "overlap")
    done = run("graph", bare)
    assert ", by semantic, in " in done.stderr


def test_an_export_without_a_file_says_which_option_is_missing(fail, small_index):
    assert "Missing option '-o' / '--output'." in fail(2, "export", "mermaid", small_index)


def test_a_format_that_there_is_not_is_refused(fail, small_index, tmp_path):
    said = fail(2, "export", "excel", small_index, "-o", tmp_path / "a")
    assert "'dbt', 'openmetadata', 'mermaid', 'graphml'" in said


@pytest.mark.parametrize(
    ("name", "suffix", "file"),
    [("mermaid", ".mmd", "m.html"), ("graphml", ".graphml", "m"), ("openmetadata", ".jsonl", "m")],
)
def test_a_file_ends_as_its_format_does(fail, small_index, tmp_path, name, suffix, file):
    said = fail(2, "export", name, small_index, "-o", tmp_path / file)
    assert f"-o must end in {suffix} for {name}" in said.replace("\n", " ")
    assert not (tmp_path / file).exists()


@pytest.mark.parametrize("options", [("--method", "semantic"), ("--max-distance", 0.2)])
def test_dbt_is_given_equal_values_alone(fail, small_index, tmp_path, options):
    said = fail(2, "export", "dbt", small_index, "-o", tmp_path / "models", *options)
    assert "dbt takes columns of equal values alone" in said
    assert not (tmp_path / "models").exists()
