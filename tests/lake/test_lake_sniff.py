import statistics

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

from pexeso.errors import InputError
from pexeso.lake.choose import (
    ColumnProfile,
    ColumnRules,
    profile_column,
    profile_columns,
    reason_left_out,
)


def profile(*values, **options):
    return profile_column(pa.array(values, pa.string()), **options)


NUMBERS = [
    *("1", "-1", "+1", "\u22121", "1,234", "1.234,5", "1 234", "1'234", ".5", "5.", "1e5"),
    *("1.5E-3", "12 %", "$5", "5 €", "1,23,456"),
]
NUMBERS += ["-$1,200.50", "$-5", "(1,200)", "US$ 5", "1953", "0", "£3"]
WORDS = [
    *("", "a", "1st", "1-2", "3:1", "12:30", "1/2", "v1", "#1", "5 km", "-", "$", "%", "1 2"),
    *("1,23,4", "e5", "10th"),
]


@pytest.mark.parametrize("value", NUMBERS)
def test_numbers(value):
    assert profile(value).kind == "number"


@pytest.mark.parametrize("value", WORDS)
def test_what_is_no_number(value):
    assert profile(value).n_numbers == 0


def test_missing_cells_and_white_space_do_not_count():
    column = profile("a", " a", None, "  ", "b c", "a")
    assert column == ColumnProfile("text", 6, 2, 2, 0, 0, 1.0)
    assert column.n_values == 4


def test_an_empty_column():
    assert profile(None, " ") == ColumnProfile("empty", 2, 2, 0, 0, 0, 0.0)
    assert profile() == ColumnProfile("empty", 0, 0, 0, 0, 0, 0.0)
    assert profile_columns([]) == []


def test_the_fraction_of_numbers_is_itself_allowed():
    assert profile("1", "a").kind == "text"
    assert profile("1", "2", "a").kind == "number"
    assert profile("1", "2", "a", max_number_fraction=0.7).kind == "text"


def test_dates_are_weighed_by_cells():
    column = profile("2020-01-02", "2020-01-02", "x")
    assert (column.kind, column.n_dates) == ("date", 2)
    assert profile("2020-01-02", "x").kind == "text"


CODES = [
    *("AB-0017", "aardsda01", "tt0109504", "#E0AB82", "R+24.61", "80th", "3:54.2", "Anna@x.org"),
    *("https://x.org/a", "www.x.org", "(555) 123-4567", "+41 44 123 45 67", "W 82-74"),
]
NO_CODES = [
    *("Oslo", "NGC 4414", "2001-02 Serie A", "12 Main Street", "Rome 2", "District 8", "a @ b"),
    "see www.x.org for more",
]


@pytest.mark.parametrize("value", CODES)
def test_what_is_a_code(value):
    column = profile(value)
    assert (column.kind, column.value_kind, column.n_codes) == ("text", "code", 1)


@pytest.mark.parametrize("value", NO_CODES)
def test_what_is_no_code(value):
    column = profile(value)
    assert (column.value_kind, column.n_codes) == ("text", 0)


def test_codes_are_more_than_half_of_the_cells_of_a_column_of_text():
    assert profile("AB1", "a").value_kind == "text"
    assert profile("AB1", "AB1", "a").value_kind == "code"
    assert profile("AB1", None, "").value_kind == "code"
    assert profile("2020-01-02", "2020-01-03", "AB1").value_kind == "date"
    assert profile("1", "2", "AB1").value_kind == "number"


@settings(max_examples=examples(40))
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 4)), min_size=1, max_size=12))
def test_the_median_is_that_of_all_cells(pairs):
    values = [
        " ".join(["w"] * n + [str(i)])
        for i, (n, repeats) in enumerate(pairs)
        for _ in range(repeats)
    ]
    assert profile(*values).median_tokens == statistics.median(
        len(value.split()) for value in values
    )


@settings(max_examples=examples(40))
@given(
    st.lists(
        st.lists(
            st.sampled_from([*NUMBERS, *WORDS, *CODES, None, "2020-01-02", "13/5/2020"]), max_size=6
        ),
        max_size=5,
    )
)
def test_columns_are_profiled_as_each_by_itself(columns):
    arrays = [pa.array(column, pa.string()) for column in columns]
    assert profile_columns(arrays) == [profile_column(array) for array in arrays]


def made(**facts):
    base = {
        "kind": "text",
        "n_rows": 10,
        "n_missing": 0,
        "n_distinct": 5,
        "n_numbers": 0,
        "n_dates": 0,
    }
    return ColumnProfile(**{**base, "median_tokens": 2.0, **facts})


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({}, None),
        ({"kind": "date"}, None),
        ({"n_rows": 5, "n_distinct": 2, "median_tokens": 12.0}, None),
        ({"n_rows": 4}, "4 rows, at least 5 needed (min_rows)"),
        ({"n_rows": 1}, "1 row, at least 5 needed (min_rows)"),
        ({"kind": "empty", "n_missing": 10}, "no values: every cell is missing"),
        ({"n_distinct": 1}, "1 distinct value, at least 2 needed (min_distinct)"),
        (
            {"median_tokens": 12.5},
            "free text: a median of 12.5 words a value, at most 12 allowed (max_median_tokens)",
        ),
        (
            {"kind": "number", "n_numbers": 8, "n_missing": 1},
            "numbers: 88.89 % of the values, over the fraction of 0.5 (max_number_fraction), "
            "and only text and date columns are kept (kinds)",
        ),
    ],
)
def test_each_rule_gives_its_reason(facts, reason):
    assert reason_left_out(made(**facts), ColumnRules()) == reason


def test_rules_can_be_changed():
    assert reason_left_out(made(kind="number"), ColumnRules(kinds=("number",))) is None
    assert (
        reason_left_out(made(), ColumnRules(kinds=("date",)))
        == "a text column, and only date columns are kept (kinds)"
    )
    rules = ColumnRules(max_missing_fraction=0.25)
    assert reason_left_out(made(n_missing=2), rules) is None
    assert reason_left_out(made(n_missing=3), rules) == (
        "30 % of the cells are empty, at most 0.25 of them allowed (max_missing_fraction)"
    )
    assert ColumnRules(kinds=("date", "text")) == ColumnRules()


def test_rules_survive_json_values():
    rules = ColumnRules(kinds=("number",), min_rows=3, max_median_tokens=7.5)
    assert ColumnRules.from_dict(rules.to_dict()) == rules
    with pytest.raises(InputError, match=r"^Unknown column rules: colour\.$"):
        ColumnRules.from_dict({"colour": 1})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kinds": ()}, r"kinds must be one or more of text, date, number\. Got \(\)\."),
        ({"kinds": "text"}, "kinds must be one or more of"),
        ({"min_rows": 0}, r"min_rows must be a whole number, 1 or more\. Got 0\."),
        ({"min_distinct": 1.5}, r"min_distinct must be a whole number, 1 or more\. Got 1\.5\."),
        (
            {"max_number_fraction": 1.1},
            r"max_number_fraction must be a number from 0 to 1\. Got 1\.1\.",
        ),
        (
            {"max_missing_fraction": float("nan")},
            r"max_missing_fraction must be a number from 0 to 1\. Got nan\.",
        ),
        ({"max_median_tokens": 0}, r"max_median_tokens must be a number of 1 or more\. Got 0\."),
    ],
)
def test_wrong_rules_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        ColumnRules(**options)
