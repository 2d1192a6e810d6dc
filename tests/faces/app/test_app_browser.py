"""Tests of the app in a real browser: the whole way by mouse, by keyboard, and without scripts."""

import re
from contextlib import contextmanager
from csv import reader
from itertools import product
from pathlib import Path
from threading import Event

import pytest
from app_clients import served_to_browsers
from long_runs import EVERYTHING, long_but, long_cases_but

from pexeso.faces.app.jobs import Job
from pexeso.index import build_index

DEMO = Path(__file__).parents[3] / "pexeso" / "demo"
BROKEN_OFF = ("htmx:afterRequest", "htmx:sendAbort")
"""What is told of a request that a later one broke off, as it should."""

DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]

NAMES = (
    "Oslo", "Rome", "Madrid", "Vienna", "Lisbon", "Warsaw", "Helsinki", "Athens", "Dublin", "Tokyo",
)  # fmt: skip
LANDS = (
    "Norway", "Italy", "Spain", "Austria", "Portugal", "Poland", "Finland", "Greece", "Ireland",
    "Japan",
)  # fmt: skip


def csv(header, *columns):
    return "\n".join([header, *(",".join(map(str, row)) for row in zip(*columns, strict=True))])


YEARS = range(1990, 2000)
CAPITALS = csv("Capital,Country,founded", NAMES, LANDS, YEARS)
LAKE = {
    "geo/capitals.csv": CAPITALS,
    "geo/copy.csv": CAPITALS,
    "geo/lands.csv": csv("land,code", LANDS, [land[:2].upper() for land in LANDS]),
    "trade/fairs.csv": csv("town,held,visitors", NAMES[:8], YEARS[:8], range(100, 900, 100)),
    "trade/near.csv": csv("place,size", [f"{name}e" for name in NAMES], range(10)),
    "trade/broken.csv": "",
}
SPELT = [*NAMES[:3], *(f"{name}x" for name in NAMES[3:6])]
MINE = csv("city,year,spelt", NAMES[:6], YEARS[:6], SPELT)


@pytest.fixture(scope="module")
def served(browser, tmp_path_factory):
    """Serve an index; return its address and what opens it."""
    folder = tmp_path_factory.mktemp("app")
    for name, text in LAKE.items():
        path = folder / "lake" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    parts = ["overlap", "composite", "redundancy"]
    index = build_index(folder / "lake", folder / "lake.pexeso", parts=parts)
    with running(browser, index.path) as address_and_cookies:
        yield address_and_cookies


@contextmanager
def running(browser, index, start=None):
    """Serve an index, or what takes the files of one, and use the link."""
    with served_to_browsers(index, start) as (address, link):
        context = browser.new_context()
        context.new_page().goto(link)
        cookies = context.cookies()
        context.close()
        yield address, cookies


@pytest.fixture
def visit(browser, served):
    """Return a function that opens the first page in a browser of its own.

    At the end nothing was asked of another address, and no script has failed.
    """
    address, cookies = served
    contexts, heard = [], []

    def open_page(**options):
        context = browser.new_context(**{"viewport": DESK, **options})
        context.add_cookies(cookies)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)  # as of the other pages: machines are shared
        page.on("request", lambda request: heard.append(request.url))
        page.on("console", lambda message: heard.append(message.text))
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    expected = (address, "data:,", *BROKEN_OFF)
    assert [text for text in heard if not text.startswith(expected)] == []


@pytest.fixture
def mine(write):
    return write("my cities.csv", MINE)


def await_heading(page, name):
    page.get_by_role("heading", name=name).wait_for()


def give(page, file):
    page.set_input_files("#file", file)
    page.get_by_role("button", name="Choose a column").click()


def found_columns(page):
    return page.locator("#found article h2").all_inner_texts()


def at_rest(page):
    """Wait at the end of the block for what makes a list's columns match, which follows the list.

    Whoever leaves the page before breaks a request off, and the browser's console tells it.
    """
    return page.expect_response(lambda answer: "why=1" in answer.url)


def test_the_way_by_mouse(visit, mine):
    page = visit()
    give(page, mine)
    await_heading(page, "my cities.csv")
    page.get_by_role("link", name="city").click()
    await_heading(page, "What city joins with")
    names = found_columns(page)
    assert any(name.startswith("geo/capitals.csv : Capital") for name in names)
    assert "trade/fairs.csv : town" in found_columns(page)
    page.evaluate("window.kept = true")
    slider = page.get_by_label("Distance of values at most")
    box = slider.bounding_box()
    with at_rest(page):
        page.mouse.click(box["x"] + 1, box["y"] + box["height"] / 2)
    page.wait_for_url("**max_distance=0*")
    assert page.locator("output[for=max_distance]").inner_text() == "0.00"
    page.get_by_text("within distance 0,").wait_for()
    page.locator("#found .fill-exact").first.wait_for()  # what makes them match follows the list
    assert page.evaluate("window.kept")  # the page was not loaded again
    page.get_by_role("link", name="geo/capitals.csv : Capital").click()
    await_heading(page, "Why city joins with Capital")
    page.get_by_role("link", name="equal values").click()
    await_heading(page, "What city and Capital have in common")
    assert page.locator(".values li").count() == 6
    page.get_by_role("link", name="Preview the join").click()
    await_heading(page, "Your table, joined")
    assert "100.0 % of the values match (6 of 6)" in page.locator(".facts").inner_text()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download CSV").click()
    assert download.value.suggested_filename == "my cities-joined.csv"
    assert "Oslo,1990,Oslo,Oslo,0.0,Oslo,Norway,1990" in Path(download.value.path()).read_text()


WALKS = {
    "demo": ("my_autographs.csv", "birthdays.tsv", "signed_by", "person", 25, "CURIE, Marie"),
    "fivethirtyeight": (
        *("bad-drivers__bad-drivers.csv", "hate-crimes__hate_crimes.csv", "State", "state"),
        *(51, "Alabama"),
    ),
    "baseball": ("Teams.csv", "TeamsFranchises.csv", "franchID", "franchID", 2955, "1871"),
    "wikitables": ("203_115.csv", "204_606.csv", "Principal county", "County", 753, "Cabinhill"),
}
"""Lake, two of its files, the columns by which they join, joined rows, and the first cell."""


@pytest.mark.parametrize(
    ("lake", "viewport"),
    long_cases_but([("demo", DESK), ("wikitables", PHONE)], product(WALKS, (DESK, PHONE))),
    ids=lambda case: case if isinstance(case, str) else str(case["width"]),
)
def test_two_files_are_one_in_five_clicks(browser, request, tmp_path, lake, viewport):
    from pexeso.faces.app.start import Start

    own, other, column, lake_column, n_rows, first = WALKS[lake]
    folder = DEMO if lake == "demo" else request.getfixturevalue("lake_folder")(lake)
    files = [next(folder.rglob(name)) for name in (own, other)]
    start = Start(tmp_path)
    with running(browser, start.index, start) as (address, cookies):
        context = browser.new_context(viewport=viewport)
        context.add_cookies(cookies)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.goto(address)
        page.set_input_files("#files", files)
        clicks = [
            ("button", "Index the files", "Tables of the lake"),
            ("button", f"Find joins of {own}", own),
            ("link", column, f"What {column} joins with"),
            ("link", f"Join with {other} by {lake_column}", "Your table, joined"),
        ]
        for role, name, heading in clicks:
            page.get_by_role(role, name=name, exact=True).click()
            await_heading(page, heading)
            for shown in (DESK, PHONE, viewport):
                page.set_viewport_size(shown)
                assert page.evaluate("document.documentElement.scrollWidth") <= shown["width"]
        with page.expect_download() as download:
            page.get_by_role("link", name="Download CSV").click()
        with open(download.value.path(), encoding="utf-8", newline="") as file:
            names, *rows = list(reader(file))
        assert {"match_value", lake_column} <= {name.rpartition(":")[2] for name in names}
        assert (len(rows), rows[0][0]) == (n_rows, first)
        context.close()


def tab_to(page, name):
    """Press the tabulator until an element of this name has the focus, and return it."""
    for _ in range(60):
        page.keyboard.press("Tab")
        focused = page.locator(":focus")
        if focused.count() and page.evaluate(
            """(name) => {
              const one = document.activeElement;
              const label = one.labels && one.labels.length ? one.labels[0].textContent : "";
              return [one.textContent.trim(), label.trim()].some((each) => each.startsWith(name));
            }""",
            name,
        ):
            return focused
    raise AssertionError(f"No element named {name!r} is reached by the tabulator.")


def test_the_way_by_keyboard_alone(visit):
    page = visit()
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "Skip to the content"
    tab_to(page, "Or paste a table")
    page.keyboard.insert_text(MINE)
    tab_to(page, "Choose a column")
    page.keyboard.press("Enter")
    await_heading(page, "pasted.csv")
    tab_to(page, "city")
    page.keyboard.press("Enter")
    await_heading(page, "What city joins with")
    tab_to(page, "Share of my values")
    with at_rest(page):
        page.keyboard.press("End")
    page.wait_for_url("**min_joinability=1*")
    tab_to(page, "geo/capitals.csv : Capital")
    page.keyboard.press("Enter")
    await_heading(page, "Why city joins with Capital")
    tab_to(page, "Preview the join")
    page.keyboard.press("Enter")
    await_heading(page, "Your table, joined")
    tab_to(page, "Rows without a match")
    page.keyboard.press("ArrowDown")
    tab_to(page, "Preview")
    page.keyboard.press("Enter")
    page.wait_for_url("**how=inner*")
    assert page.get_by_role("cell", name="Norway").is_visible()


def test_the_way_without_scripts(visit, mine):
    page = visit(java_script_enabled=False)
    give(page, mine)
    page.get_by_role("link", name="city").click()
    page.get_by_label("Share of my values at least").fill("0.9")
    page.get_by_label("What joins").select_option("overlap")
    page.get_by_role("button", name="Search").click()
    page.wait_for_url("**method=overlap*")
    assert "geo/capitals.csv : Capital" in found_columns(page)[0]
    page.get_by_role("link", name="geo/capitals.csv : Capital").click()
    await_heading(page, "What city and Capital have in common")
    page.get_by_role("link", name="similar values").click()
    page.get_by_role("link", name="Preview the join").click()
    page.get_by_label("Several rows of the lake").select_option("first")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("cell", name="Norway").wait_for()


def test_two_ticked_columns_are_a_key(visit, mine):
    page = visit(java_script_enabled=False)
    give(page, mine)
    for name in ("city", "year"):
        page.get_by_label(f"{name} is part of the key").check()
    page.get_by_role("button", name="Search with the ticked columns").click()
    await_heading(page, "What city, year joins with")
    assert found_columns(page)[0].startswith("geo/capitals.csv : Capital, founded")
    page.get_by_role("link", name="trade/fairs.csv : town, held").click()
    await_heading(page, "Why city, year joins with trade/fairs.csv")
    page.get_by_role("link", name="Preview the join").click()
    assert "100.0 % of the keys match (6 of 6)" in page.locator(".facts").inner_text()


def test_the_way_back_keeps_what_was_chosen(visit, mine):
    page = visit()
    give(page, mine)
    page.get_by_role("link", name="city").click()
    await_heading(page, "What city joins with")
    with at_rest(page):
        page.get_by_label("Share of my values at least").fill("0.8")
    page.wait_for_url("**min_joinability=0.8*")
    shown = found_columns(page)
    page.get_by_role("link", name="trade/fairs.csv : town").click()
    await_heading(page, "Why city joins with town")
    page.go_back()
    await_heading(page, "What city joins with")
    assert page.get_by_label("Share of my values at least").input_value() == "0.8"
    assert found_columns(page) == shown
    page.go_back()
    await_heading(page, "my cities.csv")


def test_a_slider_that_is_moved_before_the_scripts_are_there_is_followed(visit, mine):
    page = visit()
    give(page, mine)
    held = []
    page.route("**/htmx.min.js*", lambda route: held.append(route))
    page.get_by_role("link", name="city").click(no_wait_after=True)
    page.get_by_label("Share of my values at least").fill("0.8")
    assert "min_joinability" not in page.url
    with at_rest(page):
        for route in held:
            route.continue_()
    page.wait_for_url("**min_joinability=0.8*")
    assert page.locator("output[for=min_joinability]").inner_text() == "80.0 %"


def test_the_join_graph_by_keyboard_and_without_scripts(visit):
    page = visit(java_script_enabled=False)
    page.get_by_role("link", name="Graph").click()
    page.get_by_label("Tables whose names contain").fill("geo/")
    page.get_by_label("Joins of a column, at most").select_option("all")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    await_heading(page, "Their columns")
    assert "text=geo" in page.url
    picture = page.get_by_role("img")
    assert "tables with their columns" in picture.get_attribute("aria-label")
    drawn = picture.locator("text.table").all_text_contents()
    assert {"geo/capitals.csv", "geo/copy.csv"} <= set(drawn)
    with page.expect_download() as download:
        page.get_by_role("link", name="Mermaid").click()
    assert download.value.suggested_filename == "joins.mmd"
    assert Path(download.value.path()).read_text().startswith("flowchart LR")
    page.get_by_role("link", name="why geo/lands.csv : land joins with").first.click()
    await_heading(page, "What land and Country have in common")


CAPITAL = "column=%230&lake_column=geo/capitals.csv:Capital"
ALIKE = {
    "/graph", "/acquire", "/search?column=%230&method=overlap",
    f"/match?{CAPITAL}&method=overlap", f"/join?{CAPITAL}&method=transform",
}  # fmt: skip
"""Pages of the same parts as another one."""

PATHS = (
    "/", "/lake", "/lake/table?name=geo/capitals.csv", "/lake/left-out",
    "/graph", "/graph?run=1", "/redundancy?run=1", "/acquire", "/judge",
    "/acquire?have=geo/capitals.csv:Country&budget=20",
)  # fmt: skip
OF_TABLE = (
    "", "/search?column=%230", "/search?column=%230&method=overlap",
    "/search?column=%232&max_distance=0&min_joinability=0.9",
    "/search?column=%230,%231", f"/match?{CAPITAL}", f"/match?{CAPITAL}&method=overlap",
    f"/match?{CAPITAL}&method=transform", "/match?column=%230,%231&lake_column=trade/fairs.csv",
    f"/join?{CAPITAL}", f"/join?{CAPITAL}&method=transform",
)  # fmt: skip


BROKEN_WORDS = r"""() => {
  const broken = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, range = document.createRange();
    for (const word of node.data.matchAll(/(?<![\p{L}\p{N}_])\p{L}{2,10}(?![\p{L}\p{N}_])/gu)) {
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const lines = new Set([...range.getClientRects()].map((each) => Math.round(each.top)));
      if (lines.size > 1) broken.push(word[0]);
    }
  }
  return broken;
}"""


@pytest.mark.parametrize("path", ["/lake", "/lake/table?name=geo/capitals.csv", "/graph?run=1"])
def test_short_words_of_lists_stand_on_one_line(visit, path):
    page = visit()
    page.goto(f"{page.url.rstrip('/')}{path}")
    long = "a very long name " * 20
    page.evaluate("(text) => document.querySelector('.list tbody th').prepend(text)", long)
    for width in (1280, 700):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(BROKEN_WORDS) == []
        assert page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize(
    "schemes", long_but([("light", "dark")], [("light", "dark"), ("dark", "light")])
)
def test_no_page_has_a_barrier(visit, mine, schemes):
    page = visit(bypass_csp=True)
    address = page.url.rstrip("/")
    give(page, mine)
    await_heading(page, "my cities.csv")
    table = page.url
    barriers, wide = [], []
    paths = [(address, path) for path in PATHS] + [(table, path) for path in OF_TABLE]
    paths = [(place, path) for place, path in paths if EVERYTHING or path not in ALIKE]
    for number, (place, path) in enumerate(paths):
        page.goto(f"{place}{path}")
        page.evaluate("for (const e of document.querySelectorAll('details')) e.open = true")
        for turn, (viewport, scheme) in enumerate(zip((DESK, PHONE), schemes, strict=True)):
            page.set_viewport_size(viewport)
            if page.evaluate("document.documentElement.scrollWidth") > viewport["width"]:
                wide.append((path, viewport["width"]))
            if turn != number % 2 and not EVERYTHING:
                continue  # the next page is looked at so
            page.emulate_media(color_scheme=scheme)
            # What stands around the contents is the same on all pages.
            part = "document" if number == 0 else "'main'"
            barriers += [
                (path, viewport["width"], scheme, *barrier) for barrier in axe_barriers(page, part)
            ]
    assert barriers == []
    assert wide == []


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "none"])
def test_a_page_that_takes_long_comes_by_itself(visit, monkeypatch, scripts):
    seen, run = Event(), Job._run

    def held(job, work):
        assert not job.address.startswith("/graph") or seen.wait(60)
        run(job, work)

    monkeypatch.setattr(Job, "_run", held)
    monkeypatch.setattr("pexeso.faces.app.app.PATIENCE", 0)
    page = visit(java_script_enabled=scripts, bypass_csp=True)
    await_heading(page, re.compile("Find what|Searching"))
    page.goto(f"{page.url.rstrip('/')}/graph?run=1&k={'all' if scripts else 100}")
    await_heading(page, "Comparing all columns")
    assert page.get_by_role("button", name="Cancel").is_visible()
    if scripts:
        assert axe_barriers(page) == []
    seen.set()
    await_heading(page, "Their columns")


def axe_barriers(page, part="document"):
    axe = pytest.importorskip("axe_playwright_python", reason="axe-core is not installed")
    [script] = Path(axe.__file__).parent.rglob("axe.min.js")
    page.add_script_tag(content=script.read_text(encoding="utf-8"))
    options = {"runOnly": RULES, "resultTypes": ["violations"]}
    report = page.evaluate(f"(options) => axe.run({part}, options)", options)
    assert "color-contrast" in {rule["id"] for rule in report["passes"]}
    return [
        (violation["id"], violation["nodes"][0]["target"]) for violation in report["violations"]
    ]


def test_the_joined_table_follows_the_boxes_and_options(visit, mine):
    page = visit()
    give(page, mine)
    page.goto(f"{page.url}/join?{CAPITAL}")
    heads = page.locator("#joined thead th")
    before = heads.all_inner_texts()
    assert "Country" in before
    page.get_by_label("Country").uncheck()
    page.locator("#joined thead").get_by_text("Country").wait_for(state="detached")
    assert heads.all_inner_texts() == [name for name in before if name != "Country"]
    assert page.evaluate("document.activeElement.id").startswith("add-"), "the focus stays"
    page.get_by_label("Rows without a match").select_option("inner")
    page.wait_for_url("**how=inner*")
    assert "Country" not in heads.all_inner_texts()
    page.reload()
    assert "Country" not in heads.all_inner_texts()
    page.go_back()
    page.locator("#joined thead").get_by_text("Country").wait_for()
    assert page.get_by_label("Country").is_checked()
    assert heads.all_inner_texts() == before


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "none"])
def test_a_rejected_column_is_brought_back(visit, mine, scripts):
    page = visit(java_script_enabled=scripts, bypass_csp=True)
    give(page, mine)
    page.get_by_role("link", name="city").click()
    page.get_by_role("button", name="Reject trade/fairs.csv : town").click()
    page.get_by_text("Rejected:").wait_for()
    if scripts:
        assert axe_barriers(page) == []
    assert "trade/fairs.csv : town" not in found_columns(page)
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Rejected:").wait_for(state="detached")
    assert "trade/fairs.csv : town" in found_columns(page)
