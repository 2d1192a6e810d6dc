"""Edges in files, each format read back by what it is for, and which edges are kept of many."""

import csv
import errno
import json
import re
import xml.etree.ElementTree as ElementTree
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec

import jinja2
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from pexeso.errors import InputError, OutputError
from pexeso.joins.exports import files
from pexeso.joins.exports.files import (
    EDGES,
    FORMATS,
    OF_FILES,
    format_named,
    format_of_file,
    local_name,
    mermaid_lines,
    strongest,
    write_export,
)
from tests.joins.exports.edges_in_memory import HOSTILE, EdgeRows, edge, hostile_edges


def batches(rows, size):
    table = pa.Table.from_pylist([dict.fromkeys(EDGES.names) | row for row in rows], EDGES)
    return table.to_batches(max_chunksize=size)


@pytest.mark.parametrize("size", [1, 3, 100])
def test_the_strongest_edges_are_those_of_most_joinability_then_values_then_names(size):
    given = [(0.5, 9, "a"), (1.0, 2, "b"), (1.0, 7, "d"), (1.0, 7, "c"), (0.9, 50, "e")]
    rows = [
        {"joinability": share, "matched": matched, "left_table": name}
        for share, matched, name in given
    ]
    best, n_edges = strongest(batches(rows, size), 4)
    assert best["left_table"].to_pylist() == ["c", "d", "b", "e"]
    assert n_edges == 5


def test_of_no_edges_none_is_the_strongest():
    best, n_edges = strongest([], 4)
    assert (best.schema, best.num_rows, n_edges) == (EDGES, 0, 0)


def test_json_lines_are_the_rows_as_json_writes_them(tmp_path):
    rows, edges = hostile_edges()
    path = write_export(OF_FILES[".jsonl"], edges, tmp_path / "a.jsonl")
    expected = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    assert path.read_bytes() == expected.encode()


def test_parquet_has_the_rows(tmp_path):
    rows, edges = hostile_edges()
    read = pq.read_table(write_export(OF_FILES[".parquet"], edges, tmp_path / "a.parquet"))
    assert read.schema.equals(EDGES)
    assert read.to_pylist() == rows


def test_csv_has_the_rows(tmp_path):
    rows, edges = hostile_edges()
    path = write_export(OF_FILES[".csv"], edges, tmp_path / "a.csv")
    with path.open(newline="", encoding="utf-8") as stream:
        read = list(csv.DictReader(stream))
    assert [row["left_column"] for row in read] == [row["left_column"] for row in rows]
    assert [float(row["joinability"]) for row in read] == [row["joinability"] for row in rows]


def test_a_map_names_the_options_of_its_graph_in_words(tmp_path):
    edges = EdgeRows()
    edges.options = {"method": "overlap", "max_distance": None, "k": 3}
    page = write_export(OF_FILES[".html"], edges, tmp_path / "a.html").read_text("utf-8")
    assert "<li>method <b>overlap</b></li><li>joins of a column at most <b>3</b></li>" in page
    edges.options = {"fold_copies": True, "seed": 0}
    page = write_export(OF_FILES[".html"], edges, tmp_path / "b.html").read_text("utf-8")
    assert "<li>copies <b>folded</b></li>" in page
    assert "seed" not in page


@pytest.mark.parametrize("suffix", OF_FILES)
def test_a_graph_without_edges_is_a_file_too(tmp_path, suffix):
    assert write_export(OF_FILES[suffix], EdgeRows(), tmp_path / f"a{suffix}").is_file()


def test_a_file_that_is_there_is_kept_or_replaced_whole(tmp_path):
    path, form = tmp_path / "a.jsonl", OF_FILES[".jsonl"]
    path.write_text("mine")
    with pytest.raises(OutputError, match="is there already"):
        write_export(form, hostile_edges()[1], path)
    assert path.read_text() == "mine"

    class Broken(EdgeRows):
        def batches(self):
            yield from super().batches()
            raise OutputError("stopped")

    with pytest.raises(OutputError, match="stopped"):
        write_export(form, Broken(hostile_edges()[0]), path, overwrite=True)
    assert path.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [path]
    write_export(form, hostile_edges()[1], path, overwrite=True)
    assert path.read_text().startswith("{")


@pytest.mark.parametrize("there", [True, False])
def test_a_folder_that_was_made_goes_where_the_file_cannot_be_written(tmp_path, there):
    class Fails(EdgeRows):
        def batches(self):
            raise OSError(errno.ENOSPC, "No space left on device")

    folder = tmp_path / "models" / "lake"
    if there:
        folder.mkdir(parents=True)
    with pytest.raises(OutputError, match="No space left on device"):
        write_export(FORMATS["dbt"], Fails(), folder)
    assert folder.exists() == there
    assert [*tmp_path.iterdir()] == [folder.parent] * there


def test_a_folder_that_is_not_there_is_made_for_a_tool_that_reads_folders(tmp_path):
    path = write_export(FORMATS["dbt"], EdgeRows(), tmp_path / "new" / "models")
    assert path == tmp_path / "new" / "models" / "lake_joins.yml"
    with pytest.raises(OutputError, match="there is no folder"):
        write_export(OF_FILES[".csv"], EdgeRows(), tmp_path / "none" / "a.csv")
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be made"):
        write_export(FORMATS["dbt"], EdgeRows(), tmp_path / "file" / "models")


def test_other_names_are_refused():
    with pytest.raises(InputError, match=r"must end in .jsonl.*, .graphml or .html"):
        format_of_file("joins.xlsx")
    with pytest.raises(InputError, match="format must be one of dbt, openmetadata"):
        format_named("excel")


SPACE = "{http://graphml.graphdrawing.org/xmlns}"
NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read_graphml(path):
    """Return the keys, the nodes by id and the edges of a GraphML file."""
    root = ElementTree.parse(path).getroot()
    assert root.tag == f"{SPACE}graphml"
    keys = {key.get("id"): key.attrib for key in root.iter(f"{SPACE}key")}
    (graph,) = root.iter(f"{SPACE}graph")
    assert graph.get("edgedefault") == "directed"
    nodes = {node.get("id"): data_of(node, keys, "node") for node in graph.iter(f"{SPACE}node")}
    edges = [
        (element.get("source"), element.get("target"), data_of(element, keys, "edge"))
        for element in graph.iter(f"{SPACE}edge")
    ]
    return nodes, edges


def data_of(element, keys, domain):
    fields = {}
    for data in element.iter(f"{SPACE}data"):
        key = keys[data.get("key")]
        assert key["for"] == domain
        fields[key["attr.name"]] = data.text or ""
    return fields


def test_nodes_and_edges_are_those_given(tmp_path):
    rows, edges = hostile_edges()
    nodes, links = read_graphml(write_export(FORMATS["graphml"], edges, tmp_path / "a.graphml"))
    names = {(row["left_table"], row["left_column"]) for row in rows}
    names |= {(row["right_table"], row["right_column"]) for row in rows}
    shown = {tuple(NO_XML.sub("\ufffd", part) for part in name) for name in names}
    assert {(node["table"], node["column"]) for node in nodes.values()} == shown
    assert len(nodes) == len(names)
    assert [fields["matched"] for _, _, fields in links] == [str(row["matched"]) for row in rows]
    for (source, target, data), row in zip(links, rows, strict=True):
        assert nodes[source]["table"] == NO_XML.sub("\ufffd", row["left_table"])
        assert nodes[target]["column"] == NO_XML.sub("\ufffd", row["right_column"])
        assert float(data["joinability"]) == row["joinability"]
        assert data["right_unique"] == str(row["right_unique"]).lower()


def test_a_node_tells_of_its_copies(tmp_path):
    rows = [
        edge(("a", "x"), ("b", "y"), copies=(2, 0)),
        edge(("b", "y"), ("a", "x"), copies=(0, 2)),
    ]
    nodes, _ = read_graphml(
        write_export(FORMATS["graphml"], EdgeRows(rows), tmp_path / "a.graphml")
    )
    assert {(node["table"], node["copies"]) for node in nodes.values()} == {("a", "2"), ("b", "0")}


@pytest.mark.skipif(find_spec("networkx") is None, reason="networkx is not installed")
def test_networkx_reads_it(tmp_path):
    import networkx

    rows, edges = hostile_edges()
    graph = networkx.read_graphml(write_export(FORMATS["graphml"], edges, tmp_path / "a.graphml"))
    assert graph.is_directed()
    assert graph.number_of_edges() == len(rows)
    assert sorted(fields["joinability"] for _, _, fields in graph.edges(data=True)) == sorted(
        row["joinability"] for row in rows
    )


LINES = {
    "table": re.compile(r'  subgraph (t\d+)\["([^"\[\]{}<>`|%\n]+)"\]'),
    "column": re.compile(r'    (c\d+)\["([^"\[\]{}<>`|%\n]+)"\]'),
    "both": re.compile(r'  (c\d+)\["([^"\[\]{}<>`|%\n]+)<br/>([^"\[\]{}<>`|%\n]+)"\]'),
    "end": re.compile(r"  end"),
    "arrow": re.compile(r'  (c\d+) (<?-->)\|"([\d.]+ %(?: / [\d.]+ %)?)"\| (c\d+)'),
}


def parsed(lines):
    """Return the columns by id and the arrows; refuse a line that is none of the grammar."""
    first, *others = lines
    assert first == "flowchart LR"
    columns, arrows, table = {}, [], None
    for line in others:
        kind, match = next(
            (kind, match) for kind, pattern in LINES.items() if (match := pattern.fullmatch(line))
        )
        if kind == "table":
            table = text_of(match[2])
        elif kind == "both":
            columns[match[1]] = (text_of(match[2]), text_of(match[3]))
        elif kind == "column":
            columns[match[1]] = (table, text_of(match[2]))
        elif kind == "arrow":
            arrows.append((columns[match[1]], match[2], match[3], columns[match[4]]))
    return columns, arrows


def text_of(label):
    return re.sub(r"#(\d+);", lambda match: chr(int(match[1])), label)


def test_names_stay_names():
    rows, edges = hostile_edges()
    columns, arrows = parsed(mermaid_lines(edges))
    assert {name for column in columns.values() for name in column} == set(HOSTILE)
    left = sorted((row["left_table"], row["left_column"]) for row in rows)
    assert [arrow[0] for arrow in arrows] == left


def test_a_table_with_several_columns_is_a_box():
    rows = [edge(("a", "x"), ("b", "y")), edge(("a", "z"), ("b", "y"))]
    assert list(mermaid_lines(EdgeRows(rows))) == [
        "flowchart LR",
        '  subgraph t0["a"]',
        '    c0["x"]',
        '    c1["z"]',
        "  end",
        '  c2["b<br/>y"]',
        '  c0 -->|"75.0 %"| c2',
        '  c1 -->|"75.0 %"| c2',
    ]


def test_both_directions_are_one_line():
    a, b, c = ("a", "x"), ("b", "y"), ("c", "z")
    rows = [edge(a, b, 4), edge(a, c, 3), edge(b, a, 4), edge(b, c, 2), edge(c, b, 3)]
    _, arrows = parsed(mermaid_lines(EdgeRows(rows)))
    assert arrows == [
        (a, "<-->", "100.0 %", b),
        (a, "-->", "75.0 %", c),
        (b, "<-->", "50.0 % / 75.0 %", c),
    ]


def test_the_best_edges_are_kept_and_the_others_counted(monkeypatch):
    monkeypatch.setattr(files, "MAX_EDGES", 3)
    rows = [edge(("a", "x"), (f"b{at}", "y"), at, 10) for at in (5, 9, 7, 8, 1)]
    lines = list(mermaid_lines(EdgeRows(rows[:2], rows[2:])))
    assert lines[1] == "%% 2 more edges, of smaller joinability or fewer values"
    _, arrows = parsed([lines[0], *lines[2:]])
    assert [arrow[2] for arrow in arrows] == ["70.0 %", "80.0 %", "90.0 %"]


def test_no_edge_is_an_empty_chart():
    assert list(mermaid_lines(EdgeRows())) == ["flowchart LR"]


def read_dbt(path):
    """Return the tables of the one source, held against what dbt takes."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert document.keys() == {"version", "sources"}
    assert document["version"] == 2
    (source,) = document["sources"]
    assert source.keys() == {"name", "quoting", "tables"}
    for table in source["tables"]:
        assert table.keys() <= {"name", "columns"}
        for column in table.get("columns", []):
            assert column.keys() == {"name", "quote", "description", "data_tests"}
            for test in column["data_tests"]:
                assert test.keys() == {"relationships"}
                relation = test["relationships"]
                assert relation.keys() == {"arguments", "config"}
                assert relation["arguments"].keys() == {"to", "field"}
                assert relation["config"].keys() == {"severity", "meta"}
                assert relation["config"]["severity"] == "warn"
    return source


def rendered(template):
    return jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(template).render()


def source_of(expression):
    """Return the arguments of `source(...)`, evaluated as Jinja does."""
    called = []
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
    template = environment.from_string("{{ " + expression + " }}")
    template.render(source=lambda *names: called.append(names) or "")
    return called[0]


def sql_name(field):
    assert field[0] == field[-1] == '"'
    assert '"' not in field[1:-1].replace('""', "")
    return field[1:-1].replace('""', '"')


def test_hostile_names_come_back_as_they_are(tmp_path):
    rows, edges = hostile_edges()
    source = read_dbt(write_export(FORMATS["dbt"], edges, tmp_path))
    relations = []
    for table in source["tables"]:
        for column in table.get("columns", []):
            for test in column["data_tests"]:
                arguments = test["relationships"]["arguments"]
                name, parent = source_of(arguments["to"])
                assert name == "lake"
                field = sql_name(rendered(arguments["field"]))
                relations.append((rendered(table["name"]), rendered(column["name"]), parent, field))
            assert "4 distinct values are in " in rendered(column["description"])
    names = ("left_table", "left_column", "right_table", "right_column")
    assert relations == [tuple(row[name] for name in names) for row in rows]
    assert {rendered(table["name"]) for table in source["tables"]} == set(HOSTILE)


def test_what_was_measured_is_told(tmp_path):
    parent = ("parents", "key")
    rows = [
        edge(("a", "x"), parent, 4, 4, unique=True),
        edge(("a", "y"), parent, 3, 4, unique=True),
        edge(("b", "x"), parent, 4, 4),
    ]
    source = read_dbt(write_export(FORMATS["dbt"], EdgeRows(rows), tmp_path))
    columns = [column for table in source["tables"] for column in table.get("columns", [])]
    tests = [column["data_tests"][0]["relationships"]["config"] for column in columns]
    assert {test["severity"] for test in tests} == {"warn"}
    assert tests[1]["meta"] == {
        "joinability": 0.75, "matched": 3, "total": 4, "parent_is_unique": True,
    }  # fmt: skip
    assert [column["description"] for column in columns] == [
        "All 4 distinct values are in parents:key, which is unique.",
        "75.0 % of 4 distinct values are in parents:key, which is unique.",
        "All 4 distinct values are in parents:key.",
    ]


def test_each_parent_is_a_table_of_the_source_once(tmp_path):
    rows = [
        edge(("a", "x"), ("b", "y")),
        edge(("a", "x"), ("z", "y")),
        edge(("b", "y"), ("z", "y")),
    ]
    source = read_dbt(write_export(FORMATS["dbt"], EdgeRows(rows), tmp_path))
    assert [table["name"] for table in source["tables"]] == ["a", "b", "z"]


def test_columns_without_a_name_have_no_test(tmp_path):
    rows = [
        edge(("a", "#1"), ("b", "y")),
        edge(("a", "x"), ("b", "#0")),
        edge(("a", "#x"), ("b", "y")),
    ]
    source = read_dbt(write_export(FORMATS["dbt"], EdgeRows(rows), tmp_path))
    assert [column["name"] for column in source["tables"][0]["columns"]] == ["#x"]


def test_the_source_has_the_name_asked_for(tmp_path):
    namespace = "raw {{ data }}"
    rows = [edge(("a", "x"), ("b", "y"))]
    source = read_dbt(write_export(FORMATS["dbt"], EdgeRows(rows), tmp_path, namespace=namespace))
    test = source["tables"][0]["columns"][0]["data_tests"][0]["relationships"]
    assert rendered(source["name"]) == source_of(test["arguments"]["to"])[0] == "raw {{ data }}"


def test_no_edge_is_a_source_without_tables(tmp_path):
    assert read_dbt(write_export(FORMATS["dbt"], EdgeRows(), tmp_path))["tables"] == []


NAME = re.compile(r"((?!::)[^\n\r\x85\u2028\u2029]){1,256}")
"""A name of an entity or a column, as the schema has it; `.` of Java stops at these line breaks."""

PART = re.compile(r'"([^"]+)"|([^".]+)')
SERVER = "files.default.lake"


def split(qualified):
    """Return the names in a fully qualified name."""
    assert re.fullmatch(rf"({PART.pattern})(\.({PART.pattern}))*", qualified)
    assert len(qualified) <= 3072
    return [quoted or bare for quoted, bare in PART.findall(qualified)]


def read_openmetadata(path):
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
    first, second = read_openmetadata(path)
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
    return read_openmetadata(write_export(FORMATS["openmetadata"], edges, path, namespace=SERVER))


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
