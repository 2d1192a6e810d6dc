"""Programs in files: saved, applied to other tables, and refused where they are not right."""

from __future__ import annotations

import json
import stat

import pytest

import pexeso
from pexeso.errors import InputError, OutputError
from pexeso.transform.programs.storing import MAX_DOCUMENT
from tests.transform.joins.small_tables import (
    APPROVAL,
    EMAILS,
    MAILS,
    MIXED,
    MIXED_MAILS,
    NAMES,
    PEOPLE,
    PRESIDENTS,
    TEACHERS,
)

learn = pexeso.learn_transformation


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("rule") / "rule.json"
    learn(PEOPLE, MAILS).save(path)
    return path.read_text()


@pytest.fixture
def rule(tmp_path, written):
    path = tmp_path / "rule.json"
    path.write_text(written)
    return path


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (PEOPLE, MAILS),
        (PRESIDENTS, APPROVAL),
        (TEACHERS, EMAILS),
        (APPROVAL, PRESIDENTS),
        ({"who": MIXED["who"][:-2]}, MIXED_MAILS),
        (MIXED, MIXED_MAILS),
    ],
    ids=["two columns", "target to source", "fuzzy", "source to target", "several", "some equal"],
)
def test_saved_programs_join_as_those_that_were_learned(source, target, tmp_path):
    learned = learn(source, target)
    learned.save(tmp_path / "rule.json")
    saved = learn(source, target, program=tmp_path / "rule.json")
    assert saved.to_dict() == learned.to_dict()
    assert saved.table().equals(learned.table())


def test_a_column_that_no_program_reads_decides_nothing(tmp_path):
    """Rows of one name are one text, whatever stands beside it: their key is not joined again."""
    firsts = ["Grace", "Alan", "Ada", "Edsger", "Barbara", "Donald", "Leslie", "Tony", "John"]
    lasts = ["Hopper", "Turing", "Lovelace", "Dijkstra", "Liskov", "Knuth", "Lamport", "Hoare"]
    people = [(first, last) for last in lasts for first in firsts][::5]
    mails = {"mail": [f"{first[:2].lower()}{last.lower()}@lab.org" for first, last in people]}
    plain = [f"{first} {last}" for first, last in people[:10]]
    turned = [f"{last}, {first}" for first, last in [*people[10:], *people[:2]]]
    names = {"name": [*plain, *plain, *turned]}
    learned = learn(names, mails, fuzzy=False)
    assert len(learned.programs) == 2
    assert learned.n_rows == {"none": 2, "equal": 0, "program": 25, "fuzzy": 0}
    noted = {**names, "note": [f"seen on day {number}" for number in range(27)]}
    beside = learn(noted, mails, fuzzy=False)
    assert beside.pairs == learned.pairs
    beside.save(tmp_path / "rule.json")
    assert learn(noted, mails, program=tmp_path / "rule.json", fuzzy=False).pairs == beside.pairs


def test_new_rows_and_columns_in_another_order(rule):
    new = {"last": ["Neu", "Alt"], "city": ["Bonn", "Ulm"], "first": ["Zoe", "Max"]}
    mails = {"id": ["1", "2"], "mail": ["m.alt@firm.de", "z.neu@firm.de"]}
    joined = learn(new, mails, program=rule)
    assert joined.pairs == [
        (("Zoe", "Neu"), "z.neu@firm.de", "program"),
        (("Max", "Alt"), "m.alt@firm.de", "program"),
    ]
    assert joined.table()["id"].to_pylist() == ["2", "1"]


def test_columns_that_no_program_reads_need_not_be_there(tmp_path):
    wide = {**NAMES, "note": [f"n{name}" for name in NAMES["name"]]}
    learn(wide, MAILS).save(tmp_path / "rule.json")
    assert json.loads((tmp_path / "rule.json").read_text())["columns"] == ["name", "note"]
    joined = learn(NAMES, MAILS, program=tmp_path / "rule.json")
    assert joined.n_rows["program"] == 12


def test_programs_may_join_nothing(rule):
    mails = {"mail": MAILS["room"]}
    assert learn(PEOPLE, mails, program=rule).n_rows["program"] == 0


def test_another_column_can_be_joined_with(rule):
    mails = {"mail": MAILS["room"], "address": MAILS["mail"]}
    joined = learn(PEOPLE, mails, program=rule, target_columns="address")
    assert joined.n_rows["program"] == 12
    assert joined.key_column == "address"


def test_a_file_that_is_there_is_replaced_only_if_allowed(rule):
    written = rule.read_text()
    rule.write_text("mine")
    with pytest.raises(OutputError, match="is there already"):
        learn(PEOPLE, MAILS).save(rule)
    assert rule.read_text() == "mine"
    learn(PEOPLE, MAILS).save(rule, overwrite=True)
    assert rule.read_text() == written
    assert [path.name for path in rule.parent.iterdir()] == ["rule.json"]
    assert not rule.stat().st_mode & stat.S_IXUSR


def test_a_file_that_cannot_be_written_is_refused(tmp_path):
    joined = learn(PEOPLE, MAILS)
    with pytest.raises(OutputError, match=r"there is no folder '.*/none'\.$"):
        joined.save(tmp_path / "none" / "rule.json")
    with pytest.raises(OutputError, match="is a folder: give the name of a file"):
        joined.save(tmp_path, overwrite=True)


def test_without_a_program_there_is_nothing_to_save(tmp_path):
    with pytest.raises(InputError, match="There is no program to save: all rows are joined by eq"):
        learn(NAMES, NAMES).save(tmp_path / "rule.json")
    assert list(tmp_path.iterdir()) == []


def changed(document, **changes):
    return json.dumps({**document, **changes})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 3}, r"cannot be used: version of the document is 3, but this pexeso reads 2"),
        ({"programs": [[{"text": "same"}]]}, r"reads no column\. The columns are 'age', 'first'"),
        ({"metadata": {}}, r"direction in its metadata is None, not 'source to target' or"),
        (
            {"metadata": {"direction": "sideways"}},
            r"direction in its metadata is 'sideways', not 'source to target' or",
        ),
        (
            {"metadata": {"direction": "source to target"}},
            r"writes a column that the table does not have: None\. Name the column",
        ),
        (
            {"metadata": {"direction": "target to source", "key_column": "mail"}},
            r"reads columns that the table does not have: 'first', 'last'\. The columns are 'room'",
        ),
        ({"columns": ["first", "x" * 9000]}, r"does not have: 'x{79}…\. The columns are"),
    ],
)
def test_documents_that_are_not_right_are_refused(rule, change, message):
    rule.write_text(changed(json.loads(rule.read_text()), **change))
    with pytest.raises(InputError, match=message) as refused:
        learn(PEOPLE, MAILS, program=rule)
    assert str(refused.value).startswith(f"The program '{rule}' ")
    assert len(str(refused.value)) < 700


@pytest.mark.parametrize("length", [1, 10**9])
def test_numbers_as_large_as_allowed_take_no_time_and_join_nothing(rule, length):
    document = json.loads(rule.read_text())
    document["programs"][0][0] |= {"start": 10**9, "length": length, "shorter": True}
    rule.write_text(json.dumps(document))
    assert learn(PEOPLE, MAILS, program=rule, fuzzy=False).n_rows["program"] == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"cannot be used: the document is not JSON"),
        (b"\xff\xfe\x00", r"cannot be read: it is not UTF-8"),
        (b" " * (MAX_DOCUMENT + 2), r"cannot be used: the document has 16,777,217 characters"),
    ],
    ids=["empty", "bytes", "large"],
)
def test_files_that_hold_no_program_are_refused(tmp_path, content, message):
    path = tmp_path / "rule.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        learn(PEOPLE, MAILS, program=path)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file or directory"):
        learn(PEOPLE, MAILS, program=tmp_path / "none.json")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        learn(PEOPLE, MAILS, program=tmp_path)


def test_several_key_columns_are_refused(rule):
    with pytest.raises(InputError, match=r"writes one column of the table\. Name one, not 2\."):
        learn(PEOPLE, MAILS, program=rule, target_columns=["mail", "room"])
