"""What an update did, and what each stage of a build took: rows, bytes and seconds.

Tasks measure themselves (`pexeso.build.workers.Attempt`) and send a few numbers back with their
results; no page of Spark's and no listener is needed. What is kept of a stage has one size, however
many tasks there were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from pexeso import registry
from pexeso.build.parts.base import OfParts, Written
from pexeso.build.workers import SUMS, median
from pexeso.errors import InputError

if TYPE_CHECKING:
    from pexeso.lake.left_out import ReasonGroup

# The report of a build or an update, in its folder of the catalog.
REPORT_FILE = "report.json"


@dataclass(frozen=True)
class StageReport:
    """What a stage did. A number that was not measured is None."""

    stage: str
    seconds: float  # Wall time
    rows_in: int | None = None
    rows_out: int | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None
    tasks: int | None = None
    # Wall time of all of them together, the wait for their input included.
    task_seconds: float | None = None
    slowest_seconds: float | None = None  # Of one task; the median to 2.5 %.
    median_seconds: float | None = None

    @property
    def skew(self) -> float | None:
        """How many times longer than the median the slowest task took; at least 1."""
        if self.slowest_seconds is None or not self.median_seconds:
            return None
        return max(1.0, self.slowest_seconds / self.median_seconds)

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form, without what was not measured."""
        document = {
            name: round(value, 3) if isinstance(value, float) else value
            for name, value in asdict(self).items()
            if value is not None
        }
        return document if self.skew is None else {**document, "skew": round(self.skew, 2)}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> StageReport:
        """Read the plain JSON form; what a later version added is left out."""
        names = [attribute.name for attribute in fields(cls)]
        known = {name: document[name] for name in names if name in document}
        stage, seconds = known.get("stage"), known.get("seconds")
        if not isinstance(stage, str) or not isinstance(seconds, int | float):
            raise InputError(
                "The report of a stage has 'stage', a text, and 'seconds', a number. Got "
                f"{dict(document)!r}."
            )
        return cls(**known)


@dataclass(frozen=True)
class BuildReport:
    """What all stages of a build did."""

    stages: tuple[StageReport, ...]
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return sum(stage.seconds for stage in self.stages)

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form."""
        stages = [stage.to_dict() for stage in self.stages]
        return {"seconds": round(self.seconds, 3), "facts": self.facts, "stages": stages}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> BuildReport:
        stages = document.get("stages")
        if not isinstance(stages, list) or not all(isinstance(stage, Mapping) for stage in stages):
            raise InputError(
                "The report of a build has a list 'stages'. Build the index again to have one."
            )
        return cls(tuple(map(StageReport.from_dict, stages)), dict(document.get("facts") or {}))


@dataclass(frozen=True, repr=False)
class Update(OfParts):
    """What an update did.

    Attributes
    ----------
    generation : int
        Of the index now in place.
    committed : bool
        False where there was nothing to do.
    new, changed, deleted : int
        Tables that came, that were replaced, and that went.
    missing : int
        Tables of the index whose files are no longer in the lake, and which were left in the index.
    unchanged, closed : int
        Tables left as they are; the latter since what holds them cannot be opened.
    reread : int
        Tables that were replaced, whatever their files, since pexeso reads their format in another
        way than when they were indexed.
    columns_added, columns_deleted : int
        Indexed columns.
    left_out : tuple of ReasonGroup
        Of what an append read: tables, then columns, that are left out, by reason.
    of_parts : dict
        For each part how many folders came and were rewritten: ``partitions_added``,
        ``partitions_rewritten``, and the same of ``shards``, those of token sets.
    """

    generation: int
    committed: bool
    new: int = 0
    changed: int = 0
    deleted: int = 0
    missing: int = 0
    unchanged: int = 0
    reread: int = 0
    closed: int = 0
    columns_added: int = 0
    columns_deleted: int = 0
    left_out: tuple[ReasonGroup, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form."""
        return {**super().to_dict(), "left_out": [group.to_dict() for group in self.left_out]}


def folder_counts(
    written: Mapping[str, Written] | None = None,
    rewritten: Mapping[str, Sequence[int]] | None = None,
) -> dict[str, int]:
    """Count the folders that an update added to each part, and those that it rewrote."""
    counts: dict[str, int] = {}
    added = {name: output.folders for name, output in (written or {}).items()}
    for part in registry.registered():
        for action, folders in (("added", added), ("rewritten", rewritten or {})):
            name = f"{part.folders_are}_{action}"
            counts[name] = counts.get(name, 0) + len(folders.get(part.name, ()))
    return counts


def stage_report(stage: str, seconds: float, sums: Mapping[str, Any]) -> StageReport:
    """Return the report of a stage of some seconds of wall time, by the sums of its tasks."""
    if not sums["tasks"]:
        return StageReport(stage, seconds)
    return StageReport(
        stage,
        seconds,
        **{name: sums[name] for name in SUMS},
        slowest_seconds=sums["slowest"],
        median_seconds=median(sums["classes"]),
    )
