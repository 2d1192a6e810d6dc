"""What tasks measure: sums of one size, however many tasks there are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

_STEP = 1.05
"""Seconds of tasks are kept in classes this factor wide: the median is known to 2.5 %."""

_MIN_SECONDS = 1e-3
SUMS = ("tasks", "rows_in", "rows_out", "bytes_in", "bytes_out", "task_seconds")


def empty_sums() -> dict[str, Any]:
    """Return the sums of no task."""
    return {**dict.fromkeys(SUMS, 0), "slowest": 0.0, "classes": {}}


def added(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Add up the sums of two sets of tasks."""
    sums = {name: one[name] + other[name] for name in SUMS}
    classes = dict(Counter(one["classes"]) + Counter(other["classes"]))
    return {**sums, "slowest": max(one["slowest"], other["slowest"]), "classes": classes}


def class_of(seconds: float) -> int:
    """Return the class of a task of some seconds."""
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
