"""Answers many queries, from a file of lines or from lines that are given."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from pexeso.errors import OutputError
from pexeso.faces.service.by_verb.on_spark import searching
from pexeso.faces.service.responses import Answer, BatchResponse

if TYPE_CHECKING:
    from pexeso.faces.service.requests import BatchRequest
    from pexeso.faces.service.verbs import Service
    from pexeso.options import SearchOptions
    from pexeso.semantic.batch_file import BatchRun, NumberedLine


def batch(
    service: Service,
    request: BatchRequest,
    *,
    lines: Iterable[NumberedLine] | None = None,
    begin: Callable[[SearchOptions], None] | None = None,
    write: Callable[[list[Answer]], object] | None = None,
    progress: Callable[[BatchRun], None] | None = None,
) -> BatchResponse:
    """Answer a batch."""
    from pexeso.semantic.batch_file import BatchRun, answer_lines, run_batch

    lines = _lines(request) if lines is None else lines
    with searching(service.open_for, request) as (index, passes):
        if begin is not None:
            begin(index.search_options(request.options()))
        names = ("explain", "rerank", "exclude_self", "fold_copies")
        options = {name: getattr(request, name) for name in names}
        options |= {**request.options(), "passes": passes, "reading": request.reading}
        if request.output is not None:
            options |= {"resume": request.resume, "overwrite": request.overwrite}
            options["progress"] = progress
            return BatchResponse(run_batch(index, lines, request.output, **options))
        response = BatchResponse(BatchRun())
        for answers in answer_lines(index, lines, **options):
            for answer in answers:
                response.run.note(answer)
            (response.answers.extend if write is None else write)(answers)
        return response


def _lines(request: BatchRequest) -> Iterable[NumberedLine]:
    """Return the lines of a batch, after a look at whether their file can be read."""
    from pexeso.results.query import batch_lines

    if not isinstance(request.queries, str):
        return enumerate(map(json.dumps, request.queries), 1)
    both_exist = os.path.exists(request.queries) and os.path.exists(request.output or "")
    if both_exist and os.path.samefile(request.queries, request.output):
        raise OutputError(
            f"'{request.output}' is the file of queries: choose another name for the answers."
        )
    for _ in batch_lines(request.queries):
        break
    return batch_lines(request.queries)
