"""Fuzzing of the web app: bytes are read as a request, and its answer must be one of ours.

The first line of an input is ``METHOD TARGET``; lines of headers follow, an empty line, and the
body. ``{table}`` in the target is a table that was given, and headers are those of a browser with
a session unless the input has others. So bytes that are changed blindly are requests still.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from hypothesis import strategies as st

from pexeso.faces.app.app import create_app
from pexeso.faces.app.guard import HEADERS, Access
from pexeso.faces.app.page import Pages
from pexeso.faces.app.tables import QueryTables, UnknownTableError
from pexeso.faces.service.verbs import ServedIndex

HOST = "here:1"
MARKER = "lies-beside-the-lake"
TABLE = b"city,people,city\nOslo,717710,a\nRome,2746984,b\nMadrid,1512491,c\nVienna,1,d\n"
KIND = b"multipart/form-data; boundary=b"
MAX_BODY = 1 << 18
CAPITALS = "nested/capitals.tsv:Capital"


class BrokenAnswerError(AssertionError):
    """An answer is none that the app may give."""


@dataclass
class Answer:
    """What the app sent."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    n_starts: int = 0


class FuzzedApp:
    """The app of an index, asked without a server between."""

    def __init__(self, index: Path) -> None:
        self.tables = QueryTables(MAX_BODY)
        served = ServedIndex(str(index))
        lake = Path(str(served.index.lake))
        for name in ("beside.csv", f"{lake.name}-beside.csv"):
            (lake.parent / name).write_text(f"city,secret\nOslo,{MARKER}\nRome,{MARKER}\n")
        self.access = Access(lambda token: None)
        self.session = self.access.exchange(self.access.token)
        self.app = create_app(Pages(served, self.tables), access=self.access, hosts=(HOST,))
        self.loop = asyncio.new_event_loop()
        atexit.register(self.loop.close)
        atexit.register(self.tables.__exit__)
        self._table = ""

    def table(self) -> str:
        """Return the id of a table; it is given anew where others took its place."""
        try:
            return self.tables[self._table].id
        except UnknownTableError:
            self._table = self.tables.add("my cities.csv", [TABLE]).id
            return self._table

    def ask(self, data: bytes) -> Answer:
        head, _, body = data.partition(b"\n\n")
        first, *lines = head.split(b"\n")
        method, _, target = first.partition(b" ")
        target = target.replace(b"{table}", self.table().encode())
        path, _, query = target.partition(b"?")
        given = {
            b"host": HOST.encode(),
            b"cookie": f"pexeso={self.session}".encode(),
            b"content-type": KIND,
        }
        for line in lines:
            name, _, value = line.partition(b":")
            given[name.strip().lower()] = value.strip()
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method.decode("latin-1"),
            "scheme": "http",
            "path": unquote(path.decode("latin-1")),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": list(given.items()),
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 1),
        }
        return self.loop.run_until_complete(self._answer(scope, body))

    async def _answer(self, scope: dict[str, Any], body: bytes) -> Answer:
        pieces = [body[at : at + 4096] for at in range(0, len(body), 4096)] or [b""]
        messages = [
            {"type": "http.request", "body": piece, "more_body": at < len(pieces)}
            for at, piece in enumerate(pieces, 1)
        ]
        answer = Answer()

        async def receive() -> dict[str, Any]:
            return messages.pop(0) if messages else {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                answer.n_starts += 1
                answer.status = message["status"]
                answer.headers = {
                    name.decode("latin-1"): value.decode("latin-1")
                    for name, value in message["headers"]
                }
            else:
                answer.body += message.get("body", b"")

        await self.app(scope, receive, send)
        return answer


@functools.cache
def fuzzed_app(index: Path) -> FuzzedApp:
    """Return the app of an index, one a process."""
    return FuzzedApp(index)


def try_request(data: bytes, index: Path) -> Answer:
    """Send a request and require of its answer what holds of all."""
    app = fuzzed_app(index.resolve())
    answer = app.ask(data)
    where = f"{answer.status} {answer.body[-300:]!r}"
    _require(answer.n_starts == 1, f"{answer.n_starts} answers: {where}")
    _require(200 <= answer.status < 500, f"an error of ours: {where}")
    for name, value in HEADERS.items():
        _require(answer.headers.get(name.lower()) == value, f"{name} is missing: {where}")
    for name, value in answer.headers.items():
        _require(not set(name + value) & set("\r\n\0"), f"a header is broken: {name} {value!r}")
    location = answer.headers.get("location", "/")
    _require((location[:1] == "/" and location[1:2] not in "/\\") or location == "/", location)
    body = answer.body
    _require(MARKER.encode() not in body, f"what lies beside the lake was read: {where}")
    _require(b"Traceback (most recent" not in body, f"a trace: {where}")
    _require(app.session.encode() not in body, f"the session is shown: {where}")
    if answer.headers.get("content-type", "").startswith("text/html"):
        _require(b"<script>" not in body.lower(), f"a script that is not ours: {where}")
    return answer


def _require(holds: bool, promise: str) -> None:
    if not holds:
        raise BrokenAnswerError(promise)


_PATHS = (
    "/", "/index.json", "/lake", "/lake.json", "/lake/table", "/lake/table.json", "/lake/left-out",
    "/lake/left-out.json", "/tables/{table}", "/tables/{table}.json", "/tables/{table}/search",
    "/tables/{table}/search.json", "/tables/{table}/match", "/tables/{table}/match.json",
    "/tables/{table}/join", "/tables/{table}/join.json", "/tables/{table}/joined.csv",
    "/tables/{table}/joined.parquet", "/tables", "/reload", "/static/app.css", "/static/page.css",
)  # fmt: skip
_NAMES = (
    "column", "lake_column", "max_distance", "min_joinability", "k", "method", "auto", "values",
    "how", "aggregate", "suffix", "exclude_self", "explain", "min_precision", "joinability_of",
    "name", "text", "page", "token", "query", "index", "keys", "program", "transform", "provenance",
)  # fmt: skip
_VALUES = (
    "", "0", "1", "-1", "0.3", "nan", "inf", "1e400", "9" * 40, "9" * 5000, "all", "overlap",
    "containment", "transform", "semantic", "city", "#0", "#1", "#2", "#99", "people", "inner",
    "first", "sum", "mean", "list", "rows", CAPITALS, "cities.csv:city", "cities.csv",
    "cities.csv:#0", "numbers.csv:amount", "broken.parquet", "broken.parquet:x", "notes.txt",
    "../beside.csv", "../beside.csv:city", "/etc/passwd", "/etc/passwd:x", "..", "\0", "\u202e",
    "<script>alert(1)</script>", "'\"><script>", "{{7*7}}", "%s{column}", "a,b", "city,people",
    "city~", "\r\nX: y", "file:///etc/passwd", "s3://bucket/x", "http://localhost/x:y",
)  # fmt: skip
_FILES = (
    "a.csv", "../../beside.csv", "a.parquet", "a.xlsx", "a.zip", "a.sqlite", "a.json", "a.npy",
    "a.csv.gz", "x\0.csv", "a.duckdb", "a.avro", "", "<script>.csv", "a.feather", "a.ods",
)  # fmt: skip
_HEADERS = (
    "host: evil", "host: ", "origin: null", "origin: http://here:1", "origin: http://evil",
    "sec-fetch-site: cross-site", "sec-fetch-site: same-origin", "cookie: ", "cookie: pexeso=x",
    "content-length: 99999999999", "content-length: -1", "content-length: x", "hx-request: true",
    "content-type: application/x-www-form-urlencoded", "content-type: multipart/form-data",
    "content-type: text/\xff", "content-type: multipart/form-data; boundary=", "range: bytes=0-1",
    "if-none-match: *", "x-forwarded-host: evil", "x-http-method-override: DELETE", "accept: x/y",
    "transfer-encoding: chunked", "if-modified-since: x", "expect: 100-continue",
)  # fmt: skip


def _form(name: str, file: str | None, data: bytes) -> bytes:
    filename = "" if file is None else f'; filename="{file}"'
    head = f'--b\r\nContent-Disposition: form-data; name="{name}"{filename}\r\n\r\n'
    return head.encode("utf-8", "surrogateescape") + data + b"\r\n--b--\r\n"


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """Requests as a browser, a program or somebody who means harm sends them."""
    words = st.sampled_from(_VALUES) | st.text(max_size=12)
    path = draw(st.sampled_from(_PATHS) | st.text(max_size=20).map(lambda text: f"/{quote(text)}"))
    if draw(st.integers(0, 9)) == 0:
        path += draw(
            st.sampled_from(("/", ".json", "/..", "/../..", "//", "%00", "/%2e%2e/", ";x"))
        )
    given = draw(st.dictionaries(st.sampled_from(_NAMES) | st.text(max_size=5), words, max_size=5))
    if "{table}/" in path:
        given = {"column": draw(st.sampled_from(("#0", "#0", "#1", "city"))), **given}
        if "/search" not in path:
            given = {"lake_column": CAPITALS, **given}
    elif path.startswith("/lake/table"):
        given = {"name": draw(words), **given}
    query = "&".join(f"{quote(name)}={quote(value)}" for name, value in given.items())
    posts = path in ("/tables", "/reload")
    method = draw(
        st.sampled_from(("POST",) * 8 * posts + ("GET",) * 8 + ("HEAD", "PUT", "POST", ""))
    )
    body = b""
    if posts or draw(st.integers(0, 15)) == 0:
        data = draw(st.binary(max_size=200) | st.just(TABLE) | words.map(str.encode))
        field_name = draw(st.sampled_from(("file", "file", "text", "lake_table", "other")))
        file = draw(st.sampled_from(_FILES)) if field_name == "file" else None
        body = draw(st.sampled_from((_form(field_name, file, data),) * 4 + (data,)))
    headers = draw(st.lists(st.sampled_from(_HEADERS), max_size=1 + draw(st.integers(0, 1))))
    if draw(st.booleans()):
        headers = []
    first = f"{method} {path}{'?' if query else ''}{query}"
    return "\n".join([first, *headers]).encode("utf-8", "surrogateescape") + b"\n\n" + body


SEEDS = (
    b"GET /",
    b"GET /tables/{table}/search?column=%230&max_distance=0.3\nhx-request: true",
    f"GET /tables/{{table}}/match?column=%230&lake_column={CAPITALS}".encode(),
    f"GET /tables/{{table}}/join?column=%230&lake_column={CAPITALS}&aggregate=first".encode(),
    b"GET /lake/table.json?name=cities.csv",
    b"POST /tables\n\n" + _form("file", "a.csv", TABLE),
    b"POST /tables\n\n" + _form("text", None, TABLE),
    b"POST /tables\n\n" + _form("file", "a.jsonl", json.dumps({"a": "Oslo"}).encode()),
    b"POST /reload",
)
