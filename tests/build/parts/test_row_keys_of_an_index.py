"""The part for composite keys of an index: built by Spark, added later, updated, looked through."""

import csv
import re
import shutil
import unicodedata
from itertools import permutations

import numpy as np
import pytest
from bare_indexes import without_parts
from long_runs import long_but

from pexeso.build.diagnostics.estimate import estimate_build
from pexeso.composite.part import ROW_KEYS_PART
from pexeso.composite.part.open import ARRAYS, open_row_shards
from pexeso.errors import InputError
from pexeso.index import build_index, open_index
from pexeso.options import BuildOptions
from pexeso.store.opening import open_store_anywhere

OPTIONS = {"partition_bytes": 1 << 20}
WORDS = ["Oslo", "oslo ", "ROME", "Rome", "Bern", "", "  ", "Straße", "STRASSE", "7", "07", "x/y"]
FILTERS = ("none", "bloom", "xash", "intersection", "auto")


def write_table(path, rows, names=None):
    width = max(map(len, rows))
    path.parent.mkdir(exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([names or [f"c{n}" for n in range(width)], *rows])


def write_lake(folder):
    """Write small tables of a few words, and one that is larger than a shard."""
    folder.mkdir()
    random = np.random.default_rng(4)
    for number in range(8):
        rows = random.choice(WORDS, (random.integers(5, 14), random.integers(1, 5)))
        write_table(folder / f"t{number}.csv", rows.tolist())
    large = [[f"city {row}", f"{row % 50}", WORDS[row % len(WORDS)]] for row in range(12_000)]
    write_table(folder / "deep" / "large.csv", large)


def form(cell):
    folded = unicodedata.normalize("NFKC", cell).casefold()
    return re.sub(r"\s+", " ", folded).strip()


def tables_of(lake):
    """Return the rows of all tables, by name."""
    tables = {}
    for path in sorted(lake.rglob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            names, *rows = csv.reader(file)
        tables[path.relative_to(lake).as_posix()] = (names, [[*map(form, row)] for row in rows])
    return tables


def best_tables(tables, keys):
    """Try every choice of columns of every table, and return (table, keys, columns) in order."""
    matches = []
    for name, (names, rows) in tables.items():
        best = (0, None)
        for columns in permutations(range(len(names)), len(next(iter(keys), ()))):
            n = len({tuple(row[column] for column in columns) for row in rows} & keys)
            if n > best[0]:
                best = (n, tuple(names[column] for column in columns))
        if best[0]:
            matches.append((name, *best))
    return sorted(matches, key=lambda match: (-match[1], match[0]))


def keys_of(table):
    rows = zip(*table.values(), strict=True)
    return {key for row in rows if all(key := tuple(map(form, row)))}


def queries():
    random = np.random.default_rng(9)
    for width in (2, 2, 2, 3, 3, 4):
        rows = random.choice(WORDS, (12, width))
        yield {f"k{n}": rows[:, n].tolist() for n in range(width)}
    yield {
        "a": [f"CITY {n}" for n in range(40)],
        "b": [str(n % 50 + (n % 3 == 0)) for n in range(40)],
    }
    yield {"a": ["nowhere", "Oslo"], "b": ["x", "y"]}


def agrees(index, tables, filters=("auto",)):
    n_found = 0
    for query in queries():
        expected = best_tables(tables, keys_of(query))
        n_found += len(expected)
        for k in ("all", 1, 3):
            for row_filter in filters:
                matches = index.search_composite(query, list(query), k=k, row_filter=row_filter)
                shown = [(match.table, match.matched_keys, match.columns) for match in matches]
                assert shown == expected[: len(expected) if k == "all" else k]
                assert all(match.total_keys == len(keys_of(query)) for match in matches)
    assert n_found > 20


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("row_keys")
    write_lake(folder / "lake")
    build_index(folder / "lake", folder / "with.pexeso", parts=["composite"], **OPTIONS)
    without_parts(folder / "with.pexeso", folder / "without.pexeso")
    return folder


def shard_bytes(path):
    store = open_store_anywhere(path)
    shards = [
        {file.name: file.read_bytes() for file in sorted(shard.folder.iterdir())}
        for shard in open_row_shards(store)
    ]
    return sorted(shards, key=lambda files: files["tables.arrow"])


def test_every_filter_finds_what_trying_everything_finds(built):
    index = open_index(built / "with.pexeso")
    assert len(open_row_shards(index.store)) > 1
    agrees(index, tables_of(built / "lake"), FILTERS)
    assert index.check() == []


def test_the_smallest_joinability_is_inclusive(built):
    index, tables = open_index(built / "with.pexeso"), tables_of(built / "lake")
    for query in queries():
        keys = keys_of(query)
        best = best_tables(tables, keys)
        for share in (0.1, 0.3, 1 / 3, 0.5, 1.0):
            matches = index.search_composite(query, list(query), min_joinability=share, k="all")
            expected = [table for table in best if table[1] / len(keys) >= share]
            assert [(e.table, e.matched_keys, e.columns) for e in matches] == expected
            assert all(match.joinability >= share for match in matches)


def test_fan_out_is_that_of_the_join(built):
    index, tables = open_index(built / "with.pexeso"), tables_of(built / "lake")
    seen = set()
    for query in queries():
        ours = [tuple(map(form, row)) for row in zip(*query.values(), strict=True)]
        ours = [key for key in ours if all(key)]
        for match in index.search_composite(query, list(query), k="all"):
            names, rows = tables[match.table]
            at = [names.index(label) for label in match.columns]
            theirs = [tuple(row[column] for column in at) for row in rows]
            joined = [(key, other) for key in ours for other in theirs if key == other]
            met = [theirs.count(key) for key in ours if key in theirs]
            meeting = [ours.count(key) for key in theirs if key in ours]
            fan_out = match.fan_out
            assert fan_out.joined_rows == len(joined)
            assert (match.query_rows, match.rows) == (len(met), len(meeting))
            assert fan_out.rows_per_query_row == pytest.approx(sum(met) / len(met))
            assert fan_out.query_rows_per_row == pytest.approx(sum(meeting) / len(meeting))
            assert fan_out.max_rows_per_query_row == max(met)
            assert fan_out.max_query_rows_per_row == max(meeting)
            left, right = ("N" if max(counts) > 1 else "1" for counts in (meeting, met))
            assert fan_out.relation == f"{left}:{'M' if (left, right) == ('N', 'N') else right}"
            seen.add(fan_out.relation)
    assert len(seen) > 2


def test_the_query_table_itself_is_left_out(built):
    index = open_index(built / "with.pexeso")
    file = built / "lake" / "deep" / "large.csv"
    matches = index.search_composite(f"{file}:c0,c1")
    assert (matches[0].table, matches[0].joinability) == ("deep/large.csv", 1.0)
    without = index.search_composite(f"{file}:c0,c1", exclude_self=True)
    assert [match.table for match in without] == [match.table for match in matches[1:]]
    assert without.options["exclude_table"] == "deep/large.csv"


def test_an_index_without_the_part_says_how_to_get_it(built):
    index = open_index(built / "without.pexeso")
    with pytest.raises(InputError, match=r"add-part .*without.pexeso composite"):
        index.search_composite({"a": ["1"], "b": ["2"]}, ["a", "b"])


def test_adding_the_part_gives_what_building_with_it_gives(built):
    shutil.copytree(built / "without.pexeso", built / "added.pexeso")
    index = open_index(built / "added.pexeso")
    added = index.add_parts(["composite"])
    assert added.parts == ("composite",)
    wide = [rows for names, rows in tables_of(built / "lake").values() if len(names) > 1]
    assert (added.tables, added.rows) == (len(wide), sum(map(len, wide)))
    assert shard_bytes(built / "added.pexeso") == shard_bytes(built / "with.pexeso")


@pytest.mark.long
def test_random_updates_keep_the_answers_and_compaction_is_a_fresh_build(built, tmp_path):
    lake, path = tmp_path / "lake", tmp_path / "updated.pexeso"
    shutil.copytree(built / "lake", lake)
    build_index(lake, path, parts=["composite"], **OPTIONS)
    index, random = open_index(path), np.random.default_rng(2)
    write_table(lake / "new.csv", random.choice(WORDS, (9, 3)).tolist())
    write_table(lake / "t3.csv", random.choice(WORDS, (7, 4)).tolist())
    (lake / "t5.csv").unlink()
    assert index.append(delete_missing=True).row_shards_added == 1
    agrees(index, tables_of(lake))
    (lake / "deep" / "large.csv").unlink()
    index.delete(["deep/large.csv", "t0.csv"])
    left = {name: table for name, table in tables_of(lake).items() if name != "t0.csv"}
    agrees(index, left)
    index.compact()
    agrees(index, left)
    assert index.check() == []
    index.append()
    index.compact(everything=True)
    agrees(index, tables_of(lake))
    build_index(lake, tmp_path / "fresh.pexeso", parts=["composite"], **OPTIONS)
    assert shard_bytes(path) == shard_bytes(tmp_path / "fresh.pexeso")


def test_an_estimate_counts_what_a_build_holds(built):
    counts = estimate_build(built / "lake", BuildOptions(parts=("composite",), **OPTIONS)).composite
    held = open_index(built / "with.pexeso").info().row_keys
    totals = {name: sum(shard[name] for shard in held) for name in ("rows", "cells", "bytes")}
    assert (counts["rows"], counts["cells"]) == (totals["rows"], totals["cells"])
    assert counts["bytes"] == pytest.approx(totals["bytes"], rel=0.3)
    assert counts["shards"] == len(held)
    assert estimate_build(built / "lake", BuildOptions(**OPTIONS)).composite["bytes"] == 0


def test_filters_are_kept_as_asked(built, tmp_path):
    small = tmp_path / "lake"
    write_table(small / "a.csv", [[["Oslo", "Bern"][n % 2], str(n)] for n in range(9)])
    options = {"parts": ["composite"], "row_filters": ["xash-256"]}
    index = build_index(small, tmp_path / "one.pexeso", **options)
    assert index.info().row_keys[0]["filters"] == ["xash-256"]
    query = {"a": ["oslo", "oslo"], "b": ["2", "11"]}
    assert index.search_composite(query, ["a", "b"], row_filter="xash")[0].matched_keys == 1
    with pytest.raises(InputError, match="bloom"):
        index.search_composite(query, ["a", "b"], row_filter="bloom")
    with pytest.raises(InputError, match=r"^Options of a search by composite keys are k, .*Got kk"):
        index.search_composite(query, ["a", "b"], kk=1)
    write_table(small / "b.csv", [[["Oslo", "Bern"][n % 2], str(n)] for n in range(9)])
    index.append()
    assert [shard["filters"] for shard in index.info().row_keys] == [["xash-256"]] * 2


def test_aliases_hold_for_keys(tmp_path):
    lake = tmp_path / "lake"
    write_table(lake / "a.csv", [[["Kristiania", "Bern"][n % 2], str(n)] for n in range(9)])
    aliases = tmp_path / "aliases.csv"
    aliases.write_text("alias,name\nKristiania,Oslo\nTigerstaden,Oslo\n", encoding="utf-8")
    index = build_index(lake, tmp_path / "a.pexeso", parts=["composite"], aliases=str(aliases))
    matches = index.search_composite({"a": ["Tigerstaden", "Oslo"], "b": ["2", "4"]}, ["a", "b"])
    assert matches[0].matched_keys == 2


@pytest.mark.parametrize("name", [*ARRAYS, "super_keys_xash"])
def test_a_changed_array_is_told_of(built, tmp_path, name):
    path = tmp_path / "changed.pexeso"
    shutil.copytree(built / "with.pexeso", path)
    store = open_store_anywhere(path)
    file = open_row_shards(store)[0].folder / f"{name}.npy"
    array = np.load(file).copy()
    array[len(array) // 2] ^= 1
    file.unlink()
    np.save(file, array)
    assert ROW_KEYS_PART.check(store) != []


def frame_of(spark, n_partitions):
    rows = [(f"City {n}", float(n % 7), n % 3 == 0, [n]) for n in range(60)]
    frame = spark.createDataFrame(rows, "city string, zone double, open boolean, list array<int>")
    return frame.repartition(n_partitions, "zone")


@pytest.mark.parametrize("n_partitions", long_but([2], [1, 2, 5]))
def test_rows_of_a_spark_table_are_found(tmp_path, spark, n_partitions):
    frame = frame_of(spark, n_partitions)
    index = build_index(frame, tmp_path / "s.pexeso", parts=["composite"])
    query = {"a": ["city 8", "CITY 9", "city 10"], "z": [1, 2, 5], "o": [False, True, False]}
    [match] = index.search_composite(query, ["z", "a", "o"])
    assert (match.table, match.columns) == ("dataframe", ("zone", "city", "open"))
    assert match.matched_keys == 2
    assert index.info().row_keys[0]["rows"] == 60
    assert index.check() == []


@pytest.mark.long
def test_rows_of_a_spark_table_that_is_too_large_are_left_out_and_told_of(tmp_path, spark):
    options = {"parts": ["composite"], "max_table_bytes": 1500}
    index = build_index(frame_of(spark, 1), tmp_path / "s.pexeso", **options)
    assert len(index.search_composite({"a": ["City 8"], "z": [1]}, ["a", "z"])) == 0
    [note] = index.catalog.tables(["notes"])["notes"].to_pylist()[0]
    assert "not found by composite keys" in note
