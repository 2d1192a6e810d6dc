"""Of a column found it is said how many rows of its table have each value."""

import csv
import json

import pytest

import pexeso

TOWNS = ["Oslo", "Bergen", "Tromsø", "Bodø", "Hamar"]
COLUMNS = {
    "key.csv": TOWNS,
    "visits.csv": [*TOWNS, *TOWNS, "Oslo", None, None],
    "flag.csv": ["Oslo", "Bergen", "Hamar"] * 100,
}
RULES = pexeso.ColumnRules(min_rows=1)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    lake = tmp_path_factory.mktemp("fan-out")
    for name, cells in COLUMNS.items():
        with open(lake / name, "w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows([["town", "n"], *((cell, 1) for cell in cells)])
    path = lake.parent / "fan-out.pexeso"
    return pexeso.build_index(lake, path, rules=RULES, parts=("overlap", "containment"))


def test_it_is_rows_with_a_value_by_distinct_values(index):
    matches = {match.table: match for match in index.search(TOWNS, fold_copies=False)}
    for table, cells in COLUMNS.items():
        values = [cell for cell in cells if cell]
        assert matches[table].rows_per_value == len(values) / len(set(values))
        assert matches[table].is_small_domain == (len(set(values)) <= 3)


def test_json_says_it_and_all_else_as_before(index):
    results = json.loads(json.dumps(index.search(TOWNS, fold_copies=False).to_dict()))["results"]
    said = {
        result["table"]: (result["rows_per_value"], result["is_small_domain"]) for result in results
    }
    assert said == {"key.csv": (1.0, False), "visits.csv": (2.2, False), "flag.csv": (100.0, True)}
    assert list(results[0])[-3:] == ["brings", "rows_per_value", "is_small_domain"]
    for method in ("overlap", "containment", "all"):
        shown = index.search(TOWNS, fold_copies=False, method=method).to_dict()["results"]
        fields = ("rows_per_value", "is_small_domain")
        assert {one["table"]: tuple(one[name] for name in fields) for one in shown}.items() <= (
            said.items()
        )


@pytest.mark.parametrize(
    ("mine", "expected"),
    [
        (TOWNS, ["1:1", "1:N, 2.2 rows for each row", "1:N, 100 rows for each row, few values"]),
        (
            [*TOWNS, "Oslo"],
            ["N:1", "N:M, 2.2 rows for each row", "N:M, 100 rows for each row, few values"],
        ),
    ],
)
@pytest.mark.parametrize("method", ["semantic", "overlap", "all"])
def test_lines_say_it(index, method, mine, expected, tmp_path, run):
    file = tmp_path / "mine.csv"
    rows = [f"{place},1" for place in [*mine, ""]]
    file.write_text("\n".join(["place,n", *rows]) + "\n", encoding="utf-8")
    options = ("--method", method, "--no-fold-copies")
    head, *lines = run("search", index.path, f"{file}:place", *options).stdout.splitlines()
    at, end = head.index("fan-out"), head.index("brings")
    assert sorted(line[at:end].strip() for line in lines) == sorted(expected)


def test_lines_of_keys_alone_have_no_such_column(index, write, run):
    file = write("mine.csv", "place\n" + "\n".join(TOWNS) + "\n")
    shown = run("search", index.path, f"{file}:place", "-k", 1).stdout
    assert "key.csv" in shown
    assert "fan-out" not in shown


def test_a_page_says_it(index):
    page = index.search(TOWNS, fold_copies=False).to_html()
    assert "The table has one row for each value of this column.</p>" in page
    assert "The table has 2.2 rows on average for each value of this column.</p>" in page
    few = "It has few values, which say little about a row."
    assert f"The table has 100 rows on average for each value of this column. {few}</p>" in page


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), "; 12 rows, 2.2 for each row that matches\n"),
        (("--type", "inner"), "; 11 rows, 2.2 for each row that matches\n"),
        (("--aggregate", "first"), "; 6 rows\n"),
    ],
)
def test_a_join_says_it(index, write, run, options, expected):
    file = write("mine.csv", "place\n" + "\n".join([*TOWNS, "Xyzzyx"]) + "\n")
    said = run("join", index.path, f"{file}:place", "visits.csv:town", *options).stderr
    assert expected in said
