"""Searches by composite keys over one snapshot: shards in turn, their answers in one order."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

from pexeso.build.parts.metadata import has_aliases
from pexeso.composite.lake.query import KeyTable, key_table
from pexeso.composite.lake.results import CompositeMatch, CompositeResult, FanOut
from pexeso.composite.part.open import RowShard, open_row_shards
from pexeso.errors import InputError
from pexeso.lake.readers.options import AS_FOUND, ReadingOptions
from pexeso.options import ALL, columns_wanted
from pexeso.runtime.checks import named_options
from pexeso.semantic.open_index import OpenIndex

if TYPE_CHECKING:
    import numpy as np

    from pexeso.composite.lake.similar import SimilarKeys
    from pexeso.composite.lake.table_pair import TablePair
    from pexeso.composite.query import KeyQuery
    from pexeso.composite.search import KeyMatch, KeyMatches
    from pexeso.lake.normalise.normaliser import Normaliser
    from pexeso.semantic.executor import Executor

KeyHit = tuple[int, str, RowShard, "KeyMatch"]
"""Keys with a minus, the name of the table, and where it is."""


@dataclass(frozen=True)
class CompositeSearches:
    """Searches by composite keys of one snapshot; see `pexeso.Index.search_composite`."""

    opened: OpenIndex
    executor: Executor | None = None

    @cached_property
    def _shards(self) -> list[RowShard]:
        return open_row_shards(self.opened.whole)

    @named_options("a search by composite keys")
    def search(
        self,
        table: Any,
        columns: str | Iterable[str] | None = None,
        *,
        k: int | str | None = None,
        min_joinability: float | None = None,
        exclude_self: bool = False,
        max_distance: float | None = None,
        row_filter: str = "auto",
        first_column: str | int = "postings",
        reading: ReadingOptions = AS_FOUND,
    ) -> CompositeResult:
        """Find the tables that join most keys, exactly."""
        started = time.perf_counter()
        limit = columns_wanted(k)
        require_min_joinability(min_joinability)
        shards = self._shards
        query_table = key_table(table, columns, reading=reading)
        query = query_table.query(self._normaliser)
        own_table = self._own_table(query_table) if exclude_self else None
        at_least = keys_needed(min_joinability, query.n_keys)
        keys = self._keys(query_table, query, max_distance, row_filter, first_column)
        hits: list[KeyHit] = []
        for shard in shards:
            matches = keys.search_shard(shard, limit, at_least, shard.hidden(own_table))
            names = shard.table_names([match.table for match in matches])
            hits += [
                (-match.keys, name, shard, match)
                for name, match in zip(names, matches, strict=True)
            ]
            hits.sort(key=lambda hit: hit[:2])
            if limit is not None and len(hits) >= limit:
                hits = hits[:limit]
                at_least = -hits[-1][0]
        options = {
            "k": ALL if limit is None else limit,
            "min_joinability": min_joinability,
            "exclude_table": own_table,
            **keys.options,
        }
        stats = {
            "shards": len(shards),
            **keys.stats,
            "seconds": round(time.perf_counter() - started, 6),
        }
        return CompositeResult(
            {
                **query_table.describe(),
                "complete_rows": _complete_rows(query),
                "keys": query.n_keys,
            },
            options,
            tuple(self._match(query_table, query, keys, *hit[1:]) for hit in hits),
            stats,
            n_more=0 if limit is None or len(hits) < limit else None,
        )

    def pair(
        self,
        table: Any,
        columns: str | Iterable[str] | None,
        lake_table: str,
        *,
        reading: ReadingOptions = AS_FOUND,
    ) -> TablePair:
        """Read a table of the lake, to be joined with a key of yours.

        Parameters
        ----------
        table, columns, reading
            As in `search`.
        lake_table : str
            Its name.

        Raises
        ------
        InputError
            The columns make no key, or the index knows no such table.
        TableReadError, PlaceError
            It cannot be read.
        """
        from pexeso.composite.lake.table_pair import open_pair

        if hasattr(table, "sparkSession"):
            raise InputError(
                "A Spark DataFrame is joined by one column. To join by a key of several, give what "
                "its toPandas() or toArrow() gives."
            )
        query_table = key_table(table, columns, reading=reading)
        return open_pair(self.opened, query_table, lake_table)

    def _keys(
        self,
        query_table: KeyTable,
        query: KeyQuery,
        max_distance: float | None,
        row_filter: str,
        first_column: str | int,
    ) -> EqualKeys | SimilarKeys:
        if not query_table.is_similar:
            if max_distance is not None:
                raise InputError(
                    "max_distance is for columns of a key whose values match similar ones. Got "
                    f"{max_distance!r}, and no such column: mark one by '~', as in country~,year."
                )
            return EqualKeys(query, row_filter, first_column)
        for name, value in (("row_filter", row_filter), ("first_column", first_column)):
            if value != (default := getattr(EqualKeys, name)):
                raise InputError(
                    f"{name} is for keys of equal values alone. Got {value!r} with a column marked "
                    f"'~': leave it at {default!r}."
                )
        # Most searches do without.
        from pexeso.composite.lake.similar import SimilarKeys
        from pexeso.semantic.executor import LocalExecutor

        if max_distance is None:
            max_distance = self.opened.usual_max_distance
        return SimilarKeys(
            self.opened,
            self.executor or LocalExecutor(),
            query_table,
            query,
            self._normaliser,
            max_distance,
        )

    def _match(
        self,
        query_table: KeyTable,
        query: KeyQuery,
        keys: EqualKeys | SimilarKeys,
        name: str,
        shard: RowShard,
        match: KeyMatch,
    ) -> CompositeMatch:
        labels = shard.labels(match.table)
        return CompositeMatch(
            name,
            tuple(labels[column] for column in match.columns),
            match.keys,
            query.n_keys,
            match.keys / query.n_keys,
            match.rows,
            match.query_rows,
            FanOut.of(match),
            tuple(label for at, label in enumerate(labels) if at not in match.columns),
            self,
            tuple(column.label for column in query_table.key),
            None if isinstance(keys, EqualKeys) else partial(keys.pairs, shard, match),
        )

    @property
    def _normaliser(self) -> Normaliser | None:
        return self.opened.normaliser if has_aliases(self.opened.store.manifest) else None

    def _own_table(self, query_table: KeyTable) -> str | None:
        return None if query_table.file is None else self.opened.table_of(query_table.file)


@dataclass
class EqualKeys:
    """Searches shards by keys of equal values; `pexeso.composite.search` has the arguments."""

    query: KeyQuery
    row_filter: str = "auto"
    first_column: str | int = "postings"
    _answers: list[KeyMatches] = field(default_factory=list)

    options: ClassVar[dict[str, Any]] = {}

    def search_shard(
        self, shard: RowShard, k: int | None, at_least: int, excluded: np.ndarray
    ) -> tuple[KeyMatch, ...]:
        """Find the tables of a shard that join most keys, equal ones by number."""
        from pexeso.composite.search import search_keys  # brings numba

        answer = search_keys(
            shard.rows,
            self.query,
            k,
            at_least=at_least,
            row_filter=self.row_filter,
            first=self.first_column,
            excluded=excluded,
        )
        self._answers.append(answer)
        return answer.matches

    @property
    def stats(self) -> dict[str, Any]:
        """What was read and compared so far; the filter of rows of each shard."""
        ways = [answer.row_filter for answer in self._answers]
        works = [asdict(answer.work) for answer in self._answers]
        return {
            "row_filters": {way: ways.count(way) for way in sorted(set(ways))},
            **{name: sum(work[name] for work in works) for name in (works[0] if works else ())},
        }


def keys_needed(min_joinability: float | None, n_keys: int) -> int:
    """Return the fewest keys of n whose share is at least `min_joinability`, and 1 without it.

    Examples
    --------
    >>> keys_needed(0.3, 10), keys_needed(0.1, 3), keys_needed(None, 7)
    (3, 1, 1)
    """
    if min_joinability is None or not n_keys:
        return 1
    keys = max(1, int(min_joinability * n_keys))
    # The share is what a user sees: a quotient of two numbers, however a product is rounded.
    while keys > 1 and (keys - 1) / n_keys >= min_joinability:
        keys -= 1
    while keys / n_keys < min_joinability:
        keys += 1
    return keys


def require_min_joinability(share: Any) -> None:
    """Refuse a smallest joinability that is none."""
    is_number = isinstance(share, int | float) and not isinstance(share, bool)
    if share is not None and not (is_number and 0 < share <= 1):
        raise InputError(
            f"min_joinability must be a number in (0, 1]. Got {share!r} instead. It is the share "
            "of your distinct keys that a table must join."
        )


def _complete_rows(query: KeyQuery) -> int:
    return int(query.row_counts.sum())
