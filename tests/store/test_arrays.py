import errno
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from long_runs import examples

from pexeso.errors import IndexCorruptError, OutputError
from pexeso.store.arrays import DTYPES, open_array, write_arrays
from pexeso.store.files import checksum_file


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("arrays")


shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)


@given(st.sampled_from(DTYPES).flatmap(lambda name: hnp.arrays(name, shapes)), st.booleans())
@settings(max_examples=examples(150), deadline=None)
def test_an_array_comes_back_as_it_was(folder: Path, array: np.ndarray, turned: bool) -> None:
    array = array.T if turned else array
    (folder / "array.npy").unlink(missing_ok=True)
    [entry] = write_arrays(folder, {"array": array})
    path = folder / "array.npy"
    back = open_array(path, entry.n_bytes)
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert back.tobytes() == array.tobytes()
    assert back.flags.c_contiguous
    assert not back.flags.writeable
    assert (entry.n_bytes, entry.checksum) == checksum_file(path)
    assert np.load(path).tobytes() == array.tobytes()  # a plain .npy file to everybody else


def test_arrays_larger_than_a_chunk_and_of_the_other_byte_order(tmp_path: Path) -> None:
    arrays = {
        "large": np.arange(400_000),
        "strided": np.arange(400_000)[::2],
        "other": np.arange(5, dtype=">i4"),
    }
    for entry, array in zip(write_arrays(tmp_path, arrays), arrays.values(), strict=True):
        assert (entry.n_bytes, entry.checksum) == checksum_file(tmp_path / entry.path)
        np.testing.assert_array_equal(open_array(tmp_path / entry.path, entry.n_bytes), array)


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(b"mine")
    with pytest.raises(OutputError, match=r"a\.npy' cannot be written: File exists"):
        write_arrays(tmp_path, {"a": np.zeros(3)})
    assert (tmp_path / "a.npy").read_bytes() == b"mine"


def test_a_full_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        OutputError, match=r"^No space is left where '.*a\.npy' is being written: free some"
    ):
        write_arrays(tmp_path, {"a": np.zeros(3)})


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_really_full_disk_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_open = open
    monkeypatch.setattr("builtins.open", lambda path, mode: real_open("/dev/full", "wb"))
    with pytest.raises(OutputError, match=r"^No space is left"):
        write_arrays(tmp_path, {"a": np.zeros(30_000)})


def npy(tmp_path: Path, array: np.ndarray, **save) -> Path:
    path = tmp_path / "a.npy"
    np.save(path, array, **save)
    return path


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(IndexCorruptError, match=r"a\.npy' cannot be opened: No such file"):
        open_array(tmp_path / "a.npy")


@pytest.mark.parametrize(
    "array", [np.array(["x"]), np.zeros(3, ">f4"), np.zeros((2, 3)).T, np.zeros(2, "c16")]
)
def test_arrays_of_other_kinds_are_refused(tmp_path: Path, array: np.ndarray) -> None:
    with pytest.raises(IndexCorruptError, match="not an array that pexeso wrote"):
        open_array(npy(tmp_path, array))


def test_nothing_is_ever_unpickled(tmp_path: Path) -> None:
    path = npy(tmp_path, np.array([print], dtype=object), allow_pickle=True)
    with pytest.raises(IndexCorruptError, match="its header is not readable"):
        open_array(path)


def test_lengths_that_do_not_fit_are_told(tmp_path: Path) -> None:
    path = npy(tmp_path, np.arange(10))
    whole = path.read_bytes()
    assert len(whole) == 208
    path.write_bytes(whole[:-8])
    with pytest.raises(
        IndexCorruptError, match=r"has 200 bytes, but 208 bytes are expected.*pexeso check"
    ):
        open_array(path, 208)
    path.write_bytes(whole + b"x")
    with pytest.raises(IndexCorruptError, match="has 209 bytes, but 208 bytes are expected"):
        open_array(path, 209)
    path.write_bytes(whole)
    with pytest.raises(IndexCorruptError, match="has 208 bytes, but 300 bytes are expected"):
        open_array(path, 300)


@pytest.mark.parametrize(
    "shape",
    [
        "(10**9,)",
        "(-1,)",
        "(True,)",
        "(1.0,)",
        "10",
        "(9999999999999999999999999, 0)",
        "(0, 2147483648, 2147483648)",
        "(1,)*99",
        "()()",
    ],
)
def test_odd_shapes_are_refused(tmp_path: Path, shape: str) -> None:
    header = b"{'descr': '<i8', 'fortran_order': False, 'shape': " + shape.encode() + b", }\n"
    path = tmp_path / "a.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(80))
    with pytest.raises(IndexCorruptError):
        open_array(path)


def opened_or_error(path: Path, n_bytes: int) -> np.ndarray | IndexCorruptError:
    try:
        return open_array(path, n_bytes)
    except IndexCorruptError as error:
        return error


@given(st.integers(0, 127), st.integers(1, 255))
@settings(max_examples=examples(300), deadline=None)
def test_a_flip_in_the_header_gives_an_array_or_one_sentence(
    folder: Path, position: int, flip: int
) -> None:
    path = folder / "flipped.npy"
    np.save(path, np.arange(10))
    data = bytearray(path.read_bytes())
    data[position] ^= flip
    path.write_bytes(data)
    outcome = opened_or_error(path, len(data))
    if isinstance(outcome, IndexCorruptError):
        assert "flipped.npy" in str(outcome)
    else:
        assert outcome.nbytes == 80
