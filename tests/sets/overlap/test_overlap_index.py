"""The index: invariants, the worked lake, order of tokens, mapped files, and what is refused."""

import mmap
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples
from overlap_lakes import (
    brute_force,
    by_text,
    index_of,
    number,
    pairs_of,
    query_of,
    random_lake,
    random_query,
)

from pexeso.errors import IndexCorruptError, OutputError
from pexeso.sets.overlap import dictionary as paging
from pexeso.sets.overlap import index as module
from pexeso.sets.overlap.batched import BatchedMergeList
from pexeso.sets.overlap.dictionary import (
    PAGE_BYTES,
    STRIDE,
    Dictionary,
    Heads,
    MappedRuns,
    heads_of,
)
from pexeso.sets.overlap.index import (
    ARRAYS,
    build_index,
    check_overlap,
    duplicate_groups,
    global_order,
    hash_lists,
    open_index,
    save_index,
)
from pexeso.sets.overlap.josie import josie
from pexeso.sets.overlap.planner import merge_list


def test_w1_frequencies_ascend_in_the_global_order():
    index = index_of({1: "abc", 2: "bcd", 3: "dxy"})
    frequencies = index.frequencies(np.arange(index.n_tokens))
    assert sorted(frequencies.tolist()) == frequencies.tolist() == [1, 1, 1, 2, 2, 2]


def test_w8_blocks_end_where_groups_do():
    # Three tokens of one group, three alone, three of another: lists at places 1, 2, 7 and 8 are
    # skipped.
    sets = {n: [] for n in range(10)}
    for token, members in enumerate(
        [[0], [0], [0], [1], [2, 3], [4, 5], [6, 7, 8], [6, 7, 8], [6, 7, 8]]
    ):
        for member in members:
            sets[member].append(number(token))
    index = index_of({n: tokens for n, tokens in sets.items() if tokens}, order=by_text)
    query = query_of(index, [number(n) for n in range(9)])
    assert index.groups[query.tokens].tolist() == [0, 0, 0, 1, 2, 3, 4, 4, 4]
    assert query.ends.tolist() == [3, 4, 5, 6, 9]
    assert query.starts.tolist() == [1, 4, 5, 6, 7]
    assert (query.ends - query.starts + 1).tolist() == [3, 1, 1, 1, 3]


@pytest.mark.parametrize("seed", range(30))
def test_invariants_of_the_build(seed):
    sets = random_lake(np.random.default_rng(seed))
    index = index_of(sets)
    assert (
        index.token_offsets[-1]
        == index.set_offsets[-1]
        == sum(len(tokens) for tokens in sets.values())
    )
    lists = []
    for token in range(index.n_tokens):
        postings, _ = index.posting_lists(np.array([token]))
        assert (np.diff(postings.sets) > 0).all()
        for row, place, size in zip(*postings, strict=True):
            assert index.suffix(row, 0)[place] == token
            assert len(index.suffix(row, 0)) == size
        lists.append(tuple(postings.sets.tolist()))
    for token in range(1, index.n_tokens):
        assert (index.groups[token] == index.groups[token - 1]) == (
            lists[token] == lists[token - 1]
        )
    # Members of a group have identical lists, and no other token has that list: equal lists are
    # neighbours.
    assert len(set(lists)) == index.groups[-1] + 1
    texts = index.dictionary.texts.take(np.argsort(index.dictionary.numbers)).to_pylist()
    for set_id, tokens in sets.items():
        [row] = index.numbers_of([set_id])
        assert {texts[token] for token in index.suffix(row, 0)} == set(tokens)


def test_the_order_of_the_pairs_and_repeats_change_nothing():
    ids, tokens = pairs_of(random_lake(np.random.default_rng(5)))
    shuffled = np.random.default_rng(6).integers(0, len(ids), 4 * len(ids))
    shuffled = np.concatenate([shuffled, np.arange(len(ids))])
    one, other = (
        build_index(ids, tokens),
        build_index(ids[shuffled], pa.chunked_array([tokens.take(shuffled)])),
    )
    assert all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ARRAYS)
    assert one.dictionary.texts.equals(other.dictionary.texts)


def test_equal_hashes_of_different_lists_are_told_apart(monkeypatch):
    # Tokens a to f in the sets {1, 2}, {1, 3}, {1, 2}, {2, 3}, {1, 3}, {1, 2}, all with one hash.
    members = np.array([1, 2, 1, 3, 1, 2, 2, 3, 1, 3, 1, 2])
    offsets = np.arange(0, 13, 2)
    monkeypatch.setattr(module, "hash_lists", lambda offsets, _: np.zeros(len(offsets) - 1, int))
    order = global_order(offsets, members)
    assert order.tolist() == [0, 2, 5, 1, 4, 3]
    arranged = members.reshape(-1, 2)[order].reshape(-1)
    assert duplicate_groups(offsets, arranged).tolist() == [0, 0, 0, 1, 1, 2]


def test_long_lists_stay_out_of_groups(monkeypatch):
    assert index_of({1: "ab", 2: "ab", 3: "c"}).groups.tolist() == [0, 1, 1]
    monkeypatch.setattr(module, "MAX_GROUPED", 1)
    index = index_of({1: "ab", 2: "ab", 3: "c"})
    assert sorted(index.groups.tolist()) == [0, 1, 2]
    assert index.dictionary.find(pa.array(["a", "b"])).tolist() == [1, 2]


def test_hashes_do_not_hang_on_the_order_of_members():
    offsets = np.array([0, 3, 6])
    one, other = hash_lists(offsets, np.array([1, 2, 3, 3, 1, 2]))
    assert one == other


def test_the_dictionary_finds_what_it_has_and_nothing_else():
    texts = sorted(f"{n:b}" for n in range(100))
    dictionary = Dictionary(pa.array(texts, pa.large_string()), np.arange(100) * 3)
    wanted = [*texts, "", "2", "1a", "é"]
    assert dictionary.find(pa.array(wanted)).tolist() == [*range(0, 300, 3), -1, -1, -1, -1]
    assert dictionary.find(pa.array([], pa.string())).tolist() == []
    assert Dictionary(pa.array([], pa.large_string()), np.empty(0, np.int32)).find(
        pa.array(["a"])
    ).tolist() == [-1]


def test_an_index_comes_back_from_its_files_as_it_was(tmp_path):
    index = index_of(random_lake(np.random.default_rng(1)))
    entries = save_index(index, tmp_path)
    assert len(entries) == len(ARRAYS) + 4
    opened = open_index(tmp_path)
    assert all(np.array_equal(getattr(index, name), getattr(opened, name)) for name in ARRAYS)
    assert isinstance(opened.list_sets.base, np.memmap)
    assert opened.find(index.dictionary.texts).tolist() == index.dictionary.numbers.tolist()
    with pytest.raises(OutputError):
        save_index(index, tmp_path)


def test_an_empty_index_is_one(tmp_path):
    index = build_index(np.array([], dtype=np.int64), pa.array([], pa.string()))
    save_index(index, tmp_path)
    assert open_index(tmp_path).n_sets == open_index(tmp_path).n_tokens == 0
    assert open_index(tmp_path).find(pa.array(["a"])).tolist() == [-1]
    assert open_index(tmp_path).numbers_of([3]).tolist() == []


def test_files_of_two_indexes_are_refused(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    for folder, sets in ((one, {1: "ab"}), (other, {1: "abc"})):
        folder.mkdir()
        save_index(index_of(sets), folder)
    (one / "groups.npy").write_bytes((other / "groups.npy").read_bytes())
    with pytest.raises(IndexCorruptError, match="do not belong together, as groups tells"):
        open_index(one)
    (one / "groups.npy").unlink()
    with pytest.raises(IndexCorruptError):
        open_index(one)


def test_numbers_that_lead_out_of_the_index_are_refused():
    index = index_of({1: "ab", 2: "b"})
    index.list_sets[:] = 7
    with pytest.raises(IndexCorruptError, match="names a set that is not there"):
        index.posting_lists(np.array([0]))
    index.token_offsets[1] = 100
    with pytest.raises(IndexCorruptError, match="lead out of it at row 0"):
        index.list_runs(np.array([0]))
    index.dictionary.numbers[:] = 9
    with pytest.raises(IndexCorruptError, match="names a token that is not there"):
        index.find(pa.array(["a"]))


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
