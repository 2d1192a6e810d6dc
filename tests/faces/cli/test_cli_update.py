"""``pexeso append``, ``delete`` and ``compact``: what they say, and what they refuse."""

import json
import shutil

import pytest

from pexeso.build.report import Update
from pexeso.faces.cli.index import append_summary
from pexeso.index import open_index


@pytest.fixture
def copied(small_index, small_lake, tmp_path):
    shutil.copytree(small_index, tmp_path / "lake.pexeso")
    shutil.copytree(small_lake, tmp_path / "lake")
    return tmp_path


def test_a_table_is_deleted_and_comes_back_with_the_next_append(run, copied):
    index = copied / "lake.pexeso"
    done = run("delete", str(index), "cities.csv", "nested/capitals.tsv")
    assert done.stderr.startswith(
        "Deleted 2 tables with 3 indexed columns; pexeso compact frees the space; generation 2, "
    )
    assert done.stdout == ""
    assert {match.table for match in open_index(index).search(["Oslo", "Rome"], k=9)} == {
        "nested/companies.csv"
    }
    done = run("append", str(index), str(copied / "lake"), "--json")
    said = json.loads(done.stdout)
    assert (said["new"], said["changed"], said["columns_added"], said["generation"]) == (2, 0, 3, 3)
    names = ["cities.csv:people", "nested/capitals.tsv:Seat since"]
    assert said["left_out"] == [{"reason": "numbers", "columns": 2, "examples": names}]
    assert done.stderr.startswith(
        "Appended: 2 new, 0 changed; 5 files unchanged. 3 columns more indexed, 0 fewer; "
        "generation 3, "
    )
    assert done.stderr.splitlines()[1:] == [
        "Left out: 2 columns",
        f"  2  columns  numbers ({', '.join(names)})",
        f"'pexeso info {index} --left-out' lists each with its reason.",
    ]
    done = run("append", str(index))
    assert done.stderr.startswith("Nothing to append: 7 files unchanged; generation 3, ")
    done = run("compact", str(index), "--all")
    assert done.stderr.startswith(
        "Rewrote 2 partitions as 1, and 2 shards of token sets as 1; generation 4, "
    )
    done = run("compact", str(index))
    assert done.stderr.startswith("There was nothing to compact; generation 4, ")
    assert {match.table for match in open_index(index).search(["Oslo", "Rome"], k=9)} == {
        "cities.csv",
        "nested/capitals.tsv",
        "nested/companies.csv",
    }
    done = run("info", str(index), "--report")
    assert [line.split()[0] for line in done.stdout.splitlines()] == [
        # The words are counted again, and as many as before: no value is embedded anew.
        *("stage", "catalog", "values", "train", "partition", "index", "divide", "tokens", "all")
    ]


def test_a_damaged_index_is_not_to_be_overwritten_by_a_deletion(run, copied):
    index = copied / "lake.pexeso"
    (index / "manifest.json").write_bytes(b"")
    done = run("delete", str(index), "cities.csv", code=1)
    assert done.stderr.startswith(f"Error: '{index / 'manifest.json'}' cannot be trusted. ")
    assert "overwritten" not in done.stderr


def test_a_summary_says_what_is_missing():
    columns = {"columns_added": 5, "columns_deleted": 2}
    done = Update(2, True, new=1, changed=2, deleted=0, missing=3, unchanged=4, **columns)
    assert append_summary(done, 10) == (
        "Appended: 1 new, 2 changed; 4 files unchanged, 3 files no longer in the lake "
        "(--delete-missing deletes them). "
        "5 columns more indexed, 2 fewer"
    )
    assert append_summary(Update(2, False, unchanged=4, closed=2), 6) == (
        "Nothing to append: 4 files unchanged, 2 tables in what cannot be opened, left as they are"
    )


def test_a_summary_says_what_is_read_again_and_why():
    assert append_summary(Update(2, True, reread=3, unchanged=1, columns_added=3), 1) == (
        "Appended: 0 new, 0 changed; 1 file unchanged. 3 tables of formats that pexeso reads in "
        "another way than when they were indexed, read again. 3 columns more indexed, 0 fewer"
    )
