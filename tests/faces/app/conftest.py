"""The app of the small index."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from app_clients import AppClient, app_of


@pytest.fixture
def visitor(small_index: Path) -> Iterator[AppClient]:
    """Return a client that has not used the link."""
    with app_of(small_index) as client:
        yield client


@pytest.fixture
def client(visitor: AppClient) -> AppClient:
    """Return a client with a session."""
    return visitor.enter()
