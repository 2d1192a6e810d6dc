"""Requests for joins by learned programs, and what answers them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pexeso.errors import InputError, OutputError
from pexeso.service.bases import Request
from pexeso.transform.programs.storing import MAX_PROGRAMS

if TYPE_CHECKING:
    from pexeso.transform_join.joined import TransformJoin

DEFAULT_PROGRAMS = 8


@dataclass(frozen=True, kw_only=True)
class TransformRequest(Request, verb="transform"):
    """Learn a program that joins two tables; see `pexeso.learn_transformation`.

    Attributes
    ----------
    source, target : str
        ``FILE``, ``FILE:COLUMN``, ``FILE:COLUMN,COLUMN``, or ``INDEX.pexeso:TABLE`` and a column.
    program : str or None
        A file of programs to use instead of learning.
    save : str or None
        The file that the programs are written to.
    overwrite : bool
        Replace a file that exists.
    """

    source: str
    target: str
    program: str | None = None
    save: str | None = None
    fuzzy: bool = True
    max_programs: int = DEFAULT_PROGRAMS
    seed: int = 0
    overwrite: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.max_programs <= MAX_PROGRAMS:
            raise InputError(f"max_programs is 1 to {MAX_PROGRAMS}. Got {self.max_programs!r}.")
        if self.seed < 0:
            raise InputError(f"seed is at least 0. Got {self.seed!r}.")


def transform(service: object, request: TransformRequest, **live: Any) -> TransformJoin:
    """Answer a request for a program, and write it where that is asked for."""
    from pexeso.transform_join.joined import learn_transformation  # brings numba
    from pexeso.transform_join.saved import require_free

    if request.save is not None:
        require_free(request.save, overwrite=request.overwrite)
    joined = learn_transformation(
        request.source,
        request.target,
        program=request.program,
        fuzzy=request.fuzzy,
        max_programs=request.max_programs,
        seed=request.seed,
    )
    if request.save is not None:
        if joined.tried is not None:
            raise OutputError(
                f"'{request.save}' is not written, as there is no program: {joined.tried}."
            )
        joined.save(request.save, overwrite=request.overwrite)
    return joined
