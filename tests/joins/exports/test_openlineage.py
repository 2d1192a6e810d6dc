"""Names of data sets and events of joins, held against what OpenLineage asks for."""

import resource
import uuid
from datetime import UTC, datetime, timedelta, timezone

import pytest

from pexeso.errors import OutputError
from pexeso.faces.cli.join import PRODUCER
from pexeso.joins.exports.openlineage import DataSet, JoinMade, append_events
from tests.joins.exports.edges_in_memory import HOSTILE
from tests.joins.exports.openlineage_rules import events_of

MINE, THEIRS = DataSet.of("/data/mine.csv"), DataSet.of("s3://lake/geo/cities.csv")
STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def join_of(columns):
    return JoinMade(MINE, THEIRS, DataSet.of("/data/joined.csv"), columns, PRODUCER)


@pytest.mark.parametrize(
    ("place", "within", "expected"),
    [
        ("/data/a.csv", None, ("file", "/data/a.csv")),
        ("file:///data/a.csv", None, ("file", "/data/a.csv")),
        ("file://host/data/a.csv", None, ("file://host", "/data/a.csv")),
        ("s3://bucket/lake/a.csv", None, ("s3://bucket", "lake/a.csv")),
        ("s3a://bucket/lake/a.csv", None, ("s3://bucket", "lake/a.csv")),
        ("gcs://bucket/lake/a.csv", None, ("gs://bucket", "lake/a.csv")),
        ("abfs://box@acc/lake/a.csv", None, ("abfss://box@acc", "lake/a.csv")),
        ("hdfs://name:8020/lake/a.csv", None, ("hdfs://name:8020", "/lake/a.csv")),
        ("geo/a.csv", "s3://bucket/lake/", ("s3://bucket", "lake/geo/a.csv")),
        ("geo/a.csv", "/data/lake", ("file", "/data/lake/geo/a.csv")),
        ("a", "sales", ("sales", "a")),
    ],
)
def test_data_sets_are_named_as_openlineage_says(place, within, expected):
    named = DataSet.of(place, within=within)
    assert (named.namespace, named.name) == expected


def test_events_hold_to_the_schemas(tmp_path):
    columns = {name: [(MINE, name), (THEIRS, "city")] for name in HOSTILE} | {"match_table": []}
    ended = STARTED.astimezone(timezone(timedelta(hours=-5))) + timedelta(microseconds=1)
    path = tmp_path / "events.jsonl"
    append_events(path, join_of(columns).events(STARTED, ended, uuid.UUID(int=7, version=4)))
    start, complete = events_of(path)
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    assert start["run"] == complete["run"] == {"runId": "00000000-0000-4000-8000-000000000007"}
    assert start["outputs"] == []
    facets = complete["outputs"][0]["facets"]
    assert facets.keys() == {"schema", "columnLineage"}
    assert [field["name"] for field in facets["schema"]["fields"]] == list(columns)
    # A column that comes from nothing has no lineage: the list of its sources may not be empty.
    assert list(facets["columnLineage"]["fields"]) == list(HOSTILE)


def test_each_run_has_an_id_of_its_own():
    made = join_of({})
    ids = {made.events(STARTED, STARTED)[0]["run"]["runId"] for _ in range(2)}
    assert len(ids) == 2


def test_a_file_that_cannot_be_written_is_told(tmp_path):
    with pytest.raises(OutputError, match="cannot be written"):
        append_events(tmp_path / "none" / "events.jsonl", [])


def test_a_disk_that_fills_up_leaves_the_events_before_as_they_were(tmp_path):
    path = tmp_path / "events.jsonl"
    append_events(path, [{"event": 1}])
    before, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 5, limits[1]))
    try:
        with pytest.raises(OutputError, match="cannot be written: File too large"):
            append_events(path, [{"event": 2}])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
