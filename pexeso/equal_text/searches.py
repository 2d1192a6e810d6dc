"""Searches by equal text that an index answers, and how it gets the parts for them: methods of `pexeso.index.Index`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pexeso.equal_text.containment_search import search_containment
from pexeso.equal_text.overlap_search import search_overlap, search_overlap_batch
from pexeso.equal_text.query import TokenQuery, token_query
from pexeso.equal_text.results import EqualTextResult
from pexeso.equal_text.shards import Shard, open_shards, parts_of, require_part
from pexeso.options import DEFAULT_MIN_CONTAINMENT, DEFAULT_OVERLAP_COLUMNS
from pexeso.places import Place, locate, name_within

if TYPE_CHECKING:
    from pexeso.equal_text.adding import Added
    from pexeso.store.reader import Store


class EqualTextSearches:
    """What an index with parts for equal text can be asked; these are `pexeso.options.PARTS`."""

    if TYPE_CHECKING:
        store: Store
        path: Any
        refresh: Callable[[], bool]

    @property
    def lake(self) -> Path | Place:
        """The folder, or the place on another storage, that the index was built from."""
        return locate(self.store.manifest.facts["lake"])

    def table_of(self, file: str | os.PathLike[str]) -> str | None:
        """Give the name under which a file is a table of this lake, or None where it does not lie in the lake."""
        return name_within(self.lake, file)

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts for equal text that this index has."""
        return tuple(parts_of(self.store))

    def overlap(self, values: Any, *, k: int = DEFAULT_OVERLAP_COLUMNS, exclude_self: bool = False) -> EqualTextResult:
        """Find the k columns that share most distinct values with a query column, as equal texts.

        Values are compared as `pexeso.lake.tokens` says: 1, "1" and 1.0 are equal, "01" is another; case counts.

        Parameters
        ----------
        values
            As in `search`; columns of numbers too.
        k : int
            From 1 on.
        exclude_self : bool
            Do not find the table that the query column was read from, where that lies in the lake.

        Returns
        -------
        EqualTextResult
            Exact, best first; equal overlaps by table, then column.

        Raises
        ------
        InputError
            When an option is out of its range, or the index has no part for this: the message says how to add it.

        Examples
        --------
        >>> import pexeso
        >>> index = pexeso.open_index("lake.pexeso")  # doctest: +SKIP
        >>> index.overlap([101, 102, 205], k=3).to_pandas()  # doctest: +SKIP
        """
        require_part(self.store, "overlap")
        query = token_query(values)
        return search_overlap(self.shards, query, k, exclude_table=self._own_table(query, exclude_self))

    def overlap_batch(
        self,
        queries: Iterable[Any],
        *,
        k: int = DEFAULT_OVERLAP_COLUMNS,
        exclude_self: bool = False,
        device: str | None = None,
    ) -> list[EqualTextResult]:
        """Search with several query columns as `overlap` does, counting the posting lists of all of them together.

        Parameters
        ----------
        queries : iterable
            Each as `values` in `overlap`.
        k, exclude_self
            As in `overlap`.
        device : str, optional
            Of torch, such as ``"cuda"``; by default that of the index. The posting lists are held there: 4 bytes a pair of column and value.

        Returns
        -------
        list of EqualTextResult
            In the order of the queries; the same answers as `overlap` gives.

        Raises
        ------
        InputError
            As for `overlap`.
        DeviceError
            The device is not there, or its memory does not suffice.
        """
        require_part(self.store, "overlap")
        asked = [token_query(values) for values in queries]
        return search_overlap_batch(
            self.shards,
            asked,
            k,
            device=str(getattr(self, "device", "cpu") if device is None else device),
            exclude_tables=[self._own_table(query, exclude_self) for query in asked],
        )

    def contain(
        self,
        values: Any,
        *,
        min_containment: float = DEFAULT_MIN_CONTAINMENT,
        verify: bool = True,
        k: int | None = None,
        exclude_self: bool = False,
    ) -> EqualTextResult:
        """Find the columns that have at least a share of a query column's distinct values, as equal texts.

        Parameters
        ----------
        values, exclude_self
            As in `overlap`.
        min_containment : float
            In (0, 1], inclusive.
        verify : bool
            Count the values of each candidate. Without it what is found is a guess from signatures, and its containment an estimate.
        k : int, optional
            Only the k best.

        Returns
        -------
        EqualTextResult
            Best first. With `verify` nothing is found wrongly, and a column that has enough is missed with a probability of at most 0.02.

        Raises
        ------
        InputError
            As for `overlap`.
        """
        require_part(self.store, "containment")
        query = token_query(values)
        return search_containment(
            self.shards,
            query,
            min_containment,
            verify=verify,
            k=k,
            exclude_table=self._own_table(query, exclude_self),
        )

    def add_parts(self, parts: Iterable[str] = ("overlap",), **options: Any) -> Added:
        """Add parts for equal text to this index; see `pexeso.equal_text.adding.add_parts`."""
        from pexeso.equal_text.adding import add_parts

        added = add_parts(self.path, parts, **options)
        self.refresh()
        return added

    @cached_property
    def shards(self) -> list[Shard]:
        """The open token sets of this index."""
        return open_shards(self.store)

    def _own_table(self, query: TokenQuery, exclude_self: bool) -> str | None:
        file = query.column.file
        return self.table_of(file) if exclude_self and file is not None else None
