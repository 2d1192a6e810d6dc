"""``pexeso serve`` and ``pexeso mcp``: an index for browsers and agents."""

from __future__ import annotations

import click

from pexeso.faces.cli.errors import Interrupted
from pexeso.faces.cli.options import cli_option, command, index_argument, path_argument
from pexeso.faces.cli.output import talk
from pexeso.runtime.extras import require


@command()
@path_argument("index", metavar="[INDEX]", required=False)
@cli_option(
    "--port",
    type=int,
    metavar="N",
    help="The port; 0 takes any free port.  [default: 8765, or the first free one after it]",
)
def serve(index: str | None, port: int | None) -> None:
    """Search in a browser: what your table joins with, and why.

    \b
    Example:
      pexeso serve
      pexeso serve lake.pexeso
      pexeso serve lake.pexeso --port 9000

    Without INDEX the page asks for files to join. Prints a link to open. The link works once, for
    one browser; if it is used again, pexeso prints another. Only programs on this machine can reach
    the app. Your tables stay in a temporary folder until Ctrl-C stops the app.

    With the extra pexeso[mcp], agents can call the tools of pexeso mcp at the same port, with a key
    that is printed too. The page Lake has an address for OpenRefine.

    If the index is updated meanwhile, pages keep the state that was opened, and offer the newest.
    """  # noqa: D301  click reads \b
    for package in ("python_multipart", "starlette", "uvicorn"):
        require(package, "The app")
    from pexeso.faces.app.run import serve as serve_app

    try:
        serve_app(
            index,
            port=port,
            report=lambda link: talk(f"Open {link}"),
            report_agents=lambda address, key: talk(
                f"Agents connect to {address} with the header 'Authorization: Bearer {key}'."
            ),
        )
    except KeyboardInterrupt as error:
        raise Interrupted("Stopped; the tables that you gave are removed.") from error


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
    help="Let agents write joins into this folder; by default they write nothing.",
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
    http://127.0.0.1:PORT/mcp. The tools find columns that join, explain why, and show the first
    rows of a join and its SQL. They read the lake, and files only in the folders of --allow-read.
    Answers are those of the moment when the index was opened, until a client reloads it.

    Needs the extra pexeso[mcp].
    """  # noqa: D301  click reads \b
    require("mcp", "A server for agents")
    from pexeso.faces.mcp import server
    from pexeso.faces.mcp.tool_call import Desk

    desk = Desk.of(index, allow_read=allow_read, allow_write=allow_write)
    if port is not None:
        server.serve_http(desk, port)
    else:
        server.serve_stdio(desk)
