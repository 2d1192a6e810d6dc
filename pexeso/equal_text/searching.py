"""Searches over the shards of an index: each is asked in turn, and what they find is put in one order."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pexeso.equal_text.query import TokenQuery
from pexeso.equal_text.results import EqualTextMatch, EqualTextResult
from pexeso.equal_text.shards import Shard
from pexeso.errors import IndexCorruptError, InputError
from pexeso.options import DEFAULT_MIN_CONTAINMENT
from pexeso.overlap.merge import merge_list
from pexeso.overlap.topk import Overlaps, require_k

if TYPE_CHECKING:
    from pexeso.containment.found import Found

OVERLAP_FIELDS = ("table", "column", "overlap")
CONTAINMENT_FIELDS = ("table", "column", "containment", "estimated")


@dataclass(frozen=True)
class _Found:
    """A set that was found: the shard and the set's number there, its size, its overlap (None: not counted) and containment."""

    shard: Shard
    number: int
    table: str
    label: str
    size: int
    overlap: int | None
    containment: float

    @property
    def key(self) -> tuple[float, str, str]:
        """What results are ordered by."""
        return -self.containment, self.table, self.label


def search_overlap(
    shards: Sequence[Shard], query: TokenQuery, k: int, *, exclude_table: str | None = None
) -> EqualTextResult:
    """Find the k columns that share most distinct values with a query.

    Parameters
    ----------
    shards
    query
    k : int
        From 1 on; more than there are gives all columns that share a value.
    exclude_table
        A table that must not be found.

    Returns
    -------
    EqualTextResult
        Exact. Equal overlaps by table, then column.

    Raises
    ------
    InputError
        k is no integer from 1 on.
    IndexCorruptError
        A shard leads out of its files.

    Notes
    -----
    The k-th overlap found so far is what the shards that follow must reach, so that they stop early.
    """
    require_k(k)
    started, found, reads, ways = time.perf_counter(), [], [], []
    for shard in shards if len(query) else ():
        answer, way = merge_list(shard.overlap, query.tokens, k, exclude=shard.hidden(exclude_table)), "merge_list"
        found = sorted([*found, *_named(shard, answer, len(query))], key=lambda each: each.key)[:k]
        reads.append(answer.reads)
        ways.append(way)
    names = ("lists", "sets", "entries", "tokens", "n_bytes")
    stats = {
        "shards": len(shards),
        "ways": _counted(ways),
        **{name: sum(getattr(each, name) for each in reads) for name in names},
        "seconds": round(time.perf_counter() - started, 6),
    }
    return _result(query, {"k": k, "exclude_table": exclude_table}, found, OVERLAP_FIELDS, stats)


def search_containment(
    shards: Sequence[Shard],
    query: TokenQuery,
    min_containment: float,
    *,
    verify: bool = True,
    k: int | None = None,
    exclude_table: str | None = None,
) -> EqualTextResult:
    """Find the columns that have at least a share of a query's distinct values.

    Parameters
    ----------
    shards
    query
    min_containment : float
        In (0, 1], inclusive.
    verify : bool
        Count the values of every candidate, so that nothing is found wrongly. Without it containment is estimated from signatures, where these are asked.
    k : int, optional
        Only the k best.
    exclude_table
        A table that must not be found.

    Returns
    -------
    EqualTextResult
        A column that has enough is found with a probability of 0.98 or more, and for sure where posting lists were read in place of signatures.

    Raises
    ------
    InputError
        A number is out of its range.
    IndexCorruptError
        A shard leads out of its files.
    """
    if isinstance(min_containment, bool) or not isinstance(min_containment, Real) or not 0 < min_containment <= 1:
        raise InputError(
            f"min_containment must be a number above 0 and at most 1. Got {min_containment!r} instead. It is the share of your distinct values "
            f"that a column must have: {DEFAULT_MIN_CONTAINMENT} is a usual value."
        )
    if k is not None:
        require_k(k)
    started, found, n_candidates, routes = time.perf_counter(), [], 0, []
    for shard in shards if len(query) else ():
        answer = shard.ensemble.search(
            query.tokens, float(min_containment), verify=verify, exclude=shard.hidden(exclude_table)
        )
        n_candidates += answer.n_candidates
        routes.append(answer.route)
        found += _contained(shard, answer)
    found = sorted(found, key=lambda each: each.key)[:k]
    stats = {
        "shards": len(shards),
        "ways": _counted(routes),
        "candidates": n_candidates,
        "seconds": round(time.perf_counter() - started, 6),
    }
    options = {"min_containment": min_containment, "verify": verify, "k": k, "exclude_table": exclude_table}
    return _result(query, options, found, CONTAINMENT_FIELDS, stats)


def _counted(ways: list[str]) -> dict[str, int]:
    return {way: ways.count(way) for way in sorted(set(ways))}


def _named(shard: Shard, answer: Overlaps, n_asked: int) -> list[_Found]:
    """Name the sets of an answer of `pexeso.overlap`; ids are numbers in a shard."""
    numbers = answer.ids
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < shard.overlap.n_sets:
        raise IndexCorruptError(
            f"The ids in '{shard.folder}' are not those of its sets: restore the index from a copy, or build it again."
        )
    sizes = np.diff(shard.overlap.set_offsets)[numbers] if len(numbers) else numbers
    return [
        _Found(shard, number, table, label, size, overlap, overlap / n_asked)
        for number, (table, label), size, overlap in zip(
            numbers.tolist(), shard.names.of(numbers), sizes.tolist(), answer.overlaps.tolist(), strict=True
        )
    ]


def _contained(shard: Shard, answer: Found) -> list[_Found]:
    """Name the sets of an answer of `pexeso.containment`."""
    return [
        _Found(shard, number, table, label, size, overlap if overlap >= 0 else None, containment)
        for number, (table, label), size, overlap, containment in zip(
            answer.sets.tolist(),
            shard.names.of(answer.sets),
            answer.sizes.tolist(),
            answer.overlaps.tolist(),
            answer.containments.tolist(),
            strict=True,
        )
    ]


def overlap_with(
    shards: Sequence[Shard], query: TokenQuery, columns: Sequence[tuple[str, str]]
) -> list[EqualTextMatch | None]:
    """Count what named columns share with a query.

    Parameters
    ----------
    shards
    query
    columns
        (table, label) of each.

    Returns
    -------
    list of EqualTextMatch or None
        None for a column that shares nothing, or that no shard holds.
    """
    found: list[EqualTextMatch | None] = [None] * len(columns)
    for shard in shards if columns and len(query) else ():
        numbers = shard.numbers_of(columns)
        asked = shard.overlap.find(query.tokens)
        for place in np.flatnonzero(numbers >= 0).tolist():
            number, (table, label) = int(numbers[place]), columns[place]
            tokens = shard.overlap.suffix(number, 0)
            overlap = int(np.isin(asked, tokens).sum())
            if overlap:
                one = _Found(shard, number, table, label, len(tokens), overlap, overlap / len(query))
                found[place] = _match(query, one)
    return found


def _match(query: TokenQuery, found: _Found) -> EqualTextMatch:
    shared = partial(shared_values, found.shard, found.number, query.tokens)
    return EqualTextMatch(found.table, found.label, found.overlap, found.containment, found.size, shared)


def _result(
    query: TokenQuery, options: dict[str, Any], found: list[_Found], fields: tuple[str, ...], stats: dict[str, Any]
) -> EqualTextResult:
    return EqualTextResult(query.describe(), options, tuple(_match(query, each) for each in found), fields, stats)


def shared_values(shard: Shard, number: int, tokens: pa.LargeStringArray) -> list[str]:
    """Give the tokens of a query that a set of a shard has, sorted."""
    index = shard.overlap
    numbers = index.find(tokens)
    there = np.isin(numbers, index.suffix(number, 0))
    return sorted(tokens.filter(pa.array(there)).to_pylist())
