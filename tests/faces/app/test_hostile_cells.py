"""Tests in a browser: cells and names that mean harm are shown, and nothing of them runs."""

import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from app_clients import served_to_browsers

pytestmark = pytest.mark.slow

HARM = (
    "<script>window.hit=1;alert(1)</script>",
    '<img src=x onerror="window.hit=1;alert(1)">',
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)' x='",
    "</td></table></main><h1>taken over",
    "<!-- never closed",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)",
    "<a href=javascript:alert(1)>x</a>",
    "<meta http-equiv=refresh content=0;url=//evil.example>",
    "<iframe srcdoc='<script>parent.hit=1</script>'></iframe>",
    "<form action=//evil.example><button>x",
    "\u202egnp.exe\u2066\u200b",
    "nul\x00here\x1b[31m",
    '=HYPERLINK("http://evil.example","x")',
    "=cmd|' /C calc'!A0",
    "<div hx-get=/reload hx-trigger=load>x</div>",
    "&lt;script&gt;&#0;&amp",
    "x" * (1 << 20),
)
QUIET_MS = 250
CITIES = ("Oslo", "Rome", "Madrid", "Vienna", "Lisbon", "Dublin", "Helsinki", "Athens")
COLUMN = "<b onclick=alert(1)>city: a,b~"
TABLE = "it's <img src=x onerror=alert(1)>.parquet"
LEFT_OUT = "<svg onload=alert(1)>.csv"


def hostile_table(path):
    values = [*HARM, *CITIES]
    others = [value[:1000] for value in reversed(values)]
    pq.write_table(pa.table({COLUMN: values, "<script>alert(2)</script>": others}), path)
    return path


@pytest.fixture(scope="module")
def hostile_app(tmp_path_factory):
    """Index a lake of hostile cells, and serve it; return the address and the link."""
    from pexeso.index import build_index

    folder = tmp_path_factory.mktemp("hostile cells")
    (folder / "lake").mkdir()
    hostile_table(folder / "lake" / TABLE)
    (folder / "lake" / LEFT_OUT).write_bytes(b"a,b\n\0\0\0\1<script>")
    (folder / "lake" / "cities.csv").write_text("city,n\n" + "".join(f"{c},1\n" for c in CITIES))
    index = build_index(
        folder / "lake",
        folder / "lake.pexeso",
        model="hashing",
        dimensions=64,
        parts=["containment"],
    )
    with served_to_browsers(index.path, max_bytes=1 << 24) as address_and_link:
        yield address_and_link


@pytest.fixture(scope="module")
def opened(browser, hostile_app):
    """Open the app; what runs or is loaded is in the `heard` of the page."""
    own, link = f"{hostile_app[0]}/", hostile_app[1]
    page = browser.new_page()
    page.set_default_timeout(60_000)
    page.heard = []
    page.on("console", lambda message: page.heard.append(message.text))
    page.on("pageerror", lambda error: page.heard.append(str(error)))
    page.on("dialog", lambda dialog: (page.heard.append(dialog.message), dialog.dismiss()))
    page.on("popup", lambda popup: page.heard.append(popup.url))
    page.on(
        "request",
        lambda request: (
            None if request.url.startswith((own, "data:,")) else page.heard.append(request.url)
        ),
    )
    page.under_way = set()
    page.on("request", lambda request: page.under_way.add(request))
    for end in ("requestfinished", "requestfailed"):
        page.on(end, lambda request: page.under_way.discard(request))
    page.goto(link)
    page.own = own
    return page


@pytest.fixture
def page(opened):
    """Return the page, which has heard nothing yet."""
    opened.heard.clear()
    return opened


def wait_for_quiet(page):
    """Wait until nothing was loaded for longer than the page itself waits with a request."""
    page.wait_for_load_state("load")
    end, quiet = time.monotonic() + 60, 0
    while quiet < QUIET_MS:
        assert time.monotonic() < end, page.under_way
        page.wait_for_timeout(50)
        quiet = 0 if page.under_way else quiet + 50


def require_calm(page):
    wait_for_quiet(page)
    assert page.heard == []
    assert page.evaluate("window.hit") is None
    assert page.locator("main").count() == 1
    assert page.locator("h1").count() == 1
    assert page.locator("main script, main iframe, main svg[onload], main img").count() == 0
    assert page.locator("[onclick], [onerror], [onmouseover], a[href^='javascript:']").count() == 0
    assert page.locator("main [hx-trigger=load]").count() == 0
    assert "taken over" not in page.locator("h1").inner_text()


def test_every_page_of_hostile_cells_shows_them_and_runs_nothing(page, tmp_path):
    """The whole way: give the table, choose its column, its joins, why, and the join."""
    path = hostile_table(tmp_path / "a.parquet")
    page.goto(page.own)
    page.set_input_files("#file", path)
    page.get_by_role("button", name="Choose a column").click()
    require_calm(page)
    assert page.get_by_text("<b onclick=alert(1)>city: a,b~").first.is_visible()
    columns = page.url
    page.goto(f"{columns}/search?column=%230&min_joinability=0.1")
    require_calm(page)
    for details in page.locator("details").all():
        details.evaluate("each => { each.open = true }")
    page.locator("#max_distance").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(500)
    require_calm(page)
    links = page.locator("#found article h2 a").all()
    assert len(links) >= 2
    brought = page.locator(".brings").filter(has_text="<script>alert(2)</script>")
    brought.scroll_into_view_if_needed()
    brought.locator(".cell").first.wait_for()  # sample values follow where a card is seen
    require_calm(page)
    for link in [anchor.get_attribute("href") for anchor in links]:
        answer = page.goto(page.own.rstrip("/") + link)
        assert answer.status == 200, link
        require_calm(page)
        page.get_by_role("link", name="Preview the join").click()
        require_calm(page)
        assert "This does not work" not in page.locator("h1").inner_text()


@pytest.mark.parametrize("way", ["lake", "lake/left-out", "lake?text=<script>alert(1)</script>"])
def test_pages_of_the_lake_show_hostile_names(page, way):
    page.goto(page.own + way)
    require_calm(page)
    if way == "lake/left-out":
        assert page.get_by_text(LEFT_OUT).first.is_visible()


def test_the_join_graph_shows_hostile_names(page):
    page.goto(page.own + "graph?run=1&min_joinability=0.1")
    require_calm(page)
    assert page.locator("svg.graph").count() == 1
    assert page.locator("#joins ~ .scroll").get_by_text(TABLE).first.is_visible()
    links = [anchor.get_attribute("href") for anchor in page.locator("main tbody a").all()]
    assert links
    for link in links:
        assert page.goto(page.own.rstrip("/") + link).status == 200, link
        require_calm(page)
    page.goto(page.own + "graph?run=1&text=<svg onload=alert(1)>")
    require_calm(page)


def test_a_table_of_the_lake_shows_hostile_cells_and_can_be_searched_with(page):
    page.goto(page.own + "lake")
    page.get_by_role("link", name="it's <img").click()
    require_calm(page)
    assert page.get_by_text("=cmd|' /C calc'!A0").first.is_visible()
    page.get_by_role("button", name="Search with this table").click()
    require_calm(page)


def test_hostile_addresses_are_told_as_text(page):
    for way in ("%3Cscript%3Ealert(1)%3C/script%3E", "lake?page=<svg onload=alert(1)>"):
        page.goto(page.own + way)
        # The browser itself writes that a page was not found.
        page.heard[:] = [text for text in page.heard if "Failed to load resource" not in text]
        require_calm(page)
