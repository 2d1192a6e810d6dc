"""The search for matching values by matrix products of torch, on any of its devices.

A word is a row of counts: of its pairs of letters, times `PAIR_ROOT`, of its pairs with their
blocks from the start, and of those with their blocks from the end; the dot product of two such rows
is C. So the similarities of some query values and all words are one product of a sparse matrix with
a dense one, and those of the query values and all stored values another.

Sums are float32 of numbers that are not negative, off by a bounded share; what lies within it is
decided by the definition, on the CPU. So the matches are those of the compiled loops.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from pexeso.engine.lists import Lists, offsets_of
from pexeso.engine.sparse.vectors import SparseVectors, pair_distances
from pexeso.errors import IndexCorruptError
from pexeso.runtime.compiled import compiled

if TYPE_CHECKING:
    from pexeso.engine.sparse.partition import SparsePartition
    from pexeso.engine.stats import SearchStats

loops = compiled("pexeso.engine.sparse.loops")

# Similarities of query values that are held together, with features, words and rows: 1 GiB.
NUMBERS_AT_ONCE = 1 << 28

_ROUNDING = 2.0**-22
_FROM_THE_START = loops.BLOCKS & ~loops.LAST_BLOCK


@dataclass(frozen=True)
class DeviceMatrices:
    """The matrices of a partition on a device.

    Shape letters: F features, V words, N rows.

    features: int64 (F,), what `features_of` gives for the keys of the words, ascending; on the CPU;
    words: torch.Tensor, sparse (V, F), each word's counts over their length; rows: torch.Tensor,
    sparse (N, V), weights over the lengths of the rows.
    """

    features: np.ndarray
    words: torch.Tensor
    rows: torch.Tensor

    @classmethod
    def of(cls, partition: SparsePartition) -> DeviceMatrices:
        """Make the matrices on the partition's device.

        They take some 36 bytes there for each entry of the lists of pairs, and on the way four
        times that on the host.
        """
        lists, values, device = partition.key_words, partition.vectors, partition.device
        _require_within(lists, partition.n_words)
        _require_within(Lists(values.offsets, values.members), partition.n_words)
        keys = np.repeat(partition.keys, np.diff(lists.offsets))
        features, columns, counts = [], [], []
        for part, count in features_of(keys):
            features.append(part)
            columns.append(lists.members.astype(np.int64))
            counts.append(np.full(len(part), count, np.float32))
        every, feature_index = np.unique(np.concatenate(features), return_inverse=True)
        word = np.concatenate(columns)
        shares = np.concatenate(counts) / np.sqrt(values.squares)[word]
        words = _matrix(word, feature_index, shares, (partition.n_words, len(every)), device)
        row = np.repeat(np.arange(partition.n_values), np.diff(values.offsets))
        weights = values.weights[values.members] / np.sqrt(values.norms[row])
        shape = (partition.n_values, partition.n_words)
        return cls(every, words, _matrix(row, values.members, weights, shape, device))


def features_of(keys: np.ndarray) -> list[tuple[np.ndarray, float]]:
    """Return the three features of each key as numbers, and what one of each sort counts.

    Of a pair alone, of a pair with its block from the start, and of one with its block from the
    end.
    """
    pairs = keys >> loops.BITS_OF_BLOCKS << loops.BITS_OF_BLOCKS
    blocks = keys & loops.BLOCKS
    first, last = blocks & _FROM_THE_START, blocks & loops.LAST_BLOCK
    # No two of the same sort are alike by chance, and the sorts are told apart by the sign bits.
    return [
        (pairs << 1, float(np.sqrt(loops.PAIR))),
        ((pairs | first) << 1 | 1, 1.0),
        (-1 - (pairs | last), 1.0),
    ]


def matching_rows(
    partition: SparsePartition, vectors: SparseVectors, max_distance: float, stats: SearchStats
) -> Lists:
    """Do as `pexeso.engine.sparse.search.matching_rows` on the partition's device."""
    matrices = partition.matrices
    n_numbers = len(matrices.features) + partition.n_words + partition.n_values
    chunk_size = max(1, NUMBERS_AT_ONCE // max(1, n_numbers))
    own_words = np.empty(len(vectors.weights), np.int64)
    words = partition.vectors
    loops.find_words(vectors.text, vectors.starts, words.text, words.starts, own_words)
    features, counts = _word_features(matrices, vectors)
    sizes, members = [], [np.zeros(0, np.int32)]
    for begin in range(0, len(vectors), chunk_size):
        some = slice(begin, min(begin + chunk_size, len(vectors)))
        query, row, is_sure = _candidates(
            matrices, partition, vectors, own_words, features, counts, some, max_distance
        )
        unsure = np.flatnonzero(~is_sure)
        apart = pair_distances(vectors.take(query[unsure]), words.take(row[unsure]))
        is_sure[unsure] = apart <= max_distance
        stats.candidates += len(query)
        stats.defining_distances += len(unsure)
        sizes.append(np.bincount(query[is_sure] - begin, minlength=some.stop - begin))
        members.append(row[is_sure].astype(np.int32))
    offsets = offsets_of(np.concatenate([np.zeros(0, np.int64), *sizes]).astype(np.int64))
    return Lists(offsets, np.concatenate(members))


def _candidates(
    matrices: DeviceMatrices,
    partition: SparsePartition,
    vectors: SparseVectors,
    own_words: np.ndarray,
    features: Lists,
    counts: np.ndarray,
    some: slice,
    max_distance: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the pairs of query values and rows that may match, ordered, and which surely do.

    Whatever a few query values take on a device is the time of its steps, one after the other: so
    they are few, and what goes there and comes back goes together.
    """
    letters, device = partition.space.letters, partition.device
    n, n_rows = some.stop - some.start, partition.n_values
    n_words = np.diff(vectors.offsets)[some]
    owner = np.repeat(np.arange(n), n_words)
    word = vectors.members[vectors.offsets[some.start] : vectors.offsets[some.stop]]
    length = np.sqrt(np.where(vectors.norms > 0, vectors.norms, 1.0))[some]
    share = vectors.weights[word] / length[owner]

    scaled = share * letters / np.sqrt(vectors.squares)[word]
    occurrence, entry = features.of(word)
    weights = torch.zeros((len(matrices.features), n), device=device)
    numbers = counts[entry] * scaled[occurrence]
    _add(weights, features.members[entry], owner[occurrence], numbers)
    near = torch.sparse.mm(matrices.words, weights)
    stored_words = own_words[word]
    held = stored_words >= 0
    _add(near, stored_words[held], owner[held], (share * (1.0 - letters))[held])
    cosines = torch.sparse.mm(matrices.rows, near)

    n_features = np.bincount(owner[occurrence], minlength=n)
    room = (n_features + n_words + partition.most_value_words + 64) * _ROUNDING
    cosine = 1.0 - 2.0 * max_distance * max_distance
    floor = cosine * (1.0 - 1e-9) * (1.0 - room) - 1e-9
    limits = np.stack([np.where(vectors.is_known[some], floor, np.inf), cosine * (1 + room) + 1e-6])
    floors, sure = _tensor(limits, device)
    row, query = torch.nonzero(cosines >= floors, as_tuple=True)
    is_sure = cosines[row, query] >= sure[query]
    pairs = torch.sort((query * n_rows + row) * 2 + is_sure)[0].cpu().numpy()
    query, row = np.divmod(pairs >> 1, max(1, n_rows))
    return query + some.start, row, (pairs & 1).astype(bool)


def _word_features(matrices: DeviceMatrices, vectors: SparseVectors) -> tuple[Lists, np.ndarray]:
    """Return the features of each query word that the partition has, and what each counts.

    Members are rows of ``matrices.features``, each as often as the word has it.
    """
    n_words = len(vectors.weights)
    sizes = np.empty(n_words, np.int64)
    loops.count_keys(vectors.text, vectors.starts, sizes)
    key_offsets = offsets_of(sizes)
    keys = np.empty(int(key_offsets[-1]), np.int64)
    loops.write_all_keys(vectors.text, vectors.starts, key_offsets, keys)
    features, counts = zip(*features_of(keys), strict=True)
    of_key = np.stack(features, 1)
    row = np.searchsorted(matrices.features, of_key)
    known = row < len(matrices.features)
    known[known] = matrices.features[row[known]] == of_key[known]
    word = np.repeat(np.repeat(np.arange(n_words), sizes), known.sum(1))
    offsets = offsets_of(np.bincount(word, minlength=n_words))
    return Lists(offsets, row[known]), np.broadcast_to(counts, row.shape)[known]


def _require_within(lists: Lists, n: int) -> None:
    lists.of(np.arange(len(lists)))
    if len(lists.members) and (lists.members.min() < 0 or lists.members.max() >= n):
        raise IndexCorruptError(loops.NO_LIST)


def _tensor(numbers: np.ndarray, device: torch.device) -> torch.Tensor:
    numbers = numbers.astype(np.float32) if numbers.dtype == np.float64 else numbers
    return torch.from_numpy(numbers).to(device)


def _add(matrix: torch.Tensor, rows: np.ndarray, columns: np.ndarray, numbers: np.ndarray) -> None:
    positions = rows.astype(np.int64) * matrix.shape[1] + columns
    matrix.view(-1).index_add_(
        0, _tensor(positions, matrix.device), _tensor(numbers.astype(np.float64), matrix.device)
    )


def _matrix(
    rows: np.ndarray,
    columns: np.ndarray,
    numbers: np.ndarray,
    shape: tuple[int, int],
    device: torch.device,
) -> torch.Tensor:
    """Return a sparse matrix; numbers of the same place are added."""
    positions, which = np.unique(rows.astype(np.int64) * shape[1] + columns, return_inverse=True)
    sums = np.bincount(which, weights=numbers, minlength=len(positions))
    offsets = offsets_of(np.bincount(positions // max(1, shape[1]), minlength=shape[0]))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        # Said of the copy on a device, where what is copied was checked.
        warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly disabled")
        return torch.sparse_csr_tensor(
            torch.from_numpy(offsets),
            torch.from_numpy(positions % max(1, shape[1])),
            torch.from_numpy(sums.astype(np.float32)),
            size=shape,
            check_invariants=True,
        ).to(device)
