"""Joins of tables for OpenMetadata, held against what its schema asks of them."""

import json
from datetime import UTC, datetime, timedelta

from pexeso.exports.formats import Naming
from pexeso.exports.registry import FORMATS, write_export
from tests.exports.edges_in_memory import EdgeRows, edge, hostile_edges


def read(path):
    """Return the lines, held against the types tableJoins, columnJoins and joinedWith."""
    *texts, end = path.read_text(encoding="utf-8").split("\n")
    assert end == ""
    lines = [json.loads(text) for text in texts]
    for line in lines:
        assert line.keys() == {"table", "joins"}
        joins = line["joins"]
        assert joins.keys() == {"startDate", "dayCount", "columnJoins"}
        day = datetime.fromisoformat(joins["startDate"]).replace(tzinfo=UTC)
        assert timedelta(0) <= datetime.now(UTC) - day < timedelta(days=2)
        assert joins["dayCount"] == 1
        for column in joins["columnJoins"]:
            assert column.keys() == {"columnName", "joinedWith"}
            assert column["columnName"]
            assert "::" not in column["columnName"]
            for joined in column["joinedWith"]:
                assert joined.keys() == {"fullyQualifiedName", "joinCount"}
                assert isinstance(joined["joinCount"], int)
    return lines


def test_joins_stand_by_table_and_column(tmp_path):
    rows = [
        edge(("a.csv", "x"), ("b", "y"), 4),
        edge(("a.csv", "x"), ("c", "z.q"), 3),
        edge(("a.csv", "y"), ("b", "y"), 2),
        edge(("b", "y"), ("a.csv", "x"), 1),
    ]
    path = tmp_path / "joins.jsonl"
    naming = Naming("files.default.lake")
    write_export(FORMATS["openmetadata"], EdgeRows(rows[:2], rows[2:]), path, naming=naming)
    first, second = read(path)
    assert first["table"] == 'files.default.lake."a.csv"'
    assert first["joins"]["columnJoins"] == [
        {
            "columnName": "x",
            "joinedWith": [
                {"fullyQualifiedName": "files.default.lake.b.y", "joinCount": 4},
                {"fullyQualifiedName": 'files.default.lake.c."z.q"', "joinCount": 3},
            ],
        },
        {
            "columnName": "y",
            "joinedWith": [{"fullyQualifiedName": "files.default.lake.b.y", "joinCount": 2}],
        },
    ]
    assert second["table"] == "files.default.lake.b"


def test_names_that_openmetadata_reserves_are_written_as_it_does(tmp_path):
    rows, edges = hostile_edges()
    path = write_export(FORMATS["openmetadata"], edges, tmp_path / "joins.jsonl")
    names = [line["table"].removeprefix("lake.") for line in read(path)]
    assert len(names) == len({row["left_table"] for row in rows})
    assert not any('"' in name.strip('"') for name in names)
    reserved = EdgeRows([edge(('a"b::c>d', "x"), ("b", "y"))])
    path = write_export(FORMATS["openmetadata"], reserved, tmp_path / "other.jsonl")
    assert read(path)[0]["table"] == (
        "lake.a__reserved__quote__b__reserved__colon__c__reserved__arrow__d"
    )
