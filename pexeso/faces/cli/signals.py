"""Handling of SIGTERM and SIGHUP: they end a command as Ctrl-C does.

The command writes its message, keeps its state, and leaves nothing behind.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType

_HANDLED = (signal.SIGTERM, signal.SIGHUP)

_AGAIN_SECONDS = 0.01


class Stopped(KeyboardInterrupt):
    """The process was asked to end by a signal other than Ctrl-C's."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def stop_by_signals() -> None:
    """Install handlers that raise `Stopped` for signals that ask this process to end.

    Signals that the process was set to ignore, as by nohup, stay ignored.
    """
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
    """Raise what is to end the command a moment later, where Python had to pass over it.

    That is in functions that C calls, such as when numba loads compiled loops, and in finalizers.
    """
    stopped = unraisable.exc_value
    if not isinstance(stopped, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise stopped

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)
