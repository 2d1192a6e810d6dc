"""Composite keys under readings, against plain sets of keys that the readings make equal."""

import csv

import pytest

import pexeso
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.options import ColumnRules

YEARS = ["2020", "2021", "2022", "2023"]


def write(path, names, rows):
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([names, *rows])


def keys_joined(tmp_path, mine, lake, **options):
    """Return the keys that a search counts; a join with the table found joins as many."""
    folder = tmp_path / "lake"
    folder.mkdir()
    rows = [[cell, YEARS[at % 4], f"row {at}"] for at, cell in enumerate(lake)]
    write(folder / "t.csv", ["key", "year", "note"], rows)
    write(tmp_path / "m.csv", ["mine", "yr"], [[cell, YEARS[at % 4]] for at, cell in mine])
    index = pexeso.build_index(
        folder,
        tmp_path / "ix",
        parts=("composite",),
        rules=ColumnRules(min_rows=1, min_distinct=1),
        **options,
    )
    [match] = index.search_composite(tmp_path / "m.csv", ["mine", "yr"]) or [None]
    if match is None:
        return 0
    joined = match.join(tmp_path / "m.csv", how="inner", to="arrow")
    assert joined.num_rows == match.rows
    return match.matched_keys


@pytest.mark.parametrize(
    ("mine", "lake", "rules"),
    [
        (["2020", "7"], ["2020.0", "7.00"], ()),
        (["1234", "1000000"], ["1,234", "1 000 000"], ()),
        (["'00501", "'02139"], ["00501", "02139"], ()),
        (["20240105", "Jan 6, 2024"], ["2024-01-05", "2024-01-06"], ()),
        (["13/1/2024", "5/1/2024"], ["2024-01-13", "2024-01-05"], ()),
        (["2024-05-01", "2024-06-02"], ["1/5/2024", "2/6/2024"], ()),
        (["84523", "3769495"], ["84.523", "3.769.495"], ()),
        (["84.523", "1.000"], ["84.523", "1.000", "1.234,50"], ()),
        (["TRUE", "false"], ["true", "False"], ()),
        (["978-0-306-40615-7", "x"], ["9780306406157", "X"], ()),
        (["a\u200b1", "b2"], ["A1", "b\u00ad2"], ()),
        (["1001", "1003"], ["01001", "01003"], ("leading-zeros",)),
        (["yes", "no"], ["1", "0"], ("truth-numbers",)),
        (["1.5", "2.0"], ["1.50", "2.00"], ("decimal-zeros",)),
        (["+44 20 7946 0018", "0161 496 0123"], ["020 7946 0018", "01614960123"],
         ("calling-codes",)),
    ],
)  # fmt: skip
def test_keys_are_joined_as_they_are_read(tmp_path, mine, lake, rules):
    normaliser = Normaliser().switched(on=rules)
    assert keys_joined(tmp_path, list(enumerate(mine)), lake, normaliser=normaliser) == 2


@pytest.mark.parametrize(
    ("mine", "lake", "rules"),
    [
        (["1001", "1003"], ["01001", "01003"], ()),
        (["yes", "no"], ["1", "0"], ()),
        (["1.5", "3.0"], ["1.50", "2.00"], ()),
        (["3/5/2020", "4/6/2020"], ["2020-13-05", "x"], ()),
        (["1001", "1003"], ["01001", "01002", "1002"], ("leading-zeros",)),
        (["2020", "7"], ["2020.0", "7.00"], ("no-whole-numbers",)),
    ],
)
def test_keys_are_kept_apart(tmp_path, mine, lake, rules):
    normaliser = Normaliser().switched(
        on=[name for name in rules if name[:3] != "no-"],
        off=[name[3:] for name in rules if name[:3] == "no-"],
    )
    assert keys_joined(tmp_path, list(enumerate(mine)), lake, normaliser=normaliser) == 0


def test_identical_cells_are_joined_whatever_their_column_is_read_as(tmp_path):
    lake = ["3/5/2020", "13/5/2020", "4/6/2020"]
    assert keys_joined(tmp_path, [(0, "3/5/2020"), (2, "4/6/2020")], lake) == 2
