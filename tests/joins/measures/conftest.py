"""Fewer bins of numbers, so that small tables have full ones."""

import pytest

from pexeso.joins.measures import correlation


@pytest.fixture
def three_bins(monkeypatch):
    monkeypatch.setattr(correlation, "Y_BINS", 3)
