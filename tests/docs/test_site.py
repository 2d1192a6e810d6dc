"""The site builds without a warning, its links and anchors lead somewhere, and it loads nothing."""

import re
import sys
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urlsplit

import pytest
from doc_pages import PAGES, ROOT
from long_runs import long_but
from processes import ran

import pexeso

pytestmark = pytest.mark.slow

LOADING = {
    "audio": "src",
    "embed": "src",
    "iframe": "src",
    "img": "src",
    "input": "src",
    "object": "data",
    "script": "src",
    "source": "src",
    "video": "src",
}
"""Elements that make a browser load something, and the attribute that says what."""

NOT_LOADED = {"canonical", "next", "prev"}
"""Kinds of `link` that a browser does not load."""

SOME_PAGES = ("index.html", "how-to/export-to-catalogues.html", "reference/api.html")

CHECKED_PAGES = (
    "index.html", "tutorial.html", "how-to/use-the-app.html", "reference/python.html",
    "explanation/comparison.html", "faq.html", "project/examples/find_and_join.ipynb.html",
)  # fmt: skip
"""Pages of each kind; that of all docstrings would take minutes."""

VARIED_PAGES = ("index.html", "how-to/use-the-app.html", CHECKED_PAGES[-1])
"""Those of which each has what the others lack: the frame, pictures, and cells of a notebook."""

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


class Parsed(HTMLParser):
    """The names, links and loaded files of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = {name: value or "" for name, value in attrs}
        self.names |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag == "link" and not NOT_LOADED & set(values.get("rel", "").split()):
            self.loaded.append(values["href"])
        if values.get(LOADING.get(tag, "")):
            self.loaded.append(values[LOADING[tag]])
        self.loaded += [part.split()[0] for part in values.get("srcset", "").split(",") if part]


def elsewhere(address: str) -> bool:
    """Return whether an address names another host."""
    split = urlsplit(address)
    return bool(split.netloc) or split.scheme not in ("", "data")


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Build the site, as `make docs` does; a warning stops it."""
    folder = tmp_path_factory.mktemp("site")
    done = ran(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        variables={"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site) -> dict[Path, Parsed]:
    return {path: Parsed(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}


def test_every_page_of_the_docs_is_in_the_site(site):
    docs = ROOT / "docs"
    of_docs = [page.relative_to(docs) for page in PAGES if page.is_relative_to(docs)]
    built = [page.with_suffix(".html") for page in of_docs if page.name != "README.md"]
    assert [str(page) for page in built if not (site / page).is_file()] == []
    assert (site / "index.html").is_file()


def leads_somewhere(link: str, path: Path, site: Path, pages: dict[Path, Parsed]) -> bool:
    """Return whether a link of a page leads to a file of the site, and to a name in it."""
    file, _, anchor = unquote(link).partition("#")
    target = (path.parent / file).resolve() if file else path
    target = target / "index.html" if target.is_dir() else target
    if not target.is_file() or not target.is_relative_to(site):
        return False
    return not anchor or target not in pages or anchor in pages[target].names


def test_links_and_anchors_lead_somewhere(site, pages):
    # Those of 404.html begin at the root of a host.
    links = [
        (path, link)
        for path, page in pages.items()
        if path.name != "404.html"
        for link in (*page.links, *page.loaded)
        if not elsewhere(link)
    ]
    assert len(links) > 1000
    wrong = [
        f"{path.relative_to(site)}: {link}"
        for path, link in links
        if not leads_somewhere(link, path, site, pages)
    ]
    assert wrong == []
    assert not leads_somewhere("index.html#no-such-name", site / "index.html", site, pages)
    assert not leads_somewhere("no-such-page.html", site / "index.html", site, pages)


def test_pages_and_styles_load_nothing_from_elsewhere(site, pages):
    problems = [
        f"{path.relative_to(site)}: {address}"
        for path, page in pages.items()
        for address in page.loaded
        if elsewhere(address)
    ]
    for path in sorted(site.rglob("*.css")):
        style = path.read_text(encoding="utf-8")
        addresses = re.findall(r"(?:url\(|@import)\s*[\"']?([^\"')\s;]+)", style)
        problems += [f"{path.name}: {address}" for address in addresses if elsewhere(address)]
    assert problems == []


def test_every_public_name_is_described(pages, site):
    names = pages[site / "reference" / "api.html"].names
    wanted = {f"pexeso.{name}" for name in pexeso.__all__ if name != "__version__"}
    assert wanted - names == set()
    assert "pexeso.Index.search" in names


def test_fences_are_shown_as_code_and_none_as_a_drawing(site, pages):
    text = (site / "how-to" / "export-to-catalogues.html").read_text(encoding="utf-8")
    assert "flowchart" in text or "graph LR" in text
    shown = [path.relative_to(site) for path in pages if "```" in path.read_text(encoding="utf-8")]
    assert shown == []
    # The theme fetches mermaid's program from another host for such a block.
    drawn = [path for path in pages if 'class="mermaid"' in path.read_text(encoding="utf-8")]
    assert drawn == []


class Quiet(SimpleHTTPRequestHandler):
    """Serve files, and log nothing."""

    def log_message(self, *_arguments):
        pass


@pytest.fixture(scope="module")
def start(site):
    """Serve the site, and return its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_browser_asks_no_other_host_and_finds_by_search(browser, start):
    urls, errors = [], []
    page = browser.new_page()
    page.on("request", lambda request: urls.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    for name in SOME_PAGES:
        page.goto(start + name, wait_until="networkidle")
    page.goto(start + "index.html", wait_until="networkidle")
    page.keyboard.press("/")
    page.wait_for_timeout(200)
    page.keyboard.type("containment")
    page.wait_for_selector(".md-search-result__item a", state="attached")
    page.close()
    assert [url for url in urls if not url.startswith((start, "data:", "blob:"))] == []
    assert len(urls) > len(SOME_PAGES)
    assert errors == []


@pytest.mark.parametrize("colours", long_but(["light"], ["light", "dark"]))
@pytest.mark.parametrize("name", long_but(VARIED_PAGES, CHECKED_PAGES))
def test_pages_of_each_kind_have_no_barrier_that_axe_finds(browser, start, name, colours):
    axe = pytest.importorskip("axe_playwright_python", reason="axe-core is not installed")
    [script] = Path(axe.__file__).parent.rglob("axe.min.js")
    options = {"runOnly": {"type": "tag", "values": RULES}, "resultTypes": ["violations"]}
    page = browser.new_page(color_scheme=colours, viewport={"width": 1280, "height": 900})
    page.goto(start + name, wait_until="networkidle")
    scheme = page.evaluate("document.body.dataset.mdColorScheme")
    assert scheme == {"light": "default", "dark": "slate"}[colours]
    page.add_script_tag(path=script)
    part = "document" if name == CHECKED_PAGES[0] else "'.md-content'"  # all else is the same
    results = page.evaluate(f"(options) => axe.run({part}, options)", options)
    page.close()
    assert "color-contrast" in {rule["id"] for rule in results["passes"]}
    assert [(rule["id"], rule["nodes"][0]["target"]) for rule in results["violations"]] == []


@pytest.mark.parametrize(
    "address", ["https://fonts.example.com/a.css", "//cdn.example.com/a.js", "http://a/b"]
)
def test_other_hosts_are_seen(address):
    assert elsewhere(address)
    assert not elsewhere("assets/a.css")
