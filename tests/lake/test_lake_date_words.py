import json

import month_names
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

from pexeso.lake.normalise.dates import (
    FILLERS,
    MAX_WORDS,
    month_data,
    month_words,
    read_named_dates,
)
from pexeso.lake.normalise.normaliser import Normaliser


def read(*values):
    return read_named_dates(
        pa.array([value.split() for value in values], pa.list_(pa.string()))
    ).to_pylist()


NORMALISER = Normaliser()


def normal(*values):
    return NORMALISER.normalise(pa.array(values)).to_pylist()


def test_the_names_of_months_are_those_of_the_locale_data():
    assert month_names.PAGE.read_text(encoding="utf-8") == month_names.text(), (
        "run: python tests/lake/month_names.py"
    )
    assert json.loads(month_names.text()) == month_data()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("5 mars 2020", "5 march 2020"),
        ("5. März 2020", "5 march 2020"),
        ("5 de marzo de 2020", "5 march 2020"),
        ("Le 1er août 2020", "1 august 2020"),
        ("5 марта 2020 \u0433.", "5 march 2020"),
        ("5 Μαρτίου 2020", "5 march 2020"),
        ("5 października 2020", "5 october 2020"),
        ("5 Ağustos 2020", "5 august 2020"),
        ("2020. március 5.", "5 march 2020"),
        ("2020年3月5日", "5 march 2020"),
        ("2020년 3월 5일", "5 march 2020"),
        ("Donnerstag, 5. März 2020", "5 march 2020"),
        ("(March 5, 2020)", "5 march 2020"),
        ("Mar 5th '20", "5 march 2020"),
        ("5 Mar '20", "5 march 2020"),
        ("5th of March", "5 march"),
        ("March, 2020", "march 2020"),
        ("2020 March", "march 2020"),
        ("février 2020", "february 2020"),
        ("First of March 2020", "1 march 2020"),
        ("May 2020", "may 2020"),
    ],
)
def test_dates_in_many_languages(value, expected):
    assert normal(value, value.upper()) == [expected, expected]


@pytest.mark.parametrize(
    "value",
    [
        *(
            *("may", "may smith", "theresa may", "march for science 2020", "mars 2020"),
            *("pro 5 2020", "set 2 2019", "2019 set 2"),
        ),
        *(
            *("april o neil", "5 may 6 june", "may 2020 2021", "5 5 may", "march 1 2 2020"),
            *("may 32", "29 february 2019", "may 68"),
        ),
        *(
            *("1 2 3", "2020", "10 11 12", "978 3 16 148410 0", "saturday 5", "5 mars 53"),
            *("march 5 53", "0 may 2020", "may 0999"),
        ),
        " ".join(["5", "may", "2020", *["of"] * MAX_WORDS]),
    ],
)
def test_what_is_no_date_keeps_its_words(value):
    assert sorted(normal(value)[0].split()) == sorted(value.split())


@pytest.mark.parametrize(
    "value",
    [
        *("10-11-12", "3-1-0", "12.5", "1.2.13", "978-3-16-148410-0", "20201305", "1-800-555"),
        *("12:30", "192.168.1.1"),
    ],
)
def test_numbers_and_codes_are_no_dates(value):
    assert not set("".join(normal(value))) & set("abcdefghijklmnopqrstuvwxyz")


MONTHS = month_words()[0].to_pylist()
PARTS = st.sampled_from(
    [*MONTHS[::7], *FILLERS[:6], "5", "05", "5th", "31", "53", "1999", "2020", "monday", "32"]
)


@settings(max_examples=examples(60))
@given(
    st.lists(PARTS, min_size=1, max_size=5),
    st.text("bdfgkqxz", min_size=4, max_size=8),
    st.integers(0, 5),
)
def test_one_other_word_and_it_is_no_date(parts, word, place):
    if word not in MONTHS:
        assert read(" ".join([*parts[:place], word, *parts[place:]])) == [None]


@settings(max_examples=examples(60))
@given(st.lists(st.lists(PARTS, min_size=1, max_size=5).map(" ".join), max_size=5))
def test_a_date_is_read_alone_as_among_others_and_its_form_is_a_date(values):
    forms = read(*values)
    assert forms == [read(value)[0] for value in values]
    dates = [value for value in forms if value]
    assert read(*dates) == dates
