"""SIGTERM and SIGHUP end a command as Ctrl-C does: with its message, its state kept, nothing left behind."""

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
    """Have signals that ask this process to end raise `Stopped`, except those it was told to ignore, as by nohup."""
    for number in _HANDLED:
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _stop)


def _stop(number: int, frame: FrameType | None) -> None:
    # Who asks twice, as a shell and a terminal that go together do, must not stop the clean-up.
    for each in _HANDLED:
        signal.signal(each, signal.SIG_IGN)
    raise Stopped(number)
