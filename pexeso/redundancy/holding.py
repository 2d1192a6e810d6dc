"""Tables of a plan set aside in a holding folder, and brought back. Nothing is deleted.

A holding folder has a journal, ``tables/`` with the tables under the names that they had in the
lake, and ``copies/``, where everything is a copy of what the lake still has, or has again.

The name in the lake decides where a table is: as long as it is there the table is in the lake,
and what ``tables/`` has under it is a copy; once it is gone the table is whole in ``tables/``.
Each of the two changes by one rename, so a process may be killed at any instant, and the same call
goes on where it ended.

A table that cannot be moved is refused by name, and all others are moved. A full disk and a
read-only file system end the whole call, which reports what was moved.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import secrets
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pexeso.errors import InputError, PexesoError
from pexeso.redundancy.holding_folder import (
    ARRIVING,
    COPIES,
    TABLES,
    HeldTable,
    Journal,
    copy_name,
    default_holding,
    links,
    local_holding,
    local_lake,
    note_arrival,
    noted_arrival,
    opened,
    prune,
    reason_of,
    remove_copy,
    require_inside,
    require_journal,
    require_local,
    require_removable,
    way_out,
)
from pexeso.redundancy.plan import (
    Applied,
    Deletion,
    Plan,
    PlanOrPath,
    Refusal,
    read_plan,
    require_consistent,
)
from pexeso.redundancy.table_files import (
    Snapshot,
    TableRefused,
    copy_whole,
    fingerprint_there,
    has_settled,
    is_part_of,
    make_folders,
    remove_empty_folders,
    rename_new,
    require_copied,
    require_not_written,
    snapshot,
    table_fingerprint,
)

_ENDS_ALL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_MAX_DAYS = 36_500
_NAME_TAKEN = "another table has taken its name in the lake"

Check = Callable[[Deletion], "str | None"]  # Returns why a table must stay, None where it can go.


def apply_plan(
    plan: Plan,
    holding: str | os.PathLike[str] | None = None,
    *,
    expires_days: float = 30,
    check: Check | None = None,
    now: datetime | None = None,
) -> Applied:
    """Do as `pexeso.apply_plan`; `check`, or its error, gives the reason why a table stays."""
    require_consistent(plan)
    days_allowed = isinstance(expires_days, int | float) and math.isfinite(expires_days)
    if not days_allowed or not 0 < expires_days <= _MAX_DAYS:
        raise InputError(
            f"expires_days must be above 0 and at most {_MAX_DAYS:,}, but is {expires_days!r}."
        )
    lake = local_lake(plan.lake)
    folder = local_holding(default_holding(lake) if holding is None else holding, lake)
    started = datetime.now(UTC) if now is None else now
    expires = started + timedelta(days=expires_days)
    with opened(folder, lake) as journal:
        moving = _SettingAside(
            lake,
            folder,
            journal,
            check=check,
            times=(started.isoformat(), expires.isoformat()),
            linked=links(lake, [*plan.keep, *(item.table for item in plan.delete)]),
        )
        return _for_each(moving, {item.table: item for item in plan.delete}, "apply the plan")


def undo_plan(
    source: PlanOrPath,
    *,
    holding: str | os.PathLike[str] | None = None,
    tables: Iterable[str] | None = None,
) -> Applied:
    """Move tables from a holding folder back to where they were.

    Parameters
    ----------
    source : path or Plan
        The plan, or the holding folder.
    holding : path, optional
        The holding folder of a plan, where it is not the usual one next to the lake.
    tables : iterable of str, optional
        Those that are moved; by default all.

    Raises
    ------
    InputError, LakeError, OutputError
        See `pexeso.errors`.
    """
    source = _plan_or_folder(source)
    folder, unlocked_journal, planned = _holding_of(source, holding)
    lake = local_lake(source.lake if isinstance(source, Plan) else unlocked_journal.lake)
    folder = local_holding(folder, lake)
    with opened(folder, lake) as journal:
        entries = _entries(folder, journal, planned, tables)
        return _for_each(_BringingBack(lake, folder, journal), entries, "undo it")


def before_undoing(
    source: PlanOrPath,
    *,
    holding: str | os.PathLike[str] | None = None,
    tables: Iterable[str] | None = None,
) -> Applied:
    """Return what `undo_plan` would bring back, as ``waiting``, and refuse for its name.

    A table is looked at only where another one lies in the lake under its name.
    """
    folder, journal, planned = _holding_of(_plan_or_folder(source), holding)
    waiting: list[str] = []
    refused: list[Refusal] = []
    for name, entry in _entries(folder, journal, planned, tables).items():
        target = Path(journal.lake, name)
        if not os.path.lexists(folder / TABLES / name):
            continue
        if not os.path.lexists(target):
            waiting.append(name)
        elif fingerprint_there(target) != entry.fingerprint:
            refused.append(Refusal(name, _NAME_TAKEN))
    return Applied(journal.lake, str(folder), (), (), tuple(refused), None, tuple(waiting))


def _plan_or_folder(source: PlanOrPath) -> PlanOrPath:
    is_folder = not isinstance(source, Plan) and os.path.isdir(source)
    return source if is_folder else read_plan(source)


def _holding_of(
    source: PlanOrPath, holding: str | os.PathLike[str] | None
) -> tuple[Path, Journal, set[str] | None]:
    planned = None
    if isinstance(source, Plan):
        folder = default_holding(local_lake(source.lake)) if holding is None else holding
        planned = {item.table for item in source.delete}
    else:
        if holding is not None:
            raise InputError("Give the holding folder once: as the source, or with a plan.")
        folder = source
    require_local(folder)
    return Path(folder), require_journal(Path(folder)), planned


def _entries(
    folder: Path, journal: Journal, planned: set[str] | None, tables: Iterable[str] | None
) -> dict[str, HeldTable]:
    """Return the entries of the tables of a plan and of those named, where either is given."""
    entries = journal.tables
    if tables is not None:
        named = list(dict.fromkeys(tables))
        for name in named:
            if name not in entries:
                raise InputError(f"'{folder}' holds no table {name!r}.")
        entries = {name: entries[name] for name in named}
    if planned is None:
        return entries
    return {name: entry for name, entry in entries.items() if name in planned}


class _Moving:
    """What both directions share: the places of a table, and moves from one to the other."""

    def __init__(self, lake: Path, folder: Path, journal: Journal) -> None:
        self.lake, self.named_lake, self.folder = lake.resolve(), lake, folder  # links followed
        self.stored, self.copies = folder.resolve() / TABLES, folder.resolve() / COPIES
        self.journal = journal

    def leaving(self, table: str) -> Path:
        """Return the hidden name in the lake of an original whose copy is whole."""
        return (self.lake / table).with_name(f".pexeso-leaving-{copy_name(table)}")

    def copy_of(self, table: str) -> Path:
        return self.copies / copy_name(table)

    def note_of(self, table: str) -> Path:
        """Return the file that says under which name a copy is made in the lake."""
        return self.copies / f"{copy_name(table)}{ARRIVING}"

    def settle(self, table: str) -> None:
        """Remove the copies that a killed process left of a table, and nothing that is none."""
        stored = self.stored / table
        if table not in self.journal.tables or not os.path.lexists(stored):
            return
        leaving, note = self.leaving(table), self.note_of(table)
        if os.path.lexists(leaving):
            self._remove_original(leaving, stored, leaving)
        if os.path.lexists(note):
            if (name := noted_arrival(note)) is not None:
                arriving = (self.lake / table).with_name(name)
                if os.path.lexists(arriving) and is_part_of(arriving, stored):
                    remove_copy(arriving)
            remove_copy(note)

    def finish_leaving(self, table: str) -> None:
        source, leaving, stored = self.lake / table, self.leaving(table), self.stored / table
        rename_new(source, leaving)
        try:
            self._remove_original(leaving, stored, source)
        except TableRefused:
            rename_new(leaving, source)
            rename_new(stored, self.copy_of(table))
            remove_copy(self.copy_of(table))
            raise

    def _remove_original(self, original: Path, copied: Path, shown: Path) -> bool:
        """Remove what has a whole copy, unless somebody could still write to it.

        Return False where nothing says whether somebody could: it stays until a later call, when
        nobody has touched it for a while.
        """
        is_known = require_not_written(original, shown)
        require_copied(original, copied)
        if not is_known and not has_settled(original):
            return False
        remove_copy(original)
        return True


class _SettingAside(_Moving):
    def __init__(
        self,
        lake: Path,
        folder: Path,
        journal: Journal,
        *,
        check: Check | None,
        times: tuple[str, str],
        linked: dict[Path, str],
    ) -> None:
        super().__init__(lake, folder, journal)
        self.check, self.times, self.linked = check, times, linked
        self._parents: dict[str, tuple[Snapshot, str]] = {}

    def move(self, table: str, item: Deletion) -> bool:
        """Set a table aside; return False where it was."""
        source, stored = self.lake / table, self.stored / table
        require_inside(self.lake, table)
        require_inside(self.stored, table)
        self.settle(table)
        held = self.journal.tables.get(table)
        if not os.path.lexists(source):
            if held and held.fingerprint == item.fingerprint and os.path.lexists(stored):
                return False
            raise TableRefused("it is not in the lake")
        self._require_not_needed(table)
        if not os.access(source.parent, os.W_OK):  # known before a copy is made in vain
            raise TableRefused(f"there is no permission to change '{source.parent}'")
        before = snapshot(source)
        if self.check is not None and (reason := self._checked(item)) is not None:
            raise TableRefused(reason)
        if table_fingerprint(source) != item.fingerprint:
            raise TableRefused("it has changed since the plan was made")
        self._require_parent(item)
        is_copied = os.path.lexists(stored)  # by a process that was killed; or it is another table
        if is_copied and (held is None or table_fingerprint(stored) != item.fingerprint):
            raise TableRefused(f"'{stored}' is there already")
        parent = item.parent, item.parent_fingerprint
        self.journal.add(
            HeldTable(
                table,
                str(self.named_lake / table),
                *self.times,
                item.bytes,
                item.fingerprint,
                *parent,
                item.sql,
            )
        )
        if is_copied:
            self.finish_leaving(table)
            return True
        make_folders(self.stored, table)
        try:
            rename_new(source, stored)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
        else:
            if snapshot(stored) != before:
                rename_new(stored, source)
                raise TableRefused("it was changed while it was moved")
            return True
        require_removable(source)
        copy_whole(source, self.copy_of(table), item.fingerprint)
        rename_new(self.copy_of(table), stored)
        self.finish_leaving(table)
        return True

    def keeps(self, table: str) -> bool:  # the original of what was moved
        return os.path.lexists(self.leaving(table))

    def _checked(self, item: Deletion) -> str | None:
        try:
            return self.check(item) if self.check is not None else None
        except PexesoError as error:
            return f"it could not be checked: {error}"

    def _require_not_needed(self, table: str) -> None:
        for held in self.journal.tables.values():
            if held.parent == table and not os.path.lexists(self.lake / held.table):
                raise TableRefused(
                    f"{held.table!r}, which was set aside earlier, is rebuilt from it; bring that "
                    "back or rebuild it first"
                )
        real = (self.lake / table).resolve()
        for target, name in self.linked.items():
            if target.is_relative_to(real):
                raise TableRefused(f"{name!r}, which stays, is a symbolic link to it")

    def _require_parent(self, item: Deletion) -> None:
        try:
            path = (self.lake / item.parent).resolve(strict=True)
            if not path.is_relative_to(self.lake):
                raise TableRefused(f"its parent {item.parent!r} is a link out of the lake")
            seen = snapshot(path)
            known = self._parents.get(item.parent)
            if known is None or known[0] != seen:
                known = self._parents[item.parent] = seen, table_fingerprint(path)
        except (OSError, RuntimeError) as error:
            raise TableRefused(f"its parent {item.parent!r} is not in the lake") from error
        if known[1] != item.parent_fingerprint:
            raise TableRefused(f"its parent {item.parent!r} has changed since the plan was made")


class _BringingBack(_Moving):
    def move(self, table: str, entry: HeldTable) -> bool:
        """Bring a table back; return False where it was in the lake."""
        target, stored, leaving = self.lake / table, self.stored / table, self.leaving(table)
        require_inside(self.lake, table)
        require_inside(self.stored, table)
        self.settle(table)
        if not os.path.lexists(stored):
            if os.path.lexists(target):
                return False
            raise TableRefused("it is neither in the holding folder nor in the lake")
        if os.path.lexists(target):
            if table_fingerprint(target) != entry.fingerprint:
                raise TableRefused(_NAME_TAKEN)
            self._drop_copy(table)  # one of two equal ones: a killed process was copying
            return True
        if table_fingerprint(stored) != entry.fingerprint:
            raise TableRefused(f"'{stored}' has changed since it was set aside")
        make_folders(self.lake, table)
        try:
            rename_new(stored, target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
        else:
            remove_empty_folders(self.stored, table)
            return True
        if os.path.lexists(leaving):  # the original, which was kept
            rename_new(leaving, target)
        else:
            # A name of its own: a file of somebody's may have any that can be foreseen.
            arriving = target.with_name(f".pexeso-arriving-{secrets.token_hex(16)}")
            note_arrival(self.note_of(table), arriving.name)
            try:
                copy_whole(stored, arriving, entry.fingerprint)
                rename_new(arriving, target)
            finally:
                remove_copy(arriving)  # where its name was taken meanwhile
                remove_copy(self.note_of(table))
        self._drop_copy(table)
        return True

    def _drop_copy(self, table: str) -> None:
        stored, copied = self.stored / table, self.copy_of(table)
        rename_new(stored, copied)
        try:
            is_gone = self._remove_original(copied, self.lake / table, stored)
        except TableRefused:
            rename_new(copied, stored)
            raise
        if is_gone:
            remove_empty_folders(self.stored, table)
        else:
            rename_new(copied, stored)

    def keeps(self, table: str) -> bool:  # as above
        return os.path.lexists(self.stored / table)


def _for_each(moving: _SettingAside | _BringingBack, chosen: dict, again: str) -> Applied:
    moved: list[str] = []
    already: list[str] = []
    refused: list[Refusal] = []
    stopped, names = None, list(chosen)
    for table, entry in chosen.items():
        try:
            (moved if moving.move(table, entry) else already).append(table)
        except TableRefused as error:
            refused.append(Refusal(table, str(error)))
        except OSError as error:
            reason = reason_of(error, moving.folder)
            if error.errno not in _ENDS_ALL:
                refused.append(Refusal(table, reason))
                continue
            stopped = (
                f"{len(moved)} of {len(names)} tables were moved, then {table!r} could not be: "
                f"{reason}; {way_out(error)}, then {again} again to go on."
            )
            break
    with contextlib.suppress(OSError):
        prune(moving.journal, moving.folder)
    n_finished = len(moved) + len(already) + len(refused)
    return Applied(
        str(moving.named_lake),
        str(moving.folder),
        tuple(moved),
        tuple(already),
        tuple(refused),
        stopped,
        tuple(names[n_finished:]),
        tuple(table for table in (*moved, *already) if moving.keeps(table)),
    )
