"""What stages cost: fixed parts, parts that grow, and the machine that it is measured on."""

import pytest

from pexeso.build.job import stage_names
from pexeso.build.parts.sample import (
    FIXED_SECONDS,
    SECONDS_PER_POSTING,
    machine_factor,
    shared_seconds,
)
from pexeso.composite.part import ROW_KEYS_PART
from pexeso.composite.part import write as row_keys
from pexeso.redundancy.part import ROW_HASHES_PART
from pexeso.redundancy.part import write as row_hashes
from pexeso.semantic.part import SEMANTIC_PART
from pexeso.semantic.part import estimate as semantic
from pexeso.semantic.part.estimate import Costs, TimedRun, partition_seconds, training_seconds
from pexeso.sets.part import TOKEN_SETS_PART
from pexeso.sets.part import write as token_sets
from pexeso.sets.part.write import TokenSetsEstimate, shard_seconds

NOTHING = Costs(0, 0, 0, 0, 0, 0)
SMALLEST = {
    "postings": 0,
    "values": 0,
    "index_bytes": 0,
    "partitions": 1,
    "cores": 2,
    "factor": 1.0,
}


def test_the_stages_are_those_of_a_build():
    assert set(FIXED_SECONDS) == {*stage_names()} - {
        "changes",
        *(*SEMANTIC_PART.stages, *TOKEN_SETS_PART.stages),
        *(*ROW_KEYS_PART.stages, *ROW_HASHES_PART.stages),
    }
    assert tuple(semantic.FIXED_SECONDS) == SEMANTIC_PART.stages
    assert tuple(token_sets.FIXED_SECONDS) == TOKEN_SETS_PART.stages
    assert tuple(row_keys.FIXED_SECONDS) == ("read", *ROW_KEYS_PART.stages)
    assert tuple(row_hashes.FIXED_SECONDS) == ("read", *ROW_HASHES_PART.stages)


def test_a_shard_is_built_by_one_core_and_signatures_cost_more():
    def extra(parts, shards):
        seconds = shard_seconds(TokenSetsEstimate(parts, pairs=4 * 10**6, shards=shards), 4)
        return {stage: seconds[stage] - fixed for stage, fixed in token_sets.FIXED_SECONDS.items()}

    one, three = extra(("overlap",), 1), extra(("overlap",), 3)
    signed = extra(("overlap", "containment", "bands"), 1)
    assert three["tokens"] == pytest.approx(one["tokens"] / 3)
    assert signed["tokens"] > one["tokens"] > 0
    assert one["divide"] == three["divide"] == signed["divide"]


def test_what_was_measured_is_divided_among_the_cores_that_can_help():
    measured = Costs(0, 0, train_seconds=7, embed_seconds=4, index_seconds=6, partition_seconds=1)
    extra = {
        partitions: {
            stage: seconds - semantic.FIXED_SECONDS.get(stage, 0)
            for stage, seconds in partition_seconds(
                measured, **{**SMALLEST, "values": 1, "partitions": partitions, "cores": 4}
            ).items()
        }
        for partitions in (1, 3, 9)
    }
    read = (
        shared_seconds(read=10, tables=0, postings=0, cores=4, factor=1.0)["read"]
        - FIXED_SECONDS["read"]
    )
    assert (read, extra[1]["train"], extra[1]["embed"]) == pytest.approx((2.5, 7, 1))
    # One partition keeps one core busy; nine keep four, in three rounds.
    assert [extra[partitions]["index"] for partitions in (1, 3, 9)] == pytest.approx(
        [6 + 1, 2 + 1, 1.5 + 3]
    )


def test_a_busier_machine_takes_longer_for_the_same_work():
    larger = {**SMALLEST, "postings": 10**6, "values": 10**5, "partitions": 4}
    once, twice = (
        partition_seconds(NOTHING, **{**larger, "factor": factor}) for factor in (1.0, 2.0)
    )
    assert twice == pytest.approx({stage: 2 * seconds for stage, seconds in once.items()})
    once, twice = (
        shared_seconds(read=0, tables=10, postings=10**6, cores=2, factor=factor)
        for factor in (1.0, 2.0)
    )
    assert twice == pytest.approx({stage: 2 * seconds for stage, seconds in once.items()})
    assert once["catalog"] - FIXED_SECONDS["catalog"] == pytest.approx(
        SECONDS_PER_POSTING * 10**6 / 2
    )


def test_the_machine_is_measured():
    assert 0.01 < machine_factor(1) < 1000


def test_training_is_words_and_rows():
    short, long = TimedRun(2.0, 100, 50), TimedRun(5.0, 400, 50)
    assert training_seconds(short, long, words=1000, rows=50) == pytest.approx(11.0)
    assert training_seconds(short, long, words=1000, rows=100) == pytest.approx(12.0)
    assert training_seconds(TimedRun(6.0, 100, 50), long, words=800, rows=50) == pytest.approx(10.0)
