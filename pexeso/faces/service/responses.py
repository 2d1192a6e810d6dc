"""What requests are answered with, where the engine has no class for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pexeso.faces.service.json_text import plain_cells

if TYPE_CHECKING:
    from pexeso.build.diagnostics.doctor import Finding
    from pexeso.composite.lake.table_pair import JoinedKeys
    from pexeso.joins.tables import Joined
    from pexeso.options import SearchOptions
    from pexeso.results.matches import Match, SearchResult
    from pexeso.semantic.answers.combined import CombinedResult
    from pexeso.semantic.batch_file import BatchRun
    from pexeso.sets.search.results import TokenSearchResult
    from pexeso.store.integrity import Problem
    from pexeso.transform.joins.joined import TransformJoin

Answer = dict[str, Any]
"""Plain JSON."""


@dataclass(frozen=True)
class SearchResponse:
    """What a search found: a result for each query column.

    Attributes
    ----------
    request : SearchRequest, OverlapRequest or ContainRequest
    results : list of SearchResult, TokenSearchResult, TransformSearchResult or CombinedResult
    """

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
    """What a join gave."""

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
        """Return the counts, the first errors and the answers."""
        return {**vars(self.run), "answers": self.answers}


@dataclass(frozen=True)
class CheckResponse:
    """What is wrong with an index; and the files and bytes that it has where nothing is."""

    problems: list[Problem]
    n_files: int = 0
    n_bytes: int = 0

    @property
    def failures(self) -> list[Problem]:
        """The problems that are no mere notes."""
        return [problem for problem in self.problems if problem.is_failure]

    def to_dict(self) -> Answer:
        """Return the plain JSON form that the command line prints."""
        return {"ok": not self.failures, "problems": [vars(problem) for problem in self.problems]}


@dataclass(frozen=True)
class DoctorResponse:
    """What was found on this machine."""

    findings: list[Finding]

    def to_dict(self) -> Answer:
        """Return the plain JSON form that the command line prints."""
        return {"findings": [vars(finding) for finding in self.findings]}


@dataclass(frozen=True)
class RulesResponse:
    """The names of the rules that are on, and the dictionary of words beside them."""

    on: tuple[str, ...]
    extra: Mapping[str, str]

    def to_dict(self) -> Answer:
        """Return the plain JSON form that the command line prints."""
        from pexeso.lake.normalise.normaliser import VERSION
        from pexeso.lake.normalise.rules import RULES

        described = [
            {
                "name": rule.name,
                "on": rule.name in self.on,
                "default": rule.is_default,
                "does": rule.does,
            }
            for rule in RULES
        ]
        return {"version": VERSION, "rules": described, "extra": dict(self.extra)}
