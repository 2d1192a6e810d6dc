"""GraphML, read back by an XML parser, and by networkx where it is installed."""

import re
import xml.etree.ElementTree as ElementTree
from importlib.util import find_spec

import pytest

from pexeso.joins.exports.files import FORMATS, write_export
from tests.joins.exports.edges_in_memory import EdgeRows, edge, hostile_edges

SPACE = "{http://graphml.graphdrawing.org/xmlns}"
NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read(path):
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
    nodes, links = read(write_export(FORMATS["graphml"], edges, tmp_path / "a.graphml"))
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
    nodes, _ = read(write_export(FORMATS["graphml"], EdgeRows(rows), tmp_path / "a.graphml"))
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
