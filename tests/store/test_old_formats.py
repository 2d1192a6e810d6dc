import shutil
from pathlib import Path

import numpy as np
import pytest

from pexeso.store.integrity import check_store
from pexeso.store.local.reader import open_store
from pexeso.store.manifest import FORMAT_VERSION, OLDEST_VERSION

DATA = Path(__file__).parent / "data"


def test_every_format_version_has_its_index() -> None:
    versions = sorted(int(path.name.removeprefix("format_")) for path in DATA.glob("format_*"))
    assert versions == list(range(OLDEST_VERSION, FORMAT_VERSION + 1))


@pytest.mark.parametrize("version", range(OLDEST_VERSION, FORMAT_VERSION + 1))
def test_an_old_index_is_read_as_it_was_written(version: int, arrays_of) -> None:
    store = open_store(DATA / f"format_{version}")
    assert store.manifest.format_version == version
    assert store.manifest.options == {"seed": 1}
    for number in range(2):
        # These two are the same in every version of NumPy's generators, the others need not be.
        for name in ("kept", "seed"):
            np.testing.assert_array_equal(
                store.array(number, name), arrays_of(number + 1)[name], strict=True
            )
        assert store.array(number, "vectors").shape == (7, 3)
        assert store.texts(number, "values").to_pylist() == ["oslo", "lima", str(number + 1)]
        assert store.document(number) == {"seed": number + 1}
    assert check_store(DATA / f"format_{version}") == []


def test_an_old_index_can_be_replaced(tmp_path: Path, build_index) -> None:
    shutil.copytree(DATA / "format_3", tmp_path / "lake")
    assert build_index(tmp_path / "lake", seed=4, overwrite=True).generation == 2
    assert check_store(tmp_path / "lake") == []
