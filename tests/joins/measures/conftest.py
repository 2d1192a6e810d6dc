"""Fewer bins of numbers, so that small tables have full ones."""

import pytest

from pexeso.joins import measures


@pytest.fixture
def three_bins(monkeypatch):
    monkeypatch.setattr(measures, "Y_BINS", 3)
