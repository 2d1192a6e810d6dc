"""Single values added to sets and deleted from them, beside an index that stays as it is (thesis, chapter 3: incremental updates).

The order of tokens never changes, new tokens go to its end: any order is right, the best one is had again by `UpdatedIndex.rebuilt`. A posting list that gains
or loses a set leaves its duplicate group; one in which only a position or a size changes still names the same sets, and stays. The source has no rule for a
known token that is added to a known set; here the position at which it goes in decides, and all its other rules follow from that one.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pexeso.errors import InputError
from pexeso.lake.tokens import tokens_of
from pexeso.overlap.dictionary import UNKNOWN
from pexeso.overlap.index import OverlapIndex, build_index
from pexeso.overlap.reading import PostingList

REBUILD_SHARE = 0.05
"""Share of posting lists read that have left their groups from which on a new build pays."""

_SETS, _POSITIONS, _SIZES = range(3)


class UpdatedIndex:
    """An index and what was changed since; searches take it as they take an index (`pexeso.overlap.reading.OverlapSource`).

    Parameters
    ----------
    base : OverlapIndex
        Is not changed.

    Notes
    -----
    What is changed is copied into memory first: the lists of all tokens of a set, at its first change. An update then takes time in proportion to the
    set, a logarithm of each of its lists, and the list of the token. Not for updates during a search in another thread: positions in lists and sets must agree.

    Examples
    --------
    >>> changed = UpdatedIndex(build_index(np.array([4]), pa.array(["oslo"])))
    >>> changed.add(9, "oslo"), changed.add(9, "lima"), changed.delete(4, "oslo"), changed.delete(4, "oslo")
    (True, True, True, False)
    >>> from pexeso.overlap.josie import josie
    >>> josie(changed, ["oslo", "lima"], 5).pairs()
    [(9, 2)]
    """

    def __init__(self, base: OverlapIndex) -> None:
        self._base = base
        self._lists: dict[int, np.ndarray] = {}
        self._sets: dict[int, np.ndarray] = {}
        self._groups: dict[int, int] = {}
        self._new_tokens: dict[str, int] = {}
        self._new_sets: dict[int, int] = {}
        self._next_group = int(base.groups[-1]) + 1 if base.n_tokens else 0
        self._n_read = self._n_read_alone = 0

    @property
    def n_sets(self) -> int:
        """Numbers of sets are less than this; sets that lost their last token keep their number."""
        return self._base.n_sets + len(self._new_sets)

    @property
    def n_tokens(self) -> int:
        """Numbers of tokens are less than this; tokens that no set holds any more keep their number."""
        return self._base.n_tokens + len(self._new_tokens)

    @property
    def should_be_rebuilt(self) -> bool:
        """Whether more than `REBUILD_SHARE` of the posting lists that were read have left their duplicate groups."""
        return self._n_read_alone > REBUILD_SHARE * self._n_read

    def add(self, set_id: int, token: object) -> bool:
        """Add a value to a set, either of which may be new.

        Parameters
        ----------
        set_id : int
        token
            A cell; its token is what is added.

        Returns
        -------
        bool
            False where the set has it: nothing has changed then.

        Raises
        ------
        InputError
            The id is no integer, or the cell has no token.
        """
        set_id, text = _require_pair(set_id, token)
        place = self._number_of_set(set_id)
        row = self.n_sets if place == UNKNOWN else place
        found = int(self.find(pa.array([text]))[0])
        number = self.n_tokens if found == UNKNOWN else found
        members = self.suffix(row, 0) if place != UNKNOWN else np.empty(0, np.int64)
        position = int(np.searchsorted(members, number))
        if position < len(members) and members[position] == number:
            return False
        if place == UNKNOWN:
            self._new_sets[set_id] = row
        if found == UNKNOWN:
            self._new_tokens[text] = number
            self._lists[number] = np.empty((3, 0), np.int64)
        self._shift(row, members, position, 1)
        self._sets[row] = np.insert(members, position, number)
        entries = self._own_list(number)
        at = int(np.searchsorted(entries[_SETS], row))
        self._lists[number] = np.insert(entries, at, (row, position, len(members) + 1), axis=1)
        self._leave_group(number)
        return True

    def delete(self, set_id: int, token: object) -> bool:
        """Delete a value from a set.

        Returns
        -------
        bool
            False where the set does not have it: nothing has changed then.

        Raises
        ------
        InputError
            As for `add`.
        """
        set_id, text = _require_pair(set_id, token)
        row, number = self._number_of_set(set_id), int(self.find(pa.array([text]))[0])
        if UNKNOWN in (row, number):
            return False
        members = self.suffix(row, 0)
        position = int(np.searchsorted(members, number))
        if position == len(members) or members[position] != number:
            return False
        entries = self._own_list(number)
        self._lists[number] = np.delete(entries, int(np.searchsorted(entries[_SETS], row)), axis=1)
        self._sets[row] = np.delete(members, position)
        self._shift(row, self._sets[row], position, -1)
        self._leave_group(number)
        return True

    def pairs(self) -> tuple[np.ndarray, pa.LargeStringArray]:
        """Give all (set id, token) pairs as they are now, as `pexeso.overlap.index.build_index` takes them."""
        base = self._base
        rows = np.repeat(np.arange(base.n_sets), np.diff(base.set_offsets))
        kept = ~np.isin(rows, np.fromiter(self._sets, np.int64))
        changed = [np.full(len(members), row) for row, members in self._sets.items()]
        rows = np.concatenate([rows[kept], *changed]).astype(np.int64)
        tokens = np.concatenate([base.set_tokens[kept], *self._sets.values()]).astype(np.int64)
        by_number = base.dictionary.texts.take(pa.array(np.argsort(base.dictionary.numbers)))
        texts = pa.concat_arrays([by_number, pa.array(list(self._new_tokens), pa.large_string())])
        return self.ids_of(rows), texts.take(pa.array(tokens))

    def rebuilt(self) -> OverlapIndex:
        """Build a new index of what is there now, with a fresh order and fresh groups."""
        return build_index(*self.pairs())

    def begin_search(self) -> None:
        """Be told that a search begins."""
        self._base.begin_search()

    def find(self, tokens: pa.Array) -> np.ndarray:
        """Give the number of each token, -1 where there is none."""
        numbers = self._base.find(tokens)
        if self._new_tokens:
            for place in np.flatnonzero(numbers == UNKNOWN).tolist():
                numbers[place] = self._new_tokens.get(tokens[place].as_py(), UNKNOWN)
        return numbers

    def frequencies(self, tokens: np.ndarray) -> np.ndarray:
        """Give the lengths of posting lists."""
        lengths = np.zeros(len(tokens), np.int64)
        old = tokens < self._base.n_tokens
        lengths[old] = self._base.frequencies(tokens[old])
        for place, token in enumerate(tokens.tolist()):
            if token in self._lists:
                lengths[place] = self._lists[token].shape[1]
        return lengths

    def groups_of(self, tokens: np.ndarray) -> np.ndarray:
        """Give the duplicate groups of tokens."""
        groups = np.zeros(len(tokens), np.int64)
        old = tokens < self._base.n_tokens
        groups[old] = self._base.groups_of(tokens[old])
        for place, token in enumerate(tokens.tolist()):
            groups[place] = self._groups.get(token, groups[place])
        return groups

    def pairs_from(self, token: int) -> int:
        """Give the number of entries of the posting lists from that of a token on, as they were."""
        return self._base.pairs_from(min(token, self._base.n_tokens))

    def posting_list(self, token: int) -> PostingList:
        """Read a posting list."""
        self._n_read += 1
        self._n_read_alone += token in self._groups
        return PostingList(*self._lists[token]) if token in self._lists else self._base.posting_list(token)

    def posting_lists(self, tokens: np.ndarray) -> tuple[PostingList, np.ndarray]:
        """Read posting lists, one after the other as one."""
        lists = [self.posting_list(token) for token in tokens.tolist()]
        columns = (np.concatenate(column) for column in zip(*lists, strict=True))
        return PostingList(*columns), np.array([len(one.sets) for one in lists])

    def expect_lists(self, tokens: np.ndarray) -> None:
        """Be told that these posting lists are likely read soon."""
        self._base.expect_lists(tokens[tokens < self._base.n_tokens])

    def posting_sets(self, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Read the sets of posting lists."""
        found, lengths = self.posting_lists(tokens)
        return found.sets, lengths

    def suffix(self, number: int, begin: int) -> np.ndarray:
        """Read the tokens of a set from a position on."""
        return self._sets[number][begin:] if number in self._sets else self._base.suffix(number, begin)

    def suffixes(self, numbers: np.ndarray, begins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Read the tokens of sets, each from a position on, one after the other."""
        read = [self.suffix(number, begin) for number, begin in zip(numbers.tolist(), begins.tolist(), strict=True)]
        return np.concatenate(read), np.array([len(tokens) for tokens in read])

    def ids_of(self, numbers: np.ndarray) -> np.ndarray:
        """Give the ids of sets."""
        old = numbers < self._base.n_sets
        ids = np.empty(len(numbers), np.int64)
        ids[old] = self._base.ids_of(numbers[old])
        ids[~old] = np.fromiter(self._new_sets, np.int64)[numbers[~old] - self._base.n_sets]
        return ids

    def ranks_of(self, numbers: np.ndarray) -> np.ndarray:
        """Give numbers that order sets as their ids do: the ids, since those of new sets may be any."""
        return self.ids_of(numbers)

    def ids_of_ranks(self, ranks: np.ndarray) -> np.ndarray:
        """Give the ids of sets by their ranks."""
        return ranks

    def numbers_of(self, ids: np.ndarray) -> np.ndarray:
        """Give the numbers of those of these ids that are sets of the index."""
        new = [self._new_sets[set_id] for set_id in np.unique(ids).tolist() if set_id in self._new_sets]
        return np.concatenate([self._base.numbers_of(ids), np.array(new, dtype=np.int64)])

    def _number_of_set(self, set_id: int) -> int:
        found = self.numbers_of(np.array([set_id]))
        return int(found[0]) if len(found) else UNKNOWN

    def _own_list(self, token: int) -> np.ndarray:
        """Give the list of a token as an array that may be changed: (3, f)."""
        if token not in self._lists:
            self._lists[token] = np.stack([column.astype(np.int64) for column in self._base.posting_list(token)])
        return self._lists[token]

    def _shift(self, row: int, members: np.ndarray, position: int, step: int) -> None:
        """Let the lists of a set's other tokens know its new size, and new positions from one on."""
        for place, token in enumerate(members.tolist()):
            entries = self._own_list(token)
            at = int(np.searchsorted(entries[_SETS], row))
            entries[_SIZES, at] += step
            if place >= position:
                entries[_POSITIONS, at] += step

    def _leave_group(self, token: int) -> None:
        self._groups[token] = self._next_group
        self._next_group += 1


def _require_pair(set_id: object, token: object) -> tuple[int, str]:
    if isinstance(set_id, bool) or not isinstance(set_id, int | np.integer):
        raise InputError(f"The id of a set must be an integer. Got {set_id!r}.")
    try:
        text = tokens_of(pa.array([token]))[0].as_py()
    except pa.ArrowException as error:
        raise InputError(
            f"A value of a set must be a text, a number, a truth value or a date. Got {token!r}."
        ) from error
    if text is None:
        raise InputError(f"A value of a set must have a token; what is empty has none. Got {token!r}.")
    return int(set_id), text
