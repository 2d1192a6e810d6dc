"""An index that was written once is read as it was: its format does not change unnoticed."""

import shutil
from pathlib import Path

import numpy as np

from pexeso.store.integrity import check_store
from pexeso.store.local.reader import open_store
from pexeso.store.manifest import FORMAT_VERSION

STORED = Path(__file__).parent / "data" / f"format_{FORMAT_VERSION}"


def test_a_stored_index_is_read_as_it_was_written(arrays_of) -> None:
    store = open_store(STORED)
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
    assert check_store(STORED) == []


def test_a_stored_index_can_be_replaced(tmp_path: Path, build_index) -> None:
    shutil.copytree(STORED, tmp_path / "lake")
    assert build_index(tmp_path / "lake", seed=4, overwrite=True).generation == 2
    assert check_store(tmp_path / "lake") == []
