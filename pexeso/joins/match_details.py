"""Evidence for the matches of one search: pairs, kinds, word contributions, nearest values.

It is computed when it is requested, and what computes it is imported then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import InputError
from pexeso.lake.readers.table import DEFAULT_MAX_BYTES
from pexeso.results.query import order_note, zone_note
from pexeso.runtime.compiled import compiled

if TYPE_CHECKING:
    from pexeso.engine.stats import SearchStats
    from pexeso.joins.matched_rows import FoundRows
    from pexeso.joins.sql import JoinSql, LakeTable
    from pexeso.joins.tables import Joined
    from pexeso.options import SearchOptions
    from pexeso.results.column_matches import WouldMatch
    from pexeso.results.match_kinds import KindCounts, Pair
    from pexeso.results.matches import Match, Unmatched
    from pexeso.results.query import Hit
    from pexeso.semantic.encoded_query import EncodedQuery
    from pexeso.semantic.open_index import OpenIndex
    from pexeso.semantic.pairs import PairTable
    from pexeso.semantic.row_preview import TwoTables
    from pexeso.semantic.word_contributions import WordContributions


# Pairs that are objects at a time where they are written one after the other.
_PAIRS_AT_ONCE = 1 << 14


@dataclass(eq=False, repr=False)
class MatchDetails:
    """What the matches of one search rest on; `position` is that of a column in the result.

    Pairs are found together for all columns when those of the first are asked for, unless `find`
    was called with those that are wanted. They stay in memory with the result, as arrays; all else
    is computed each time.
    """

    _opened: OpenIndex
    _query: EncodedQuery
    _hits: Sequence[Hit]
    _options: SearchOptions
    _stats: SearchStats
    _tables: dict[int, PairTable] = field(default_factory=dict)
    # Of columns whose dates may have the day or the month first, those that are read with the day
    # first.
    _day_first: set[int] = field(default_factory=set)
    _forms: dict[int, pa.StringArray | None] = field(default_factory=dict)

    @cached_property
    def _counted(self) -> np.ndarray:
        return self._query.counted_texts(self._options.joinability_of)

    def find(self, positions: Iterable[int]) -> None:
        """Find the pairs of these columns, as far as they are not known, and of no others."""
        new_positions = [position for position in positions if position not in self._tables]
        if new_positions:
            from pexeso.semantic.pairs import find_pairs

            hits = [self._hits[position] for position in new_positions]
            tables = find_pairs(self._opened.loader, self._query, hits, self._options, self._stats)
            self._tables.update(zip(new_positions, tables, strict=True))

    def table(self, position: int) -> PairTable:
        if position not in self._tables:
            self.find(range(len(self._hits)))
        return self._tables[position]

    def lake_values(self, position: int) -> tuple[int, int]:
        """Return how many values a column of the lake has, and how many of them have a match."""
        hit, loader = self._hits[position], self._opened.loader
        lists = loader.on_host(hit.partition).column_lists
        n_matched = pc.count_distinct(self.table(position).keys).as_py()
        return int(lists.sizes(np.array([hit.position]))[0]), n_matched

    def n_nearest(self, position: int) -> int:
        """Return how many values of the lake are the nearest of a value of the query column."""
        table = self.table(position)
        return pc.count_distinct(table.keys.take(pa.array(table.starts))).as_py()

    def read_codes(self, position: int) -> None:
        """Add the pairs of cells that are equal as they are read, of values without another.

        Dates that may have the day or the month first are read as more of them match.
        """
        from pexeso.joins.matched_rows import equal_pairs

        table, other = self.table(position), self._with_day_first(position)
        if other is not None and other.is_matched.sum() > table.is_matched.sum():
            table = other
            self._day_first.add(position)
        free = np.flatnonzero(~table.is_matched)
        ours, theirs = self._read(position)
        one, other = equal_pairs(ours.take(pa.array(free)), theirs)
        texts = [part.take(pa.array(other)) for part in self._column(position)]
        rows = self._not_rejected(position, free[one], *texts)
        texts = [part.take(pa.array(rows)) for part in texts]
        self._tables[position] = table.with_equal(free[one[rows]], *texts)

    def _not_rejected(
        self, position: int, text: np.ndarray, values: pa.Array, keys: pa.Array
    ) -> np.ndarray:
        """Return which pairs of texts of the query and values nobody has judged to be none."""
        judged, hit = self._query.judged, self._hits[position]
        is_rejected = np.zeros(len(text), bool)
        for pair in () if judged is None else judged.pairs_of((hit.table, hit.label)):
            is_same = pair.is_of(values, keys) & (self._query.texts[1][text] == pair.value)
            is_rejected[is_same] = not pair.is_match
        return np.flatnonzero(~is_rejected)

    def leave_out_unlike_numbers(self, position: int) -> None:
        """Leave out pairs of numbers whose signs or currencies differ: (5) is not 5."""
        from pexeso.joins.aggregation import are_unlike

        if self._query.column.exact_kind != "number":
            return
        table = self.table(position)
        ours = table.texts.take(pa.array(table.text)).cast(pa.string())
        is_unlike = are_unlike(ours, table.values.cast(pa.string()))
        if pc.any(is_unlike, min_count=0).as_py():
            self._tables[position] = table.take(pc.indices_nonzero(pc.invert(is_unlike)).to_numpy())

    def match_equal_cells(self, position: int) -> None:
        """Add the pairs of equal cells, of values without another.

        A column may say what a cell means, such as CA, where the other has too few cells for it.
        Where both say it, and differ, the cells are two things. Dates of either order are read as
        more of them match.
        """
        from pexeso.joins.matched_rows import equal_pairs
        from pexeso.results.match_kinds import EXACT

        table = self.table(position)
        free = np.flatnonzero(~table.is_matched)
        if not len(free) or self._query.column.exact_kind == "date":
            return
        column, keys = (side.cast(pa.string()) for side in self._column(position))
        ours = pc.utf8_trim_whitespace(table.texts.take(pa.array(free))).cast(pa.string())
        one, other = equal_pairs(ours, column)
        texts, keys = (side.take(pa.array(other)) for side in (column, keys))
        forms = self._query.values.take(pa.array(self._query.texts[1][free[one]]))
        alone = self._opened.normaliser.normalise_distinct(texts, np.arange(len(texts)))
        is_open = pc.or_(pc.equal(alone, forms.cast(pa.string())), pc.equal(alone, keys))
        rows = pc.indices_nonzero(is_open).to_numpy()
        text = free[one[rows]]
        equal = [side.take(pa.array(rows)).cast(table.values.type) for side in (texts, keys)]
        kept = self._not_rejected(position, text, *equal)
        equal = [side.take(pa.array(kept)) for side in equal]
        self._tables[position] = table.with_equal(text[kept], *equal, kind=EXACT)

    def _with_day_first(self, position: int) -> PairTable | None:
        """Return the pairs of a column of dates with the day first; None where it says what is."""
        from pexeso.joins.matched_rows import equal_pairs

        forms = self._day_first_forms(position)
        if forms is None:
            return None
        text, other = equal_pairs(self._query.values.take(pa.array(self._query.texts[1])), forms)
        texts = (part.take(pa.array(other)) for part in self._column(position))
        return self.table(position).take(np.zeros(0, np.int64)).with_equal(text, *texts)

    def _day_first_forms(self, position: int) -> pa.StringArray | None:
        if self._query.normaliser is None or self._query.column.exact_kind != "date":
            return None
        if position not in self._forms:
            texts, keys = (side.cast(pa.string()) for side in self._column(position))
            forms = self._query.normaliser.with_day_first(texts)
            self._forms[position] = None if forms.equals(keys) else forms
        return self._forms[position]

    def would_match(self, position: int) -> tuple[WouldMatch, ...]:
        """Return the readings that are off by which more codes of a column would be equal."""
        if not self.are_codes:
            return ()
        from pexeso.results.column_matches import pair_would_match

        hit = self._hits[position]
        sides = ([texts] for texts in self._read(position))
        readings = self._opened.join_normaliser.readings
        lines = pair_would_match(hit.table, hit.label, *sides, readings)
        return tuple(line for line in lines if line.matched > hit.matched)

    @cached_property
    def are_codes(self) -> bool:
        """Whether values match that are equal as they are read.

        It is so where equal ones alone match, as near ones are others, and with further rules.
        """
        advice = self._options.advice
        if self._opened.options.readings or (advice is not None and "kind" in advice.evidence):
            return True
        return self._options.max_distance == 0 and self._query.column.exact_kind is not None

    def note_on_dates(self, position: int) -> str | None:
        """Return how dates are read of which a column does not say what they mean.

        It may not say whether the day comes first, or in which time zone times are.
        """
        notes: list[str | None] = []
        if self._query.day_first is not None:
            notes.append(order_note("Your dates", day_first=self._query.day_first))
        if self._day_first_forms(position) is not None:
            hit, day_first = self._hits[position], position in self._day_first
            notes.append(order_note(f"Dates of {hit.table}:{hit.label}", day_first=day_first))
        if self._query.column.exact_kind == "date":
            hit, theirs = self._hits[position], self._column(position)[0]
            notes.append(zone_note(self.table(position).texts, theirs, f"{hit.table}:{hit.label}"))
        return " ".join(filter(None, notes)) or None

    def _read(self, position: int) -> tuple[pa.LargeStringArray, pa.LargeStringArray]:
        """Return the texts of the query and of a column as they are read."""
        from pexeso.lake.tokens import key_texts

        texts, readings = self.table(position).texts, self._opened.join_normaliser.readings
        return key_texts(texts, readings), key_texts(self._column(position)[0], readings)

    def _column(self, position: int) -> tuple[pa.Array, pa.Array]:
        """Return the texts of a column, one of each value, and these values."""
        from pexeso.semantic.partition_loader import posting_arrays

        hit, loader = self._hits[position], self._opened.loader
        lists = loader.on_host(hit.partition).column_lists
        return posting_arrays(
            loader, hit.partition, np.arange(*lists.offsets[hit.position : hit.position + 2])
        )

    def text_groups(self, position: int) -> tuple[pa.Array, np.ndarray, np.ndarray]:
        """Return the texts of a column, their rows, and the components of its pairs with itself."""
        table, (_, value_of_text) = self.table(position), self._query.texts
        values, loops = self._query.values, compiled("pexeso.runtime.loops")
        ends = pc.index_in(table.keys, values.cast(table.keys.type)).to_numpy().astype(np.int64)
        group = loops.components(len(values), value_of_text[table.text], ends)
        return table.texts, self._query.rows_of_text, group[value_of_text]

    def pairs(self, position: int, limit: int | None = None) -> list[Pair]:
        return self.table(position).to_pairs(limit)

    def n_pairs(self, position: int) -> int:
        return len(self.table(position))

    def nearest_of_each(self, position: int, limit: int) -> list[Pair]:
        return self.table(position).nearest_of_each(limit).to_pairs()

    def streamed_pairs(self, position: int) -> Iterator[Pair]:
        """Yield the pairs of a column, of which some thousands are objects at a time."""
        table = self.table(position)
        for start in range(0, len(table), _PAIRS_AT_ONCE):
            yield from table.between(start, min(start + _PAIRS_AT_ONCE, len(table))).to_pairs()

    def weakest(self, position: int, limit: int) -> list[Pair]:
        """Return the pairs of a column that most need judging; see `PairTable.weakest`."""
        return self.table(position).weakest(limit).to_pairs(None)

    def matched(self, position: int) -> int:
        """Count the values, or rows, of the query column with a pair in a column."""
        return int(self._counted[self.table(position).is_matched].sum())

    def kinds(self, position: int) -> KindCounts:
        """Count pairs, and what joinability counts, of a column by kind."""
        return self.table(position).count_kinds(self._counted)

    def word_contributions(self, position: int, n: int) -> WordContributions:
        from pexeso.semantic.word_contributions import word_contributions

        table = self.table(position)
        _, value_of_text = self._query.texts
        values, first = np.unique(value_of_text[table.text[table.starts]], return_index=True)
        keys = table.keys.take(pa.array(table.starts[first]))
        space = self._opened.loader.space
        return word_contributions(
            self._query.values.take(pa.array(values)), keys, self._opened.embedder, space, n
        )

    def forms(self, position: int, limit: int) -> dict[str, str]:
        """Return how texts of the first pairs are compared, where that has other words.

        Your texts come before those of the column. Pairs of aliases say themselves what they mean.
        """
        from pexeso.results.match_kinds import ALIAS, KINDS
        from pexeso.semantic.explanation import compared_forms

        table = self.table(position)
        chosen = np.flatnonzero(table.kinds != KINDS.index(ALIAS))[:limit]
        rows, text = pa.array(chosen), table.text[chosen]
        ours = self._query.values.take(pa.array(self._query.texts[1][text]))
        texts = (table.texts.take(pa.array(text)), table.values.take(rows))
        theirs = table.keys.take(rows)
        if position in self._day_first and self._query.normaliser is not None:
            theirs = self._query.normaliser.with_day_first(texts[1].cast(pa.string()))
        sides = zip(texts, (ours, theirs), strict=True)
        return compared_forms(
            pair
            for some, keys in sides
            for pair in zip(some.to_pylist(), keys.to_pylist(), strict=True)
        )

    def unmatched(self, position: int, limit: int | None) -> tuple[Unmatched, ...]:
        """List the query texts without a match in a column, with the nearest lake value of each."""
        from pexeso.semantic.explanation import find_unmatched

        return find_unmatched(
            self._opened.loader,
            self._query,
            self._hits[position],
            self.table(position).is_matched,
            limit,
        )

    def unmatched_texts(self, position: int) -> pa.Array:
        """Return the texts of the query that have a value, and no match in a column."""
        is_unmatched = ~self.table(position).is_matched
        return self._query.text_array.filter(pa.array(is_unmatched))

    def n_unmatched(self, position: int) -> int:
        from pexeso.semantic.explanation import texts_without_value

        return int((~self.table(position).is_matched).sum()) + len(texts_without_value(self._query))

    def two_tables(self) -> TwoTables:
        from pexeso.semantic.row_preview import TwoTables

        opened = self._opened
        max_bytes = opened.store.manifest.options.get("max_table_bytes", DEFAULT_MAX_BYTES)
        return TwoTables(
            self._query.column,
            opened.lake,
            opened.normaliser,
            opened.catalog,
            max_bytes,
            opened.view,
        )

    def join(
        self,
        match: Match,
        table: Any,
        on: str | int | None,
        to: str | None,
        options: Mapping[str, Any],
        *,
        texts: pa.StringArray | None = None,
    ) -> Joined:
        """Join the table of a match with one of the user's.

        See `pexeso.results.matches.Match.join`.

        `texts` are by what its rows are joined, one a row, in place of the cells of `on`.
        """
        from pexeso.joins.options import join_options

        # A search that joins nothing does without them.
        from pexeso.joins.tables import (
            SPARK_LAKE,
            join_table,
            join_texts,
            mapping_of_match,
            rows_of_match,
        )

        opened, query, chosen = self._opened, self._query, join_options(options)
        notes = [self.note_on_dates(match._position)]
        searched = query.column.values
        on = on if on is not None else query.column.column
        if hasattr(table, "sparkSession"):
            if to is not None:
                raise InputError(
                    f"A Spark DataFrame is joined to a Spark DataFrame: leave out to={to!r}."
                )
            from pexeso.joins.spark import FoundTable, join_frame

            lake_table = FoundTable(
                opened.lake,
                match.table,
                match.column,
                opened.labels_of(match.table),
                opened.normaliser,
                opened.store.manifest.options["max_table_bytes"],
                mapping_of_match(query, match, chosen),
                chosen,
                view=opened.view,
            )
            from_spark = str(opened.lake).startswith(SPARK_LAKE)
            joined = join_frame(table, on, lake_table, searched, from_spark=from_spark)
        else:
            found_rows = rows_of_match(opened, query, match, chosen)
            notes.append(self._growth_note(match.table, found_rows.rows.num_rows))
            if texts is not None:
                joined = join_texts(table, texts, found_rows, searched, to=to)
            else:
                joined = join_table(table, on, found_rows, searched, to=to)
        note = " ".join(filter(None, notes))
        return joined.noted(note) if note else joined

    def _growth_note(self, table: str, n_rows: int) -> str | None:
        """Return a note where a table has other rows than the index: new values join nothing."""
        known = self._opened.catalog.tables(["n_rows"], among=pa.array([table], pa.string()))
        n_indexed = known["n_rows"][0].as_py()
        if n_rows == n_indexed:
            return None
        return (
            f"'{table}' has {n_rows:,} rows, and had {n_indexed:,} when it was indexed: new values "
            "join nothing until the index is brought up to date (pexeso append)."
        )

    def sql(
        self,
        match: Match,
        on: str | None,
        options: Mapping[str, Any],
        names: tuple[str, str | None],
    ) -> JoinSql:
        from pexeso.joins.sql import sql_of_match

        on = on if on is not None else self._query.column.column
        if on is None:
            raise InputError("Name the query column of your table: on=NAME.")
        return sql_of_match(self._opened, self._query, match, on, options, names)

    def lake_table(self, match: Match) -> LakeTable:
        from pexeso.joins.sql import LakeTable

        return LakeTable.of(self._opened, self.joined_rows(match))

    def joined_rows(self, match: Match) -> FoundRows:
        """Return the rows of the table of a match that each text of the query joins."""
        from pexeso.joins.options import JoinOptions
        from pexeso.joins.tables import rows_of_match

        return rows_of_match(self._opened, self._query, match, JoinOptions())

    def curve(self, position: int) -> tuple[np.ndarray, np.ndarray]:
        """Return how many values, or rows, match within each distance; see `Match.curve`."""
        table = self.table(position)
        distances = table.distances
        if len(table):
            distances = np.minimum.reduceat(distances, table.starts)
        order = np.argsort(distances, kind="stable")
        counted = self._counted[table.text[table.starts]][order]
        at, first = np.unique(distances[order], return_index=True)
        ends = np.append(first[1:], len(order)) - 1
        return at, np.cumsum(counted)[ends] if len(order) else counted
