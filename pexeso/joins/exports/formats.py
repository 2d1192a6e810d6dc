"""What a format of exports is."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pexeso.joins.exports.edges import Edges
from pexeso.options import DEFAULT_MIN_JOINABILITY

_PART = r'(?:"[^"]+"|[^".]+)'


@dataclass(frozen=True)
class ExportFormat:
    """A format that a join graph is written in."""

    name: str
    suffix: str
    write: Callable[[Edges, Path, Naming], None]
    file: str | None = None
    min_joinability: float = DEFAULT_MIN_JOINABILITY
    equal_values: bool = False
    levels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Naming:
    """What tables of the lake are called elsewhere."""

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
