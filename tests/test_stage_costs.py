"""What stages cost: fixed parts, parts that grow, and the machine that it is measured on."""

import pytest

from pexeso import pipeline
from pexeso.equal_text.layout import TOKEN_STAGES
from pexeso.measuring import TimedRun, training_seconds
from pexeso.part_costs import PartsEstimate
from pexeso.stage_costs import (
    FIXED_SECONDS,
    PART_STAGES,
    SECONDS_OF_TOKENS_IN_READ,
    SECONDS_PER_POSTING,
    SECONDS_PER_SIGNED_PAIR,
    SECONDS_PER_TOKEN_PAIR,
    SIGNING_SECONDS,
    STAGES,
    Measured,
    machine_factor,
    stage_seconds,
)

NOTHING = Measured(0, 0, 0, 0, 0)
SMALLEST = {
    "tables": 0,
    "postings": 0,
    "values": 0,
    "index_bytes": 0,
    "model_bytes": 0,
    "partitions": 1,
    "cores": 2,
    "factor": 1.0,
}


def test_the_smallest_lake_costs_what_every_build_does():
    every = stage_seconds(NOTHING, **SMALLEST, equal_text=PartsEstimate(("overlap",)))
    assert every == {**FIXED_SECONDS, "read": FIXED_SECONDS["read"] + SECONDS_OF_TOKENS_IN_READ}
    assert tuple(FIXED_SECONDS) == STAGES
    without = stage_seconds(NOTHING, **SMALLEST)
    assert without == {stage: seconds for stage, seconds in FIXED_SECONDS.items() if stage not in PART_STAGES}


def test_the_stages_are_those_of_a_build():
    assert ("start", *pipeline.STAGES) == STAGES
    assert PART_STAGES == TOKEN_STAGES


def test_a_shard_is_built_by_one_core_and_signatures_cost_more():
    def extra(parts, shards, pairs=4 * 10**6):
        asked = {**SMALLEST, "cores": 4, "equal_text": PartsEstimate(parts, pairs=pairs, shards=shards)}
        return {stage: seconds - FIXED_SECONDS[stage] for stage, seconds in stage_seconds(NOTHING, **asked).items()}

    one, three = extra(("overlap",), 1), extra(("overlap",), 3)
    assert one["tokens"] == pytest.approx(4 * 10**6 * SECONDS_PER_TOKEN_PAIR["tokens"])
    assert three["tokens"] == pytest.approx(one["tokens"] / 3)
    assert one["divide"] == three["divide"] == pytest.approx(10**6 * SECONDS_PER_TOKEN_PAIR["divide"])
    signed = extra(("overlap", "containment"), 1)
    assert signed["tokens"] - one["tokens"] == pytest.approx(SIGNING_SECONDS + 4 * 10**6 * SECONDS_PER_SIGNED_PAIR)
    assert signed["divide"] == one["divide"]


def test_what_was_measured_is_divided_among_the_cores_that_can_help():
    measured = Measured(read=10, train=7, embed=4, index=6, each_partition=1)
    extra = {
        partitions: {
            stage: seconds - FIXED_SECONDS[stage]
            for stage, seconds in stage_seconds(measured, **{**SMALLEST, "partitions": partitions, "cores": 4}).items()
        }
        for partitions in (1, 3, 9)
    }
    assert (extra[1]["read"], extra[1]["train"], extra[1]["embed"]) == pytest.approx((2.5, 7, 1))
    # One partition keeps one core busy; nine keep four, in three rounds.
    assert [extra[partitions]["index"] for partitions in (1, 3, 9)] == pytest.approx([6 + 1, 2 + 1, 1.5 + 3])


def test_a_busier_machine_takes_longer_for_what_spark_does():
    once = stage_seconds(NOTHING, **{**SMALLEST, "tables": 10, "postings": 10**6, "values": 10**5, "partitions": 4})
    twice = stage_seconds(
        NOTHING, **{**SMALLEST, "tables": 10, "postings": 10**6, "values": 10**5, "partitions": 4, "factor": 2.0}
    )
    assert twice == pytest.approx({stage: 2 * seconds for stage, seconds in once.items()})
    assert once["catalog"] - FIXED_SECONDS["catalog"] == pytest.approx(SECONDS_PER_POSTING["catalog"] * 10**6 / 2)


def test_the_machine_is_measured():
    assert 0.01 < machine_factor(1) < 1000


def test_training_is_words_and_rows():
    short, long = TimedRun(2.0, 100, 50), TimedRun(5.0, 400, 50)
    assert training_seconds(short, long, words=1000, rows=50) == pytest.approx(11.0)
    assert training_seconds(short, long, words=1000, rows=100) == pytest.approx(12.0)
    assert training_seconds(TimedRun(6.0, 100, 50), long, words=800, rows=50) == pytest.approx(10.0)
