"""What became of tables that were to be moved."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from pexeso.runtime.shown import Shown, many


@dataclass(frozen=True)
class Refusal:
    """A table that was not moved, and a clause that says why."""

    table: str
    reason: str


@dataclass(frozen=True, repr=False)
class Applied(Shown):
    """What became of the tables of a plan, or, as `undo` returns it, of those set aside.

    Attributes
    ----------
    lake, holding
        Absolute paths.
    moved
        Tables that this call moved.
    already
        Tables that an earlier call had moved.
    refused
        Tables that stay where they are, each with the reason.
    stopped
        Why the call ended early and how to go on; None where it did not.
    waiting
        Tables that a call which ended early did not move.
    kept
        Tables that were copied to another file system, and whose original stays, under a hidden
        name: nothing there says whether a program still writes to it. A later call removes it when
        it has been untouched for an hour and is equal to the copy.
    """

    lake: str
    holding: str
    moved: tuple[str, ...]
    already: tuple[str, ...]
    refused: tuple[Refusal, ...]
    stopped: str | None = None
    waiting: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

    def _summary(self) -> str:
        moved = f"{many(len(self.moved), 'table')} moved, {len(self.already):,} already"
        waiting = f", {len(self.waiting):,} waiting" if self.waiting else ""
        return f"{moved}, {len(self.refused):,} refused{waiting}"

    def _shown(self) -> tuple[list[str], list[list[Any]]]:
        rows = [["refused", refusal.table, refusal.reason] for refusal in self.refused]
        for what in ("moved", "already", "waiting"):
            rows += [[what, table, ""] for table in getattr(self, what)]
        return ["", "table", "reason"], rows

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form."""
        return asdict(self)
