"""The plan document: which tables can go, and what becomes of them."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from pexeso.errors import InputError
from pexeso.lake.frames.tables import AsTables
from pexeso.runtime.extras import require
from pexeso.runtime.formatting import Shown, many
from pexeso.store.io.temporary import written_whole
from pexeso.store.manifest import is_unicode

FORMAT, VERSION = "pexeso-redundancy-plan", 1
_WAY_OUT = "make the plan again"


@dataclass(frozen=True)
class Refusal:
    """A table that was not moved, and a clause that says why."""

    table: str
    reason: str


@dataclass(frozen=True, repr=False)
class Applied(Shown):
    """What became of the tables of a plan, or, as `undo_plan` returns it, of those set aside.

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


@dataclass(frozen=True)
class Deletion:
    """A table that can go.

    Attributes
    ----------
    table, parent
        Names: the table, and the one that holds all its rows and stays.
    sql
        What rebuilds the table from its parent.
    bytes, rows
        Size of the table.
    saving
        What its deletion saves, in the unit of the plan's costs.
    seconds
        Estimated time of a rebuild; None where it is unknown.
    derived
        Other tables whose rows are all in this one: those who made them may still read it. Tables
        of the same rows are not among them.
    fingerprint, parent_fingerprint
        Contents that the plan was made for.
    verified
        The statement was run on these contents, and gave the table.
    """

    table: str
    parent: str
    sql: str
    bytes: int
    rows: int
    saving: float
    seconds: float | None
    derived: tuple[str, ...]
    fingerprint: str
    parent_fingerprint: str
    verified: bool


@dataclass(frozen=True)
class ContainmentEdge:
    """A table and one that holds its rows: which share of them, and how many rows the child has."""

    parent: str
    child: str
    containment: float
    rows: int


@dataclass(frozen=True, repr=False)
class Plan(AsTables):
    """A plan of deletions, as its document holds it.

    Attributes
    ----------
    lake
        The lake: an absolute path, or what else names it.
    created
        ISO time.
    costs
        Prices that the plan was made with, as plain JSON.
    cost, keep_all_cost
        Of the plan, and of keeping all tables.
    optimal, gap
        Whether no plan is cheaper, and how much cheaper one could be as a share; None for unknown.
    delete, keep
        Tables that can go, and names of those that stay.
    edges
        The containments that the plan was chosen from.
    """

    lake: str
    created: str
    costs: Mapping[str, Any]
    cost: float
    keep_all_cost: float
    optimal: bool
    gap: float | None
    delete: tuple[Deletion, ...]
    keep: tuple[str, ...]
    edges: tuple[ContainmentEdge, ...] = ()

    # Columns of `to_pandas` and the others; a class variable, so that the document has it not.
    fields: ClassVar[Sequence[str]] = (
        "table", "parent", "bytes", "rows", "saving", "seconds", "verified", "derived", "sql",
    )  # fmt: skip

    def _table_rows(self) -> list[dict[str, Any]]:
        return [{name: getattr(deletion, name) for name in self.fields} for deletion in self.delete]

    def _field_types(self) -> Mapping[str, pa.DataType]:
        numbers = dict.fromkeys(("bytes", "rows"), pa.int64())
        floats = dict.fromkeys(("saving", "seconds"), pa.float64())
        texts = dict.fromkeys(("table", "parent", "sql"), pa.string())
        others = {"verified": pa.bool_(), "derived": pa.list_(pa.string())}
        return {**numbers, **floats, **texts, **others}

    def _summary(self) -> str:
        remainder = f"{len(self.keep):,} stay"
        return f"{many(len(self.delete), 'table')} can go, {remainder}, cost {self.cost:.4g}"

    def _shown(self) -> tuple[list[str], list[list[Any]]]:
        rows = [[deletion.table, deletion.parent, deletion.bytes] for deletion in self.delete]
        return ["table", "parent", "bytes"], rows


def write_plan(path: str | os.PathLike[str], plan: Plan, *, overwrite: bool = False) -> None:
    document = plan_to_json(plan)
    plan_from_json(document)
    text = json.dumps(document, sort_keys=True, indent=1, allow_nan=False) + "\n"
    with written_whole(path, overwrite=overwrite) as temporary:
        temporary.write_text(text, encoding="ascii")


PlanOrPath = Plan | str | os.PathLike[str]


def read_plan(path: PlanOrPath) -> Plan:
    if isinstance(path, Plan):
        return path
    try:
        document = json.loads(Path(path).read_bytes(), parse_constant=_no_number)
    except OSError as error:
        raise InputError(f"The plan '{path}' cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"'{path}' is not readable as JSON: {error}; {_WAY_OUT}.") from error
    try:
        return plan_from_json(document)
    except InputError as error:
        raise InputError(f"The plan '{path}' cannot be used: {error}") from error


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number of a plan")


def plan_to_json(plan: Plan) -> dict[str, Any]:
    return {"format": FORMAT, "version": VERSION, **json.loads(json.dumps(asdict(plan)))}


def plan_from_json(document: Any) -> Plan:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError(f"it is not a document of the format '{FORMAT}'; {_WAY_OUT}.")
    version = document.get("version")
    if type(version) is not int or version != VERSION:
        raise InputError(
            f"its version is {version!r}, and this program reads version {VERSION}; {_WAY_OUT}."
        )
    values = {name: value for name, value in document.items() if name not in ("format", "version")}
    plan = _made(Plan, values, "the plan")
    require_consistent(plan)
    for item in plan.delete:
        try:
            checked_statement(item.sql, item.parent)
        except InputError as error:
            raise InputError(f"the statement of {item.table!r} cannot be run: {error}") from error
    return plan


def require_consistent(plan: Plan) -> None:
    """Check the names of a plan's tables, and that what is needed for a rebuild stays."""
    for edge in plan.edges:
        require_table(edge.parent)
        require_table(edge.child)
    deleted = _distinct((item.table for item in plan.delete), "is deleted twice")
    remaining = _distinct(plan.keep, "is kept twice")
    for table in sorted(deleted & remaining):
        raise InputError(f"the table {table!r} is both deleted and kept; {_WAY_OUT}.")
    if "." in deleted:
        raise InputError(f"the whole lake would be deleted; {_WAY_OUT}.")
    for item in plan.delete:
        require_table(item.parent)
        if item.parent not in remaining:
            why = (
                "itself deleted" if item.parent in deleted else "not among the tables that are kept"
            )
            raise InputError(
                f"the table {item.table!r} would be rebuilt from {item.parent!r}, which is {why}; "
                f"{_WAY_OUT}."
            )
    for table in sorted(deleted | remaining):
        parts = table.split("/")
        for outer in ("/".join(parts[:end]) for end in range(1, len(parts))):
            if outer in deleted:
                raise InputError(
                    f"the table {table!r} lies in {outer!r}, which is deleted; {_WAY_OUT}."
                )


def _distinct(tables: Iterable[str], twice: str) -> set[str]:
    seen: set[str] = set()
    for table in map(require_table, tables):
        if table in seen:
            raise InputError(f"the table {table!r} {twice}; {_WAY_OUT}.")
        seen.add(table)
    return seen


def can_name_table(name: str) -> bool:
    """Return whether a text can name a table of a lake: a relative POSIX path that stays inside."""
    if name == ".":
        return True  # the files of the lake's own folder are one table
    parts = name.split("/")
    return is_unicode(name) and "\0" not in name and not {"", ".", ".."}.intersection(parts)


def require_table(name: str) -> str:
    if not can_name_table(name):
        raise InputError(
            f"{name!r} is not the name of a table in the lake: allowed are relative paths without "
            f"'.' and '..'; {_WAY_OUT}."
        )
    return name


def _made(kind: type, document: Any, where: str) -> Any:
    """Make a dataclass of a JSON object that has its fields and no others."""
    if not isinstance(document, dict):
        raise InputError(f"{where} is {type(document).__name__}, not an object; {_WAY_OUT}.")
    names = {field.name: str(field.type) for field in fields(kind)}
    for name in sorted(names.keys() ^ document.keys()):
        what = "lacks" if name in names else "has the unknown field"
        raise InputError(f"{where} {what} {name!r}; {_WAY_OUT}.")
    return kind(**{name: _value(names[name], document[name], name, where) for name in names})


def _value(kind: str, value: Any, name: str, where: str) -> Any:
    if kind in _PARTS and isinstance(value, list):
        part, of = _PARTS[kind], f"of '{name}' in {where}"
        return tuple(_made(part, entry, f"entry {n} {of}") for n, entry in enumerate(value, 1))
    if kind == "tuple[str, ...]" and isinstance(value, list):
        return tuple(_value("str", text, name, where) for text in value)
    allowed, is_allowed = _KINDS[kind]
    if not is_allowed(value):
        shown = repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:60]}..."
        raise InputError(f"{name!r} of {where} must be {allowed}, but is {shown}; {_WAY_OUT}.")
    return value


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


_PARTS = {"tuple[Deletion, ...]": Deletion, "tuple[ContainmentEdge, ...]": ContainmentEdge}
_KINDS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "str": ("a text that is not empty", lambda value: isinstance(value, str) and value != ""),
    "int": ("a whole number that is not negative", lambda value: type(value) is int and value >= 0),
    "float": ("a finite number", _is_number),
    "float | None": ("a finite number or null", lambda value: value is None or _is_number(value)),
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "Mapping[str, Any]": ("an object", lambda value: isinstance(value, dict)),
    "tuple[str, ...]": ("a list of texts", lambda value: False),
    **dict.fromkeys(_PARTS, ("a list of objects", lambda value: False)),
}


def checked_statement(sql: str, table: str) -> str:
    """Return a statement as it may be run; see `pexeso.redundancy.statements`."""
    require("sqlglot", "A statement that rebuilds a table")
    from pexeso.redundancy import statements

    return statements.checked_statement(sql, table)
