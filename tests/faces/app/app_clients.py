"""Clients of the app, with its session, as tests need them."""

from __future__ import annotations

import html
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from httpx import Response
from starlette.testclient import TestClient

from pexeso.faces.app.app import agents_of, create_app
from pexeso.faces.app.guard import AGENTS_PATH, RECONCILE_PATH, Access
from pexeso.faces.app.page import Pages
from pexeso.faces.app.start import Start
from pexeso.faces.app.tables import QueryTables
from pexeso.faces.service.verbs import ServedIndex

HOST = "testserver"

CITIES = "city,visits,city\nOslo,3,Norway\nRome,5,Italy\nMadrid,7,Spain\nVienna,9,Austria\n"
"""Of a lake that has cities; two of its columns have one name."""


class AppClient(TestClient):
    """A client, and what it asks of.

    Attributes
    ----------
    pages : Pages
    access : Access
    tokens : list of str
        Tokens of further links.
    """

    def __init__(
        self,
        index: Path,
        tables: QueryTables,
        start: Start | None = None,
        *,
        host: str = HOST,
        has_agents: bool = False,
        **options,
    ) -> None:
        self.tokens: list[str] = []
        self.access = Access(self.tokens.append)
        served = ServedIndex(str(index))
        self.pages = Pages(served, tables, start, self.access.reconcile_path)
        agents = agents_of(served) if has_agents else None
        app = create_app(self.pages, access=self.access, hosts=(host,), agents=agents)
        super().__init__(app, base_url=f"http://{host}", **options)

    def request(self, *given, **options) -> Response:
        """Require of every answer what holds of all, errors too."""
        answer = super().request(*given, **options)
        if answer.url.path.startswith((RECONCILE_PATH, AGENTS_PATH)):  # those are of no browser
            return answer
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "'unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "cache-control" in answer.headers
        assert "Traceback" not in answer.text
        return answer

    def enter(self) -> AppClient:
        """Use the link."""
        assert self.get(f"/?token={self.access.token}").status_code == 200
        return self

    def give(self, name: str = "my cities.csv", data: str | bytes = CITIES) -> str:
        """Hand a table over; return the path of its page."""
        answer = self.post("/tables", files={"file": (name, data)}, follow_redirects=False)
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]


@contextmanager
def app_of(index: Path, *, max_bytes: int = 1 << 20, **options) -> Iterator[AppClient]:
    """Serve an index to a client that has not used its link."""
    with QueryTables(max_bytes) as tables:
        yield AppClient(index, tables, **options)


@contextmanager
def entered(index: Path, **options) -> Iterator[AppClient]:
    """Serve an index to a client with a session."""
    with app_of(index, **options) as client:
        yield client.enter()


@contextmanager
def served_to_browsers(
    index: Path, start: Start | None = None, *, max_bytes: int = 1 << 20
) -> Iterator[tuple[str, str]]:
    """Serve an index, or what takes the files of one, at a port; yield the address and a link."""
    uvicorn = pytest.importorskip("uvicorn", reason="the extra app is not installed")
    with (
        QueryTables(max_bytes) as tables,
        closing(socket.create_server(("127.0.0.1", 0))) as listener,
    ):
        host = f"127.0.0.1:{listener.getsockname()[1]}"
        access = Access(lambda token: None)
        pages = Pages(ServedIndex(str(index)), tables, start, access.reconcile_path)
        app = create_app(pages, access=access, hosts=[host])
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none"))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield f"http://{host}", f"http://{host}/?token={access.token}"
        finally:
            server.should_exit = True
            thread.join()


def said(answer) -> str:
    """Return the sentence of an answer that tells of an error."""
    match = re.search(r'role="alert">(.*?)</p>', answer.text, re.DOTALL)
    assert match is not None, answer.text
    return html.unescape(match[1])
