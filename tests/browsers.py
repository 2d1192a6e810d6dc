"""The browser of this machine, for tests of pages; without one they are skipped in words."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@contextmanager
def started_browser() -> Iterator[Any]:
    """Start the browser, and close it at the end."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="the package playwright is not installed"
    )
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"there is no browser on this machine (one of {', '.join(BROWSERS)})")
    with playwright.sync_playwright() as driver:
        # A browser that root starts has no sandbox; it is shown nothing but pages made here.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = driver.chromium.launch(executable_path=path, args=arguments)
        try:
            yield browser
        finally:
            browser.close()
