"""Indexes over mapped files: heads, pages, and what is held in memory."""

import mmap
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples
from overlap_lakes import brute_force, index_of, query_of, random_lake, random_query

from pexeso.errors import IndexCorruptError
from pexeso.sets.overlap import dictionary as paging
from pexeso.sets.overlap.batched import BatchedMergeList
from pexeso.sets.overlap.dictionary import (
    PAGE_BYTES,
    STRIDE,
    Dictionary,
    Heads,
    MappedRuns,
    heads_of,
)
from pexeso.sets.overlap.index import build_index, check_overlap, open_index, save_index
from pexeso.sets.overlap.josie import josie
from pexeso.sets.overlap.planner import merge_list


def saved(tmp_path, index):
    save_index(index, tmp_path)
    return open_index(tmp_path)


@settings(max_examples=examples(60), deadline=None)
@given(n=st.integers(1, 5 * STRIDE), seed=st.integers(0, 2**32 - 1), letters=st.integers(1, 4))
def test_heads_find_what_is_found_without_them(n, seed, letters):
    rng = np.random.default_rng(seed)
    drawn = [
        "".join("abcdefé"[letter] for letter in rng.integers(0, 7, rng.integers(1, letters + 4)))
        for _ in range(n)
    ]
    texts = pa.array(sorted(set(drawn)), pa.large_string())
    numbers = rng.permutation(len(texts))
    plain, headed = Dictionary(texts, numbers), Dictionary(texts, numbers, heads_of(texts))
    others = pa.array([*(text + "b" for text in drawn[:50]), "", "z", "a"])
    number_of = dict(zip(texts.to_pylist(), numbers.tolist(), strict=True))
    expected = [number_of.get(text, -1) for text in others.to_pylist()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MappedRuns, "requests_pages", True)
        assert headed.find(texts).tolist() == numbers.tolist()
        assert headed.find(others).tolist() == plain.find(others).tolist() == expected


@pytest.mark.parametrize("n", [0, 1, STRIDE - 1, STRIDE, STRIDE + 1, 3 * STRIDE])
def test_every_text_is_found_around_the_ends_of_stretches(tmp_path, n):
    texts = pa.array([f"{number:06}" for number in range(n)], pa.large_string())
    opened = saved(tmp_path, build_index(np.zeros(n, np.int64), texts))
    assert len(opened.dictionary.heads.texts) == -(-n // STRIDE)
    assert (opened.find(texts) == opened.dictionary.numbers).all()
    assert opened.find(pa.array(["00", "000000x", "9"])).tolist() == [-1, -1, -1]
    assert check_overlap(opened) == []


def test_pages_of_a_stretch_are_asked_for(tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    texts = pa.array(
        sorted({f"{number:x}" * int(rng.integers(1, 4)) for number in range(5000)}),
        pa.large_string(),
    )
    opened = saved(tmp_path, build_index(np.zeros(len(texts), np.int64), texts))
    pages = {"texts": set(), "numbers": set()}

    def want(self, name, begins, ends):
        row_bytes, offset = self._arrays[name].strides[0], self._arrays[name].offset
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            pages[name] |= set(
                range(
                    (offset + begin * row_bytes) // PAGE_BYTES,
                    -(-(offset + end * row_bytes) // PAGE_BYTES),
                )
            )

    monkeypatch.setattr(MappedRuns, "want", want)
    heads, row = opened.dictionary.heads, 2345
    assert opened.find(texts.slice(row, 1)).tolist() == [opened.dictionary.numbers[row]]
    offsets, letters = (
        np.frombuffer(part, kind)
        for part, kind in zip(
            opened.dictionary.texts.buffers()[1:], (np.int64, np.uint8), strict=True
        )
    )
    at = [
        heads.offsets_at + 8 * row,
        heads.offsets_at + 8 * row + 15,
        heads.letters_at + offsets[row],
        heads.letters_at + offsets[row + 1] - 1,
    ]
    assert {int(place) // PAGE_BYTES for place in at} <= pages["texts"]
    assert {(128 + 4 * row) // PAGE_BYTES} <= pages["numbers"]
    assert len(pages["texts"]) < 8
    whole = (tmp_path / "texts.arrow").read_bytes()
    assert whole[at[2] : at[3] + 1].decode() == texts[row].as_py()
    assert len(letters) == heads.positions[-1]


def test_heads_that_were_changed_are_noticed(tmp_path):
    index = index_of(random_lake(np.random.default_rng(2)))
    opened = saved(tmp_path, index)
    texts = opened.dictionary.texts
    for heads in (
        Heads(texts.slice(1, 1), heads_of(texts).positions),
        Heads(texts.slice(0, 1), np.array([0, 1])),
    ):
        spoilt = replace(index, dictionary=Dictionary(texts, opened.dictionary.numbers, heads))
        assert check_overlap(spoilt) == [
            "The token sets: heads: they must be every 128th text, and where its letters begin."
        ]
    (tmp_path / "head_places.npy").unlink()
    np.save(tmp_path / "head_places.npy", np.zeros(9, np.int64))
    with pytest.raises(IndexCorruptError):
        open_index(tmp_path)


@pytest.mark.parametrize("shift", [0, 5])
def test_ids_and_sets_are_those_of_the_files(tmp_path, shift):
    sets = {number + shift: tokens for number, tokens in enumerate(["ab", "bcd", "d"])}
    index = index_of(sets)
    opened = saved(tmp_path, index)
    assert isinstance(opened.set_offsets.base, np.memmap | mmap.mmap)
    assert opened.ids_are_numbers == (shift == 0)
    numbers = np.array([2, 0])
    assert opened.ids_of(numbers).tolist() == index.ids_of(numbers).tolist() == [2 + shift, shift]
    wanted = np.array([shift, shift + 2, 99, -1])
    assert opened.numbers_of(wanted).tolist() == index.numbers_of(wanted).tolist() == [0, 2]
    assert opened.suffix(1, 1).tolist() == index.suffix(1, 1).tolist()
    tokens = np.arange(index.n_tokens)
    assert opened.frequencies(tokens).tolist() == index.frequencies(tokens).tolist()
    assert opened.groups.tolist() == index.groups.tolist()


def test_held_offsets_that_lead_out_are_refused():
    index = index_of({1: "ab", 2: "b"})
    index.held_set_offsets[1] = 100
    with pytest.raises(IndexCorruptError, match="lead out of it at row 0"):
        index.suffix(0, 0)


def requested(array, begins, ends):
    requests, pages = [], paging.MappedRuns({})
    base = SimpleNamespace(madvise=lambda _, first, n_bytes: requests.append((first, n_bytes)))
    view = SimpleNamespace(
        base=base, strides=array.strides, offset=array.offset, nbytes=array.nbytes
    )
    pages._arrays = {"rows": view}
    pages.want("rows", begins, ends)
    return requests


def test_requests_cover_each_page_of_each_run_once(tmp_path):
    np.zeros(10**6, np.int32).tofile(tmp_path / "rows")
    array = np.memmap(tmp_path / "rows", np.int32, "r", offset=128)
    rng = np.random.default_rng(0)
    for _ in range(50):
        begins = rng.integers(0, len(array), int(rng.integers(0, 30)))
        ends = np.minimum(
            begins + rng.integers(0, 10 ** int(rng.integers(1, 6)), len(begins)), len(array)
        )
        requests = requested(array, begins, ends)
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
        texts = random_query(rng, sets)
        query = query_of(index, texts)
        assert (
            josie(index, query, 5).pairs()
            == merge_list(index, query, 5).pairs()
            == brute_force(sets, texts, 5)
        )
    assert index.pages.requests_pages == missing
    [answer] = BatchedMergeList(index).search([query], 5, [()])
    assert answer.pairs() == brute_force(sets, texts, 5)


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
