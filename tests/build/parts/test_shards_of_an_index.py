"""Tests of an index's token sets: built by Spark, added to an existing index, and updated."""

import os
import shutil

import numpy as np
import pyarrow as pa
import pytest
from bare_indexes import without_parts
from equal_text_lakes import overlaps

from pexeso.build.updates import require_files
from pexeso.errors import InputError, LakeError
from pexeso.index import build_index, open_index
from pexeso.lake.columns import label_columns
from pexeso.lake.containers.reader import read_table
from pexeso.lake.files import find_tables
from pexeso.lake.tokens import distinct_tokens
from pexeso.sets.overlap.index import ARRAYS
from pexeso.sets.overlap.index import build_index as build_overlap
from pexeso.sets.part.open import LABELS, TABLES
from pexeso.store.arrays import open_texts

OPTIONS = {"model": "hashing", "dimensions": 24, "partition_bytes": 1 << 20}
PARTS = ("overlap", "containment")


def write_lake(folder):
    """Write tables of words, of numbers as texts and floats, and one larger than a shard."""
    folder.mkdir()
    random = np.random.default_rng(3)
    for number in range(6):
        rows = [
            f"{random.choice(['Oslo', 'Rome', 'oslo', 'Bern'])} {random.integers(6)},{cell},0{cell}"
            for cell in range(number, number + 9)
        ]
        (folder / f"t{number}.csv").write_text("\n".join(["place,n,code", *rows]), encoding="utf-8")
    large = [f"{cell},{cell % 7000},{cell}.0" for cell in range(9000)]
    (folder / "large.csv").write_text("\n".join(["a,b,c", *large]), encoding="utf-8")
    (folder / "two_rows.csv").write_text("a\n1\n2\n", encoding="utf-8")


def columns_of(lake):
    """Read the token sets of all columns that are long enough."""
    columns = {}
    for file in find_tables(lake)[0]:
        table = read_table(file.path)
        for label, cells in zip(label_columns(table.names), table.columns, strict=True):
            if len(cells) >= 5:
                columns[file.table, label] = set(distinct_tokens(cells).to_pylist())
    return columns


def agrees(index, columns):
    queries = [*list(columns.values())[:4], {"Oslo 1", "Bern 2", "7", "07"}, {"9999"}]
    for query in queries:
        for k in (1, 3, 100):
            matches = [
                (match.table, match.column, match.overlap)
                for match in index.overlap(sorted(query), k=k, fold_copies=False)
            ]
            assert matches == overlaps(columns, query, k)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("token_sets")
    write_lake(folder / "lake")
    build_index(folder / "lake", folder / "with.pexeso", parts=PARTS, **OPTIONS)
    without_parts(folder / "with.pexeso", folder / "without.pexeso")
    return folder


@pytest.mark.long
def test_spark_builds_what_one_machine_builds(built):
    index, columns = open_index(built / "with.pexeso"), columns_of(built / "lake")
    assert index.parts == PARTS
    assert len(index.shards) > 1
    held = {}
    for shard in index.shards:
        names = list(
            zip(
                *(open_texts(shard.folder / name).to_pylist() for name in (TABLES, LABELS)),
                strict=True,
            )
        )
        assert names == sorted(names)
        held |= dict.fromkeys(names, shard)
        pairs = [(number, token) for number, name in enumerate(names) for token in columns[name]]
        numbers, tokens = zip(*pairs, strict=True)
        expected = build_overlap(np.array(numbers), pa.array(tokens))
        for name in ARRAYS:
            assert np.array_equal(getattr(shard.overlap, name), getattr(expected, name)), name
        assert shard.overlap.dictionary.texts.equals(expected.dictionary.texts)
    assert set(held) == set(columns)


def test_searches_answer_as_brute_force_does(built):
    agrees(open_index(built / "with.pexeso"), columns_of(built / "lake"))


def test_the_table_that_a_query_is_from_can_be_left_out(built):
    index, columns = open_index(built / "with.pexeso"), columns_of(built / "lake")
    from pexeso.results.query import read_query

    query = read_query(f"{built / 'lake' / 't2.csv'}:#1")
    hidden = {name for name in columns if name[0] == "t2.csv"}
    matches = [
        (match.table, match.column, match.overlap)
        for match in index.overlap(query, k=9, exclude_self=True, fold_copies=False)
    ]
    assert matches == overlaps(columns, columns["t2.csv", "n"], 9, hidden=hidden)


def test_parts_added_later_are_those_of_a_build(built, tmp_path):
    shutil.copytree(built / "without.pexeso", tmp_path / "lake.pexeso")
    index = open_index(tmp_path / "lake.pexeso")
    with pytest.raises(
        InputError,
        match=r"has no part for searches by overlap.*'pexeso add-part .*lake\.pexeso overlap'",
    ):
        index.overlap(["Oslo 1"])
    added = index.add_parts(PARTS)
    assert (added.committed, added.parts, added.left_out) == (True, PARTS, 0)
    expected = open_index(built / "with.pexeso").store.manifest.parts["token_sets"]
    got = index.store.manifest.parts["token_sets"]
    assert [entry.files for entry in got] == [entry.files for entry in expected]
    assert [entry.facts for entry in got] == [entry.facts for entry in expected]
    assert not any(problem.is_failure for problem in index.check())
    assert not index.add_parts(PARTS).committed
    assert index.search(["Oslo 1"], k=3).to_dict()["results"], "semantic search is as it was"


def contained(index, columns):
    queries = [sorted(query) for query in [*columns.values()][:4]]
    return [
        index.contain(query, min_containment=share, fold_copies=False).to_dict()["results"]
        for query in queries
        for share in (0.2, 0.5, 1.0)
    ]


def test_bands_are_kept_where_they_are_asked_for(built, tmp_path):
    shutil.copytree(built / "with.pexeso", tmp_path / "lake.pexeso")
    index, columns = open_index(tmp_path / "lake.pexeso"), columns_of(built / "lake")
    expected, n_bytes = contained(index, columns), index.info().bytes
    assert any(expected)
    assert [shard.bands for shard in index.shards] == [None] * len(index.shards)
    assert index.add_parts(["bands"]).parts == (*PARTS, "bands")
    assert all(shard.bands is not None for shard in index.shards)
    assert index.info().bytes > n_bytes + 1000 * len(columns)
    assert contained(index, columns) == expected
    index.compact(everything=True)
    assert all(shard.bands is not None for shard in index.shards)
    assert contained(index, columns) == expected
    assert not any(problem.is_failure for problem in index.check())


@pytest.mark.long
def test_updates_keep_token_sets_as_a_build_would_make_them(built, tmp_path):
    shutil.copytree(built / "with.pexeso", tmp_path / "lake.pexeso")
    shutil.copytree(built / "lake", tmp_path / "lake")
    lake, index = tmp_path / "lake", open_index(tmp_path / "lake.pexeso")
    before = index.overlap(["7"], k=100)
    (lake / "t0.csv").write_text(
        "place,n\n" + "".join(f"Graz {cell},{cell + 5}\n" for cell in range(8))
    )
    (lake / "new.csv").write_text("key\n" + "".join(f"{cell}\n" for cell in range(6)))
    (lake / "t5.csv").unlink()
    index.append(lake, delete_missing=True)
    agrees(index, columns_of(lake))
    assert before[0].shared() == ["7"], "results of a snapshot answer from it"
    index.delete(["large.csv", "t1.csv"])
    columns = {
        name: tokens
        for name, tokens in columns_of(lake).items()
        if name[0] not in ("large.csv", "t1.csv")
    }
    agrees(index, columns)
    n_shards = len(index.shards)
    index.compact()
    agrees(index, columns)
    assert len(index.shards) == 1 < n_shards
    assert not any(len(shard.deleted) for shard in index.shards)
    assert not any(problem.is_failure for problem in index.check())


def test_tables_that_changed_wait_for_the_next_append(built, tmp_path):
    shutil.copytree(built / "without.pexeso", tmp_path / "lake.pexeso")
    index, changed = open_index(tmp_path / "lake.pexeso"), built / "lake" / "t0.csv"
    before, times = changed.read_bytes(), changed.stat()
    try:
        changed.write_text("place,n\n" + "".join(f"Graz {cell},{cell + 5}\n" for cell in range(8)))
        assert index.add_parts(PARTS).left_out == 1
    finally:
        changed.write_bytes(before)
        os.utime(changed, ns=(times.st_atime_ns, times.st_mtime_ns))
    columns = {
        name: tokens for name, tokens in columns_of(built / "lake").items() if name[0] != "t0.csv"
    }
    agrees(index, columns)


@pytest.mark.long
def test_spark_tables_have_the_tokens_of_files_and_cannot_be_read_again(built, tmp_path, spark):
    spark.createDataFrame(
        pa.table({"a": ["x", "y", "z", "u", "v"], "n": [1.0, 2.0, 3.0, 1e7, 0.5]})
    ).createOrReplaceTempView("cities")
    index = build_index(spark.table("cities"), tmp_path / "frame.pexeso", parts=PARTS, **OPTIONS)
    assert [(match.column, match.overlap) for match in index.overlap([2, "10000000", 0.5])] == [
        ("n", 3)
    ]
    with pytest.raises(LakeError, match="build the index again"):
        require_files(index.store, None)
