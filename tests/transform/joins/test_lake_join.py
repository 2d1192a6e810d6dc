"""Joins by programs with the options of all joins, against nested loops over all rows."""

from __future__ import annotations

import datetime
from itertools import product

import pyarrow as pa
import pytest

import pexeso
from pexeso.errors import ColumnNotFoundError, InputError
from pexeso.joins.options import JoinOptions
from pexeso.transform.joins.lake_join import join_sides, keys_joined
from tests.transform.joins.small_tables import (
    APPROVAL,
    CASES,
    EMAILS,
    MAILS,
    NAMES,
    PRESIDENTS,
    TEACHERS,
    rows_of,
)

learn = pexeso.learn_transformation

RANKS = ("equal", "program", "fuzzy")


def repeated(table, times):
    """Repeat a table as a whole, so that rows of one key are apart."""
    return {name: cells * times for name, cells in table.items()}


def value_of(row, columns):
    cells = [row[name] for name in columns]
    return cells[0] if len(cells) == 1 else cells


def partners(row, others, pairs, columns, key):
    """Return kind and row of each partner: equal ones first, then in the order of the file."""
    ranked = [
        (RANKS.index(kind), number, kind, other)
        for number, other in enumerate(others)
        for left, right, kind in pairs
        if left == value_of(row, columns) and right == value_of(other, key)
    ]
    return [(kind, other) for _, _, kind, other in sorted(ranked, key=lambda partner: partner[:2])]


def shown(row, columns):
    return ",".join(row[name] for name in columns)


def joined_rows(source, target, pairs, columns, key, how, nearly):
    joined = []
    for row in source:
        matches = partners(row, target, pairs, columns, key)
        if not matches and how == "left":
            joined.append([*row.values(), None, None, *[None] * len(target[0])])
        for kind, other in matches:
            distance = nearly if kind == "fuzzy" else 0.0
            joined.append([*row.values(), shown(other, key), distance, *other.values()])
    return joined


def as_lists(table):
    return [
        list(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)
    ]


@pytest.mark.parametrize("how", ["left", "inner"])
@pytest.mark.parametrize("times", [(1, 1), (3, 1), (1, 3)])
@pytest.mark.parametrize("case", CASES)
def test_rows_are_those_of_nested_loops(case, times, how):
    source, target, columns, key = CASES[case]
    source, target = repeated(source, times[0]), repeated(target, times[1])
    joined = learn(source, target, columns=columns, target_columns=key)
    assert joined.programs
    table = joined.join(how=how)
    pairs = joined.to_dict()["pairs"]
    # Of what is nearly equal there is one pair at most in each case.
    nearly = joined.rule.distances.max()
    assert [kind for *_, kind in pairs].count("fuzzy") == (nearly > 0) == (case == "fuzzy")
    expected = joined_rows(rows_of(source), rows_of(target), pairs, columns, key, how, nearly)
    assert as_lists(table) == expected
    assert len(expected) >= 4
    n_columns = len(source)
    assert table.column_names[:n_columns] == list(source)
    assert table.column_names[n_columns : n_columns + 2] == ["match_value", "match_distance"]


@pytest.mark.parametrize("times", list(product([1, 2], [1, 3])))
@pytest.mark.parametrize("case", CASES)
def test_aggregated_rows_stay_one(case, times):
    source, target, columns, key = CASES[case]
    target = {**target, "n": [str(number * number) for number in range(len(target[key[0]]))]}
    source, target = repeated(source, times[0]), repeated(target, times[1])
    joined = learn(source, target, columns=columns, target_columns=key)
    table = joined.join(aggregate={"n": "list", "*": "count"}, provenance=[])
    pairs = joined.to_dict()["pairs"]
    lake = rows_of(target)
    for row, made in zip(rows_of(source), table.to_pylist(), strict=True):
        others = [other for _, other in partners(row, lake, pairs, columns, key)]
        assert made["n"] == ([other["n"] for other in others] or None)
        assert list(made.values())[len(row) :][0] == (len(others) or None)


def test_keys_that_repeat_in_both_tables_are_refused_unless_rows_stay_one():
    joined = learn(repeated(NAMES, 2), repeated(MAILS, 3), target_columns="mail")
    assert joined.cardinality == "N:M"
    with pytest.raises(InputError) as refused:
        joined.join()
    assert str(refused.value) == (
        "Keys have several rows in both tables (N:M), such as 'l.sommer@firm.de' with 2 and 3, so "
        "that rows would multiply. Keep each row of your table one by aggregate (--aggregate), "
        "name other columns, or allow it by many_to_many (--many-to-many)."
    )
    assert len(joined.join(aggregate="first")) == 24


def test_names_provenance_and_suffix():
    joined = learn(PRESIDENTS, APPROVAL)
    table = joined.join(provenance=["table", "column", "value", "distance"], suffix="_lake")
    assert table.column_names == [
        *PRESIDENTS,
        *(f"match_{name}" for name in ("table", "column", "value", "distance")),
        "President_lake",
        "Approval",
    ]
    assert table["match_table"].to_pylist() == ["target"] * 5
    assert table["match_column"].to_pylist() == ["President"] * 5
    assert joined.join().column_names[-2:] == ["target:President", "Approval"]


def test_the_report_says_where_the_join_had_to_choose():
    twice = {**EMAILS, "School": [f"{school}!" for school in EMAILS["School"]]}
    twice = {name: [*EMAILS[name], *twice[name]] for name in EMAILS}
    joined = learn(TEACHERS, twice, target_columns="Email")
    report = join_sides(joined, "emails.csv", JoinOptions(aggregate="first")).report
    assert (report.rows, report.matched_rows, report.joined_rows) == (5, 5, 5)
    assert report.counts == {"repeated": 5, "differing": 5}
    assert report.note == "1 row is joined as nearly equal, with a distance over 0."
    said = "\n".join(report.lines())
    assert "5 keys of your table are joined with several rows each, such as 'Suhela Cho" in said
    assert "'Big Creek', 'Big Creek!'" in said

    shared = learn(
        {"name": ["Ann Lee", "Al Lee", *NAMES["name"]]}, {"mail": ["a.lee@firm.de", *MAILS["mail"]]}
    )
    report = join_sides(shared, "mails.csv", JoinOptions()).report
    assert report.counts == {"shared": 1}
    assert "'a.lee@firm.de': 'Ann Lee', 'Al Lee'" in report.lines()[0]


def test_distinct_keys_are_counted():
    source = {"name": [*NAMES["name"], *NAMES["name"], "Nobody", None, ""]}
    joined = learn(source, MAILS, fuzzy=False)
    match = keys_joined(joined, "mails.csv")
    assert (match.table, match.columns, match.matched, match.total) == (
        "mails.csv",
        ("mail",),
        12,
        13,
    )
    back = learn(PRESIDENTS, {name: cells[:4] for name, cells in APPROVAL.items()}, fuzzy=False)
    match = keys_joined(back, "approval.csv")
    assert not back.forward
    assert (match.matched, match.total) == (4, 5)


def test_rows_equal_in_a_column_that_no_program_reads_keep_their_partners():
    """Two rows whose program's cells are equal, one of which is joined by another column."""
    source = {"name": [*NAMES["name"], "Anna Meier"], "mail": [*["?"] * 12, "desk@firm.de"]}
    joined = learn(source, {"key": [*MAILS["mail"], "desk@firm.de"]})
    names = joined.join()["match_value"].to_pylist()
    assert names[0] == "a.meier@firm.de"
    table = joined.table()["key"].to_pylist()
    assert names == table


def test_wrong_options_are_refused():
    joined = learn(NAMES, MAILS)
    with pytest.raises(InputError, match="Join options are values, how, aggregate"):
        joined.join(type="inner")
    with pytest.raises(ColumnNotFoundError, match="There is no column 'rooom'"):
        joined.join(aggregate={"rooom": "list"})
    for join in (joined.join, joined.table):
        with pytest.raises(InputError, match=r"how must be one of left, inner\. Got 'outer'"):
            join(how="outer")


def test_both_tables_keep_their_types():
    n = len(NAMES["name"])
    kinds = {
        "n": pa.array(range(n)),
        "share": pa.array([0.5, None, *[1.0] * (n - 2)]),
        "day": pa.array([datetime.date(2020, 1, 2)] * n),
        "is": pa.array([True, None, *[False] * (n - 2)]),
    }
    # The mail addresses stand in the opposite order of the names.
    named = {f"their_{name}": cells[::-1] for name, cells in kinds.items()}
    joined = learn(pa.table({**NAMES, **kinds}), pa.table({**MAILS, **named}))
    table = joined.join()
    for name, cells in kinds.items():
        assert table[name].combine_chunks().equals(cells)
        assert table[f"their_{name}"].combine_chunks().equals(cells)
    sums = joined.join(aggregate={"their_n": "sum", "*": "first"})
    assert (sums.field("their_n").type, sums.field("their_day").type) == (pa.float64(), pa.date32())


def test_nothing_to_join_leaves_rows_as_they_are():
    joined = learn({"k": ["alpha", "beta"]}, {"k": ["x", "y"]})
    assert joined.join().to_pydict() == {
        "k": ["alpha", "beta"],
        "match_value": [None, None],
        "match_distance": [None, None],
        "target:k": [None, None],
    }
    assert len(joined.join(how="inner")) == 0


def test_bytes_that_are_no_text_are_joined_as_they_are():
    target = pa.table({**EMAILS, "photo": [b"\xff"] * len(EMAILS["Email"])})
    joined = learn(TEACHERS, target, columns=["Name"], target_columns=["Email"])
    assert joined.join(how="inner")["photo"].unique().to_pylist() == [b"\xff"]
    assert joined.join(how="inner", aggregate="count")["photo"].unique().to_pylist() == [0]
