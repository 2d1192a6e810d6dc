"""Keys proposed for tables: held against all combinations, and on tables whose keys are known."""

import json
import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

import pexeso
from pexeso.composite import candidate_keys, unique_columns
from pexeso.composite.candidate_keys import RARELY, KeyKind, choose_key, column_kinds, find_keys
from pexeso.composite.unique_columns import (
    UniqueSearch,
    count_tuples,
    first_of_equal_rows,
    width_of,
)
from pexeso.errors import InputError, QueryError, TableReadError
from pexeso.lake.columns import names_in

WORDS, DECIMALS = list("abcdefghij"), [f"{n}.5" for n in range(10)]
MISSING = ["", " "]


@st.composite
def tables(draw):
    """Draw columns of words and of decimals, some with gaps, some without values."""
    n_rows, columns = draw(st.integers(1, 14)), []
    cells = np.random.default_rng(draw(st.integers(0, 2**32)))
    for _ in range(draw(st.integers(1, 5))):
        values = draw(st.sampled_from([WORDS[:3], WORDS, DECIMALS[:3], DECIMALS]))
        gaps = draw(st.sampled_from([[], [], MISSING]))
        columns.append([*cells.choice([*values, *gaps], n_rows)])
    return columns


def arrow(columns):
    return pa.table([pa.array(cells) for cells in columns], [f"c{n}" for n in range(len(columns))])


class Oracle:
    """The rows of a table that count, in plain Python, and the keys that they have."""

    def __init__(self, columns):
        rows = [tuple(cell.strip() for cell in row) for row in zip(*columns, strict=True)]
        full = [row for row in rows if any(row)]
        self.rows = list(dict.fromkeys(full))
        self.empty, self.duplicates = len(rows) - len(full), len(full) - len(self.rows)
        held = [set(map(str.strip, column)) - {""} for column in columns]
        self.usual = [n for n, texts in enumerate(held) if texts and texts <= set(WORDS)]
        self.others = [n for n in range(len(columns)) if n not in self.usual]

    def complete(self, columns):
        rows = [tuple(row[column] for column in columns) for row in self.rows]
        return [row for row in rows if all(row)]

    def smallest(self, order, max_columns, needed, known=()):
        """Return the smallest combinations that tell enough rows apart, in order."""
        column_sets = []
        for size in range(1, max_columns + 1):
            places = sorted(combinations(range(len(order)), size), key=lambda chosen: chosen[::-1])
            for chosen in places:
                columns = frozenset(order[place] for place in chosen)
                if len(set(self.complete(columns))) >= needed and not any(
                    smaller <= columns for smaller in (*known, *column_sets)
                ):
                    column_sets.append(columns)
        return column_sets

    def keys(self, max_columns, nearly):
        n = len(self.rows)
        if n < 5:
            return []
        unique = self.smallest(self.usual, max_columns, n)
        needed = math.ceil(Fraction(str(nearly)) * n)
        near = [] if unique or needed == n else self.smallest(self.usual, max_columns, needed)
        others = self.smallest([*self.usual, *self.others], max_columns, n, unique)
        kinds = ["unique"] * len(unique) + ["nearly"] * len(near) + ["unique"] * len(others)
        return list(zip(kinds, [*unique, *near, *others], strict=True))


@settings(max_examples=examples(300))
@given(tables(), st.integers(1, 5), st.sampled_from([1, 0.98, 0.8, 0.5]))
def test_keys_are_those_of_all_combinations_in_order(columns, max_columns, nearly):
    oracle = Oracle(columns)
    proposal = find_keys(arrow(columns), max_columns=max_columns, nearly=nearly, k=1000)
    expected = oracle.keys(max_columns, nearly)
    assert [(key.kind, frozenset(key.positions)) for key in proposal.keys] == expected
    assert proposal.rows == len(columns[0])
    assert (proposal.empty_rows, proposal.duplicate_rows) == (oracle.empty, oracle.duplicates)
    assert (proposal.reason is None) == bool(expected)
    first = find_keys(arrow(columns), max_columns=max_columns, nearly=nearly, k=2)
    assert first.keys == proposal.keys[:2]


@given(tables())
def test_evidence_is_counted_on_the_rows(columns):
    oracle = Oracle(columns)
    for key in find_keys(arrow(columns), nearly=0.5).keys:
        sizes = range(len(key.positions) - 1, 0, -1)
        smaller = [positions for size in sizes for positions in combinations(key.positions, size)]
        assert len(key.smaller) == len(smaller)
        parts = [(key, key.positions), *zip(key.smaller, smaller, strict=True)]
        for part, positions in parts:
            rows = oracle.complete(positions)
            assert part.columns == tuple(f"c{position}" for position in positions)
            assert part.distinct == len(set(rows))
            assert part.repeated == len(rows) - len(set(rows))
            assert part.missing == len(oracle.rows) - len(rows)
            assert part.uniqueness == (len(set(rows)) / len(rows) if rows else 0)
            assert bool(part.example) == (part.repeated > 0)
            assert part.example_rows == rows.count(part.example)


def test_countries_and_years_with_three_rows_repeated():
    rows = [(f"Land {n}", str(year), f"{n * 7.31 + year / 9:.3f}") for n in range(20)
            for year in range(2001, 2011)]  # fmt: skip
    changed = [(country, year, "0.125") for country, year, _ in rows[:3]]
    columns = list(zip(*[*rows, *changed], strict=True))
    answer = find_keys(pa.table([pa.array(cells) for cells in columns], ["country", "year", "gdp"]))
    best = answer.keys[0]
    assert (best.columns, best.kind, best.repeated) == (("country", "year"), "nearly", 3)
    assert best.example_rows == 2
    assert best.example in {row[:2] for row in changed}
    assert [key.rarely_keys for key in answer.keys[1:]]
    assert all(key.rarely_keys for key in answer.keys[1:])
    columns = list(zip(*[*rows, *rows[:3]], strict=True))
    answer = find_keys(pa.table([pa.array(cells) for cells in columns], ["country", "year", "gdp"]))
    assert answer.duplicate_rows == 3
    best = answer.keys[0]
    assert (best.columns, best.kind, best.repeated) == (("country", "year"), "unique", 0)


def test_measurements_that_are_unique_do_not_come_first():
    table = pa.table(
        {
            "gdp": [1.5, 2.5, 3.5, 4.5, 5.5, 6.5],
            "people": [12, 99000, 4100, 77, 123456, 5],
            "country": ["fr", "fr", "fr", "it", "it", "it"],
            "year": [2001, 2002, 2003, 2001, 2002, 2003],
        }
    )
    proposal = find_keys(table)
    assert [key.spec for key in proposal.keys] == ["country,year", "gdp", "people"]
    assert proposal.keys[1].rarely_keys == {"gdp": "decimal or formatted numbers"}
    assert choose_key(table).columns == ("country", "year")
    with pytest.raises(QueryError, match=r"the best combination, gdp, has columns that are rarely"):
        choose_key(table.select(["gdp", "people", "year"]))


def test_the_share_of_a_near_key_is_itself_enough():
    n_rows, enough = 25, 14  # 0.56 * 25 is a little above 14 as a float
    cells = [f"v{min(n, enough - 1)}" for n in range(n_rows)]
    others = [[f"w{n % 9}" for n in range(n_rows)], [f"x{n // 9}" for n in range(n_rows)]]
    table = arrow([cells, *others])
    proposal = find_keys(table, nearly=0.56, max_columns=1)
    assert (proposal.duplicate_rows, proposal.keys[0].distinct) == (0, enough)
    assert find_keys(table, nearly=0.57, max_columns=1).keys == ()


def test_cells_are_compared_as_keys_are():
    cells = ["Oslo", " OSLO", "Rome", "rome ", "Paris", "Nice"]
    proposal = find_keys(pa.table({"city": cells, "seen": [f"v{n}" for n in range(6)]}))
    assert [key.columns for key in proposal.keys] == [("seen",)]
    nearly = find_keys(pa.table({"city": cells, "year": [2001.0] * 5 + [2002]}), nearly=0.6)
    assert (nearly.rows, nearly.duplicate_rows) == (6, 2)


def test_names_that_are_repeated_or_have_commas():
    cells = [f"v{n}" for n in range(6)]
    columns = [pa.array(["x", "y"] * 3), pa.array(["p", "p", "q", "q", "r", "r"])]
    proposal = find_keys(pa.table([*columns, pa.array(cells)], names=["x", "x", "city, state"]))
    assert [key.columns for key in proposal.keys] == [("city, state",), ("#0", "#1")]
    assert [names_in(key.spec) for key in proposal.keys] == [["city, state"], ["#0", "#1"]]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"a": []}, "the table has no rows."),
        ({}, "the table has no rows."),
        ({"a": ["", None, " "] * 3, "b": [None] * 9}, "no cell of the table has a value."),
        ({"a": ["x"]}, "the table has too few rows to tell, 1 that differ; at least 5 are needed."),
        ({"a": list("abcdabcd")}, "the table has too few rows to tell, 4 that differ;"),
    ],
)
def test_a_table_without_a_key_has_the_reason(columns, said):
    table = pa.table({name: pa.array(cells, pa.string()) for name, cells in columns.items()})
    proposal = find_keys(table)
    assert proposal.keys == ()
    assert proposal.reason.startswith(said)
    with pytest.raises(QueryError, match="No key was found for the table: "):
        choose_key(table)


def test_no_combination_is_unique():
    values = np.random.default_rng(3).integers(0, 3, (4, 60)).astype(str)
    proposal = find_keys(arrow([[f"v{cell}" for cell in column] for column in values]))
    assert proposal.reason == "no combination of up to 3 columns tells 98.0 % of the rows apart."
    assert find_keys(arrow(values.tolist()), nearly=1, max_columns=1).reason == (
        "no combination of 1 column tells all rows apart."
    )


def test_what_was_not_looked_at_is_said(monkeypatch):
    draw = np.random.default_rng(5)
    columns = [[f"v{cell}" for cell in column] for column in draw.integers(0, 6, (6, 100))]
    whole = find_keys(arrow(columns), nearly=1)
    assert whole.notes == ()
    monkeypatch.setattr(unique_columns, "MAX_WIDTH", 4)
    proposal = find_keys(arrow(columns), nearly=1)
    assert proposal.notes[0] == (
        "Of combinations of 2 columns those with the last 2 of 6 columns, in the order of "
        "preference, were not looked at."
    )
    assert proposal.reason.startswith(
        "none of the combinations of up to 3 columns that were looked at"
    )
    monkeypatch.undo()
    columns.append([f"{n}.5" for n in range(100)])
    assert [key.columns for key in find_keys(arrow(columns), max_columns=1).keys] == [("c6",)]
    monkeypatch.setattr(unique_columns, "MAX_ROWS_COMPARED", 150)
    proposal = find_keys(arrow(columns))
    assert "combinations were compared for unique keys" in proposal.notes[0]
    assert proposal.keys == ()  # a key with c6 might hold a smaller one that was not looked at


def test_tables_of_every_kind_give_the_same(tmp_path):
    frame = pd.DataFrame(
        {"city": list("aabbcc"), "year": [2001.0, 2002, 2001, 2002, 2001, None], "n": [1, 2] * 3}
    )
    path = tmp_path / "cities.csv"
    frame.to_csv(path, index=False)
    expected = find_keys(path)
    assert [key.columns for key in expected.keys] == [("city", "n")]
    assert find_keys(frame).keys == find_keys(pa.Table.from_pandas(frame)).keys == expected.keys
    chunked = pa.concat_tables([pa.Table.from_pandas(frame[:2]), pa.Table.from_pandas(frame[2:])])
    assert find_keys(chunked).keys == expected.keys
    assert find_keys(frame.astype({"city": "category"})).keys == expected.keys
    mixed = pd.DataFrame({"a": [1, "x", None, 2.5, "y", b"z".decode()], "b": list("uvwxyz")})
    assert [key.columns for key in find_keys(mixed).keys] == [("b",)]
    assert expected.table == str(path)


def test_the_json_form():
    proposal = find_keys(pa.table({"a": list("aabbcc"), "b": list("ababab")}))
    document = json.loads(json.dumps(proposal.to_dict()))
    assert document["keys"][0]["key"] == "a,b"
    assert document["keys"][0]["smaller"][0]["columns"] == ["a"]
    assert document["reason"] is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_columns": 0}, r"max_columns must be a whole number, from 1 to 5\. Got 0\."),
        ({"max_columns": 6}, r"from 1 to 5\. Got 6\."),
        ({"max_columns": True}, r"Got True\."),
        ({"max_columns": 2.0}, r"Got 2\.0\."),
        ({"nearly": 0}, r"nearly must be a number above 0, up to 1\. Got 0\."),
        ({"nearly": float("nan")}, r"Got nan\."),
        ({"nearly": 1.1}, r"Got 1\.1\."),
        ({"k": 0}, r"k must be a whole number, 1 or more\. Got 0\."),
    ],
)
def test_options_out_of_their_range(options, said):
    with pytest.raises(InputError, match=said):
        find_keys(pa.table({"a": ["x"]}), **options)


def test_what_is_no_table(tmp_path):
    with pytest.raises(InputError, match=r"a path, a DataFrame of pandas .*interface\. Got list\."):
        find_keys([["a"]])
    with pytest.raises(InputError, match="Column 'b' cannot be part of a key"):
        find_keys(pa.table({"a": ["x"], "b": [["x"]]}))
    path = tmp_path / "photo.csv"
    path.write_bytes(bytes(range(256)) * 9)
    with pytest.raises(TableReadError, match="is binary"):
        find_keys(path)
    with pytest.raises(TableReadError):
        find_keys(tmp_path / "nothing.csv")


def test_the_public_name():
    assert pexeso.find_keys is candidate_keys.find_keys


@pytest.mark.lakes
@pytest.mark.parametrize(
    ("table", "key"),
    [
        ("AwardsManagers", "playerID,awardID,yearID"),
        ("BattingPost", "yearID,round,playerID"),
        ("CollegePlaying", "playerID,schoolID,yearID"),
        ("FieldingOF", "playerID,yearID,stint"),
        ("HallOfFame", "playerID,yearID,votedBy"),
        ("Managers", "playerID,yearID,inseason"),
        ("Parks", "park.key"),
        ("People", "playerID"),
        ("PitchingPost", "playerID,yearID,round"),
        ("Salaries", "yearID,teamID,playerID"),
        ("Schools", "schoolID"),
        ("SeriesPost", "yearID,round"),
        ("Teams", "yearID,teamID"),
        ("TeamsFranchises", "franchID"),
    ],
)
def test_known_keys_come_first(lake_folder, table, key):
    (path,) = lake_folder("baseball").rglob(f"{table}.csv")
    assert choose_key(path).spec == key


TEXTS = pa.array(["a", "b", "c", "d"])


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["Oslo", "Rome", "Oslo", None], "TEXT"),
        (["2001-03-04", "2001-03-05", "2001-04-01", None], "TEXT"),
        (["1999", "2001", "2001", "2050"], "TEXT"),
        (["1999.0", "2001.0", None, "2005.0"], "TEXT"),
        (["50123", "99001", "13377", "50124"], "WHOLE"),
        (["3", "1", "2", "2"], "WHOLE"),
        (["2", "3", "4", "5"], "WHOLE"),
        (["1", "2", "3", "4"], "ROW_NUMBER"),
        ([" 0", "1", "2", "3 "], "ROW_NUMBER"),
        (["1", "2", "3", None], "WHOLE"),
        (["12", "81000", "3400", "7"], "SPREAD"),
        (["-3", "2", "1", "0"], "DECIMAL"),
        (["1,200", "12", "3", "4"], "DECIMAL"),
        (["0.5", "1.0", "1.5", "2.0"], "DECIMAL"),
        (["$7", "$8", "$9", "$10"], "DECIMAL"),
        (["99999999999999999999", "1", "2", "3"], "WHOLE"),
        ([" ".join("abcdefghijklm")] * 4, "FREE_TEXT"),
        ([None, " ", None, None], "EMPTY"),
    ],
)
def test_kinds(values, kind):
    assert column_kinds([TEXTS, pa.array(values, pa.string())])[1] is KeyKind[kind]


def test_spread_whole_numbers_of_the_first_column_are_taken_for_codes():
    numbers = pa.array(["12", "81000", "3400", "7"])
    assert column_kinds([numbers, numbers]) == [KeyKind.WHOLE, KeyKind.SPREAD]


def test_kinds_that_are_rarely_keys_come_last_and_are_named():
    rarely = [kind for kind in KeyKind if kind in RARELY]
    assert [kind.name for kind in rarely] == [
        "ROW_NUMBER", "SPREAD", "DECIMAL", "FREE_TEXT", "EMPTY",
    ]  # fmt: skip
    assert {kind.rank for kind in rarely} == {2}
    assert sorted(KeyKind, key=lambda kind: kind.rank)[:2] == [KeyKind.TEXT, KeyKind.WHOLE]


@st.composite
def coded_tables(draw):
    """Draw the codes of a table, some columns of which have gaps."""
    draw_codes = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_columns, n_rows = draw(st.integers(1, 6)), draw(st.integers(1, 14))
    codes = [
        draw_codes.integers(0, draw(st.sampled_from([2, 3, 5, 9])), n_rows)
        for _ in range(n_columns)
    ]
    gaps = draw_codes.random((n_columns, n_rows)) < draw(st.sampled_from([0, 0, 0.1]))
    return np.where(gaps, -1, codes).tolist()


CODES = coded_tables()
SMALL_LIMITS = {"_MAX_PAIRS_OF_ROWS": 1, "_FIRST_ROWS": 4, "_BLOCK": 2, "_LARGEST": 8}


def tuples_of(codes, columns):
    """Return the tuples of the rows that are complete in some columns."""
    rows = zip(*(codes[column] for column in columns), strict=True)
    return [row for row in rows if -1 not in row]


def smallest(codes, needed, max_size, begin=0):
    """Return what `UniqueSearch` is to find, by looking at every combination."""
    column_sets = []
    for size in range(1, max_size + 1):
        in_order = sorted(combinations(range(len(codes)), size), key=lambda columns: columns[::-1])
        column_sets += [
            columns
            for columns in in_order
            if columns[-1] >= begin
            and len(set(tuples_of(codes, columns))) >= needed
            and not any(set(smaller) < set(columns) for smaller in column_sets)
        ]
    return column_sets


def searched(codes, needed, max_size, begin=0):
    search = UniqueSearch(np.array(codes, np.int32), needed)
    return [columns for size in range(1, max_size + 1) for columns in search.of_size(size, begin)]


@settings(max_examples=examples(300))
@pytest.mark.parametrize("limits", [{}, SMALL_LIMITS], ids=["usual", "small"])
@given(CODES, st.integers(0, 3), st.integers(1, 5))
def test_every_smallest_combination_is_found_in_order(limits, codes, lost, max_size):
    needed = max(1, len(codes[0]) - lost)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in limits.items():
            patch.setattr(unique_columns, name, value)
        assert searched(codes, needed, max_size) == smallest(codes, needed, max_size)


def test_tuples_of_more_than_64_bits_are_told_apart():
    codes = np.array([[0, 4, 1], [0, 0, 2**31 - 1], [0, 0, 2**31 - 1]], np.int32)
    assert count_tuples(codes, (0, 1, 2)).distinct == 3
    assert list(UniqueSearch(codes, 3).of_size(3)) == [(0, 1, 2)]


@given(CODES)
def test_rows_that_repeat_an_earlier_one(codes):
    rows = list(zip(*codes, strict=True))
    first = [number for number, row in enumerate(rows) if row not in rows[:number]]
    assert first_of_equal_rows(np.array(codes, np.int32)).tolist() == first


def test_the_one_combination_of_166_million_is_found():
    draw = np.random.default_rng(7)
    codes = draw.integers(0, 2, (1000, 1000), dtype=np.int32)
    digits = np.arange(1000)[draw.permutation(1000)]
    for column, place in ((12, 1), (345, 10), (999, 100)):
        codes[column] = digits // place % 10
    search = UniqueSearch(codes, 1000)
    assert [columns for size in (1, 2, 3) for columns in search.of_size(size)] == [(12, 345, 999)]
    assert search.is_whole


def test_wide_tables_are_cut_where_there_are_too_many_combinations(monkeypatch):
    monkeypatch.setattr(unique_columns, "MAX_COMBINATIONS", 10)
    assert [width_of(size) for size in (2, 3, 5)] == [5, 5, 6]
    codes = np.zeros((6, 4), np.int32)
    codes[0], codes[5] = [0, 0, 1, 1], [0, 1, 0, 1]
    assert list(UniqueSearch(codes, 4).of_size(2)) == []
    monkeypatch.setattr(unique_columns, "MAX_COMBINATIONS", 15)
    assert list(UniqueSearch(codes, 4).of_size(2)) == [(0, 5)]
