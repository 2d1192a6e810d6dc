"""Tests of the costs of parts for exact-value search."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from pexeso.sets.containment.ensemble import ensemble_over
from pexeso.sets.overlap.index import build_index
from pexeso.sets.part import TOKEN_SETS_PART
from pexeso.sets.part.write import (
    NO_SETS,
    SIGNED_SET_BYTES,
    TokenSetsEstimate,
    parts_bytes,
    shard_memory,
    tokens_of_shards,
)


def test_bytes_are_those_of_the_arrays_that_are_written():
    random = np.random.default_rng(0)
    pairs = np.unique(
        np.stack([random.integers(0, 90, 5000), random.integers(0, 700, 5000)]), axis=1
    )
    index = build_index(pairs[0], pa.array([f"{number:06d}" for number in pairs[1]]))
    arrays = [
        getattr(index, name)
        for name in ("groups", "token_offsets", "list_sets", "list_places", "set_tokens")
    ]
    held = sum(
        array.nbytes for array in (*arrays, index.set_offsets, index.ids, index.dictionary.numbers)
    )
    held += index.n_tokens * (6 + 8)  # texts, and where each ends
    held += index.n_sets * (
        4 + 4 + 4 + 12
    )  # positions, where two names end, and 12 letters of names
    counts = {"columns": index.n_sets, "pairs": pairs.shape[1], "tokens_written": index.n_tokens}
    size = parts_bytes(("overlap",), **counts, token_bytes=6.0, name_bytes=12.0)
    assert size == pytest.approx(held, abs=64)
    lists_alone = parts_bytes(
        ("overlap", "containment"), **counts, token_bytes=6.0, name_bytes=12.0
    )
    assert lists_alone == size
    ensemble = ensemble_over(index)
    more = parts_bytes(TOKEN_SETS_PART.choices, **counts, token_bytes=6.0, name_bytes=12.0) - size
    assert more == SIGNED_SET_BYTES * index.n_sets
    assert more == pytest.approx(3 * ensemble.signatures.nbytes + 16 * index.n_sets)


def test_a_task_holds_one_shard():
    costs = TokenSetsEstimate(("overlap",), columns=100, pairs=10_000, shards=4)
    assert shard_memory(costs) == 325_000
    assert shard_memory(replace(costs, parts=TOKEN_SETS_PART.choices)) == 325_000 + 25 * 6144
    assert shard_memory(NO_SETS) == 0


def test_a_token_of_many_shards_is_written_in_each():
    assert tokens_of_shards(100, 0, 0.3) == tokens_of_shards(100, 1, 0.3) == 100
    assert tokens_of_shards(100, 9, 0.5) == 300
