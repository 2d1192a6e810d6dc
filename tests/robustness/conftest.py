"""The index that is harmed has every part for equal values."""

from pathlib import Path

import pytest

from pexeso.index import build_index


@pytest.fixture(scope="session")
def small_index(small_lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Index the small lake with bands beside the posting lists; return the index folder."""
    path = tmp_path_factory.mktemp("banded_index") / "lake.pexeso"
    return build_index(small_lake, path, model="hashing", dimensions=64, parts=["bands"]).path
