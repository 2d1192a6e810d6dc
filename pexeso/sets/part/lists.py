"""One set of posting lists for both exact-value searches.

The lists are those of the overlap index, with the interface that containment search needs.

Set numbers are those of the overlap index, 0 to n - 1, which the ensemble has for ids. Texts are
looked up in its dictionary by a compiled loop over the letters as they lie in the file: the
dictionary's own search, steps of Arrow's, takes longer than all the rest of a containment search.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import IndexCorruptError, InputError
from pexeso.sets.containment.ensemble import Ensemble
from pexeso.sets.containment.hashing import hash_tokens
from pexeso.sets.containment.lists import CsrLists, CsrQuery
from pexeso.sets.containment.options import EnsembleOptions
from pexeso.sets.overlap.index.sets import OverlapIndex
from pexeso.sets.overlap.loops import find_texts


@dataclass(frozen=True, eq=False)
class OverlapLists:
    """A body of `pexeso.sets.containment.lists.TokenLists` over an overlap index.

    The index is in memory or mapped, and nothing is copied.
    """

    index: OverlapIndex

    @property
    def n_sets(self) -> int:
        """Number of sets."""
        return self.index.n_sets

    @cached_property
    def _lists(self) -> CsrLists:
        index = self.index
        arrays = index.token_offsets, index.list_sets, index.set_offsets, index.set_tokens
        return CsrLists(*(_read_only(np.asarray(array)) for array in arrays))

    def sizes_of(self, sets: np.ndarray) -> np.ndarray:
        """Return the sizes of sets, int64 (c,)."""
        return self._lists.sizes_of(sets)

    def look_up(self, query: pa.Array | pa.ChunkedArray | np.ndarray) -> CsrQuery:
        """Look the tokens of a query up in the dictionary.

        Parameters
        ----------
        query : Arrow texts (q,)
            Tokens, as `pexeso.lake.tokens` makes them.
        """
        if not isinstance(query, pa.Array | pa.ChunkedArray) or query.type not in (
            pa.string(),
            pa.large_string(),
        ):
            kind = (
                query.type
                if isinstance(query, pa.Array | pa.ChunkedArray)
                else type(query).__name__
            )
            raise InputError(
                f"A query over the tokens of an overlap index must be Arrow texts. Got {kind}."
            )
        if query.null_count:
            raise InputError(
                f"Tokens must not be null, but {query.null_count:,} of {len(query):,} are: leave "
                "them out."
            )
        texts = pc.unique(query)
        positions = find_texts(self.index.dictionary.texts, texts)
        return self._lists.query(
            self.index.dictionary.numbers[positions[positions >= 0]].astype(np.int64), len(texts)
        )


def ensemble_over(index: OverlapIndex, options: EnsembleOptions | None = None) -> Ensemble:
    """Build an ensemble of the sets of an overlap index, whose posting lists it uses.

    Each distinct text is hashed once; 16 bytes a pair while it is built, beside what
    `Ensemble.build` says.
    """
    hashes = np.empty(index.n_tokens, np.uint64)
    numbers = np.asarray(index.dictionary.numbers)
    if not np.array_equal(np.sort(numbers), np.arange(index.n_tokens)):
        raise IndexCorruptError(
            "The dictionary of an overlap index must give each token one number: build it again."
        )
    hashes[numbers] = hash_tokens(index.dictionary.texts)
    return Ensemble.build(
        hashes[index.set_tokens], index.set_offsets.astype(np.int64), OverlapLists(index), options
    )


def _read_only(array: np.ndarray) -> np.ndarray:
    """Return a read-only view, so that loops are compiled once.

    Mapped arrays are read-only too.
    """
    view = array.view()
    view.flags.writeable = False
    return view
