"""The pages of the app, by path: a module for each part of the way through them."""

from pexeso.server.page import Handler
from pexeso.server.pages import acquisition, graph, home, joining, lake, match, redundancy, search

PAGES: dict[str, Handler] = {
    "/": home.home,
    "/tables/{table}": search.columns,
    "/tables/{table}/search": search.found,
    "/tables/{table}/match": match.match,
    "/tables/{table}/join": joining.join,
    "/lake": lake.tables,
    "/lake/table": lake.table,
    "/lake/left-out": lake.left_out,
    "/graph": graph.graph,
    "/redundancy": redundancy.redundancy,
    "/acquire": acquisition.acquire,
}
"""Each is answered as a page, and with ``.json`` behind its path as a document."""
