"""What is done with a plan: it is compared with the lake as it is, and applied."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pexeso.build.spark.session import plain_task_errors, spark_session
from pexeso.redundancy import holding as set_aside
from pexeso.redundancy.holding_folder import default_holding, local_holding, local_lake, reason_of
from pexeso.redundancy.plan import Applied, Deletion, PlanOrPath, Refusal, read_plan
from pexeso.redundancy.table_files import TableRefused, table_fingerprint
from pexeso.runtime.formatting import Shown, many


@dataclass(frozen=True, repr=False)
class PlanCheck(Shown):
    """What a plan is worth on the lake of now.

    Attributes
    ----------
    lake : str
    right : tuple of str
        Tables that are as they were, like their parents, and that their statement gives.
    wrong : tuple of Refusal
        The others, each with the reason.
    """

    lake: str
    right: tuple[str, ...]
    wrong: tuple[Refusal, ...]

    def _summary(self) -> str:
        return f"{many(len(self.right), 'table')} right, {len(self.wrong):,} wrong"

    def _shown(self) -> tuple[list[str], list[list[Any]]]:
        wrong = [[refusal.table, refusal.reason] for refusal in self.wrong]
        return ["table", "reason"], [*wrong, *([name, "right"] for name in self.right)]

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form."""
        return {"ok": not self.wrong, **asdict(self)}


def verify_plan(
    plan: PlanOrPath, *, master: str | None = None, conf: Mapping[str, Any] | None = None
) -> PlanCheck:
    """Hold a plan against the lake of now: contents, and what the statements give.

    Parameters
    ----------
    plan : path or Plan
    master, conf
        Of Spark, which runs the statements; see `pexeso.build_index`.

    Raises
    ------
    InputError, LakeError, SparkError
        See `pexeso.errors`.
    """
    from pexeso.redundancy.rebuilds import Statement, verify_statements

    plan = read_plan(plan)
    lake = local_lake(plan.lake)
    wrong = _changed(lake, plan.delete)
    statements = [
        Statement(item.table, item.parent, item.sql)
        for item in plan.delete
        if item.table not in wrong
    ]
    if statements:
        with (
            spark_session(master, conf=conf) as spark,
            plain_task_errors("comparing tables", "free some space, and run this again."),
        ):
            wrong |= verify_statements(spark, lake, statements)
    names = [item.table for item in plan.delete]
    return PlanCheck(
        str(lake),
        tuple(name for name in names if name not in wrong),
        tuple(Refusal(name, wrong[name]) for name in names if name in wrong),
    )


def apply_plan(
    plan: PlanOrPath,
    holding: str | os.PathLike[str] | None = None,
    *,
    expires_days: float = 30,
    compare_rows: bool = False,
    master: str | None = None,
    conf: Mapping[str, Any] | None = None,
) -> Applied:
    """Move the tables that a plan deletes to a holding folder; nothing is deleted.

    A table whose content, or whose parent's, is not that of the plan stays, and so does one whose
    statement was never run.

    Parameters
    ----------
    plan : path or Plan
        Of a lake that is a folder of this machine.
    holding : path, optional
        The folder; next to the lake, with ``.holding`` behind its name, unless given. It may lie on
        another file system, not in the lake.
    expires_days : float
        Days until a table counts as expired; then it still stays there.
    compare_rows : bool
        Run the statements once more and compare all rows first. Contents that are those of the
        plan give the same again, so this guards against a damaged plan or a changed Spark.
    master, conf
        Of Spark, for `compare_rows`.

    Raises
    ------
    InputError, LakeError, OutputError, SparkError
        See `pexeso.errors`.
    """
    plan = read_plan(plan)
    reasons: dict[str, str] = {}
    if compare_rows:
        check = verify_plan(plan, master=master, conf=conf)
        reasons = {refusal.table: refusal.reason for refusal in check.wrong}

    def why_not(item: Deletion) -> str | None:
        if item.table in reasons:
            return reasons[item.table]
        if item.verified or compare_rows:
            return None
        return "its statement was not run when the plan was made; compare rows first"

    return set_aside.apply_plan(plan, holding, expires_days=expires_days, check=why_not)


def before_applying(plan: PlanOrPath, holding: str | os.PathLike[str] | None = None) -> Applied:
    """Return what applying a plan would move, as ``waiting``; nothing is looked at."""
    plan = read_plan(plan)
    lake = local_lake(plan.lake)
    folder = local_holding(default_holding(lake) if holding is None else holding, lake)
    names = tuple(item.table for item in plan.delete)
    return Applied(str(lake), str(folder), (), (), (), None, names)


def _changed(lake: Path, deletions: Iterable[Deletion]) -> dict[str, str]:
    known: dict[str, str] = {}
    reasons: dict[str, str] = {}
    for item in deletions:
        for table, expected, shown in (
            (item.table, item.fingerprint, "it"),
            (item.parent, item.parent_fingerprint, f"its parent {item.parent!r}"),
        ):
            try:
                if table not in known:
                    known[table] = table_fingerprint(lake / table)
            except FileNotFoundError:
                reasons[item.table] = f"{shown} is not in the lake"
            except OSError as error:
                reasons[item.table] = reason_of(error, lake / table)
            except TableRefused as error:
                reasons[item.table] = str(error)
            if item.table in reasons:
                break
            if known[table] != expected:
                reasons[item.table] = f"{shown} has changed since the plan was made"
                break
    return reasons
