"""Styles and scripts: browsers keep them, and ask anew for those of another version."""

import asyncio
import re
import socket
from contextlib import closing

from pexeso.faces.app import page as assets
from pexeso.faces.app.run import _listening

LINK = re.compile(r'"(/static/[^"]+)"')


def test_what_pages_ask_for_is_there_and_kept(client):
    pages = [client.get(path).text for path in ("/", "/graph", "/acquire")]
    links = {link for page in pages for link in LINK.findall(page)}
    assert {link.partition("?")[0] for link in links} >= {
        "/static/page.css", "/static/app.css", "/static/app.js", "/static/htmx.min.js",
        "/static/drawing.css", "/static/acquisition.css",
    }  # fmt: skip
    for link in links:
        answer = client.get(link)
        assert (answer.status_code, len(answer.content) > 100) == (200, True)
        assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"
        kind = "text/css" if ".css" in link else "text/javascript"
        assert answer.headers["content-type"] == f"{kind}; charset=utf-8"


def test_of_another_version_nothing_is_kept_and_pages_never_are(client):
    for path in ("/static/app.css", "/static/app.css?v=other", "/", "/lake"):
        answer = client.get(path)
        assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")


def test_a_version_differs_where_a_file_does(monkeypatch):
    before = assets.version()
    changed = {**assets.assets(), "app.css": assets.assets()["app.css"] + b"\n"}
    monkeypatch.setattr(assets, "assets", lambda: changed)
    assets.version.cache_clear()
    try:
        assert assets.version() != before
    finally:
        assets.version.cache_clear()


def test_small_answers_are_sent_at_once():
    """Or the body of each page waits 40 ms for the browser to confirm the headers."""

    async def delays(listener: socket.socket) -> int:
        accepted = asyncio.get_running_loop().create_future()

        class Accepting(asyncio.Protocol):
            def connection_made(self, transport):
                of_client = transport.get_extra_info("socket")
                accepted.set_result(of_client.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
                transport.close()

        server = await asyncio.get_running_loop().create_server(Accepting, sock=listener)
        with closing(socket.create_connection(listener.getsockname())):
            no_delay = await accepted
        server.close()
        return no_delay

    with closing(_listening(0)) as listener:
        assert asyncio.run(delays(listener)) != 0
