"""The index: sets as sorted token numbers, and the posting lists of all tokens.

A posting list holds the sets with a token. Both are CSR arrays (thesis, chapter 3).

Positions count from 0 here. The paper's search counts from 1: what it calls the position j of the
latest match is the number of tokens of the set up to that match, `position` + 1, and so it is in
`pexeso.sets.overlap.josie`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import IndexCorruptError, InputError
from pexeso.sets.overlap.index.dictionary import Dictionary
from pexeso.sets.overlap.index.order import MAX_GROUPED, duplicate_groups, global_order
from pexeso.sets.overlap.index.paging import MappedRuns
from pexeso.sets.overlap.index.reading import PostingList

_WAY_OUT = "it was changed or cut short. Restore it from a copy, or build it again."


@dataclass(frozen=True)
class OverlapIndex:
    """An index over n sets and u tokens with e (set, token) pairs; its arrays may be memory-mapped.

    Attributes
    ----------
    dictionary : Dictionary
        Texts of the tokens.
    groups : int32 or int64 (u,)
        The duplicate group of each token.
    token_offsets : int32 or int64 (u + 1,)
        The posting list of token t is entries ``token_offsets[t]`` to ``token_offsets[t + 1]``.
    list_sets : int32 (e,)
        The set of each entry, ascending within a list.
    list_places : int32 (e, 2)
        The token's position in that set, and the set's size.
    set_offsets : int32 or int64 (n + 1,)
        Set s holds ``set_tokens[set_offsets[s]:set_offsets[s + 1]]``.
    set_tokens : int32 or int64 (e,)
        Token numbers, ascending within a set.
    ids : int64 (n,)
        Ids of the sets, ascending.
    pages : MappedRuns
        Of those of the arrays that are mapped.
    """

    dictionary: Dictionary
    groups: np.ndarray
    token_offsets: np.ndarray
    list_sets: np.ndarray
    list_places: np.ndarray
    set_offsets: np.ndarray
    set_tokens: np.ndarray
    ids: np.ndarray
    pages: MappedRuns = field(default_factory=lambda: MappedRuns({}), compare=False)

    @property
    def n_sets(self) -> int:
        """Number of sets."""
        return len(self.ids)

    @property
    def n_tokens(self) -> int:
        """Number of distinct tokens."""
        return len(self.groups)

    def begin_search(self) -> None:
        """Be told that a search begins."""
        self.pages.restart()

    def find(self, tokens: pa.Array) -> np.ndarray:
        """Return the number of each token, -1 where no set holds it; see `Dictionary.find`."""
        numbers = self.dictionary.find(tokens)
        if (numbers >= self.n_tokens).any():
            raise IndexCorruptError(
                f"The dictionary of an overlap index names a token that is not there: {_WAY_OUT}"
            )
        return numbers

    def frequencies(self, tokens: np.ndarray) -> np.ndarray:
        """Return the lengths of posting lists."""
        self.pages.want("token_offsets", tokens, tokens + 2)
        lengths = self.token_offsets[tokens + 1] - self.token_offsets[tokens]
        return lengths.astype(np.int64, copy=False)

    def pairs_from(self, token: int) -> int:
        """Return the number of entries of the posting lists from that of a token on."""
        return len(self.list_sets) - int(self.token_offsets[token])

    def groups_of(self, tokens: np.ndarray) -> np.ndarray:
        """Return the duplicate groups of tokens."""
        self.pages.want("groups", tokens, tokens + 1)
        return self.groups[tokens].astype(np.int64, copy=False)

    def posting_lists(self, tokens: np.ndarray) -> tuple[PostingList, np.ndarray]:
        """Read posting lists, one after the other as one, and give their lengths."""
        begins, ends = self._runs("token_offsets", tokens)
        self.pages.want("list_sets", begins, ends)
        self.pages.want("list_places", begins, ends)
        positions = _gathered(self.list_places, begins, ends)
        return PostingList(
            self._sets(begins, ends), positions[:, 0], positions[:, 1]
        ), ends - begins

    def expect_lists(self, tokens: np.ndarray) -> None:
        """Let the system know that these posting lists are likely read soon."""
        if self.pages.requests_pages:
            begins, ends = self._runs("token_offsets", tokens)
            self.pages.want("list_sets", begins, ends)
            self.pages.want("list_places", begins, ends)

    def list_runs(self, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the begins and ends of posting lists in `list_sets`, and prefetch the lists.

        Errors are those of `posting_lists`.
        """
        begins, ends = self._runs("token_offsets", tokens)
        self.pages.want("list_sets", begins, ends)
        return begins, ends

    def posting_sets(self, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Read the sets of posting lists, a third of their bytes; otherwise as `posting_lists`."""
        begins, ends = self.list_runs(tokens)
        return self._sets(begins, ends), ends - begins

    def suffixes(self, numbers: np.ndarray, begins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Read the tokens of sets, each from a given position on, and the number per set.

        The tokens of all sets are concatenated.
        """
        firsts, ends = self._runs("set_offsets", numbers)
        firsts = np.minimum(firsts + begins, ends)
        self.pages.want("set_tokens", firsts, ends)
        return _gathered(self.set_tokens, firsts, ends), ends - firsts

    def suffix(self, number: int, begin: int) -> np.ndarray:
        """Read the tokens of one set from a position on; as `suffixes`."""
        return self.suffixes(np.array([number]), np.array([begin]))[0]

    def ids_of(self, numbers: np.ndarray) -> np.ndarray:
        """Return the ids of sets."""
        self.pages.want("ids", numbers, numbers + 1)
        return self.ids[numbers]

    def numbers_of(self, ids: np.ndarray) -> np.ndarray:
        """Return the numbers of those of these ids that are sets of the index."""
        ids = np.unique(np.asarray(ids, dtype=np.int64))
        inside = ids[(ids >= 0) & (ids < self.n_sets)]
        if (
            len(inside) == len(ids) and (self.ids[inside] == inside).all()
        ):  # often they run from 0, and nothing need be searched
            return inside
        positions = np.minimum(np.searchsorted(self.ids, ids), max(self.n_sets - 1, 0))
        return positions[self.ids[positions] == ids] if self.n_sets else np.empty(0, np.int64)

    def _runs(self, name: str, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.pages.want(name, rows, rows + 2)
        offsets = getattr(self, name)
        begins, ends = (
            offsets[row_numbers].astype(np.int64, copy=False)
            for row_numbers in (rows, np.asarray(rows) + 1)
        )
        if len(begins) and (
            begins.min() < 0 or ends.max() > len(self.list_sets) or (begins > ends).any()
        ):
            wrong = (begins < 0) | (begins > ends) | (ends > len(self.list_sets))
            row = int(np.asarray(rows)[wrong][0])
            raise IndexCorruptError(
                f"The offsets of an overlap index lead out of it at row {row}: {_WAY_OUT}"
            )
        return begins, ends

    def _sets(self, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
        sets = _gathered(self.list_sets, begins, ends)
        if len(sets) and (sets.min() < 0 or sets.max() >= self.n_sets):
            raise IndexCorruptError(
                f"A posting list of an overlap index names a set that is not there: {_WAY_OUT}"
            )
        return sets


def _gathered(array: np.ndarray, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Copy runs of rows, one after the other."""
    runs = [array[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]
    return np.concatenate(runs) if runs else array[:0]


def build_index(
    set_ids: np.ndarray,
    tokens: pa.Array | pa.ChunkedArray,
    *,
    max_grouped: int = MAX_GROUPED,
    order: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
) -> OverlapIndex:
    """Build the index of (set id, token) pairs.

    Parameters
    ----------
    set_ids : integers (p,)
    tokens : pa.StringArray or pa.LargeStringArray (p,)
        As `pexeso.lake.tokens` makes them; a pair may stand there many times, nulls are left out.
    order
        In place of the global order: from posting lists (offsets, ascending members), tokens in the
        order of their texts, to the tokens in the order wanted. Any order gives the same answers.

    Returns
    -------
    OverlapIndex
        In memory. The same pairs give the same index, in whatever order they come. Sets without a
        token are not in it.

    Notes
    -----
    The three jobs of the thesis (lists in order, groups, sets and their postings) as sorts of
    arrays: O(p log p) time; some 200 bytes a pair at the peak, beside the texts.
    """
    set_ids, tokens = _require_pairs(set_ids, tokens)
    ids, sets = np.unique(set_ids, return_inverse=True)
    encoded = tokens.dictionary_encode()
    by_text = pc.array_sort_indices(encoded.dictionary)
    texts = encoded.dictionary.take(by_text)
    code_of = _inverse(by_text.to_numpy())
    codes = code_of[encoded.indices.to_numpy()] if len(tokens) else np.empty(0, np.int64)
    # Sorted by text, then set: each pair once, and the posting lists side by side.
    codes, sets = np.divmod(np.unique(codes * max(len(ids), 1) + sets), max(len(ids), 1))
    offsets = _offsets(codes, len(texts))
    members = ids[sets]
    arranged = (
        global_order(offsets, members, max_grouped=max_grouped)
        if order is None
        else order(offsets, members)
    )
    number_of = _inverse(arranged)
    return _arranged(
        sets, number_of[codes], ids, Dictionary(texts, _narrow(number_of)), max_grouped
    )


def _arranged(
    sets: np.ndarray, tokens: np.ndarray, ids: np.ndarray, dictionary: Dictionary, max_grouped: int
) -> OverlapIndex:
    by_set = np.lexsort((tokens, sets))
    sets, tokens = sets[by_set], tokens[by_set]
    set_offsets = _offsets(sets, len(ids))
    positions = np.stack(
        [np.arange(len(sets)) - set_offsets[sets], np.diff(set_offsets)[sets]], axis=1
    ).astype(np.int32)
    by_token = np.argsort(tokens, kind="stable")
    token_offsets = _offsets(tokens, len(dictionary))
    list_sets = sets[by_token].astype(np.int32)
    groups = duplicate_groups(token_offsets, list_sets, max_grouped=max_grouped)
    return OverlapIndex(
        dictionary,
        _narrow(groups),
        _narrow(token_offsets),
        list_sets,
        positions[by_token],
        _narrow(set_offsets),
        _narrow(tokens),
        ids,
    )


def _require_pairs(
    set_ids: np.ndarray, tokens: pa.Array | pa.ChunkedArray
) -> tuple[np.ndarray, pa.LargeStringArray]:
    if not isinstance(tokens, pa.Array | pa.ChunkedArray) or tokens.type not in (
        pa.string(),
        pa.large_string(),
    ):
        kind = (
            tokens.type if isinstance(tokens, pa.Array | pa.ChunkedArray) else type(tokens).__name__
        )
        raise InputError(
            f"Tokens of an overlap index must be Arrow texts. Got {kind}: "
            "pexeso.lake.tokens.tokens_of makes them."
        )
    set_ids = np.asarray(set_ids)
    if (
        set_ids.ndim != 1
        or (len(set_ids) and set_ids.dtype.kind not in "iu")
        or len(set_ids) != len(tokens)
    ):
        raise InputError(
            f"Set ids must be {len(tokens):,} integers, one for each token. Got {set_ids.dtype} "
            f"{set_ids.shape}."
        )
    texts = tokens.cast(pa.large_string())
    texts = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    validity = pc.is_valid(texts)
    return set_ids[validity.to_numpy(zero_copy_only=False)].astype(np.int64), texts.filter(validity)


def _offsets(rows: np.ndarray, n_rows: int) -> np.ndarray:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(rows, minlength=n_rows))])


def _inverse(order: np.ndarray) -> np.ndarray:
    inverse = np.empty(len(order), np.int64)
    inverse[order] = np.arange(len(order))
    return inverse


def _narrow(numbers: np.ndarray) -> np.ndarray:
    return numbers.astype(np.int32 if not len(numbers) or numbers.max() < 2**31 else np.int64)
