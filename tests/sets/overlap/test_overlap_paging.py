"""Tests of index pages on disk: requests cover the reads, and answers do not depend on them."""

import mmap

import numpy as np
import pytest
from overlap_lakes import brute_force, index_of, random_lake, random_query

from pexeso.sets.overlap.batched import BatchedMergeList
from pexeso.sets.overlap.index import paging
from pexeso.sets.overlap.index.saving import open_index, save_index
from pexeso.sets.overlap.josie import josie
from pexeso.sets.overlap.merge import merge_list


def test_requests_cover_each_page_of_each_run_once(tmp_path):
    np.zeros(10**6, np.int32).tofile(tmp_path / "rows")
    array = np.memmap(tmp_path / "rows", np.int32, "r", offset=128)
    rng = np.random.default_rng(0)
    for _ in range(50):
        begins = rng.integers(0, len(array), int(rng.integers(0, 30)))
        ends = np.minimum(
            begins + rng.integers(0, 10 ** int(rng.integers(1, 6)), len(begins)), len(array)
        )
        requests = paging._requests(begins, ends, array)
        pages = [
            page
            for first, n_bytes in requests
            for page in range(first // 4096, -(-(first + n_bytes) // 4096))
        ]
        assert len(pages) == len(set(pages))
        assert all(
            first % mmap.PAGESIZE == 0 and 0 < n_bytes <= 128 << 10 for first, n_bytes in requests
        )
        read = {
            (128 + 4 * row) // 4096
            for begin, end in zip(begins, ends, strict=True)
            for row in range(begin, end)
        }
        assert read <= set(pages)


@pytest.mark.parametrize("missing", [True, False])
def test_answers_are_the_same_with_pages_asked_for_and_without(tmp_path, missing, monkeypatch):
    monkeypatch.setattr(paging.DiskWatch, "missing", lambda self: missing)
    rng = np.random.default_rng(1)
    sets = random_lake(rng)
    save_index(index_of(sets), tmp_path)
    index = open_index(tmp_path)
    assert index.pages.requests_pages
    for _ in range(5):
        query = random_query(rng, sets)
        assert (
            josie(index, query, 5).pairs()
            == merge_list(index, query, 5).pairs()
            == brute_force(sets, query, 5)
        )
    assert index.pages.requests_pages == missing
    assert BatchedMergeList(index).search([query], 5)[0].pairs() == brute_force(sets, query, 5)


def test_what_is_no_mapped_file_is_passed_over():
    pages = paging.MappedRuns({"rows": np.arange(3)})
    pages.want("rows", np.array([0]), np.array([3]))
    pages.want("others", np.array([0]), np.array([3]))
    pages.restart()
    assert not pages.requests_pages


def test_pages_that_were_asked_for_count_as_read(monkeypatch):
    blocks = [0]
    monkeypatch.setattr(paging, "usage", lambda field: blocks[0])
    monkeypatch.setattr(paging.FaultWatch, "missing", lambda self: False)
    watch = paging.DiskWatch()
    watch.restart()
    assert not watch.missing()
    blocks[0] = 8 * mmap.PAGESIZE // 512
    assert not watch.missing()
    blocks[0] += 1
    assert watch.missing()
    watch.restart()
    assert not watch.missing()
