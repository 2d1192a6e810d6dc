"""The part for redundant tables of an index: built by Spark, added later, updated, looked through.

What it holds is held against the pieces that a reading of the lake's folder gives.
"""

import itertools
import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bare_indexes import without_parts
from long_runs import long_cases_but

from pexeso.build.diagnostics.estimate import estimate_build
from pexeso.errors import InputError
from pexeso.index import build_index, open_index
from pexeso.options import BuildOptions
from pexeso.redundancy.lake_reading import read_lake
from pexeso.redundancy.part import ROW_HASHES_PART
from pexeso.redundancy.part.open import open_shard, pieces_by_table
from pexeso.redundancy.pieces import read_columns
from pexeso.redundancy.search import find_redundancy
from pexeso.store.opening import open_store_anywhere

OPTIONS = {"partition_bytes": 1 << 20}
TOWNS = ["Oslo", "Rome", "Bern", "Kyiv", None]


def write_lake(folder):
    """Write tables of three formats, some of them parts of others, and one over several shards."""
    folder.mkdir()
    (folder / "deep").mkdir()
    random = np.random.default_rng(4)
    large = pa.table(
        {
            "id": pa.array(range(40_000), pa.int32()),
            "town": [TOWNS[n % 5] for n in range(40_000)],
            "weight": random.random(40_000),
            "tags": [[n % 3, n % 2] for n in range(40_000)],
        }
    )
    pq.write_table(large, folder / "deep" / "large.parquet")
    pq.write_table(large.slice(500, 3000).select(["town", "id"]), folder / "slice.parquet")
    for number in range(4):
        rows = [f"{n},{TOWNS[n % 4]},{n % (number + 2)}" for n in range(20 * number)]
        (folder / f"t{number}.csv").write_text("\n".join(["id,town,group", *rows]) + "\n")
    lines = [json.dumps({"id": n, "town": TOWNS[n % 5], "at": {"x": n}}) for n in range(50)]
    (folder / "lines.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "few.jsonl").write_text("\n".join(lines[:9]) + "\n")


def contents(pieces):
    """Return the cells of tables as plain data."""
    cells = {}
    for table, some in pieces.items():
        cells[table] = [
            (
                piece.first_row,
                piece.n_rows,
                piece.facts,
                [
                    (
                        column.hashes.tolist(),
                        None if column.codes is None else column.codes.tolist(),
                    )
                    for column in read_columns(piece)
                ],
            )
            for piece in some
        ]
    return cells


def of_folder(spark, lake, folder):
    folder.mkdir()
    return contents(read_lake(spark, lake, folder).pieces)


def of_index(path):
    return contents(pieces_by_table(open_store_anywhere(path)))


def shard_bytes(path):
    store = open_store_anywhere(path)
    folders = [open_shard(store, entry).folder for entry in ROW_HASHES_PART.entries(store)]
    return sorted([file.read_bytes() for file in sorted(folder.iterdir())] for folder in folders)


def edges_of(source, **options):
    graph = find_redundancy(source, **options)
    return [(edge.parent, edge.child, edge.containment, edge.rows) for edge in graph.edges]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("row_hashes")
    write_lake(folder / "lake")
    build_index(folder / "lake", folder / "with.pexeso", parts=["redundancy"], **OPTIONS)
    without_parts(folder / "with.pexeso", folder / "without.pexeso")
    return folder


def test_an_index_holds_what_reading_the_folder_gives(built, tmp_path, spark):
    index = open_index(built / "with.pexeso")
    assert len(ROW_HASHES_PART.entries(index.store)) > 1
    assert of_index(built / "with.pexeso") == of_folder(spark, built / "lake", tmp_path / "pieces")
    assert index.check() == []


@pytest.mark.parametrize(
    ("semantics", "min_containment"),
    long_cases_but([("set", 1.0), ("bag", 0.4)], itertools.product(["set", "bag"], [1.0, 0.4])),
)
def test_the_graph_of_an_index_is_that_of_its_lake(built, semantics, min_containment):
    options = {"semantics": semantics, "min_containment": min_containment}
    edges = edges_of(built / "with.pexeso", **options)
    assert edges == edges_of(built / "lake", **options)
    assert ("deep/large.parquet", "slice.parquet", 1.0, 3000) in edges
    assert ("lines.jsonl", "few.jsonl", 1.0, 9) in edges


def test_statements_are_found_in_the_lake_of_an_index(built):
    plan = find_redundancy(built / "with.pexeso", verified=True).plan
    [slice_] = [deletion for deletion in plan.delete if deletion.table == "slice.parquet"]
    assert slice_.verified
    assert "BETWEEN 500 AND 3499" in slice_.sql


def test_a_lake_that_is_gone_still_has_its_graph(built, tmp_path):
    lake, path = built / "lake", built / "with.pexeso"
    expected = edges_of(path)
    lake.rename(tmp_path / "elsewhere")
    try:
        assert edges_of(path) == expected
    finally:
        (tmp_path / "elsewhere").rename(lake)


def test_an_index_without_the_part_says_how_to_get_it(built):
    with pytest.raises(InputError, match=r"add-part .*without.pexeso redundancy"):
        find_redundancy(built / "without.pexeso")


def test_adding_the_part_gives_what_building_with_it_gives(built):
    shutil.copytree(built / "without.pexeso", built / "added.pexeso")
    index = open_index(built / "added.pexeso")
    added = index.add_parts(["redundancy"])
    assert added.parts == ("redundancy",)
    assert added.hashed_rows == 40_000 + 3000 + 20 + 40 + 60 + 50 + 9
    assert shard_bytes(built / "added.pexeso") == shard_bytes(built / "with.pexeso")


@pytest.mark.long
def test_updates_keep_the_graph_and_compaction_is_a_fresh_build(built, tmp_path, spark):
    lake, path = tmp_path / "lake", tmp_path / "updated.pexeso"
    shutil.copytree(built / "lake", lake)
    build_index(lake, path, parts=["redundancy"], **OPTIONS)
    index, random = open_index(path), np.random.default_rng(2)
    for step in range(4):
        name = f"t{random.integers(4)}.csv"
        rows = [f"{n},{TOWNS[n % 4]},{n % 2}" for n in range(int(random.integers(3, 30)))]
        (lake / name).write_text("\n".join(["id,town,group", *rows]) + "\n")
        (lake / f"new{step}.csv").write_text("\n".join(["town,id", "Bern,2", "Oslo,4"]) + "\n")
        if step == 1:
            (lake / "slice.parquet").unlink()
        index.append(delete_missing=True, compare="content")
        assert of_index(path) == of_folder(spark, lake, tmp_path / f"pieces{step}")
        assert edges_of(path) == edges_of(lake)
    (lake / "deep" / "large.parquet").unlink()
    index.delete(["deep/large.parquet", "t0.csv"])
    assert set(of_index(path)) == {
        file.relative_to(lake).as_posix() for file in lake.rglob("*.*")
    } - {"t0.csv"}
    index.compact()
    assert index.check() == []
    index.append()
    index.compact(everything=True)
    build_index(lake, tmp_path / "fresh.pexeso", parts=["redundancy"], **OPTIONS)
    assert shard_bytes(path) == shard_bytes(tmp_path / "fresh.pexeso")


def test_an_estimate_counts_what_a_build_holds(built):
    options = BuildOptions(parts=("redundancy",), **OPTIONS)
    counts = estimate_build(built / "lake", options).redundancy
    held = open_index(built / "with.pexeso").info().row_hashes
    totals = {name: sum(shard[name] for shard in held) for name in ("rows", "cells", "bytes")}
    assert (counts["rows"], counts["cells"]) == (totals["rows"], totals["cells"])
    assert counts["bytes"] == pytest.approx(totals["bytes"], rel=0.3)
    assert estimate_build(built / "lake", BuildOptions(**OPTIONS)).redundancy["bytes"] == 0


def test_what_was_changed_is_told_of(built, tmp_path):
    path = tmp_path / "changed.pexeso"
    shutil.copytree(built / "with.pexeso", path)
    store = open_store_anywhere(path)
    shard = open_shard(store, ROW_HASHES_PART.entries(store)[0])
    file = shard.folder / "pieces.ipc"
    content = file.read_bytes()
    n_rows = shard.pieces()[0].n_rows
    file.write_bytes(
        content.replace(n_rows.to_bytes(8, "little"), (n_rows + 1).to_bytes(8, "little"))
    )
    assert ROW_HASHES_PART.check(store) != []
    file.write_bytes(content[: len(content) // 2])
    assert ROW_HASHES_PART.check(store) != []
