"""A table enriched: hand-computed on tables in memory, with each rule once; and by an index."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import pexeso
from pexeso.errors import ColumnNotFoundError, InputError, TableReadError
from pexeso.joins.enrichment.gathering import SAID, Column, column_by_key, column_of_lists, trimmed
from pexeso.joins.mapping import PairColumns, make_mapping
from pexeso.joins.matched_rows import find_rows
from pexeso.joins.options import join_options
from pexeso.joins.tables import join_table
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.results.matches import Pair
from pexeso.store import arrays

NORMALISER = Normaliser()


class FoundTable:
    """A found table in memory; values match regardless of case and punctuation."""

    def __init__(self, table, rows, column="name", error=None):
        self.table, self.column, self.rows, self.error = table, column, rows, error
        self.joinability = 1.0

    def join(self, table, on=None, **options):
        if self.error is not None:
            raise self.error
        texts = table.column(on).combine_chunks()
        texts = texts.filter(NORMALISER.normalise(texts).is_valid())
        encoded = NORMALISER.normalise(texts).dictionary_encode()
        theirs = NORMALISER.normalise(
            pa.array([row[self.column] for row in self.rows], pa.string())
        ).to_pylist()
        pairs = [
            Pair(text, key, 0.0, key, "exact")
            for text, value in zip(texts.to_pylist(), encoded.indices.to_pylist(), strict=True)
            for key in dict.fromkeys(theirs)
            if key is not None and key == encoded.dictionary[value].as_py()
        ]
        mapping = make_mapping(
            texts,
            encoded.indices.to_numpy().astype(np.int64),
            encoded.dictionary,
            PairColumns.of(pairs),
        )
        chosen = join_options(options)
        schema = pa.schema([(name, pa.string()) for name in self.rows[0]])
        rows = pa.Table.from_pylist(self.rows, schema=schema)
        found_rows = find_rows(self.table, self.column, rows, mapping, NORMALISER, chosen)
        return join_table(table, on, found_rows, texts).table


def table_of(**columns):
    """Rows of a found table: one for each name, cells as given."""
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


NAMES = ["Oslo", "Rome", "Bern", "Graz"]
MINE = pd.DataFrame(
    {"city": ["OSLO", "Rome", None, "Bern", "rome"], "beds": [10, 20, 30, 40, 50]},
    index=[7, 7, 8, 9, 2],
)


def enriched(*matches, table=MINE, on="city", **options):
    return pexeso.enrich_from(matches, table, on, **options)


def rules_of(result):
    return {omission.column: omission.rule for omission in result.left_out}


def test_numbers_are_averaged_and_the_first_text_is_taken_by_hand():
    # Rome has two rows: (2 + 5) / 2; its first text that is not empty is 'b'. The third of five
    # rows of mine has no key.
    rows = table_of(
        name=["Oslo", "Rome", "Rome", "Bern", "Graz"],
        people=["1,000", "2", "5", "n/a", "9"],
        note=["a", None, "b", "c", "d"],
    )
    result = enriched(FoundTable("t.csv", rows), min_number_fraction=0.7)
    assert list(result.table.columns) == ["city", "beds", "t.csv:people", "t.csv:note"]
    assert result.table["t.csv:people"].tolist()[:2] == [1000.0, 3.5]
    assert result.table["t.csv:people"].isna().tolist() == [False, False, True, True, False]
    assert result.table["t.csv:note"].fillna("-").tolist() == ["a", "b", "-", "c", "b"]
    people, note = result.columns
    assert (people.kind, people.coverage, people.distinct, people.key) == ("number", 0.6, 2, "name")
    assert (note.kind, note.coverage, note.distinct) == ("text", 0.8, 3)


def test_the_users_rows_index_and_kind_of_table_stay():
    match = FoundTable("t.csv", table_of(name=NAMES, people=["1", "2", "3", "4"]))
    result = enriched(match)
    pd.testing.assert_frame_equal(result.table[["city", "beds"]], MINE)
    arrow = enriched(match, table=pa.Table.from_pandas(MINE, preserve_index=False)).table
    assert arrow.column("t.csv:people").to_pylist() == [1.0, 2.0, None, 3.0, 2.0]
    assert arrow.column("beds").to_pylist() == [10, 20, 30, 40, 50]
    assert "t.csv:people" not in MINE.columns


def test_each_rule_leaves_out_what_it_names():
    rows = table_of(
        name=NAMES,
        blank=[None, " ", "", None],
        same=["x", "x", "x", "y"],
        rare=["1", None, None, "2"],
        again=["oslo", "ROME", "Bern", "Graz"],
        people=["1", "2", "3", "4"],
        people_too=["1.0", "2", "3", "5"],
        own=["10", "35", "40", "0"],
    )
    result = enriched(FoundTable("t.csv", rows), exclude_self=False)
    assert rules_of(result) == {
        "name": "join column",
        "blank": "empty",
        "same": "constant",
        "rare": "missing",
        "again": "copy",
        "people_too": "copy",
        "own": "copy",
    }
    assert [feature.column for feature in result.columns] == ["people"]
    details = {omission.column: omission.detail for omission in result.left_out}
    assert details["people_too"] == "it says what another column says: t.csv:people."
    assert details["rare"].endswith("covers 20%, less than 50%.")
    assert set(rules_of(result).values()) <= set(SAID)


def test_names_that_are_taken_get_a_number():
    mine = MINE.assign(**{"t.csv:people": ["p", "q", "r", "s", "t"]})
    result = enriched(
        FoundTable("t.csv", table_of(name=NAMES, people=["1", "2", "3", "4"])), table=mine
    )
    assert list(result.table.columns)[-1] == "t.csv:people_2"
    assert result.table["t.csv:people"].tolist() == ["p", "q", "r", "s", "t"]


WIDE = pd.DataFrame(
    {
        "key": [f"city {n}" for n in range(40)],
        "size": range(40),
        "sales": [n * n % 37 + n / 7 for n in range(40)],
    }
)


def wide(**columns):
    return FoundTable(
        "wide.csv",
        table_of(
            name=WIDE["key"].tolist(),
            **{name: [str(cell) for cell in cells] for name, cells in columns.items()},
        ),
    )


def test_a_copy_of_the_key_is_known_whatever_your_columns_are_called():
    rows = table_of(name=[f"({name})" for name in NAMES], copy=NAMES, n=["1", "2", "3", "5"])
    table = MINE.assign(**{"the key": ["x", "y", "x", "y", "x"]})
    result = enriched(FoundTable("t.csv", rows), table=table)
    assert rules_of(result) == {"name": "join column", "copy": "copy"}


@pytest.mark.parametrize("matches", ["t.csv", [3], None])
def test_what_is_no_found_column_is_refused(matches):
    with pytest.raises(InputError, match=r"found by similar values, as Index.search .*Got "):
        pexeso.enrich_from(matches, MINE, "city")


def test_a_match_alone_is_enough():
    match = FoundTable("t.csv", table_of(name=NAMES, n=["1", "2", "3", "5"]))
    assert [feature.column for feature in pexeso.enrich_from(match, MINE, "city").columns] == ["n"]


def test_the_path_of_an_index_is_no_index():
    with pytest.raises(InputError, match=r"open_index\('lake.pexeso'\) gives it. Got 'my.pexeso'"):
        pexeso.enrich("my.pexeso", MINE, on="city")


def test_columns_that_give_a_number_away_are_left_out():
    sales = WIDE["sales"]
    half = [value if n % 2 else 99 - n for n, value in enumerate(sales)]
    third = [value if n % 3 == 0 else 99 - n for n, value in enumerate(sales)]
    match = wide(
        same=sales,
        scaled=3 - 2 * sales,
        cubed=sales**3,
        half=half,
        third=third,
        size=WIDE["size"] % 7,
    )
    result = enriched(match, table=WIDE, on="key", target="sales", exclude_self=False)
    assert [omission.column for omission in result.left_out if omission.rule == "target"] == [
        "same",
        "scaled",
        "cubed",
        "half",
    ]
    assert [feature.column for feature in result.columns] == ["third", "size"]
    without = enriched(match, table=WIDE, on="key", exclude_self=False)
    assert {feature.column for feature in without.columns} >= {"scaled", "cubed", "half"}


def test_columns_that_give_a_class_away_are_left_out():
    classes = ["won" if n % 3 else "lost" for n in range(40)]
    mine = WIDE.assign(outcome=classes).drop(columns="sales")
    finer = [f"{outcome} {n % 2}" for n, outcome in enumerate(classes)]
    mostly = [outcome if n % 5 else "won" for n, outcome in enumerate(classes)]
    match = wide(
        code=[int(outcome == "won") for outcome in classes],
        finer=finer,
        mostly=mostly,
        own=[f"v{n}" for n in range(40)],
    )
    result = enriched(match, table=mine, on="key", target="outcome")
    assert [omission.column for omission in result.left_out if omission.rule == "target"] == [
        "code",
        "finer",
    ]
    assert [feature.column for feature in result.columns] == ["mostly", "own"]


@pytest.mark.parametrize("target", ["sales", "region"])
def test_few_keys_in_many_rows_give_nothing_away(target):
    # Each column hangs on the key alone, and so may the target: by rows each would tell it, by keys
    # there are too few to say so.
    keys = [f"city {n % 8}" for n in range(80)]
    mine = pd.DataFrame(
        {
            "key": keys,
            "sales": [n % 8 + n / 100 for n in range(80)],
            "region": [f"r{n % 8 // 4}" for n in range(80)],
        }
    )
    match = FoundTable(
        "t.csv",
        table_of(name=keys[:8], mayor=list("abcdefgh"), height=[str(n * n) for n in range(8)]),
    )
    result = enriched(match, table=mine, on="key", target=target)
    assert [feature.column for feature in result.columns] == ["mayor", "height"]


def test_a_frequent_class_alone_gives_nothing_away():
    mine = WIDE.assign(outcome=["rare"] + ["usual"] * 39).drop(columns="sales")
    result = enriched(wide(side=["left", "right"] * 20), table=mine, on="key", target="outcome")
    assert [feature.column for feature in result.columns] == ["side"]


def test_the_users_own_table_is_left_out_as_a_whole():
    own = wide(size=WIDE["size"], sales=WIDE["sales"], hint=WIDE["sales"] // 5)
    result = enriched(own, table=WIDE, on="key", target="sales")
    assert result.columns == ()
    assert "the table itself" in result.report
    kept = enriched(own, table=WIDE, on="key", target="sales", exclude_self=False)
    assert [feature.column for feature in kept.columns] == ["hint"]


def test_the_users_own_table_is_known_where_keys_repeat():
    # Joined with itself, such a table gives each key's mean: no row has its own cell, and the
    # target would be told all the same.
    mine = pd.DataFrame(
        {
            "key": [f"city {n % 20}" for n in range(40)],
            "sales": [float(n * 7 % 41) for n in range(40)],
        }
    )
    own = FoundTable(
        "own.csv",
        table_of(
            name=mine["key"].tolist(),
            sales=mine["sales"].astype(str).tolist(),
            hint=list("ab" * 20),
        ),
    )
    assert enriched(own, table=mine, on="key", target="sales").columns == ()
    kept = enriched(own, table=mine, on="key", target="sales", exclude_self=False)
    assert rules_of(kept)["sales"] == "target"


def test_a_table_that_cannot_be_read_is_told_and_the_others_are_joined():
    gone = FoundTable(
        "gone.csv", [], error=TableReadError("'gone.csv' cannot be read: it is not there.")
    )
    result = enriched(gone, FoundTable("t.csv", table_of(name=NAMES, people=["1", "2", "3", "4"])))
    assert [table.reason for table in result.tables] == [
        "'gone.csv' cannot be read: it is not there.",
        None,
    ]
    assert "left out as a whole: 'gone.csv' cannot be read" in result.report
    with pytest.raises(TableReadError, match="it is not there"):
        enriched(gone)


def test_a_table_is_joined_once_by_its_best_column():
    rows = table_of(name=NAMES, twin=NAMES[::-1], people=["1", "2", "3", "4"])
    result = enriched(FoundTable("t.csv", rows), FoundTable("t.csv", rows, "twin"))
    assert [table.key for table in result.tables] == ["name"]


def test_the_report_for_people_and_programs():
    rows = table_of(name=NAMES, people=["1", "2", "3", "4"], same=["x"] * 4)
    result = enriched(FoundTable("t.csv", rows))
    assert result.report.splitlines() == [
        "1 column added from 1 of 1 table found.",
        "t.csv, joined on name: 100.0% of the values match",
        "    + people: numbers, 3 different, in 80.0% of the rows",
        "    - same: it has the same cell in all of your rows that it has one for",
    ]
    assert repr(result) == "Enrichment(5 rows, 1 column added, 1 table found)"
    document = json.loads(json.dumps(result.to_dict()))
    assert document["columns"][0]["name"] == "t.csv:people"
    assert (document["rows"], document["on"], document["target"]) == (5, "city", None)
    assert result.to_pandas()["coverage"].tolist() == [0.8]


@pytest.mark.parametrize(
    "cells", [[1j, 2, 3, 4, 5], ["\ud800", "b", "c", "d", "e"], [b"\xff", b"\xfe", None, b"a", b""]]
)
def test_columns_that_arrow_has_no_type_for_are_texts(cells):
    mine = MINE.assign(odd=pd.Series(cells, index=MINE.index))
    lake = FoundTable("t.csv", table_of(name=NAMES, n=["1", "2", "3", "4"]))
    result = enriched(lake, table=mine, target="beds")
    assert result.table["t.csv:n"].tolist()[:2] == [1, 2]
    assert result.table["odd"].tolist() == cells


@pytest.mark.parametrize("target", [list(MINE).index("beds"), f"#{list(MINE).index('beds')}"])
def test_the_target_may_be_named_by_its_position(target):
    lake = FoundTable("t.csv", table_of(name=NAMES, n=["1", "2", "3", "4"]))
    document = enriched(lake, target=target).to_dict()
    assert document == enriched(lake, target="beds").to_dict()
    assert document["target"] == "beds"


def test_nothing_found_leaves_the_table_as_it_was():
    result = enriched()
    pd.testing.assert_frame_equal(result.table, MINE)
    assert result.report == "No table of the lake was found to join 'city' with; nothing was added."
    assert result.to_pandas().empty


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"table": [1, 2]}, InputError, "The table to enrich must be a DataFrame of .* Got list"),
        ({"table": MINE.iloc[:0]}, InputError, "has no rows"),
        (
            {"table": pd.concat([MINE, MINE], axis=1)},
            InputError,
            "a name of its own. Got several of 'beds', 'city'",
        ),
        ({"on": "town"}, ColumnNotFoundError, "no column 'town'"),
        ({"target": "rooms"}, ColumnNotFoundError, "no column 'rooms'"),
        ({"target": "city"}, InputError, "cannot be the key 'city'"),
        ({"target": list(MINE).index("city")}, InputError, "cannot be the key 'city'"),
        ({"exclude_self": MINE}, InputError, "exclude_self must be True or False. Got "),
        ({"max_distance": 0.3}, InputError, "Rules are min_number_fraction, .*Got max_distance"),
        (
            {"min_coverage": True},
            InputError,
            r"min_coverage must be a number in \[0, 1\]. Got True",
        ),
    ],
)
def test_wrong_arguments_are_told(options, error, said):
    with pytest.raises(error, match=said):
        enriched(**options)


def test_an_index_finds_joins_and_adds(small_index):
    index = pexeso.open_index(small_index)
    mine = pd.DataFrame(
        {
            "capital": ["OSLO", "Rome", "madrid", "Vienna", "Lisbon", "Oslo"],
            "people": [1, 2, 3, 4, 5, 6],
        }
    )
    result = pexeso.enrich(index, mine, on="capital", target="people", max_distance=0.02)
    frame = result.table
    assert frame["cities.csv:country"].tolist() == [
        "Norway",
        "Italy",
        "Spain",
        "Austria",
        "Portugal",
        "Norway",
    ]
    assert frame["cities.csv:people"].tolist()[:2] == [717710.0, 2746984.0]
    assert frame["nested/capitals.tsv:Seat since"].tolist()[:2] == [1814.0, 1871.0]
    assert np.isnan(frame["nested/capitals.tsv:Seat since"].iloc[4])
    assert result.options["max_distance"] == 0.02
    few = pexeso.enrich(
        index, mine, on="capital", max_tables=1, exclude_tables=["cities.csv"], max_distance=0.02
    )
    assert [table.table for table in few.tables] == ["nested/companies.csv"]
    nothing = pexeso.enrich(index, pd.DataFrame({"x": ["qqq", "zzz"]}), on=0, max_distance=0.02)
    assert nothing.report.startswith(
        "No table of the lake was found with a match within distance 0.02 for at least 50% of "
        "the values of 'x'"
    )
    for wrong, said in (
        ({"max_tables": 0}, "max_tables must be a whole number of at least 1 .* Got 0"),
        ({"max_tables": 10**30}, "max_tables must be .* at most 1,000,000,000. Got 1000"),
        ({"exclude_tables": "cities.csv"}, r"a list of .*, such as \['cities.csv'\]. Got 'cities"),
        ({"exclude_tables": 3}, "exclude_tables must be a list of tables of the lake.* Got 3"),
        ({"exact": mine}, "exact must be True or False. Got"),
        ({"ignore_missing": np.ones(2)}, r"ignore_missing must be True or False. Got array"),
        (
            {"exclude_tables": ["nested/companies.csv", "citys.csv"]},
            r"exclude_tables: The lake has no table 'citys\.csv'.* Did you mean 'cities\.csv'\?",
        ),
        ({"exclude_tables": [1]}, "exclude_tables are names of tables of the lake. Got 1"),
        ({"max_distances": 0.1}, "Search options are"),
    ):
        with pytest.raises(InputError, match=said):
            pexeso.enrich(index, mine, on="capital", **wrong)


def test_numbers_are_read_by_the_mark_that_all_of_their_column_shows(tmp_path):
    (tmp_path / "lake").mkdir()
    names = ["Oslo", "Bergen", "Moss", "Hamar", "Skien"]
    sales = ["1.234", "2.000", "2.500", "7,25", "0,5"]
    towns = pd.DataFrame({"town": names, "sales": sales})
    towns.to_csv(tmp_path / "lake" / "t.csv", index=False, sep=";")
    index = pexeso.build_index(tmp_path / "lake", tmp_path / "ix")
    mine = pd.DataFrame({"k": names[:3]})
    enriched = pexeso.enrich(index, mine, on="k")
    assert enriched.table["t.csv:sales"].tolist() == [1234, 2000, 2500]
    mine = pd.DataFrame({"k": names})
    enriched = pexeso.enrich(index, mine, on="k")
    assert enriched.table["t.csv:sales"].tolist() == [1234, 2000, 2500, 7.25, 0.5]


TEXTS = pa.array(["oslo", " rome ", "", None])


def test_columns_are_the_same_with_wide_offsets(monkeypatch):
    rows, key = pa.array([1, 0, 0, None, 3]), pa.array([0, 0, 0, None, 1], pa.int32())
    lists = pa.array([["a", "b"], [], None, ["c"]], pa.list_(pa.string()))

    def columns():
        own = Column("text", trimmed(TEXTS)).take(rows)
        again = Column("text", trimmed(own.cells))
        return own, again, column_by_key(own, key), column_of_lists(lists, 0.5)

    plain = columns()
    monkeypatch.setattr(arrays, "MAX_BYTES", 1)
    wide = columns()
    assert [column.cells.to_pylist() for column in wide] == [
        column.cells.to_pylist() for column in plain
    ]
    assert {column.cells.type for column in plain} == {pa.string()}
    assert {column.cells.type for column in wide} == {pa.large_string()}
