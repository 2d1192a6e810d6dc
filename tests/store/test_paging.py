"""Tests of pages of mapped arrays: which rows lie on which, and that few rows read few pages."""

import itertools
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pexeso.store.arrays import (
    PAGE_BYTES,
    FaultWatch,
    MappedPages,
    open_array,
    page_runs,
    write_arrays,
)


@given(
    st.lists(st.integers(-5, 500), max_size=20),
    st.integers(1, 3 * PAGE_BYTES),
    st.sampled_from([0, 128, PAGE_BYTES]),
)
def test_runs_of_pages_are_those_of_the_bytes_of_the_rows(rows, row_bytes, offset):
    n_rows = 400
    expected = {
        page
        for row in rows
        if 0 <= row < n_rows
        for page in range(
            (offset + row * row_bytes) // PAGE_BYTES,
            (offset + (row + 1) * row_bytes - 1) // PAGE_BYTES + 1,
        )
    }
    runs = page_runs(np.array(rows, dtype=np.int64), n_rows, row_bytes, offset)
    pages = [page for first, last in runs for page in range(first, last + 1)]
    assert sorted(expected) == pages
    assert all(first > last + 1 for (_, last), (first, _) in itertools.pairwise(runs))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_rows_beyond_two_gib_of_a_file_are_found_whatever_counts_them(dtype):
    rows = np.array([1, 1_900_000, 1_900_002], dtype=dtype)
    runs = page_runs(rows, 2_000_000, 1_200, 128)
    byte = 128 + 1_900_000 * 1_200
    assert byte > 2**31
    assert runs[0] == (0, 0)
    assert runs[1] == (byte // PAGE_BYTES, (byte + 3 * 1_200 - 1) // PAGE_BYTES)
    assert page_runs(rows[:0], 2_000_000, 1_200, 128) == []


def bytes_from_disk() -> int:
    with open("/proc/self/io", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("read_bytes"))


@pytest.fixture
def cold(tmp_path):
    """An array of 32 MiB in a file of which nothing is in memory."""
    write_arrays(tmp_path, {"numbers": np.arange(4 << 20)})
    path = tmp_path / "numbers.npy"
    descriptor = os.open(path, os.O_RDONLY)
    os.fdatasync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    before = bytes_from_disk()
    os.pread(descriptor, 1, 31 << 20)
    read = bytes_from_disk() - before
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)
    if not read:
        pytest.skip("this file system keeps files in memory, or does not tell what it reads")
    return open_array(path)


def test_one_number_reads_one_page_and_what_is_asked_for_is_there_when_it_is_read(cold):
    watch = FaultWatch()
    pages = MappedPages({"numbers": cold, "other": np.arange(3)}, watch)
    before = bytes_from_disk()
    assert cold[1 << 20] == 1 << 20
    assert bytes_from_disk() - before <= 4 * PAGE_BYTES
    rows = np.arange(0, 1 << 21, 1 << 16)
    before = bytes_from_disk()
    pages.want("numbers", rows)
    pages.want("other", rows)
    pages.want("none", rows)
    assert len(rows) * PAGE_BYTES // 2 <= bytes_from_disk() - before <= (len(rows) + 4) * PAGE_BYTES
    read = bytes_from_disk()
    assert cold[rows].tolist() == rows.tolist()
    assert bytes_from_disk() == read


def test_missing_pages_are_noticed(cold):
    watch = FaultWatch()
    MappedPages({"numbers": cold}, watch)
    watch.restart()
    assert not watch.missing()
    assert cold[:: 1 << 15].sum() > 0
    assert watch.missing()
    watch.restart()
    assert not watch.missing()
