"""Searches by composite keys over one snapshot: shards in turn, their answers in one order."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

from pexeso.composite.key_table import KeyTable, TablePair, key_table, open_pair, readings_of
from pexeso.composite.part.open import RowShard, open_row_shards
from pexeso.composite.results import CompositeMatch, CompositeResult, FanOut
from pexeso.errors import InputError
from pexeso.lake.readers.options import AS_FOUND, ReadingOptions
from pexeso.options import ALL, columns_wanted
from pexeso.results.column_matches import Hints
from pexeso.results.query import order_of_dates
from pexeso.runtime.checks import named_options, require_share
from pexeso.semantic.open_index import OpenIndex
from pexeso.sets.shard_searches import FEW_SHARE

if TYPE_CHECKING:
    import numpy as np

    from pexeso.composite.search import KeyMatch, KeyMatches, KeyQuery
    from pexeso.composite.similar_keys import SimilarKeys
    from pexeso.semantic.executor import Executor

# Keys in one reading, and what searches for them.
KeyWay = tuple["KeyQuery", "EqualKeys | SimilarKeys"]

# Keys with a minus, the name of the table, where it is, and the reading of the keys.
KeyHit = tuple[int, str, RowShard, "KeyMatch", KeyWay]


@dataclass(frozen=True)
class CompositeSearches:
    """Searches by composite keys of one snapshot; see `pexeso.Index.search_composite`."""

    opened: OpenIndex
    executor: Executor | None = None

    @cached_property
    def _shards(self) -> list[RowShard]:
        return open_row_shards(self.opened.whole)

    def _reading_of(self, table: Any, reading: ReadingOptions) -> ReadingOptions:
        is_file = isinstance(table, str | os.PathLike)
        return self.opened.reading_of(os.fspath(table), reading) if is_file else reading

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
        reading: ReadingOptions = AS_FOUND,
    ) -> CompositeResult:
        started = time.perf_counter()
        limit = columns_wanted(k)
        if min_joinability is not None:
            meaning = "It is the share of your distinct keys that a table must join."
            require_share("min_joinability", min_joinability, meaning)
        shards = self._shards
        query_table = key_table(table, columns, reading=self._reading_of(table, reading))
        queries = query_table.queries(self.opened.normaliser)
        query = queries[0]
        own_table = self._own_table(query_table) if exclude_self else None
        at_least = keys_needed(min_joinability, query.n_keys)
        keys = self._keys(query_table, query, max_distance, row_filter)
        ways: list[KeyWay] = [(query, keys)]
        if isinstance(keys, EqualKeys):
            # A table is found by the reading of the keys by which it joins most of them.
            ways += [(other, EqualKeys(other, row_filter)) for other in queries[1:]]
        hits: list[KeyHit] = []
        for shard, way in product(shards, ways):
            matches = way[1].search_shard(shard, limit, at_least, shard.hidden(own_table))
            names = shard.table_names([match.table for match in matches])
            hits += [
                (-match.keys, name, shard, match, way)
                for name, match in zip(names, matches, strict=True)
            ]
            hits.sort(key=lambda hit: hit[:2])
            if len(ways) > 1:
                best: dict[str, KeyHit] = {}
                for hit in hits:
                    best.setdefault(hit[1], hit)
                hits = list(best.values())
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
                "complete_rows": int(query.row_counts.sum()),
                "keys": query.n_keys,
                **order_of_dates(way[0].day_first for *_, way in hits),
            },
            options,
            tuple(self._match(query_table, *way, *hit) for _, *hit, way in hits),
            stats,
            n_more=0 if limit is None or len(hits) < limit else None,
            _find_hints=partial(self._hints, query_table, own_table, hits, query.n_keys),
        )

    def _hints(
        self, query_table: KeyTable, own_table: str | None, hits: list[KeyHit], n_keys: int
    ) -> Hints:
        """Find the readings by which more keys would match, where few keys of a table do."""
        share = max((-hit[0] for hit in hits), default=0) / max(n_keys, 1)
        if query_table.is_similar or share >= FEW_SHARE:
            return Hints()
        from pexeso.composite.key_evidence import would_match_keys

        normaliser = self.opened.normaliser
        key, readings = query_table.key_texts(normaliser), readings_of(normaliser)
        return Hints(
            readings=would_match_keys(self._shards, key, readings, share, exclude_table=own_table)
        )

    def pair(
        self,
        table: Any,
        columns: str | Iterable[str] | None,
        lake_table: str,
        *,
        reading: ReadingOptions = AS_FOUND,
    ) -> TablePair:
        if hasattr(table, "sparkSession"):
            raise InputError(
                "A Spark DataFrame is joined by one column. To join by a key of several, give what "
                "its toPandas() or toArrow() gives."
            )
        reading = self._reading_of(table, reading)
        query_table = key_table(table, columns, reading=reading, min_columns=1)
        return open_pair(self.opened, query_table, lake_table)

    def _keys(
        self,
        query_table: KeyTable,
        query: KeyQuery,
        max_distance: float | None,
        row_filter: str,
    ) -> EqualKeys | SimilarKeys:
        if not query_table.is_similar:
            if max_distance is not None:
                raise InputError(
                    "max_distance is for columns of a key whose values match similar ones. Got "
                    f"{max_distance!r}, and no such column: mark one by '~', as in country~,year."
                )
            return EqualKeys(query, row_filter)
        if row_filter != EqualKeys.row_filter:
            raise InputError(
                f"row_filter is for keys of equal values alone. Got {row_filter!r} with a column "
                f"marked '~': leave it at {EqualKeys.row_filter!r}."
            )
        # Most searches do without.
        from pexeso.composite.similar_keys import SimilarKeys
        from pexeso.semantic.executor import search_store

        if max_distance is None:
            max_distance = self.opened.usual_max_distance
        return SimilarKeys(
            self.opened,
            self.executor or search_store,
            query_table,
            query,
            self.opened.normaliser,
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
            FanOut(
                match.relation,
                match.joined_rows,
                match.joined_rows / match.query_rows,
                match.joined_rows / match.rows,
                match.most_rows,
                match.most_query_rows,
            ),
            tuple(label for at, label in enumerate(labels) if at not in match.columns),
            self,
            tuple(column.label for column in query_table.key),
            None if isinstance(keys, EqualKeys) else partial(keys.pairs, shard, match),
        )

    def _own_table(self, query_table: KeyTable) -> str | None:
        return None if query_table.file is None else self.opened.table_of(query_table.file)


@dataclass
class EqualKeys:
    query: KeyQuery
    row_filter: str = "auto"
    _answers: list[KeyMatches] = field(default_factory=list)

    options: ClassVar[dict[str, Any]] = {}

    def search_shard(
        self, shard: RowShard, k: int | None, at_least: int, excluded: np.ndarray
    ) -> tuple[KeyMatch, ...]:
        from pexeso.composite.search import search_keys

        answer = search_keys(
            shard.rows,
            self.query,
            k,
            at_least=at_least,
            row_filter=self.row_filter,
            excluded=excluded,
        )
        self._answers.append(answer)
        return answer.matches

    @property
    def stats(self) -> dict[str, Any]:
        ways = [answer.row_filter for answer in self._answers]
        works = [asdict(answer.work) for answer in self._answers]
        return {
            "row_filters": {way: ways.count(way) for way in sorted(set(ways))},
            **{name: sum(work[name] for work in works) for name in (works[0] if works else ())},
        }


def keys_needed(min_joinability: float | None, n_keys: int) -> int:
    """Return the fewest keys of n whose share is at least `min_joinability`, and 1 without it."""
    if min_joinability is None or not n_keys:
        return 1
    keys = max(1, int(min_joinability * n_keys))
    # The share is what a user sees: a quotient of two numbers, however a product is rounded.
    while keys > 1 and (keys - 1) / n_keys >= min_joinability:
        keys -= 1
    while keys / n_keys < min_joinability:
        keys += 1
    return keys
