"""The process of the command ``pexeso``: what makes it quick to begin and quick to end."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys

# Objects made before a look for garbage.
#
# Modules make some hundred thousand that stay. Python would look through them hundreds of times.
OBJECTS_BETWEEN_LOOKS = 50_000


def run() -> None:
    """Run the command line of this process, and end the process with its code."""
    gc.set_threshold(OBJECTS_BETWEEN_LOOKS)
    try:
        from pexeso.faces.cli.main import main  # all that a command needs is imported from here on

        main()
    except SystemExit as ended:
        _leave(ended.code)
        raise
    except KeyboardInterrupt as stopped:  # before the command began, which reports it itself
        if sys.stderr is not None:
            sys.stderr.write("\nInterrupted.\n")
        code = 128 + getattr(stopped, "number", signal.SIGINT)
        _leave(code)
        raise SystemExit(code) from None


def _leave(code: object) -> None:
    """End the process now, unless something may be left to do: the system frees all at once."""
    if not (code is None or isinstance(code, int)) or "py4j" in sys.modules:
        return  # a session of Spark's is left to itself
    try:
        atexit._run_exitfuncs()  # temporary folders are removed, and logs closed
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:  # the process was started without
                stream.flush()
    except (OSError, ValueError):
        return  # which the interpreter reports at its own end
    os._exit(code or 0)
