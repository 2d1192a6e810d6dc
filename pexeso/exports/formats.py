"""What a format of exports is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pexeso.exports.edges import Edges
from pexeso.options import DEFAULT_MIN_JOINABILITY


@dataclass(frozen=True)
class ExportFormat:
    """A format that a join graph is written in.

    Attributes
    ----------
    name : str
    suffix : str
        What names of its files end in.
    write : callable
        From edges, the path of a new file and a `Naming` to nothing; it may hold a batch of edges
        at a time.
    file : str or None
        The file that is written into a folder, where the tool reads folders.
    min_joinability : float
        Of the edges that are written, where none is asked for.
    equal_values : bool
        Whether the tool compares values as they stand, so that edges of values alike are refused.
    """

    name: str
    suffix: str
    write: Callable[[Edges, Path, Naming], None]
    file: str | None = None
    min_joinability: float = DEFAULT_MIN_JOINABILITY
    equal_values: bool = False


@dataclass(frozen=True)
class Naming:
    """What tables of the lake are called elsewhere.

    Attributes
    ----------
    namespace : str
        What they are in: a source of dbt; ``service.database.schema`` of OpenMetadata.
    """

    namespace: str = "lake"
