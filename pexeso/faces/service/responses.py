"""What requests are answered with, where the engine has no class for it, and its JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pexeso.runtime.formatting import json_line, plain_json

if TYPE_CHECKING:
    import pyarrow as pa

    from pexeso.build.diagnostics.doctor import Finding
    from pexeso.composite.key_table import JoinedKeys
    from pexeso.joins.tables import Joined
    from pexeso.options import SearchOptions
    from pexeso.results.matches import Match, SearchResult
    from pexeso.semantic.batch_file import BatchRun
    from pexeso.semantic.combined import CombinedResult
    from pexeso.sets.results import TokenSearchResult
    from pexeso.store.integrity import Problem
    from pexeso.transform.joins.joined import TransformJoin


def plain_cells(column: pa.ChunkedArray) -> list[Any]:
    """Return the cells of a table as plain JSON.

    Numbers, truth values, texts, lists and objects stay; of other types there are the texts that
    CSV has. An interval is a list of its months, days and nanoseconds.
    """
    from pexeso.lake.frames.tables import texts_of_values

    texts = texts_of_values(column)
    return [plain_json(cell) for cell in column.to_pylist()] if texts is None else texts


def json_text(document: Any) -> str:
    """Return a document with its outer members, and the entries of lists in it, one a line.

    Examples
    --------
    >>> print(json_text({"verb": "search", "results": [{"table": "a.csv"}]}))
    {
      "verb": "search",
      "results": [
        {"table": "a.csv"}
      ]
    }
    """
    if not isinstance(document, dict):
        return json_line(document)
    members = []
    for name, value in document.items():
        text = json_line(value)
        if isinstance(value, list) and value:
            entries = ",\n".join(f"    {json_line(entry)}" for entry in value)
            text = f"[\n{entries}\n  ]"
        members.append(f"  {json_line(name)}: {text}")
    return "{\n" + ",\n".join(members) + "\n}"


def json_pieces(document: dict[str, Any], name: str, rows: Iterable[Any]) -> Iterator[str]:
    r"""Yield what `json_text` returns, with a line feed, and in it, last, a list of any length.

    Examples
    --------
    >>> "".join(json_pieces({"a": 1}, "rows", [2])) == json_text({"a": 1, "rows": [2]}) + "\n"
    True
    """
    yield json_text({**document, name: []}).removesuffix("]\n}")
    between = "\n"
    for row in rows:
        yield f"{between}    {json_line(row)}"
        between = ",\n"
    yield "]\n}\n" if between == "\n" else "\n  ]\n}\n"


# Plain JSON.
Answer = dict[str, Any]


@dataclass(frozen=True)
class SearchResponse:
    """What a search found: a result for each query column."""

    request: Any
    results: list[SearchResult] | list[TokenSearchResult] | list[CombinedResult]

    def to_dict(self) -> Answer:
        """Return the JSON form of the result, or with `all_columns` of all under ``columns``."""
        answers = [
            result.to_dict(explain=self.request.explain, hints=True) for result in self.results
        ]
        return {"columns": answers} if self.request.all_columns else answers[0]


@dataclass(frozen=True)
class JoinResponse:
    query: dict[str, Any]
    match: Match | JoinedKeys
    advised: SearchOptions | None
    joined: Joined
    transformed: TransformJoin | None = None

    def to_dict(self) -> Answer:
        """Return the column joined with, the report, and the joined table as names and rows."""
        table = self.joined.table
        columns = [plain_cells(column) for column in table.columns]
        programs = {}
        if self.transformed is not None:
            programs = {"programs": self.transformed.programs, "tried": self.transformed.tried}
        return {
            "query": self.query,
            **self.match.to_dict(),
            **programs,
            "report": self.joined.report.to_dict(),
            "names": table.column_names,
            "rows": [list(row) for row in zip(*columns, strict=True)],
        }


@dataclass(frozen=True)
class BatchResponse:
    """What a batch did, and its answers where no file has them."""

    run: BatchRun
    answers: list[Answer] = field(default_factory=list)

    def to_dict(self) -> Answer:
        return {**vars(self.run), "answers": self.answers}


@dataclass(frozen=True)
class CheckResponse:
    """What is wrong with an index; and the files and bytes that it has where nothing is."""

    problems: list[Problem]
    n_files: int = 0
    n_bytes: int = 0

    @property
    def failures(self) -> list[Problem]:
        return [problem for problem in self.problems if problem.is_failure]

    def to_dict(self) -> Answer:
        return {"ok": not self.failures, "problems": [vars(problem) for problem in self.problems]}


@dataclass(frozen=True)
class DoctorResponse:
    findings: list[Finding]

    def to_dict(self) -> Answer:
        return {"findings": [vars(finding) for finding in self.findings]}


@dataclass(frozen=True)
class RulesResponse:
    """The names of the rules that are on, and the extra dictionary of words."""

    on: tuple[str, ...]
    extra: Mapping[str, str]

    def to_dict(self) -> Answer:
        from pexeso.lake.normalise.normaliser import VERSION
        from pexeso.lake.normalise.rules import RULES

        described = [
            {
                "name": rule.name,
                "on": rule.name in self.on,
                "default": rule.is_default,
                "does": rule.does,
                "tells_apart": rule.tells_apart,
                "reading": rule.is_reading,
            }
            for rule in RULES
        ]
        return {"version": VERSION, "rules": described, "extra": dict(self.extra)}
