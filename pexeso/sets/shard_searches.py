"""Exact-value searches of shards by a query, in the reading of it that fits a column best."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.engine.lists import ranges
from pexeso.errors import IndexCorruptError
from pexeso.lake.hashed_values import hashed_texts
from pexeso.lake.judgements import ANY, Column, Judgements
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.readings import LOSSY, forms_of, read_columns
from pexeso.lake.tokens import DEFAULT_READINGS, distinct_tokens, tokens_of
from pexeso.options import require_min_containment
from pexeso.results.column_matches import MAX_NEAREST, WouldMatch
from pexeso.results.query import QueryColumn, query_from_values
from pexeso.sets.overlap.index import Overlaps, Reads, prepare_query
from pexeso.sets.part.open import Shard
from pexeso.sets.results import TokenMatch, TokenSearchResult
from pexeso.store.arrays import take_texts

OVERLAP_FIELDS = ("table", "column", "overlap")
CONTAINMENT_FIELDS = ("table", "column", "containment", "estimated")


@dataclass(frozen=True)
class TokenJudgements:
    """What people said about a query column: columns rejected, and tokens of judged values.

    Of each pair of values the token of the query, that of the lake, and whether they match; for a
    column of the lake, or for all.
    """

    rejected: frozenset[Column]
    pairs: Mapping[Column, tuple[tuple[str, str, bool], ...]]
    for_all: tuple[tuple[str, str, bool], ...]

    def alone(self, shard: Shard) -> np.ndarray:
        """Return the sets of a shard that are counted one by one: int64."""
        named = shard.numbers_of([column for column in self.pairs if column not in self.rejected])
        index, tokens = shard.overlap, sorted({theirs for _, theirs, _ in self.for_all})
        known = index.find(pa.array(tokens, pa.large_string()))
        begins, ends = index.list_runs(np.unique(known[known >= 0]))
        own = np.asarray(index.list_sets)[ranges(begins, ends - begins)].astype(np.int64)
        removed = [shard.numbers_of([*self.rejected]), shard.deleted]
        return np.setdiff1d(np.concatenate([named[named >= 0], own]), np.concatenate(removed))

    def judges(self, column: Column) -> bool:
        return bool(self.for_all or column in self.pairs)

    def hidden(self, shard: Shard) -> np.ndarray:
        """Return the sets of a shard that a search of all columns leaves out: int64."""
        rejected = shard.numbers_of([*self.rejected])
        return np.union1d(rejected[rejected >= 0], self.alone(shard))

    def counted(
        self,
        column: Column,
        query: pa.LargeStringArray,
        shared: np.ndarray,
        has: Callable[[pa.Array], np.ndarray],
    ) -> tuple[int, pa.LargeStringArray]:
        """Count the tokens of a query that match a column; return them as the column has them.

        `shared`, bool, says which tokens the column has; `has` says it of others.
        """
        verdicts = {
            (ours, theirs): is_match
            for ours, theirs, is_match in (*self.for_all, *self.pairs.get(column, ()))
        }
        ours, theirs = (pa.array(list(side), query.type) for side in zip(*verdicts, strict=True))
        at = pc.fill_null(pc.index_in(ours, value_set=query), -1).to_numpy()
        held, shared, aliases = has(theirs).tolist(), shared.copy(), {}
        for row, (pair, is_match) in enumerate(verdicts.items()):
            if at[row] >= 0 and not is_match and pair[0] == pair[1]:
                shared[at[row]] = False
            elif at[row] >= 0 and is_match and held[row]:
                aliases[int(at[row])] = pair[1]
        added = [token for position, token in aliases.items() if not shared[position]]
        tokens = pa.concat_arrays([query.filter(pa.array(shared)), pa.array(added, query.type)])
        return len(tokens), tokens


@dataclass(frozen=True)
class TokenQuery:
    """The distinct tokens of a query column.

    `resolved` are its values, those that are aliases replaced; None for an index without. `others`
    are the same column in other readings, of which the one counts that a column of the lake fits
    best: a date of either order, or cells as they stand. `texts` are the tokens, of which an index
    of hashed values has the hashes in their place.
    """

    column: QueryColumn
    tokens: pa.LargeStringArray
    resolved: pa.StringArray | None = None
    readings: tuple[str, ...] = DEFAULT_READINGS
    others: tuple[TokenQuery, ...] = ()
    texts: pa.LargeStringArray | None = None
    judged: TokenJudgements | None = None
    day_first: bool | None = None  # in dates that do not say it, where they are not as they stand

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def aliases(self) -> dict[str, list[str]]:
        """By the token of what they mean, the texts of the column that are aliases, sorted."""
        aliases: dict[str, list[str]] = {}
        if self.resolved is not None:
            rows = pc.indices_nonzero(pc.not_equal(self.column.values, self.resolved))
            texts = self.column.values.take(rows).to_pylist()
            tokens = tokens_of(self.resolved.take(rows), None, self.readings, as_column=False)
            tokens = tokens.to_pylist()
            for text, token in sorted(set(zip(texts, tokens, strict=True))):
                aliases.setdefault(token, []).append(text)
        return aliases

    def result(
        self,
        options: dict[str, Any],
        matches: Sequence[TokenMatch],
        fields: tuple[str, ...],
        stats: dict[str, Any],
    ) -> TokenSearchResult:
        described = {**self.column.describe(), "empty": self.column.n_empty, "values": len(self)}
        return TokenSearchResult(described, options, tuple(matches), fields, stats)


def token_query(
    values: Any, normaliser: Normaliser | None = None, key: bytes | None = None
) -> TokenQuery:
    """Make the query of a column of values, given as in `pexeso.index.Index.search`.

    The aliases of the normaliser, if it has some, are replaced by what they mean; with a key, of an
    index of hashed values, tokens by their hashes.
    """
    column = query_from_values(values)
    readings = DEFAULT_READINGS if normaliser is None else normaliser.readings
    cells, resolved = column.values, None
    if normaliser is not None and normaliser.aliases is not None:
        cells = resolved = normaliser.resolved(column.values)
    ways = forms_of(lambda **options: [distinct_tokens(cells, readings, **options)])
    query, *others = [
        TokenQuery(column, tokens, resolved, readings, day_first=first) for first, [tokens] in ways
    ]
    if key is not None:
        query, *others = [
            replace(one, tokens=hashed_texts(one.tokens, key), texts=one.tokens)
            for one in (query, *others)
        ]
    return replace(query, others=tuple(others))


def with_judgements(
    query: TokenQuery,
    column: Column | None,
    judgements: Judgements,
    normaliser: Normaliser,
    key: bytes | None = None,
) -> TokenQuery:
    """Return a query with what the judgements say about its column."""
    rejected, named = judgements.rejected(column), judgements.value_pairs(column)
    if not rejected and not named:
        return query
    others, ours, theirs, are_matches = zip(*named, strict=True) if named else ((),) * 4
    cells = pa.array([*ours, *theirs], pa.string())
    if normaliser.aliases is not None:
        cells = normaliser.resolved(cells)
    # Each as if its column had no other.
    texts = tokens_of(cells, np.arange(len(cells)), query.readings, as_column=False)
    tokens = (texts if key is None else hashed_texts(texts, key)).to_pylist()
    pairs: dict[Column, tuple[tuple[str, str, bool], ...]] = {}
    for other, *pair in zip(
        others, tokens[: len(ours)], tokens[len(ours) :], are_matches, strict=True
    ):
        if pair[0] is not None and pair[1] is not None:
            pairs[other] = (*pairs.get(other, ()), tuple(pair))
    judged = TokenJudgements(rejected, pairs, pairs.pop(ANY, ()))
    readings = (replace(one, judged=judged) for one in query.others)
    return replace(query, judged=judged, others=tuple(readings))


def _holds(shard: Shard, tokens: np.ndarray, texts: pa.Array) -> np.ndarray:
    return np.isin(shard.overlap.find(texts), tokens)


def _hidden(shard: Shard, query: TokenQuery, table: str | None) -> np.ndarray:
    hidden = shard.hidden(table)
    return hidden if query.judged is None else np.union1d(hidden, query.judged.hidden(shard))


def _judged_matches(
    shards: Sequence[Shard], query: TokenQuery, exclude_table: str | None
) -> list[TokenMatch]:
    """Return the columns that share values with a query by what people said, counted one by one."""
    if query.judged is None:
        return []
    names = [name for shard in shards for name in shard.names.of(query.judged.alone(shard))]
    names = [name for name in names if name[0] != exclude_table]
    return [match for match in overlap_with(shards, query, names) if match is not None]


def shared_values(
    shard: Shard,
    number: int,
    tokens: pa.LargeStringArray,
    texts: pa.LargeStringArray | None = None,
) -> list[str]:
    index = shard.overlap
    is_shared = np.isin(index.find(tokens), index.suffix(number, 0))
    return sorted({*(tokens if texts is None else texts).filter(pa.array(is_shared)).to_pylist()})


def _match(
    query: TokenQuery,
    shard: Shard,
    number: int,
    name: tuple[str, str],
    size: int,
    overlap: int | None,
    containment: float,
) -> TokenMatch:
    shared = partial(shared_values, shard, number, query.tokens, query.texts)
    aliases = partial(getattr, query, "aliases")
    at, order = (shard, number), query.day_first
    return TokenMatch(*name, overlap, containment, size, at, shared, aliases, order)


def _rank(match: TokenMatch) -> tuple[float, str, str]:
    return -match.containment, match.table, match.column


def _counted(query: TokenQuery, shard: Shard, answer: Overlaps) -> list[TokenMatch]:
    """Return the sets of an answer of `pexeso.sets.overlap`; ids are numbers in a shard."""
    numbers, offsets = answer.ids, shard.overlap.set_offsets
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < shard.overlap.n_sets:
        raise IndexCorruptError(
            f"The ids in '{shard.folder}' are not those of its sets: restore the index from a "
            "copy, or build it again."
        )
    sizes = (offsets[numbers + 1] - offsets[numbers]).tolist()
    columns = numbers.tolist(), shard.names.of(numbers), sizes, answer.overlaps.tolist()
    return [
        _match(query, shard, number, name, size, overlap, overlap / len(query))
        for number, name, size, overlap in zip(*columns, strict=True)
    ]


def best_of(results: Sequence[TokenSearchResult], k: int | None = None) -> TokenSearchResult:
    """Merge the answers to readings of one query: of each column the best one."""
    best: dict[tuple[str, str], TokenMatch] = {}
    for match in (match for result in results for match in result):
        name = match.table, match.column
        if name not in best or match.containment > best[name].containment:
            best[name] = match
    return replace(results[0], matches=tuple(sorted(best.values(), key=_rank)[:k]))


def _counted_ways(ways: list[str]) -> dict[str, int]:
    return {way: ways.count(way) for way in sorted(set(ways))}


def _search_overlap(
    shards: Sequence[Shard], query: TokenQuery, k: int, *, exclude_table: str | None = None
) -> TokenSearchResult:
    """Find the columns that share most values with a query in its first reading.

    The k-th overlap found so far is what the shards that follow must reach, so that they stop
    early.
    """
    started, matches, reads, ways = time.perf_counter(), [], [], []
    for shard in shards if len(query) else ():
        lowest = matches[k - 1].overlap if len(matches) >= k else 1
        index, planner = shard.overlap, shard.planner
        token_query = prepare_query(index, query.tokens)
        ways.append(planner.choose(index, token_query, k))
        hidden = _hidden(shard, query, exclude_table)
        answer = planner.search(index, token_query, k, exclude=hidden, at_least=lowest)
        matches = sorted([*matches, *_counted(query, shard, answer)], key=_rank)[:k]
        reads.append(answer.reads)
    stats = _overlap_stats(shards, ways, reads, started)
    options = {"k": k, "exclude_table": exclude_table}
    return query.result(options, matches, OVERLAP_FIELDS, stats)


def search_overlap(
    shards: Sequence[Shard], query: TokenQuery, k: int, *, exclude_table: str | None = None
) -> TokenSearchResult:
    """Find the k columns that share most distinct values with a query; see `pexeso.Index.overlap`.

    Of several readings of the query the one counts that fits a column best.
    """
    readings = (query, *query.others)
    results = [_search_overlap(shards, one, k, exclude_table=exclude_table) for one in readings]
    results.append(
        replace(results[0], matches=tuple(_judged_matches(shards, query, exclude_table)))
    )
    return best_of(results, k)


def search_overlap_batch(
    shards: Sequence[Shard],
    queries: Sequence[TokenQuery],
    k: int,
    *,
    device: str,
    exclude_tables: Sequence[str | None],
) -> list[TokenSearchResult]:
    """Find the k columns that share most distinct values with each of several queries.

    The lists of the queries are counted together on a device.
    """
    started = time.perf_counter()
    matches: list[list[TokenMatch]] = [[] for _ in queries]
    reads: list[list[Reads]] = [[] for _ in queries]
    for shard in shards:
        prepared = [prepare_query(shard.overlap, query.tokens) for query in queries]
        hidden = [
            _hidden(shard, query, table)
            for query, table in zip(queries, exclude_tables, strict=True)
        ]
        answers = shard.batched(device).search(prepared, k, exclude=hidden)
        for row, (query, answer) in enumerate(zip(queries, answers, strict=True)):
            more = _counted(query, shard, answer)
            matches[row] = sorted([*matches[row], *more], key=_rank)[:k]
            reads[row].append(answer.reads)
    ways = ["batched"] * len(shards)
    results = [
        query.result(
            {"k": k, "exclude_table": table},
            best,
            OVERLAP_FIELDS,
            _overlap_stats(shards, ways, read, started),
        )
        for query, table, best, read in zip(queries, exclude_tables, matches, reads, strict=True)
    ]
    best = []
    for query, table, result in zip(queries, exclude_tables, results, strict=True):
        others = [_search_overlap(shards, one, k, exclude_table=table) for one in query.others]
        judged = replace(result, matches=tuple(_judged_matches(shards, query, table)))
        best.append(best_of([result, judged, *others], k))
    return best


def _overlap_stats(
    shards: Sequence[Shard], ways: list[str], reads: Sequence[Reads], started: float
) -> dict[str, Any]:
    names = ("lists", "sets", "entries", "tokens", "n_bytes")
    return {
        "shards": len(shards),
        "ways": _counted_ways(ways),
        **{name: sum(getattr(read, name) for read in reads) for name in names},
        "seconds": round(time.perf_counter() - started, 6),
    }


def overlap_with(
    shards: Sequence[Shard], query: TokenQuery, columns: Sequence[tuple[str, str]]
) -> list[TokenMatch | None]:
    """Count what named columns share with a query; None for nothing, or where no shard has it."""
    matches: list[TokenMatch | None] = [None] * len(columns)
    for shard in shards if columns and len(query) else ():
        numbers = shard.numbers_of(columns)
        for one in (query, *query.others):
            query_tokens = shard.overlap.find(one.tokens)
            for position in np.flatnonzero(numbers >= 0).tolist():
                number, name = int(numbers[position]), columns[position]
                tokens = shard.overlap.suffix(number, 0)
                shared = np.isin(query_tokens, tokens)
                overlap, read = int(shared.sum()), one
                if one.judged is not None and one.judged.judges(name):
                    has = partial(_holds, shard, tokens)
                    overlap, texts = one.judged.counted(name, one.tokens, shared, has)
                    read = replace(one, tokens=texts)
                share, best = overlap / len(one), matches[position]
                if share > (best.containment if best else 0):
                    match = _match(read, shard, number, name, len(tokens), overlap, share)
                    matches[position] = match
    return matches


def search_containment(
    shards: Sequence[Shard],
    query: TokenQuery,
    min_containment: float,
    *,
    verify: bool = True,
    exclude_table: str | None = None,
) -> TokenSearchResult:
    """Find the columns that have at least a share of a query's distinct values.

    See `pexeso.Index.contain`.
    """
    require_min_containment(min_containment)
    started, matches, n_candidates, routes = time.perf_counter(), [], 0, []
    for shard in shards if len(query) else ():
        hidden = _hidden(shard, query, exclude_table)
        for one in (query, *query.others):
            some, n_some, way = _containing(shard, one, float(min_containment), verify, hidden)
            n_candidates += n_some
            routes.append(way)
            matches += some
    judged = _judged_matches(shards, query, exclude_table)
    matches += [match for match in judged if match.containment >= min_containment]
    stats = {
        "shards": len(shards),
        "ways": _counted_ways(routes),
        "candidates": n_candidates,
        "seconds": round(time.perf_counter() - started, 6),
    }
    options = {
        "min_containment": min_containment,
        "verify": verify,
        "k": None,
        "exclude_table": exclude_table,
    }
    return best_of([query.result(options, matches, CONTAINMENT_FIELDS, stats)])


def _containing(
    shard: Shard, query: TokenQuery, min_containment: float, verify: bool, hidden: np.ndarray
) -> tuple[list[TokenMatch], int, str]:
    """Search one shard: matches, the number of candidates, and the way that was used."""
    if shard.bands is None:
        from pexeso.sets.containment.ensemble import search_lists

        answer = search_lists(shard.lists, query.tokens, min_containment, exclude=hidden)
    else:
        answer = shard.bands.search(query.tokens, min_containment, verify=verify, exclude=hidden)
    columns = (
        answer.sets.tolist(),
        shard.names.of(answer.sets),
        answer.sizes.tolist(),
        answer.overlaps.tolist(),
        answer.containments.tolist(),
    )
    matches = [
        _match(query, shard, number, name, size, overlap if overlap >= 0 else None, share)
        for number, name, size, overlap, share in zip(*columns, strict=True)
    ]
    return matches, answer.n_candidates, answer.route


# Share of a query's values below which it is said what would match by other readings, and tokens of
# a lake up to which they are read for it.
FEW_SHARE, MAX_READ = 0.5, 2_000_000
# A count that was divided and multiplied again may be that much too small.
ROUNDING = 1e-6


def would_match(
    shards: Sequence[Shard], query: TokenQuery, share: float, *, exclude_table: str | None = None
) -> tuple[WouldMatch, ...]:
    """Return of each reading that is off the column that has most values by it.

    Only where it has a larger share of them than `share`; the best first.
    """
    if query.texts is not None:  # hashes are in no other reading
        return ()
    if not len(query) or sum(len(shard.overlap.dictionary) for shard in shards) > MAX_READ:
        return ()
    lines = []
    for name in LOSSY:
        if name in query.readings:
            continue
        wanted = pc.unique(read_columns(query.tokens, [name]))
        best: TokenMatch | None = None
        n_best = math.floor(share * len(wanted) + ROUNDING)
        for shard in shards:
            for match in _by_reading(shard, name, wanted, exclude_table):
                tokens = read_columns(_tokens_of(*match._at), [name])
                n = pc.sum(pc.is_in(wanted, value_set=tokens)).as_py()
                if n > n_best:
                    best, n_best = match, n
        if best is not None:
            lines.append(WouldMatch.of(name, best.table, best.column, n_best, len(wanted)))
    return tuple(sorted(lines, key=lambda line: -line.matched))


def _by_reading(
    shard: Shard, name: str, wanted: pa.LargeStringArray, exclude_table: str | None
) -> TokenSearchResult:
    """Find the columns of a shard with most texts that are, by a reading, among some."""
    texts = shard.overlap.dictionary.texts.cast(pa.large_string())
    # What a column decides is left open here: every text is one of its own.
    read = LOSSY[name](texts, np.arange(len(texts)))
    tokens = texts.filter(pc.is_in(read, value_set=wanted))
    query = TokenQuery(query_from_values(tokens), tokens)
    return search_overlap([shard], query, MAX_NEAREST, exclude_table=exclude_table)


def _tokens_of(shard: Shard, number: int) -> pa.LargeStringArray:
    dictionary = shard.overlap.dictionary
    is_own = np.isin(np.asarray(dictionary.numbers), shard.overlap.suffix(number, 0))
    return take_texts(dictionary.texts, np.flatnonzero(is_own)).cast(pa.large_string())
