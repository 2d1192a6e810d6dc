"""The index, sets as sorted token numbers and posting lists of all tokens, both CSR; its files.

Positions count from 0 here. The paper's search counts from 1: what it calls the position j of the
latest match is the number of tokens of the set up to that match, `position` + 1, and so it is in
`pexeso.sets.overlap.josie`.

All sets and queries share one order of tokens. Rare tokens come first: a query then has few
candidates before it can stop, and equal posting lists, which have equal frequencies, can lie side
by side (thesis, chapter 3). Any order gives the same answers; this one gives them sooner.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.engine.lists import distinct_numbers, offsets_of, places_among, ranges
from pexeso.errors import IndexCorruptError
from pexeso.runtime.ranges import mixed
from pexeso.sets.overlap.dictionary import STRIDE, Dictionary, Heads, MappedRuns, heads_of
from pexeso.store.arrays import open_array, open_mapped_texts, open_texts, write_arrays, write_texts
from pexeso.store.manifest import FileEntry

# Tokens in more sets than this are not compared with others: a value in a million columns hardly
# ever has a twin, and its list is long.
MAX_GROUPED = 1 << 20

NO_SUCH_SET = "A posting list of an overlap index names a set that is not there"


def cut_short(what: str) -> IndexCorruptError:
    return IndexCorruptError(
        f"{what}: it was changed or cut short. Restore it from a copy, or build it again."
    )


class PostingList(NamedTuple):
    """The sets that hold a token, its position in each, and their sizes: integers (f,) each."""

    sets: np.ndarray
    positions: np.ndarray
    sizes: np.ndarray


@dataclass
class Reads:
    """What a search has read: posting lists and their entries, suffixes of sets and their tokens.

    `cost` is what the cost model says of them (J3).
    """

    lists: int = 0
    sets: int = 0
    entries: int = 0
    tokens: int = 0
    n_bytes: int = 0
    cost: float = 0.0

    def add_lists(self, lists: int, entries: int, n_bytes: int, cost: float) -> None:
        self.lists += lists
        self.entries += entries
        self.n_bytes += n_bytes
        self.cost += cost

    def add_sets(self, sets: int, tokens: int, n_bytes: int, cost: float) -> None:
        self.sets += sets
        self.tokens += tokens
        self.n_bytes += n_bytes
        self.cost += cost


@dataclass(frozen=True)
class OverlapIndex:
    """An index over n sets and u tokens with e (set, token) pairs; its arrays may be memory-mapped.

    Memory that stays of mapped ones: 8 bytes a set once a set was read.
    """

    dictionary: Dictionary
    groups: np.ndarray  # int32 or int64 (u,): the duplicate group of each token
    # int32 or int64 (u + 1,): the posting list of token t is entries ``token_offsets[t]`` to
    # ``token_offsets[t + 1]``
    token_offsets: np.ndarray
    list_sets: np.ndarray  # int32 (e,): the set of each entry, ascending within a list
    list_places: np.ndarray  # int32 (e, 2): the token's position in that set, and the set's size
    # int32 or int64 (n + 1,): set s holds ``set_tokens[set_offsets[s]:set_offsets[s + 1]]``
    set_offsets: np.ndarray
    set_tokens: np.ndarray  # int32 or int64 (e,): token numbers, ascending within a set
    ids: np.ndarray  # int64 (n,): ids of the sets, ascending
    pages: MappedRuns = field(default_factory=lambda: MappedRuns({}), compare=False)

    @property
    def n_sets(self) -> int:
        return len(self.ids)

    @property
    def n_tokens(self) -> int:
        return len(self.groups)

    @cached_property
    def held_set_offsets(self) -> np.ndarray:
        """The offsets of sets, in memory: int64 (n + 1,)."""
        self.pages.want("set_offsets", np.zeros(1, np.int64), np.full(1, self.n_sets + 1))
        return np.array(self.set_offsets, np.int64)

    @cached_property
    def ids_are_numbers(self) -> bool:
        """Whether ids, which ascend, run from 0 without a gap, so that they need not be read."""
        return not self.n_sets or (int(self.ids[0]) == 0 and int(self.ids[-1]) == self.n_sets - 1)

    def find(self, tokens: pa.Array) -> np.ndarray:
        """Return the number of each token, -1 where no set holds it; see `Dictionary.find`."""
        numbers = self.dictionary.find(tokens)
        if (numbers >= self.n_tokens).any():
            raise cut_short("The dictionary of an overlap index names a token that is not there")
        return numbers

    def frequencies(self, tokens: np.ndarray) -> np.ndarray:
        """Return the lengths of posting lists, and prefetch the groups, which are read next."""
        self.pages.want("groups", tokens, tokens + 1)
        self.pages.want("token_offsets", tokens, tokens + 2)
        lengths = self.token_offsets[tokens + 1] - self.token_offsets[tokens]
        return lengths.astype(np.int64, copy=False)

    def posting_lists(self, tokens: np.ndarray) -> tuple[PostingList, np.ndarray]:
        """Read posting lists, one after the other as one, and return their lengths."""
        begins, ends = self.list_runs(tokens)
        self.pages.want("list_places", begins, ends)
        places = _gathered(self.list_places, begins, ends)
        return PostingList(self._sets(begins, ends), places[:, 0], places[:, 1]), ends - begins

    def expect_lists(self, tokens: np.ndarray) -> None:
        """Let the system know that these posting lists are likely read soon."""
        if self.pages.requests_pages:
            self.pages.want("list_places", *self.list_runs(tokens))

    def list_runs(self, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the begins and ends of posting lists in `list_sets`, and prefetch the lists."""
        begins, ends = self._runs(self.token_offsets, tokens)
        self.pages.want("list_sets", begins, ends)
        return begins, ends

    def suffixes(self, numbers: np.ndarray, begins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Read the tokens of sets from given positions on, one set after the other.

        The second array is the number of tokens of each.
        """
        firsts, ends = self._runs(self.held_set_offsets, numbers)
        firsts = np.minimum(firsts + begins, ends)
        self.pages.want("set_tokens", firsts, ends)
        return _gathered(self.set_tokens, firsts, ends), ends - firsts

    def suffix(self, number: int, begin: int) -> np.ndarray:
        return self.suffixes(np.array([number]), np.array([begin]))[0]

    def ids_of(self, numbers: np.ndarray) -> np.ndarray:
        if self.ids_are_numbers:
            return np.asarray(numbers, np.int64)
        self.pages.want("ids", numbers, numbers + 1)
        return self.ids[numbers]

    def numbers_of(self, ids: Collection[int]) -> np.ndarray:
        """Return the numbers of those of these ids that are sets of the index."""
        set_ids = distinct_numbers(np.asarray(ids, np.int64))
        if self.ids_are_numbers:
            return set_ids[(set_ids >= 0) & (set_ids < self.n_sets)]
        positions = places_among(set_ids, self.ids)
        return positions[positions >= 0]

    def _runs(self, offsets: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        begins, ends = (
            offsets[positions].astype(np.int64, copy=False)
            for positions in (rows, np.asarray(rows) + 1)
        )
        n_pairs = len(self.list_sets)
        if len(begins) and (begins.min() < 0 or ends.max() > n_pairs or (begins > ends).any()):
            wrong = (begins < 0) | (begins > ends) | (ends > n_pairs)
            row = int(np.asarray(rows)[wrong][0])
            raise cut_short(f"The offsets of an overlap index lead out of it at row {row}")
        return begins, ends

    def _sets(self, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
        sets = _gathered(self.list_sets, begins, ends)
        if len(sets) and (sets.min() < 0 or sets.max() >= self.n_sets):
            raise cut_short(NO_SUCH_SET)
        return sets


def _gathered(array: np.ndarray, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
    runs = [array[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]
    return np.concatenate(runs) if runs else array[:0]


def build_index(
    set_ids: np.ndarray,
    tokens: pa.Array | pa.ChunkedArray,
    *,
    order: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
) -> OverlapIndex:
    """Build the index of (set id, token) pairs.

    The same pairs give the same index, in whatever order and however often they come. Sets without
    a token are not in it. The three jobs of the thesis (lists in order, groups, sets and their
    postings) are sorts of arrays: O(p log p) time; some 80 bytes a pair at the peak, with texts.
    """
    tokens = pa.chunked_array([tokens]) if isinstance(tokens, pa.Array) else tokens
    encoded = tokens.cast(pa.large_string()).dictionary_encode().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # without a chunk
        encoded = pa.array([], pa.large_string()).dictionary_encode()
    del tokens
    known = encoded.is_valid().to_numpy(zero_copy_only=False)
    ids, sets = np.unique(set_ids[known].astype(np.int64), return_inverse=True)
    by_text = pc.array_sort_indices(encoded.dictionary)
    texts = encoded.dictionary.take(by_text)
    codes = _inverse(by_text.to_numpy())[encoded.indices.drop_null().to_numpy()]
    del encoded, set_ids
    # Sorted by text, then set: each pair once, and the posting lists side by side.
    n_ids = max(len(ids), 1)
    codes *= n_ids
    codes += sets
    pairs = distinct_numbers(codes)
    del codes, sets
    codes, sets = (_narrow(part) for part in np.divmod(pairs, n_ids))
    del pairs
    offsets = offsets_of(np.bincount(codes, minlength=len(texts)))
    number_of = _narrow(_inverse((order or global_order)(offsets, ids[sets])))
    tokens = number_of[codes]
    del codes
    by_set = np.lexsort((tokens, sets))
    sets, tokens = sets[by_set], tokens[by_set]
    sizes = np.bincount(sets, minlength=len(ids))
    set_offsets = offsets_of(sizes)
    places = np.empty((len(sets), 2), np.int32)
    places[:, 0] = np.arange(len(sets)) - set_offsets[sets]
    places[:, 1] = sizes[sets]
    del by_set
    by_token = np.argsort(tokens, kind="stable")
    token_offsets = offsets_of(np.bincount(tokens, minlength=len(texts)))
    list_sets = sets[by_token].astype(np.int32)
    return OverlapIndex(
        Dictionary(texts, number_of),
        _narrow(duplicate_groups(token_offsets, list_sets)),
        _narrow(token_offsets),
        list_sets,
        places[by_token],
        _narrow(set_offsets),
        tokens,
        ids,
    )


def _inverse(order: np.ndarray) -> np.ndarray:
    inverse = np.empty(len(order), np.int64)
    inverse[order] = np.arange(len(order))
    return inverse


def _narrow(numbers: np.ndarray) -> np.ndarray:
    return numbers.astype(np.int32 if not len(numbers) or numbers.max() < 2**31 else np.int64)


def hash_lists(offsets: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Return a 64-bit hash of each list of a CSR, whose members are distinct: int64 (n,).

    Sums of mixed members (splitmix64), so that parts of a list can be summed anywhere and in any
    order.
    """
    hashes = mixed(members.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])
    return (sums[offsets[1:]] - sums[offsets[:-1]]).view(np.int64)


def global_order(offsets: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Order tokens by frequency, hash of the list, the list itself, then input order.

    Lists, of ascending sets, are compared only where frequency and hash are equal, neighbour with
    neighbour; they are sorted only where two of them then differ.
    """
    frequency = np.diff(offsets)
    hashed = np.where(frequency <= MAX_GROUPED, hash_lists(offsets, members), 0)
    order = np.lexsort((hashed, frequency))
    frequency, hashed = frequency[order], hashed[order]
    same_key = np.zeros(len(order), bool)
    same_key[1:] = (np.diff(frequency) == 0) & (np.diff(hashed) == 0)
    same_key &= frequency <= MAX_GROUPED
    collided = same_key & ~like_the_one_before(offsets, members, order, same_key)
    runs = np.cumsum(~same_key) - 1
    for run in np.unique(runs[collided]):
        rows = np.arange(*np.searchsorted(runs, [run, run + 1]))
        lists = np.stack([members[offsets[token] : offsets[token + 1]] for token in order[rows]])
        _, rank = np.unique(lists, axis=0, return_inverse=True)
        order[rows] = order[rows][np.argsort(rank.reshape(-1), kind="stable")]
    return order


def duplicate_groups(offsets: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Return the duplicate group of each token, a run of neighbours with the same sets: int64 (n,).

    Tokens are in the global order, and the sets of each ascend. Groups ascend from 0.
    """
    frequency = np.diff(offsets)
    maybe = np.zeros(len(frequency), bool)
    maybe[1:] = (np.diff(frequency) == 0) & (frequency[1:] <= MAX_GROUPED)
    same = like_the_one_before(offsets, members, np.arange(len(frequency)), maybe)
    return np.cumsum(~same) - 1


def like_the_one_before(
    offsets: np.ndarray, members: np.ndarray, order: np.ndarray, positions: np.ndarray
) -> np.ndarray:
    """Return at which of `positions` a token of `order` has the list of the token before.

    Both lists must be equally long there.
    """
    same = positions.copy()
    rows = np.flatnonzero(positions)
    tokens, before = order[rows], order[rows - 1]
    lengths = offsets[tokens + 1] - offsets[tokens]
    starts = offsets_of(lengths)
    differs = members[ranges(offsets[tokens], lengths)] != members[ranges(offsets[before], lengths)]
    n_different = offsets_of(differs)
    same[rows] = n_different[starts[1:]] == n_different[starts[:-1]]
    return same


@dataclass(frozen=True)
class OverlapQuery:
    """A query over one index.

    The list that is read is that of a block's last token, so that the position in it is that of the
    rightmost match.
    """

    tokens: np.ndarray  # int64 (n,): those that some set holds, ascending (x_1 to x_n)
    # int64 (m,): positions of query tokens, from 1: block b is tokens ``starts[b]`` to ``ends[b]``,
    # whose posting lists hold the same sets
    starts: np.ndarray
    ends: np.ndarray
    frequencies: np.ndarray  # int64 (m,): the length of each block's list

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def n_blocks(self) -> int:
        return len(self.ends)

    @property
    def weights(self) -> np.ndarray:
        """The number of query tokens that each block's list stands for: int64 (m,)."""
        return self.ends - self.starts + 1

    @property
    def lists(self) -> np.ndarray:
        """The token whose posting list is read for each block: int64 (m,)."""
        return self.tokens[self.ends - 1]


@dataclass(frozen=True)
class Overlaps:
    """The answer to a query: sets by overlap, the largest first, equal overlaps by id."""

    # int64 (r,): at most k sets; fewer where fewer share a token with the query
    ids: np.ndarray
    overlaps: np.ndarray
    reads: Reads

    def pairs(self) -> list[tuple[int, int]]:
        """Return (id, overlap) of each set."""
        return list(zip(self.ids.tolist(), self.overlaps.tolist(), strict=True))


def prepare_query(index: OverlapIndex, tokens: pa.Array) -> OverlapQuery:
    """Look the distinct tokens of a query up."""
    numbers = index.find(tokens)
    return query_of_tokens(index, numbers[numbers >= 0])


def query_of_tokens(index: OverlapIndex, numbers: np.ndarray) -> OverlapQuery:
    """Make a query of token numbers, such as those of a set of the index."""
    numbers = np.sort(numbers).astype(np.int64)
    frequencies = index.frequencies(numbers)
    if not frequencies.all():
        numbers, frequencies = numbers[frequencies > 0], frequencies[frequencies > 0]
    groups = index.groups[numbers]
    last = np.ones(len(groups), bool)
    np.not_equal(groups[1:], groups[:-1], out=last[:-1])
    ends = np.flatnonzero(last) + 1
    starts = np.ones(len(ends), np.int64)
    starts[1:] += ends[:-1]
    return OverlapQuery(numbers, starts, ends, frequencies[ends - 1])


ARRAYS = ("groups", "token_offsets", "list_sets", "list_places", "set_offsets", "set_tokens", "ids")
_NUMBERS, _TEXTS = "text_numbers", "texts.arrow"
_HEADS, _PLACES = "heads.arrow", "head_places"
_CHUNK_TEXTS = 1 << 20
_ANY = (np.int32, np.int64)
_DTYPES = {"list_sets": (np.int32,), "list_places": (np.int32,), "ids": (np.int64,)}


def save_index(index: OverlapIndex, folder: Path) -> list[FileEntry]:
    """Write an index into an existing folder that has none."""
    dictionary = index.dictionary
    heads = heads_of(dictionary.texts)
    arrays = {_NUMBERS: dictionary.numbers, _PLACES: heads.positions}
    arrays |= {name: getattr(index, name) for name in ARRAYS}
    return [
        write_texts(folder / _TEXTS, dictionary.texts),
        write_texts(folder / _HEADS, heads.texts),
        *write_arrays(folder, arrays),
    ]


def open_index(folder: Path) -> OverlapIndex:
    """Open what `save_index` wrote; nothing but headers is read."""
    arrays = {name: open_array(folder / f"{name}.npy") for name in ARRAYS}
    dictionary, heads = _open_dictionary(folder)
    # Plain views of the maps: a memmap takes microseconds longer for each access.
    plain = {name: np.asarray(array) for name, array in arrays.items()}
    index = OverlapIndex(dictionary, **plain, pages=MappedRuns(arrays))
    n_pairs, n_tokens, n_sets = len(index.list_sets), len(dictionary), len(index.ids)
    shapes = {
        "groups": (n_tokens,),
        "token_offsets": (n_tokens + 1,),
        "list_places": (n_pairs, 2),
        "set_offsets": (n_sets + 1,),
        "set_tokens": (n_pairs,),
    }
    wrong = [name for name, shape in shapes.items() if arrays[name].shape != shape]
    # What loops are compiled for.
    wrong += [name for name, array in arrays.items() if array.dtype not in _DTYPES.get(name, _ANY)]
    if arrays["token_offsets"].dtype != arrays["set_offsets"].dtype:
        wrong.append("token_offsets")
    n_heads = -(-n_tokens // STRIDE)
    if dictionary.numbers.shape != (n_tokens,):
        wrong.append(_NUMBERS)
    if heads.positions.shape != (n_heads + 1,) or len(heads.texts) != n_heads:
        wrong.append(_HEADS)
    if wrong:
        raise IndexCorruptError(
            f"The files of the overlap index '{folder}' do not belong together, as "
            f"{', '.join(wrong)} tells: "
            "restore it from a copy, or build it again."
        )
    return index


def _open_dictionary(folder: Path) -> tuple[Dictionary, Heads]:
    texts, mapped = open_mapped_texts(folder / _TEXTS)
    numbers = open_array(folder / f"{_NUMBERS}.npy")
    _, offsets, letters = texts.buffers()
    first = mapped.ctypes.data
    heads = Heads(
        open_texts(folder / _HEADS),
        open_array(folder / f"{_PLACES}.npy"),
        MappedRuns({"texts": mapped, "numbers": numbers}),
        offsets.address - first if offsets else 0,
        letters.address - first if letters else 0,
    )
    return Dictionary(texts, np.asarray(numbers), heads), heads


def check_overlap(index: OverlapIndex) -> list[str]:
    """Return a sentence for each thing that is wrong with an index whose texts are sound.

    It covers what searches assume, and errors that would make answers wrong without notice: O(p)
    time, and some 60 bytes a pair of memory.
    """
    n_pairs, faults = len(index.list_sets), []
    for name, what in (("token_offsets", "posting lists"), ("set_offsets", "sets")):
        offsets = np.asarray(getattr(index, name))
        if offsets[0] != 0 or offsets[-1] != n_pairs or (np.diff(offsets) < 1).any():
            faults.append(f"{name}: {what} must run from 0 to {n_pairs:,}, and none may be empty.")
    faults += _rising(index.ids, None, "ids", np.iinfo(np.int64).max)
    faults += list(_dictionary(index))
    if not faults:
        faults += _rising(index.set_tokens, index.set_offsets, "set_tokens", index.n_tokens)
        faults += _rising(index.list_sets, index.token_offsets, "list_sets", index.n_sets)
    if not faults:
        faults += [*_places(index), *_groups(index)]
    return [f"The token sets: {sentence}" for sentence in faults]


def _rising(numbers: np.ndarray, offsets: np.ndarray | None, name: str, end: int) -> Iterator[str]:
    """Require numbers from 0 to below `end` that rise within each run."""
    numbers = np.asarray(numbers)
    rises = numbers[1:] > numbers[:-1]
    if offsets is not None and len(numbers):
        rises[np.asarray(offsets[1:-1]) - 1] = True
    if len(numbers) and (numbers.min() < 0 or int(numbers.max()) >= end or not rises.all()):
        yield f"{name}: its numbers must be at least 0, below {end:,}, and rise."


def _dictionary(index: OverlapIndex) -> Iterator[str]:
    numbers, texts = np.asarray(index.dictionary.numbers), index.dictionary.texts
    is_named = np.zeros(index.n_tokens, bool)
    inside = (numbers >= 0) & (numbers < index.n_tokens)
    is_named[numbers[inside]] = True
    if not is_named.all() or not inside.all():
        yield "text_numbers: each token must be named once."
    if texts.null_count:
        yield f"texts: {texts.null_count:,} of its texts are missing."
        return
    for start in range(0, len(texts) - 1, _CHUNK_TEXTS):
        some = texts.slice(start, _CHUNK_TEXTS + 1)
        if not pc.all(pc.less(some[:-1], some[1:])).as_py():
            yield "texts: they must be distinct and sorted."
            return
    heads, right = index.dictionary.heads, heads_of(texts)
    if heads is not None and not (
        heads.texts.equals(right.texts) and np.array_equal(heads.positions, right.positions)
    ):
        yield f"heads: they must be every {STRIDE}th text, and where its letters begin."


def _places(index: OverlapIndex) -> Iterator[str]:
    """Check that the positions and sizes of posting lists agree with the sets.

    With equally many pairs on both sides, each pair on one side is then also on the other.
    """
    sets, offsets = np.asarray(index.list_sets), np.asarray(index.set_offsets)
    positions, sizes = np.asarray(index.list_places).T
    outside = (positions < 0) | (positions >= sizes) | (sizes != np.diff(offsets)[sets])
    if outside.any():
        yield "list_places: it does not give the sizes of the sets, or positions within them."
        return
    token = np.repeat(np.arange(index.n_tokens), np.diff(index.token_offsets))
    if (np.asarray(index.set_tokens)[offsets[sets] + positions] != token).any():
        yield "list_places: a set does not hold the token where its posting list says."


def _groups(index: OverlapIndex) -> Iterator[str]:
    steps = np.diff(np.asarray(index.groups), prepend=0)
    if len(steps) and (index.groups[0] != 0 or (steps < 0).any() or (steps > 1).any()):
        yield "groups: their numbers must begin with 0, and go on by one."
        return
    same = steps == 0
    same[:1] = False
    alike = same & (np.diff(np.diff(index.token_offsets), prepend=-1) == 0)
    order = np.arange(index.n_tokens)
    if (like_the_one_before(index.token_offsets, index.list_sets, order, alike) != same).any():
        yield "groups: tokens of one group must stand in the same sets."
