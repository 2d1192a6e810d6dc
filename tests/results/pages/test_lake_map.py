"""Tests of the map of a lake: which joins it draws, where, and as a page of its own."""

import re
from base64 import b64encode
from hashlib import sha256

import numpy as np
import pyarrow as pa
import pytest
from hand_made import HOSTILE, Reader

from pexeso.joins.exports.files import EDGES, strongest
from pexeso.results.pages import lake_map
from pexeso.results.pages.lake_map import HEIGHT, MARGIN, WIDTH, map_page


def edges_of(n_tables, n_edges, seed=0):
    rng = np.random.default_rng(seed)
    rows = [
        {
            "left_table": f"t{rng.integers(n_tables)}.csv",
            "left_column": f"c{rng.integers(3)}",
            "right_table": f"t{rng.integers(n_tables)}.csv",
            "right_column": f"c{rng.integers(3)}",
            "joinability": 0.0,
            "matched": int(rng.integers(5, 10)),
            "total": 10,
            "right_total": 10,
            "right_unique": True,
            "left_copies": 0,
            "right_copies": 0,
        }
        for _ in range(n_edges)
    ]
    for row in rows:
        row["joinability"] = row["matched"] / row["total"]
    batch = pa.RecordBatch.from_pylist(rows, EDGES)
    return strongest([batch], len(rows))[0]


def pairs_of(edges):
    """Return the pairs of other tables, with their strongest edge, in the order of these."""
    pairs = {}
    for edge in edges.to_pylist():
        pair = frozenset((edge["left_table"], edge["right_table"]))
        if len(pair) == 2:
            pairs.setdefault(pair, []).append(edge)
    return pairs


@pytest.mark.parametrize(("n_tables", "n_edges"), [(0, 0), (2, 1), (9, 40), (40, 60), (700, 900)])
def test_a_map_draws_each_pair_of_tables_once_by_its_strongest_join(n_tables, n_edges):
    edges = edges_of(n_tables, n_edges)
    drawing, pairs = lake_map.lake_map(edges), pairs_of(edges)
    assert [line["edge"] for line in drawing.lines] == [some[0] for some in pairs.values()]
    assert [line["said"].count(" more join") for line in drawing.lines] == [
        int(len(some) > 1) for some in pairs.values()
    ]
    degrees = {
        name: sum(name in pair for pair in pairs)
        for name in dict.fromkeys(sorted(set().union(*pairs)))
    }
    assert {point["name"]: point["n_joins"] for point in drawing.points} == degrees
    assert (drawing.n_joins, drawing.n_tables) == (len(pairs), len(degrees))
    places = {point["name"]: (point["x"], point["y"]) for point in drawing.points}
    for line in drawing.lines:
        ends = {(line["x1"], line["y1"]), (line["x2"], line["y2"])}
        assert ends == {places[line["edge"][f"{side}_table"]] for side in ("left", "right")}
    for x, y in places.values():
        assert MARGIN <= x <= WIDTH - MARGIN
        assert MARGIN <= y <= HEIGHT - MARGIN
    assert len({*places.values()}) >= 0.9 * len(places)


def test_of_a_large_graph_the_strongest_joins_are_drawn_and_all_counted(monkeypatch):
    edges = edges_of(60, 300)
    pairs = pairs_of(edges)
    monkeypatch.setattr(lake_map, "MAX_TABLES", 20)
    monkeypatch.setattr(lake_map, "MAX_LINES", 15)
    drawing = lake_map.lake_map(edges)
    names = {point["name"] for point in drawing.points}
    strongest_first = [name for pair in pairs for name in sorted(pair)]
    assert names <= {*strongest_first}
    assert len(names) == 20
    expected = [some[0] for pair, some in pairs.items() if pair <= names][:15]
    assert [line["edge"] for line in drawing.lines] == expected
    assert (drawing.n_joins, drawing.n_tables) == (len(pairs), len(set().union(*pairs)))
    page = Reader(map_page(drawing, {"k": 20, HOSTILE: HOSTILE})).text
    assert "The strongest 15 of" in page
    assert "k 20" in page


def test_the_page_of_a_map_has_its_script_alone_and_escapes_names():
    edges = edges_of(5, 12)
    names = pa.array(
        [f"{HOSTILE}{name}" for name in edges["left_table"].to_pylist()], pa.large_string()
    )
    edges = edges.set_column(0, EDGES.field(0), names)
    page = map_page(lake_map.lake_map(edges), {})
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert script == lake_map.script()
    tags = Reader(page).tags
    assert "img" not in tags
    assert tags.count("script") == 1


def test_a_map_is_zoomed_and_filtered_in_a_browser(browser, write):
    path = write("map.html", map_page(lake_map.lake_map(edges_of(12, 30)), {}))
    from playwright.sync_api import expect

    page = browser.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(error))
    page.goto(path.as_uri())
    svg = page.locator(".map svg")
    whole = svg.get_attribute("viewBox")
    moving = page.evaluate(
        """() => {
          document.querySelector(".map button").click();
          const circle = document.querySelector("circle");
          const { x, y, width, height } = circle.getBoundingClientRect();
          return [x + width / 2, y + height / 2];
        }"""
    )
    expect(svg).not_to_have_attribute("viewBox", whole)
    expect(svg).to_have_attribute("style", "")
    at_rest = page.locator("circle").first.bounding_box()
    assert abs(at_rest["x"] + at_rest["width"] / 2 - moving[0]) < 1
    assert abs(at_rest["y"] + at_rest["height"] / 2 - moving[1]) < 1
    page.get_by_role("button", name="Whole map").click()
    expect(svg).to_have_attribute("viewBox", whole)
    page.get_by_label("Show tables").fill("T3.csv")
    shown = page.locator(".map [data-names]:not(.off)").evaluate_all(
        "parts => parts.map(part => part.dataset.names)"
    )
    assert shown
    assert all("t3.csv" in names for names in shown)
    assert errors == []
