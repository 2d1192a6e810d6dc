"""Tools read a table of the lake as the index did: the settings of the lake say how."""

import pytest

from pexeso.faces.mcp.asking import Desk

pytestmark = pytest.mark.spark


def test_agents_are_answered_alike(told_index, caller_of):
    call = caller_of(Desk.of(str(told_index)))
    joins = call("find_joins", column="sub/told.csv:city")
    assert [candidate["lake_column"] for candidate in joins["candidates"]] == ["cities.csv:name"]
    keys = call("find_composite_joins", table="sub/told.csv", key=["city", "year"])
    assert [candidate["table"] for candidate in keys["candidates"]] == ["cities.csv"]
