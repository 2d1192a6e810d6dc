"""Columns with as many matches are in the order of the joins that they make."""

from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pytest

import pexeso
from pexeso.faces.cli.layouts import ALIKE
from pexeso.faces.cli.report import result_lines
from pexeso.results.query import read_query

CITIES = ["Oslo", "Rome", "Paris", "Berlin", "Madrid", "Vienna"]
LAKE = {
    "a_flights": [*CITIES, *CITIES],
    "b_world": [*CITIES, "Lisbon", "Athens", "Dublin", "Prague"],
    "c_repeats": [*CITIES, "Oslo"],
    "d_capitals": [*CITIES, ""],
    "e_capitals": CITIES,
}


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ties")
    (folder / "lake").mkdir()
    for name, values in LAKE.items():
        rows = "".join(f"{value},{number}\n" for number, value in enumerate(values))
        (folder / "lake" / f"{name}.csv").write_text(f"city,n\n{rows}", encoding="utf-8")
    for name, values in {"a_sex": ["f", "m"], "z_sexes": ["f", "m", "x", "d"]}.items():
        rows = "".join(f"{value}\n" for value in values * 5)
        (folder / "lake" / f"{name}.csv").write_text(f"sex\n{rows}", encoding="utf-8")
    return pexeso.build_index(folder / "lake", folder / "lake.pexeso")


@pytest.mark.parametrize("rerank", [True, False])
def test_keys_come_first_and_then_the_least_that_is_no_match(index, rerank):
    result = index.search(CITIES, rerank=rerank, fold_copies=False)
    assert [match.joinability for match in result] == [1.0] * len(LAKE)
    assert [match.table.removesuffix(".csv") for match in result] == [
        "d_capitals", "e_capitals", "b_world", "a_flights", "c_repeats",
    ]  # fmt: skip


def test_columns_of_few_values_come_last(index):
    assert [match.table for match in index.search(["f", "m"])] == ["z_sexes.csv", "a_sex.csv"]


NAMED = {"a_one": "name", "b_towns": "place", "c_two": "homeCity", "d_three": "label"}


@pytest.fixture(scope="module")
def named_index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("names")
    (folder / "lake").mkdir()
    for table, column in NAMED.items():
        rows = "".join(f"{value},{number}\n" for number, value in enumerate(CITIES))
        (folder / "lake" / f"{table}.csv").write_text(f"{column},n\n{rows}", encoding="utf-8")
    return pexeso.build_index(folder / "lake", folder / "lake.pexeso")


def test_among_equals_a_name_of_the_query_comes_first_and_is_shown(named_index, tmp_path):
    file = tmp_path / "towns.csv"
    file.write_text("\n".join(["city", *CITIES]), encoding="utf-8")
    result = named_index.search(read_query(f"{file}:city"), fold_copies=False)
    named = [(match.table, result._tie_break(match)) for match in result]
    assert named == [
        ("c_two.csv", "column name"), ("b_towns.csv", "table name"), ("a_one.csv", ""),
        ("d_three.csv", ""),
    ]  # fmt: skip
    header, first, *_ = result_lines(ALIKE, result, 0)
    assert first[header.index("ahead by") :].startswith("column name")


def test_names_find_nothing_and_outweigh_nothing(named_index):
    unnamed = named_index.search(CITIES, fold_copies=False)
    assert [match.table for match in unnamed] == [f"{name}.csv" for name in NAMED]
    assert not any(unnamed._tie_break(match) for match in unnamed)
    table = pa.table({"label": ["Xyzzy", "Plugh"]})
    assert not named_index.search(table, on="label")


def test_keys_come_before_other_columns_in_ties_of_a_lake(tmp_path):
    lake = Path(__file__).parents[2] / "examples" / "lake"
    index = pexeso.build_index(lake, tmp_path / "lake.pexeso")
    columns = index.catalog.columns().to_pylist()
    is_key = {
        (column["table"], column["label"]): column["n_distinct"]
        == column["n_rows"] - column["n_missing"]
        for column in columns
    }
    n_first = n_pairs = 0
    for column in columns:
        if column["reason"] is not None or not (lake / column["table"]).is_file():
            continue
        query = read_query(str(lake / column["table"]), column["label"])
        options = {"min_joinability": 0.1, "k": "all", "exclude_self": True}
        result = index.search(query, fold_copies=False, **options)
        for before, after in combinations(result, 2):
            alike = [(round(one.similarity or -1, 2), one.matched) for one in (before, after)]
            keys = [is_key[one.table, one.column] for one in (before, after)]
            if alike[0] == alike[1] and keys[0] != keys[1]:
                n_pairs, n_first = n_pairs + 1, n_first + keys[0]
    assert n_pairs > 20
    assert n_first >= 0.95 * n_pairs


def test_keys_of_one_table_share_a_line(tmp_path):
    (tmp_path / "lake").mkdir()
    rows = [f"{city},{city} city,{city},{number % 3}" for number, city in enumerate(CITIES * 2)]
    (tmp_path / "lake" / "keys.csv").write_text(
        "\n".join(["name,town,again,n", *rows[:6]]), encoding="utf-8"
    )
    (tmp_path / "lake" / "visits.csv").write_text(
        "\n".join(["from,to,of,n", *rows]), encoding="utf-8"
    )
    index = pexeso.build_index(tmp_path / "lake", tmp_path / "lake.pexeso")
    result = index.search(CITIES, fold_copies=False)
    assert len(result) == 6
    header, *lines, note, _ = [*result_lines(ALIKE, result, 0), ""]
    at, end = header.index("column"), header.index("fan-out")
    shown = [line[at:end].strip() for line in lines]
    assert shown[0] in ("name, again, town", "again, name, town")
    assert sorted(shown[1:]) == ["from", "of", "to"]
    assert note == "columns on one line identify the same rows (--json lists each)"
    assert sum(line.startswith(" ") for line in result_lines(ALIKE, result, 1)) >= 6


@pytest.fixture(scope="module")
def countries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("countries")
    (folder / "lake").mkdir()
    names = {"DE": "Germany", "FR": "France", "KR": "South Korea", "NG": "Nigeria", "NO": "Norway"}
    rows = [f"{code},{name},{name.upper()}" for code, name in names.items()]
    (folder / "lake" / "world.csv").write_text("\n".join(["code,land,loud", *rows]))
    return pexeso.build_index(folder / "lake", folder / "lake.pexeso")


@pytest.mark.parametrize("rerank", [True, False])
@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("code", ["FR", "NG", "DE"]),
        ("land", ["FRANCE", "Germany", "Nigeria"]),
        ("loud", ["France", "GERMANY", "NIGERIA"]),
        ("code", ["Deutschland", "Frankreich"]),  # no text is equal: the first of the table
    ],
)
def test_of_copies_in_one_table_that_with_equal_texts_comes_first(
    countries, column, values, rerank
):
    [match] = countries.search(values, rerank=rerank)
    assert (match.table, match.column) == ("world.csv", column)
    assert sorted(copy.column for copy in (match, *match.copies)) == ["code", "land", "loud"]
    assert match.joinability == 1.0


@pytest.mark.parametrize(
    ("values", "best"),
    [
        (["DE", "FR", "NG"], "codes.csv"),
        (["Germany", "FRANCE", "nigeria"], "names.csv"),
        (["Deutschland", "Frankreich"], "codes.csv"),  # no text is equal: by the alphabet
    ],
)
def test_columns_that_match_alike_go_by_the_texts_that_are_equal(tmp_path, values, best):
    names = {"DE": "Germany", "FR": "France", "KR": "South Korea", "NG": "Nigeria", "NO": "Norway"}
    (tmp_path / "lake").mkdir()
    for file, texts in (("codes", names), ("names", names.values())):
        # What the other lacks: they are no copies.
        (tmp_path / "lake" / f"{file}.csv").write_text("\n".join(["land", *texts, f"no {file}"]))
    index = pexeso.build_index(tmp_path / "lake", tmp_path / "lake.pexeso")
    result = index.search(values)
    assert [match.joinability for match in result] == [1.0, 1.0]
    assert result[0].table == best
