"""The time that a run may take, what it says on the way, and which parts it left out."""

from __future__ import annotations

import time


class Clock:
    """Counts the seconds from when it is made.

    Parameters
    ----------
    seconds : float
        What the run may take, at least 0.
    """

    def __init__(self, seconds: float) -> None:
        self._started, self._seconds = time.perf_counter(), seconds
        self.left_out: list[dict[str, str]] = []

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._started

    @property
    def left(self) -> float:
        """Seconds that are left; below 0 when the time is over."""
        return self._seconds - self.elapsed

    def enough(self, part: str, needed: float) -> bool:
        """Return whether a part fits in the remaining time.

        A part that does not fit is noted as left out.
        """
        if needed <= self.left:
            return True
        self.leave_out(
            part, f"would take about {needed:.0f} s, {max(0.0, self.left):.0f} s are left"
        )
        return False

    def leave_out(self, part: str, reason: str) -> None:
        """Note that a part is not run."""
        self.left_out.append({"part": part, "reason": reason})
        self.say(f"left out: {part}: {reason}")

    def say(self, what: str) -> None:
        """Print a line at once, so that a run that is cut short still tells."""
        print(f"[{self.elapsed:6.1f} s] {what}", flush=True)
