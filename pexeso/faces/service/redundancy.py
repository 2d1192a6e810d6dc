"""Requests about redundant tables, and what answers them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import msgspec

from pexeso.faces.service.bases import Conf, Master, Overwrite, Request
from pexeso.faces.service.schema import Positive, Share, option
from pexeso.options import BuildOptions
from pexeso.redundancy import METHODS, SEMANTICS
from pexeso.store.io.temporary import require_free

if TYPE_CHECKING:
    from pexeso.faces.service.verbs import Service
    from pexeso.redundancy.plan import Applied
    from pexeso.redundancy.search import Redundancy


DEFAULT_EXPIRES_DAYS = 30.0

Yes = Annotated[bool, option("Move the tables; without it, only list them.")]


class RedundancyRequest(Request, frozen=True, kw_only=True):
    """Find tables that are contained in others, and plan which can go.

    See `pexeso.find_redundancy`. `lake` is an index, a folder, or the name of a Spark table or
    database. The plan is written to the file `plan`; its statements are run then.
    """

    verb: ClassVar[str] = "redundancy"

    lake: str
    method: Annotated[
        Literal[METHODS],  # type: ignore[valid-type]
        option(
            "Compare all rows, or sample a folder that is too large to be read whole. Tables that "
            "can go are compared whole either way."
        ),
    ] = "exact"
    sample_rows: Annotated[
        Positive,
        option("Rows drawn from each table by the method sampled.", metavar="N", expert=True),
    ] = 10
    min_containment: Annotated[
        Share,
        option(
            "List pairs with at least this share of the rows contained. Only tables that are "
            "contained completely can go.",
            metavar="0..1",
            label="Share of its rows, at least",
        ),
    ] = 1.0
    semantics: Annotated[
        Literal[SEMANTICS],  # type: ignore[valid-type]
        option(
            "set: each row of a table must occur in the other table. bag: as often as in the "
            "table.",
            label="Rows that repeat",
            labels={"set": "count once (set)", "bag": "count each (bag)"},
        ),
    ] = "set"
    row_count_gate: Annotated[
        bool, option("Leave out pairs whose smaller table has more rows.", expert=True)
    ] = True
    case_sensitive: Annotated[
        bool, option("Distinguish columns whose names differ in case alone.", expert=True)
    ] = False
    synonyms: Annotated[
        str | None, option("Column names with the same meaning: TOML.", metavar="FILE", expert=True)
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
            "Statements that rebuild tables, if you know them: TOML. Used with --plan.",
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
        int, option("Leave out larger text files.", is_size=True, default="1GiB", expert=True)
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

    Without `yes` nothing is moved, and the response says what would be.
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

    Without `yes` nothing is moved, and the response says what would be.
    """

    verb: ClassVar[str] = "undo_plan"

    source: str
    holding: Annotated[
        str | None, option("The folder that the plan was applied with.", metavar="FOLDER")
    ] = None
    tables: Annotated[
        tuple[str, ...], option("Bring these tables back, not all.", metavar="TABLE")
    ] = ()
    yes: Yes = False


def redundancy(service: Service, request: RedundancyRequest, **live: Any) -> Redundancy:
    """Answer a request for redundant tables, and write the plan where it has a file."""
    from pexeso.redundancy.search import find_redundancy

    arguments = request.fields()
    lake, plan, overwrite = (arguments.pop(name) for name in ("lake", "plan", "overwrite"))
    if plan is not None:
        require_free(plan, overwrite=overwrite)
    source = service.store(lake) if service.is_open(lake) else lake
    report = find_redundancy(source, verified=plan is not None, **arguments, **live)
    if plan is not None:
        report.write_plan(plan, overwrite=overwrite)
    return report


def apply_plan(service: object, request: ApplyPlanRequest) -> Applied:
    from pexeso.redundancy import plan_actions

    arguments = request.fields()
    if arguments.pop("yes"):
        return plan_actions.apply_plan(arguments.pop("plan"), **arguments)
    return plan_actions.before_applying(request.plan, request.holding)


def undo_plan(service: object, request: UndoPlanRequest) -> Applied:
    from pexeso.redundancy import holding

    act = holding.undo_plan if request.yes else holding.before_undoing
    return act(request.source, holding=request.holding, tables=request.tables or None)
