"""Batch search from a file of queries to a file of answers, which can be resumed."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pexeso.errors import InputError, OutputError
from pexeso.lake.readers.options import AS_FOUND, ReadingOptions
from pexeso.results.query import BatchLine, ReadingLimit, batch_id, read_batch_line
from pexeso.runtime.system import EXCLUSIVE, lock

if TYPE_CHECKING:
    from pexeso.index import Index

MAX_CHUNK_QUERIES = 64
"""Most queries that share a pass over the index; after each pass their answers are on the disk."""

MAX_CHUNK_ROWS = 200_000
"""A chunk ends with the query that takes its rows above this, which bounds what is held in
memory."""

MAX_ERRORS_KEPT = 10

NumberedLine = tuple[int, str]


@dataclass
class BatchRun:
    """What a run has done so far, and its first errors, at most `MAX_ERRORS_KEPT`."""

    answered: int = 0
    earlier: int = 0
    failed: int = 0
    first_errors: list[str] = field(default_factory=list)

    def note(self, answer: dict[str, Any]) -> None:
        """Count an answer."""
        self.answered += 1
        if "error" in answer:
            self.failed += 1
            if self.failed <= MAX_ERRORS_KEPT:
                self.first_errors.append(str(answer["error"]))


def answer_lines(
    index: Index,
    lines: Iterable[NumberedLine],
    *,
    explain: bool = False,
    passes: int = 1,
    reading: ReadingOptions = AS_FOUND,
    **options: Any,
) -> Iterator[list[dict[str, Any]]]:
    basis = answer_basis(index, options)
    read = {"reading": reading.to_dict()} if reading else {}
    for chunk in _chunks(lines, passes, reading, index._opened.reading_of):
        queries = [line.query for line, _ in chunk if line.query is not None]
        results = iter(index.search_batch(queries, **options) if queries else ())
        answers = []
        for line, digest in chunk:
            answer: dict[str, Any] = {"error": line.error}
            if line.query is not None:
                answer = next(results).to_dict(explain=explain)
            answers.append({"id": line.id, "of": {**basis, "line": digest}, **read, **answer})
        yield answers


def answer_basis(index: Index, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what answers rest on, apart from the options that each of them names."""
    manifest = index._opened.whole.manifest
    table = options.get("exclude_table")
    return {
        "index": _digest(manifest.to_bytes()),
        "model": index._opened.options.model or index.models[0],
        "exclude_self": bool(options.get("exclude_self", False)),
        **({} if table is None else {"exclude_table": table}),
    }


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def _chunks(
    lines: Iterable[NumberedLine], passes: int, reading: ReadingOptions, limit: ReadingLimit
) -> Iterator[list[tuple[BatchLine, str]]]:
    chunk: list[tuple[BatchLine, str]] = []
    n_rows = 0
    for number, text in lines:
        line = read_batch_line(number, text, reading, limit)
        chunk.append((line, _digest_of_line(text)))
        n_rows += 0 if line.query is None else len(line.query.values)
        if len(chunk) == MAX_CHUNK_QUERIES * passes or n_rows > MAX_CHUNK_ROWS * passes:
            yield chunk
            chunk, n_rows = [], 0
    if chunk:
        yield chunk


def _digest_of_line(text: str) -> str:
    return _digest(text.strip().encode("utf-8", "backslashreplace"))


def run_batch(
    index: Index,
    lines: Iterable[NumberedLine],
    output: str | os.PathLike[str],
    *,
    resume: bool = False,
    overwrite: bool = False,
    explain: bool = False,
    passes: int = 1,
    reading: ReadingOptions = AS_FOUND,
    progress: Callable[[BatchRun], None] | None = None,
    **options: Any,
) -> BatchRun:
    """Answer the lines of a batch file into a file of JSON lines, in the same order.

    Answers are on the disk before the next chunk is begun, so whenever the run is stopped, the file
    holds complete answers and at most one cut line at its end. With `resume` that line is cut off
    and the run goes on after the last complete one.
    """
    if resume and overwrite:
        raise InputError("resume and overwrite exclude each other. Got both.")
    run = BatchRun()
    remaining = iter(lines)
    with _open_output(Path(output), must_be_new=not (resume or overwrite)) as stream:
        if overwrite:
            stream.truncate(0)
        _skip_answered(
            Path(output), stream, remaining, run, _marks(index, explain, reading, options)
        )
        arguments = {"explain": explain, "passes": passes, "reading": reading, **options}
        for answers in answer_lines(index, remaining, **arguments):
            _append(stream, answers)
            for answer in answers:
                run.note(answer)
            if progress is not None:
                progress(run)
    return run


@contextmanager
def _open_output(path: Path, *, must_be_new: bool) -> Iterator[IO[bytes]]:
    """Open a file of answers for reading and appending, for one run at a time."""
    try:
        if path.exists() and not path.is_file():
            raise OutputError(
                f"'{path}' is no regular file, and answers that can be gone on with need one. "
                "Without a name (-o) they go to stdout."
            )
        stream = path.open("a+b")
    except OSError as error:
        raise OutputError(f"'{path}' cannot be written: {error.strerror}.") from error
    with stream:
        if lock(stream.fileno(), EXCLUSIVE) is False:
            raise OutputError(
                f"Another run is writing '{path}': wait for its end, or choose another name."
            )
        if must_be_new and os.fstat(stream.fileno()).st_size:
            raise OutputError(
                f"'{path}' exists already. Go on with it by --resume, replace it by "
                "--overwrite, or choose another name."
            )
        yield stream


def _append(stream: IO[bytes], answers: Sequence[dict[str, Any]]) -> None:
    text = "".join(f"{json.dumps(answer, ensure_ascii=False)}\n" for answer in answers)
    try:
        stream.write(text.encode("utf-8", "backslashreplace"))
        stream.flush()
        os.fsync(stream.fileno())
    except OSError as error:
        # What a file system without fsync has to say is no reason to stop.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise OutputError(
                f"'{stream.name}' cannot be written: {error.strerror}. Its complete lines are "
                "kept; run again with --resume."
            ) from error


def _marks(
    index: Index, explain: bool, reading: ReadingOptions, options: dict[str, Any]
) -> dict[str, Any]:
    """Return the options that an answer of this run records.

    The excluded table is not among those of the search, where it differs by query.
    """
    requested = {
        name: value
        for name, value in options.items()
        if name not in ("exclude_self", "rerank", "fold_copies")
    }
    chosen = index.search_options(requested).to_dict()
    return {
        "of": answer_basis(index, options),
        "reading": reading.to_dict(),
        "options": {name: value for name, value in chosen.items() if name != "exclude_table"},
        "distance_by_kind": requested.get("max_distance") is None,
        "members": {
            "pairs": explain,
            "similarity": bool(options.get("rerank", True)),
            "copies": bool(options.get("fold_copies", True)),
        },
    }


def _skip_answered(
    path: Path,
    stream: IO[bytes],
    remaining: Iterator[NumberedLine],
    run: BatchRun,
    marks: dict[str, Any],
) -> None:
    """Skip the queries that have answers, cut off an incomplete line, and refuse other answers."""
    stream.seek(0)
    end = 0
    for position, line in enumerate(stream, 1):
        if not line.endswith(b"\n"):
            break
        end += len(line)
        answer = _answer(path, position, line)
        query = next(islice(remaining, 1), None)
        if query is None:
            raise OutputError(
                f"'{path}' holds more answers than there are queries: it belongs to another run."
            )
        expected = json.loads(json.dumps(batch_id(*query)))
        if answer["id"] != expected:
            raise OutputError(
                f"'{path}' belongs to other queries: answer {position} is to {answer['id']!r}, "
                f"and query {position} is {expected!r} (line {query[0]})."
            )
        _require_same_options(path, position, answer, marks)
        if answer["of"].get("line") != _digest_of_line(query[1]):
            raise OutputError(
                f"'{path}' belongs to other queries: line {query[0]} has changed since it was "
                "answered. Write new queries below those that are answered, or --overwrite to "
                "answer everything again."
            )
        run.note(answer)
    stream.truncate(end)
    run.earlier = run.answered


def _answer(path: Path, position: int, line: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):
        answer = None
    if (
        not isinstance(answer, dict)
        or "id" not in answer
        or not answer.keys() & {"results", "error"}
    ):
        raise OutputError(
            f"'{path}' is no file of answers: its line {position} is none. Choose another name, "
            "or --overwrite to lose what is in it."
        )
    return answer


def _require_same_options(
    path: Path, position: int, answer: dict[str, Any], marks: dict[str, Any]
) -> None:
    basis, ours = answer.get("of"), marks["of"]
    if not isinstance(basis, dict) or basis.get("index") != ours["index"]:
        raise OutputError(
            f"The answers in '{path}' are those of another index, or of another state of this one "
            f"(line {position}), and would be mixed. --overwrite answers everything again."
        )
    # A line that could not be used may be one that was read in another way.
    same = basis == {**ours, "line": basis.get("line")}
    same = same and answer.get("reading", {}) == marks["reading"]
    if "results" in answer:
        same = same and _same_search(answer, marks)
    if not same:
        raise OutputError(
            f"The answers in '{path}' were made with other options (line {position}). Resume "
            "with the same ones, or --overwrite to answer everything again."
        )


def _same_search(answer: dict[str, Any], marks: dict[str, Any]) -> bool:
    options = answer.get("options")
    if not isinstance(options, dict):
        return False
    of_query, advice = ["exclude_table"], options.get("advice")
    evidence = advice.get("evidence") if isinstance(advice, dict) else None
    is_by_kind = isinstance(evidence, dict) and evidence.keys() == {"kind"}
    # With automatic thresholds, columns of few values ask for a larger share of their rows than
    # others.
    if "advice" in marks["options"]:
        of_query.append("min_joinability")
    # Without a distance, columns of dates and numbers have one of their own, and say so.
    elif marks["distance_by_kind"] and is_by_kind:
        of_query += ["advice", "max_distance"]
    by_query = dict.fromkeys(of_query)
    same = {**options, **by_query} == {**marks["options"], **by_query}
    # Other requests show in the members that each result has.
    for name, expected in marks["members"].items():
        same = same and all((name in result) == expected for result in answer["results"])
    return same
