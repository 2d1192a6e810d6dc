"""Programs are read as they were written, and hostile documents are refused."""

from __future__ import annotations

import json
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pexeso.errors import InputError
from pexeso.transform.programs.program import Constant, Extract, Program, Split
from pexeso.transform.programs.storing import (
    MAX_CHARACTERS,
    MAX_DOCUMENT,
    StoredProgram,
    program_from_json,
    program_from_text,
    program_to_json,
)
from tests.transform.random_programs import programs, texts

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
