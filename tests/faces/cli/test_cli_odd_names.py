"""Tests of every command with names that are hard for URLs, patterns and Hadoop."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from long_runs import long_but
from processes import ran

from pexeso.index import build_index

ROOT = Path(__file__).resolve().parents[3]
ENCODED, PATTERN, SEPARATORS = "a%20b ü#", "[x]{y,z}*?", "c:d\\'\"=1&"
TOGETHER = f"{ENCODED} {PATTERN} {SEPARATORS}"
NAMES = long_but([TOGETHER], [TOGETHER, ENCODED, PATTERN, SEPARATORS])
"""The characters together, and taken apart, which says which of them does harm."""

OPTIONS = ("--model", "hashing", "--dimensions", "64")
TABLE = "city,people\nOslo,1\nMadrid,2\nVienna,3\nLisbon,4\nDublin,5\n"
ODD_TABLE = "x:y%20[1]{2}#?.csv"


@pytest.fixture(scope="module")
def plain(small_lake, tmp_path_factory):
    """Build an index of the small lake and an oddly named table; return the lake and the index.

    The other names are plain.
    """
    folder = tmp_path_factory.mktemp("plain")
    lake = Path(shutil.copytree(small_lake, folder / "lake"))
    (lake / "nested" / ODD_TABLE).write_text(TABLE, encoding="utf-8")
    index = build_index(
        lake,
        folder / "lake.pexeso",
        model="hashing",
        dimensions=64,
        parts=["overlap", "containment"],
    )
    return lake, index.path


def outputs(run, index, query):
    """Return what each kind of search says, without what differs from run to run."""
    commands = [
        ("search", index, query, "--min-joinability", "0.1", "--csv"),
        ("search", index, query, "--method", "all", "--min-joinability", "0.1", "--csv"),
        ("search", index, query, "--method", "overlap", "--csv"),
        ("search", index, query, "--method", "containment", "--min-joinability", "0.1", "--csv"),
        ("explain", index, query, f"nested/{ODD_TABLE}:city", "--csv"),
        ("join", index, query, f"nested/{ODD_TABLE}:city"),
    ]
    return [run(*arguments).stdout for arguments in commands]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_command_takes_any_name(run, plain, spark, tmp_path, name):
    there = tmp_path / name
    lake = there / f"lake {name}"
    shutil.copytree(plain[0], lake)
    index, query = there / f"{name}.pexeso", there / f"{name}.csv"
    query.write_text("place,visits\nOslo,3\nrome,1\n MADRID ,2\nXyzzyx,1\n", encoding="utf-8")
    query_column = f"{query}:place"
    expected = outputs(run, plain[1], query_column)

    run("estimate", lake)
    run("index", lake, index, *OPTIONS, "--include", "containment")
    run("add-part", index, "overlap")
    assert outputs(run, index, query_column) == expected
    assert any(ODD_TABLE in answer for answer in expected)

    written = there / f"out {name}.parquet"
    files = ("-o", written, "--conflicts", there / f"{name}.conflicts.csv")
    run("join", index, query_column, "cities.csv:city", *files)
    run("search", index, query_column, "--html", there / f"{name}.html")
    labels = there / f"labels {name}.csv"
    labels.write_text(
        "query_value,lake_value,same\nOslo,Oslo,yes\nOslo,Rome,no\n", encoding="utf-8"
    )
    run("tune", index, labels)
    queries, answers = there / f"{name}.jsonl", there / f"answers {name}.jsonl"
    queries.write_text(json.dumps({"file": str(query), "column": "place"}) + "\n", encoding="utf-8")
    run("batch", index, queries, "-o", answers, "-k", "9")
    cluster = ("--spark-master", "local[2]")
    run("batch", index, queries, "-o", f"{answers}.spark", "-k", "9", *cluster)
    here, on_spark = (
        json.loads(Path(path).read_text("utf-8"))["results"]
        for path in (answers, f"{answers}.spark")
    )
    assert here == on_spark
    assert {written.name, f"{name}.html", answers.name} <= set(os.listdir(there))

    run("delete", index, "cities.csv", f"nested/{ODD_TABLE}")
    run("append", index)
    run("append", index, lake)
    run("compact", index, "--all")
    assert outputs(run, index, query_column) == expected
    run("check", index)
    assert json.loads(run("info", index, "--json").stdout)["lake"] == str(lake)
    run("doctor", there)


@pytest.mark.long
def test_checkout_home_and_temporary_folder_may_have_any_name(small_lake, tmp_path):
    name = TOGETHER
    for part in ("checkout", "home", "temporary"):
        (tmp_path / f"{part} {name}").mkdir()
    checkout = tmp_path / f"checkout {name}"
    for package in ("embed", "partition", "pexeso"):
        shutil.copytree(ROOT / package, checkout / package)  # with what is compiled
    lake, index = f"{name}lake", f"{name}.pexeso"
    shutil.copytree(small_lake, checkout / lake)
    environment = {
        **{
            key: value
            for key, value in os.environ.items()
            if key not in ("PYTHONPATH", "XDG_CACHE_HOME")
        },
        "HOME": str(tmp_path / f"home {name}"),
        "TMPDIR": str(tmp_path / f"temporary {name}"),
        "LC_ALL": "C",
    }

    def pexeso(*arguments):
        done = ran(
            [
                sys.executable,
                "-c",
                "import pexeso.faces.cli.main as m; print(m.__file__); m.main()",
                *arguments,
            ],
            cwd=checkout,
            env=environment,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        loaded, _, said = done.stdout.partition("\n")
        assert loaded == str(checkout / "pexeso" / "faces" / "cli" / "main.py")
        return said

    small = ("--spark-master", "local[1]", "--spark-conf", "spark.driver.memory=700m")
    pexeso("index", lake, index, *OPTIONS, *small)
    said = pexeso("search", index, f"{lake}/cities.csv:city", "-k", "9", "--csv")
    assert "nested/capitals.tsv" in said
    pexeso("check", index)
    assert list((tmp_path / f"temporary {name}").iterdir()) == []
