"""Pairs of columns that may join, against plain sets."""

import re
from itertools import combinations

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from equal_text_lakes import shard_of
from hypothesis import given, settings
from hypothesis import strategies as st

from pexeso.errors import IndexCorruptError
from pexeso.lake.columns import label_columns
from pexeso.lake.containers.reader import read_table
from pexeso.lake.files import find_tables
from pexeso.lake.tokens import distinct_tokens
from pexeso.sets import lake_columns as column_pairs
from pexeso.sets.lake_columns import LakeColumns, OwnColumn, max_columns_of, own_columns, pairs_from
from pexeso.sets.part.open import Shard


def lake(folder, columns, n_rows, *, shards=1, deleted=()):
    opened = []
    for number in range(shards):
        mine = {
            name: tokens
            for name, tokens in columns.items()
            if sum(map(ord, name[0])) % shards == number and tokens
        }
        if mine:
            names = sorted(mine)
            gone = [at for at, (table, _) in enumerate(names) if table in deleted]
            place = folder / str(number)
            place.mkdir()
            opened.append(shard_of(place, mine, deleted=gone))
    tables = sorted(n_rows)
    rows = [n_rows[table] for table in tables]
    return LakeColumns.of(opened, pa.array(tables, pa.string()), pa.array(rows, pa.int64()))


def expected(columns, n_rows, *, telling=None, deleted=()):
    live = {name: tokens for name, tokens in columns.items() if tokens and name[0] not in deleted}
    limit = max_columns_of(len(live)) if telling is None else telling
    held = {}
    for tokens in live.values():
        for token in tokens:
            held[token] = held.get(token, 0) + 1
    pairs = {}
    for one, other in combinations(sorted(live), 2):
        if one[0] == other[0]:
            continue
        n, m, both = len(live[one]), len(live[other]), live[one] & live[other]
        shared = len(both)
        names = ["".join(filter(str.isalnum, label.lower())) for _, label in (one, other)]
        named = names[0] == names[1] != "" and not one[1].startswith("#")
        keys = n >= 0.9 * n_rows[one[0]] or m >= 0.9 * n_rows[other[0]]
        contained = shared >= 0.8 * n or shared >= 0.8 * m
        if (named and shared and shared >= 0.1 * min(n, m)) or (
            keys and contained and sum(tells(token, held[token], limit) for token in both) >= 3
        ):
            pairs[one, other] = shared
    return pairs


def tells(token, n_columns, limit):
    number = re.fullmatch(r"-?\d+([.]\d*)?", token)
    return n_columns <= limit and not (number and abs(float(token)) < 10**4 and len(token) < 5)


def from_all_tables(columns):
    own = own_columns(columns, columns.tables.to_pylist())
    pairs = pairs_from(columns, own)
    return {
        tuple(sorted([(own[left].table, own[left].label), columns.name(right)])): shared
        for left, right, shared in zip(
            pairs.left.tolist(), pairs.right.tolist(), pairs.shared.tolist(), strict=True
        )
    }


def random_lake(seed, n_tables=14):
    random = np.random.default_rng(seed)
    words = [f"w{number}" if number % 4 else str(number) for number in range(60)]
    labels = ["id", "Team ID", "teamID", "year", "#1", "name", "_"]
    columns, n_rows = {}, {}
    for table in range(n_tables):
        name = f"t{table:02}.csv"
        n_rows[name] = int(random.integers(4, 40))
        for label in random.choice(labels, random.integers(1, 5), replace=False):
            size = int(random.integers(1, min(n_rows[name], 30) + 1))
            drawn = np.minimum(random.geometric(0.08, size), 60) - 1
            if random.random() < 0.6:
                drawn = np.arange(size) + random.integers(0, 6)
            columns[name, str(label)] = {words[at] for at in drawn.tolist()}
    return columns, n_rows


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("seed", range(6))
def test_pairs_are_those_of_plain_sets(tmp_path, monkeypatch, seed, shards):
    columns, n_rows = random_lake(seed)
    deleted = ("t03.csv", "t07.csv") if seed % 2 else ()
    monkeypatch.setattr(column_pairs, "MAX_PARTNERS", None)
    monkeypatch.setattr(column_pairs, "max_columns_of", lambda n: 9)
    known = lake(tmp_path, columns, n_rows, shards=shards, deleted=deleted)
    truth = expected(columns, n_rows, telling=9, deleted=deleted)
    assert from_all_tables(known) == truth
    assert 20 < len(truth) < 800


@settings(max_examples=20)
@given(st.integers(0, 10**6))
def test_pairs_of_small_lakes(tmp_path_factory, seed):
    columns, n_rows = random_lake(seed, n_tables=4)
    known = lake(tmp_path_factory.mktemp("lake"), columns, n_rows)
    truth = expected(columns, n_rows)
    assert from_all_tables(known) == truth


def test_rules_at_their_bounds(tmp_path):
    ten = {f"v{at}" for at in range(10)}
    columns = {
        ("keys", "code"): ten,
        ("eight", "ref"): {f"v{at}" for at in range(8)} | {"a", "b"},  # 8 of 10
        ("seven", "ref2"): {f"v{at}" for at in range(7)} | {"c", "d", "e"},  # 7 of 10
        ("two", "small"): {"v0", "v1"},  # too few shared
        ("same", "C-O-D-E"): {"v9"} | {f"x{at}" for at in range(9)},  # 1 of 10
        ("less", "code"): {"v8"} | {f"y{at}" for at in range(10)},  # 1 of 11, of 10 the least
        ("many", "copy"): ten,
    }
    n_rows = dict.fromkeys((table for table, _ in columns), 100) | {"keys": 11}
    known = lake(tmp_path, columns, n_rows)
    pairs = from_all_tables(known)
    assert {tuple(table for table, _ in pair) for pair in pairs} == {
        ("eight", "keys"),
        ("keys", "same"),
        ("keys", "less"),
        ("keys", "many"),
    }
    assert pairs[("keys", "code"), ("same", "C-O-D-E")] == 1


def test_tokens_of_many_columns_and_small_numbers_tell_nothing(tmp_path):
    words = {f"r{at}" for at in range(1, 21)}
    columns = {(f"t{at}", f"row {at}"): words for at in range(40)}
    known = lake(tmp_path, columns, {f"t{at}": 20 for at in range(40)})
    assert max_columns_of(40) == 35
    assert len(from_all_tables(known)) == 0
    fewer = {name: tokens for name, tokens in columns.items() if int(name[0][1:]) < 10}
    (tmp_path / "fewer").mkdir()
    known = lake(tmp_path / "fewer", fewer, {f"t{at}": 20 for at in range(10)})
    assert len(from_all_tables(known)) == 45
    (tmp_path / "numbers").mkdir()
    fewer = {name: {str(at) for at in range(1, 21)} for name in fewer}
    known = lake(tmp_path / "numbers", fewer, {f"t{at}": 20 for at in range(10)})
    assert len(from_all_tables(known)) == 0


def test_limits_keep_what_shares_most(tmp_path, monkeypatch):
    columns = {
        (f"t{at:02}", "code"): {f"v{number}" for number in range(10 + at)} for at in range(12)
    }
    n_rows = {table: len(tokens) for (table, _), tokens in columns.items()}
    known = lake(tmp_path, columns, n_rows, shards=2)
    assert len(from_all_tables(known)) == 66
    monkeypatch.setattr(column_pairs, "MAX_PARTNERS", 2)
    own = own_columns(known, ["t05"])
    right = pairs_from(known, own).right
    # Two that contain it, which are its best namesakes too, and two that it contains.
    assert known.tables.take(pa.array(right)).to_pylist() == ["t00", "t01", "t06", "t07"]


def test_a_table_of_the_shopper(tmp_path):
    columns = {("a", "city"): {"Oslo", "Rome", "Bern"}, ("b", "place"): {"Oslo", "Rome", "Bern"}}
    known = lake(tmp_path, columns, {"a": 3, "b": 90})
    tokens = pa.array(["Rome", "Oslo", "Paris", "Bern"])
    own = [OwnColumn("mine", "City", tokens, 50), OwnColumn("mine", "n", pa.array(["1"]), 50)]
    pairs = pairs_from(known, own)
    assert pairs.left.tolist() == [0]
    assert known.name(int(pairs.right[0])) == ("a", "city")
    assert pairs.shared.tolist() == [3]


def test_columns_are_found_by_their_names(tmp_path):
    names = [("é.csv", "b"), ("z.csv", "a"), ("\U0001f600.csv", "x"), ("z.csv", "c"), ("A", "a")]
    known = lake(tmp_path, {name: {"v"} for name in names}, {}, shards=2)
    assert [known.name(at) for at in range(5)] == sorted(names)
    for at, (table, label) in enumerate(sorted(names)):
        assert known.column(table, label) == at
        assert known.table_number(table) == known.table_numbers[at]
        assert known.tokens(at).to_pylist() == ["v"]
    assert known.rows_of(["z.csv", "A", "none"]).tolist() == [0, 1, 2]
    assert (known.column("z.csv", "b"), known.column("none", "a")) == (-1, -1)
    assert known.table_number("none") == -1


def test_a_lake_without_columns():
    known = LakeColumns.of([], pa.array([], pa.string()), pa.array([], pa.int64()))
    assert len(pairs_from(known, [OwnColumn("mine", "a", pa.array(["x"]), 1)])) == 0


@pytest.mark.parametrize(
    ("name", "at", "value"),
    [
        ("list_sets", 0, 99),
        ("list_sets", 3, -1),
        ("token_offsets", 1, 99),
        ("set_offsets", 1, -5),
    ],
)
def test_damaged_lists_are_refused(tmp_path, name, at, value):
    columns = {(f"t{at}", "code"): {f"v{number}" for number in range(5 + at)} for at in range(4)}
    known = lake(tmp_path, columns, {f"t{at}": 9 for at in range(4)})
    own = own_columns(known, ["t3"])
    path = tmp_path / "0" / "shard" / f"{name}.npy"
    array = np.load(path)
    array[at] = value
    np.save(path, array)
    known = LakeColumns.of(
        [Shard(tmp_path / "0" / "shard", ("overlap",), np.empty(0, np.int64))],
        pa.array([f"t{at}" for at in range(4)]),
        pa.array([9] * 4),
    )
    with pytest.raises(IndexCorruptError, match="build it again"):
        pairs_from(known, own)


@pytest.mark.lakes
def test_pairs_of_a_relational_lake(lake_folder, tmp_path):
    columns, n_rows = {}, {}
    for file in find_tables(lake_folder("baseball"))[0]:
        table = read_table(file.path)
        n_rows[file.table] = len(table.columns[0])
        for label, cells in zip(label_columns(table.names), table.columns, strict=True):
            columns[file.table, label] = set(distinct_tokens(cells).to_pylist())
    known = lake(tmp_path, columns, n_rows, shards=2)
    named_pairs = from_all_tables(known)
    names = sorted(name for name, tokens in columns.items() if tokens)
    held = pa.table(  # noqa: F841  (named in the query)
        {
            "number": np.repeat(np.arange(len(names)), [len(columns[name]) for name in names]),
            "token": [token for name in names for token in sorted(columns[name])],
        }
    )
    counted = duckdb.sql(
        "SELECT l.number AS l, r.number AS r, count(*) AS n FROM held l JOIN held r USING (token) "
        "WHERE l.number < r.number GROUP BY ALL"
    ).fetchall()
    shared = {(names[left], names[right]): n for left, right, n in counted}
    assert all(shared[pair] == n for pair, n in named_pairs.items())
    assert set(named_pairs) == set(expected(columns, n_rows))
    folder = names[0][0].rpartition("/")[0]
    people = f"{folder}/People.csv"
    of_people = {pair for pair in named_pairs if (people, "playerID") in pair}
    assert len(of_people) == 15
