"""Columns that a search has found, by number."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pexeso.store.arrays import Texts, require_sound


@dataclass(frozen=True)
class Hit:
    """A found column: its location, and the number of query values, or rows, that match it."""

    column_id: int
    matched: int
    partition: int
    position: int
    table: str = ""
    label: str = ""


@dataclass(frozen=True)
class ColumnNames:
    """Ids and names of the columns of a partition; mapped files, read where they are looked up."""

    ids: np.ndarray
    tables: Texts
    labels: Texts

    @cached_property
    def sound_tables(self) -> Texts:
        """The tables, all of them looked at once, so that they can be compared as a whole."""
        require_sound(self.tables)
        return self.tables
