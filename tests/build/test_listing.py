"""The lake listed in tasks is the lake listed here, however the work is dealt out."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from long_runs import long_cases_but

from pexeso.build.source import FOLDER, LISTING, LISTING_SCHEMA, SKIPPED, list_lake, walk_from
from pexeso.build.workers import LocalWorkers
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
        (
            t.table,
            str(t.path),
            t.format,
            t.n_bytes,
            t.modified,
            t.version,
            t.member,
            t.reading,
            t.container,
        )
        for t in tables
    }
    assert len(rows) > 60
    assert len(skipped) >= 4
    return rows, {(file.path, file.reason, file.is_closed) for file in skipped}


def listed(lake, folder, **limits):
    """List a lake in tasks; return the facts, and the rows of tables and of what is none."""
    root, _ = look_at_lake(lake)
    with LocalWorkers(1) as workers:
        facts = list_lake(workers, root, folder, **limits)
    read = [pq.read_table(folder / name) for name in (LISTING, SKIPPED)]
    tables, skipped = ([tuple(row.values()) for row in rows.to_pylist()] for rows in read)
    return facts, tables, skipped


@pytest.mark.parametrize(
    ("first", "more"),
    long_cases_but([(12, 1000), (1000, 1000)], [(1, 1), (2, 7), (12, 1000), (1000, 1000)]),
)
def test_the_listing_is_that_of_one_walk(lake, tmp_path, first, more):
    facts, tables, skipped = listed(lake, tmp_path, first_folders=first, more_folders=more)
    assert (facts["tables"], facts["skipped"]) == (len(tables), len(skipped))
    assert facts["bytes"] == sum(row[3] for row in tables)
    assert (facts["rounds"] == 1) == (first == 1000)
    assert (set(tables), set(skipped)) == expected(lake)
    assert (len(set(tables)), len(set(skipped))) == (len(tables), len(skipped))


def test_the_digest_tells_every_change_and_not_who_walked(lake, tmp_path):
    def digest(name, lake=lake, **limits):
        (tmp_path / name).mkdir()
        return listed(lake, tmp_path / name, **limits)[0]["digest"]

    assert digest("one") == digest("parts", first_folders=7)
    small = tmp_path / "lake"
    small.mkdir()
    (small / "a.csv").write_text("a\n1\n", encoding="utf-8")
    first = digest("first", small)
    (small / "a.csv").write_text("a\n12\n", encoding="utf-8")
    second = digest("second", small)
    (small / "b.csv").write_text("", encoding="utf-8")
    assert len({first, second, digest("third", small)}) == 3


def test_a_lake_of_nothing_is_listed(tmp_path):
    lake = tmp_path / "lake"
    lake.mkdir()
    facts, tables, skipped = listed(lake, tmp_path)
    assert (facts["tables"], facts["bytes"], facts["skipped"], facts["rounds"]) == (0, 0, 0, 1)
    assert (tables, skipped) == ([], [])
    assert pq.read_table(tmp_path / LISTING).schema.equals(LISTING_SCHEMA)


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
