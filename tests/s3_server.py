"""A real S3 server on loopback for tests, and the faults that tests put into it.

The server is moto's, reached over HTTP like any other. Real S3 does one write of a key after the
other; here a lock does.
"""

import logging
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pexeso.store.io.location import Location, locate

CREDENTIALS = {"key": "test-access-key", "secret": "test-secret-key"}
CONDITIONS = ("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH")

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


@dataclass
class Faults:
    """What is wrong with the server, and what it was asked.

    Attributes
    ----------
    ignores_conditions
        It writes whatever the conditions of a write say, as some servers do.
    refuses_conditions
        It answers a conditional write with 501.
    n_cut
        So many answers with more than `cut_from` bytes break off in the middle.
    before_write
        Called once with method and path, just before the next write of a key that ends in
        `before_key`.
    requests
        Method, path and query of all requests since the last `clear`.
    """

    ignores_conditions: bool = False
    refuses_conditions: bool = False
    n_cut: int = 0
    cut_from: int = 1000
    before_write: Callable[[], None] | None = None
    before_key: str = "manifest.json"
    requests: list[tuple[str, str, str]] = field(default_factory=list)

    def clear(self) -> None:
        """Make the server sound again, and forget what it was asked."""
        self.__init__()


class FaultyApplication:
    """The server's application with faults."""

    def __init__(self, application: Application, faults: Faults) -> None:
        self._application = application
        self._faults = faults
        self._writing = threading.Lock()

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        faults, method, path = self._faults, environ["REQUEST_METHOD"], environ["PATH_INFO"]
        faults.requests.append((method, path, environ.get("QUERY_STRING", "")))
        if method != "PUT":
            return self._cut(environ, self._application(environ, start_response))
        if faults.before_write is not None and path.endswith(faults.before_key):
            call, faults.before_write = faults.before_write, None
            call()
        conditions = [name for name in CONDITIONS if name in environ]
        if conditions and faults.refuses_conditions:
            start_response("501 Not Implemented", [("Content-Type", "application/xml")])
            return [
                b"<Error><Code>NotImplemented</Code><Message>A header implies what is not "
                b"implemented</Message></Error>"
            ]
        if faults.ignores_conditions:
            for name in conditions:
                del environ[name]
        with self._writing:
            return list(self._application(environ, start_response))

    def _cut(self, environ: dict[str, Any], answer: Iterable[bytes]) -> Iterable[bytes]:
        if self._faults.n_cut <= 0 or environ["REQUEST_METHOD"] != "GET":
            return answer
        data = b"".join(answer)
        if len(data) <= self._faults.cut_from:
            return [data]
        self._faults.n_cut -= 1
        return [
            data[: len(data) // 2]
        ]  # fewer bytes than its header says: the connection ends there


@dataclass(frozen=True)
class Server:
    """A running server.

    Attributes
    ----------
    address
        ``http://127.0.0.1:PORT``.
    faults
        Cleared before every test.
    """

    address: str
    faults: Faults

    @property
    def options(self) -> dict[str, str]:
        """Storage options that reach the server."""
        return {**CREDENTIALS, "endpoint_url": self.address}

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables by which other processes reach the server."""
        return {
            "AWS_ACCESS_KEY_ID": CREDENTIALS["key"],
            "AWS_SECRET_ACCESS_KEY": CREDENTIALS["secret"],
            "AWS_ENDPOINT_URL": self.address,
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def make_bucket(self) -> Location:
        """Make a bucket of its own for a test."""
        place = locate(f"s3://test-{secrets.token_hex(8)}", **self.options)
        place.filesystem.mkdir(place.path)
        return place

    def objects(self, place: Location) -> dict[str, bytes]:
        """Return all objects below a place by their path from there."""
        return {name: place.joined(name).read() for name in place.find()}


@pytest.fixture(scope="session")
def s3_process() -> Iterator[Server]:
    """Start the server once; most tests want `s3_server`."""
    for package in ("s3fs", "flask"):
        pytest.importorskip(package, reason="the tests of S3 need s3fs and moto[server]")
    moto = pytest.importorskip("moto.server", reason="the tests of S3 need s3fs and moto[server]")
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    faults = Faults()
    application = FaultyApplication(
        moto.DomainDispatcherApplication(moto.create_backend_app), faults
    )
    server = make_server("127.0.0.1", 0, application, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield Server(f"http://127.0.0.1:{server.server_port}", faults)
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def s3_server(s3_process: Server) -> Iterator[Server]:
    """Return a sound server; it is sound again afterwards."""
    s3_process.faults.clear()
    yield s3_process
    s3_process.faults.clear()


@pytest.fixture
def bucket(s3_server: Server) -> Location:
    """Return an empty bucket on the server."""
    return s3_server.make_bucket()


def copied_to(place: Location, folder: Path) -> Location:
    """Copy all files of a folder to a place, one by one, as any tool copies."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    names = {f"{place.path}/{path.relative_to(folder).as_posix()}": path for path in files}
    place.filesystem.pipe({name: path.read_bytes() for name, path in names.items()})
    return place
