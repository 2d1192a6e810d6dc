"""A budget of memory is refused on the CPU where a search would not keep it."""

from pathlib import Path

import pytest

from pexeso import build_index, open_index
from pexeso.errors import InputError


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake = tmp_path_factory.mktemp("lake")
    (lake / "a.csv").write_text("town,n\nOslo,1\nRome,2\nBern,3\nBonn,4\nLyon,5\n")
    return lake


def test_a_lexical_model_takes_none(lake: Path, tmp_path: Path) -> None:
    build_index(lake, tmp_path / "x.pexeso")
    with pytest.raises(InputError, match=r"compares spellings on the CPU.* Leave it out\.$"):
        open_index(tmp_path / "x.pexeso", device="cpu", memory_budget="8GiB")


def test_a_dense_model_takes_what_can_be_kept(lake: Path, tmp_path: Path) -> None:
    build_index(lake, tmp_path / "x.pexeso", model="hashing", dimensions=16)
    with pytest.raises(InputError, match=r"at least 140\.0 MiB on the CPU.* Got 32\.0 MiB\.$"):
        open_index(tmp_path / "x.pexeso", device="cpu", memory_budget="32MiB")
    index = open_index(tmp_path / "x.pexeso", device="cpu", memory_budget="140MiB")
    assert index.search(["Oslo"], min_joinability=1)[0].table == "a.csv"
