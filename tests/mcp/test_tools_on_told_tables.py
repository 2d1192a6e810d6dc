"""Tools read a table of the lake as the index did: the settings of the lake say how."""

import pytest

from pexeso.mcp.asking import Desk

pytestmark = pytest.mark.spark


def test_agents_are_answered_alike(told_index, caller_of):
    call = caller_of(Desk.of(str(told_index)))
    found = call("find_joins", column="sub/told.csv:city")
    assert [each["lake_column"] for each in found["candidates"]] == ["cities.csv:name"]
    keys = call("find_composite_joins", table="sub/told.csv", key=["city", "year"])
    assert [each["table"] for each in keys["candidates"]] == ["cities.csv"]
