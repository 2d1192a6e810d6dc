"""What became of tables that were to be moved."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Refusal:
    """A table that was not moved, and a clause that says why."""

    table: str
    reason: str


@dataclass(frozen=True)
class Applied:
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
    """

    lake: str
    holding: str
    moved: tuple[str, ...]
    already: tuple[str, ...]
    refused: tuple[Refusal, ...]
    stopped: str | None = None
    waiting: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form."""
        return asdict(self)
