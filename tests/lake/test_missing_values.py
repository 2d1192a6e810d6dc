"""What counts as a missing value, against a plain definition; and which `NA` is a value."""

import numpy as np
import pyarrow as pa
import pytest

from pexeso.lake.cells import AMBIGUOUS, is_missing, is_missing_word, names_no_column, present

GAPS = [
    *("N/A", "n/a", "NULL", "null", "None", "NaN", "nan", "nil", "n.a.", ".", "-", "--", "—", "?"),
    *("#VALUE!", "#REF!", "#N/A", "#DIV/0!", "(blank)", "<NA>", "(none)", "[null]", "TBD", "tba"),
    *("unknown", "Unknown", "UNKNOWN", "not available", "Not Applicable", "\\N", "…", "???", "___"),
    *(" N/A ", "\tnull\n", "\u00a0n/a", "", "  ", "//", "\uff2e\uff0f\uff21", "\uff0d"),
    *("н/д", "Нет данных", "НЕИЗВЕСТНО", "不明", "なし", "无数据", "無", "없음", "غير معروف"),
    *(
        "0000-00-00",
        "Brak danych",
        "n.v.t.",
        "Não informado",
        "Nincs adat",
        "Uppgift saknas",
        "(Άγνωστο)",
        "לא ידוע",
    ),
]
VALUES = [
    *("Oslo", "Nana", "nano", "Nullarbor", "None such", "unknown soldier", "-1", "0", "A-", "x.y"),
    *("Нет", "无锡", "なしの木", "Brak", "明", "Ukjent soldat", "okänt land"),
    *("blank", "empty", "#1", "C#", "?!", "N", "Nantes", "n/a/b", "not", "TBDX", "+", "&", "★"),
]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_gaps_are_missing_and_values_are_not(kind):
    assert is_missing(pa.array(GAPS, kind)).all()
    assert not is_missing(pa.array(VALUES, kind)).any()
    assert all(map(is_missing_word, filter(str.strip, GAPS)))
    assert not any(map(is_missing_word, VALUES))


@pytest.mark.parametrize("cell", [*GAPS, *VALUES, *AMBIGUOUS])
def test_a_cell_is_the_same_in_a_short_column_and_in_a_long_one(cell):
    column = [cell, "Oslo", None]
    long = is_missing(pa.array(column + ["Rome"] * 100))
    assert is_missing(pa.array(column)).tolist() == long[:3].tolist()


def codes_decide(column):
    """Return whether `NA` is a value of a column, by the words of the rule."""
    others = {cell.strip() for cell in column if cell and not is_missing_word(cell)}
    codes = {
        cell
        for cell in others
        if len(cell) <= 3
        and cell.isalnum()
        and any(map(str.isalpha, cell))
        and (cell in (cell.upper(), cell.lower()) or (len(cell) == 2 and cell == cell.title()))
    }
    return bool(codes) and 2 * len(codes) >= len(others)


def test_words_in_waiting_are_codes_among_codes():
    assert is_missing(pa.array(["NYA", "TBA", "BOS", "tbd."])).tolist() == [False] * 4
    gaps = is_missing(pa.array(["Oslo", "TBA", "tbd", "Rome"])).tolist()
    assert gaps == [False, True, True, False]
    assert is_missing(pa.array(["NYA", "(TBA)", "BOS"])).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("column", "is_value"),
    [
        (["NO", "IT", "NA", "DE"], True),
        (["no", "it", "na", "de"], True),
        (["USA", "NA", "N/A", "ITA", "Norway"], True),
        (["Oslo", "Rome", "NA", "Bern"], False),
        (["1", "2", "NA", "3"], False),
        (["Bob", "Ann", "NA", "Zoe"], False),
        (["NA", "NA"], False),
        (["NA", "n/a", "-"], False),
        (["K", "Fe", "Na", "He"], True),
    ],
)
def test_the_column_decides_whether_na_is_a_value(column, is_value):
    assert codes_decide(column) is is_value
    at = [cell.lower() for cell in column].index("na")
    assert is_missing(pa.array(column))[at] == (not is_value)


def test_columns_are_judged_each_by_itself():
    rng = np.random.default_rng(7)
    pool = np.array(["NA", "na", "NO", "IT", "Oslo", "Rome", "7", "N/A", "A1", "", "Bob", " NA "])
    columns = [rng.choice(pool, rng.integers(1, 9)).tolist() for _ in range(300)]
    texts = pa.array([cell for column in columns for cell in column])
    numbers = np.repeat(np.arange(len(columns)), list(map(len, columns)))
    expected = [
        not cell.strip()
        or (is_missing_word(cell) and (cell.strip().lower() != "na" or not codes_decide(column)))
        for column in columns
        for cell in column
    ]
    assert is_missing(texts, numbers).tolist() == expected
    assert present(texts, numbers).is_null().to_pylist() == expected
    shuffled = rng.permutation(len(numbers))
    missing = is_missing(texts.take(pa.array(shuffled)), numbers[shuffled])
    assert missing.tolist() == np.array(expected)[shuffled].tolist()


def test_what_names_no_column():
    assert all(map(names_no_column, ["\\N", "N/A", "NULL", "-", "?", "#REF!", "n.a."]))
    assert not any(map(names_no_column, ["NA", "Unknown", "missing", "none", "name", "2020"]))
