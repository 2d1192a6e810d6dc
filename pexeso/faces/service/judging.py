"""Requests to judge pairs of columns and of values, and to list the doubtful ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import msgspec
import numpy as np

from pexeso.errors import InputError
from pexeso.faces.service import lake
from pexeso.faces.service.bases import Answer, IndexRequest, QueryRequest, RequestError
from pexeso.faces.service.schema import option
from pexeso.lake.judgements import (
    FIELDS,
    NONE,
    VERDICTS,
    Column,
    Judgement,
    Judgements,
    record_judgements,
)
from pexeso.runtime.formatting import percent
from pexeso.semantic.thresholds.calibration import MIN_JUDGED

if TYPE_CHECKING:
    from pexeso.faces.service.verbs import Service
    from pexeso.semantic.open_index import OpenIndex
    from pexeso.semantic.thresholds.calibration import Calibration
    from pexeso.semantic.thresholds.judging import Doubt
    from pexeso.semantic.thresholds.labels import ColumnLabel

MAX_DOUBTS = 200
_SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)


class JudgeRequest(IndexRequest, frozen=True, kw_only=True):
    """Judge two columns, or two values of them, or list what is doubtful where there is no verdict.

    Columns are named as in `pexeso.judgements`. Empty columns judge two values for all columns.
    """

    verb: ClassVar[str] = "judge"

    query_table: str = ""
    query_column: str = ""
    lake_table: str = ""
    lake_column: str = ""
    your_value: str = ""
    lake_value: str = ""
    verdict: Annotated[
        Literal[VERDICTS] | None,  # type: ignore[valid-type]
        option("Whether they join, or are the same thing; unsure withdraws a verdict."),
    ] = None
    limit: Annotated[int, msgspec.Meta(ge=0, le=MAX_DOUBTS)] = 50

    @property
    def judgement(self) -> Judgement:
        return Judgement(*(getattr(self, name) for name in FIELDS))


@dataclass(frozen=True)
class JudgeResponse:
    """What was recorded, with the verdict before it; or doubtful pairs and what is judged."""

    recorded: Judgement | None = None
    before: str | None = None
    doubts: tuple[Doubt, ...] = ()
    judgements: Judgements = NONE
    opened: OpenIndex | None = None

    @cached_property
    def labels(self) -> list[ColumnLabel]:
        """The judged pairs of columns of which the index has both."""
        from pexeso.semantic.thresholds.judging import judged_labels

        return [] if self.opened is None else judged_labels(self.opened, self.judgements)[0]

    @cached_property
    def calibration(self) -> Calibration | None:
        from pexeso.semantic.thresholds.tuning import calibration_of

        return None if self.opened is None else calibration_of(self.opened, self.labels)

    def calibration_lines(self) -> list[str]:
        """Return what is known of the probability of a join, as sentences."""
        if self.calibration is None:
            return [
                f"No probability yet, as too few pairs of columns are judged: {MIN_JUDGED} are "
                f"needed, with both answers among them, and there are {len(self.labels):,}."
            ]
        chances = self.calibration.probability(np.array(_SHARES))
        listed = ", ".join(
            f"{percent(chance)} at {share:.0%}"
            for share, chance in zip(_SHARES, chances.tolist(), strict=True)
        )
        bins = "; ".join(
            f"{percent(expected)} expected, {percent(observed)} observed ({n:,})"
            for expected, observed, n in self.calibration.bins
        )
        return [
            f"Probability of a join by joinability, from {self.calibration.n:,} judged pairs: "
            f"{listed}.",
            f"Reliability on pairs left out: {bins}. Brier score {self.calibration.brier:.3f}, "
            f"without joinability {self.calibration.usual_brier:.3f}.",
        ]

    def to_dict(self) -> Answer:
        """Return the plain JSON form that the command line prints."""
        if self.recorded is not None:
            return {**vars(self.recorded), "before": self.before}
        return {
            "doubts": [doubt.to_dict() for doubt in self.doubts],
            "judgements": [dict(vars(row)) for row in self.judgements.latest.values()],
            "calibration": None if self.calibration is None else self.calibration.to_dict(),
        }


def judge(service: Service, request: JudgeRequest) -> JudgeResponse:
    index = service.open(request.index)
    opened = index._opened
    if request.verdict is not None:
        return _record(opened, request.judgement)
    from pexeso.semantic.thresholds.judging import find_doubts

    doubts = find_doubts(index._snapshot.semantic, request.limit) if request.limit else []
    return JudgeResponse(None, None, tuple(doubts), visible_judgements(opened), opened)


def _record(opened: OpenIndex, judgement: Judgement) -> JudgeResponse:
    path = opened.whole.path
    if not isinstance(path, Path):
        raise InputError(
            f"Judgements are kept in the folder of an index on this machine. Got '{path}': copy "
            "the index, or judge where it was built."
        )
    if opened.value_key is not None and (judgement.your_value or judgement.lake_value):
        raise InputError("An index of hashed values keeps no texts: judge its columns, not values.")
    if any(judgement.lake):
        _require_column(opened, judgement.lake)
        if opened.catalog.has(judgement.query_table):
            _require_column(opened, judgement.query)
    before = opened.judgements.verdict(judgement)
    record_judgements(path, [judgement])
    return JudgeResponse(judgement, before)


def _require_column(opened: OpenIndex, column: Column) -> None:
    table, label = column
    if label not in opened.labels_of(table):
        raise RequestError("The index has no column %r of the table %r.", label, table)


def visible_judgements(opened: OpenIndex) -> Judgements:
    """Return the judgements of now; under restricted rights those on columns that may be seen."""
    judgements, chosen = opened.judgements, opened.view.rights
    if chosen is None:
        return judgements
    rows = (row for row in judgements.rows if any(row.lake))
    return Judgements(
        tuple(row for row in rows if chosen.sees(*row.query) and chosen.sees(*row.lake))
    )


def judged_column(service: Service, request: QueryRequest) -> Column:
    """Return the table and label by which the query column of a request is judged."""
    column = lake.with_file(service, request).read_column()  # type: ignore[attr-defined]
    name = service.open(request.index)._opened.name_of(column)  # type: ignore[attr-defined]
    if name is None:
        raise RequestError(
            "A judgement needs the name of your column: give a column of a file or of the lake, "
            "and not values."
        )
    return name
