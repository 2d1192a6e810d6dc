"""Tests of the costs of parts for exact-value search."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pexeso.build.parts.sample import LakeSample
from pexeso.lake.files import TableFile
from pexeso.options import BuildOptions
from pexeso.sets.containment.ensemble import ensemble_over
from pexeso.sets.overlap.index import build_index
from pexeso.sets.part import TOKEN_SETS_PART
from pexeso.sets.part.write import (
    NO_SETS,
    SIGNED_SET_BYTES,
    TokenSetsEstimate,
    estimate,
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


def sample_of(*records, scale=1):
    files = [
        TableFile(f"{number}.csv", Path("x"), kind, 10)
        for number, kind in enumerate(["delimited", "parquet"][: len(records)])
    ]
    padded = [table.append_column("reason", pa.nulls(len(table), pa.string())) for table in records]
    return LakeSample(files * scale, files, padded, 0.0, BuildOptions(parts=("overlap",)))


def test_sets_and_tokens_of_files_are_counted():
    sample = sample_of(RECORDS, RECORDS.slice(0, 3))
    assert (sample.count("set"), sample.lake_pairs("token")) == (3, 4)
    assert [tokens.to_pylist() for tokens in sample.values("token")] == [["7", "80", "7"], ["7"]]
    costs = estimate(sample).fields["equal_text"]
    assert (costs["columns"], costs["tokens"], costs["pairs"], costs["shards"]) == (3, 2, 4, 1)
    name_bytes = (3 * len("a.csv") + 2 * len("id") + len("né".encode())) / 3
    counts = {"columns": 3, "pairs": 4, "tokens_written": 2}
    assert costs["bytes"] == parts_bytes(
        ("overlap",), **counts, token_bytes=1.5, name_bytes=name_bytes
    )


def test_a_larger_lake_has_more_sets_and_pairs():
    costs = estimate(sample_of(RECORDS, RECORDS.slice(0, 3), scale=3)).fields["equal_text"]
    assert (costs["columns"], costs["pairs"]) == (9, 12)


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
