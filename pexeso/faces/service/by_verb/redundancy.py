"""Requests about redundant tables, and what answers them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import msgspec

from pexeso.faces.service.bases import Conf, Master, Overwrite, Request
from pexeso.faces.service.schema import Share, option
from pexeso.options import BuildOptions
from pexeso.redundancy import SEMANTICS
from pexeso.store.io.whole_files import require_free

if TYPE_CHECKING:
    from pexeso.faces.service.verbs import Service
    from pexeso.redundancy.plans.acting import PlanCheck
    from pexeso.redundancy.plans.redundancy import Redundancy
    from pexeso.redundancy.plans.set_aside.outcome import Applied

DEFAULT_EXPIRES_DAYS = 30.0

Yes = Annotated[bool, option("Move the tables; without it, what would be moved is listed.")]


class RedundancyRequest(Request, frozen=True, kw_only=True):
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

    verb: ClassVar[str] = "redundancy"

    lake: str
    min_containment: Annotated[
        Share,
        option(
            "List pairs of which at least this share of the rows is contained; 1: all. Only tables "
            "that are contained completely can go.",
            metavar="0..1",
        ),
    ] = 1.0
    semantics: Annotated[
        Literal[SEMANTICS],  # type: ignore[valid-type]
        option(
            "Whether each row of a table must be in the other one (set), or as often as in the "
            "table (bag)."
        ),
    ] = "set"
    row_count_gate: Annotated[
        bool, option("Leave out pairs whose smaller table has more rows.", expert=True)
    ] = True
    case_sensitive: Annotated[
        bool, option("Distinguish columns whose names differ in case alone.", expert=True)
    ] = False
    synonyms: Annotated[
        str | None,
        option("Column names with the same meaning: TOML.", metavar="FILE", expert=True),
    ] = None
    costs: Annotated[
        str | None, option("Prices of keeping and rebuilding tables: TOML.", metavar="FILE")
    ] = None
    accesses: Annotated[
        str | None,
        option(
            "How often tables are used in a month: a CSV with the columns table and accesses.",
            metavar="FILE",
        ),
    ] = None
    statements: Annotated[
        str | None,
        option(
            "Statements that rebuild tables, where you know them: TOML. They count with --plan.",
            metavar="FILE",
        ),
    ] = None
    plan: Annotated[
        str | None,
        option(
            "Write the plan for pexeso redundancy apply; each of its statements is run first.",
            metavar="FILE",
        ),
    ] = None
    overwrite: Overwrite = False
    max_table_bytes: Annotated[
        int,
        option("Leave out larger text files.", is_size=True, default="1GiB", expert=True),
    ] = BuildOptions.max_table_bytes
    work_folder: Annotated[
        str | None,
        option(
            "Folder for hashes of all cells of a lake without an index, up to 16 bytes each.",
            metavar="FOLDER",
            default="the folder for temporary files",
            expert=True,
        ),
    ] = None
    master: Master = None
    conf: Conf = msgspec.field(default_factory=dict)


class VerifyPlanRequest(Request, frozen=True, kw_only=True):
    """Hold a plan against the lake of now; see `pexeso.verify_plan`."""

    verb: ClassVar[str] = "verify_plan"

    plan: str
    master: Master = None
    conf: Conf = msgspec.field(default_factory=dict)


class ApplyPlanRequest(Request, frozen=True, kw_only=True):
    """Move the tables of a plan to a holding folder; see `pexeso.apply_plan`.

    Attributes
    ----------
    yes : bool
        Without it nothing is moved, and the response says what would be.
    """

    verb: ClassVar[str] = "apply_plan"

    plan: str
    holding: Annotated[
        str | None,
        option(
            "Folder that tables are moved to, outside the lake.",
            metavar="FOLDER",
            default="next to the lake, with .holding after its name",
        ),
    ] = None
    expires_days: Annotated[
        float, option("Days until tables that were set aside count as expired.", metavar="N")
    ] = DEFAULT_EXPIRES_DAYS
    compare_rows: Annotated[
        bool, option("Run the statements again first, and compare all rows.")
    ] = False
    yes: Yes = False
    master: Master = None
    conf: Conf = msgspec.field(default_factory=dict)


class UndoPlanRequest(Request, frozen=True, kw_only=True):
    """Bring tables of a plan or a holding folder back; see `pexeso.undo_plan`.

    Attributes
    ----------
    yes : bool
        Without it nothing is moved, and the response says what would be.
    """

    verb: ClassVar[str] = "undo_plan"

    source: str
    holding: Annotated[
        str | None, option("The folder that the plan was applied with.", metavar="FOLDER")
    ] = None
    tables: Annotated[
        tuple[str, ...],
        option(
            "Bring this table back, not all. May be repeated.",
            "--only",
            metavar="TABLE",
            is_repeated=True,
        ),
    ] = ()
    yes: Yes = False


def redundancy(service: Service, request: RedundancyRequest, **live: Any) -> Redundancy:
    """Answer a request for redundant tables, and write the plan where one is asked for."""
    from pexeso.redundancy.plans.redundancy import find_redundancy

    arguments = request.fields()
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
    from pexeso.redundancy.plans import acting

    arguments = request.fields()
    return acting.verify_plan(arguments.pop("plan"), **arguments)


def apply_plan(service: object, request: ApplyPlanRequest) -> Applied:
    """Answer a request to apply a plan."""
    from pexeso.redundancy.plans import acting

    arguments = request.fields()
    if arguments.pop("yes"):
        return acting.apply_plan(arguments.pop("plan"), **arguments)
    return acting.before_applying(request.plan, request.holding)


def undo_plan(service: object, request: UndoPlanRequest) -> Applied:
    """Answer a request to bring tables back."""
    from pexeso.redundancy.plans import acting

    act = acting.undo_plan if request.yes else acting.before_undoing
    return act(request.source, holding=request.holding, tables=request.tables or None)
