"""Aliases of the user's, such as "NYC" for "New York City", and values read by way of them.

An alias stands for whole values: a cell that is an alias once both are normalised is read as if
what the alias stands for stood in its place. So an index with aliases answers as one of a lake
whose cells were replaced by hand.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pexeso.errors import IndexCorruptError, InputError
from pexeso.lake.catalog import ALIASES, damage_made_plain, write_rows
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.runtime.mixing import mixed
from pexeso.runtime.ranges import ranges

SCHEMA = pa.schema([("hash", pa.uint64()), ("alias", pa.string()), ("canonical", pa.string())])
"""One row an alias, ascending by `hash`, that of the alias; `alias` is normalised, `canonical` as
the user wrote it."""

_HASHED_BYTES = 64
_TEXTS_AT_ONCE = 1 << 14
_DIGEST = re.compile(r"[0-9a-f]{32}", re.ASCII)


@dataclass(frozen=True)
class Aliases:
    """A table of aliases, which is read from its file when it is first needed.

    A process that it is sent to opens the file, once.

    Attributes
    ----------
    count : int
    digest : str
        BLAKE2b-128 of the rows, in hexadecimal.
    path : Path or None
        None: the rows are in memory alone.

    Examples
    --------
    >>> aliases = Aliases.of(pa.array(["nyc", "big apple"]), pa.array(["New York", "New York"]))
    >>> aliases.canonical(pa.array(["rome", "nyc", None])).to_pylist()
    [None, 'New York', None]
    """

    count: int
    digest: str
    path: Path | None = field(default=None, compare=False)

    @classmethod
    def of(cls, aliases: pa.StringArray, canonical: pa.StringArray) -> Aliases:
        """Make a table of distinct normalised aliases and what each stands for."""
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
        """Write the rows to a folder of a catalog, and return the table that is read from there."""
        return Aliases(self.count, self.digest, write_rows(folder, ALIASES, self._rows))

    def canonical(self, values: pa.StringArray) -> pa.StringArray:
        """Return what each of n normalised values stands for, null where it is no alias.

        Takes time by the number of values, not by that of the aliases.
        """
        known, hashes = self._known, _hashes(values)
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
    def _known(self) -> np.ndarray:
        return self._rows["hash"].to_numpy()

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
    _, offsets, data = texts.buffers()
    starts = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    starts = starts.astype(np.int64)
    every = np.frombuffer(data or b"", np.uint8)
    return starts - starts[0], every[starts[0] : starts[-1]]


def _hashes(texts: pa.StringArray) -> np.ndarray:
    """Hash the length and the first bytes of n texts: uint64 (n,), the same on every machine."""
    all_hashes = np.zeros(len(texts), np.uint64)
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        starts, data = _data(texts.slice(start, _TEXTS_AT_ONCE))
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
    """A normaliser that reads aliases as what they stand for.

    Examples
    --------
    >>> aliases = Aliases.of(pa.array(["nyc"]), pa.array(["New York"]))
    >>> AliasedNormaliser(Normaliser(), aliases).normalise(pa.array(["N.Y.C.", "Rome"])).to_pylist()
    ['new york', 'rome']
    """

    aliases: Aliases

    def __init__(self, normaliser: Normaliser, aliases: Aliases) -> None:
        super().__init__(normaliser.rules, normaliser.extra)
        object.__setattr__(self, "aliases", aliases)

    __hash__ = Normaliser.__hash__

    def kept_in(self, folder: Path) -> Normaliser:
        """See `Normaliser.kept_in`; those that are in a file already stay there."""
        if self.aliases.path is not None:
            return self
        return AliasedNormaliser(self, self.aliases.save(folder))

    def resolved_distinct(self, values: pa.StringArray, columns: np.ndarray) -> pa.StringArray:
        """See `Normaliser.resolved_distinct`."""
        settled = self.settled(values, columns)
        canonical = self.aliases.canonical(settled)
        if "territories" in self.rules:  # an alias may be given as a code, or by the full name
            named = self.with_territories(settled, columns)
            canonical = pc.coalesce(canonical, self.aliases.canonical(named))
        return values if canonical.null_count == len(canonical) else pc.coalesce(canonical, values)

    def normalise_distinct(self, values: pa.StringArray, columns: np.ndarray) -> pa.StringArray:
        """See `Normaliser.normalise_distinct`."""
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
    """Return the normaliser that `Normaliser.to_json` described, with its aliases."""
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
