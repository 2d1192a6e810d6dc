"""Mermaid flowcharts: lines of a small grammar, and names that stay names."""

import re

from pexeso.joins.exports import files
from pexeso.joins.exports.files import mermaid_lines
from tests.joins.exports.edges_in_memory import HOSTILE, EdgeRows, edge, hostile_edges

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
