"""Sorted suffixes, and what source suffixes share with target values, against plain search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pexeso.transform.learning.example_sets import (
    MAX_PREFIX,
    ColumnSuffixes,
    SharedPrefixes,
    sorted_suffixes,
)

words = st.text("ab ", max_size=9)


@given(st.lists(words, max_size=8))
def test_suffixes_are_in_order_and_know_what_they_share(texts):
    values, shared = sorted_suffixes(texts)
    places = sorted(
        (text[start:], number, start)
        for number, text in enumerate(texts)
        for start in range(len(text))
    )
    assert values.tolist() == [number for _, number, _ in places]
    suffixes = [suffix for suffix, _, _ in places]
    assert shared.tolist() == [
        _common(one, other) for one, other in zip(["", *suffixes], suffixes, strict=False)
    ]


def _common(one: str, other: str) -> int:
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return count


@given(st.lists(words, max_size=8), st.lists(words, max_size=8), st.lists(words, max_size=3))
def test_the_longest_prefix_and_its_holders_are_those_of_linear_search(sources, targets, others):
    prefixes, _ = ColumnSuffixes([sources, others, targets]).shared_prefixes(0, 2)
    got = sorted(
        zip(
            prefixes.sources.tolist(),
            prefixes.lengths.tolist(),
            prefixes.n_sources.tolist(),
            prefixes.n_targets.tolist(),
            strict=True,
        )
    )
    expected = []
    for number, text in enumerate(sources):
        for start in range(len(text)):
            hits = [
                text[start:end]
                for end in range(start + 1, len(text) + 1)
                if any(text[start:end] in target for target in targets)
            ]
            if hits:
                held = hits[-1]
                n_sources = sum(held in source for source in sources)
                n_targets = sum(held in target for target in targets)
                expected.append((number, len(held), n_sources, n_targets))
    assert got == sorted(expected)
    for place in range(len(prefixes.sources)):
        inside = set(prefixes.members[prefixes.first[place] : prefixes.last[place] + 1].tolist())
        assert len(inside) == prefixes.n_sources[place] + prefixes.n_targets[place]


@given(st.lists(st.lists(words, max_size=5), min_size=2, max_size=4))
def test_suffixes_of_two_columns_are_those_of_these_alone(columns):
    _compare_with_columns_alone(columns, [(0, 1), (0, len(columns) - 1)])


def test_suffixes_of_two_columns_of_thirty_are_those_of_these_alone():
    drawn = np.random.default_rng(5)
    sizes = drawn.integers(0, 40, 30)
    letters = [list("abcd"), list("efgh")]
    columns = [
        ["".join(drawn.choice(letters[at % 2], drawn.integers(0, 25))) for _ in range(size)]
        for at, size in enumerate(sizes)
    ]
    _compare_with_columns_alone(columns, [(0, 2), (1, 29), (3, 28), (14, 15)])


def _compare_with_columns_alone(columns, pairs):
    suffixes = ColumnSuffixes(columns)
    for one, other in pairs:
        prefixes, sides = suffixes.shared_prefixes(one, other)
        assert sides.tolist() == [1] * len(columns[one]) + [2] * len(columns[other])
        alone, _ = ColumnSuffixes([columns[one], columns[other]]).shared_prefixes(0, 1)
        for name in SharedPrefixes.__dataclass_fields__:
            assert getattr(prefixes, name).tolist() == getattr(alone, name).tolist(), name


@pytest.mark.parametrize("letters", ["ab", "abcdefghijklmnopqrstuvwxyz0123456789", "añ日😀"])
def test_prefixes_longer_than_the_limit_count_as_that_long(letters):
    text = "".join(np.random.default_rng(1).choice(list(letters), 3 * MAX_PREFIX))
    values, shared = sorted_suffixes([text, text])
    assert shared.max() == MAX_PREFIX
    assert (np.diff(values[shared == MAX_PREFIX]) >= 0).any()


def test_a_long_cell_of_one_letter_takes_no_longer_than_any():
    prefixes, _ = ColumnSuffixes([["a" * 100_000], ["a" * 100_000]]).shared_prefixes(0, 1)
    assert len(prefixes.sources) == 100_000
    assert set(prefixes.n_targets.tolist()) == {1}
