"""Properties of dbt, read by PyYAML and rendered by Jinja as dbt does."""

import jinja2
import yaml

from pexeso.joins.exports.files import FORMATS, write_export
from tests.joins.exports.edges_in_memory import HOSTILE, EdgeRows, edge, hostile_edges


def read(path):
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
    source = read(write_export(FORMATS["dbt"], edges, tmp_path))
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
    source = read(write_export(FORMATS["dbt"], EdgeRows(rows), tmp_path))
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
    source = read(write_export(FORMATS["dbt"], EdgeRows(rows), tmp_path))
    assert [table["name"] for table in source["tables"]] == ["a", "b", "z"]


def test_columns_without_a_name_have_no_test(tmp_path):
    rows = [
        edge(("a", "#1"), ("b", "y")),
        edge(("a", "x"), ("b", "#0")),
        edge(("a", "#x"), ("b", "y")),
    ]
    source = read(write_export(FORMATS["dbt"], EdgeRows(rows), tmp_path))
    assert [column["name"] for column in source["tables"][0]["columns"]] == ["#x"]


def test_the_source_has_the_name_asked_for(tmp_path):
    namespace = "raw {{ data }}"
    rows = [edge(("a", "x"), ("b", "y"))]
    source = read(write_export(FORMATS["dbt"], EdgeRows(rows), tmp_path, namespace=namespace))
    test = source["tables"][0]["columns"][0]["data_tests"][0]["relationships"]
    assert rendered(source["name"]) == source_of(test["arguments"]["to"])[0] == "raw {{ data }}"


def test_no_edge_is_a_source_without_tables(tmp_path):
    assert read(write_export(FORMATS["dbt"], EdgeRows(), tmp_path))["tables"] == []
