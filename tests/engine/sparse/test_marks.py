"""Marks tell values apart, and every search keeps to the definition, in plain Python here."""

import dataclasses
from unittest.mock import patch

import numpy as np
import pytest
import torch
from bags import SPACE, distance_of, vectors_of
from hypothesis import example, given, settings
from hypothesis import strategies as st
from long_runs import examples

from pexeso.engine.sparse import search, sparse_space
from pexeso.engine.sparse.marks import (
    EDGE,
    LETTERS_GROUP,
    ONE_LETTER,
    REGROUPED,
    SAME_CONSONANTS,
    SAME_SOUNDS,
    STRICT_GROUPS,
    TURNED,
    Marks,
    marks_in_group,
)
from pexeso.engine.sparse.partition import SparsePartition, build_partition, check_arrays
from pexeso.engine.sparse.sparse_space import SparseSpace
from pexeso.engine.sparse.vectors import SparseVectors, pair_distances
from pexeso.engine.stats import SearchStats

GROUPS = (1, 2, STRICT_GROUPS, EDGE, LETTERS_GROUP)
# Its words, its marks as (group, member), and its consonants, sounds and script, if known.
Value = tuple[str, frozenset[tuple[int, int]], tuple[int, int, int] | None]

known_sounds = st.tuples(st.sampled_from([4, 7]), st.integers(1, 2), st.integers(0, 1))
values_with_marks = st.tuples(
    st.text(st.sampled_from("ab "), max_size=6),
    st.frozensets(st.tuples(st.sampled_from(GROUPS), st.integers(1, 3)), max_size=4),
    st.none() | known_sounds,
)


def are_apart(left: Value, right: Value) -> bool:
    have_same_letters = left[0].replace(" ", "") == right[0].replace(" ", "")
    for group in GROUPS[:-1]:
        mine, its = ({member for g, member in side if g == group} for side in (left[1], right[1]))
        if group == EDGE:
            mine, its = (
                some - {member for _, member in side[1]}
                for some, side in ((mine, right), (its, left))
            )
        is_strict = group >= STRICT_GROUPS and not have_same_letters
        if (mine - its and its - mine) or (is_strict and mine != its):
            return True
    return False


def defined(left: Value, right: Value) -> float:
    distance = distance_of(left[0], right[0])
    if np.isinf(distance) or are_apart(left, right):
        return max(distance, 1.0)
    mine, its = left[0].split(), right[0].split()
    if mine == its:
        return distance
    if distance < 1e-6:
        return TURNED
    if left[2] and right[2] and left[2][0] == right[2][0] and left[2][2] != right[2][2]:
        factors = SAME_SOUNDS if left[2][1] == right[2][1] else SAME_CONSONANTS
        distance *= factors[left[2][0] % 8]
    if "".join(mine) == "".join(its):
        return min(distance, REGROUPED)
    of_letters = [{mark for mark in side[1] if mark[0] == LETTERS_GROUP} for side in (left, right)]
    return min(distance, ONE_LETTER) if of_letters[0] & of_letters[1] else distance


def marked(values: list[Value]) -> SparseVectors:
    pairs = [(row, *mark) for row, (_, marks, _) in enumerate(values) for mark in marks]
    rows, groups, members = np.array(pairs or np.zeros((0, 3)), np.int64).T
    marks = np.zeros(len(rows), np.int64)
    for group in GROUPS:
        some = groups == group
        marks[some] = marks_in_group(group, members[some].astype(np.uint64) << np.uint64(32))
    forms, letters = (
        np.array([hash(sign.join(text.split())) for text, *_ in values], np.int64)
        for sign in (" ", "")
    )
    sounds = [known[0] << 33 | known[1] << 1 | known[2] if known else 0 for *_, known in values]
    vectors = vectors_of([text for text, *_ in values])
    pairs = np.unique(np.column_stack([rows, marks]), axis=0)  # in order, each once
    offsets = np.searchsorted(pairs[:, 0], np.arange(len(values) + 1))
    made = Marks(forms, letters, np.array(sounds, np.int64), offsets, pairs[:, 1].copy())
    return dataclasses.replace(vectors, marks=made)


@given(
    st.lists(values_with_marks, min_size=1, max_size=10, unique=True),
    st.lists(values_with_marks, min_size=1, max_size=5),
    st.sampled_from([0.0, 0.05, TURNED, 0.3, REGROUPED, ONE_LETTER, 0.72, 0.99, 1.0]),
    st.sampled_from([None, torch.device("cpu")]),
    st.sampled_from([(0.0, 0), (0.0, 4), (9.0, 0), (9.0, 4)]),
)
@example(
    [("a", frozenset({(LETTERS_GROUP, 1)}), None)],
    [("", frozenset({(LETTERS_GROUP, 1)}), None)],
    0.375,
    None,
    (9.0, 0),
)
@settings(max_examples=examples(200), deadline=None)
def test_every_way_to_compare_keeps_to_the_definition(stored, queries, limit, device, ways):
    vectors = marked(stored)
    whole = np.array([0, len(stored)])
    arrays, order = build_partition(vectors, whole, np.arange(len(stored)))
    assert check_arrays(arrays, SPACE) == []
    partition = SparsePartition.from_arrays(arrays, SPACE, device)
    query_vectors, kept = marked(queries), [stored[row] for row in order]
    exact = np.array([[defined(query, value) for value in kept] for query in queries])
    exact = exact.reshape(len(queries), len(kept))
    np.testing.assert_array_equal(query_vectors.distances(partition.vectors), exact)
    expected = np.argwhere(exact <= limit)
    np.testing.assert_array_equal(
        pair_distances(query_vectors.take(expected[:, 0]), partition.vectors.take(expected[:, 1])),
        exact[tuple(expected.T)],
    )
    hits = search.find_rows(partition, query_vectors, limit, 1, SearchStats())
    rows = np.repeat(np.arange(len(queries)), np.diff(hits.offsets))
    np.testing.assert_array_equal(np.stack([rows, hits.members], 1), expected)
    space, rows = SparseSpace(SPACE, device), np.arange(0, len(kept), 2)
    share, a_match = ways
    always = {"ROWS_WORTH_LISTS": 0, "PAIRS_WORTH_LISTS": 0}
    with patch.multiple(
        sparse_space, SHARE_WORTH_ALL=share, PAIRS_A_MATCH=a_match, _PAIRS_AT_ONCE=2, **always
    ):
        pairs = space.pairs_within(partition, query_vectors, rows, limit, SearchStats())
        columns = np.zeros(1, np.int64)
        nearest = space.nearest_in_columns(partition, query_vectors, columns, limit, SearchStats())
    expected = np.argwhere(exact[:, rows] <= limit)
    np.testing.assert_array_equal(np.stack(pairs[:2], 1), expected)
    np.testing.assert_array_equal(pairs[2], exact[:, rows][tuple(expected.T)])
    np.testing.assert_array_equal(nearest[0], exact.min(1, initial=limit))


def test_values_that_all_columns_have_are_not_searched_for(monkeypatch):
    stored = [(text, frozenset(), None) for text in ("abc abb", "abd", "bab", "abc", "bb aa")]
    vectors, lists = marked(stored), np.array([0, 3, 5])
    arrays, _ = build_partition(vectors, lists, np.array([0, 1, 2, 1, 3]))
    partition = SparsePartition.from_arrays(arrays, SPACE)
    searched = []

    def record(part, some, *args, **options):
        searched.append((part.n_values, len(some)))
        return search.matches_in_runs(part, some, *args, **options)

    monkeypatch.setattr(sparse_space, "_is_worth_lists", lambda *_: True)
    monkeypatch.setattr(sparse_space, "SHARE_WORTH_ALL", 9)
    monkeypatch.setattr(sparse_space, "matches_in_runs", record)
    queries = marked(stored[:3])
    nearest = SparseSpace(SPACE).nearest_in_columns(
        partition, queries, np.arange(2), 0.6, SearchStats()
    )
    exact = queries.distances(partition.vectors)
    expected = [exact[:, partition.column_lists[column]].min(1, initial=0.6) for column in (0, 1)]
    np.testing.assert_array_equal(nearest, expected)
    # All are in the first column, and the second of them in the other.
    assert searched == [(2, 2)]


def test_marks_go_with_their_values():
    both = [
        marked([("a b", frozenset({(1, 1)}), (1, 1, 1)), ("a", frozenset(), None)]),
        marked([("b", frozenset({(2, 1)}), (2, 1, 0))]),
    ]
    joined = SparseVectors.concatenate(both)
    assert joined.marks.members.tolist() == [*both[0].marks.members, *both[1].marks.members]
    assert joined.take(np.array([2, 1])).marks.offsets.tolist() == [0, 1, 1]
    assert joined.take(np.array([2, 1])).marks.sounds.tolist() == [2 << 33 | 2, 0]


@pytest.mark.parametrize("change", ["order", "offsets"])
def test_changed_marks_are_found(change):
    values = [("a", frozenset({(1, 1), (1, 2)}), None), ("b", frozenset(), None)]
    arrays, _ = build_partition(marked(values), np.array([0, 2]), np.arange(2))
    if change == "order":
        arrays["value_marks_members"] = arrays["value_marks_members"][::-1].copy()
    else:
        arrays["value_marks_offsets"] = np.array([0, 2, 1])
    assert check_arrays(arrays, SPACE)
