"""What a page is: a document for programs, and a template with what it shows for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pexeso
from pexeso.faces.app.assets import asset_url
from pexeso.faces.app.links import url
from pexeso.faces.service.json_text import json_text
from pexeso.results.pages.page import environment
from pexeso.runtime.formatting import cell_text

if TYPE_CHECKING:
    from jinja2 import Environment
    from starlette.requests import Request as HttpRequest

    from pexeso.faces.app.tables import QueryTables
    from pexeso.faces.service.served import ServedIndex


@dataclass(frozen=True)
class Pages:
    """What pages are made from.

    Attributes
    ----------
    served : ServedIndex
    tables : QueryTables
    """

    served: ServedIndex
    tables: QueryTables


@dataclass(frozen=True)
class Page:
    """One page.

    Attributes
    ----------
    template : str
        Its file in ``templates``.
    shown : mapping, or callable that returns one
        What the template shows; called for pages alone, where a document does without.
    document : callable
        Returns what the same URL with ``.json`` answers: as the command line prints it. An iterator
        has its pieces, as they are.
    fragment : str or None
        The template of the part of the page that changes while a control is moved.
    """

    template: str
    shown: Mapping[str, Any] | Callable[[], Mapping[str, Any]]
    document: Callable[[], Any]
    fragment: str | None = None
    status: int = 200

    def html(self, pages: Pages, request: HttpRequest) -> str:
        """Return the page, or its fragment where a script of the page asks for it."""
        is_part = self.fragment is not None and request.headers.get("hx-request") == "true"
        template = templates().get_template(str(self.fragment if is_part else self.template))
        return template.render(
            self.shown() if callable(self.shown) else self.shown,
            state=pages.served.state(),
            index_name=pages.served.path,
            here=request.url.path,
            url_query=request.url.query,
            version=pexeso.__version__,
        )

    def json(self) -> str | Iterator[bytes]:
        """Return the document, or its pieces, as the command line prints it."""
        document = self.document()
        return document if isinstance(document, Iterator) else f"{json_text(document)}\n"


Handler = Callable[[Pages, "HttpRequest"], Page]
"""Makes the page that a request asks for."""


@cache
def templates() -> Environment:
    """Return the templates of the app, beside those of pages that are files."""
    from jinja2 import ChoiceLoader, PackageLoader

    of_files = environment()
    together = of_files.overlay(
        loader=ChoiceLoader([PackageLoader("pexeso.faces.app", "templates"), of_files.loader])
    )
    together.globals = {**of_files.globals, "url": url, "asset": asset_url}
    together.filters = {
        **of_files.filters,
        "part": lambda text: quote(text, safe=""),
        "cell": cell_text,
    }
    return together
