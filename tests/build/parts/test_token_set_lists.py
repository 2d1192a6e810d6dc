"""Tests that posting lists of an overlap index give containment search exact answers."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pexeso.errors import IndexCorruptError
from pexeso.sets.containment import EnsembleOptions
from pexeso.sets.containment.ensemble import CsrLists, ensemble_over, read_ensemble, write_ensemble
from pexeso.sets.overlap.dictionary import find_texts
from pexeso.sets.overlap.index import build_index, open_index, save_index
from pexeso.sets.part.open import check_ensemble

OPTIONS = EnsembleOptions(permutations=32, partitions=3)
TEXTS = st.integers(0, 30).map(lambda n: f"v{n}") | st.text(max_size=3)
SETS = st.lists(st.sets(TEXTS, min_size=1, max_size=15), min_size=1, max_size=10)


def ragged_texts(sets):
    texts = pa.array([text for one in sets for text in sorted(one)], pa.large_string())
    return texts, np.cumsum([0, *(len(one) for one in sets)])


def overlap_index(sets, **options):
    texts, offsets = ragged_texts(sets)
    return build_index(np.repeat(np.arange(len(sets)), np.diff(offsets)), texts, **options)


def found_by(query, needed):
    sets, counts = query.at_least(needed)
    return dict(zip(sets.tolist(), counts.tolist(), strict=True))


@given(SETS, st.lists(TEXTS, max_size=15), st.integers(1, 6), st.booleans())
def test_lists_give_what_brute_force_does(sets, query, needed, by_text):
    # The order of tokens is the index's own affair: by frequency, or by text.
    order = {"order": lambda offsets, members: np.arange(len(offsets) - 1)} if by_text else {}
    lists = CsrLists(overlap_index(sets, **order))
    exact = [len(one & set(query)) for one in sets]
    looked = lists.look_up(pa.array(query, pa.large_string()))
    assert (lists.n_sets, looked.size) == (len(sets), len(set(query)))
    assert found_by(looked, needed) == {
        i: count for i, count in enumerate(exact) if count >= needed
    }
    assert looked.overlaps(np.arange(len(sets)), needed).tolist() == [
        n if n >= needed else -1 for n in exact
    ]
    assert lists.sizes_of(np.arange(len(sets))).tolist() == [len(one) for one in sets]
    held = sorted(
        sum(text in one for one in sets) for text in set(query) if any(text in one for one in sets)
    )
    assert looked.n_entries(needed) == sum(held[: max(0, len(held) - needed + 1)])


@given(SETS, st.lists(TEXTS, min_size=1, max_size=15), st.sampled_from([0.3, 0.6, 1.0]))
def test_an_ensemble_over_an_overlap_index_answers_as_brute_force_does(sets, query, threshold):
    over = ensemble_over(overlap_index(sets), OPTIONS)
    assert check_ensemble(over) == []
    counts = [len(one & set(query)) for one in sets]
    truth = {i for i, count in enumerate(counts) if count / len(set(query)) >= threshold - 1e-12}
    for route in ("auto", "lists", "bands"):
        answer = over.search(pa.array(query), threshold, route=route)
        assert (
            set(answer.sets.tolist()) == truth
            if route == "lists"
            else set(answer.sets.tolist()) <= truth
        )
        assert answer.overlaps.tolist() == [counts[i] for i in answer.sets.tolist()]


def test_both_indexes_share_a_folder(tmp_path):
    sets = [{f"v{i}" for i in range(first, first + 20)} for first in range(40)]
    index = overlap_index(sets)
    entries = [
        *save_index(index, tmp_path),
        *write_ensemble(ensemble_over(index, OPTIONS), tmp_path),
    ]
    assert {entry.path for entry in entries} == {path.name for path in tmp_path.iterdir()}
    opened = read_ensemble(tmp_path, lists=CsrLists(open_index(tmp_path)))
    answer = opened.search(pa.array(sorted(sets[7])), 0.95)
    assert (answer.sets.tolist(), answer.overlaps.tolist()) == ([7, 6, 8], [20, 19, 19])


def test_sizes_that_are_not_those_of_the_lists_are_found_by_a_check():
    index = ensemble_over(overlap_index([{"a"}, {"a", "b"}]), OPTIONS)
    other = CsrLists(overlap_index([{"a", "b"}, {"a"}]))
    [sentence] = check_ensemble(replace(index, lists=other))
    assert "sizes" in sentence


@given(
    st.lists(st.text(max_size=4), unique=True, max_size=30),
    st.lists(st.text(max_size=4), max_size=10),
    st.booleans(),
)
def test_texts_are_found_as_the_dictionary_finds_them(texts, others, wide):
    kind = pa.large_string() if wide else pa.string()
    ordered = sorted(texts, key=lambda text: text.encode())
    wanted = [*others, *texts]
    places = {text: place for place, text in enumerate(ordered)}
    expected = [places.get(text, -1) for text in wanted]
    assert find_texts(pa.array(ordered, kind), pa.array(wanted, pa.string())).tolist() == expected
    # Slices lie behind an offset.
    behind = pa.array(["", *ordered], kind)[1:]
    assert find_texts(behind, pa.array(["x", *wanted], pa.string())[1:]).tolist() == expected


@pytest.mark.parametrize("offsets", [[0, 9, 2], [0, -1, 2], [2, 1, 2]])
def test_a_dictionary_that_leads_out_of_its_file_is_refused(offsets):
    buffers = [None, pa.py_buffer(np.array(offsets, np.int64)), pa.py_buffer(b"ab")]
    damaged = pa.Array.from_buffers(pa.large_string(), 2, buffers)
    with pytest.raises(IndexCorruptError, match="leads out of its file"):
        find_texts(damaged, pa.array(["b", "a"]))
