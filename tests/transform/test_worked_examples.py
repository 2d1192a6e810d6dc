"""Worked examples of the specification of Auto-Join, each by its name: W4, W5, W6, W8 and W9.

The others are examples of what is held against a definition: W1 and W7 in `test_fuzzy`, W2 in
`test_suffixes` and `test_row_pairs`, W3 in `test_program`, W10 in `test_check_9`.

Its acceptance checks (section 11) are tested where the code is:

1. and 2. longest hits and scores: `test_suffixes` and `test_row_pairs`;
3. here; 4. and 5. `test_learning`; 6. `test_fuzzy`; 7. and 8. `test_transform_sampling`;
9. the four synthetic cases here (`test_check_9`), look-alike pairs by `python -m benchmarks
   transform`;
10. here, on a few tables (`test_check_10`); 11. `python -m benchmarks transform`;
12. `tests/transform/joins/test_joined` (the seed), and `tests/transform/joins/
    test_written_elsewhere` (Spark).
"""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from pexeso.transform.learning.example_sets import sample_sizes
from pexeso.transform.learning.examples_to_program import learn_program
from pexeso.transform.learning.finding import find_program
from pexeso.transform.programs.program import Constant, Extract, Program
from pexeso.transform.texts import TextTable
from pexeso.transform.transformation import KINDS, TransformOptions, learn_transformation
from tests.transform.joins.small_tables import APPROVAL, DOMAIN, EMAILS, PRESIDENTS, TEACHERS

UNITS = {
    "ATU": ["France.01", "France.03", "United States.01", "United States.02", "United States.03"],
    "Manager": ["V-JOHH", "JOFORD", "RICHT", "MICHM", "ANDYW"],
}
SUB_UNITS = {
    "Sub-ATU": [
        "France.01.MIX",
        "United States.01.Government",
        "United States.01.Education",
        "United States.03.PS-LRG",
        "United States.04.Retail",
    ],
    "Segment": ["SMB", "Major", "AM EPG", "TM SMS&P", "AM SMS&P"],
}
SESSIONS = {
    "ID": ["UBAX01", "UBAX02", "UBAX03", "UBAX04", "UBAX05"],
    "Session Name": [
        "AXUG General Session",
        "How2 Session",
        "Master Planning Session",
        "Financial Reporting",
        "Master Planning Session",
    ],
}
FULL_SESSIONS = {
    "Full Session Name": [
        f"[{number}] {name}" for number, name in zip(*SESSIONS.values(), strict=True)
    ],
    "Month": ["Mar", "Apr", "Apr", "Oct", "Dec"],
}


def joined(source, target):
    """Learn between two tables; return what is found, and the key of each row that is read."""
    tables = TextTable.of(source), TextTable.of(target)
    transformation = learn_transformation(*tables, TransformOptions(fuzzy=False))
    keyed = tables[1] if transformation.direction == "source to target" else tables[0]
    keys = keyed.columns[transformation.key_column].values.to_pylist()
    partners = [keys[place] if place >= 0 else None for place in transformation.partners.tolist()]
    assert {KINDS[kind] for kind in transformation.kinds} <= {"none", "program"}
    return transformation, partners


def test_w4_figure_a_from_right_to_left():
    transformation, partners = joined(PRESIDENTS, APPROVAL)
    assert transformation.direction == "target to source"
    assert partners == PRESIDENTS["President"]
    assert [len(program.operators) for program in transformation.programs] == [3]
    assert transformation.n_keys == 5


def test_w4_figure_a_from_left_to_right_there_is_no_program():
    tables = TextTable.of(PRESIDENTS), TextTable.of(APPROVAL)
    finding = find_program(tables[0], tables[1].columns[:1])
    assert finding is None or not finding.accepted


def test_w4_figure_b_four_of_five_teachers():
    transformation, partners = joined(TEACHERS, EMAILS)
    assert partners == [mail if mail != f"mipayne{DOMAIN}" else None for mail in EMAILS["Email"]]
    assert [len(program.operators) for program in transformation.programs] == [3]
    [program] = transformation.programs
    assert program.of(["Missy Payne", "Instructor"]) == f"mpayne{DOMAIN}"


OF_SUB_UNITS = ["France.01", "United States.01", "United States.01", "United States.03"]


@pytest.mark.parametrize(
    ("tables", "direction"),
    [((SUB_UNITS, UNITS), "source to target"), ((UNITS, SUB_UNITS), "target to source")],
    ids=["sub-units first", "units first"],
)
def test_w4_figure_c_is_joined_in_both_directions(tables, direction):
    transformation, partners = joined(*tables)
    assert transformation.direction == direction
    assert partners == [*OF_SUB_UNITS, None]


def test_w4_figure_d_two_columns_in_brackets():
    transformation, partners = joined(SESSIONS, FULL_SESSIONS)
    assert transformation.n_keys == 5
    if transformation.direction == "source to target":
        assert partners == FULL_SESSIONS["Full Session Name"]
        assert [len(program.operators) for program in transformation.programs] == [4]
        assert transformation.programs[0].of(["X1", "Other"]) == "[X1] Other"
    else:
        assert partners == SESSIONS["ID"]


def test_w5_one_example_is_ambiguous():
    places = Program((Extract(0, start=7, length=6), Constant(" "), Extract(0, length=5)))
    rows = [[text] for text in APPROVAL["President"]]
    assert places.of(rows[0]) == "Barack Obama"
    assert places.of(rows[1]) == "eorge  Bush,"
    learned = learn_program(rows[:2], PRESIDENTS["President"][:2])
    assert learned.of(rows[1]) == "George W. Bush"


def test_w6_the_join_reaches_all_teachers():
    transformation = learn_transformation(TextTable.of(TEACHERS), TextTable.of(EMAILS))
    assert transformation.partners.tolist() == [0, 1, 2, 3, 4]
    kinds = [KINDS[kind] for kind in transformation.kinds]
    assert kinds == ["program", "program", "fuzzy", "program", "program"]


@pytest.mark.parametrize(
    ("n_source", "n_target", "rates"),
    [
        (10**6, 10**6, (0.01414, 0.01414)),
        (10**6, 10**5, (0.01414, 0.14142)),
        (10**5, 10**6, (0.04472, 0.00447)),
    ],
)
def test_w8_sizes_of_samples(n_source, n_target, rates):
    samples = sample_sizes(n_source, n_target, participation=0.1)
    assert samples[0] / n_source == pytest.approx(rates[0], rel=1e-3)
    assert samples[1] / n_target == pytest.approx(rates[1], rel=1e-3)
    assert np.exp(-(0.8**2) * 20 / 2) == pytest.approx(0.00166, abs=5e-6)


def test_w9_the_year_of_a_month():
    months = [f"{year}-{month:02}" for year in range(1960, 2000) for month in (1, 6, 12)]
    years = [str(year) for year in range(1960, 2000)]
    learned = learn_program([["1974-01"], ["1980-12"], ["1991-06"]], ["1974", "1980", "1991"])
    assert len(learned.operators) == 1
    assert [learned.of([month]) for month in months] == [month[:4] for month in months]
    finding = find_program(TextTable.of({"month": months}), TextTable.of({"year": years}).columns)
    assert len(finding.program.operators) == 1
    assert finding.n_keys == 40


def times(n_rows, seed=3):
    drawn = random.Random(seed)
    chosen = drawn.sample(range(24 * 60 * 60), n_rows)
    parts = [(seconds // 3600, seconds // 60 % 60, seconds % 60) for seconds in chosen]
    source = {
        "sec": [str(second) for _, _, second in parts],
        "min": [str(minute) for _, minute, _ in parts],
        "hour": [str(hour) for hour, _, _ in parts],
    }
    return source, {"time": [f"{hour}:{minute}:{second}" for hour, minute, second in parts]}


def catalogue(n_rows, seed):
    drawn = random.Random(seed)
    letters = "abcdefghijklmnopqrstuvwxyz"

    def word(length):
        return "".join(drawn.choices(letters, k=length))

    words = [word(drawn.randint(3, 9)) for _ in range(3000)]
    source = {"authors": [], "title": [], "year": []}
    for _ in range(n_rows):
        source["authors"].append(" ".join(drawn.sample(words, 2)))
        source["title"].append(" ".join(drawn.sample(words, drawn.randint(3, 7))))
        source["year"].append(str(drawn.randint(1960, 2020)))
    return source


def user_ids():
    drawn = random.Random(5)
    source = catalogue(100, 5)
    source["name"] = [authors.split()[0].ljust(4, "x") for authors in source.pop("authors")]
    source["number"] = [str(drawn.randint(1000, 9999)) for _ in range(100)]
    keys = [
        name[:4] + number for name, number in zip(source["name"], source["number"], strict=True)
    ]
    return source, {"user": keys}


def names_concatenated():
    source = catalogue(100, 6)
    first, last = zip(*(authors.split() for authors in source["authors"]), strict=True)
    return {"first": list(first), "last": list(last)}, {
        "name": [f"{other}, {one}" for one, other in zip(first, last, strict=True)]
    }


def citations():
    source = catalogue(100, 7)
    return source, {"text": [". ".join(row) for row in zip(*source.values(), strict=True)]}


@pytest.mark.parametrize(
    "tables",
    [user_ids(), times(100, seed=4), names_concatenated(), citations()],
    ids=["UserID", "Time", "NameConcat", "Citeseer"],
)
def test_check_9_the_synthetic_cases_join_all_rows_rightly(tables):
    source, target = tables
    transformation, partners = joined(source, target)
    if transformation.direction == "source to target":
        assert partners == target["user" if "user" in target else next(iter(target))]
    else:
        right = {column: cells for column, cells in source.items()}
        assert partners in list(right.values())


@pytest.mark.slow
def test_check_10_unrelated_tables_have_no_program():
    drawn = random.Random(10)
    kinds = {
        "words": lambda: " ".join(drawn.sample(WORDS, 2)),
        "code": lambda: f"{drawn.choice('ABC')}-{drawn.randint(100, 999)}",
        "mail": lambda: f"{drawn.choice(WORDS)}{drawn.randint(1, 99)}@x.org",
        "phone": lambda: f"+49 {drawn.randint(100, 999)} {drawn.randint(10**5, 10**6)}",
    }
    false = []
    for left in kinds:
        for right in kinds:
            if left < right:
                tables = [
                    TextTable.of({kind: list({kinds[kind]() for _ in range(30)})})
                    for kind in (left, right)
                ]
                transformation = learn_transformation(*tables)
                false += [(left, right)] if transformation.programs else []
    assert false == []


WORDS = [
    "".join(random.Random(seed).choices("abdeghiklmnoprstuv", k=3 + seed % 6))
    for seed in range(400)
]


def test_nothing_of_a_table_of_empty_cells_is_looked_at():
    empty = TextTable.of({"a": pa.array([None, ""], pa.string())})
    assert find_program(empty, empty.columns) is None
