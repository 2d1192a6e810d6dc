"""Counters add up."""

from dataclasses import fields

from pexeso.engine.stats import SearchStats


def filled(number: int) -> SearchStats:
    stats = SearchStats(
        **{
            field.name: number * place
            for place, field in enumerate(fields(SearchStats))
            if field.name != "seconds"
        }
    )
    stats.add_seconds("map", 0.25 * number)
    stats.add_seconds("map", 0.25)
    return stats


def test_adding_adds_every_counter_and_every_phase():
    total = filled(1)
    total.add(filled(2))
    total.add(SearchStats(seconds={"open": 1.0}))
    expected = {
        field.name: 3 * place
        for place, field in enumerate(fields(SearchStats))
        if field.name != "seconds"
    }
    assert total.to_dict() == {**expected, "seconds": {"map": 1.25, "open": 1.0}}


def test_searches_do_not_share_their_seconds():
    first = SearchStats()
    first.add_seconds("map", 1.0)
    assert SearchStats().seconds == {}
    assert SearchStats(seconds={"map": 1.23456789}).to_dict()["seconds"] == {"map": 1.234568}
