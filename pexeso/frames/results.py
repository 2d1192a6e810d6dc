"""Results as tables of pandas, polars and Arrow, and as small tables in notebooks.

A class of results has `fields` and `rows`, and gets the rest from `Tabular`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pexeso.frames.tables import to_polars
from pexeso.runtime.formatting import plain

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

MAX_ROWS = 20
"""Most rows of a table in a notebook."""

MAX_COLUMNS = 20
"""Most columns of a table in a notebook."""

_MAX_ITEMS = 5


class Tabular:
    """Rows that can be had as tables.

    A class that takes this over has `fields`, the names of the columns in order, and `rows`.
    """

    fields: Sequence[str]

    def rows(self) -> list[dict[str, Any]]:
        """Return the values of `fields`, a dictionary a row."""
        raise NotImplementedError

    def _field_types(self) -> Mapping[str, pa.DataType]:
        """Return the Arrow types of fields, so that they do not depend on the rows there are.

        The type of a field that is not among them follows from its values.
        """
        return {}

    def to_pandas(self) -> pd.DataFrame:
        """Return a DataFrame of pandas: `rows`, with the columns `fields`."""
        import pandas as pd

        return pd.DataFrame(self.rows(), columns=list(self.fields))

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table: `rows`, with the columns `fields`."""
        rows, types = self.rows(), self._field_types()
        return pa.table(
            {
                name: pa.array([row.get(name) for row in rows], types.get(name))
                for name in self.fields
            }
        )

    def to_polars(self) -> pl.DataFrame:
        """Return a DataFrame of polars: `rows`, with the columns `fields`.

        Raises
        ------
        MissingPackageError
            Polars is not installed.
        """
        return to_polars(self.to_arrow())


def html_table(caption: str, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a small table of HTML without any style, so that it looks as the notebook does.

    Parameters
    ----------
    caption : str
    names : sequence of str
        Of the columns.
    rows : iterable of sequences
        The first `MAX_ROWS` are taken. All cells and names are escaped, and long ones cut.

    Examples
    --------
    >>> html_table("1 row", ["a"], [["<b>"]])
    '<table><caption>1 row</caption><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td>\
</tr></tbody></table>'
    """
    head = "".join(f"<th>{escape(plain(name))}</th>" for name in names[:MAX_COLUMNS])
    body = "".join(
        f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row[:MAX_COLUMNS])}</tr>"
        for row, _ in zip(rows, range(MAX_ROWS), strict=False)
    )
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


def _cell(value: Any) -> str:
    return escape(plain(_shown(value)))


def _shown(value: Any) -> str:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        more = f" and {len(value) - _MAX_ITEMS:,} more" if len(value) > _MAX_ITEMS else ""
        return ", ".join(map(_shown, value[:_MAX_ITEMS])) + more
    return str(value)
