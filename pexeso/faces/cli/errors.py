"""What the command line says when something goes wrong, and the exit codes that go with it.

======  ======================================================================================
code    meaning
======  ======================================================================================
0       done
1       it could not be done: a file, an index, the machine
2       the command was not understood: an option, a value out of range, a column that is not there
130     stopped by Ctrl-C
141     what reads the output has ended, as ``head`` does (SIGPIPE)
129     stopped by SIGHUP: its terminal was closed
143     stopped by SIGTERM
======  ======================================================================================
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

import click

from pexeso.errors import InputError, PexesoError
from pexeso.faces.cli.options import option_name
from pexeso.faces.service.bases import RequestError
from pexeso.runtime.system import PIPE_SIGNAL, interrupt_later, signals

_HANDLED = signals("SIGTERM", "SIGHUP")

_AGAIN_SECONDS = 0.01


class Stopped(KeyboardInterrupt):
    """A signal other than Ctrl-C's ends the process."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def stop_by_signals() -> None:
    """Let signals that are not ignored, as by nohup, end this process by `Stopped`."""
    sys.unraisablehook = _stop_again
    for number in _HANDLED:
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _stop)


def _stop(number: int, frame: FrameType | None) -> None:
    # Who asks twice, as a shell and a terminal that go together do, must not stop the clean-up.
    for handled in _HANDLED:
        signal.signal(handled, signal.SIG_IGN)
    raise Stopped(number)


def _stop_again(unraisable: sys.UnraisableHookArgs) -> None:
    """Raise a moment later what ends the command, where C or a finalizer had to pass over it."""
    stopped = unraisable.exc_value
    if not isinstance(stopped, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return

    interrupt_later(stopped, _AGAIN_SECONDS)


def start_clock(context: click.Context) -> None:
    """Let the time of a command begin now, unless the context knows when its process began."""
    if context.obj is None:
        context.obj = time.perf_counter()


def seconds_waited() -> float:
    return time.perf_counter() - click.get_current_context().find_root().obj


FAILED, MISUSED, PIPE_CLOSED = 1, 2, 128 + PIPE_SIGNAL

# Set this environment variable to see tracebacks.
DEBUG_VARIABLE = "PEXESO_DEBUG"

_ARGUMENTS = "pexeso.arguments"


class Failure(click.ClickException):
    """Ends the command with ``Error: message`` on stderr."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Interrupted(click.ClickException):
    """Ends the command after Ctrl-C or another signal with one sentence on stderr."""

    @property
    def exit_code(self) -> int:  # type: ignore[override]
        return 128 + (
            self.__cause__.number if isinstance(self.__cause__, Stopped) else signal.SIGINT
        )

    def show(self, file: object = None) -> None:
        """Write the message to stderr, without calling it an error; to no terminal that is gone."""
        with suppress(OSError):
            click.echo(f"\n{self.message}", err=True)


def remember_arguments(context: click.Context, arguments: Sequence[str]) -> None:
    context.meta[_ARGUMENTS] = tuple(arguments)


def command_again(*, add: str | None = None, drop: Sequence[str] = ()) -> str:
    """Return the command that is running as a line for the shell, with `add` and without `drop`."""
    typed = click.get_current_context().meta.get(_ARGUMENTS, ())
    arguments = [argument for argument in typed if argument not in drop]
    if add is not None and add not in arguments:
        arguments.append(add)
    return shlex.join(["pexeso", *arguments])


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn every exception of the block into one sentence and an exit code."""
    try:
        yield
        # Here, so that a closed pipe is noticed while it can still be passed over in silence.
        sys.stdout.flush()
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except BrokenPipeError as error:
        raise click.exceptions.Exit(PIPE_CLOSED) from error
    except KeyboardInterrupt as error:
        raise Interrupted(f"Interrupted. Run again: {command_again()}") from error
    except PexesoError as error:
        _debug(error)
        message = error.written(option_name) if isinstance(error, RequestError) else str(error)
        raise Failure(message, MISUSED if isinstance(error, InputError) else FAILED) from error
    except MemoryError as error:
        _debug(error)
        raise Failure(
            "There is not enough memory for this. Free some, or use a machine with more."
        ) from error
    except Exception as error:
        _debug(error)
        raise Failure(
            f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}. This was "
            "not foreseen; "
            f"set {DEBUG_VARIABLE}=1 and run again to see where it happened."
        ) from error


def _debug(error: BaseException) -> None:
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exception(error, file=sys.stderr)
