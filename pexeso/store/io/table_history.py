"""States of tables that keep their history: a moment, or the number of a version or snapshot."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from pexeso.errors import InputError
from pexeso.runtime.formatting import plain_scalar, shown

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_MAX_DIGITS = 19  # of a snapshot's number
_MAX_LINE = 1 << 24


def plain_state(value: Any) -> str:
    """Return a state as one text: a moment in UTC, or a number."""
    value = plain_scalar(value)
    text = value.isoformat() if isinstance(value, date) else value  # as TOML has them
    if isinstance(text, int) and not isinstance(text, bool):
        text = str(text)
    if isinstance(text, str):
        text = text.strip()
        is_number = text.isascii() and text.isdigit()
        if is_number and len(text) <= _MAX_DIGITS:
            return str(int(text))
        try:
            if is_number:
                raise ValueError
            moment = datetime.fromisoformat(text)
            moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
            return moment.isoformat().replace("+00:00", "Z")
        except (ValueError, OverflowError):
            pass
    raise InputError(
        "as_of must be a moment, such as 2024-06-01 or 2024-06-01T12:00:00Z (UTC where it names "
        "no zone), or the number of a version of Delta or a snapshot of Iceberg. Got "
        f"{shown(value)}."
    )


def _number(state: str) -> int | None:
    return int(state) if state.isdigit() else None


def _milliseconds(state: str) -> int:
    return (datetime.fromisoformat(state) - _EPOCH) // _MILLISECOND


def digest_of(*facts: object) -> str:
    """Return what differs between two states of a table of which any of these facts differs."""
    text = repr(facts).encode("utf-8", "surrogateescape")
    return hashlib.blake2b(text, digest_size=16).hexdigest()


class NoSuchState(Exception):
    """A table did not exist in a state, or its log no longer has it: a clause."""


def delta_version(folder: Path, state: str) -> int:
    """Return the version of a Delta table in a state: of a moment the last commit until then."""
    number = _number(state)
    if number is not None:
        return number
    moment = _milliseconds(state)
    for version, log in sorted(_commits(folder), reverse=True):
        if _committed(log) <= moment:
            return version
    raise NoSuchState(f"it has no version of {state} or before")


def _commits(folder: Path) -> Iterator[tuple[int, Path]]:
    for log in (folder / "_delta_log").glob("*.json"):
        is_plain = log.is_file() and not log.is_symlink()
        if is_plain and log.stem.isascii() and log.stem.isdigit():
            yield int(log.stem), log


def _committed(log: Path) -> int:
    """Return when a commit was made, in milliseconds since 1970.

    That is what the commit says, which a copy of the table keeps; else the time of its file.
    """
    with log.open("rb") as lines:
        while line := lines.readline(_MAX_LINE):
            if b'"commitInfo"' in line:
                info = json.loads(line).get("commitInfo") or {}
                moment = info.get("inCommitTimestamp", info.get("timestamp"))
                if isinstance(moment, int):
                    return moment
    return log.stat().st_mtime_ns // 1_000_000


def iceberg_snapshot(table: Any, state: str | None) -> Any:
    """Return the snapshot of an Iceberg table in a state; by default the current one, or None."""
    if state is None:
        return table.current_snapshot()
    number = _number(state)
    snapshot = (
        table.snapshot_as_of_timestamp(_milliseconds(state))
        if number is None
        else table.snapshot_by_id(number)
    )
    if snapshot is None:
        raise NoSuchState(
            f"it has no snapshot of {state} or before"
            if number is None
            else f"it has no snapshot {number}"
        )
    return snapshot
