"""Styles and scripts of the app's pages, which a browser fetches once and keeps."""

from __future__ import annotations

from functools import cache
from hashlib import blake2b
from importlib.resources import files
from pathlib import PurePath
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import Response

from pexeso.faces.app.links import url

if TYPE_CHECKING:
    from starlette.requests import Request

FOLDER = "/static"

_SHARED = ("page", "drawing", "transform", "redundancy", "acquisition")
"""Styles of pages that are files, by the names of their templates."""

_VERSION = "v"
"""The parameter that has the version in it: another version is another address."""

_TYPES = {".css": "text/css", ".js": "text/javascript"}

_KEPT = "private, max-age=31536000, immutable"


@cache
def assets() -> dict[str, bytes]:
    """Return all of them, by name: some 70 kB."""
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


def asset_url(name: str) -> str:
    """Return the path at which pages ask for a style or a script."""
    return url(f"{FOLDER}/{name}", {_VERSION: version()})


async def answer(request: Request) -> Response:
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
