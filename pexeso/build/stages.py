"""The stages of a build, the record of which are finished, and sums of what their tasks measure.

Each attempt at a stage writes to a folder of its own, and a small document names that folder once
everything in it is on the disk. So a task of a driver that died, which may go on writing for a
while, cannot spoil what a later attempt wrote; and whenever a build ends, a stage is finished or it
is not. A build that was interrupted resumes after its finished stages.
"""

from __future__ import annotations

import math
import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pexeso.errors import IndexCorruptError
from pexeso.runtime.progress import log_event
from pexeso.store.files import read_document, remove_tree, replace_document, sync_tree

Facts = dict[str, Any]


class Stages:
    """The stages of one build, in its scratch folder."""

    def __init__(
        self,
        scratch: Path,
        progress: Callable[[str], None] | None = None,
        on_finished: Callable[[], None] | None = None,
    ) -> None:
        self.scratch = scratch
        self.names: list[str] = []
        self.resumed: list[str] = []
        self._tell = progress or (lambda stage: None)
        self._on_finished = on_finished or (lambda: None)

    def run(self, stage: str, work: Callable[[Path], Facts | None]) -> Facts:
        """Do a stage, unless it is finished, and return its facts with the ``seconds`` it took."""
        self._tell(stage)
        log_event("stage", stage=stage)
        self.names.append(stage)
        earlier_facts = self.finished(stage)
        if earlier_facts is not None:
            log_event("stage finished earlier", stage=stage)
            self.resumed.append(stage)
            self._on_finished()
            return earlier_facts
        self._clear(stage)
        attempt = self.scratch / f"{stage}.{secrets.token_hex(6)}"
        attempt.mkdir()
        started = time.perf_counter()
        facts = work(attempt) or {}
        sync_tree(attempt)
        facts = {**facts, "seconds": round(time.perf_counter() - started, 3)}
        replace_document(self._marker(stage), {"folder": attempt.name, "facts": facts})
        log_event(
            "stage finished",
            **{**facts.get("report", {}), "stage": stage, "seconds": facts["seconds"]},
        )
        self._on_finished()
        return facts

    def finished(self, stage: str) -> Facts | None:
        document = self._document(stage)
        return None if document is None else document["facts"]

    def all_finished(self) -> dict[str, Facts]:
        stages = [path.stem for path in sorted(self.scratch.glob("*.json"))]
        return {stage: facts for stage in stages if (facts := self.finished(stage)) is not None}

    def folder(self, stage: str) -> Path:
        document = self._document(stage)
        if document is None:
            raise IndexCorruptError(
                f"The stage {stage} of the build in '{self.scratch}' is not finished."
            )
        return self.scratch / document["folder"]

    def forget(self, stage: str) -> None:
        self._marker(stage).unlink(missing_ok=True)
        self._clear(stage)

    def _document(self, stage: str) -> dict[str, Any] | None:
        path = self._marker(stage)
        if not path.is_file():
            return None
        document = read_document(path)
        folder = self.scratch / document["folder"]
        return document if folder.parent == self.scratch and folder.is_dir() else None

    def _marker(self, stage: str) -> Path:
        return self.scratch / f"{stage}.json"

    def _clear(self, stage: str) -> None:
        for path in self.scratch.glob(f"{stage}.*"):
            remove_tree(path)


# Seconds of tasks are kept in classes this factor wide: the median is known to 2.5 %.
_STEP = 1.05

_MIN_SECONDS = 1e-3
SUMS = ("tasks", "rows_in", "rows_out", "bytes_in", "bytes_out", "task_seconds")


def empty_sums() -> dict[str, Any]:
    return {**dict.fromkeys(SUMS, 0), "slowest": 0.0, "classes": {}}


def added(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    sums = {name: one[name] + other[name] for name in SUMS}
    classes = dict(Counter(one["classes"]) + Counter(other["classes"]))
    return {**sums, "slowest": max(one["slowest"], other["slowest"]), "classes": classes}


def class_of(seconds: float) -> int:
    return round(math.log(max(seconds, _MIN_SECONDS), _STEP))


def median(classes: Mapping[int, int]) -> float:
    """Return the median of tasks that are counted by class: the lower one of two in the middle."""
    middle = (sum(classes.values()) + 1) // 2
    for key in sorted(classes):
        middle -= classes[key]
        if middle <= 0:
            return _STEP**key
    return 0.0


def sums_of_task(counted: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Return the sums of one task: the rows and bytes that it counted, and its seconds."""
    classes = {class_of(seconds): 1}
    one = {"tasks": 1, "task_seconds": seconds, "slowest": seconds, "classes": classes}
    return {**counted, **one}
