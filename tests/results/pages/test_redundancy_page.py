"""Tests of the page of contained tables: its texts, its drawings, its bounds."""

import re
import time
from collections import defaultdict
from itertools import pairwise, product
from random import Random

import numpy as np
import pytest
from hand_made import HOSTILE, Reader
from long_runs import long_but

from pexeso.results.pages.layered_layout import (
    NAME_CELLS,
    LevelLine,
    crossings,
    layered_layout,
    short_name,
)
from pexeso.results.pages.redundancy import (
    MAX_DRAWINGS,
    MAX_PARTLY_CONTAINED,
    MAX_ROWS,
    MAX_TABLES,
    closure,
    connected_parts,
    lake_graph,
    reduction,
    redundancy_page,
    skeleton,
)


def report_of(pairs, plan=(), *, sizes=None, shares=None, alone=(), **changes):
    """Return a report of pairs of a parent and a child, and of plan entries of the same kind."""
    names = sorted({name for pair in pairs for name in pair} | set(alone))
    held = defaultdict(set)
    for parent, child in pairs:
        held[parent].add(child)
    sizes, shares, gone = sizes or {}, shares or {}, {child for _, child in plan}
    tables = [
        {"name": name, "rows": 3, "columns": 2, "bytes": sizes.get(name, 1000)} for name in names
    ]
    deletions = [
        {
            "table": child,
            "parent": parent,
            "sql": f"SELECT * FROM `{parent}`",
            "bytes": sizes.get(child, 1000),
            "rows": 3,
            "saving": 1.0,
            "seconds": 0.5,
            "derived": sorted(held[child]),
            "verified": True,
        }
        for parent, child in plan
    ]
    return {
        "lake": "lake",
        "edges": [
            {
                "parent": parent,
                "child": child,
                "containment": shares.get((parent, child), 1.0),
                "rows": 3,
                "exact": True,
            }
            for parent, child in pairs
        ],
        "stages": [
            {"name": "read", "edges": 0, "seconds": 1.0},
            {"name": "exact", "edges": len(pairs), "seconds": 0.25},
        ],
        "left_out": [],
        "tables": tables,
        "plan": {
            "delete": deletions,
            "keep": [name for name in names if name not in gone],
            "cost": 1.0,
            "keep_all_cost": 4.0,
            "optimal": True,
            "gap": 0.0,
            "freed_bytes": sum(deletion["bytes"] for deletion in deletions),
        },
        "refuted": [],
        **changes,
    }


def page_of(*arguments, **options) -> str:
    return redundancy_page(report_of(*arguments, **options), lake="lake")


def skeleton_of(report):
    graph = lake_graph(report)
    parts, _ = connected_parts(graph)
    outline = skeleton(graph, parts[0])
    return outline, [graph.names[table] for table in parts[0].tables]


SHOP = [("all", "year"), ("all", "copy"), ("copy", "all"), ("copy", "year"), ("year", "day")]
SHOP += [("all", "day"), ("copy", "day")]


def test_a_page_says_what_can_go_and_why():
    text = Reader(page_of(SHOP, [("all", "copy"), ("all", "year")], alone=["other"])).text
    assert "Redundant tables of lake" in text
    assert (
        "4 of 5 tables are contained whole in another; 2 can go , which frees 2.0 kB (40.0 % of "
        "5.0 kB) and saves 75.0 % of what keeping all costs." in text
    )
    assert "keeping all costs 4.00 a month the plan costs 1.00 a month proved" in text
    assert "year 1.0 kB all 0.5 s day SELECT * FROM `all`" in text
    assert "1 table is in no pair, and not drawn." in text
    assert "copy has the rows of all 100.0 % 3" in text
    assert "all has the rows of copy" not in text, "one of two is enough"
    assert "copy can go rebuilt from all 3 2 1.0 kB" in text
    assert "exact 7 0.2" in text


def test_the_cost_of_a_small_lake_is_written_without_an_exponent():
    report = report_of(SHOP)
    report["plan"]["keep_all_cost"] = 7.8e-6
    text = Reader(redundancy_page(report, lake="lake")).text
    assert "keeping all costs 0.0000078 a month" in text


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ({"optimal": False, "gap": 0.125}, "not proved best: a plan may cost up to 12.5 % less"),
        ({"optimal": False, "gap": None}, "how much less a plan could cost is unknown"),
    ],
)
def test_plans_that_are_not_proved_say_so(plan, said):
    report = report_of(SHOP, [("all", "copy")])
    report["plan"] |= plan
    text = Reader(redundancy_page(report, lake="lake")).text
    assert said in text
    assert "proved: no plan costs less" not in text


def test_statements_that_were_not_run_and_tables_that_stay_are_told():
    refused = [{"table": "day", "reason": "3 rows differ"}]
    report = report_of(SHOP, [("all", "copy")], refuted=refused, left_out=refused)
    report["plan"]["delete"][0] |= {"verified": False, "seconds": None, "derived": list("abcdefg")}
    text = Reader(redundancy_page(report, lake="lake")).text
    assert "statements were not run yet" in text
    assert "a , b , c , d , e and 2 more" in text
    assert "all unknown a ," in text
    assert text.count("day 3 rows differ") == 2


def test_a_lake_without_contained_tables_or_bytes_has_a_page():
    text = Reader(page_of([], alone=["one"])).text
    assert "None of 1 table is contained whole in another." in text
    assert "svg" not in Reader(page_of([], alone=["one"])).tags
    report = report_of([("a", "b")], [("a", "b")], sizes={"a": 0, "b": 0})
    report["plan"] |= {"cost": 0.0, "keep_all_cost": 0.0}
    assert "which frees 0 bytes ." in Reader(redundancy_page(report, lake="lake")).text
    assert "None of 0 tables" in Reader(page_of([])).text


def renamed(name):
    pairs = [(f"{name}a", f"{name}b"), (f"{name}b", f"{name}a"), (f"{name}a", f"{name}c")]
    report = report_of([*pairs, (f"{name}c", f"{name}d")], [(f"{name}a", f"{name}c")])
    report["edges"][-1]["containment"] = 0.5
    report["left_out"] = report["refuted"] = [{"table": name, "reason": name}]
    report["plan"]["delete"][0]["sql"] = name * 9
    return redundancy_page(report, lake=name)


@pytest.mark.parametrize(
    "name", [HOSTILE, "</title><b>", "]]><svg onload='1'>", 'a" b="', "{{ 1 }}"]
)
def test_names_and_statements_stay_texts(name):
    page = renamed(name)
    tame, hostile = Reader(renamed("tame")), Reader(page)
    assert hostile.tags == tame.tags
    assert [key for key, _ in hostile.attributes] == [key for key, _ in tame.attributes]
    assert not {"script", "img", "a", "link"} & set(tame.tags)
    assert f"Redundant tables of {name}" in hostile.text


def test_names_that_turn_the_page_around_are_written_out():
    page = renamed("a\u202eb\n\x00\ud800\u2028")
    assert "\u202e" not in page
    assert "a\\u202eb\\n\\x00\\ud800\\u2028" in page
    page.encode("utf-8")


def test_nothing_is_loaded_and_no_program_runs():
    page = page_of(SHOP, [("all", "copy")])
    assert "default-src 'none'; style-src 'unsafe-inline'" in page
    for word in ("http:", "https:", "url(", "@import", "src=", "href=", "javascript:", "<script"):
        assert word not in page


def test_every_table_is_named_and_every_drawing_described():
    random = Random(1)
    tables = [f"folder/table number {at}.parquet" for at in range(80)]
    pairs = [(one, other) for one, other in product(tables, tables) if random.random() < 0.008]
    reader = Reader(page_of([pair for pair in pairs if pair[0] < pair[1]], alone=tables))
    for name in tables:
        assert name in reader.texts
    roles = [value for name, value in reader.attributes if name == "role"]
    assert roles.count("img") == reader.tags.count("figure") == reader.tags.count("desc") > 1
    identifiers = [value for name, value in reader.attributes if name == "id"]
    assert len(identifiers) == len(set(identifiers))
    labels = [value for name, value in reader.attributes if name == "aria-labelledby"]
    assert {one for value in labels for one in value.split()} <= set(identifiers)
    assert reader.tags.count("caption") == reader.tags.count("table")
    scopes = [value for name, value in reader.attributes if name == "scope"]
    assert len(scopes) == reader.tags.count("th")
    headings = [tag for tag in reader.tags if re.fullmatch(r"h\d", tag)]
    assert headings[0] == "h1"
    assert set(headings[1:]) == {"h2"}


def test_the_same_report_gives_the_same_page_in_whatever_order_it_comes():
    random = Random(2)
    names = [f"t{at}" for at in range(40)]
    pairs = [(one, other) for one, other in product(names, names) if one < other][::3]
    shares = {pair: 0.5 for pair in pairs[::5]}
    plan = [("t0", "t17"), ("t0", "t25")]
    page = page_of(pairs, plan, shares=shares)
    for _ in range(3):
        random.shuffle(pairs)
        random.shuffle(plan)
        assert page_of(pairs, plan, shares=shares) == page
    numbers = re.findall(r'(?: d|x|y|width|height)="([^"]*)"', page)
    assert numbers
    assert not [number for number in numbers if "." in number], "whole pixels"


def reached_by_walking(edges, n):
    """Return which nodes are reached from which, one walk for each."""
    reached = set()
    for start in range(n):
        waiting = [other for one, other in edges if one == start]
        while waiting:
            node = waiting.pop()
            if (start, node) not in reached:
                reached.add((start, node))
                waiting += [other for one, other in edges if one == node]
    return reached


@pytest.mark.parametrize("seed", range(12))
def test_the_reduction_is_the_smallest_graph_that_says_the_same(seed):
    random = Random(seed)
    n = random.randrange(2, 12)
    edges = {(i, j) for i in range(n) for j in range(i + 1, n) if random.random() < 0.4}
    matrix = np.zeros((n, n), dtype=bool)
    for edge in edges:
        matrix[edge] = True
    assert set(map(tuple, np.argwhere(closure(matrix)).tolist())) == reached_by_walking(edges, n)
    kept = set(map(tuple, np.argwhere(reduction(matrix)).tolist()))
    assert kept <= edges
    assert reached_by_walking(kept, n) == reached_by_walking(edges, n)
    for edge in kept:
        assert edge not in reached_by_walking(kept - {edge}, n), "each is needed"


@pytest.mark.parametrize("seed", range(12))
def test_drawings_of_random_lakes_say_what_the_pairs_say(seed):
    """Tables are sets of a few rows, so that copies and chains abound."""
    random = Random(seed)
    rows = {
        f"t{at:02}": frozenset(random.choices(range(6), k=random.randrange(1, 6)))
        for at in range(16)
    }
    pairs = [
        (one, other)
        for one, other in product(rows, rows)
        if one != other and rows[other] <= rows[one]
    ]
    plan = {}
    for parent, child in pairs:
        if child not in plan and parent not in plan and child not in plan.values():
            plan[child] = parent
    plan = [(parent, child) for child, parent in plan.items()]
    graph = lake_graph(report_of(pairs, plan, alone=rows))
    parts, _ = connected_parts(graph)
    n_drawn = 0
    for part in parts:
        outline = skeleton(graph, part)
        names = [graph.names[table] for table in part.tables]
        assert sorted(table for group in outline.groups for table in group) == list(
            range(len(names))
        )
        for group in outline.groups:
            assert len({rows[names[table]] for table in group}) == 1
        contents = [rows[names[group[0]]] for group in outline.groups]
        assert len(contents) == len(set(contents)), "equal tables share a frame"
        group_of = {table: at for at, group in enumerate(outline.groups) for table in group}
        lines = [(one, other) for one, other in outline.whole]
        for parent, child in outline.rebuilds:
            assert (names[parent], names[child]) in plan
            if group_of[parent] != group_of[child]:
                lines.append((group_of[parent], group_of[child]))
        for one, other in lines:
            assert outline.levels[one] < outline.levels[other]
        covers = {
            (i, j)
            for i, j in product(range(len(contents)), repeat=2)
            if contents[j] < contents[i]
            and not any(contents[j] < between < contents[i] for between in contents)
        }
        n_groups = len(contents)
        assert covers <= set(lines)
        assert set(outline.whole) <= covers
        assert reached_by_walking(lines, n_groups) == {
            (i, j) for i, j in product(range(n_groups), repeat=2) if contents[j] < contents[i]
        }
        n_drawn += len(outline.rebuilds)
    assert n_drawn == len(plan)
    assert sum(len(part.tables) for part in parts) == len({name for pair in pairs for name in pair})


def test_copies_share_a_level_and_a_frame():
    outline, names = skeleton_of(report_of(SHOP, [("all", "copy")]))
    assert [[names[table] for table in group] for group in outline.groups] == [
        ["all", "copy"],
        ["day"],
        ["year"],
    ]
    assert outline.levels == [0, 2, 1]
    assert outline.whole == [(0, 2), (2, 1)]
    assert outline.n_implied == 2, "all and copy hold day, since year does"
    page = page_of(SHOP, [("all", "copy")])
    assert page.count('<rect class="frame" x="8"') == 1
    text = Reader(page).text
    assert "copy is rebuilt from all" in text
    assert "2 pairs that follow from the lines are not drawn." in text
    assert "1 frame around tables of the same rows" in text


def test_tables_that_are_partly_contained_have_lines_of_their_own():
    pairs = [("a", "b"), ("a", "part"), ("b", "part"), ("x", "y"), ("y", "x"), ("a", "x")]
    shares = dict.fromkeys([("a", "part"), ("b", "part"), ("x", "y"), ("y", "x")], 0.9)
    outline, names = skeleton_of(report_of(pairs, shares=shares))
    a, b, part, x, y = range(5)
    assert names == ["a", "b", "part", "x", "y"]
    assert sorted(outline.partly) == [(b, part, False), (x, y, True)]
    assert outline.whole == [(a, b), (a, x)]
    assert outline.n_implied == 1, "a holds as much of part as b does"
    assert outline.levels == [0, 1, 2, 1, 0]
    text = Reader(page_of(pairs, shares=shares)).text
    assert "part is partly in b" in text
    assert "x and y have rows in common" in text
    assert "part is partly in b 90.0 % 3" in text


def test_what_was_not_compared_whole_may_be_contained():
    report = report_of([("a", "b"), ("x", "y"), ("y", "x"), ("x", "z")])
    for edge in report["edges"][:2]:
        edge["exact"] = False
    text = Reader(redundancy_page(report, lake="lake")).text
    assert "4 of 5 tables may be contained whole in another" in text
    assert "b may be in a 100.0 % 3" in text
    assert "y may have the rows of x 100.0 % 3" in text, "one direction was not compared"
    assert "z is in x 100.0 % 3" in text


def test_partly_contained_tables_in_circles_are_drawn_up_to_a_number():
    names = [f"t{at:02}" for at in range(20)]
    pairs = [(one, other) for one, other in product(names, names) if one != other]
    report = report_of(pairs, shares=dict.fromkeys(pairs, 0.9))
    outline, _ = skeleton_of(report)
    assert set(outline.levels) == {0}
    assert len(outline.partly) == MAX_PARTLY_CONTAINED
    assert outline.n_omitted == 190 - MAX_PARTLY_CONTAINED
    assert "90 dotted lines more are not drawn." in Reader(redundancy_page(report, lake="l")).text


def overlaps(one, other):
    return abs(one[0] - other[0]) < 224 and abs(one[1] - other[1]) < 44


@pytest.mark.parametrize("seed", range(4))
def test_boxes_lie_inside_and_none_over_another(seed):
    random = Random(seed)
    names = [f"t{at}" for at in range(30)]
    pairs = [pair for pair in product(names, names) if pair[0] < pair[1] and random.random() < 0.15]
    pairs += [(other, one) for one, other in pairs[:4]]
    page = page_of(pairs, pairs[4:5])
    for drawing in re.findall(r"<svg class=.*?</svg>", page, re.DOTALL):
        width, height = map(int, re.search(r'viewBox="0 0 (\d+) (\d+)"', drawing).groups())
        boxes = [
            tuple(map(int, corner))
            for corner in re.findall(r'class="box[^"]*" x="(-?\d+)" y="(-?\d+)"', drawing)
        ]
        assert len(boxes) > 1
        for at, box in enumerate(boxes):
            assert 0 <= box[0] <= width - 224
            assert 0 <= box[1] <= height - 44
            assert not any(overlaps(box, other) for other in boxes[:at])


def test_a_layout_has_few_crossings_and_straight_chains():
    levels, heights = [0, 0, 0, 1, 1, 1, 2], [40] * 7
    lines = [LevelLine(0, 5, 0), LevelLine(1, 4, 1), LevelLine(2, 3, 2), LevelLine(0, 6, 0)]
    layout = layered_layout(levels, heights, lines, gap=10, line_gap=6)
    middles = layout.middles
    for one, other in pairwise([0, 1, 2]):
        ends = {0: 5, 1: 4, 2: 3}
        assert (middles[one] < middles[other]) == (middles[ends[one]] < middles[ends[other]])
    assert [len(points) for points in layout.waypoints] == [0, 0, 0, 1]
    for level in (0, 1):
        own = sorted(middles[node] for node in range(7) if levels[node] == level)
        assert all(other - one >= 50 for one, other in pairwise(own))
    assert crossings([[0, 1], [2, 3]], [[3], [2], [], []]) == 1
    assert crossings([[0, 1], [2, 3]], [[2, 3], [2, 3], [], []]) == 1
    assert crossings([[1, 0], [2, 3]], [[3], [2], [], []]) == 0
    assert layered_layout([], [], [], gap=1, line_gap=1).height == 0


def test_large_sets_are_drawn_in_part_and_small_ones_up_to_a_number():
    star = [("hub", f"t{at:03}") for at in range(100)]
    more = [(f"p{at:02}", f"q{at:02}") for at in range(MAX_DRAWINGS + 5)]
    sizes = {"hub": 10**6, "t050": 5000}
    page = page_of(star + more, [("hub", "t050"), ("hub", "t099")], sizes=sizes)
    text = Reader(page).text
    assert page.count("<figure>") == MAX_DRAWINGS
    assert f"There are {MAX_DRAWINGS + 6} sets of connected tables." in text
    assert "The 20 with the most tables are drawn, and 6 are not." in text
    assert "hub and 100 tables connected with it, of which the 59 largest are drawn and 41" in text
    drawing = re.search(r"<svg class=.*?</svg>", page, re.DOTALL)[0]
    assert drawing.count('class="box') == MAX_TABLES
    assert "t050 is rebuilt from hub" in drawing
    assert "t058" in drawing
    assert "t059" not in drawing, "of tables of one size the first by name"
    assert "t099 can go rebuilt from hub" in text


def layers(n_tables, n_pairs, n_sets, seed=3):
    """Return a lake of sets of connected tables, with a plan and many pairs."""
    random = Random(seed)
    names = [f"folder/table-{at:05}.parquet" for at in range(n_tables)]
    size = n_tables // n_sets
    pairs = set()
    while len(pairs) < n_pairs:
        start = random.randrange(n_sets) * size
        one, other = sorted(random.sample(range(start, start + size), 2))
        pairs.add((names[one], names[other]))
    plan = {}
    for parent, child in sorted(pairs):
        if parent not in plan:
            plan.setdefault(child, parent)
    return report_of(sorted(pairs), [(parent, child) for child, parent in plan.items()])


@pytest.mark.parametrize("n_sets", long_but([160], [1, 40, 160]))
def test_a_large_lake_has_a_page_of_bounded_size_soon(n_sets):
    report = layers(10_000, 100_000, n_sets)
    started = time.process_time()
    page = redundancy_page(report, lake="lake")
    assert time.process_time() - started < 20, "two seconds on an idle machine"
    assert len(page) < 3_000_000
    text = Reader(page).text
    n_deleted = len(report["plan"]["delete"])
    assert f"{n_deleted - MAX_ROWS:,} more tables of {n_deleted:,} not listed here" in text
    assert "99,000 more pairs of 100,000 not listed here; --json has all." in text


def test_short_names_fit_and_keep_both_ends():
    assert short_name("sales.csv") == "sales.csv"
    name = short_name("a/very/long/path/to/a/folder/of/sales_2024.parquet")
    assert len(name) == NAME_CELLS
    assert name.startswith("a/very/l")
    assert name.endswith("/sales_2024.parquet"[-18:])
    wide = short_name("販売" * 40)
    assert len(wide) <= NAME_CELLS // 2 + 1
    assert len(short_name("x" * 10**6)) == NAME_CELLS
    assert "\n" not in short_name("a\nb")
    assert short_name("e\u0301" * NAME_CELLS) == "e\u0301" * NAME_CELLS
