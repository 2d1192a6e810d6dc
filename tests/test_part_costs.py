"""What parts for equal text cost: token sets of a sample counted, bytes as files have them, tokens that stand in many shards."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from pexeso.equal_text.lists import ensemble_over
from pexeso.overlap.index import build_index
from pexeso.part_costs import (
    NO_PARTS,
    SIGNED_SET_BYTES,
    PartsEstimate,
    TokenSample,
    parts_bytes,
    shard_memory,
    tokens_of_shards,
)

RECORDS = pa.table(
    {
        "record": ["table", "set", "token", "token", "value", "set", "token"],
        "table": ["a.csv"] * 7,
        "label": [None, "id", None, None, None, "né", None],
        "value": [None, None, "7", "80", "seven", None, "7"],
    }
)


def test_sets_and_tokens_of_files_are_counted():
    sample = TokenSample()
    sample.add(RECORDS, "delimited")
    sample.add(RECORDS.slice(0, 3), "parquet")
    assert (sample.columns, sample.n_pairs, dict(sample.pairs)) == (3, 4, {"delimited": 3, "parquet": 1})
    assert [tokens.to_pylist() for tokens in sample.tokens] == [["7", "80", "7"], ["7"]]
    assert sample.name_bytes == 3 * len("a.csv") + 2 * len("id") + len("né".encode())
    assert sample.token_bytes() == 1.5
    assert TokenSample().token_bytes() == 0


def test_bytes_are_those_of_the_arrays_that_are_written():
    random = np.random.default_rng(0)
    pairs = np.unique(np.stack([random.integers(0, 90, 5000), random.integers(0, 700, 5000)]), axis=1)
    index = build_index(pairs[0], pa.array([f"{number:06d}" for number in pairs[1]]))
    arrays = [getattr(index, name) for name in ("groups", "token_offsets", "list_sets", "list_places", "set_tokens")]
    held = sum(array.nbytes for array in (*arrays, index.set_offsets, index.ids, index.dictionary.numbers))
    held += index.n_tokens * (6 + 8)  # texts, and where each ends
    held += index.n_sets * (4 + 4 + 4 + 12)  # positions, where two names end, and 12 letters of names
    asked = {"columns": index.n_sets, "pairs": pairs.shape[1], "tokens_written": index.n_tokens}
    found = parts_bytes(("overlap",), **asked, token_bytes=6.0, name_bytes=12.0)
    assert found == pytest.approx(held, abs=64)
    ensemble = ensemble_over(index)
    more = parts_bytes(("overlap", "containment"), **asked, token_bytes=6.0, name_bytes=12.0) - found
    assert more == SIGNED_SET_BYTES * index.n_sets
    assert more == pytest.approx(3 * ensemble.signatures.nbytes + 16 * index.n_sets)


def test_a_task_holds_one_shard():
    found = PartsEstimate(("overlap",), columns=100, pairs=10_000, shards=4)
    assert shard_memory(found) == 500_000
    assert shard_memory(replace(found, parts=("overlap", "containment"))) == 500_000 + 25 * 6144
    assert shard_memory(NO_PARTS) == 0


def test_a_token_of_many_shards_is_written_in_each():
    assert tokens_of_shards(100, 0, 0.3) == tokens_of_shards(100, 1, 0.3) == 100
    assert tokens_of_shards(100, 9, 0.5) == 300
