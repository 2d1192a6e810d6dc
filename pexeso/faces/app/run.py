"""Serve the app on this machine until it is stopped."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import current_thread, main_thread
from types import FrameType
from typing import TYPE_CHECKING

from pexeso.errors import InputError, OutputError
from pexeso.faces.app.guard import AGENTS_PATH, TOKEN_FIELD, Access
from pexeso.runtime.system import reuse_port, signals

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

DEFAULT_PORT = 8765
MAX_UPLOAD = 256 << 20
HOST = "127.0.0.1"
PORTS_TRIED = 20


def serve(
    index: str | None,
    *,
    port: int | None = None,
    report: Callable[[str], None],
    report_agents: Callable[[str, str], None] = lambda address, key: None,
) -> None:
    """Serve an index to the browser of this machine, or one of files that are given there."""
    import uvicorn

    from pexeso.faces.app.app import agents_of, create_app
    from pexeso.faces.app.jobs import Jobs
    from pexeso.faces.app.page import Pages
    from pexeso.faces.app.start import Start
    from pexeso.faces.app.tables import QueryTables
    from pexeso.faces.service.verbs import ServedIndex
    from pexeso.store.io.temporary import temporary_folder

    with ExitStack() as ended:
        start = None
        if index is None:
            start = Start(ended.enter_context(temporary_folder("pexeso-files-")))
        served = ServedIndex.of(index) if start is None else ServedIndex(str(start.index))
        agents = agents_of(served) if start is None else None
        listener = ended.enter_context(_listening(port))
        tables = ended.enter_context(QueryTables(MAX_UPLOAD))
        number = listener.getsockname()[1]
        access = Access(lambda token: report(_link(number, token)))
        jobs = ended.enter_context(Jobs())
        app = create_app(
            Pages(served, tables, start, access.reconcile_path, jobs),
            access=access,
            hosts=(f"{HOST}:{number}", f"localhost:{number}"),
            cookie=f"pexeso-{number}",
            agents=agents,
        )

        def ready() -> None:
            report(_link(number, access.token))
            if agents is not None:
                report_agents(f"http://{HOST}:{number}{AGENTS_PATH}", access.key)

        config = uvicorn.Config(
            _reported_when_ready(app, ready),
            log_level="warning",
            server_header=False,
            ws="none",
            proxy_headers=False,
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)
        with _ended_by_hangup(server):
            server.run([listener])


def _link(port: int, token: str) -> str:
    return f"http://{HOST}:{port}/?{TOKEN_FIELD}={token}"


@contextmanager
def _ended_by_hangup(server: uvicorn.Server) -> Iterator[None]:
    """Have a terminal that is closed end the server in order, as uvicorn has Ctrl-C and SIGTERM."""
    hangup = next(iter(signals("SIGHUP")), None)
    before = signal.SIG_IGN if hangup is None else signal.getsignal(hangup)
    if hangup is None or before == signal.SIG_IGN or current_thread() is not main_thread():
        yield
        return
    seen: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        server.handle_exit(number, frame)

    signal.signal(hangup, end)
    try:
        yield
    finally:
        signal.signal(hangup, before)
        if seen:
            signal.raise_signal(hangup)


def _reported_when_ready(app: ASGIApp, ready: Callable[[], None]) -> ASGIApp:

    async def started(scope, receive, send) -> None:
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return

        async def send_and_report(message) -> None:
            await send(message)
            if message["type"] == "lifespan.startup.complete":
                ready()

        await app(scope, receive, send_and_report)

    return started


def _listening(port: int | None) -> socket.socket:
    """Return a socket that listens, on the port that was named or one that is free."""
    if port is not None and not 0 <= port < 65536:
        raise InputError(f"port must be from 0 to 65535. Got {port} instead.")
    ports = [port] if port is not None else range(DEFAULT_PORT, DEFAULT_PORT + PORTS_TRIED)
    for number in ports:
        # Only where the protocol is named does asyncio send at once what is small: else the second
        # packet of an answer waits 40 ms for the browser to confirm the first.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        reuse_port(listener)
        try:
            listener.bind((HOST, number))
            listener.listen()
            return listener
        except OSError as error:
            listener.close()
            reason = error.strerror or str(error)
    if port is not None:
        raise OutputError(
            f"Port {port} of this machine cannot be used: {reason}. Choose another by --port, or "
            "leave it out."
        )
    raise OutputError(
        f"None of the ports {DEFAULT_PORT} to {DEFAULT_PORT + PORTS_TRIED - 1} is free. Choose one "
        "by --port; 0 takes any."
    )
