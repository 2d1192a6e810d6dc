"""Columns with as many matches are in the order of the joins that they make."""

import pytest

import pexeso

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
