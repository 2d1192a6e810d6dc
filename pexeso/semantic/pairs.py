"""Matching value pairs of the columns of a result, as arrays.

They take about 60 bytes per pair, in addition to the texts.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.engine.lists import damage_made_plain, offsets_of, ranges
from pexeso.engine.stats import SearchStats
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.options import SearchOptions
from pexeso.results.match_kinds import ALIAS, EXACT, KINDS, SPELLING, KindCounts, Pair, kinds_of
from pexeso.results.query import Hit
from pexeso.runtime.progress import advance, begin_steps
from pexeso.semantic.encoded_query import EncodedQuery
from pexeso.semantic.judged import judged_pairs
from pexeso.semantic.partition_loader import PartitionLoader, posting_arrays
from pexeso.store.arrays import take_wide
from pexeso.store.io.temporary import written_whole

BLOCK_SIZE = 1 << 13
"""Query values whose pairs are kept together where a join can be resumed."""

_kept_in: ContextVar[Path | None] = ContextVar("kept_in", default=None)


@contextmanager
def pairs_kept_in(folder: Path) -> Iterator[None]:
    """Keep the pairs found in the block in a folder, and do not find again those that are there."""
    token = _kept_in.set(folder)
    try:
        yield
    finally:
        _kept_in.reset(token)


@dataclass(frozen=True)
class PairTable:
    """The n pairs of a query column and one lake column, by text, the best of each first."""

    texts: pa.StringArray
    text: np.ndarray  # int64 (n,): positions in `texts`, ascending
    # Texts of the lake column, as the table has them and as the index holds them
    values: pa.Array
    keys: pa.Array
    distances: np.ndarray  # float64 (n,), in [0, 1]
    costs: np.ndarray  # float64 (n,): ranks of the pairs of a text; see `VectorSpace.costs`
    # int8 (n,): positions in `KINDS`, or what computes them when they are needed
    found_kinds: np.ndarray | Callable[[], np.ndarray]

    @cached_property
    def kinds(self) -> np.ndarray:
        """Positions in `KINDS`."""
        return self.found_kinds() if callable(self.found_kinds) else self.found_kinds

    def __len__(self) -> int:
        return len(self.text)

    def __reduce__(self) -> tuple[Any, ...]:
        # What computes kinds cannot be sent; what it computes can.
        arrays = self.distances, self.costs, self.kinds
        return PairTable, (self.texts, self.text, self.values, self.keys, *arrays)

    def take(self, rows: np.ndarray) -> PairTable:
        """Return some of the pairs."""
        return PairTable(
            self.texts,
            self.text[rows],
            take_wide(self.values, pa.array(rows)),
            take_wide(self.keys, pa.array(rows)),
            self.distances[rows],
            self.costs[rows],
            self.kinds[rows],
        )

    @cached_property
    def starts(self) -> np.ndarray:
        """Where the pairs of each matched text start: its best pair, int64."""
        return np.flatnonzero(np.diff(self.text, prepend=-1))

    def between(self, start: int, end: int) -> PairTable:
        """Return the pairs from one row to another."""
        return PairTable(
            self.texts,
            self.text[start:end],
            self.values.slice(start, end - start),
            self.keys.slice(start, end - start),
            self.distances[start:end],
            self.costs[start:end],
            lambda: self.kinds[start:end],
        )

    def weakest(self, limit: int) -> PairTable:
        """Return the best pairs of texts without an equal value, the farthest of them first."""
        far = self.starts[self.distances[self.starts] > 0]
        return self.take(far[np.argsort(-self.distances[far], kind="stable")[:limit]])

    def nearest_of_each(self, limit: int) -> PairTable:
        """Return at most so many pairs: as many of the best of each text as fit."""
        if len(self) <= limit:
            return self
        sizes = np.diff(self.starts, append=len(self))
        rank = np.arange(len(self)) - np.repeat(self.starts, sizes)
        return self.take(np.sort(np.argsort(rank, kind="stable")[:limit]))

    @property
    def is_matched(self) -> np.ndarray:
        """Whether each of `texts` has a pair, bool."""
        matched = np.zeros(len(self.texts), dtype=bool)
        matched[self.text] = True
        return matched

    def count_kinds(self, counted: np.ndarray) -> KindCounts:
        """Count pairs and, with what each of `texts` counts for (int64), values or rows by kind."""
        pairs = np.bincount(self.kinds, minlength=len(KINDS))
        matched = np.zeros(len(KINDS), dtype=np.int64)
        if len(self):
            closest = np.minimum.reduceat(self.kinds, self.starts)
            np.add.at(matched, closest, counted[self.text[self.starts]])
        named = [kind for kind in KINDS if kind != ALIAS or pairs[KINDS.index(ALIAS)]]
        return KindCounts(
            *(
                {kind: int(counts[KINDS.index(kind)]) for kind in named}
                for counts in (pairs, matched)
            )
        )

    def with_aliases(self, normaliser: Normaliser) -> PairTable:
        """Return the same pairs, those that are equal by an alias of the normaliser marked."""
        rows = np.flatnonzero(self.kinds == KINDS.index(EXACT))
        ours = take_wide(self.texts, pa.array(self.text[rows]))
        values = take_wide(self.values, pa.array(rows))
        kinds = self.kinds.copy()
        kinds[rows[normaliser.equal_by_alias(ours, values)]] = KINDS.index(ALIAS)
        return replace(self, found_kinds=kinds)

    def with_equal_cells(self) -> PairTable:
        """Return the same pairs, of which those of equal cells alone are exact."""
        rows = np.flatnonzero(self.kinds == KINDS.index(EXACT))
        ours = pc.utf8_trim_whitespace(take_wide(self.texts, pa.array(self.text[rows])))
        same = pc.equal(
            ours.cast(pa.large_string()), self.values.take(pa.array(rows)).cast(pa.large_string())
        )
        kinds = self.kinds.copy()
        kinds[rows[~same.to_numpy(zero_copy_only=False)]] = KINDS.index(SPELLING)
        return replace(self, found_kinds=kinds)

    def with_equal(
        self, text: np.ndarray, values: pa.Array, keys: pa.Array, kind: str = SPELLING
    ) -> PairTable:
        """Return the same pairs and others at distance 0, of texts that have none."""
        texts = np.append(self.text, text)
        order = np.argsort(texts, kind="stable")
        zeros, rows = np.zeros(len(text)), pa.array(order)
        return PairTable(
            self.texts,
            texts[order],
            pa.concat_arrays([self.values, values]).take(rows),
            pa.concat_arrays([self.keys, keys]).take(rows),
            np.append(self.distances, zeros)[order],
            np.append(self.costs, zeros)[order],
            np.append(self.kinds, np.full(len(text), KINDS.index(kind), np.int8))[order],
        )

    def to_pairs(self, limit: int | None = None) -> list[Pair]:
        columns = (
            take_wide(self.texts, pa.array(self.text[:limit])).to_pylist(),
            self.values.slice(0, limit).to_pylist(),
            self.distances[:limit].tolist(),
            self.keys.slice(0, limit).to_pylist(),
            map(KINDS.__getitem__, self.kinds[:limit].tolist()),
        )
        return list(map(Pair, *columns))


@damage_made_plain("the index")
def find_pairs(
    scan: PartitionLoader,
    query: EncodedQuery,
    hits: Sequence[Hit],
    options: SearchOptions,
    stats: SearchStats,
) -> list[PairTable]:
    """Return the matching value pairs of found columns, one table per hit."""
    started = time.perf_counter()
    tables: dict[int, PairTable] = {}
    # The positions of texts by value, and where those of each value start.
    value_of_text = query.texts[1]
    starts = offsets_of(np.bincount(value_of_text, minlength=len(query.values)))
    texts = np.argsort(value_of_text, kind="stable")
    hits_of_partition = {
        number: [position for position, hit in enumerate(hits) if hit.partition == number]
        for number in sorted({hit.partition for hit in hits})
    }
    positions_in = {
        number: np.array([hits[position].position for position in hit_numbers], np.int64)
        for number, hit_numbers in hits_of_partition.items()
    }
    n_compared = {
        number: len(query.values) * int(scan.on_host(number).column_lists.sizes(positions).sum())
        for number, positions in positions_in.items()
    }
    begin_steps(sum(n_compared.values()))
    n_done = 0
    for number, hit_numbers in hits_of_partition.items():
        positions = positions_in[number]
        find = partial(
            _column_pairs, scan, number, n_compared[number], positions, options.max_distance, stats
        )
        folder = _kept_in.get()
        name = f"{number} {positions.tolist()} {options.max_distance}"
        pairs: Any = (
            find(query.vectors) if folder is None else _kept_pairs(folder, name, query, find)
        )
        accepted = None
        if query.judged is not None:
            names = [(hits[at].table, hits[at].label) for at in hit_numbers]
            pairs, accepted = judged_pairs(scan, number, query, positions, names, pairs, options)
        column, value, posting, distance, cost = pairs
        n_done += n_compared[number]
        advance(0, to=n_done)
        first = starts[value]
        sizes = starts[value + 1] - first
        rows = np.repeat(np.arange(len(value)), sizes)
        text = texts[ranges(first, sizes)]
        # Stable: within a text of a column the best pairs stay first.
        order = np.lexsort((text, column[rows]))
        rows = rows[order]
        values, keys = posting_arrays(scan, number, posting[rows])
        table = PairTable(
            query.text_array,
            text[order],
            values,
            keys,
            distance[rows],
            cost[rows],
            np.empty(0, np.int8),
        )
        aliases = None if accepted is None else accepted[rows]
        table = replace(table, found_kinds=partial(_kinds, table, query, value[rows], aliases))
        bounds = np.searchsorted(column[rows], np.arange(len(hit_numbers) + 1))
        for position, start, end in zip(hit_numbers, bounds[:-1], bounds[1:], strict=True):
            tables[position] = table.between(start, end)
    stats.add_seconds("explain", time.perf_counter() - started)
    return [tables[position] for position in range(len(hits))]


def _column_pairs(
    scan: PartitionLoader,
    number: int,
    n_pairs: int,
    positions: np.ndarray,
    max_distance: float,
    stats: SearchStats,
    vectors: Any,
) -> tuple[np.ndarray, ...]:
    return scan.compare(
        number,
        n_pairs,
        lambda partition: scan.space.column_pairs(
            partition, vectors, positions, max_distance, stats
        ),
    )


def _kept_pairs(
    folder: Path, name: str, query: EncodedQuery, find: Callable[..., tuple[np.ndarray, ...]]
) -> tuple[np.ndarray, ...]:
    """Find the pairs of a partition by blocks of query values, each of which has a file."""
    blocks = []
    for begin in range(0, len(query.values), BLOCK_SIZE):
        # With the values: those of dates are searched twice, read in either order.
        of = name, query.values.slice(begin, BLOCK_SIZE).to_pylist()
        named = hashlib.blake2b(repr(of).encode(), digest_size=8)
        file = folder / f"{named.hexdigest()}-{begin}.npy"
        if not file.exists():
            rows = slice(begin, begin + BLOCK_SIZE)
            column, value, *others = find(query.vectors[rows])
            arrays = [array.view(np.int64) for array in (column, value + begin, *others)]
            with written_whole(file, overwrite=False) as draft, draft.open("wb") as stream:
                np.save(stream, np.stack(arrays))
        blocks.append(np.load(file))
    pairs = np.concatenate([np.zeros((5, 0), np.int64), *blocks], axis=1)
    return (*pairs[:3], *pairs[3:].view(np.float64))


def _kinds(
    table: PairTable, query: EncodedQuery, values: np.ndarray, accepted: np.ndarray | None
) -> np.ndarray:
    """Return the kinds of the pairs of a table; those that a person accepted are aliases."""
    kinds = kinds_of(take_wide(query.values, pa.array(values)), table.keys)
    table = replace(table, found_kinds=kinds)
    if query.normaliser is not None and query.normaliser.aliases is not None:
        table = table.with_aliases(query.normaliser)
    kinds = table.with_equal_cells().kinds
    return kinds if accepted is None else np.where(accepted, np.int8(KINDS.index(ALIAS)), kinds)
