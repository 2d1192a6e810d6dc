"""Tests of the folder that the tutorial on your own data walks through, and of its pictures."""

import re
from pathlib import Path

import openpyxl
import write_own_data
from facts.countries import COUNTRIES
from facts.culture import MUSEUMS

PAGE = Path(__file__).parents[2] / "docs" / "tutorial-your-own-data.md"


def test_the_same_bytes_are_written_each_time(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    written = [write_own_data.write_own_data(folder) for folder in (first, second)]
    assert len(written[0]) == 10
    for one, other in zip(*written, strict=True):
        assert one.relative_to(first) == other.relative_to(second)
        assert one.read_bytes() == other.read_bytes(), one.name


def test_a_spreadsheet_opens_and_has_lost_its_zeros(tmp_path):
    write_own_data.write_own_data(tmp_path)
    book = openpyxl.load_workbook(tmp_path / "my_tour.xlsx")
    assert book.sheetnames == ["Costs", "Stops"]
    _, *rows = book["Stops"].iter_rows(values_only=True)
    country = {museum[1]: museum[2] for museum in MUSEUMS.rows}
    number = dict(zip(COUNTRIES.column("name"), COUNTRIES.column("numeric"), strict=True))
    assert len(rows) == 20
    assert all(f"{row[3]:03}" == number[country[row[1]]] for row in rows)
    assert any(str(row[3]) != number[country[row[1]]] for row in rows)


def test_pictures_are_small_and_say_what_they_show():
    pictures = re.findall(r"!\[(.*?)\]\((.*?)\)", PAGE.read_text(encoding="utf-8"))
    assert len(pictures) == 3
    assert {path.name for path in PAGE.parent.glob("tutorial-*.png")} == {p[1] for p in pictures}
    for text, name in pictures:
        assert len(text) > 40, name
        assert (PAGE.parent / name).stat().st_size < 200_000, name
