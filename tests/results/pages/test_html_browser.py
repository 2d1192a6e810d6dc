"""Tests of the page in a real browser: its looks, and that nothing in it runs or loads."""

import re

import pytest
from hand_made import HOSTILE, explanation, result
from test_acquisition_page import plan_of, result_of
from test_html_transform import hostile_tables
from test_redundancy_page import renamed

import pexeso

PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}

LOOKS = {
    "phone-dark": (PHONE, "dark"),
    "desk-light": (DESK, "light"),
    "phone-light": (PHONE, "light"),
    "desk-dark": (DESK, "dark"),
}


def in_every_look(*short: str):
    """Look at a page in every look; by default in some of them alone."""
    looks = [
        pytest.param(*look, id=name, marks=() if name in short else pytest.mark.long)
        for name, look in LOOKS.items()
    ]
    return pytest.mark.parametrize(("viewport", "scheme"), looks)


LEAST_CONTRAST = 4.5
"""Of text and its background: level AA of the Web Content Accessibility Guidelines."""

CONTRASTS = """
() => {
  const parse = (colour) => {
    const [r, g, b, a = 1] = colour.match(/[\\d.]+/g).map(Number);
    return {r, g, b, a};
  };
  const luminance = ({r, g, b}) => {
    const part = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = parse(getComputedStyle(one).backgroundColor);
      if (colour.a > 0) return colour;
    }
    return {r: 255, g: 255, b: 255};
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility()) continue;
    const [one, other] = [luminance(parse(getComputedStyle(element).color)), \
luminance(behind(element))];
    found.push([(Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05), \
node.data.trim().slice(0, 30)]);
  }
  return found;
}
"""


@pytest.fixture
def look(browser, write):
    """Return a function that opens a page and returns it.

    The `heard` of the page lists its requests, console messages and errors.
    """
    contexts = []

    def open_page(text: str, viewport=DESK, scheme="light"):
        path = write("page.html", text)
        context = browser.new_context(viewport=viewport, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(5_000)
        page.heard = []
        page.on("request", lambda request: page.heard.append(request.url))
        page.on("console", lambda message: page.heard.append(message.text))
        page.on("pageerror", lambda error: page.heard.append(str(error)))
        page.goto(path.as_uri())
        assert page.heard.pop(0) == path.as_uri()
        return page

    yield open_page
    for context in contexts:
        context.close()


def require_readable(page, viewport, n_texts):
    """Require that a page fits, has so many texts, all readable, and neither loads nor runs."""
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    contrasts = page.evaluate(CONTRASTS)
    assert len(contrasts) > n_texts
    assert [reading for reading in contrasts if reading[0] < LEAST_CONTRAST] == []
    assert page.evaluate("typeof window.hit") == "undefined"
    assert page.heard == []


def require_readable_drawings(page):
    # What is written in a box lies inside it, with the fonts of this machine.
    outside = """() => [...document.querySelectorAll("svg.graph g")].filter((group) => {
      const box = group.querySelector("rect");
      if (!box) return false;
      const edge = box.getBoundingClientRect();
      const texts = [...group.querySelectorAll("text")].map((one) => one.getBoundingClientRect());
      return texts.some((one) => one.right > edge.right || one.bottom > edge.bottom);
    }).length"""
    assert page.evaluate(outside) == 0
    # Letters on boxes, on the card, and lines and boxes against what is behind them.
    fills = """() => [...document.querySelectorAll("svg text")].map((text) => {
      const box = text.parentElement.querySelector("rect.box");
      const card = getComputedStyle(text.closest(".panel, article")).backgroundColor;
      return [getComputedStyle(text).fill, box ? getComputedStyle(box).fill : card];
    })"""
    assert [pair for pair in page.evaluate(fills) if contrast(*pair) < LEAST_CONTRAST] == []
    strokes = """() => [...document.querySelectorAll("svg .line, svg .box, svg .point")].map(
      (one) => [one.matches(".point") ? getComputedStyle(one).fill : getComputedStyle(one).stroke,
        getComputedStyle(one.closest(".panel, article")).backgroundColor]
    )"""
    assert [pair for pair in page.evaluate(strokes) if contrast(*pair) < 3.0] == []


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, as the browser writes them."""

    def luminance(colour):
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        red, green, blue = (
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    darker, lighter = sorted([luminance(one), luminance(other)])
    return (lighter + 0.05) / (darker + 0.05)


@in_every_look("phone-dark", "desk-light")
def test_a_page_fits_can_be_read_and_loads_nothing(look, viewport, scheme):
    answer = result("A value " + "withoutanyblank" * 9, n_found=4, n_similar=3)
    page = look(answer.to_html(), viewport, scheme)
    require_readable(page, viewport, 300)
    assert page.get_by_text("4 columns found, most similar first").is_visible()


def test_the_two_schemes_differ(look):
    colours = [
        look(result().to_html(), scheme=scheme).evaluate(
            "getComputedStyle(document.body).backgroundColor"
        )
        for scheme in ("light", "dark")
    ]
    assert len(set(colours)) == 2


def test_more_pairs_open_by_the_keyboard_too(look):
    page = look(explanation("Oslo").to_html())
    last = page.get_by_role("cell", name="Oslo 20", exact=True).first
    assert not last.is_visible()
    page.get_by_text("22 more pairs").focus()
    page.keyboard.press("Enter")
    assert last.is_visible()


def test_headings_and_tables_have_names_for_those_who_cannot_see_them(look):
    page = look(result("Oslo", n_found=2).to_html())
    assert page.get_by_role("heading", level=1).all_inner_texts() == ["Columns that join with Oslo"]
    assert page.get_by_role("article", name="Oslo/0.csv : Oslo").count() == 1
    assert page.get_by_role("table").count() > 2
    assert (
        page.evaluate(
            "[...document.querySelectorAll('table')].filter((one) => "
            "!one.caption.textContent.trim())"
        )
        == []
    )
    page.get_by_role("link", name="Oslo/1.csv : Oslo").click()
    assert page.url.endswith("#found-1-2")


def test_a_program_in_a_cell_does_not_run(look):
    page = look(result(HOSTILE).to_html())
    assert page.evaluate("typeof window.hit") == "undefined"
    assert page.locator("script, img").count() == 0
    assert page.get_by_text(HOSTILE).first.is_visible()
    assert page.heard == []


@in_every_look("phone-dark")
def test_a_page_of_contained_tables_fits_can_be_read_and_loads_nothing(look, viewport, scheme):
    page = look(renamed(HOSTILE), viewport, scheme)
    require_readable(page, viewport, 60)
    require_readable_drawings(page)
    assert page.get_by_role("img").count() == 1
    assert "1 frame around tables of the same rows" in page.locator("svg desc").text_content()


@in_every_look("desk-light")
def test_the_page_of_a_learned_join_fits_and_can_be_read(look, viewport, scheme):
    joined = pexeso.learn_transformation(*hostile_tables())
    page = look(joined.to_html(), viewport, scheme)
    require_readable(page, viewport, 60)
    assert page.get_by_role("article", name="Program 1").count() == 1
    assert page.get_by_role("table").count() >= 2


@in_every_look("phone-dark")
def test_the_page_of_plans_fits_and_can_be_read(look, viewport, scheme):
    plans = result_of(
        plan_of(HOSTILE, branches=2), plan_of(price=2, correlation=0.25, gap=0.1, n_columns=3)
    )
    page = look(plans.to_html(), viewport, scheme)
    require_readable(page, viewport, 60)
    require_readable_drawings(page)
    assert page.get_by_role("img").count() == 3
    assert page.get_by_role("article", name="Plan 1").count() == 1


def test_plans_are_reached_by_the_keyboard_and_sql_is_selected_by_a_click(look):
    statement = 'SELECT "state" FROM "zips.csv"'
    page = look(result_of(plan_of(sql=statement), plan_of(price=2)).to_html())
    page.get_by_role("link", name="Plan 2").focus()
    page.keyboard.press("Enter")
    assert page.url.endswith("#plan-2")
    page.get_by_text(statement).click()
    assert page.evaluate("getSelection().toString()").startswith(f"{statement};  -- price 2\n")
