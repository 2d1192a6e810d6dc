"""Programs are read as written, hostile documents refused, and patterns of cells kept."""

from __future__ import annotations

import json
import random
import re
import unicodedata
from copy import deepcopy

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pexeso
from pexeso.errors import InputError
from pexeso.lake.normalise import characters
from pexeso.transform.programs.patterns import ANY, allowed, pattern_of
from pexeso.transform.programs.program import Constant, Extract, Program, Split
from pexeso.transform.programs.storing import (
    MAX_CHARACTERS,
    MAX_DOCUMENT,
    StoredProgram,
    program_from_json,
    program_from_text,
    program_to_json,
)
from tests.transform.random_programs import ROWS, programs, random_programs, texts

STORED = StoredProgram(
    (
        Program(
            (Extract(0, (Split(", ", 1),), 0, 1, "lower", ((".", ""),)), Constant(" "), Extract(1))
        ),
    ),
    ("Name", "Year"),
    {"direction": "forward", "coverage": 0.98},
)
DOCUMENT = program_to_json(STORED)

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)


@given(
    st.lists(programs, min_size=1, max_size=3),
    st.lists(texts, min_size=2, max_size=3),
    st.dictionaries(texts, scalars, max_size=4),
)
def test_what_is_written_is_read(drawn, columns, metadata):
    stored = StoredProgram(tuple(drawn), tuple(columns), metadata)
    text = json.dumps(program_to_json(stored))
    assert program_from_text(text) == stored


def changed(path, value):
    document = deepcopy(DOCUMENT)
    *before, last = path
    part = document
    for key in before:
        part = part[key]
    part[last] = value
    return document


EXTRACT = ("programs", 0, 0)
OPERATOR = r"programs\[0\]\[0\]"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("format",), "other", "format of the document is 'other', not 'pexeso transformation'"),
        (("version",), 3, "version of the document is 3, but this pexeso reads 2; learn"),
        (("version",), 10**1000, "version of the document is a number of more than 30 digits"),
        (("more",), 1, "a field of the document is 'more', but must be one of format, version"),
        (("columns",), "Name", "columns is 'Name', but must be a list"),
        (("columns",), ["a", 1], r"columns\[1\] is 1, but must be a text"),
        (("columns",), ["a"], r"programs\[0\]\[2\].column is 1, but must be .* from 0 to 0"),
        (("columns",), ["a"] * 10_001, "columns has 10,001 entries; 0 to 10,000 are allowed"),
        (("programs",), [], "programs has 0 entries; 1 to 16 are allowed"),
        (("programs", 0), {}, r"programs\[0\] is an object of 0 entries, but must be a list"),
        (("programs", 0), [{"text": ""}] * 17, r"programs\[0\] has 17 entries; 0 to 16 are"),
        (EXTRACT, None, f"{OPERATOR} is None, but must be an object"),
        (EXTRACT, {"text": "a", "column": 0}, f"a field of {OPERATOR} is 'column', but must be"),
        (EXTRACT, {"column": 0}, f"{OPERATOR} has no field 'splits', which it must have"),
        (EXTRACT, {"text": 1}, f"{OPERATOR}.text is 1, but must be a text"),
        (EXTRACT, {"text": "x" * (MAX_CHARACTERS + 1)}, f"{OPERATOR}.text has 10,001 characters"),
        (EXTRACT, {"text": "\ud800"}, f"{OPERATOR}.text is .*, but must be a text without single"),
        ((*EXTRACT, "column"), -1, f"{OPERATOR}.column is -1, but must be a whole number from 0"),
        ((*EXTRACT, "start"), 1_000_000_001, f"{OPERATOR}.start is 1000000001"),
        ((*EXTRACT, "start"), -(10**400), f"{OPERATOR}.start is a number of more than 30 digits"),
        ((*EXTRACT, "start"), float("inf"), f"{OPERATOR}.start is inf, but must be a whole"),
        ((*EXTRACT, "length"), 0, f"{OPERATOR}.length is 0, but must be a whole number from 1"),
        ((*EXTRACT, "length"), True, f"{OPERATOR}.length is True"),
        ((*EXTRACT, "casing"), "Lower", f"{OPERATOR}.casing is 'Lower', but must be one of none"),
        ((*EXTRACT, "splits"), [{}] * 3, f"{OPERATOR}.splits has 3 entries; 0 to 2 are allowed"),
        ((*EXTRACT, "splits", 0, "separator"), "", r"splits\[0\].separator has 0 characters; 1 to"),
        ((*EXTRACT, "splits", 0, "part"), "1", r"splits\[0\].part is '1', but must be a whole"),
        ((*EXTRACT, "splits", 0, "extra"), 1, r"a field of programs.*splits\[0\] is 'extra'"),
        ((*EXTRACT, "splits", 0, "span"), "all", r"splits\[0\].span is 'all', but must be one of"),
        ((*EXTRACT, "shorter"), 1, f"{OPERATOR}.shorter is 1, but must be true or false"),
        ((*EXTRACT, "conversion"), "pad 0", "there is no conversion 'pad 0'; learn the program"),
        ((*EXTRACT, "conversion"), None, f"{OPERATOR}.conversion is None, but must be a text"),
        ((*EXTRACT, "replacements"), "ab", f"{OPERATOR}.replacements is 'ab', but must be a list"),
        ((*EXTRACT, "replacements"), [["a", ""]] * 3, r"replacements has 3 entries; 0 to 2 are"),
        ((*EXTRACT, "replacements", 0), ["a"], r"replacements\[0\] has 1 entries; 2 to 2 are"),
        ((*EXTRACT, "replacements", 0), ["a", 1], r"replacements\[0\]\[1\] is 1, but must be a"),
        (("metadata",), [], "metadata is a list of 0 entries, but must be an object of at most"),
        (("metadata",), {str(n): n for n in range(101)}, "metadata is an object of 101 entries"),
        (("metadata", "x\n"), {}, r"metadata\['x\\n'\] is an object of 0 entries, but must be"),
        (("metadata", "x"), float("nan"), r"metadata\['x'\] is nan, but must be a text, a number"),
        (("metadata", "x"), 1 << 64, r"metadata\['x'\] is 18446744073709551616, but must be a"),
        (("metadata", "x" * 10_001), 1, "name 3 of metadata has 10,001 characters"),
    ],
)
def test_a_wrong_field_is_refused_by_its_name(path, value, message):
    with pytest.raises(InputError, match=message) as refused:
        program_from_json(changed(path, value))
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("value", [None, [], "text", 1, True, [DOCUMENT]])
def test_no_document_at_all_is_refused(value):
    with pytest.raises(InputError, match=r"the document is .*, but must be an object"):
        program_from_json(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the document is not JSON"),
        ("[" * 1_000_000, "the document is not JSON"),
        ('{"version": NaN}', "the document is not JSON .NaN is no number"),
        ('{"version": ' + "9" * 100_000 + "}", "the document is not JSON"),
        (" " * (MAX_DOCUMENT + 1), "has 16,777,217 characters, but programs have at most"),
    ],
)
def test_text_that_is_not_json_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        program_from_text(text)


def test_the_form_that_is_stored():
    assert DOCUMENT == {
        "format": "pexeso transformation",
        "version": 2,
        "columns": ["Name", "Year"],
        "programs": [
            [
                {
                    "column": 0,
                    "splits": [{"separator": ", ", "part": 1, "span": "one"}],
                    "start": 0,
                    "length": 1,
                    "casing": "lower",
                    "replacements": [[".", ""]],
                    "shorter": False,
                    "conversion": "",
                },
                {"text": " "},
                {
                    "column": 1,
                    "splits": [],
                    "start": 0,
                    "length": None,
                    "casing": "none",
                    "replacements": [],
                    "shorter": False,
                    "conversion": "",
                },
            ]
        ],
        "patterns": [],
        "metadata": {"direction": "forward", "coverage": 0.98},
    }


def test_what_could_not_be_read_is_not_written():
    stored = StoredProgram((Program((Extract(3),)),), ("Name",))
    with pytest.raises(InputError, match=r"programs\[0\]\[0\].column is 3"):
        program_to_json(stored)


DAYS = [[f"2024010{day}"] for day in range(1, 8)]
OVERFITTED = Program(
    (Constant("2024-0"), Extract(0, start=5, length=1), Constant("-0"), Extract(0, start=7))
)


def test_a_character_that_is_not_read_must_stay_as_it_was():
    pattern = pattern_of(DAYS, OVERFITTED, 0)
    assert pattern.allows("20240208")
    for text, reason in [
        ("20241105", "character 5 was always '0'"),
        ("20230105", "character 4 was always '4'"),
        ("20240112", "character 7 was always '0'"),
        ("2024010", "it has 7 digits from character 1 on, where there were always 8"),
        ("2024-01-05", "its letters, digits and signs follow each other as in no value there"),
    ]:
        assert not pattern.allows(text)
        assert pattern.why_not(text) == reason


def test_what_is_read_may_be_anything():
    copying = Program((Extract(0, length=4), Constant("-"), Extract(0, start=4)))
    pattern = pattern_of(DAYS, copying, 0)
    assert all(map(pattern.allows, ["19991231", "20241105"]))
    assert not pattern.allows("2024115")


def test_shapes_are_free_where_the_rule_held_for_many():
    surname = Program((Extract(0, (Split(" ", -1),)),))
    few = pattern_of([["Ann Lee"], ["Bo Ek"], ["Cy Fox"]], surname, 0)
    assert few.allows("Dora Gray")
    assert not few.allows("Dora May Gray")
    names = ["Ann Lee", "Bo A Ek", "Cy-Jo Fox", "Di Go-Hu"]
    assert pattern_of([[name] for name in names], surname, 0).allows("Dora May-Lou O'Hara")


@pytest.mark.parametrize("seed", range(3))
def test_rows_that_a_program_was_learned_from_are_allowed(seed):
    n_checked = 0
    for program in random_programs(60, seed):
        rows = [row for row in ROWS if all(row) and program.of(row) is not None]
        for column in program.columns if rows else ():
            pattern = pattern_of(rows, program, column)
            cells = pa.array([row[column] for row in rows] + [None], pa.string())
            assert allowed(pattern, cells).all()
            n_checked += len(rows)
    assert n_checked > 400


def test_parts_that_were_always_equal_must_be_equal_in_other_cells():
    """Nothing shows which of day and month a rule reads that saw only days such as 5 May."""
    days = [[f"{year}-{at:02}-{at:02}"] for at, year in ((4, 1999), (9, 2001), (12, 2015))]
    year, month = (Program((Extract(0, (Split("-", part),)),)) for part in (0, 1))
    of_month, of_year = (pattern_of(days, program, 0) for program in (month, year))
    assert of_month.allows("2031-08-08")
    assert not of_month.allows("2031-05-08")
    assert of_month.why_not("2031-05-08") == "'08' was always the same as what is '05' here"
    assert of_year.allows("2031-05-08")


def test_rules_learned_from_days_that_equal_their_months_join_no_other_days(tmp_path):
    years = [1987, 2003, 2014, 1995, 2021, 1978, 1990, 2008, 1966, 1982, 2019, 2030]
    days = [f"{at:02}/{at:02}/{year}" for at, year in enumerate(years, 1)]
    theirs = [f"{year}-{at:02}-{at:02}" for at, year in enumerate(years, 1)]
    pexeso.learn_transformation({"a": days}, {"b": theirs}).save(tmp_path / "rule.json")
    later = [f"{day:02}/{month:02}/2024" for day in range(1, 13) for month in range(1, 13)]
    keys = [f"2024-{month:02}-{day:02}" for day in range(1, 13) for month in range(1, 13)]
    applied = pexeso.learn_transformation(
        {"a": later}, {"b": keys}, program=tmp_path / "rule.json", fuzzy=False
    )
    joined = {left: right for left, right, _ in applied.pairs}
    assert joined == {f"{at:02}/{at:02}/2024": f"2024-{at:02}-{at:02}" for at in range(1, 13)}
    assert "132 rows unlike those that the rule was learned from" in applied.refused


def runs_of(text: str) -> list[str]:
    """Mark each character by its kind, and split where the kind changes."""
    kinds = [unicodedata.category(one)[0] for one in text]
    marks = "".join(kind if kind in "LN" else "S" for kind in kinds)
    return [text[run.start() : run.end()] for run in re.finditer("L+|N+|S+", marks)]


def has(shape, text: str) -> bool:
    """Compare a text with a shape run by run: the plain definition."""
    runs = runs_of(text)
    if len(runs) != len(shape):
        return False
    for run, own in zip(shape, runs, strict=True):
        kind = {"L": "letters", "N": "digits"}.get(unicodedata.category(own[0])[0], "signs")
        letters = run.text or ANY * len(own)
        same = [one in (ANY, other) for one, other in zip(letters, own, strict=False)]
        if kind != run.kind or len(letters) != len(own) or not all(same):
            return False
        if kind == "signs" and own != run.text:
            return False
        if run.same_as >= 0 and own != runs[run.same_as]:
            return False
    return True


def form_of(run: str) -> str:
    kind = unicodedata.category(run[0])[0]
    return kind if kind in "LN" else run


PIECES = [
    "ab",
    "Q",
    "é",
    "ß",
    "12",
    "7",
    "٣",
    "½",
    " ",
    ", ",
    "\n",
    "-",
    "_",
    "\u0301",
    "日本",
    "0",
]


@pytest.mark.parametrize("block_bytes", [1, 40, 1 << 20])
def test_columns_are_allowed_as_their_texts_are_one_by_one(monkeypatch, block_bytes):
    monkeypatch.setattr(characters, "_BLOCK_BYTES", block_bytes)
    drawn, n_allowed, n_refused = random.Random(5), 0, 0
    for _ in range(60):
        texts = ["".join(drawn.choices(PIECES, k=drawn.randint(1, 5))) for _ in range(40)]
        if drawn.random() < 0.3:
            texts = [f"{text}/{drawn.choice((text, texts[0]))}" for text in texts]
        learned = drawn.sample(texts, drawn.choice((1, 3, 12)))
        first = drawn.choice(("", "x"))
        program = Program((Constant(first), Extract(0, start=drawn.randrange(2), shorter=True)))
        pattern = pattern_of([[text] for text in learned], program, 0)
        forms = {tuple(map(form_of, runs_of(text))) for text in learned}
        expected = [
            any(has(shape, text) for shape in pattern.shapes)
            or (pattern.open and tuple(map(form_of, runs_of(text))) not in forms)
            for text in texts
        ]
        cells = pa.array([*texts, None], pa.large_string())
        assert allowed(pattern, cells).tolist() == [*expected, True]
        n_allowed, n_refused = n_allowed + sum(expected), n_refused + expected.count(False)
    assert min(n_allowed, n_refused) > 300


@pytest.fixture
def rule(tmp_path):
    """Days of January become days of the first quarter: what April becomes, no row shows."""
    days = [f"{day:02}" for day in range(1, 29)]
    learned = pexeso.learn_transformation(
        {"day": [f"{day}.01.2024 (week)" for day in days]},
        {"key": [f"quarter one, day {day}" for day in days]},
        accept_rule=True,
    )
    assert learned.n_rows["program"] == 28
    learned.save(tmp_path / "rule.json")
    return tmp_path / "rule.json"


LATER = {"day": ["05.01.2024 (week)", "05.04.2024 (week)", "07.01.2023 (week)"]}
KEYS = {"key": ["quarter one, day 05", "quarter one, day 07"]}


def test_later_rows_of_another_month_are_left_alone(rule):
    applied = pexeso.learn_transformation(LATER, KEYS, program=rule)
    assert [left for left, *_ in applied.pairs] == LATER["day"][:1]
    assert applied.refused == (
        "2 rows unlike those that the rule was learned from, such as '05.04.2024 (week)': "
        "character 5 was always '1'"
    )
    accepted = pexeso.learn_transformation(LATER, KEYS, program=rule, accept_rule=True)
    assert len(accepted.pairs) == 3
    assert accepted.refused is None


def test_a_rule_that_is_saved_again_keeps_its_patterns(rule, tmp_path):
    applied = pexeso.learn_transformation(LATER, KEYS, program=rule)
    applied.save(tmp_path / "again.json")
    before, after = (
        json.loads(path.read_text())["patterns"] for path in (rule, tmp_path / "again.json")
    )
    assert before == after


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([{"7": {"open": True, "shapes": []}}], r"a field of patterns\[0\] is '7', but must be"),
        ([{"0": {"open": 1, "shapes": []}}], r"patterns\[0\]\[0\].open is 1, but must be true or"),
        ([{"0": {"open": True, "shapes": [[["x", ""]]]}}], r"shapes\[0\]\[0\]\[0\] is 'x', but"),
        ([{"0": {"open": True, "shapes": [[["letters"]]]}}], r"\[0\]\[0\] has 1 entries; 2 to 3"),
        ([{"0": {"open": True, "shapes": [[["letters", "", 0]]]}}], r"\[0\]\[0\]\[2\] is 0, but"),
        ([{}, {}, {}, {}], "patterns has 4 entries; 0 to"),
        (None, "patterns is None, but must be a list"),
    ],
)
def test_a_wrong_pattern_is_refused_by_its_name(rule, value, message):
    document = json.loads(rule.read_text())
    rule.write_text(json.dumps(document | {"patterns": value}))
    with pytest.raises(InputError, match=message):
        pexeso.learn_transformation(LATER, KEYS, program=rule)


@pytest.mark.parametrize(
    ("extract", "expected"),
    [
        (Extract(0, start=4), [True, True, True]),
        (Extract(0, length=8), [False, False, True]),
        (Extract(0, (Split(" ", 1),), length=4), [False, False, True]),
    ],
)
def test_runs_may_be_longer_where_a_piece_follows_them(extract, expected):
    rows = [["Dr. Bodo Lind"], ["Dr. Carl Moes"], ["Dr. Doro Niel"]]
    pattern = pattern_of(rows, Program((extract,)), 0)
    others = ["Dr. Pamune Tamu", "Dr. Ann Ek", "Dr. Bodo Marchetti"]
    assert [pattern.allows(text) for text in others] == expected
