"""The pages of the app, by path: a module for each part of the way through them."""

from functools import cache
from importlib import import_module

from pexeso.faces.app.page import Handler

PAGES = {
    "/": "home:home",
    "/tables/{table}": "search:columns",
    "/tables/{table}/search": "search:search",
    "/tables/{table}/match": "match:match",
    "/tables/{table}/join": "actions:join",
    "/lake": "lake:tables",
    "/lake/table": "lake:table",
    "/lake/left-out": "lake:left_out",
    "/graph": "graph:graph",
    "/redundancy": "redundancy:redundancy",
    "/acquire": "acquisition:acquire",
}
"""Each is answered as a page, and with ``.json`` behind its path as a document.

They are imported when they are first asked for: the first page needs little of the package.
"""


@cache
def handler_of(path: str) -> Handler:
    """Return what makes the page of a path."""
    module, _, name = PAGES[path].partition(":")
    return getattr(import_module(f"{__name__}.{module}"), name)


@cache
def import_all() -> None:
    """Import what every page needs."""
    for path in PAGES:
        handler_of(path)
