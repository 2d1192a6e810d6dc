"""Joins of tables for OpenMetadata, held against what its schema asks of them."""

import json
import re
from datetime import UTC, datetime, timedelta

from pexeso.joins.exports.files import FORMATS, local_name, write_export
from tests.joins.exports.edges_in_memory import EdgeRows, edge, hostile_edges

NAME = re.compile(r"((?!::)[^\n\r\x85\u2028\u2029]){1,256}")
"""A name of an entity or a column, as the schema has it; `.` of Java stops at these line breaks."""

PART = re.compile(r'"([^"]+)"|([^".]+)')
SERVER = "files.default.lake"


def split(qualified):
    """Return the names in a fully qualified name."""
    assert re.fullmatch(rf"({PART.pattern})(\.({PART.pattern}))*", qualified)
    assert len(qualified) <= 3072
    return [quoted or bare for quoted, bare in PART.findall(qualified)]


def read(path):
    """Return the lines, held against the types tableJoins, columnJoins and joinedWith."""
    *texts, end = path.read_text(encoding="utf-8").split("\n")
    assert end == ""
    lines = [json.loads(text) for text in texts]
    for line in lines:
        assert line.keys() == {"table", "joins"}
        assert len(split(line["table"])) == 4
        joins = line["joins"]
        assert joins.keys() == {"startDate", "dayCount", "columnJoins"}
        day = datetime.fromisoformat(joins["startDate"]).replace(tzinfo=UTC)
        assert timedelta(0) <= datetime.now(UTC) - day < timedelta(days=2)
        assert joins["dayCount"] == 1
        for column in joins["columnJoins"]:
            assert column.keys() == {"columnName", "joinedWith"}
            assert NAME.fullmatch(column["columnName"])
            for joined in column["joinedWith"]:
                assert joined.keys() == {"fullyQualifiedName", "joinCount"}
                assert type(joined["joinCount"]) is int
                *_, table, name = names = split(joined["fullyQualifiedName"])
                assert len(names) == 5
                assert NAME.fullmatch(table)
                assert NAME.fullmatch(name)
    return lines


def test_joins_stand_by_table_and_column(tmp_path):
    rows = [
        edge(("a.csv", "x"), ("b", "y"), 4),
        edge(("a.csv", "x"), ("c", "z.q"), 3),
        edge(("a.csv", "y"), ("b", "y"), 2),
        edge(("b", "y"), ("a.csv", "x"), 1),
    ]
    path = tmp_path / "joins.jsonl"
    write_export(FORMATS["openmetadata"], EdgeRows(rows[:2], rows[2:]), path, namespace=SERVER)
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


def written(edges, path):
    return read(write_export(FORMATS["openmetadata"], edges, path, namespace=SERVER))


def test_names_that_openmetadata_reserves_are_written_as_it_does(tmp_path):
    reserved = EdgeRows([edge(('a"b::c>d', "x"), ("b", "y"))])
    (line,) = written(reserved, tmp_path / "joins.jsonl")
    assert line["table"] == (
        "files.default.lake.a__reserved__quote__b__reserved__colon__c__reserved__arrow__d"
    )


def test_names_that_openmetadata_cannot_hold_are_left_out(tmp_path):
    rows, edges = hostile_edges()
    names = [split(line["table"])[3] for line in written(edges, tmp_path / "joins.jsonl")]
    whole = [
        row["left_table"]
        for row in rows
        if not re.search("[\n\r\x85\u2028\u2029]", row["left_table"] + row["right_table"])
    ]
    assert 0 < len(whole) < len(rows)
    assert names == [local_name(name) for name in whole]
    longest = "x" * 256
    rows = [
        edge((longest, longest), ("b", "y")),
        edge((longest + "x", "y"), ("b", "y")),
        edge(("c", "y"), ("b", longest[:255] + ">")),
    ]
    (line,) = written(EdgeRows(rows), tmp_path / "long.jsonl")
    assert split(line["table"])[3] == longest


def test_columns_without_a_name_are_left_out_since_one_would_refuse_the_table(tmp_path):
    rows = [
        edge(("a", "#1"), ("b", "y")),
        edge(("a", "x"), ("b", "#0")),
        edge(("a", "x"), ("b", "y")),
    ]
    (line,) = written(EdgeRows(rows), tmp_path / "joins.jsonl")
    (column,) = line["joins"]["columnJoins"]
    assert column["columnName"] == "x"
    assert [split(join["fullyQualifiedName"])[3:] for join in column["joinedWith"]] == [["b", "y"]]
