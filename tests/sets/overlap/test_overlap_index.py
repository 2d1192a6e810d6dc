"""The index: its invariants, the worked lake, the order of tokens, files, and what is refused."""

import numpy as np
import pyarrow as pa
import pytest
from overlap_lakes import by_text, index_of, number, pairs_of, query_of, random_lake

from pexeso.errors import IndexCorruptError, OutputError
from pexeso.sets.overlap import index as module
from pexeso.sets.overlap.dictionary import Dictionary
from pexeso.sets.overlap.index import (
    ARRAYS,
    build_index,
    duplicate_groups,
    global_order,
    hash_lists,
    open_index,
    save_index,
)


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
