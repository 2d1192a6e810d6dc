"""Readings of cells that are compared for equality: what each makes equal, and keeps apart."""

import datetime
import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.normalise.rules import READINGS, RULES
from pexeso.lake.readings import LOSSY, forms_of, read_cells, read_columns
from pexeso.lake.tokens import DEFAULT_READINGS, key_texts, tokens_of

OF_RULE = {rule.name: rule for rule in RULES if rule.is_reading}
# What a reading needs of others: telephone numbers have one form first.
WITH = {"calling-codes": ("identifiers", "calling-codes")}


def read(cells, readings, columns=None, **options):
    texts = read_cells(pa.array(cells, pa.large_string()), readings)
    return read_columns(texts, readings, columns, **options).to_pylist()


@pytest.mark.parametrize(
    ("rule", "cell", "form"),
    [(rule.name, *example) for rule in OF_RULE.values() for example in rule.examples],
)
def test_each_reading_does_what_its_examples_show_and_nothing_without_it(rule, cell, form):
    assert read([cell], WITH.get(rule, (rule,))) == [form]
    assert read([cell], ()) == [cell]


SAME = {
    "invisible-letters": [
        ("a\ufeff1", "a1"),
        ("\u200eB2", "B2"),
        ("12\u202f5", "12 5"),
        ("a\u20111", "a-1"),
        ("10\u201320", "10-20"),
        ("\uff11\uff0d\u0662", "1-2"),
    ],
    "spreadsheet-marks": [("'00123", "00123"), ("\u20192024-01-05", "2024-01-05"), ("'-5", "-5")],
    "whole-numbers": [("2020.0", "2020"), ("-3.00", "-3")],
    "thousands": [
        ("1,234,567", "1234567"),
        ("1,23,456", "123456"),
        ("\u20b912,34,567.50", "\u20b91234567.50"),
        ("1 234 567", "1234567"),
        ("1\u202f234", "1234"),
        ("1'234.5", "1234.5"),
        ("-1,234.50", "-1234.50"),
        ("1 234,5", "1234.5"),
        ("5 %", "5%"),
        ("$1,234", "$ 1234"),
        ("1.234,50 €", "€1234.50"),
        ("12,34,567", "1234567"),
        ("3,5", "3.5"),
        ("(1,234)", "-1234"),
        ("$-5", "-$5"),
        (",5", "0.5"),
        ("5.", "5"),
    ],
    "identifiers": [
        ("urn:uuid:550e8400-e29b-41d4-a716-446655440000", "550E8400E29B41D4A716446655440000"),
        ("ISBN 978 0 306 40615 7", "9780306406157"),
        ("0-306-40615-2", "ISBN 0306406152"),
        ("0044 20 7946 0018", "+44 20 7946 0018"),
        ("(212) 555-0100", "212.555.0100"),
        ("1-212-555-0100", "(+1) 212 555 0100"),
        ("0-8044-2957-x", "ISBN 0-8044-2957-X"),
        ("0161 496-0123", "01614 960123"),
    ],
    "truth-words": [("True", "true"), ("FALSE", "False")],
    "iso-dates": [
        ("20240105", "2024-01-05"),
        ("Friday, 5 January 2024", "5.1.2024"),
        ("2024/01/05", "Jan 5, 2024"),
        ("5 de enero de 2024", "5. Januar 2024"),
        ("2024-01-05T00:00:00Z", "2024-01-05 00:00:00+01:00"),
        ("2024-01-05 2:30 PM", "2024-01-05T14:30"),
        ("2024-01-05T23:30:00-01:00", "2024-01-06 00:30:00"),
        ("2024-01-05 10:00:00.50", "2024-01-05T10:00:00.500000"),
        ("2024年1月5日", "2024-01-05"),
        ("2024M1", "2024-01"),
        ("01/2024", "Jan 2024"),
        ("mars 2020", "March 2020"),
        ("2024/1", "2024-01"),
        ("2024年1月", "2024-01"),
        ("2024년 1월", "2024-01"),
        ("2024-01-05 00:00:00+02", "2024-01-05"),
        ("2024-01-05 10:00:00+02", "2024-01-05 08:00:00"),
        ("Fri, 05 Jan 2024 00:00:00 GMT", "2024-01-05"),
        ("Jan 5, 2024 12:00:00 AM", "2024-01-05"),
        ("JAN2024", "2024-01"),
        ("2024. 1. 5.", "2024-01-05"),
        ("5. J\u00e4nner 2024", "2024-01-05"),
        ("2024-01-05T24:00:00", "2024-01-06"),
        ("20240105T143000Z", "2024-01-05 14:30:00"),
        ("20240105143000", "2024-01-05 14:30:00"),
        ("2024-01-05 14:30:00,250", "2024-01-05 14:30:00.25"),
        ("Fri Jan  5 14:30:00 UTC 2024", "2024-01-05 14:30:00"),
        ("05JAN2024:14:30:00", "05/Jan/2024:15:30:00 +0100"),
        ("January 5, 2024 at 2:30 PM", "2024-01-05 14:30"),
        ("2024-01-05 14:30 GMT+2", "2024-01-05 13:30 UTC+01:00"),
        ("2:30 p. m.", "14:30"),
        ("9:05", "09:05:00.0"),
        ("12:15am", "00:15:00"),
        ("2 PM", "14:00"),
        ("Q1/2024", "2024 Q1"),
        ("1Q24", "2024-q1"),
        ("2024-W01", "Week 1, 2024"),
        ("F.Y. 24", "FY2024"),
        ("FY2023/24", "fy 2023-2024"),
        ("2023/24", "2023-2024"),
        ("1999-00", "1999/2000"),
    ],
    "letter-case": [("AB12", "ab12")],
    "separators": [
        ("123-45-6789", "123456789"),
        ("DE89 3704 0044", "DE8937040044"),
        ("AB/12_3", "AB.12-3"),
    ],
    "leading-zeros": [("007", "7"), ("000", "0")],
    "decimal-zeros": [("1.50", "1.5"), ("-0.10", "-0.1")],
    "truth-numbers": [("yes", "1"), ("N", "false")],
    "calling-codes": [
        ("+44 (0)29 2018 0456", "029 2018 0456"),
        ("+1 212 555 0100", "(212) 555-0100"),
        ("+353 1 234 5678", "01 234 5678"),
    ],
}

APART = [
    ("007", "7"),
    ("1", "true"),
    ("1.1", "1.10"),
    ("AB", "ab"),
    ("+44 20 7946 0018", "+49 20 7946 0018"),
    ("+44 20 7946 0018", "020 7946 0018"),
    ("1,23", "123"),
    ("1.234", "1234"),
    ("0,123", "0123"),
    ("1,23,4567", "1234567"),
    ("1,2,345", "12345"),
    ("(100)", "100"),
    ("$5", "€5"),
    ("5%", "5\u2030"),
    ("'90s", "90s"),
    ("978-0-306-40615-8", "9780306406158"),
    ("3/5/2020", "5/3/2020"),
    ("3/5/2020", "2020-05-03"),
    ("2024-01-05T12:00:00Z", "2024-01-05T12:00:00+01:00"),
    ("2024-02-30", "20240230"),
    ("12.1999", "1999-12"),
    ("1-2", "2-1"),
    ("Jan-24", "2024-01"),
    ("2020.5", "2020"),
    ("123-45-6789", "123456789"),
    ("a b", "ab"),
    ("3:1", "3:10"),
    ("14:30", "14.30"),
    ("2009-10", "2009-2010"),
    ("FY2024", "2024"),
    ("2024-Q1", "2024-01"),
    ("2024-01-05 12:00 EST", "2024-01-05 12:00"),
]


def test_every_reading_has_cells_that_it_makes_equal():
    assert set(SAME) == set(READINGS)
    assert set(LOSSY) == set(READINGS) - set(DEFAULT_READINGS)


@pytest.mark.parametrize(
    ("rule", "one", "other"), [(rule, *pair) for rule, pairs in SAME.items() for pair in pairs]
)
def test_cells_are_equal_by_a_reading_and_not_without_it(rule, one, other):
    readings = sorted({*DEFAULT_READINGS, *WITH.get(rule, (rule,))})
    forms = [read([cell], readings) for cell in (one, other)]
    assert forms[0] == forms[1]
    rest = [name for name in readings if name != rule]
    assert read([one], rest) != read([other], rest)


@pytest.mark.parametrize(("one", "other"), APART)
def test_cells_that_are_kept_apart_by_default(one, other):
    for form in (tokens_of, lambda cells: key_texts(cells, DEFAULT_READINGS)):
        forms = [form(pa.array([cell])).to_pylist() for cell in (one, other)]
        assert forms[0] != forms[1] or one.lower() == other.lower()


@pytest.mark.parametrize(
    ("rule", "cells"),
    [
        ("leading-zeros", ["007", "7", "08"]),
        ("decimal-zeros", ["1.1", "1.10", "2.20"]),
        ("letter-case", ["a", "A", "B"]),
        ("separators", ["1-12", "11-2", "5-5"]),
        ("separators", ["1.5", "2.5", "New York"]),
        ("truth-numbers", ["1", "yes", "no"]),
        ("truth-numbers", ["1", "0", "2"]),
        ("calling-codes", ["+442079460018", "02079460018"]),
        ("calling-codes", ["0123456789", "not a number", "none either"]),
    ],
)
def test_a_column_that_keeps_two_values_apart_is_not_read(rule, cells):
    assert read(cells, (rule,)) == cells
    # Other columns beside it are.
    beside = [pair[0] for pair in SAME[rule]] if rule == "leading-zeros" else []
    columns = np.repeat([0, 1], [len(cells), len(beside)])
    assert read([*cells, *beside], (rule,), columns)[: len(cells)] == cells
    assert read([*cells, *beside], (rule,), columns)[len(cells) :] == read(beside, (rule,))


def test_a_column_decides_which_number_is_the_month():
    days, months = ["3/5/2020", "13/5/2020"], ["3/5/2020", "3/13/2020 10:00"]
    assert read(days, ("iso-dates",)) == ["2020-05-03", "2020-05-13"]
    assert read(months, ("iso-dates",)) == ["2020-03-05", "2020-03-13 10:00:00"]
    columns = np.array([0, 0, 1, 1])
    assert read([*days, *months], ("iso-dates",), columns) == [
        *read(days, ("iso-dates",)),
        *read(months, ("iso-dates",)),
    ]
    assert read(days[:1], ("iso-dates",)) == ["03/05/2020"], "not decided"
    both = ["2020-05-13", "03/05/2020", "2020-03-13 10:00:00"]
    assert read([days[1], days[0], months[1]], ("iso-dates",)) == both
    assert read(both, ("iso-dates",), day_first=False, as_open=True) == both
    assert read(days[:1], ("iso-dates",), day_first=True) == ["2020-05-03"]
    assert read(days[:1], ("iso-dates",), day_first=False) == ["2020-03-05"]
    assert read(months, ("iso-dates",), day_first=True) == read(months, ("iso-dates",))


@pytest.mark.parametrize(
    ("cells", "tokens"),
    [
        (["84.523", "3.769.495", "12"], ["84523", "3769495", "12"]),
        (["1.000", "2,50", "1.234,00", "1,234"], ["1000", "2.50", "1234", "1.234"]),
        (["84.523", "3.769.495", "1.5"], ["84.523", "3769495", "1.5"]),
        (["84.523", "12.345"], ["84.523", "12.345"]),
        (["1,234", "5"], ["1234", "5"]),
        (
            ["17,189", "6,902", "3,943", "13,5000", "6,013", "09,380"],
            ["17189", "6902", "3943", "13.5000", "6013", "09380"],
        ),
    ],
)
def test_a_column_decides_which_mark_is_the_decimal_one(cells, tokens):
    columns = np.repeat([0, 1], [len(cells), 2])
    beside = pa.array([*cells, "1.234", "1,234"])
    for form in (tokens_of, lambda cells: key_texts(cells, DEFAULT_READINGS)):
        assert form(pa.array(cells)).to_pylist() == tokens
    assert tokens_of(beside, columns).to_pylist() == [*tokens, "1.234", "1234"]


def test_cells_have_the_forms_of_columns_that_may_be_read_in_another_way():
    def forms(*cells):
        read = forms_of(lambda **options: [tokens_of(pa.array(cells), **options)])
        return [(first, some.to_pylist()) for first, [some] in read]

    assert forms("a", "2020", "13.5") == [(None, ["a", "2020", "13.5"])]
    assert forms("1.234", "x") == [(None, ["1.234", "x"]), (None, ["1234", "x"])]
    assert forms("05/05/2020") == [(None, ["05/05/2020"]), (None, ["2020-05-05"])]
    assert forms("03/05/2020") == [
        (None, ["03/05/2020"]),
        (False, ["2020-03-05"]),
        (True, ["2020-05-03"]),
    ]
    assert forms("5 Mar 2020") == [
        (None, ["2020-03-05"]),
        (False, ["03/05/2020"]),
        (True, ["05/03/2020"]),
    ]


def test_a_column_decides_whether_a_number_behind_a_month_is_a_year():
    months = ["Jan-24", "Feb-24", "Mar-24", "Jan-25", "Feb-25", "Mar-25"]
    expected = ["2024-01", "2024-02", "2024-03", "2025-01", "2025-02", "2025-03"]
    assert read(months, ("iso-dates",)) == expected
    days = ["Jan-01", "Jan-02", "Feb-17"]
    assert read(days, ("iso-dates",)) == days


def test_a_column_decides_whether_a_year_and_a_number_are_a_month_or_a_span():
    spans, months = ["2009-10", "2012/13", "1999-00"], ["2009-10", "2012-12"]
    assert read(spans, ("iso-dates",)) == ["2009-2010", "2012-2013", "1999-2000"]
    assert read(months, ("iso-dates",)) == months
    both = read([*spans, *months], ("iso-dates",), np.array([0, 0, 0, 1, 1]))
    assert both == [*read(spans, ("iso-dates",)), *months]


def test_isbns_of_ten_digits_are_longer_in_columns_of_isbns():
    short, long = ["0306406152", "316148410X", "1861978766"], "9780306406157"
    assert read([short[0], long], ("identifiers",)) == [long, long]
    others = ["0306406152", "0306406153"]
    assert read(others, ("identifiers",)) == others


NOTATIONS = [
    "%Y%m%d", "%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d %B %Y", "%B %d, %Y", "%d-%b-%Y", "%d-%b-%y",
    "%b %d %Y", "%A, %d %B %Y", "%Y-%m-%dT00:00:00", "%Y-%m-%d 00:00", "%Y.%m.%d",
]  # fmt: skip


def test_dates_in_many_notations_are_those_of_the_calendar():
    drawn = random.Random(6)
    days = [
        datetime.date(1980, 1, 1) + datetime.timedelta(drawn.randrange(18000)) for _ in "x" * 40
    ]
    for notation in NOTATIONS:
        cells = [day.strftime(notation) for day in days]
        expected = [day.isoformat() for day in days]
        assert tokens_of(pa.array(cells)).to_pylist() == expected, notation
        folded = key_texts(pa.array(cells), DEFAULT_READINGS).to_pylist()
        assert folded == expected, notation
        assert tokens_of(pa.array(days)).to_pylist() == expected


def test_points_of_time_are_those_of_a_calendar_in_any_zone():
    drawn = random.Random(7)
    for _ in range(60):
        zone = datetime.timezone(datetime.timedelta(minutes=drawn.randrange(-48, 48) * 15))
        moment = datetime.datetime(2024, 1, 1, 0, 1, tzinfo=zone) + datetime.timedelta(
            seconds=drawn.randrange(10**7)
        )
        if moment.time() == datetime.time():
            continue
        utc = moment.astimezone(datetime.UTC).replace(tzinfo=None)
        cells = [moment.isoformat(), moment.isoformat(" "), utc.isoformat() + "Z"]
        assert set(tokens_of(pa.array(cells)).to_pylist()) == {
            *tokens_of(pa.array([utc])).to_pylist()
        }


@pytest.mark.parametrize("hours", [-11, -3.5, 1, 5.75, 14])
def test_midnight_is_a_day_unless_its_column_has_points_of_time(hours):
    zone = datetime.timezone(datetime.timedelta(hours=hours))
    first = datetime.datetime(2024, 2, 28, tzinfo=zone)
    days = [(first + datetime.timedelta(days)).isoformat() for days in range(3)]
    expected = ["2024-02-28", "2024-02-29", "2024-03-01"]
    assert tokens_of(pa.array(days)).to_pylist() == expected
    assert key_texts(pa.array(days)).to_pylist() == expected
    moments = [first + datetime.timedelta(minutes=15 * count) for count in range(200)]
    here = pa.array([moment.isoformat() for moment in moments])
    in_utc = pa.array([moment.astimezone(datetime.UTC).isoformat() for moment in moments])
    assert tokens_of(here).equals(tokens_of(in_utc))
    assert key_texts(here).equals(key_texts(in_utc))
    normalise = Normaliser().normalise_distinct
    one_column = np.zeros(200, np.int64)
    assert normalise(here, one_column).equals(normalise(in_utc, one_column))
    # Columns decide for themselves.
    both = pa.concat_arrays([here, pa.array(days)])
    columns = np.repeat([4, 2], [200, 3])
    assert tokens_of(both, columns).to_pylist() == tokens_of(here).to_pylist() + expected


cells_of_any_kind = st.lists(
    st.one_of(
        st.none(),
        st.text(max_size=8),
        st.sampled_from([cell for pairs in SAME.values() for pair in pairs for cell in pair]),
        st.from_regex(r"['+(-]?[0-9]{1,3}([-/., :'][0-9]{1,4}){0,3}", fullmatch=True),
        st.from_regex(r"[A-Z][a-z]{2}[-/ ,.'][0-9]{1,4}", fullmatch=True),
    ),
    max_size=12,
)


@given(cells_of_any_kind)
def test_what_was_read_stays_and_nulls_do(cells):
    texts = pa.array(cells, pa.large_string())
    once = read_cells(texts, DEFAULT_READINGS)
    assert once.is_null().equals(texts.is_null())
    assert read_cells(once, DEFAULT_READINGS).equals(once)
    assert read_columns(once, READINGS).is_null().equals(texts.is_null())


@given(cells_of_any_kind, cells_of_any_kind)
def test_a_column_is_read_as_if_it_were_alone(cells, others):
    columns = np.repeat([0, 1], [len(cells), len(others)])
    together = read([*cells, *others], READINGS, columns)
    assert together == [*read(cells, READINGS), *read(others, READINGS)]


def test_a_number_among_others_is_no_date():
    assert read(["20120505", "7", "123456789"], DEFAULT_READINGS) == ["20120505", "7", "123456789"]
    dates = ["20120505", "20130101", "n"]
    assert read(dates, DEFAULT_READINGS) == ["2012-05-05", "2013-01-01", "n"]
