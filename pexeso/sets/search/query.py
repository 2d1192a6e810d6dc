"""A query column as a set of tokens: what both searches by equal values ask with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.tokens import distinct_tokens, tokens_of
from pexeso.results.query import QueryColumn, query_from_values


@dataclass(frozen=True)
class TokenQuery:
    """The distinct tokens of a query column.

    Attributes
    ----------
    resolved : pa.StringArray or None
        The values of the column, those that are aliases replaced; None for an index without.
    """

    column: QueryColumn
    tokens: pa.LargeStringArray
    resolved: pa.StringArray | None = None

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def aliases(self) -> dict[str, list[str]]:
        """By the token of what they stand for, the texts of the column that are aliases, sorted."""
        aliases: dict[str, list[str]] = {}
        if self.resolved is not None:
            rows = pc.indices_nonzero(pc.not_equal(self.column.values, self.resolved))
            texts = self.column.values.take(rows).to_pylist()
            tokens = tokens_of(self.resolved.take(rows)).to_pylist()
            for text, token in sorted(set(zip(texts, tokens, strict=True))):
                aliases.setdefault(token, []).append(text)
        return aliases

    def describe(self) -> dict[str, Any]:
        """Return file, column, number of rows and of distinct values as plain JSON."""
        return {**self.column.describe(), "values": len(self)}


def token_query(values: Any, normaliser: Normaliser | None = None) -> TokenQuery:
    """Make the query of a column of values, given as in `pexeso.index.Index.search`.

    The aliases of the normaliser, if it has some, are replaced by what they stand for.
    """
    column = query_from_values(values)
    if normaliser is None or normaliser.aliases is None:
        return TokenQuery(column, distinct_tokens(column.values))
    resolved = normaliser.resolved(column.values)
    return TokenQuery(column, distinct_tokens(resolved), resolved)
