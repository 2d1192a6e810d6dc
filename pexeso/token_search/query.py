"""A query column as a set of tokens: what both searches by equal values ask with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.tokens import distinct_tokens
from pexeso.search.query import QueryColumn, query_from_values


@dataclass(frozen=True)
class TokenQuery:
    """The distinct tokens of a query column.

    Attributes
    ----------
    tokens : pa.LargeStringArray (q,)
    """

    column: QueryColumn
    tokens: pa.LargeStringArray

    def __len__(self) -> int:
        return len(self.tokens)

    def describe(self) -> dict[str, Any]:
        """Return file, column, number of rows and of distinct values as plain JSON."""
        return {**self.column.describe(), "values": len(self)}


def token_query(values: Any, normaliser: Normaliser | None = None) -> TokenQuery:
    """Make the query of a column of values, given as in `pexeso.index.Index.search`.

    The aliases of the normaliser, if it has some, are replaced by what they stand for.
    """
    column = query_from_values(values)
    aliased = normaliser is not None and normaliser.aliases is not None
    return TokenQuery(
        column, distinct_tokens(normaliser.resolved(column.values) if aliased else column.values)
    )
