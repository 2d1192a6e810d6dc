"""Requests about redundant tables, and what answers them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pexeso.errors import InputError
from pexeso.io.whole_files import require_free
from pexeso.options import BuildOptions
from pexeso.redundancy import SEMANTICS
from pexeso.service.bases import Request

if TYPE_CHECKING:
    from pexeso.cleanup.acting import PlanCheck
    from pexeso.cleanup.redundancy import Redundancy
    from pexeso.cleanup.set_aside.outcome import Applied
    from pexeso.service.verbs import Service

DEFAULT_EXPIRES_DAYS = 30.0


@dataclass(frozen=True, kw_only=True)
class RedundancyRequest(Request, verb="redundancy"):
    """Find tables that are contained in others, and plan which can go.

    See `pexeso.find_redundancy`.

    Attributes
    ----------
    lake : str
        An index, a folder, or the name of a Spark table or database.
    plan : str or None
        The file that the plan is written to; its statements are run then.
    overwrite : bool
        Replace a file that exists.
    """

    lake: str
    min_containment: float = 1.0
    semantics: Literal[SEMANTICS] = "set"  # type: ignore[valid-type]
    row_count_gate: bool = True
    case_sensitive: bool = False
    synonyms: str | None = None
    costs: str | None = None
    accesses: str | None = None
    statements: str | None = None
    plan: str | None = None
    overwrite: bool = False
    max_table_bytes: int = BuildOptions.max_table_bytes
    work_folder: str | None = None
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.min_containment <= 1:
            raise InputError(
                "min_containment is above 0 and at most 1 (inclusive). Got "
                f"{self.min_containment!r}."
            )


@dataclass(frozen=True, kw_only=True)
class VerifyPlanRequest(Request, verb="verify_plan"):
    """Hold a plan against the lake of now; see `pexeso.verify_plan`."""

    plan: str
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ApplyPlanRequest(Request, verb="apply_plan"):
    """Move the tables of a plan to a holding folder; see `pexeso.apply_plan`.

    Attributes
    ----------
    yes : bool
        Without it nothing is moved, and the response says what would be.
    """

    plan: str
    holding: str | None = None
    expires_days: float = DEFAULT_EXPIRES_DAYS
    compare_rows: bool = False
    yes: bool = False
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class UndoPlanRequest(Request, verb="undo_plan"):
    """Bring tables of a plan or a holding folder back; see `pexeso.undo_plan`.

    Attributes
    ----------
    yes : bool
        Without it nothing is moved, and the response says what would be.
    """

    source: str
    holding: str | None = None
    tables: tuple[str, ...] = ()
    yes: bool = False


def redundancy(service: Service, request: RedundancyRequest, **live: Any) -> Redundancy:
    """Answer a request for redundant tables, and write the plan where one is asked for."""
    from pexeso.cleanup.redundancy import find_redundancy

    arguments = dict(vars(request))
    lake, plan, overwrite = (arguments.pop(name) for name in ("lake", "plan", "overwrite"))
    if plan is not None:
        require_free(plan, overwrite=overwrite)
    source = service.store(lake) if service.is_open(lake) else lake
    report = find_redundancy(source, verified=plan is not None, **arguments, **live)
    if plan is not None:
        report.write_plan(plan, overwrite=overwrite)
    return report


def verify_plan(service: object, request: VerifyPlanRequest) -> PlanCheck:
    """Answer a request to verify a plan."""
    from pexeso.cleanup import acting

    arguments = dict(vars(request))
    return acting.verify_plan(arguments.pop("plan"), **arguments)


def apply_plan(service: object, request: ApplyPlanRequest) -> Applied:
    """Answer a request to apply a plan."""
    from pexeso.cleanup import acting

    arguments = dict(vars(request))
    if arguments.pop("yes"):
        return acting.apply_plan(arguments.pop("plan"), **arguments)
    return acting.before_applying(request.plan, request.holding)


def undo_plan(service: object, request: UndoPlanRequest) -> Applied:
    """Answer a request to bring tables back."""
    from pexeso.cleanup import acting

    act = acting.undo_plan if request.yes else acting.before_undoing
    return act(request.source, holding=request.holding, tables=request.tables or None)
