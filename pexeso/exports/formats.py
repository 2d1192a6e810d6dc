"""What a format of exports is."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pexeso.exports.edges import Edges
from pexeso.options import DEFAULT_MIN_JOINABILITY

_PART = r'(?:"[^"]+"|[^".]+)'


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
    levels : tuple of str
        What a namespace is made of, outermost first, where the tool asks for several names.
    """

    name: str
    suffix: str
    write: Callable[[Edges, Path, Naming], None]
    file: str | None = None
    min_joinability: float = DEFAULT_MIN_JOINABILITY
    equal_values: bool = False
    levels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Naming:
    """What tables of the lake are called elsewhere.

    Attributes
    ----------
    namespace : str
        What they are in: a source of dbt; ``service.database.schema`` of OpenMetadata.
    """

    namespace: str = "lake"

    def parts(self) -> list[str]:
        """Return the names that a namespace is made of; none if it is not well formed.

        Examples
        --------
        >>> Naming('files."a.b".lake').parts()
        ['files', '"a.b"', 'lake']
        >>> Naming("files..lake").parts()
        []
        """
        if not re.fullmatch(rf"{_PART}(\.{_PART})*", self.namespace):
            return []
        return re.findall(_PART, self.namespace)
