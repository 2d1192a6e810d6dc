"""Search of composite keys against plain sets: every filter and first column, and readings."""

import csv
import gzip
import os
import time
from collections import defaultdict
from dataclasses import asdict, replace
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest
from composite_lakes import (
    MINI_LAKE,
    RUNNING_QUERY,
    RUNNING_TABLE,
    TABLES,
    arrow_table,
    rows_of,
)
from composite_oracle import best_mapping, keys_of, search
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

import pexeso
from pexeso.composite.row_keys import Bloom, SuperKeys, Xash, build_row_keys
from pexeso.composite.search import key_query, search_keys
from pexeso.errors import IndexCorruptError, InputError
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.options import ColumnRules

FILTERS = ("none", "xash", "bloom", "intersection", "auto")
SUPER_KEYS = (Xash(64, 3), Bloom(64, 2))


def row_keys(tables, filters=SUPER_KEYS):
    return build_row_keys([arrow_table(table) for table in tables], filters)


def query_of(rows, m=None):
    columns = list(zip(*rows, strict=True)) if rows else [()] * m
    return key_query([pa.array(column, pa.string()) for column in columns])


def in_short(answer):
    return [(match.table, match.keys, match.columns) for match in answer.matches]


QUERIES = st.integers(1, 4).flatmap(lambda m: st.tuples(st.just(m), rows_of(m, limit=8)))


@settings(max_examples=examples(150))
@given(
    st.lists(TABLES, max_size=6),
    QUERIES,
    st.none() | st.integers(1, 4),
    st.integers(1, 3),
    st.lists(st.integers(0, 7), max_size=2),
)
def test_the_answer_is_that_of_plain_sets_whatever_the_filter_and_the_first_column(
    tables, query, k, at_least, excluded
):
    m, query_rows = query
    expected = search(tables, query_rows, k, at_least, excluded)
    rows, keys = row_keys(tables), query_of(query_rows, m)
    assert keys.n_rows == len(query_rows)
    assert keys.n_keys == len(keys_of(query_rows))
    for row_filter in FILTERS:
        for first in (None, 0, m - 1):
            answer = search_keys(
                rows, keys, k, at_least=at_least, row_filter=row_filter, first=first,
                excluded=excluded,
            )  # fmt: skip
            matches = [asdict(match) for match in answer.matches]
            for match in matches:
                match["rows_a_key"] = match.pop("most_rows")
                match["query_rows_a_key"] = match.pop("most_query_rows")
            assert matches == expected
            assert answer.n_keys == keys.n_keys


@given(st.lists(TABLES, max_size=6), QUERIES, st.integers(1, 3))
def test_filters_try_the_same_pairs_and_let_pass_all_that_hold_a_key(tables, query, k):
    rows, keys = row_keys(tables), query_of(query[1], query[0])
    plain = search_keys(rows, keys, k, row_filter="none").work
    assert plain.passed == plain.probes
    for row_filter in ("xash", "bloom"):
        work = search_keys(rows, keys, k, row_filter=row_filter).work
        assert replace(work, passed=plain.passed) == plain
        assert plain.held <= work.passed <= plain.passed
    crossed = search_keys(rows, keys, None, row_filter="intersection").work
    assert crossed.held == search_keys(rows, keys, None, row_filter="none").work.held


def test_running_example():
    rows, query = row_keys([RUNNING_TABLE]), query_of(RUNNING_QUERY)
    answer = search_keys(rows, query, row_filter="none", first=0)
    assert in_short(answer) == [(0, 5, (0, 1, 2))]
    assert (answer.first, answer.work.entries) == (0, 6)
    assert answer.matches[0].relation == "1:1"


def super_key_digits(words):
    return "".join(f"{word:016x}" for word in words.tolist())


@pytest.mark.parametrize(
    ("ones", "key", "expected"),
    [
        (
            4,
            "00860000000020240004000014200000",
            [
                "00a600000040a0240004000014200000",
                "00960000000c20840202040014200000",
                "00e40000002839240004000010000000",
            ],
        ),
        (
            6,
            "0086000000402024000c000014200000",
            [
                "00a600000040a124000c400014200000",
                "00960000004c2084020a040114208000",
                "00e4000000683924400c400210000000",
            ],
        ),
    ],
)
def test_super_keys_of_the_running_example(ones, key, expected):
    hashing = Xash(ones=ones)
    query = query_of(RUNNING_QUERY[:1])
    rows = row_keys([RUNNING_TABLE], [hashing])
    bits, words = query.super_keys(hashing)[0], rows.super_keys["xash"].words
    assert super_key_digits(bits) == key
    assert [super_key_digits(words[row]) for row in (1, 4, 5)] == expected
    assert [not (bits & ~words[row]).any() for row in (1, 4, 5)] == [True, False, False]
    work = search_keys(rows, query, row_filter="xash", first=0).work
    assert (work.probes, work.passed, work.held) == (3, 1, 1)


def test_the_false_positive_of_the_running_example_is_found_out():
    hashing = Xash()
    query = query_of(RUNNING_QUERY[1:2])
    rows = row_keys([RUNNING_TABLE], [hashing])
    words = rows.super_keys["xash"].words[3]
    assert super_key_digits(query.super_keys(hashing)[0]) == "00120000003008800004a00060200000"
    assert super_key_digits(words) == "0812000008304ac00004a00864200000"
    answer = search_keys(rows, query, row_filter="xash", first=0)
    assert (answer.work.probes, answer.work.passed, answer.work.held) == (2, 2, 1)
    assert in_short(answer) == [(0, 1, (0, 1, 2))]


MINI_ANSWER = [(1, 5, (0, 1, 2)), (2, 3, (1, 2, 0)), (4, 2, (1, 0, 2))]


@pytest.mark.parametrize(
    ("k", "evaluated", "probes", "passed", "held"),
    [(1, 2, 27, 6, 5), (2, 3, 36, 11, 10), (3, 4, 40, 13, 12), (9, 4, 40, 13, 12)],
)
def test_mini_lake_with_its_counts(k, evaluated, probes, passed, held):
    query, rows = query_of(RUNNING_QUERY), row_keys(MINI_LAKE, [Xash()])
    for row_filter, n in (("xash", passed), ("none", probes)):
        answer = search_keys(rows, query, k, row_filter=row_filter, first=0)
        assert in_short(answer) == MINI_ANSWER[:k]
        work = answer.work
        assert (work.evaluated, work.probes, work.passed, work.held) == (
            evaluated, probes, n, held,
        )  # fmt: skip
        assert (work.tables, work.entries) == (4, 21)
        assert work.precision == held / n


def one_of_each(n, hits):
    """Return a table with n rows whose key is there, and others where only its first value is."""
    return [[f"a{i}", f"b{i}" if i < n else "no"] for i in range(hits)]


def query_of_pairs(n):
    return query_of([[f"a{i}", f"b{i}"] for i in range(n)])


def test_tables_with_too_few_rows_are_not_evaluated():
    five, query = one_of_each(5, 5), query_of_pairs(10)
    evaluated = []
    for others in ([one_of_each(0, 4), five], [five, one_of_each(0, 5)], [one_of_each(0, 5), five]):
        answer = search_keys(row_keys(others), query, 1, first=0, row_filter="none")
        assert [match.keys for match in answer.matches] == [5]
        evaluated.append(answer.work.evaluated)
    # Four rows cannot join five keys; five can, and win where the table comes before the other.
    assert evaluated == [1, 1, 2]


@pytest.mark.parametrize(("best_first", "checked"), [(True, 6), (False, 7)])
def test_a_table_is_left_as_soon_as_it_cannot_join_enough(best_first, checked):
    """Of ten rows the first fits. Five keys are needed, and six to beat an earlier table."""
    best, other = one_of_each(5, 12), one_of_each(1, 10)
    tables = [best, other] if best_first else [other, best]
    # A column too few to join, but keys with values that are nowhere would not be tried.
    tables.append([[f"b{i}"] for i in range(12)])
    answer = search_keys(row_keys(tables), query_of_pairs(12), 1, first=0, row_filter="none")
    assert in_short(answer) == [(tables.index(best), 5, (0, 1))]
    assert (answer.work.evaluated, answer.work.abandoned) == (2, 1)
    assert answer.work.probes == 12 + checked


def test_rows_are_joined_both_ways():
    query = query_of([["a", "x"], ["a", "x"], ["b", "y"], ["", "y"], ["c", "z"]])
    tables = [
        [["b", "y"], ["c", "z"]],
        [["a", "x"]],
        [["b", "y"], ["b", "y"]],
        [["x", "a"], ["x", "a"], ["y", "b"]],
    ]
    matches = {match.table: match for match in search_keys(row_keys(tables), query).matches}
    assert {number: match.relation for number, match in matches.items()} == {
        0: "1:1",
        1: "N:1",
        2: "1:N",
        3: "N:M",
    }
    last = matches[3]
    assert (last.keys, last.rows, last.query_rows, last.joined_rows) == (2, 3, 3, 5)
    assert (last.most_rows, last.most_query_rows) == (2, 2)


def test_a_row_of_many_equal_cells_takes_no_time():
    tables = [[["x"] * 60], [["x"] * 30 + ["y"] * 30] * 3]
    answer = search_keys(row_keys(tables), query_of([["x"] * 4, ["x", "y", "y", "x"]]))
    assert in_short(answer) == [(0, 1, (0, 1, 2, 3)), (1, 1, (0, 1, 2, 3))]


@pytest.mark.parametrize("row_filter", FILTERS)
def test_what_joins_nothing(row_filter):
    rows = row_keys([[["a", "b"]], []])
    for query in (
        query_of([], 2),
        query_of([["", "b"], ["a", ""]]),
        query_of([["a", "new"]]),
        query_of([["a", "b", "a"]]),
        query_of([["b", "b"]]),
    ):
        answer = search_keys(rows, query, row_filter=row_filter)
        assert answer.matches == ()
        assert answer.work.held == 0
    assert search_keys(row_keys([]), query_of([["a"]]), row_filter=row_filter).matches == ()


def test_other_parameters_of_a_hash_lose_rows():
    """This is why super keys and what made them are kept together."""
    query = query_of(RUNNING_QUERY)
    rows = row_keys(MINI_LAKE, [Xash(ones=4)])
    words = rows.super_keys["xash"].words
    wrong = replace(rows, super_keys={"xash": SuperKeys(Xash(ones=6), words)})
    right = search_keys(rows, query, row_filter="xash")
    assert in_short(right) == MINI_ANSWER
    assert in_short(search_keys(wrong, query, row_filter="xash")) != MINI_ANSWER


@pytest.mark.parametrize("row_filter", FILTERS)
def test_mapped_files_are_searched_as_arrays_in_memory_are(tmp_path, row_filter):
    rows, query = row_keys(MINI_LAKE), query_of(RUNNING_QUERY)
    answer = search_keys(rows, query, row_filter=row_filter)

    def mapped(name, array):
        np.save(tmp_path / name, array)
        return np.load(tmp_path / f"{name}.npy", mmap_mode="r")

    arrays = ("cells", "table_rows", "table_columns", "value_offsets", "posting_rows")
    opened = replace(
        rows,
        **{name: mapped(name, getattr(rows, name)) for name in arrays},
        super_keys={
            name: SuperKeys(keys.hashing, mapped(name, keys.words))
            for name, keys in rows.super_keys.items()
        },
    )
    assert search_keys(opened, query, row_filter=row_filter) == answer


def test_lists_are_read_of_the_column_where_they_are_shortest():
    rows = row_keys([[["us", "a long name", "b"], ["us", "short", "b"], ["d", "uk", "b"]]])
    query = query_of([["uk", "a long name", "b"], ["us", "short", "b"], ["us", "c", "c"]])
    assert {first: search_keys(rows, query, first=first).first for first in (None, 2)} == {
        None: 1,
        2: 2,
    }


def test_an_unknown_row_filter_is_refused():
    message = "one of auto, none, intersection, xash, as .* Got 'bloom'"
    with pytest.raises(InputError, match=message):
        search_keys(row_keys([], [Xash()]), query_of([["a", "b"]]), row_filter="bloom")


@pytest.mark.parametrize("seed", range(3))
def test_larger_lakes(seed):
    """Lists that grow, long lists to intersect, and tables that are pruned."""
    rng = np.random.default_rng(seed)
    words = np.array([f"w{i}" for i in range(40)])
    tables = [
        words[rng.integers(0, 40, (rng.integers(1, 300), rng.integers(2, 5))) ** 2 // 40].tolist()
        for _ in range(30)
    ]
    query_rows = words[rng.integers(0, 40, (400, 2)) ** 2 // 40].tolist()
    keys = keys_of(query_rows)
    exact = sorted(((-best_mapping(table, keys)[0], number) for number, table in enumerate(tables)))
    rows, query = row_keys(tables), query_of(query_rows)
    for row_filter in FILTERS:
        answer = search_keys(rows, query, 5, row_filter=row_filter)
        assert [(-match.keys, match.table) for match in answer.matches] == exact[:5]
        assert [match.columns for match in answer.matches] == [
            best_mapping(tables[number], keys)[1] for _, number in exact[:5]
        ]


def damaged(rows, name, at, number):
    """Return an index with a wrong number, as a file may hold that was changed after a check."""
    array = getattr(rows, name).copy()
    array[at] = number
    damaged_rows = replace(rows)
    object.__setattr__(damaged_rows, name, array)
    return damaged_rows


def answer_or_error(rows, query, row_filter):
    try:
        return search_keys(rows, query, row_filter=row_filter).matches
    except IndexCorruptError as error:
        return str(error)


@pytest.mark.parametrize("row_filter", FILTERS)
@pytest.mark.parametrize("number", [-1, 1 << 40, -(1 << 62)])
def test_an_offset_that_leads_out_of_its_lists_is_refused(row_filter, number):
    rows, query = row_keys(MINI_LAKE), query_of(RUNNING_QUERY)
    answers = [
        answer_or_error(damaged(rows, "value_offsets", at, number), query, row_filter)
        for at in range(len(rows.value_offsets))
    ]
    refused = [answer for answer in answers if isinstance(answer, str)]
    assert len(refused) > len(query.values)  # a list has two ends, and some lists meet
    assert all("A posting list of an index for composite keys leads" in one for one in refused)


@pytest.mark.parametrize("row_filter", FILTERS)
@pytest.mark.parametrize("number", [-1, -(1 << 31), 24, (1 << 31) - 1])
def test_a_posting_that_is_no_row_is_refused_where_it_is_read(row_filter, number):
    rows, query = row_keys(MINI_LAKE), query_of(RUNNING_QUERY)
    assert rows.n_rows == 24
    right = search_keys(rows, query, row_filter=row_filter).matches
    answers = [
        answer_or_error(damaged(rows, "posting_rows", at, number), query, row_filter)
        for at in range(len(rows.posting_rows))
    ]
    refused = [answer for answer in answers if isinstance(answer, str)]
    assert all("An entry of a posting list of an index" in one for one in refused)
    if row_filter in ("none", "xash", "bloom"):  # an intersection passes over what is in one list
        assert len(refused) == search_keys(rows, query, row_filter=row_filter).work.entries
        assert all(answer == right for answer in answers if answer not in refused)


@pytest.mark.parametrize("row_filter", FILTERS)
def test_lists_in_any_order_and_wrong_cells_end_in_an_answer(row_filter):
    rows, query = row_keys(MINI_LAKE), query_of(RUNNING_QUERY)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        wrong = replace(rows)
        mixed = rng.permutation(rows.posting_rows)
        cells = rng.integers(-(1 << 31), 1 << 31, len(rows.cells)).astype(np.int32)
        object.__setattr__(wrong, "posting_rows", mixed)
        search_keys(wrong, query, row_filter=row_filter)
        object.__setattr__(
            wrong, "cells", np.where(rng.random(len(cells)) < 0.5, rows.cells, cells)
        )
        search_keys(wrong, query, row_filter=row_filter)


def few_values(rng, n_rows, width, n_values):
    return rng.integers(0, n_values, (n_rows, width)).astype(str).tolist()


@pytest.mark.parametrize("seed", range(4))
def test_wide_tables_of_few_values(seed):
    """Nearly every mapping joins something, and many join equally much."""
    rng = np.random.default_rng(seed)
    tables = [few_values(rng, 7, 14, 4) for _ in range(3)]
    tables[0] = [row + row[:4] for row in tables[0]]  # and columns that are equal
    keys = few_values(rng, 30, 3, 4)
    expected = [(n["table"], n["keys"], n["columns"]) for n in search(tables, keys, None)]
    for row_filter in FILTERS:
        answer = search_keys(row_keys(tables), query_of(keys), None, row_filter=row_filter)
        assert in_short(answer) == expected


@pytest.mark.long
def test_a_thousand_columns_of_few_values_take_no_time():
    """Columns for three values of a key are a thousand to the third here."""
    rng = np.random.default_rng(0)
    rows = row_keys([few_values(rng, 40, 1000, 9)], filters=())
    begin = time.process_time()
    (match,) = search_keys(rows, query_of(few_values(rng, 60, 3, 9)), None).matches
    assert match.keys > 3
    # Loops whose indices are checked take ten times as long.
    limit = 100 if os.environ.get("PEXESO_LOOPS") == "checked" else 20
    assert time.process_time() - begin < limit


pytestmark = pytest.mark.lakes


def read(path):
    """Return the columns of a table, lower-cased."""
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    cells = [[cell.strip().lower() for cell in row] for row in rows]
    return [[row[column] for row in cells] for column in range(len(header))]


@pytest.fixture(scope="module")
def lake(lake_folder):
    paths = sorted(lake_folder("wikitables").rglob("*.csv"))
    columns = [read(path) for path in paths]
    tables = [pa.table(one, names=[str(n) for n in range(len(one))]) for one in columns]
    return [path.stem for path in paths], columns, tables


@pytest.fixture(scope="module")
def known_pairs(shared_lakes, lake):
    """Return query table and columns -> candidate table -> its columns -> common keys."""
    number = {name: at for at, name in enumerate(lake[0])}
    known = defaultdict(lambda: defaultdict(dict))
    path = shared_lakes / "wikitables" / "nary_pairs.tsv.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            columns, others = (
                tuple(map(int, row[f"{side}_columns"].split("|")))
                for side in ("query", "candidate")
            )
            query = number[row["query_table"]], columns
            known[query][number[row["candidate_table"]]][others] = int(row["joint_matches"])
    return known


def test_every_known_pair_is_found_with_its_keys(lake, known_pairs):
    _, columns, tables = lake
    rows = build_row_keys(tables)
    n_known = n_found = 0
    for at, ((table, key), candidates) in enumerate(known_pairs.items()):
        query = key_query([tables[table].column(column) for column in key])
        answer = search_keys(rows, query, None, at_least=4, excluded=[table])
        matches = {match.table: match for match in answer.matches}
        for candidate, mappings in candidates.items():
            n_known += len(mappings)
            n_found += sum(matches[candidate].keys >= n for n in mappings.values())
            if at % 10 == 0:
                match = matches[candidate]
                assert (match.keys, match.columns) == best(
                    [columns[table][column] for column in key], columns[candidate]
                )
    assert n_found == n_known == 17774


def best(key_columns, columns):
    """Return the most keys that a mapping joins, and the first such mapping, by plain sets."""
    keys = {key for key in zip(*key_columns, strict=True) if all(key)}
    counts = {
        mapping: len(keys.intersection(zip(*(columns[c] for c in mapping), strict=True)))
        for mapping in permutations(range(len(columns)), len(key_columns))
    }
    max_keys = max(counts.values())
    return max_keys, min(mapping for mapping, n in counts.items() if n == max_keys)


YEARS = ["2020", "2021", "2022", "2023"]


def write(path, names, rows):
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([names, *rows])


def keys_joined(tmp_path, mine, lake, **options):
    """Return the keys that a search counts; a join with the table found joins as many."""
    folder = tmp_path / "lake"
    folder.mkdir()
    rows = [[cell, YEARS[at % 4], f"row {at}"] for at, cell in enumerate(lake)]
    write(folder / "t.csv", ["key", "year", "note"], rows)
    write(tmp_path / "m.csv", ["mine", "yr"], [[cell, YEARS[at % 4]] for at, cell in mine])
    index = pexeso.build_index(
        folder,
        tmp_path / "ix",
        parts=("composite",),
        rules=ColumnRules(min_rows=1, min_distinct=1),
        **options,
    )
    [match] = index.search_composite(tmp_path / "m.csv", ["mine", "yr"]) or [None]
    if match is None:
        return 0
    joined = match.join(tmp_path / "m.csv", how="inner", to="arrow")
    assert joined.num_rows == match.rows
    return match.matched_keys


@pytest.mark.parametrize(
    ("mine", "lake", "rules"),
    [
        (["2020", "7"], ["2020.0", "7.00"], ()),
        (["1234", "1000000"], ["1,234", "1 000 000"], ()),
        (["'00501", "'02139"], ["00501", "02139"], ()),
        (["20240105", "Jan 6, 2024"], ["2024-01-05", "2024-01-06"], ()),
        (["13/1/2024", "5/1/2024"], ["2024-01-13", "2024-01-05"], ()),
        (["2024-05-01", "2024-06-02"], ["1/5/2024", "2/6/2024"], ()),
        (["84523", "3769495"], ["84.523", "3.769.495"], ()),
        (["84.523", "1.000"], ["84.523", "1.000", "1.234,50"], ()),
        (["TRUE", "false"], ["true", "False"], ()),
        (["978-0-306-40615-7", "x"], ["9780306406157", "X"], ()),
        (["a\u200b1", "b2"], ["A1", "b\u00ad2"], ()),
        (["1001", "1003"], ["01001", "01003"], ("leading-zeros",)),
        (["yes", "no"], ["1", "0"], ("truth-numbers",)),
        (["1.5", "2.0"], ["1.50", "2.00"], ("decimal-zeros",)),
        (["+44 20 7946 0018", "0161 496 0123"], ["020 7946 0018", "01614960123"],
         ("calling-codes",)),
    ],
)  # fmt: skip
def test_keys_are_joined_as_they_are_read(tmp_path, mine, lake, rules):
    normaliser = Normaliser().switched(on=rules)
    assert keys_joined(tmp_path, list(enumerate(mine)), lake, normaliser=normaliser) == 2


@pytest.mark.parametrize(
    ("mine", "lake", "rules"),
    [
        (["1001", "1003"], ["01001", "01003"], ()),
        (["yes", "no"], ["1", "0"], ()),
        (["1.5", "3.0"], ["1.50", "2.00"], ()),
        (["3/5/2020", "4/6/2020"], ["2020-13-05", "x"], ()),
        (["1001", "1003"], ["01001", "01002", "1002"], ("leading-zeros",)),
        (["2020", "7"], ["2020.0", "7.00"], ("no-whole-numbers",)),
    ],
)
def test_keys_are_kept_apart(tmp_path, mine, lake, rules):
    normaliser = Normaliser().switched(
        on=[name for name in rules if name[:3] != "no-"],
        off=[name[3:] for name in rules if name[:3] == "no-"],
    )
    assert keys_joined(tmp_path, list(enumerate(mine)), lake, normaliser=normaliser) == 0


def test_identical_cells_are_joined_whatever_their_column_is_read_as(tmp_path):
    lake = ["3/5/2020", "13/5/2020", "4/6/2020"]
    assert keys_joined(tmp_path, [(0, "3/5/2020"), (2, "4/6/2020")], lake) == 2
