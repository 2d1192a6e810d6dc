"""Tests of the drawing of a join graph: what is drawn, where, and what is left out."""

from itertools import combinations

import pytest
from hand_made import HOSTILE
from test_redundancy_page import Reader

from pexeso.results.pages.join_drawing import (
    BOX_WIDTH,
    MAX_LINES,
    MAX_OF_COLUMN,
    MAX_TABLES,
    join_drawing,
    join_graph_notebook,
)


def edge(left, right, matched=4, total=4):
    names = dict(zip(("left_table", "left_column"), left, strict=True))
    names |= dict(zip(("right_table", "right_column"), right, strict=True))
    return {**names, "joinability": matched / total, "matched": matched, "total": total}


def chain(n):
    return [edge((f"t{at:03}", "a"), (f"t{at + 1:03}", "b")) for at in range(n)]


def clique(n):
    names = [(f"t{at}", "x") for at in range(n)]
    return [edge(*ends) for ends in combinations(names, 2)]


def test_of_no_edge_there_is_no_drawing():
    assert join_drawing([]) is None
    assert join_graph_notebook("0 edges", []) == ""


def test_two_directions_are_one_line_with_two_heads():
    one, other = ("a", "x"), ("b", "y")
    [there] = join_drawing([edge(one, other)]).lines
    [both] = join_drawing([edge(one, other, 2), edge(other, one, 2)]).lines
    assert (there.heads.count("Z"), both.heads.count("Z")) == (1, 2)
    assert (there.kind, both.kind) == ("whole", "partly")
    assert there.said == "100.0 % of the values of a : x are in b : y"
    assert both.said.count("50.0 %") == 2


def test_the_head_stands_at_the_column_that_has_the_values():
    for ends in ((("a", "x"), ("b", "y")), (("b", "y"), ("a", "x"))):
        drawing = join_drawing([edge(*ends)])
        [line] = drawing.lines
        x = int(line.heads[1:].split()[0])
        [box] = [box for box in drawing.boxes if box.name == ends[1][0]]
        assert x in (box.x, box.x + BOX_WIDTH)


@pytest.mark.parametrize("rows", [chain(3), clique(4), clique(6), chain(30), clique(3) + chain(9)])
def test_boxes_lie_in_the_drawing_and_do_not_overlap(rows):
    drawing = join_drawing(rows)
    for box in drawing.boxes:
        assert 0 <= box.x < box.x + BOX_WIDTH <= drawing.width
        assert 0 <= box.y < box.y + box.height <= drawing.height
        assert all(box.y < row.y < box.y + box.height for row in box.rows)
    for one, other in combinations(drawing.boxes, 2):
        assert (
            abs(one.x - other.x) >= BOX_WIDTH
            or one.y + one.height <= other.y
            or other.y + other.height <= one.y
        )


def test_of_many_joins_the_first_are_drawn_and_all_counted():
    rows = chain(500)
    drawing = join_drawing(rows)
    assert len(drawing.boxes) == MAX_TABLES
    assert (drawing.n_tables, drawing.n_joins) == (501, 500)
    assert {box.name for box in drawing.boxes} <= {f"t{at:03}" for at in range(MAX_TABLES + 1)}
    pairs = [edge(("a", f"x{at}"), ("b", f"y{at}")) for at in range(200)]
    assert len(join_drawing(pairs).lines) == MAX_LINES


def test_of_one_column_few_lines_are_drawn():
    rows = [edge((f"t{at}", "x"), ("hub", "id")) for at in range(20)]
    assert len(join_drawing(rows).lines) == MAX_OF_COLUMN
    assert len(join_drawing(rows, 15).lines) == 15


def test_a_drawing_follows_from_the_rows_alone():
    rows = clique(6) + chain(12)
    assert join_drawing(rows) == join_drawing(iter(rows))


def test_names_are_texts_and_tags_are_closed():
    rows = [edge((HOSTILE, f"{HOSTILE}1"), ("b", HOSTILE))]
    html = join_graph_notebook(HOSTILE, rows)
    reader = Reader(f"<div>{html}</div>")
    assert {"script", "img"}.isdisjoint(reader.tags)
    assert "onerror" not in dict(reader.attributes)
