"""Aliases of the user's, such as "NYC" for "New York City", and values read by way of them.

An alias stands for whole values: a cell that is an alias once both are normalised is read as if
what the alias stands for stood in its place. So an index with aliases answers as one of a lake
whose cells were replaced by hand.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pexeso.engine.lists import ranges
from pexeso.errors import IndexCorruptError, InputError
from pexeso.lake.catalog import ALIASES, damage_made_plain, write_rows
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.runtime.buffers import string_buffers
from pexeso.runtime.formatting import shown
from pexeso.runtime.ranges import mixed

# One row an alias, ascending by `hash`, that of the alias; `alias` is normalised, `canonical` as
# the user wrote it.
SCHEMA = pa.schema([("hash", pa.uint64()), ("alias", pa.string()), ("canonical", pa.string())])

_HASHED_BYTES = 64
_HASH_CHUNK_SIZE = 1 << 14
_DIGEST = re.compile(r"[0-9a-f]{32}", re.ASCII)

_CHUNK_SIZE = 1 << 16
_SHOWN = 8


@dataclass(frozen=True)
class Aliases:
    """A table of aliases, which is read from its file when it is first needed.

    A process that it is sent to opens the file, once. `digest` is the BLAKE2b-128 of the rows, in
    hexadecimal; without a `path` the rows are in memory alone.
    """

    count: int
    digest: str
    path: Path | None = field(default=None, compare=False)

    @classmethod
    def of(cls, aliases: pa.StringArray, canonical: pa.StringArray) -> Aliases:
        hashes = _hashes(aliases)
        order = pa.array(np.lexsort((np.arange(len(hashes)), hashes)))
        columns = [pa.array(hashes), aliases, canonical]
        rows = pa.table([column.take(order) for column in columns], schema=SCHEMA)
        alias_table = cls(len(aliases), _digest(rows))
        alias_table.__dict__["_rows"] = rows
        return alias_table

    def __reduce__(self) -> tuple[Any, ...]:
        if self.path is None:
            return Aliases.of, (self._texts("alias"), self._texts("canonical"))
        return _opened, (self.count, self.digest, self.path)

    def save(self, folder: Path) -> Aliases:
        return Aliases(self.count, self.digest, write_rows(folder, ALIASES, self._rows))

    def canonical(self, values: pa.StringArray) -> pa.StringArray:
        """Return what each of n normalised values stands for, null where it is no alias.

        Takes time by the number of values, not by that of the aliases.
        """
        known, hashes = self._rows["hash"].to_numpy(), _hashes(values)
        first = np.searchsorted(known, hashes)
        near = known[np.minimum(first, len(known) - 1)] == hashes
        end = np.searchsorted(known, hashes[near], "right")
        # Two texts may have one hash, so that these rows are candidates.
        rows = pa.array(np.unique(ranges(first[near], end - first[near])))
        positions = pc.index_in(values, value_set=self._texts("alias").take(rows))
        return self._texts("canonical").take(rows.take(positions))

    def _texts(self, name: str) -> pa.StringArray:
        return self._rows[name].chunk(0)

    @cached_property
    def _rows(self) -> pa.Table:
        if self.path is None:
            raise IndexCorruptError(
                "The index lists no file of the aliases that it was built with: restore it from a "
                "copy, or build it again."
            )
        with damage_made_plain(self.path):
            rows = pq.read_table(self.path, schema=SCHEMA).combine_chunks()
            rows.validate(full=True)
            if (len(rows), _digest(rows)) != (self.count, self.digest):
                raise ValueError("its aliases are not those that the index was built with")
        return rows


@lru_cache(maxsize=4)
def _opened(count: int, digest: str, path: Path) -> Aliases:
    return Aliases(count, digest, path)


def _digest(rows: pa.Table) -> str:
    digest = hashlib.blake2b(rows["hash"].to_numpy().tobytes(), digest_size=16)
    for name in ("alias", "canonical"):
        starts, data = _data(rows[name].chunk(0))
        digest.update(starts.tobytes())
        digest.update(data)
    return digest.hexdigest()


def _data(texts: pa.StringArray) -> tuple[np.ndarray, np.ndarray]:
    """Return where each text begins and where the last one ends, int64, and the bytes of all."""
    data, starts = string_buffers(texts)
    starts = starts.astype(np.int64)
    return starts - starts[0], data[starts[0] : starts[-1]]


def _hashes(texts: pa.StringArray) -> np.ndarray:
    """Hash the length and the first bytes of n texts: uint64 (n,), the same on every machine."""
    all_hashes = np.zeros(len(texts), np.uint64)
    for start in range(0, len(texts), _HASH_CHUNK_SIZE):
        starts, data = _data(texts.slice(start, _HASH_CHUNK_SIZE))
        lengths = np.diff(starts)
        sizes = np.minimum(lengths, _HASHED_BYTES)
        letters = data[ranges(starts[:-1], sizes)].astype(np.uint64)
        positions = ranges(np.ones(len(sizes), np.int64), sizes).astype(np.uint64)
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed(positions << 8 | letters))])
        ends = np.cumsum(sizes)
        hashes = sums[ends] - sums[ends - sizes] + lengths.astype(np.uint64)
        all_hashes[start : start + len(hashes)] = mixed(hashes)
    return all_hashes


@dataclass(frozen=True, init=False)
class AliasedNormaliser(Normaliser):
    """A normaliser that reads aliases as what they stand for."""

    aliases: Aliases

    def __init__(self, normaliser: Normaliser, aliases: Aliases) -> None:
        super().__init__(normaliser.rules, normaliser.extra)
        object.__setattr__(self, "aliases", aliases)

    __hash__ = Normaliser.__hash__

    def switched(self, on: Iterable[str] = (), off: Iterable[str] = ()) -> Normaliser:
        return AliasedNormaliser(super().switched(on, off), self.aliases)

    def kept_in(self, folder: Path) -> Normaliser:
        if self.aliases.path is not None:
            return self
        return AliasedNormaliser(self, self.aliases.save(folder))

    def resolved_distinct(self, values: pa.StringArray, columns: np.ndarray) -> pa.StringArray:
        settled = self.settled(values, columns)
        canonical = self.aliases.canonical(settled)
        if "territories" in self.rules:  # an alias may be given as a code, or by the full name
            named = self.with_territories(settled, columns)
            canonical = pc.coalesce(canonical, self.aliases.canonical(named))
        return values if canonical.null_count == len(canonical) else pc.coalesce(canonical, values)

    def normalise_distinct(self, values: pa.StringArray, columns: np.ndarray) -> pa.StringArray:
        texts = self.resolved_distinct(values, columns)
        if texts is values:
            return super().normalise_distinct(values, columns)
        # Some may now be twice in their column, which rules that count a column's values mind.
        encoded = texts.dictionary_encode()
        n_texts = len(encoded.dictionary)
        numbers = pc.fill_null(encoded.indices, n_texts).to_numpy()
        keys, positions = np.unique(columns * (n_texts + 1) + numbers, return_inverse=True)
        distinct = pa.concat_arrays([encoded.dictionary, pa.nulls(1, pa.string())])
        normalised = super().normalise_distinct(
            distinct.take(pa.array(keys % (n_texts + 1))), keys // (n_texts + 1)
        )
        return normalised.take(pa.array(positions))

    def equal_by_alias(self, texts: pa.StringArray, others: pa.StringArray) -> np.ndarray:
        """Return which pairs of texts of one value are so by an alias: bool (n,).

        Each text is taken by itself, as if its column had no other.
        """
        both = [pairs.cast(pa.large_string()) for pairs in (texts, others)]
        encoded = pa.concat_arrays(both).dictionary_encode()
        distinct = encoded.dictionary.cast(pa.string())
        columns = np.arange(len(distinct))
        forms = self.settled(distinct, columns)
        resolved = self.resolved_distinct(distinct, columns)
        is_alias = pc.not_equal(resolved, distinct).to_numpy(zero_copy_only=False)
        one, other = encoded.indices.to_numpy().reshape(2, -1)
        forms = forms.cast(pa.large_string())
        differ = pc.not_equal(forms.take(pa.array(one)), forms.take(pa.array(other)))
        return differ.to_numpy(zero_copy_only=False) & (is_alias[one] | is_alias[other])

    def _options(self) -> dict[str, object]:
        description = {"count": self.aliases.count, "digest": self.aliases.digest}
        return {**super()._options(), ALIASES: description}


def normaliser_from_json(text: str, files: Callable[[str], Sequence[Sequence[Path]]]) -> Normaliser:
    try:
        options = json.loads(text)
    except (ValueError, RecursionError):
        options = None
    if not isinstance(options, dict) or ALIASES not in options:
        return Normaliser.from_json(text)
    description = options.pop(ALIASES)
    sound = isinstance(description, dict) and set(description) == {"count", "digest"}
    if not (
        sound
        and type(description["count"]) is int
        and description["count"] > 0
        and isinstance(description["digest"], str)
        and _DIGEST.fullmatch(description["digest"])
    ):
        raise InputError(
            "The aliases of a normaliser must be described by a count and a digest. Got "
            f"{str(description)[:80]}."
        )
    paths = [path for folder in files(ALIASES) for path in folder]
    aliases = Aliases(description["count"], description["digest"], paths[-1] if paths else None)
    return AliasedNormaliser(Normaliser.from_json(json.dumps(options)), aliases)


def read_aliases(file: str | os.PathLike[str], normaliser: Normaliser) -> Aliases:
    """Read a table of aliases of any format that a lake may have.

    The table has a header and two columns: each row an alias, then what it stands for. Aliases of
    aliases are followed to the end. Rows that say the same, or of whose sides normalisation makes
    the same value, do no harm. Refused are other columns, cells that are empty or of which nothing
    is left once normalised, an alias that stands for two values, and aliases that go in a circle.
    """
    from pexeso.lake.containers.reader import read_table  # which an index does not need

    name = os.fspath(file)
    table = read_table(name)
    if len(table.names) != 2:
        raise InputError(
            f"A table of aliases has two columns: the alias, and what it stands for. '{name}' has "
            f"{len(table.names):,}: {shown(table.names)}."
        )
    forms = [_forms(column, normaliser) for column in table.columns]
    _require_values(name, forms)
    encoded = pa.concat_arrays(forms).dictionary_encode()
    ours, targets = encoded.indices.to_numpy().astype(np.int64).reshape(2, -1)
    rows = _distinct_rows(ours, targets)
    _require_one_meaning(name, table.columns, ours, rows)
    if not len(rows):
        raise InputError(
            f"'{name}' has no alias: each of its {table.n_rows:,} rows must have an alias and "
            "another value that it stands for."
        )
    follow = np.arange(len(encoded.dictionary))
    follow[ours[rows]] = targets[rows]
    ends = follow
    for _ in range(len(follow).bit_length()):
        ends = ends[ends]
    _require_ends(name, encoded.dictionary, follow, ends)
    # What is at the end is written as in its first row.
    written = np.zeros(len(follow), np.int64)
    written[targets[rows][::-1]] = rows[::-1]
    aliases = ours[rows]
    return Aliases.of(
        encoded.dictionary.take(pa.array(aliases)),
        pc.utf8_trim_whitespace(table.columns[1]).take(pa.array(written[ends[aliases]])),
    )


def _forms(texts: pa.StringArray, normaliser: Normaliser) -> pa.StringArray:
    parts = [texts.slice(start, _CHUNK_SIZE) for start in range(0, len(texts), _CHUNK_SIZE)]
    forms = [normaliser.settled(part, np.arange(len(part))) for part in parts]
    return pa.concat_arrays(forms) if forms else texts


def _require_values(name: str, forms: list[pa.StringArray]) -> None:
    missing = pc.or_(forms[0].is_null(), forms[1].is_null())
    at = pc.index(missing, True).as_py()
    if at >= 0:
        raise InputError(
            f"Row {at + 1:,} of '{name}', the header not counted, has an empty cell, or one of "
            f"which normalisation leaves nothing; {pc.sum(missing).as_py():,} rows have. Remove "
            "them: each row must have an alias and what it stands for."
        )


def _distinct_rows(ours: np.ndarray, targets: np.ndarray) -> np.ndarray:
    _, first = np.unique(ours * (len(ours) * 2 + 1) + targets, return_index=True)
    return np.sort(first[ours[first] != targets[first]])


def _require_one_meaning(
    name: str, columns: list[pa.StringArray], ours: np.ndarray, rows: np.ndarray
) -> None:
    order = rows[np.argsort(ours[rows], kind="stable")]
    twice = np.flatnonzero(np.diff(ours[order]) == 0)
    if len(twice):
        first, second = order[twice[0]], order[twice[0] + 1]
        says = " and ".join(
            f"{shown(columns[1][row].as_py())} (row {row + 1:,})" for row in (first, second)
        )
        raise InputError(
            f"The alias {shown(columns[0][first].as_py())} in '{name}' stands for two values: "
            f"{says}, the header not counted. {len(twice):,} rows contradict an earlier one: keep "
            "one row of each alias."
        )


def _require_ends(name: str, values: pa.StringArray, follow: np.ndarray, ends: np.ndarray) -> None:
    circling = np.flatnonzero(follow[ends] != ends)
    if not len(circling):
        return
    circle = [int(ends[circling].min())]
    while follow[circle[-1]] != circle[0]:
        circle.append(int(follow[circle[-1]]))
    steps = [shown(values[position].as_py()) for position in circle[:_SHOWN]]
    more = [f"... ({len(circle) - _SHOWN:,} more)"] if len(circle) > _SHOWN else []
    raise InputError(
        f"Aliases in '{name}' go in a circle: {' → '.join([*steps, *more, steps[0]])}. Remove one "
        "of these rows, so that the others come to an end."
    )
