"""`pexeso join --lineage`: OpenLineage events, held against what its schemas ask for."""

import csv
import shutil
from zipfile import ZipFile

import pytest

from pexeso import build_index
from tests.joins.exports.openlineage_rules import events_of


@pytest.fixture
def joined(run, small_index, places, tmp_path):
    """Return a function that joins with lineage and gives the header of the file."""

    def invoke(*options):
        out = tmp_path / "joined.csv"
        run(
            "join", small_index, f"{places}:place", "cities.csv:city", "-o", out, "--overwrite",
            "--lineage", tmp_path / "events.jsonl", *options,
        )  # fmt: skip
        with out.open(newline="") as stream:
            return next(csv.reader(stream))

    return invoke


def test_a_join_is_a_run_with_two_inputs_and_an_output(joined, small_lake, places, tmp_path):
    header = joined()
    start, complete = events_of(tmp_path / "events.jsonl")
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    assert start["run"] == complete["run"]
    assert start["eventTime"] <= complete["eventTime"]
    mine = {"namespace": "file", "name": str(places)}
    theirs = {"namespace": "file", "name": str(small_lake / "cities.csv")}
    assert complete["inputs"] == [mine, theirs]
    (output,) = complete["outputs"]
    assert output["name"] == str(tmp_path / "joined.csv")
    assert [field["name"] for field in output["facets"]["schema"]["fields"]] == header
    assert output["facets"]["columnLineage"]["fields"] == {
        name: {"inputFields": [{**source, "field": field}]}
        for name, source, field in [
            ("place", mine, "place"),
            ("visits", mine, "visits"),
            ("match_value", theirs, "city"),
            ("match_distance", theirs, "city"),
            ("city", theirs, "city"),
            ("country", theirs, "country"),
            ("people", theirs, "people"),
        ]
    }


def test_names_that_a_join_changes_keep_where_they_come_from(joined, places, tmp_path):
    places.write_text("place,country\nOslo,x\nRome,y\n", encoding="utf-8")
    header = joined("--suffix", "_of_lake", "--provenance", "table,value")
    fields = events_of(tmp_path / "events.jsonl")[1]["outputs"][0]["facets"]["columnLineage"]
    assert fields["fields"]["country_of_lake"]["inputFields"][0]["field"] == "country"
    assert "match_table" in header
    assert "match_table" not in fields["fields"]  # it names the table, and has no value of it


def test_events_are_appended(joined, tmp_path):
    joined()
    joined()
    events = events_of(tmp_path / "events.jsonl")
    assert [event["eventType"] for event in events] == ["START", "COMPLETE"] * 2
    assert len({event["run"]["runId"] for event in events}) == 2


def test_a_table_that_was_piped_in_is_no_file(run, small_index, places, tmp_path):
    run(
        "join", small_index, "-:place", "cities.csv:city", "-o", tmp_path / "joined.csv",
        "--lineage", tmp_path / "events.jsonl", input=places.read_text(encoding="utf-8"),
    )  # fmt: skip
    piped = {"namespace": "inmemory://", "name": "stdin"}
    for event in events_of(tmp_path / "events.jsonl"):
        assert event["inputs"][0] == piped


@pytest.mark.parametrize(
    ("name", "table"), [("cities.csv", "cities.csv"), ("all.zip", "all.zip/in/cities.csv")]
)
def test_a_lake_that_is_one_file_is_named_once(run, small_lake, places, tmp_path, name, table):
    lake, path = tmp_path / name, tmp_path / "one.pexeso"
    if name.endswith(".zip"):
        with ZipFile(lake, "w") as archive:
            archive.write(small_lake / "cities.csv", "in/cities.csv")
    else:
        shutil.copy(small_lake / "cities.csv", lake)
    build_index(lake, path, model="lexical")
    run(
        "join", path, f"{places}:place", f"{table}:city", "-o", tmp_path / "joined.csv",
        "--lineage", tmp_path / "events.jsonl",
    )  # fmt: skip
    for event in events_of(tmp_path / "events.jsonl"):
        assert event["inputs"][1] == {"namespace": "file", "name": str(tmp_path / table)}


def test_a_join_to_stdout_has_no_lineage(fail, small_index, places, tmp_path):
    said = fail(2, "join", small_index, f"{places}:place", "--lineage", tmp_path / "a.jsonl")
    assert "add -o OUT" in said


def test_a_file_that_cannot_be_written_is_told(fail, small_index, places, tmp_path):
    said = fail(
        1, "join", small_index, f"{places}:place", "cities.csv:city", "-o", tmp_path / "a.csv",
        "--lineage", tmp_path / "none" / "a.jsonl",
    )  # fmt: skip
    assert said.endswith(
        f"cannot be written: No such file or directory. The joined table is whole, in "
        f"'{tmp_path / 'a.csv'}'.\n"
    )
    assert (tmp_path / "a.csv").exists()
