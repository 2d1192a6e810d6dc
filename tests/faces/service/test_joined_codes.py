"""Joins of two columns of codes or numbers: equal as cells are read, and what else would match."""

import csv
import pickle

import pytest

import pexeso
from pexeso.faces.service.requests import ExplainRequest, JoinRequest
from pexeso.faces.service.verbs import run
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.options import ColumnRules

PHONES = ["+44 20 7946 0018", "0044 161 496 0123", "+44 (0)29 2018 0456", "+441214960555"]
AT_HOME = ["020 7946 0018", "0161 496 0123", "029 2018 0456", "0121 496 0555"]
UUIDS = [f"550e8400-e29b-41d4-a716-44665544000{last}" for last in range(4)]
ISBNS = ["9780306406157", "9783161484100", "9781861978769"]
HYPHENED = ["978-0-306-40615-7", "978-3-16-148410-0", "978-1-86197-876-9"]


def write(path, names, rows):
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([names, *rows])


def indexed(folder, mine, lake, rules=()):
    """Write a table of codes and a lake with another, whose numbers of rows are the places."""
    (folder / "lake").mkdir()
    write(folder / "lake" / "t.csv", ["name", "row"], [[cell, f"r{at}"] for at, cell in lake])
    write(folder / "mine.csv", ["q", "n"], [[cell, at] for at, cell in enumerate(mine)])
    pexeso.build_index(
        folder / "lake",
        folder / "ix",
        rules=ColumnRules(min_rows=1, min_distinct=1),
        normaliser=Normaliser().switched(on=rules),
    )
    return {
        "index": str(folder / "ix"),
        "query": f"{folder}/mine.csv:q",
        "lake_column": "t.csv:name",
    }


def places(response, names=tuple(f"r{at}" for at in range(9))):
    """Return for each row of yours the row of the lake that it is joined with."""
    rows = response.joined.table.column("row").to_pylist()
    return [None if row is None else names.index(row) for row in rows]


@pytest.mark.parametrize(
    ("mine", "lake", "rules"),
    [
        (["2020.0", "7.0", "8"], ["2020", "7", "8"], ()),
        (["1,234", "1 000 000"], ["1234", "1000000"], ()),
        (["'00501", "'02139"], ["00501", "02139"], ()),
        (HYPHENED, ISBNS, ()),
        (ISBNS, HYPHENED, ()),
        ([one.upper().replace("-", "") for one in UUIDS], UUIDS, ()),
        ([f"{{{one}}}" for one in UUIDS], [f"urn:uuid:{one}" for one in UUIDS], ()),
        (PHONES, ["+442079460018", "+44-161-4960123", "+44 29 2018 0456", "0044 121 4960555"], ()),
        (["00442079460018", "00441614960123"], AT_HOME[:2], ("calling-codes",)),
        (PHONES, AT_HOME, ("calling-codes",)),
        (["1001", "4013", "36061"], ["01001", "04013", "36061"], ("leading-zeros",)),
        (["true", "false"], ["1", "0"], ("truth-numbers",)),
        (["1.5", "2.25"], ["1.50", "2.250"], ("decimal-zeros",)),
    ],
)
def test_codes_are_joined_as_they_are_read(tmp_path, mine, lake, rules):
    fields = indexed(tmp_path, mine, enumerate(lake), rules)
    response = run(JoinRequest.of(**fields))
    assert places(response) == list(range(len(mine)))
    assert response.match.joinability == 1
    assert not response.joined.report.readings
    explained = run(ExplainRequest.of(**fields)).to_dict()
    assert explained["joinability"] == 1


@pytest.mark.parametrize(
    ("rule", "mine", "lake", "n_joined"),
    [
        ("calling-codes", PHONES, AT_HOME, 0),
        ("leading-zeros", ["1001", "4013", "36061"], ["01001", "04013", "36061"], 1),
        ("truth-numbers", ["true", "false"], ["1", "0"], 0),
        ("decimal-zeros", ["1.5", "2.25"], ["1.50", "2.250"], 0),
    ],
)
def test_what_would_match_is_said(tmp_path, rule, mine, lake, n_joined):
    fields = indexed(tmp_path, mine, enumerate(lake))
    response = run(JoinRequest.of(**fields))
    assert [place for place in places(response) if place is not None] == list(
        range(len(mine) - n_joined, len(mine))
    )
    [hint] = response.to_dict()["report"]["readings"]
    expected = {"rule": rule, "table": "t.csv", "column": "name", "total": len(mine)}
    assert hint.items() >= {**expected, "matched": len(mine)}.items()
    assert f"--rule {rule}" in response.joined.report.lines()[-1]
    explained = run(ExplainRequest.of(**fields)).to_dict()
    assert explained["hints"]["readings"] == [hint]
    read = {**fields, "reading_rules": [rule]}
    response = run(JoinRequest.of(**read))
    assert places(response) == list(range(len(mine)))
    assert not response.joined.report.readings
    assert run(ExplainRequest.of(**read)).to_dict()["joinability"] == 1


def test_an_index_reads_by_further_rules_in_joins_alone(tmp_path):
    fields = indexed(tmp_path, PHONES, enumerate(AT_HOME))
    index = pexeso.open_index(fields["index"])
    read = pickle.loads(pickle.dumps(index.with_readings("calling-codes")))
    assert read.explain(PHONES, "t.csv", "name").match.joinability == 1
    assert index.explain(PHONES, "t.csv", "name").match.joinability == 0
    assert read.normaliser == index.normaliser
    with pytest.raises(pexeso.InputError, match=r"must be one of .*calling-codes.* Got 'case'"):
        index.with_readings("case")


def test_nothing_is_said_where_the_lake_keeps_two_such_values_apart(tmp_path):
    lake = ["01001", "1001", "04013", "06037"]
    fields = indexed(tmp_path, ["4013", "6037"], enumerate(lake))
    response = run(JoinRequest.of(**fields))
    assert places(response) == [None, None]
    assert not response.joined.report.readings


def test_keys_of_several_columns_say_what_would_match(tmp_path):
    (tmp_path / "lake").mkdir()
    rows = [["01001", "2020", "a"], ["04013", "2021", "b"], ["06037", "2022", "c"]]
    write(tmp_path / "lake" / "t.csv", ["code", "year", "row"], rows)
    write(tmp_path / "mine.csv", ["q", "y"], [["1001", "2020.0"], ["4013", "2021.0"]])
    index = pexeso.build_index(
        tmp_path / "lake",
        tmp_path / "ix",
        parts=("composite",),
        rules=ColumnRules(min_rows=1, min_distinct=1),
    )
    key = {"index": str(tmp_path / "ix"), "query": f"{tmp_path}/mine.csv:q,y"}
    fields = {**key, "lake_column": "t.csv:code,year"}
    wanted = {"rule": "leading-zeros", "column": "code,year", "matched": 2, "total": 2}
    for hint in (
        run(JoinRequest.of(**fields)).to_dict()["report"]["readings"],
        run(ExplainRequest.of(**fields)).to_dict()["hints"]["readings"],
        index.search_composite(tmp_path / "mine.csv", ["q", "y"]).hints().to_dict()["readings"],
    ):
        assert [one.items() >= wanted.items() for one in hint] == [True]
    read = {**fields, "reading_rules": ["leading-zeros"]}
    assert places(run(JoinRequest.of(**read)), "abc") == [0, 1]
    assert run(ExplainRequest.of(**read)).to_dict()["joinability"] == 1


@pytest.mark.parametrize(
    ("option", "value"), [("max_distance", 0.2), ("values", "all"), ("auto", True)]
)
def test_what_has_no_use_for_equal_numbers_is_refused(tmp_path, option, value):
    fields = indexed(tmp_path, ["1", "2"], enumerate(["1", "2"]))
    with pytest.raises(pexeso.InputError, match=f"equal.*{option}"):
        run(JoinRequest.of(**fields, **{option: value}))


def test_values_are_joined_with_a_column_of_numbers(tmp_path):
    fields = {**indexed(tmp_path, ["1"], enumerate(["7", "1,234"])), "query": ("1234", "8")}
    assert places(run(JoinRequest.of(**fields))) == [1, None]
