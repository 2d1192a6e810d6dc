"""Writer of the pictures of the tutorial on your own data and of the app, with the present code.

Run it as ``python docs/write_pictures.py``. It needs what the extra ``dev`` installs, and Chromium.

The folder of the tutorial is written and indexed again, the commands of the page are run, and their
pages and coloured output are photographed in a browser without a window. So are the page of an
explanation and pages of the app, of the index of the demo lake.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MARGIN = 12
_COLOURS = 256  # less than half the bytes, and a shade of 4 in 255 at most
COLUMN = "my_tour.xlsx#Stops:Museum"

SEARCH = ("search", "my.pexeso", COLUMN, "--explain", "--pairs", "4")
EXPLAIN = ("explain", "my.pexeso", COLUMN, "exports/museums.csv:Museum")
EXPLAIN_DEMO = (
    *("explain", "lake.pexeso"),
    *("examples/my_autographs.csv:signed_by", "science/birthdays.tsv:person"),
)

TERMINAL = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; background: {background}; color: {foreground}; }}
pre {{ display: inline-block; margin: 0; padding: 18px 22px; line-height: 1.4;
      font: 15px "DejaVu Sans Mono", "Liberation Mono", monospace; }}
</style><pre>{code}</pre>"""


def _pexeso(folder: Path, *words: str) -> str:
    """Run a command, and return its output with the colours of a terminal."""
    done = subprocess.run(
        [sys.executable, "-m", "pexeso", *words],
        cwd=folder,
        env=os.environ | {"FORCE_COLOR": "1", "COLUMNS": "110"},
        stdin=subprocess.DEVNULL,
        capture_output=True,  # stderr apart: it has times, which differ with each run
        text=True,
        check=True,
    )
    return done.stdout


def _terminal_page(command: str, shown: str) -> str:
    """Return a page that looks like a terminal after a command."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=120, file=nowhere, force_terminal=True)
        console.print(Text(f"$ {command}"), Text.from_ansi(shown.rstrip()), sep="\n")
        return console.export_html(theme=MONOKAI, code_format=TERMINAL, inline_styles=True)


def _photograph(view: Page, name: str, first: str, last: str) -> None:
    """Write what a page shows from the top of one element to the bottom of another."""
    top, end = (view.locator(selector).first.bounding_box() for selector in (first, last))
    if top is None or end is None:
        raise SystemExit(f"The page has no {first} or no {last}: mend it, or this program.")
    left, above = max(0, min(top["x"], end["x"]) - MARGIN), max(0, top["y"] - MARGIN)
    clip = {
        "x": left,
        "y": above,
        "width": max(top["x"] + top["width"], end["x"] + end["width"]) + MARGIN - left,
        "height": end["y"] + end["height"] + MARGIN - above,
    }
    _keep(view.screenshot(clip=clip, full_page=True), HERE / f"tutorial-your-own-data-{name}.png")


def _keep(screenshot: bytes, picture: Path) -> None:
    """Write a picture in few colours, and return its size."""
    with Image.open(io.BytesIO(screenshot)) as image:
        image.convert("RGB").quantize(_COLOURS, Image.Quantize.MAXCOVERAGE).save(
            picture, optimize=True
        )
    sys.stdout.write(f"{picture.name}: {picture.stat().st_size:,} bytes\n")


def _photograph_all(browser: Browser, terminal: str, explained: Path) -> None:
    view = browser.new_page(viewport={"width": 900, "height": 400})
    view.set_content(terminal)
    _photograph(view, "search", "pre", "pre")
    view = browser.new_page(viewport={"width": 1000, "height": 800})
    view.goto(explained.as_uri())
    view.locator("details.more").first.evaluate("each => { each.open = true; }")
    _photograph(view, "explain", "h1", "details.more")
    view = browser.new_page(viewport={"width": 1300, "height": 800})
    view.goto(explained.as_uri())
    view.add_style_tag(content="body, main { max-width: none !important; }")
    _photograph(view, "rows", "details:has(table.joined)", "details:has(table.joined)")


@contextmanager
def _serving(folder: Path, index: str) -> Iterator[str]:
    """Serve an index in a folder; give the link that opens the app."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pexeso", "serve", index, "--port", "0"],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        said = next((line for line in process.stderr or () if "token=" in line), "")
        yield next(word for word in said.split() if "token=" in word)
    finally:
        process.terminate()
        process.wait()


def _photograph_app(browser: Browser, link: str) -> None:
    view = browser.new_page(viewport={"width": 1100, "height": 640})
    view.goto(link)
    view.set_input_files("#file", EXAMPLES / "my_autographs.csv")
    view.get_by_role("button", name="Choose a column").click()
    view.get_by_role("link", name="signed_by").click()
    view.get_by_role("heading", name="What signed_by joins with").wait_for()
    view.set_viewport_size({"width": 1100, "height": 880})
    view.locator(".brings").nth(1).locator(".cell").first.wait_for()  # values follow the list
    _keep(view.screenshot(), HERE / "how-to" / "app-search.png")
    view.get_by_role("link", name="science/birthdays.tsv : person").click()
    view.get_by_role("heading", name="Why signed_by joins with person").wait_for()
    view.set_viewport_size({"width": 1100, "height": 900})
    _keep(view.screenshot(), HERE / "how-to" / "app-match.png")


def _photograph_explanation(browser: Browser, page: Path) -> None:
    view = browser.new_page(viewport={"width": 1000, "height": 760})
    view.goto(page.as_uri())
    _keep(view.screenshot(), HERE / "how-to" / "explain-page.png")


def write_demo_pictures(folder: Path) -> None:
    """Write the pictures of an explanation and of the app, of ``lake.pexeso`` in `folder`."""
    if not (folder / "lake.pexeso").exists():
        _pexeso(folder, "index", str(EXAMPLES / "lake"), "lake.pexeso", "--include", "overlap")
    (folder / "examples").symlink_to(EXAMPLES)  # for its path on the page
    _pexeso(folder, *EXPLAIN_DEMO, "--html", "why.html")
    with sync_playwright() as driver, _serving(folder, "lake.pexeso") as link:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = driver.chromium.launch(executable_path=_browser_path(), args=arguments)
        _photograph_explanation(browser, folder / "why.html")
        _photograph_app(browser, link)
        browser.close()


def _browser_path() -> str:
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        raise SystemExit(f"There is no browser on this machine: install one of {BROWSERS}.")
    return path


def write_pictures(folder: Path) -> None:
    """Write the pictures of the tutorial, working in `folder`."""
    path = _browser_path()
    subprocess.run(
        [sys.executable, EXAMPLES / "write_own_data.py", folder], check=True, capture_output=True
    )
    _pexeso(folder, "index", "my_data", "my.pexeso")
    _pexeso(folder, *SEARCH)  # compiles loops once, which the picture need not show
    terminal = _terminal_page(" ".join(("pexeso", *SEARCH)), _pexeso(folder, *SEARCH))
    _pexeso(folder, *EXPLAIN, "--html", "explain.html")
    with sync_playwright() as driver:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = driver.chromium.launch(executable_path=path, args=arguments)
        _photograph_all(browser, terminal, folder / "explain.html")
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        write_pictures(Path(made))
        write_demo_pictures(Path(made))
