"""``pexeso mcp``: a server by which agents find joins, explain and make them."""

from __future__ import annotations

import click

from pexeso.errors import MissingPackageError
from pexeso.faces.cli.options import cli_option, command, index_argument


@command()
@index_argument
@cli_option(
    "--allow-read",
    "allow_read",
    multiple=True,
    metavar="FOLDER",
    help="Let agents search with files of this folder. May be repeated.",
)
@cli_option(
    "--allow-write",
    "allow_write",
    metavar="FOLDER",
    help="Let agents write joins into this folder; without it they write nothing.",
)
@cli_option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="Serve HTTP at this port of this machine, not stdin and stdout; 0 takes any free port.",
)
def mcp(index: str, allow_read: tuple[str, ...], allow_write: str | None, port: int | None) -> None:
    """Serve an index to agents, by the Model Context Protocol.

    \b
    Example:
      pexeso mcp lake.pexeso
      pexeso mcp lake.pexeso --allow-read queries --allow-write joined
      pexeso mcp lake.pexeso --port 8765

    A client starts the command and talks to it on stdin and stdout; with --port it listens on
    http://127.0.0.1:PORT/mcp. Its tools find the columns that join, say why, show the first rows of
    a join and its SQL. They read the lake, and files of --allow-read alone. What they answer is
    that of the moment when the index was opened, until a client asks to reload it.

    Needs the extra pexeso[mcp].
    """  # noqa: D301  click reads \b
    try:
        from pexeso.faces.mcp import serving
        from pexeso.faces.mcp.asking import Desk
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _PACKAGES:
            raise
        raise MissingPackageError(
            f"A server for agents needs the package {error.name.partition('.')[0]}, which is not "
            "installed. Install it with pip install 'pexeso[mcp]'."
        ) from error
    desk = Desk.of(index, allow_read=allow_read, allow_write=allow_write)
    if port is not None:
        serving.serve_http(desk, port)
    else:
        serving.serve_stdio(desk)


_PACKAGES = ("mcp", "mcp_types", "anyio", "pydantic", "starlette", "uvicorn")
