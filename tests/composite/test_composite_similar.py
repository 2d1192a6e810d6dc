"""Search by keys with similar values against plain loops over rows, mappings and keys."""

from collections import Counter
from dataclasses import asdict
from itertools import permutations

import numpy as np
import pyarrow as pa
from composite_lakes import CELLS, TABLES, arrow_table, rows_of
from composite_oracle import keys_of
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

from pexeso.composite.row_keys import build_row_keys
from pexeso.composite.search import key_query, search_keys
from pexeso.composite.similar import MOST_CELLS, SimilarCells, SimilarSearch

VALUES = ("a", "b", "c", "ab", "é")


def search_slowly(tables, query, matches, k=None, at_least=1, excluded=()):
    """Try every mapping of each table, and every row with every key."""
    keys, answers = keys_of(query), []
    for number, table in enumerate(tables):
        best, width = (0, None), len(table[0]) if table else 0
        for mapping in permutations(range(width), len(query[0])) if query else ():
            pairs = {
                (row, key)
                for row, cells in enumerate(table)
                for key in keys
                if all(
                    cells[column] and matches(i, number, column, cells[column], key[i])
                    for i, column in enumerate(mapping)
                )
            }
            n_keys = len({key for _, key in pairs})
            if n_keys > best[0]:
                best = (n_keys, mapping, pairs)
        if best[0] < at_least or number in excluded:
            continue
        n_keys, mapping, pairs = best
        of_row = Counter()
        for row, key in pairs:
            of_row[row] += keys[key]
        answers.append(
            {
                "table": number,
                "keys": n_keys,
                "columns": mapping,
                "rows": len({row for row, _ in pairs}),
                "query_rows": sum(keys[key] for key in {key for _, key in pairs}),
                "joined_rows": sum(keys[key] for _, key in pairs),
                "most_rows": max(Counter(key for _, key in pairs).values()),
                "most_query_rows": max(of_row.values()),
                "pairs": sorted((key, row) for row, key in pairs),
            }
        )
    answers.sort(key=lambda one: (-one["keys"], one["table"]))
    return answers[:k]


def search_similar(rows, query, cells, k=10, *, most_cells=MOST_CELLS, **options):
    return SimilarSearch(rows, query, cells, most_cells).search(cells, k, **options)


def row_keys(tables):
    return build_row_keys([arrow_table(table) for table in tables])


def query_of(rows, m):
    columns = list(zip(*rows, strict=True)) if rows else [()] * m
    return key_query([pa.array(column, pa.string()) for column in columns])


def similar_cells(rows, query, triples):
    """Return matching cells, given as table, column, cell and value, as the search takes them."""
    triples = [
        (rows.table_columns[table] + column, cell, value)
        for table, column, cell, value in triples
        if table < rows.n_tables and column < rows.widths[table]
    ]
    columns, cells, values = zip(*triples, strict=True) if triples else ((), (), ())
    cells = rows.find(pa.array(cells, pa.string()))
    values = pa.array(values, pa.string())
    values = np.array(
        [query.values.to_pylist().index(value) for value in values.to_pylist()], np.int64
    )
    known = cells >= 0
    columns = np.array(columns, np.int64)
    return SimilarCells(columns[known], cells[known], values[known])


TRIPLES = st.lists(
    st.tuples(
        st.integers(0, 3), st.integers(0, 3), st.sampled_from(VALUES), st.sampled_from(VALUES)
    ),
    unique=True,
    max_size=60,
)
SEARCHES = st.integers(1, 3).flatmap(
    lambda m: st.tuples(
        rows_of(m, limit=8), st.dictionaries(st.integers(0, m - 1), TRIPLES, max_size=m), st.just(m)
    )
)


def known_triples(query, similar):
    values = set(query.values.to_pylist())
    return {
        i: [triple for triple in triples if triple[3] in values] for i, triples in similar.items()
    }


@settings(max_examples=examples(400))
@given(
    st.lists(TABLES, max_size=4),
    SEARCHES,
    st.none() | st.integers(1, 4),
    st.integers(1, 3),
    st.lists(st.integers(0, 4), max_size=1),
    st.sampled_from([1, 7, MOST_CELLS]),
)
def test_the_answer_is_that_of_plain_loops(tables, search, k, at_least, excluded, most_cells):
    query_rows, similar, m = search
    rows, query = row_keys(tables), query_of(query_rows, m)
    similar = known_triples(query, similar)
    sets = {i: set(triples) for i, triples in similar.items()}

    def matches(i, table, column, cell, value):
        return (table, column, cell, value) in sets[i] if i in sets else cell == value

    expected = search_slowly(tables, query_rows, matches, k, at_least, excluded)
    cells = {i: similar_cells(rows, query, triples) for i, triples in similar.items()}
    answers = search_similar(
        rows, query, cells, k, at_least=at_least, excluded=excluded, most_cells=most_cells
    )
    texts = query.values.to_pylist()
    for match, wanted in zip(answers, expected, strict=True):
        table_rows, keys = SimilarSearch(rows, query, cells).joined_pairs(cells, match)
        pairs = [
            (tuple(texts[value] for value in query.keys[key]), row)
            for row, key in zip(table_rows.tolist(), keys.tolist(), strict=True)
        ]
        assert pairs == wanted.pop("pairs")
        assert asdict(match) == wanted


@given(
    st.lists(TABLES, max_size=6),
    st.integers(1, 3).flatmap(lambda m: st.tuples(st.just(m), rows_of(m, limit=8))),
    st.none() | st.integers(1, 3),
)
def test_equal_values_are_found_as_the_search_by_equal_values_does(tables, query, k):
    m, query_rows = query
    rows, keys = row_keys(tables), query_of(query_rows, m)
    expected = search_keys(rows, keys, k).matches
    assert search_similar(rows, keys, {}, k) == expected
    equal = SimilarCells(
        np.repeat(np.arange(rows.table_columns[-1]), len(keys.values)),
        np.tile(rows.find(keys.values), rows.table_columns[-1]),
        np.tile(np.arange(len(keys.values)), rows.table_columns[-1]),
    )
    known = equal.cells >= 0
    equal = SimilarCells(equal.columns[known], equal.cells[known], equal.values[known])
    assert search_similar(rows, keys, dict.fromkeys(range(m), equal), k) == expected


@given(st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=1, max_size=8))
def test_a_cell_counts_for_each_value_that_it_matches_and_each_key_once(table):
    """All cells match all values, so that a row with values holds every key."""
    rows, query = row_keys([table]), query_of([["a", "b"], ["c", "b"], ["c", "b"]], 2)
    every = [(0, column, cell, value) for column in range(3) for cell in VALUES for value in VALUES]
    every = known_triples(query, {0: every})[0]
    matches = search_similar(rows, query, dict.fromkeys((0, 1), similar_cells(rows, query, every)))
    pairs = [sum(bool(row[a] and row[b]) for row in table) for a, b in ((0, 1), (0, 2), (1, 2))]
    if not any(pairs):
        assert not matches
        return
    first = next(at for at, n in enumerate(pairs) if n)
    [match] = matches
    assert (match.keys, match.columns) == (2, ((0, 1), (0, 2), (1, 2))[first])
    assert (match.rows, match.joined_rows) == (pairs[first], 3 * pairs[first])
    assert (match.most_rows, match.most_query_rows) == (pairs[first], 3)


def test_two_values_do_not_share_a_column():
    rows, query = row_keys([[["x"]], [["x", "y"]]]), query_of([["a", "b"]], 2)
    triples = [(1, 0, "x", "a"), (1, 0, "x", "b"), (0, 0, "x", "a"), (0, 0, "x", "b")]
    cells = similar_cells(rows, query, triples)
    assert search_similar(rows, query, {0: cells, 1: cells}) == ()
    apart = similar_cells(rows, query, [*triples, (1, 1, "y", "a")])
    [match] = search_similar(rows, query, {0: apart, 1: apart})
    assert (match.table, match.columns) == (1, (1, 0))


def test_of_several_mappings_the_first_is_taken_and_of_tables_the_lower_number():
    table = [["x", "1", "x", "1"]]
    rows, query = row_keys([table, table, [["x", "1", "x", "2"]]]), query_of([["a", "1"]], 2)
    triples = [(table, column, "x", "a") for table in (0, 1, 2) for column in (2, 0)]
    cells = {0: similar_cells(rows, query, triples)}
    matches = search_similar(rows, query, cells, 2)
    assert [(match.table, match.columns) for match in matches] == [(0, (0, 1)), (1, (0, 1))]


def test_a_later_table_that_joins_one_key_more_is_taken_however_few_cells_are_worked_on():
    one, two = [["x", "1"]], [["x", "1"], ["x", "2"]]
    rows, query = row_keys([one, two, two]), query_of([["a", "1"], ["a", "2"]], 2)
    cells = {0: similar_cells(rows, query, [(table, 0, "x", "a") for table in range(3)])}
    for most_cells in (1, MOST_CELLS):
        [match] = search_similar(rows, query, cells, 1, most_cells=most_cells)
        assert (match.table, match.keys) == (1, 2)


def test_tables_without_a_row_of_equal_texts_are_left_out_before_values_are_compared():
    rows = row_keys([[["y", "3"]], [["x", "1"], ["x", "2"]], [["1"]]])
    query = query_of([["a", "1"], ["b", "9"]], 2)
    assert SimilarSearch(rows, query, [0]).tables.tolist() == [1]
    assert SimilarSearch(rows, query, [0, 1]).tables.tolist() == [0, 1]
    assert SimilarSearch(rows, query_of([["a", "9"]], 2), [0]).tables.tolist() == []
