"""Where people begin: what the index holds, and their table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pexeso.faces.app.page import Page, Pages

if TYPE_CHECKING:
    from starlette.requests import Request


def home(pages: Pages, request: Request) -> Page:
    """Return the first page."""
    info = pages.served.index.info()
    return Page(
        "home.html",
        {"info": info, "max_bytes": pages.tables.max_bytes},
        info.to_dict,
    )
