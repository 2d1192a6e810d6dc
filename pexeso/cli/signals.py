"""Handling of SIGTERM and SIGHUP: they end a command as Ctrl-C does.

The command writes its message, keeps its state, and leaves nothing behind.
"""

from __future__ import annotations

import signal
from types import FrameType

_HANDLED = (signal.SIGTERM, signal.SIGHUP)


class Stopped(KeyboardInterrupt):
    """The process was asked to end by a signal other than Ctrl-C's.

    Attributes
    ----------
    number : int
        The signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def stop_by_signals() -> None:
    """Install handlers that raise `Stopped` for signals that ask this process to end.

    Signals that the process was set to ignore, as by nohup, stay ignored.
    """
    for number in _HANDLED:
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _stop)


def _stop(number: int, frame: FrameType | None) -> None:
    # Who asks twice, as a shell and a terminal that go together do, must not stop the clean-up.
    for each in _HANDLED:
        signal.signal(each, signal.SIG_IGN)
    raise Stopped(number)
