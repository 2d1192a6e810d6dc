"""Indexes that are searched here or on Spark, as a request says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from pexeso.options import parse_bytes

if TYPE_CHECKING:
    from pexeso.index import Index


@contextmanager
def searching(open_index: Callable[[Any], Index], request: Any) -> Iterator[tuple[Index, int]]:
    """Yield the index of a request, and how many passes over it run side by side."""
    if request.master is None:
        yield open_index(request), 1
        return
    # What is asked of device and memory is asked of the tasks.
    index = open_index(msgspec.structs.replace(request, device="cpu", memory_budget=None))
    from pexeso.build.spark.session import spark_session
    from pexeso.semantic.spark_executor import on_spark, passes_of

    budget = None if request.memory_budget is None else parse_bytes(request.memory_budget)
    where = {"device": request.device, "kernel": "auto", "memory_budget": budget}
    with spark_session(request.master, conf=request.conf) as spark:
        yield on_spark(index, spark, **where), passes_of(index, spark)
