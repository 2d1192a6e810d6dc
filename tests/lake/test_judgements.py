"""The table of judgements: read, appended by several at a time, and refused where it is wrong."""

import os
import subprocess
import sys

import pytest

import pexeso
from pexeso.lake.judgements import FIELDS, Judgement, read_judgements, record_judgements

HEADER = ",".join(FIELDS)
CITY, TOWN = ("a.csv", "city"), ("b.csv", "town")
REJECTED = Judgement(*CITY, *TOWN, verdict="no")


def write(folder, *lines: str) -> None:
    (folder / "judgements.csv").write_text("\n".join([HEADER, *lines, ""]), encoding="utf-8")


def test_no_file_is_no_judgement(tmp_path):
    assert read_judgements(tmp_path).rows == ()
    assert read_judgements(tmp_path / "none").rejected(CITY) == frozenset()


def test_the_last_row_of_a_pair_holds_in_both_directions(tmp_path):
    record_judgements(tmp_path, [REJECTED])
    assert read_judgements(tmp_path).rejected(CITY) == {TOWN}
    assert read_judgements(tmp_path).rejected(TOWN) == {CITY}
    record_judgements(tmp_path, [Judgement(*TOWN, *CITY, verdict="yes")])
    assert read_judgements(tmp_path).rejected(CITY) == frozenset()
    record_judgements(tmp_path, [REJECTED, Judgement(*CITY, *TOWN, verdict="unsure")])
    judgements = read_judgements(tmp_path)
    assert judgements.rejected(CITY) == frozenset()
    assert judgements.verdict(REJECTED) == "unsure"
    assert len(judgements.rows) == 4
    assert judgements.is_open(REJECTED)


def test_a_pair_is_open_until_it_is_judged_and_when_a_verdict_is_taken_back(tmp_path):
    unsure = Judgement(*CITY, *TOWN)
    assert read_judgements(tmp_path).is_open(REJECTED)
    for row, is_open in ((unsure, False), (REJECTED, False), (unsure, True), (unsure, False)):
        record_judgements(tmp_path, [row])
        assert read_judgements(tmp_path).is_open(REJECTED) == is_open


def test_values_are_judged_for_two_columns_or_for_all(tmp_path):
    rows = [
        Judgement("", "", "", "", "NL", "Holland", "yes"),
        Judgement(*CITY, *TOWN, "Oslo", "Bergen", "no"),
    ]
    record_judgements(tmp_path, rows)
    judgements, for_all = read_judgements(tmp_path), ("", "")
    everywhere = {(for_all, "NL", "Holland", True), (for_all, "Holland", "NL", True)}
    assert set(judgements.value_pairs(None)) == everywhere
    assert set(judgements.value_pairs(CITY)) == {*everywhere, (TOWN, "Oslo", "Bergen", False)}
    assert judgements.value_pairs(CITY)[-1] == (TOWN, "Oslo", "Bergen", False)
    assert (CITY, "Bergen", "Oslo", False) in judgements.value_pairs(TOWN)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a.csv,city,b.csv,town,,,maybe", "verdict must be yes, no or unsure. Got 'maybe'"),
        ("a.csv,city,b.csv,town", "a row has 7 cells. Got 4"),
        ("a.csv,city,b.csv,,,,no", "names both columns"),
        ("a.csv,city,b.csv,town,Oslo,,no", "both values"),
        (",,,,,,no", "Got neither"),
        ("<<<<<<< HEAD", "a row has 7 cells"),
        ('a.csv,"city', "unexpected end of data"),
    ],
)
def test_a_wrong_row_is_named_by_its_line(tmp_path, line, said):
    write(tmp_path, "a.csv,city,b.csv,town,,,yes", line)
    with pytest.raises(pexeso.InputError, match=r"judgements.csv', line 3: ") as caught:
        read_judgements(tmp_path)
    assert said in str(caught.value)
    before = (tmp_path / "judgements.csv").read_bytes()
    with pytest.raises(pexeso.InputError, match="line 3"):
        record_judgements(tmp_path, [REJECTED])
    assert (tmp_path / "judgements.csv").read_bytes() == before


def test_a_wrong_header_and_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "judgements.csv").write_text("a,b\n1,2\n")
    with pytest.raises(pexeso.InputError, match=r"line 1: the header is 'a,b'"):
        read_judgements(tmp_path)
    (tmp_path / "judgements.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(pexeso.InputError, match=r"judgements\.csv"):
        read_judgements(tmp_path)


def test_a_file_edited_by_hand_is_read_again_and_appended_to(tmp_path):
    (tmp_path / "judgements.csv").write_text(f"\ufeff{HEADER}\na.csv,city,b.csv,town,,,no")
    assert read_judgements(tmp_path).rejected(CITY) == {TOWN}
    odd = Judgement("a.csv", "city", "b.csv", 'a "town",\nor two', verdict="no")
    record_judgements(tmp_path, [odd])
    assert read_judgements(tmp_path).rows == (REJECTED, odd)
    write(tmp_path)
    assert read_judgements(tmp_path).rows == ()


def test_a_link_is_not_followed(tmp_path):
    elsewhere = tmp_path / "elsewhere.csv"
    elsewhere.write_text("secret\n")
    (tmp_path / "judgements.csv").symlink_to(elsewhere)
    with pytest.raises(pexeso.InputError, match="cannot be read"):
        read_judgements(tmp_path)
    with pytest.raises(pexeso.PexesoError):
        record_judgements(tmp_path, [REJECTED])
    assert elsewhere.read_text() == "secret\n"


def test_a_text_that_is_no_utf8_is_refused():
    with pytest.raises(pexeso.InputError, match="kept as UTF-8"):
        Judgement("a\udcff.csv", "city", *TOWN)


WRITER = """
import sys
from pexeso.lake.judgements import Judgement, record_judgements
for number in range(40):
    pair = ("", "", "", "", f"{sys.argv[2]} {number}", "x" * 500, "yes")
    record_judgements(sys.argv[1], [Judgement(*pair)])
"""


def test_two_judges_at_once_lose_nothing(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    judges = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), name], env=environment)
        for name in ("one", "other")
    ]
    assert [judge.wait() for judge in judges] == [0, 0]
    values = [row.your_value for row in read_judgements(tmp_path).rows]
    assert sorted(values) == sorted(f"{n} {k}" for n in ("one", "other") for k in range(40))


def test_builds_keep_the_judgements(tmp_path):
    lake, index = tmp_path / "lake", tmp_path / "lake.pexeso"
    lake.mkdir()
    (lake / "a.csv").write_text("city\nOslo\nRome\nParis\nLima\nQuito\n")
    index.mkdir()
    record_judgements(index, [REJECTED])  # as git brings them, before the index is built
    pexeso.build_index(lake, index)
    (lake / "b.csv").write_text("town\nOslo\nRome\nBerlin\nLima\nQuito\n")
    opened = pexeso.open_index(index)
    opened.append()
    assert [str(problem) for problem in opened.check()] == []
    pexeso.build_index(lake, index, overwrite=True)
    assert read_judgements(index).rows == (REJECTED,)
