"""An agent records what the user said of a join, and its searches follow it."""

import pytest

import pexeso
from pexeso.faces.mcp.tool_call import Desk
from pexeso.lake.judgements import Judgement, read_judgements
from tests.faces.mcp.conftest import CITIES, caller


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judging")
    lake, written = folder / "lake", folder / "written"
    lake.mkdir()
    written.mkdir()
    for name in ("a", "b", "c"):
        (lake / f"{name}.csv").write_text("city\n" + "".join(f"{city}\n" for city in CITIES))
    (written / "mine.csv").write_text("town\nOslo\nRome\n")
    index = pexeso.build_index(lake, folder / "lake.pexeso").path
    return Desk.of(str(index), allow_read=[str(written)], allow_write=str(written)), index


def found_columns(call, **query) -> set[str]:
    answer = call("find_joins", fold_copies=False, **query)
    return {candidate["lake_column"] for candidate in answer["candidates"]}


def test_a_join_that_the_user_rejects_is_not_found_again(desk):
    desk, _ = desk
    call, pair = caller(desk), {"column": "a.csv:city", "lake_column": "b.csv:city"}
    assert found_columns(call, column="a.csv:city") == {"b.csv:city", "c.csv:city"}
    answer = call("judge_join", **pair, verdict="no")
    assert (answer["verdict"], answer["before"]) == ("no", None)
    assert found_columns(call, column="a.csv:city") == {"c.csv:city"}
    assert call("judge_join", **pair, verdict="yes")["before"] == "no"
    assert found_columns(call, column="a.csv:city") == {"b.csv:city", "c.csv:city"}


def test_values_and_columns_of_files_are_judged(desk):
    desk, index = desk
    call, pair = caller(desk), {"file": "mine.csv:town", "lake_column": "c.csv:city"}
    call("judge_join", **pair, your_value="Oslo", lake_value="Oslo", verdict="no")
    row = read_judgements(index).rows[-1]
    assert row == Judgement("mine.csv", "town", "c.csv", "city", "Oslo", "Oslo", "no")
    entries = call("explain_match", **pair)["entries"]
    assert [entry["query"] for entry in entries] == ["Rome"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"values": ["Oslo"], "lake_column": "b.csv:city"}, "and not values"),
        ({"column": "a.csv:city", "lake_column": "b.csv:none"}, "no column"),
        ({"column": "a.csv:city", "lake_column": "b.csv:city", "your_value": "x"}, "both values"),
    ],
)
def test_what_is_no_pair_is_refused(desk, given, said):
    desk, index = desk
    before = len(read_judgements(index).rows)
    with pytest.raises(ValueError, match=said):
        caller(desk)("judge_join", **given, verdict="no")
    assert len(read_judgements(index).rows) == before
