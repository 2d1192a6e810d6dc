"""What an update did, and what each stage of a build took: rows, bytes and seconds.

How unevenly its tasks took them is told too.

Tasks measure themselves (:class:`TaskMeter`) and send a few numbers back when they end, through a
Spark accumulator where they run on Spark; no page of Spark's and no listener is needed. What comes
back has one size, however many tasks there were.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pexeso import registry
from pexeso.build.parts.base import OfParts
from pexeso.build.spark.workers import freeze_imports
from pexeso.errors import InputError

if TYPE_CHECKING:
    from pyspark import SparkContext

    from pexeso.lake.left_out.groups import ReasonGroup
    from pexeso.store.manifest import FolderEntry

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

REPORT_FILE = "report.json"
"""The report of a build or an update, in its folder of the catalog."""

_STEP = 1.05
"""Seconds of tasks are kept in classes this factor wide: the median is known to 2.5 %."""

_LEAST_SECONDS = 1e-3
_SUMS = ("tasks", "rows_in", "rows_out", "bytes_in", "bytes_out", "task_seconds")


@dataclass(frozen=True)
class StageReport:
    """What a stage did. A number that was not measured is None.

    Attributes
    ----------
    seconds : float
        Wall time.
    task_seconds : float or None
        Wall time of all of them together, the wait for their input included.
    slowest_seconds, median_seconds : float or None
        Of one task; the median to 2.5 %.
    """

    stage: str
    seconds: float
    rows_in: int | None = None
    rows_out: int | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None
    tasks: int | None = None
    task_seconds: float | None = None
    slowest_seconds: float | None = None
    median_seconds: float | None = None

    @property
    def skew(self) -> float | None:
        """How many times longer than the median the slowest task took; at least 1."""
        if self.slowest_seconds is None or not self.median_seconds:
            return None
        return max(1.0, self.slowest_seconds / self.median_seconds)

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form, without what was not measured."""
        document = {name: value for name, value in asdict(self).items() if value is not None}
        rounded = {
            name: round(value, 3) if isinstance(value, float) else value
            for name, value in document.items()
        }
        return rounded if self.skew is None else {**rounded, "skew": round(self.skew, 2)}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> StageReport:
        """Read the plain JSON form; what a later version added is left out."""
        known = {
            attribute.name: document[attribute.name]
            for attribute in fields(cls)
            if attribute.name in document
        }
        if not isinstance(known.get("stage"), str) or not isinstance(
            known.get("seconds"), (int, float)
        ):
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
        """Wall time of all stages."""
        return sum(stage.seconds for stage in self.stages)

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form.

        Examples
        --------
        >>> report = BuildReport((StageReport("read", 2.5, rows_out=7),), {"cores": 2}).to_dict()
        >>> report.pop("stages")
        [{'stage': 'read', 'seconds': 2.5, 'rows_out': 7}]
        >>> report
        {'seconds': 2.5, 'facts': {'cores': 2}}
        """
        stages = [stage.to_dict() for stage in self.stages]
        return {"seconds": round(self.seconds, 3), "facts": self.facts, "stages": stages}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> BuildReport:
        """Read the plain JSON form."""
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
    added: Mapping[str, Sequence[FolderEntry]] | None = None,
    rewritten: Mapping[str, Sequence[int]] | None = None,
) -> dict[str, int]:
    """Count the folders that an update added to each part, and those that it wrote anew."""
    counts: dict[str, int] = {}
    for part in registry.registered():
        for action, folders in (("added", added), ("rewritten", rewritten)):
            name = f"{part.folders_are}_{action}"
            counts[name] = counts.get(name, 0) + len((folders or {}).get(part.name, ()))
    return counts


class TaskMeter:
    """Measures the tasks of one stage."""

    def __init__(self, context: Callable[[], SparkContext]) -> None:
        self._context = context
        self._sums: Any = None
        self._here = empty_sums()

    def measured(self, task: Task) -> Task:
        """Return a task for Spark that does the same, and measures rows, bytes and seconds."""
        if self._sums is None:
            self._sums = self._context().accumulator(empty_sums(), _Adding())
        sums = self._sums

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            measure = _Measure()
            try:
                yield from measure.given(task(measure.received(batches)))
            finally:
                sums.add(measure.sums())
                freeze_imports()

        return run

    def measured_here(self, task: Task) -> Task:
        """Do as `measured` for a task that runs in this process."""

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            measure = _Measure()
            yield from measure.given(task(measure.received(batches)))
            self._here = added(self._here, measure.sums())

        return run

    def report(self, stage: str, seconds: float) -> StageReport:
        """Return what was measured up to now.

        Parameters
        ----------
        seconds : float
            Wall time of the stage.
        """
        sums = self._here if self._sums is None else added(self._here, self._sums.value)
        if not sums["tasks"]:
            return StageReport(stage, seconds)
        return StageReport(
            stage,
            seconds,
            **{name: sums[name] for name in _SUMS},
            slowest_seconds=sums["slowest"],
            median_seconds=_median(sums["classes"]),
        )


class _Measure:
    """What one task measures."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._rows = [0, 0]
        self._bytes = [0, 0]

    def received(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self._counted(batches, 0)

    def given(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self._counted(batches, 1)

    def _counted(self, batches: Iterable[pa.RecordBatch], side: int) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self._rows[side] += batch.num_rows
            self._bytes[side] += batch.nbytes
            yield batch

    def sums(self) -> dict[str, Any]:
        seconds = time.perf_counter() - self._started
        numbers = (1, *self._rows, *self._bytes, seconds)
        return {
            **dict(zip(_SUMS, numbers, strict=True)),
            "slowest": seconds,
            "classes": {_class_of(seconds): 1},
        }


class _Adding:
    """How Spark adds up what tasks send: the form of `pyspark.AccumulatorParam`."""

    def zero(self, value: dict[str, Any]) -> dict[str, Any]:
        return empty_sums()

    def addInPlace(self, one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:  # noqa: N802  Spark's name
        return added(one, other)


def empty_sums() -> dict[str, Any]:
    """Return the sums of no task."""
    return {**dict.fromkeys(_SUMS, 0), "slowest": 0.0, "classes": {}}


def added(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Add up the sums of two sets of tasks."""
    classes = dict(one["classes"])
    for key, number in other["classes"].items():
        classes[key] = classes.get(key, 0) + number
    sums = {name: one[name] + other[name] for name in _SUMS}
    return {**sums, "slowest": max(one["slowest"], other["slowest"]), "classes": classes}


def _class_of(seconds: float) -> int:
    return round(math.log(max(seconds, _LEAST_SECONDS), _STEP))


def _median(classes: Mapping[int, int]) -> float:
    """Return the median of tasks that are counted by class: the lower one of two in the middle."""
    middle = (sum(classes.values()) + 1) // 2
    for key in sorted(classes):
        middle -= classes[key]
        if middle <= 0:
            return _STEP**key
    return 0.0
