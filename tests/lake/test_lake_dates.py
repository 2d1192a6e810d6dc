import calendar
import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

from pexeso.lake.normalise.dates import MONTHS, canonical_dates
from pexeso.lake.normalise.normaliser import Normaliser

FORMATS = [
    *("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d. %m. %Y", "%d %B %Y", "%d-%b-%Y"),
    *("%B %d, %Y", "%b. %d %Y", "%A, %B %d, %Y", "%a %d %b %Y", "%dth of %B, %Y"),
]
NORMALISER = Normaliser()


def read(*values):
    return canonical_dates(pa.array(values, pa.string())).to_pylist()


@settings(max_examples=examples(60))
@given(
    day=st.dates(datetime.date(1000, 1, 1), datetime.date(2999, 12, 31)),
    style=st.sampled_from(FORMATS),
)
def test_every_date_in_every_format_has_one_form(day, style):
    # Formatted by hand where the C library would not pad years before 1000 or would follow the
    # locale.
    names = {
        "%A": calendar.day_name[day.weekday()],
        "%a": calendar.day_abbr[day.weekday()],
        "%B": calendar.month_name[day.month],
        "%b": calendar.month_abbr[day.month],
        "%Y": f"{day.year:04}",
        "%m": f"{day.month:02}",
        "%d": f"{day.day:02}",
    }
    text = style
    for code, written in names.items():
        text = text.replace(code, written)
    assert read(text.lower()) == [f"{day.day} {MONTHS[day.month - 1]} {day.year}"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2020-3-5", "5 march 2020"),
        ("mar 5th 1953", "5 march 1953"),
        ("05-mar-53", "5 march 1953"),
        ("5 sept 29", "5 september 2029"),
        ("3/5/30", "5 march 1930"),
        ("05.03.53", "5 march 1953"),
        ("19530305", "5 march 1953"),
        ("19530305t14:30", "5 march 1953 14 30"),
        ("2020-03-05t00:00:00.000z", "5 march 2020"),
        ("2020-03-05 14:30", "5 march 2020 14 30"),
        ("2020-03-05t14:30:05.250+01:00", "5 march 2020 13 30 05 25"),
        ("march 5, 2020 2:30 pm", "5 march 2020 14 30"),
        ("5 march 2020, 12:05 a.m.", "5 march 2020 00 05"),
        ("29 february 2020", "29 february 2020"),
        ("1492-10-12", "12 october 1492"),
    ],
)
def test_dates(value, expected):
    assert read(value) == [expected]


@pytest.mark.parametrize(
    "value",
    [
        *(
            *("2019-02-29", "31.04.2020", "13/13/2020", "0/1/2020", "2020-00-01", "10-5-12"),
            *("1.2.13", "3-1-0", "20201305", "20200332", "18991231"),
        ),
        *(
            "march 1953",
            "5 march",
            "may 2020",
            "1953",
            "12:30",
            "192.168.1.1",
            "",
            "mar",
            "5 marching 1953",
            "9" * 100,
        ),
    ],
)
def test_what_is_no_date(value):
    assert read(value) == [None]


def test_the_order_of_day_and_month_is_decided_over_the_column():
    assert read("3/5/1953", "13/5/1953") == ["3 may 1953", "13 may 1953"]
    assert read("3/5/1953", "5/13/1953") == ["5 march 1953", "13 may 1953"]
    assert read("3/5/1953") == ["5 march 1953"]
    # Both orders occur: the month comes first, and what cannot be read so is read the other way.
    assert read("3/5/1953", "13/5/1953", "5/13/1953") == [
        "5 march 1953",
        "13 may 1953",
        "13 may 1953",
    ]
    assert read("3-5-1953", "13/5/1953") == ["3 may 1953", "13 may 1953"]


def test_columns_do_not_decide_for_each_other():
    values = pa.array(["3/5/1953", "13/5/1953", "3/5/1953", None, "x"])
    dates = canonical_dates(values, np.array([0, 0, 1, 1, 7]))
    assert dates.to_pylist() == ["3 may 1953", "13 may 1953", "5 march 1953", None, None]


def test_no_values_give_no_dates():
    assert read() == []
    assert len(canonical_dates(pa.array([None, None], pa.string()))) == 2


@pytest.mark.parametrize(
    ("column", "forms"),
    [
        (["2024-01", "2024-02", "2023-12"], ["january 2024", "february 2024", "december 2023"]),
        (["2009-10", "2010-11", "2011-12"], ["2009 2010", "2010 2011", "2011 2012"]),
        (["2009-10", "2009-01", "2010-02"], ["october 2009", "january 2009", "february 2010"]),
        (["2009-10", "2012-13"], ["2009 2010", "2012 2013"]),
        (["1999-00", "2004-03"], ["1999 2000", "2004 03"]),
        (["Jan-24", "Feb-24", "Mar-24"], ["january 2024", "february 2024", "march 2024"]),
        (["Jan-24", "Feb-13", "Mar-05"], ["24 january", "13 february", "5 march"]),
        (["Jan-96", "Jan '97"], ["january 1996", "january 1997"]),
        (["2024M01", "01/2024", "1.2024"], ["january 2024"] * 3),
        (["jan2024", "2024年1月", "2024년 1월"], ["january 2024"] * 3),
        (
            ["mayo de 2024", "mars de 2024", "casa de 2024"],
            ["may 2024", "march 2024", "casa de 2024"],
        ),
        (["mars 2020", "juno 2011", "mai 2003"], ["mars 2020", "juno 2011", "mai 2003"]),
        (["mars 2020", "mai 2020", "août 2020"], ["march 2020", "may 2020", "august 2020"]),
        (["mars 2020", "april 2020", "mars 2021"], ["mars 2020", "april 2020", "mars 2021"]),
    ],
)
def test_a_column_decides_what_is_a_month_of_a_year(column, forms):
    assert NORMALISER.normalise(pa.array(column)).to_pylist() == forms
