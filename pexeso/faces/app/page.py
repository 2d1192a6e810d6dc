"""Pages: a document for programs, a template for people, and the styles and scripts of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.responses import Response

import pexeso
from pexeso.faces.app.forms import url
from pexeso.faces.service.responses import json_text
from pexeso.results.pages.page import environment
from pexeso.runtime.formatting import cell_text

if TYPE_CHECKING:
    from jinja2 import Environment
    from starlette.requests import Request
    from starlette.requests import Request as HttpRequest

    from pexeso.faces.app.tables import QueryTables
    from pexeso.faces.service.verbs import ServedIndex


FOLDER = "/static"

# Styles of pages that are files, by the names of their templates.
_SHARED = ("page", "drawing", "transform", "redundancy", "acquisition")

# The parameter that has the version in it: another version is another address.
_VERSION = "v"

_TYPES = {".css": "text/css", ".js": "text/javascript"}

_KEPT = "private, max-age=31536000, immutable"


@cache
def assets() -> dict[str, bytes]:
    blobs = {
        file.name: file.read_bytes() for file in (files("pexeso.faces.app") / "static").iterdir()
    }
    of_files = files("pexeso.results.pages")
    return blobs | {f"{name}.css": (of_files / f"{name}.css").read_bytes() for name in _SHARED}


@cache
def version() -> str:
    """Return what differs between any two versions of what is served here."""
    digest = blake2b(digest_size=8)
    for name, content in sorted(assets().items()):
        digest.update(f"{name}\n{len(content)}\n".encode() + content)
    return digest.hexdigest()


async def asset_answer(request: Request) -> Response:
    """Answer with a style or a script, from memory; a browser keeps it under its version."""
    name = request.path_params["name"]
    if name not in assets():
        raise HTTPException(404)
    is_kept = request.query_params.get(_VERSION) == version()
    return Response(
        assets()[name],
        media_type=_TYPES[PurePath(name).suffix],
        headers={"Cache-Control": _KEPT} if is_kept else None,
    )


@dataclass(frozen=True)
class Pages:
    served: ServedIndex
    tables: QueryTables


@dataclass(frozen=True)
class Page:
    """One page: a template and what it shows, which a document does not need.

    `document` returns what the same URL with ``.json`` answers, as the command line prints it; an
    iterator has its pieces. `fragment` is the template of the part that changes while a control
    is moved.
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


# Makes the page that a request asks for.
Handler = Callable[[Pages, "HttpRequest"], Page]


@cache
def templates() -> Environment:
    """Return the templates of the app, with those of pages that are files."""
    from jinja2 import ChoiceLoader, PackageLoader

    of_files = environment()
    together = of_files.overlay(
        loader=ChoiceLoader([PackageLoader("pexeso.faces.app", "templates"), of_files.loader])
    )
    together.globals = {
        **of_files.globals,
        "url": url,
        "asset": lambda name: url(f"{FOLDER}/{name}", {_VERSION: version()}),
    }
    together.filters = {
        **of_files.filters,
        "part": lambda text: quote(text, safe=""),
        "cell": cell_text,
    }
    return together
