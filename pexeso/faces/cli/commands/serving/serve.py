"""``pexeso serve``: a web app on this machine."""

from __future__ import annotations

from pexeso.faces.cli.errors import Interrupted
from pexeso.faces.cli.options import cli_option, command, index_argument
from pexeso.faces.cli.output.output import talk
from pexeso.options import parse_bytes


@command()
@index_argument
@cli_option(
    "--port",
    type=int,
    metavar="N",
    help="The port; 0 takes any that is free.  [default: 8765, or the first free one after it]",
)
@cli_option(
    "--max-upload",
    default="256MiB",
    metavar="SIZE",
    show_default=True,
    help="The largest table that can be given.",
)
def serve(index: str, port: int | None, max_upload: str) -> None:
    """Search in a browser: what your table joins with, and why.

    \b
    Example:
      pexeso serve lake.pexeso
      pexeso serve lake.pexeso --port 9000

    Prints a link to open. It works once, and opens the app for that browser alone; if it is used
    again, another is printed. Only programs on this machine can reach the app, and what you give it
    stays in a temporary folder until Ctrl-C ends it.

    With the extra pexeso[mcp] agents can ask the tools of pexeso mcp at the same port, by a key
    that is printed too.

    The index may be updated meanwhile: pages go on with the state that was opened, and offer the
    newest.
    """  # noqa: D301  click reads \b
    from pexeso.faces.app.run import serve as serve_app

    try:
        serve_app(
            index,
            port=port,
            max_upload=parse_bytes(max_upload),
            tell=lambda link: talk(f"Open {link}"),
            tell_agents=lambda address, key: talk(
                f"Agents ask at {address} with the header 'Authorization: Bearer {key}'."
            ),
        )
    except KeyboardInterrupt as error:
        raise Interrupted("Stopped; what was given to the app is removed.") from error
