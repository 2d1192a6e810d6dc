"""Redundant tables of folders, frames and names, with statements that are run or told."""

import json
import shutil
import sqlite3
from contextlib import closing
from zipfile import ZipFile

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks.redundancy.measuring import find_by_samples
from pexeso import build_index
from pexeso.errors import InputError, LakeError
from pexeso.redundancy.holding import undo_plan
from pexeso.redundancy.plan_actions import apply_plan, verify_plan
from pexeso.redundancy.planning import Costs
from pexeso.redundancy.rebuilds import Statement, verify_statements
from pexeso.redundancy.search import find_redundancy

FREE = Costs(accesses=0.0)
"""Whatever can be rebuilt goes."""

WHOLE = pa.table(
    {
        "id": pa.array(range(60)),
        "kind": [f"k{number % 4}" for number in range(60)],
        "price": [number / 4 for number in range(60)],
        "note": [None if number % 9 == 0 else f"n{number * number}" for number in range(60)],
    }
)


def gone(result):
    return {deletion.table: deletion.parent for deletion in result.plan.delete}


def pairs(result):
    return {(edge.parent, edge.child) for edge in result.edges}


def write_parts(folder, table, n_parts):
    folder.mkdir(parents=True)
    size = -(-len(table) // n_parts)
    for part in range(n_parts):
        pq.write_table(table.slice(part * size, size), folder / f"part-{part}.parquet")


def test_frames_by_name(spark):
    frames = {
        "whole": spark.createDataFrame(WHOLE),
        "some": spark.createDataFrame(WHOLE.slice(5, 9).select(["price", "id"])),
        "other": spark.createDataFrame(pa.table({"x": [1]})),
        "none": spark.createDataFrame(pa.table({"id": pa.array([], pa.int64())})),
        "narrow": spark.createDataFrame(WHOLE.select(["id", "kind"])),
    }
    result = find_redundancy(frames, costs=FREE)
    empty = {(parent, "none") for parent in ("whole", "some", "narrow")}
    assert pairs(result) == {("whole", "some"), ("whole", "narrow"), *empty}
    assert gone(result)["narrow"] == "whole"
    assert result.to_dict()["lake"] == "tables of Spark"
    assert json.loads(json.dumps(result.to_dict()))["stages"][0]["name"] == "read"
    with pytest.raises(InputError, match="Statements are compared"):
        find_redundancy(frames, costs=FREE, verified=True)
    with pytest.raises(InputError, match="dict of several"):
        find_redundancy(frames["whole"])


def test_tables_of_the_catalog(spark):
    spark.sql("create database if not exists redundant")
    try:
        spark.sql("create or replace view redundant.whole as select id, id % 3 kind from range(30)")
        spark.sql("create or replace view redundant.narrow as select id from range(30)")
        spark.sql("create or replace view redundant.odd as select make_interval(1) late")
        result = find_redundancy("spark_catalog.redundant", costs=FREE)
        assert gone(result) == {"spark_catalog.redundant.narrow": "spark_catalog.redundant.whole"}
        [left_out] = result.containments.left_out
        assert left_out.table == "spark_catalog.redundant.odd"
        assert "interval" in left_out.reason
        with pytest.raises(LakeError):
            find_redundancy("no_such_table_or_folder")
    finally:
        spark.sql("drop database redundant cascade")


def test_tables_of_several_files_and_folders_of_values(tmp_path):
    lake = tmp_path / "lake"
    write_parts(lake / "whole", WHOLE, 4)
    pq.write_table(WHOLE.filter(pc.equal(WHOLE["kind"], "k2")), lake / "two.parquet")
    for kind in ("k0", "k1"):
        rows = WHOLE.filter(pc.equal(WHOLE["kind"], kind)).drop_columns("kind")
        write_parts(lake / "split" / f"kind={kind}", rows, 1)
    result = find_redundancy(lake, costs=FREE, verified=True)
    assert pairs(result) == {("whole", "split"), ("whole", "two.parquet")}
    assert gone(result)["two.parquet"] == "whole"
    plan = tmp_path / "plan.json"
    result.write_plan(plan)
    assert verify_plan(plan).wrong == ()
    done = apply_plan(plan)
    assert set(done.moved) == set(gone(result))
    assert not (lake / "two.parquet").exists()
    assert undo_plan(plan).refused == ()
    assert (lake / "two.parquet").exists()
    assert pairs(find_redundancy(lake, costs=FREE)) == pairs(result)


def test_links_and_what_they_lead_to_stay(tmp_path):
    lake = tmp_path / "lake"
    (lake / "deep").mkdir(parents=True)
    for name in ("a", "b", "c", "deep/d"):
        pq.write_table(WHOLE, lake / f"{name}.parquet")
    (lake / "deep" / "to_b.parquet").symlink_to("../b.parquet")
    (tmp_path / "other").symlink_to(lake)
    for place in (lake, tmp_path / "other"):
        result = find_redundancy(place, costs=FREE)
        assert len(pairs(result)) == 20
        assert len(gone(result)) == 3
        assert not gone(result).keys() & {"b.parquet", "deep/to_b.parquet"}


def write_database(path):
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE t (id INTEGER, kind TEXT)")
        database.executemany("INSERT INTO t VALUES (?, ?)", [(5, "k1"), (6, "k2")])
        database.commit()


def test_a_folder_with_tables_that_are_not_compared_stays(spark, tmp_path):
    lake = tmp_path / "lake"
    for name in ("copy", "holds", "locked", "nested/kind=k0"):
        write_parts(lake / name, WHOLE.slice(5, 20).drop_columns("kind"), 2)
    pq.write_table(WHOLE, lake / "whole.parquet")
    write_database(lake / "holds" / "own.sqlite")
    write_database(lake / "nested" / "kind=k0" / "own.sqlite")
    (lake / "locked" / "book.xlsx").write_bytes(b"no workbook")
    result = find_redundancy(lake, costs=FREE)
    assert ("whole.parquet", "holds") in pairs(result)
    assert set(gone(result)) == {"copy"}
    reasons = {omission.table: omission.reason for omission in result.left_out}
    assert "compared where an index is searched" in reasons["holds/own.sqlite"]
    left_out = {"holds/own.sqlite", "locked/book.xlsx", "nested/kind=k0/own.sqlite"}
    assert set(reasons) == left_out
    assert set(reasons) < set(result.plan.keep)
    assert {omission.table for omission in find_by_samples(spark, lake).left_out} == set(reasons)


def test_a_folder_with_files_that_no_statement_gives_back_stays(tmp_path):
    lake = tmp_path / "lake"
    texts = ("deep/terms.txt", ".git/HEAD", "_notes/read.me", "_SUCCESS", ".old.parquet.crc")
    for number, name in enumerate(("none", *texts)):
        folder = lake / f"t{number}"
        write_parts(folder, WHOLE.slice(5, 20), 1)
        if name != "none":
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text("precious")
    write_parts(lake / "linked", WHOLE.slice(5, 20), 1)
    (lake / "linked" / "deep").mkdir()
    (lake / "linked" / "deep" / "link").symlink_to(tmp_path)
    pq.write_table(WHOLE, lake / "whole.parquet")
    result = find_redundancy(lake, costs=FREE, verified=True)
    assert ("linked", "t0") in pairs(result)  # and its content cannot be told: it rebuilds nothing
    plan = result.plan
    assert {deletion.table for deletion in plan.delete} == {"t0", "t4", "t5"}
    assert set(apply_plan(plan).moved) == {"t0", "t4", "t5"}


def test_a_folder_with_a_table_that_is_newer_than_the_index_stays(tmp_path):
    lake = tmp_path / "lake"
    write_parts(lake / "some", WHOLE.slice(5, 20), 2)
    pq.write_table(WHOLE, lake / "whole.parquet")
    index = build_index(lake, tmp_path / "lake.pexeso", model="lexical", parts=["redundancy"])
    assert set(gone(find_redundancy(index.path, costs=FREE))) == {"some"}
    (lake / "some" / "deep").mkdir()
    (lake / "some" / "deep" / "new.csv").write_text("a,b\n1,2\n")
    assert gone(find_redundancy(index.path, costs=FREE, verified=True)) == {}


def test_a_folder_that_has_gone_since_the_index_rebuilds_nothing(tmp_path):
    lake = tmp_path / "lake"
    write_parts(lake / "whole", WHOLE, 2)
    pq.write_table(WHOLE.slice(5, 20), lake / "some.parquet")
    index = build_index(lake, tmp_path / "lake.pexeso", model="lexical", parts=["redundancy"])
    assert gone(find_redundancy(index.path, costs=FREE)) == {"some.parquet": "whole"}
    shutil.rmtree(lake / "whole")
    assert gone(find_redundancy(index.path, costs=FREE, verified=True)) == {}


def test_tables_inside_a_file_stay(tmp_path):
    lake = tmp_path / "lake"
    lake.mkdir()
    lines = [f"{number},k{number}\n" for number in range(9)]
    (lake / "whole.csv").write_text("".join(["id,kind\n", *lines]))
    with ZipFile(lake / "some.zip", "w") as archive:
        archive.writestr("some.csv", "".join(["id,kind\n", *lines[2:]]))
    index = build_index(lake, tmp_path / "lake.pexeso", model="lexical", parts=["redundancy"])
    result = find_redundancy(index.path, costs=FREE)
    assert pairs(result) == {("whole.csv", "some.zip/some.csv")}
    assert gone(result) == {}


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("SELECT * FROM `a.parquet` WHERE id < 4", None),
        ("SELECT * FROM `a.parquet` WHERE id < 3", "gives a row less often"),
        ("SELECT * FROM `a.parquet` WHERE id < 5", "gives a row more often"),
        ("SELECT id FROM `a.parquet` WHERE id < 4", "gives the columns id bigint, and it has"),
        ("SELECT id, kind, note, price FROM `a.parquet` WHERE id < 4", "gives the columns"),
        ("SELECT * FROM", "cannot be compared"),
        ("SELECT * FROM `b.parquet`", "cannot be compared"),
        ("DROP VIEW `a.parquet`", "cannot be compared"),
        ("SELECT reflect('java.lang.System', 'exit', 1)", "may not name reflect"),
    ],
)
def test_statements_give_their_table_or_the_reason_why_not(spark, tmp_path, statement, reason):
    pq.write_table(WHOLE, tmp_path / "a.parquet")
    pq.write_table(WHOLE.slice(0, 4), tmp_path / "child.parquet")
    flaws = verify_statements(spark, tmp_path, [Statement("child.parquet", "a.parquet", statement)])
    if reason is None:
        assert flaws == {}
    else:
        assert reason in flaws["child.parquet"]


def test_old_times_of_int96_are_compared(spark, tmp_path):
    times = pa.array([-15_000_000_000, 253_402_300_799, 0], pa.timestamp("s"))
    whole = pa.table({"id": [1, 2, 3], "seen": times})
    old = {"use_deprecated_int96_timestamps": True}
    pq.write_table(whole, tmp_path / "a.parquet", **old)
    pq.write_table(whole.slice(0, 2), tmp_path / "child.parquet", **old)
    statement = Statement("child.parquet", "a.parquet", "SELECT * FROM `a.parquet` WHERE id < 3")
    assert verify_statements(spark, tmp_path, [statement]) == {}


def test_a_parent_that_is_gone_is_a_reason(spark, tmp_path):
    pq.write_table(WHOLE, tmp_path / "child.parquet")
    flaws = verify_statements(
        spark, tmp_path, [Statement("child.parquet", "gone.parquet", "SELECT 1")]
    )
    assert flaws["child.parquet"].startswith("its parent 'gone.parquet' cannot be read")


def test_statements_that_people_know_count_once_they_were_run(tmp_path):
    lake = tmp_path / "lake"
    lake.mkdir()
    pq.write_table(WHOLE, lake / "whole.parquet")
    odd = pa.concat_tables([WHOLE.slice(0, 20), WHOLE.slice(0, 10)])
    pq.write_table(odd, lake / "odd.parquet")
    pq.write_table(WHOLE.take([1, 1, 2, 40, 40, 33, 21]), lake / "twice.parquet")
    assert gone(find_redundancy(lake, costs=FREE, verified=True)) == {}
    known = tmp_path / "known.toml"
    known.write_text(
        '''
        [[rebuild]]
        table = "odd.parquet"
        parent = "whole.parquet"
        sql = """
        SELECT * FROM `whole.parquet` WHERE id < 20
        UNION ALL SELECT * FROM `whole.parquet` WHERE id < 10
        """

        [[rebuild]]
        table = "twice.parquet"
        parent = "whole.parquet"
        sql = "SELECT * FROM `whole.parquet` WHERE id IN (1, 2, 40, 33, 21)"

        [[rebuild]]
        table = "whole.parquet"
        parent = "odd.parquet"
        sql = "SELECT 1"
        ''',
        encoding="utf-8",
    )
    assert gone(find_redundancy(lake, costs=FREE, statements=known)) == {}  # nobody has run them
    result = find_redundancy(lake, costs=FREE, statements=known, verified=True)
    assert gone(result) == {"odd.parquet": "whole.parquet"}
    assert result.refuted == {
        "twice.parquet": "the statement gives a row less often than it",
        "whole.parquet": "a statement was given for it, and 'odd.parquet' does not hold all its "
        "rows",
    }


@pytest.mark.parametrize(
    "text",
    [
        "[[rebuild]]\ntable = 'a'\n",
        "[[rebuild]]\ntable = 'a'\nparent = 'b'\nsql = 3\n",
        "[rebuild]\ntable = 'a'\n",
        "[[other]]\n",
        "rebuild = [1]\n",
        "no TOML",
    ],
)
def test_wrong_files_of_statements_are_refused(tmp_path, text):
    path = tmp_path / "known.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"known.toml' must be TOML of tables \[\[rebuild\]\]"):
        find_redundancy({}, statements=path)


def test_files_are_read_as_the_lake_says_by_every_step(tmp_path):
    lake = tmp_path / "lake"
    (lake / "parts").mkdir(parents=True)
    rows = [f"{number},k{number % 4}" for number in range(40)]
    (lake / "a.csv").write_text("left,over\n" + "\n".join(["id,kind", *rows]) + "\n")
    (lake / "b.csv").write_text("\n".join(["id,kind", *rows[7:20]]) + "\n")
    (lake / "parts" / "part-0.csv").write_text("x,y\n" + "\n".join(["id,kind", *rows[30:]]) + "\n")
    (lake / "lake.toml").write_text(
        "".join(
            f'[[files]]\npattern = "{pattern}"\nskip-rows = 1\n'
            for pattern in ("a.csv", "parts/*.csv")
        )
    )
    expected = {("a.csv", "b.csv"), ("a.csv", "parts")}
    assert pairs(find_by_samples(None, lake)) == expected
    result = find_redundancy(lake, costs=FREE, verified=True)
    assert pairs(result) == expected
    assert gone(result) == {"b.csv": "a.csv", "parts": "a.csv"}
