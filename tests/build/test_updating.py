"""Updates: append, delete and compact give what a fresh build over the same tables would give."""

import errno
import gzip
import itertools
import os
import random
import shutil
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from long_runs import EVERYTHING

from pexeso.build.changes import stale_formats
from pexeso.build.parts.metadata import described, options_of
from pexeso.errors import IndexNotFoundError, InputError, LakeError, OutputError
from pexeso.index import build_index, open_index
from pexeso.lake.catalog import Catalog
from pexeso.lake.containers.formats import READERS
from pexeso.redundancy.part.open import pieces_by_table
from pexeso.runtime.ranges import merge_ranges, ranges_of
from pexeso.store.local.writer import IndexWriter

WORDS = [
    f"{first} {second}"
    for first in ("north", "old", "lower", "saint")
    for second in ("bridge", "mill", "harbour", "hill", "green")
]
OPTIONS = {"model": "hashing", "dimensions": 24, "parts": ["containment"]}

SEQUENCES = int(os.environ.get("UPDATE_SEQUENCES", "0"))
N_STEPS = 4 if SEQUENCES or EVERYTHING else 2
"""How many updates follow one another: of the first sequence an append and a compaction are two."""


class Lake:
    """A folder of tables and the expected content of its index.

    The content is the tables as they were when they were read.
    """

    def __init__(self, folder, seed):
        self.folder, self._random = folder, random.Random(seed)
        self.there, self.indexed = {}, {}
        folder.mkdir()

    def write(self, name):
        values = self._random.sample(WORDS, 8)
        text = "place,n\n" + "".join(f"{value},{number}\n" for number, value in enumerate(values))
        (self.folder / name).write_text(text, encoding="utf-8")
        self.there[name] = values

    def remove(self, name):
        (self.folder / name).unlink()
        del self.there[name]

    def expected(self, query):
        """Tables by matching rows of the query, best first; equal ones by name."""
        counts = {name: len(set(query) & set(values)) for name, values in self.indexed.items()}
        return sorted(
            ((name, n) for name, n in counts.items() if n), key=lambda item: (-item[1], item[0])
        )


def columns_of(index, query, **options):
    return [
        (match.table, match.matched)
        for match in index.search(
            query, max_distance=0.0, rerank=False, fold_copies=False, **{"k": "all", **options}
        )
    ]


def agrees(index, lake):
    for start in range(0, len(WORDS), 5):
        query = WORDS[start : start + 5]
        assert columns_of(index, query, min_joinability=0.01) == lake.expected(query)
        assert columns_of(index, query, k=3) == lake.expected(query)[:3]
        shared = [
            (match.table, match.overlap) for match in index.overlap(query, k=100, fold_copies=False)
        ]
        assert shared == lake.expected(query)
        contained = [(name, n) for name, n in lake.expected(query) if n >= 2]
        assert [
            (match.table, match.overlap)
            for match in index.contain(query, min_containment=0.4, k="all", fold_copies=False)
        ] == contained
    numbers = [match.table for match in index.overlap(range(8), k=100, fold_copies=False)]
    assert numbers == sorted(lake.indexed), "columns of numbers are token sets too"
    assert not any(problem.is_failure for problem in index.check())


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A lake of six tables and its index, to be copied."""
    folder = tmp_path_factory.mktemp("built")
    lake = Lake(folder / "lake", seed=1)
    for number in range(6):
        lake.write(f"t{number}.csv")
    build_index(lake.folder, folder / "lake.pexeso", **OPTIONS, n_partitions=2)
    return folder


def copy_of(built, folder, seed=1):
    shutil.copytree(built / "lake.pexeso", folder / "lake.pexeso")
    lake = Lake(folder / "lake", seed)
    shutil.copytree(built / "lake", lake.folder, dirs_exist_ok=True)
    for path in sorted(lake.folder.iterdir()):
        lake.there[path.name] = [
            line.split(",")[0] for line in path.read_text(encoding="utf-8").splitlines()[1:]
        ]
    lake.indexed = dict(lake.there)
    return lake, open_index(folder / "lake.pexeso")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEQUENCES or 1))
def test_any_sequence_of_updates_equals_a_fresh_build(built, tmp_path, seed):
    lake, index = copy_of(built, tmp_path, seed)
    chance = random.Random(seed)
    for step in range(N_STEPS):
        if step % 2 == 0:
            for name in chance.sample(sorted(lake.there), 2):
                (lake.write if chance.random() < 0.6 else lake.remove)(name)
            lake.write(f"new{step}.csv")
            everything = chance.random() < 0.5
            index.append(lake.folder, delete_missing=everything)
            lake.indexed = dict(lake.there) if everything else {**lake.indexed, **lake.there}
        elif chance.random() < 0.5:
            gone = chance.sample(sorted(lake.indexed), 2)
            index.delete(gone)
            lake.indexed = {
                name: values for name, values in lake.indexed.items() if name not in gone
            }
        else:
            index.compact(everything=chance.random() < 0.5)
        agrees(index, lake)
    # A deleted table whose file is there still comes back with the next append, and a fresh build
    # has it too.
    index.append(lake.folder, delete_missing=True)
    lake.indexed = dict(lake.there)
    agrees(index, lake)
    fresh = build_index(
        lake.folder, tmp_path / "fresh.pexeso", model=str(index.store.embedder_folder)
    )
    for start in range(0, len(WORDS), 4):
        for options in (
            {"min_joinability": 0.2},
            {"k": 4, "rerank": False},
            {"max_distance": 0.3, "min_joinability": 0.5},
        ):
            results = [
                side.search(WORDS[start : start + 6], **options).to_dict(explain=True)["results"]
                for side in (index, fresh)
            ]
            for result in results:
                for match in result:
                    match.pop("column_id", None)
            assert results[0] == results[1]


def test_an_append_reads_only_what_is_new(built, tmp_path):
    lake, index = copy_of(built, tmp_path)
    before = index.store.manifest
    untouched = index.append(lake.folder)
    assert (untouched.new, untouched.changed, untouched.unchanged) == (0, 0, 6)
    lake.write("t9.csv")
    lake.write("t0.csv")
    (lake.folder / "t1.csv").touch()
    lake.indexed = dict(lake.there)
    stages = []
    done = index.append(progress=stages.append)
    assert (done.new, done.changed, done.unchanged, done.missing) == (1, 1, 5, 0)
    assert (done.columns_added, done.columns_deleted, done.partitions_added) == (2, 1, 1)
    assert stages == [
        "list",
        "changes",
        "read",
        "catalog",
        "embed",
        "partition",
        "index",
        "divide",
        "tokens",
        "commit",
    ]
    after = index.store.manifest
    assert after.partitions[:-1] == before.partitions, "what was there is as it was"
    assert after.partitions[-1].facts["columns"] == 2
    assert after.embedder == before.embedder
    assert (
        Catalog(index.store.catalog_files).tables(["table"])["table"].to_pylist().count("t0.csv")
        == 1
    )
    agrees(index, lake)


def test_tables_are_read_again_where_the_reader_of_their_format_has_changed(
    built, tmp_path, monkeypatch
):
    lake, index = copy_of(built, tmp_path)
    (lake.folder / "other.json").write_text('[{"river": "Elbe"}, {"river": "Loire"}]')
    assert index.append(lake.folder).new == 1
    assert index.store.manifest.facts["readers"] == READERS
    monkeypatch.setitem(READERS, "delimited", READERS["delimited"] + 1)
    lake.write("t0.csv")
    lake.write("t9.csv")
    lake.indexed = dict(lake.there)
    done = index.append()
    assert (done.new, done.changed, done.reread, done.unchanged) == (1, 0, 6, 1)
    assert (done.columns_added, done.columns_deleted) == (7, 6)
    agrees(index, lake)
    again = index.append()
    assert (again.committed, again.reread, again.unchanged) == (False, 0, 8)


def test_a_table_that_was_away_when_a_reader_changed_is_read_again_once_it_is_back(
    built, tmp_path, monkeypatch
):
    lake, index = copy_of(built, tmp_path)
    n_tables = len(list(lake.folder.iterdir()))
    away = tmp_path / "t1.csv"
    (lake.folder / away.name).rename(away)
    monkeypatch.setitem(READERS, "delimited", READERS["delimited"] + 1)
    done = index.append(lake.folder)
    assert (done.reread, done.missing) == (n_tables - 1, 1)
    assert not index.append().committed
    away.rename(lake.folder / away.name)
    done = index.append()
    assert (done.changed, done.unchanged) == (1, n_tables - 1)
    assert not index.append().committed
    agrees(index, lake)


def test_an_index_that_does_not_say_how_it_was_read_is_read_anew():
    def stale(**facts):
        return stale_formats(SimpleNamespace(manifest=SimpleNamespace(facts=facts)))

    assert stale() == list(READERS)
    assert stale(readers=READERS) == []
    without = {name: version for name, version in READERS.items() if name != "avro"}
    assert stale(readers={**without, "json": 0}) == ["json", "avro"]


def test_missing_tables_stay_until_they_are_to_be_deleted(built, tmp_path):
    lake, index = copy_of(built, tmp_path)
    lake.remove("t2.csv")
    assert index.append(lake.folder).missing == 1
    agrees(index, lake)
    assert index.append(delete_missing=True).deleted == 1
    lake.indexed = dict(lake.there)
    agrees(index, lake)
    for name in list(lake.there):
        lake.remove(name)
    with pytest.raises(
        LakeError, match=r"There is no table in .* every table of .* would be deleted"
    ):
        index.append(delete_missing=True)
    agrees(index, lake)
    assert not (index.path / ".building").exists()


@pytest.mark.parametrize("delete_missing", [False, True])
def test_a_place_without_any_table_of_the_index_is_not_where_its_lake_is(
    built, tmp_path, delete_missing
):
    lake, index = copy_of(built, tmp_path)
    (tmp_path / "other").mkdir()
    new = tmp_path / "other" / "new.csv"
    shutil.copy(lake.folder / "t0.csv", new)
    before = index.store.manifest
    for place in (new, new.parent):
        with pytest.raises(LakeError, match="has none of the 6 tables of the index"):
            index.append(place, delete_missing=delete_missing)
    assert open_index(index.path).store.manifest == before
    assert not (index.path / ".building").exists()
    new.rename(new.with_name("t1.csv"))  # a lake that moved and lost the others
    done = index.append(new.parent, delete_missing=delete_missing)
    assert (done.new, done.changed) == (0, 1)
    assert index.lake == new.parent


def test_a_table_that_was_away_when_a_part_was_added_is_added_once_it_is_back(built, tmp_path):
    lake, index = copy_of(built, tmp_path)
    files = sorted(lake.folder.iterdir())
    index.append(lake.folder)
    other, *away = (tmp_path / path.name for path in files[:3])
    for path in away:
        (lake.folder / path.name).rename(path)
    (lake.folder / other.name).rename(other)
    (lake.folder / other.name).write_text("key\nother\n", encoding="utf-8")
    assert index.add_parts(["redundancy"]).left_out == 3
    assert len(pieces_by_table(index.store)) == 3
    other.replace(lake.folder / other.name)
    away[0].rename(lake.folder / away[0].name)
    assert index.append().changed == 2
    assert len(pieces_by_table(index.store)) == 5
    assert index.append().unchanged == 5
    index.compact(everything=True)
    away[1].rename(lake.folder / away[1].name)
    done = index.append()
    assert (done.changed, done.unchanged) == (1, 5)
    assert sorted(pieces_by_table(index.store)) == [path.name for path in files]
    assert not index.append().committed
    agrees(index, lake)


def test_a_file_that_nobody_can_unpack_is_read_once(built, tmp_path):
    lake, index = copy_of(built, tmp_path)
    (lake.folder / "cut.csv.gz").write_bytes(gzip.compress(b"city\nOslo\n")[:-9])
    assert index.append(lake.folder).new == 1
    assert not index.append(lake.folder).committed


def test_tables_of_a_folder_that_cannot_be_listed_are_not_gone(built, tmp_path, monkeypatch):
    lake, index = copy_of(built, tmp_path)
    (lake.folder / "sub").mkdir()
    lake.write("sub/more.csv")
    assert index.append(lake.folder).new == 1
    lake.indexed = dict(lake.there)
    scan = os.scandir

    def scandir(path):
        if os.path.basename(str(path)) == "sub":
            raise OSError(errno.EIO, "Input/output error")
        return scan(path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", scandir)
        done = index.append(delete_missing=True, engine="local")
        assert (done.deleted, done.missing, done.closed) == (0, 0, 1)
        agrees(index, lake)
    assert index.append(delete_missing=True).closed == 0
    agrees(index, lake)
    assert index.catalog.tables(["reason"])["reason"].null_count == len(lake.there)


def test_deleting_needs_no_spark_and_names_what_is_not_there(built, tmp_path):
    lake, index = copy_of(built, tmp_path)
    with pytest.raises(
        InputError,
        match=r"has no table 'a.csv', 'b.csv', 'c.csv' and 1 more\. .* Nothing was deleted",
    ):
        index.delete(["t1.csv", "a.csv", "b.csv", "c.csv", "d.csv"])
    assert index.store.manifest.generation == 1
    done = index.delete(["t1.csv", "t3.csv"])
    assert (done.deleted, done.columns_deleted, done.generation, done.committed) == (2, 2, 2, True)
    for name in ("t1.csv", "t3.csv"):
        del lake.indexed[name]
    agrees(index, lake)
    with pytest.raises(InputError, match=r"The lake has no table 't1\.csv'"):
        index.explain(WORDS[:3], "t1.csv", "place")
    assert index.info().tables == 4
    assert not index.delete([]).committed


@pytest.mark.long
def test_compacting_leaves_no_trace_of_what_was_deleted(built, tmp_path):
    lake, index = copy_of(built, tmp_path)
    index.delete(["t1.csv"])
    del lake.indexed["t1.csv"]
    done = index.compact(everything=True)
    assert done.partitions_rewritten == 2
    assert (done.shards_rewritten, done.shards_added) == (1, 1)
    manifest = index.store.manifest
    assert manifest.deleted_columns == ()
    assert [entry.folder for entry in manifest.catalogs] == ["catalog.3"]
    assert sum(entry.facts["columns"] for entry in manifest.partitions) == 5
    ids = np.concatenate(
        [index.store.array(number, "column_ids") for number in range(index.store.n_partitions)]
    )
    assert sorted(ids.tolist()) == [0, 2, 3, 4, 5]
    agrees(index, lake)
    assert not index.compact().committed or index.store.n_partitions > 1


def test_an_open_index_is_a_snapshot_until_it_is_refreshed(built, tmp_path):
    _, index = copy_of(built, tmp_path)
    other = open_index(index.path)
    query = WORDS[:10]
    before = columns_of(other, query, min_joinability=0.01)
    index.delete(["t0.csv", "t1.csv"])
    index.compact(everything=True)
    assert columns_of(other, query, min_joinability=0.01) == before
    assert other.search(query, min_joinability=0.01)[0].pairs(), (
        "the files of the old generation are there still"
    )
    assert other.refresh()
    assert not other.refresh()
    assert (
        columns_of(other, query, min_joinability=0.01)
        == columns_of(index, query, min_joinability=0.01)
        != before
    )


def test_the_second_of_two_writers_is_refused_and_loses_nothing(built, tmp_path):
    lake, index = copy_of(built, tmp_path)
    with IndexWriter(index.path, update=True) as writer:
        for update in (
            lambda: index.delete(["t0.csv"]),
            lambda: index.append(),
            lambda: index.compact(everything=True),
        ):
            with pytest.raises(OutputError, match="Another build is writing"):
                update()
        assert writer.previous.generation == 1
    agrees(index, lake)
    refused = []

    def delete(name):
        try:
            open_index(index.path).delete([name])
        except OutputError:
            refused.append(name)

    threads = [threading.Thread(target=delete, args=(f"t{number}.csv",)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    index.refresh()
    for number in range(5):
        if f"t{number}.csv" not in refused:
            del lake.indexed[f"t{number}.csv"]
    assert index.store.manifest.generation == 6 - len(refused)
    agrees(index, lake)


def test_an_update_of_no_index_is_one_sentence(tmp_path):
    from pexeso.build.updates import append, compact, delete

    for update in (
        lambda: append(tmp_path / "x"),
        lambda: delete(tmp_path / "x", ["a"]),
        lambda: compact(tmp_path / "x"),
    ):
        with pytest.raises(IndexNotFoundError, match="There is no index at"):
            update()
    with pytest.raises(InputError, match=r"compare must be 'modified' or 'content'"):
        append(tmp_path, compare="size")


def test_the_options_of_a_build_come_back_from_its_manifest(built):
    store = open_index(built / "lake.pexeso").store
    options = options_of(store)
    assert {**described(options), "model": "hashing"} == store.manifest.options
    assert options.n_partitions == 2


@given(st.sets(st.integers(0, 60)), st.sets(st.integers(0, 60)))
def test_ranges_hold_just_the_ids_they_were_made_of(ours, theirs):
    ranges = merge_ranges(
        *(ranges_of(np.array(sorted(ids), dtype=np.int64)) for ids in (ours, theirs))
    )
    assert [column for first, end in ranges for column in range(first, end)] == sorted(
        ours | theirs
    )
    assert all(end < first for (_, end), (first, _) in itertools.pairwise(ranges))
