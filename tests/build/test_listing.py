"""The lake listed in tasks is the lake listed here, however the work is dealt out."""

import numpy as np
import pytest
from long_runs import long_cases_but

from pexeso.build.lake_source.listing import FOLDER, in_batches, list_lake, walk_from
from pexeso.lake.files import find_tables, look_at_lake


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """Write a lake of 60 folders of very uneven size, with all that a walk passes over."""
    root = tmp_path_factory.mktemp("listing") / "lake"
    generator = np.random.default_rng(3)
    folders = [root]
    for number in range(60):
        parent = folders[int(generator.integers(0, len(folders)) * generator.random())]
        folders.append(parent / f"d{number} é")
    for folder in folders:
        folder.mkdir(exist_ok=True)
        for number in range(int(generator.integers(0, 5))):
            (folder / f"t{number}.csv").write_text("a\n" * number, encoding="utf-8")
    (root / "notes.md").write_text("prose", encoding="utf-8")
    (root / ".hidden").mkdir()
    (folders[7] / "old.pexeso").mkdir()
    (folders[9] / "away.csv").symlink_to(root.parent / "nothing.csv")
    (folders[9] / "in.csv").symlink_to(root / "real.csv")
    (root / "real.csv").write_text("a\n1\n", encoding="utf-8")
    return root


def expected(lake):
    tables, skipped = find_tables(lake)
    rows = {
        (t.table, str(t.path), t.format, t.n_bytes, t.modified, t.version, t.member, t.reading)
        for t in tables
    }
    assert len(rows) > 60
    assert len(skipped) >= 4
    return rows, {(file.path, file.reason, file.is_closed) for file in skipped}


def rows_of(spark, folder):
    return [tuple(row) for row in spark.read.parquet(folder.as_uri()).collect()]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("first", "more"),
    long_cases_but([(12, 1000), (1000, 1000)], [(1, 1), (2, 7), (12, 1000), (1000, 1000)]),
)
def test_the_listing_is_that_of_one_walk(spark, lake, tmp_path, first, more):
    root, _ = look_at_lake(lake)
    places = [tmp_path / name for name in ("tables", "skipped", "scratch")]
    totals = list_lake(spark, root, *places, first_folders=first, more_folders=more)
    tables, skipped = (rows_of(spark, place) for place in places[:2])
    assert (totals.n_tables, totals.n_skipped) == (len(tables), len(skipped))
    assert totals.n_bytes == sum(row[3] for row in tables)
    assert (totals.n_rounds == 1) == (first == 1000)
    assert (set(tables), set(skipped)) == expected(lake)
    assert (len(set(tables)), len(set(skipped))) == (len(tables), len(skipped))


@pytest.mark.spark
def test_a_lake_of_nothing_is_listed(spark, tmp_path):
    lake = tmp_path / "lake"
    lake.mkdir()
    totals = list_lake(spark, lake, *(tmp_path / name for name in ("tables", "skipped", "scratch")))
    assert (totals.n_tables, totals.n_bytes, totals.n_skipped, totals.n_rounds) == (0, 0, 0, 1)
    assert rows_of(spark, tmp_path / "tables") == []
    assert spark.read.parquet((tmp_path / "tables").as_uri()).columns == [
        "table", "path", "format", "n_bytes", "modified", "version", "member", "reading",
    ]  # fmt: skip


def test_a_task_hands_on_what_is_too_much(lake):
    root, _ = look_at_lake(lake)
    for limit in (1, 3, 20):
        rows = list(walk_from(root, [""], limit))
        left = [row["table"] for row in rows if row["kind"] == FOLDER]
        assert left
        rest = list(walk_from(root, left, 10_000))
        tables = {row["table"] for row in rows + rest if row["kind"] == "table"}
        assert tables == {row[0] for row in expected(lake)[0]}


def test_all_folders_given_are_listed_whatever_the_limit(lake):
    root, _ = look_at_lake(lake)
    level = [row["table"] for row in walk_from(root, [""], 1) if row["kind"] == FOLDER]
    assert len(level) > 1
    rows = list(walk_from(root, level, 1))
    assert not {row["table"] for row in rows if row["kind"] == FOLDER} & set(level)


def test_rows_go_in_batches_of_a_bounded_size(monkeypatch):
    monkeypatch.setattr("pexeso.build.lake_source.listing.BATCH_ROWS", 4)
    rows = [{"kind": "table", "table": f"t{number}", "n_bytes": number} for number in range(10)]
    batches = list(in_batches(rows))
    assert [len(batch) for batch in batches] == [4, 4, 2]
    assert [name for batch in batches for name in batch.column("table").to_pylist()] == [
        f"t{n}" for n in range(10)
    ]
