"""Sets drawn from vocabularies of very different sizes, as the specification prescribes."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa

from pexeso.sets.containment.ensemble import CsrLists, Ensemble
from pexeso.sets.containment.hashing import distinct_sorted

SMALLEST, LARGEST = 30, 20_000


def vocabularies(n: int, rng: np.random.Generator, max_size: int = LARGEST) -> list[np.ndarray]:
    """Return vocabularies whose sizes follow a Pareto distribution with shape 0.8."""
    sizes = np.minimum(max_size, SMALLEST * (1 + rng.pareto(0.8, n))).astype(int)
    return [np.unique(rng.integers(0, 2**63, size, dtype=np.uint64)) for size in sizes]


def some_of(vocabulary: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    kept = vocabulary[rng.random(len(vocabulary)) < rng.random()]
    return kept if len(kept) else vocabulary[:1]


def ragged(sets: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in sets])]).astype(np.int64)
    return (np.concatenate(sets) if sets else np.empty(0, np.uint64)).astype(np.uint64), offsets


def containments(sets: list[np.ndarray], query: np.ndarray) -> np.ndarray:
    return np.array([len(np.intersect1d(one, query)) / len(np.unique(query)) for one in sets])


class NumberLists:
    """Posting lists of sets of numbers, sorted by NumPy."""

    def __init__(self, numbers: np.ndarray, offsets: np.ndarray) -> None:
        tokens, places, counts = np.unique(numbers, return_inverse=True, return_counts=True)
        order = np.argsort(counts, kind="stable")
        number_of = np.argsort(order)
        members, owners = (
            number_of[places],
            np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)),
        )
        by_set, by_token = np.lexsort((members, owners)), np.lexsort((owners, members))
        token_offsets = np.concatenate([[0], np.cumsum(counts[order])]).astype(np.int64)
        arrays = {
            "token_offsets": token_offsets,
            "list_sets": owners[by_token].astype(np.int32),
            "set_offsets": np.array(offsets),
            "set_tokens": members[by_set].astype(np.int32),
        }
        for array in arrays.values():
            array.flags.writeable = False
        index = SimpleNamespace(**arrays, n_sets=len(offsets) - 1)
        self.tokens, self.number_of, self.lists = tokens, number_of, CsrLists(index)

    @property
    def n_sets(self):
        return self.lists.n_sets

    def sizes_of(self, sets):
        return self.lists.sizes_of(sets)

    def look_up(self, query):
        wanted = np.unique(query)
        known = np.flatnonzero(np.isin(self.tokens, wanted))
        return self.lists.query(self.number_of[known].astype(np.int64), len(wanted))


def ensemble_of(numbers, offsets, options=None, *, lists=None) -> Ensemble:
    hashes, ends = distinct_sorted(numbers, offsets)
    return Ensemble.build(
        hashes, ends, NumberLists(hashes, ends) if lists is None else lists, options
    )


def text_numbers(texts) -> np.ndarray:
    from pexeso.sets.containment.hashing import hash_tokens

    return hash_tokens(pa.array(texts, pa.large_string()))
