"""Results as tables of pandas, polars and Arrow.

A class of results has `fields` and `rows`, and gets the rest from `Tabular`; one whose `rows` are
something else gets it from `AsTables`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pexeso.lake.frames.tables import to_polars
from pexeso.runtime.shown import Shown

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class AsTables(Shown):
    """A result that can be had as a table.

    A class that takes this over has `fields`, the names of the columns in order, and `_table_rows`.
    """

    fields: Sequence[str]

    def _table_rows(self) -> list[dict[str, Any]]:
        """Return the values of `fields`, a dictionary a row."""
        raise NotImplementedError

    def _shown(self) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        return self.fields, ([row.get(name) for name in self.fields] for row in self._table_rows())

    def _field_types(self) -> Mapping[str, pa.DataType]:
        """Return the Arrow types of fields, so that they do not depend on the rows there are.

        The type of a field that is not among them follows from its values.
        """
        return {}

    def to_pandas(self) -> pd.DataFrame:
        """Return a DataFrame of pandas with the columns `fields`."""
        import pandas as pd

        return pd.DataFrame(self._table_rows(), columns=list(self.fields))

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table with the columns `fields`."""
        rows, types = self._table_rows(), self._field_types()
        return pa.table(
            {
                name: pa.array([row.get(name) for row in rows], types.get(name))
                for name in self.fields
            }
        )

    def to_polars(self) -> pl.DataFrame:
        """Return a DataFrame of polars with the columns `fields`.

        Raises
        ------
        MissingPackageError
            Polars is not installed.
        """
        return to_polars(self.to_arrow())


class Tabular(AsTables):
    """Rows that can be had as tables.

    A class that takes this over has `fields`, the names of the columns in order, and `rows`.
    """

    def rows(self) -> list[dict[str, Any]]:
        """Return the values of `fields`, a dictionary a row."""
        raise NotImplementedError

    def _table_rows(self) -> list[dict[str, Any]]:
        return self.rows()
