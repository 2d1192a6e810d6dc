"""Clients of the app, with its session, as tests need them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from starlette.testclient import TestClient

from pexeso.faces.app.app import create_app
from pexeso.faces.app.guard import Access
from pexeso.faces.app.page import Pages
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

    def __init__(self, pages: Pages, **options) -> None:
        self.pages = pages
        self.tokens: list[str] = []
        self.access = Access(self.tokens.append)
        app = create_app(pages, access=self.access, hosts=(HOST,))
        super().__init__(app, base_url=f"http://{HOST}", **options)

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
        yield AppClient(Pages(ServedIndex(str(index)), tables), **options)


def said(answer) -> str:
    """Return the sentence of an answer that tells of an error."""
    match = re.search(r'role="alert">(.*?)</p>', answer.text, re.DOTALL)
    assert match is not None, answer.text
    return html.unescape(match[1])


def require_answer_of_ours(answer) -> None:
    """Require what holds of every answer, errors too."""
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "'unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert "cache-control" in answer.headers
    assert "Traceback" not in answer.text
