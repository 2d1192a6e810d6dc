import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

from partition.balance import cut, fixed_limits, partition_bytes, place, size_limits

LAKES = st.lists(
    st.tuples(
        st.integers(0, 5), st.one_of(st.integers(1, 60), st.integers(1, 5000)), st.floats(0, 0.69)
    ),
    min_size=1,
    max_size=120,
)


def _divide(lake, limits, n_centres=6):
    clusters, sizes, divergences = (np.array(part) for part in zip(*lake, strict=True))
    clusters = clusters % min(n_centres, limits.n_clusters)
    ids = np.arange(len(lake))
    pieces, piece_of = cut(ids, clusters, divergences, ids[::-1], sizes, limits)
    k = int(clusters.max()) + 1
    distances = np.abs(np.arange(k)[:, None] - np.arange(k)[None]).astype(float)
    return sizes, pieces, piece_of, place(pieces, limits, distances.__getitem__)[piece_of]


@settings(deadline=None, max_examples=examples(100))
@given(LAKES, st.integers(1, 12))
def test_a_fixed_number_of_partitions_is_met_and_none_is_too_large(lake, n_partitions):
    total = sum(size for _, size, _ in lake)
    limits = fixed_limits(n_partitions, len(lake), total)
    sizes, _, _, partitions = _divide(lake, limits)
    loads = np.bincount(partitions, weights=sizes)
    assert len(loads) == min(n_partitions, len(lake))
    assert (np.bincount(partitions) > 0).all()
    for partition in np.flatnonzero(loads > 2 * total / len(loads)):
        assert (partitions == partition).sum() == 1, loads


@settings(deadline=None, max_examples=examples(100))
@given(LAKES, st.integers(1, 4000), st.sampled_from([1, 1, 3, 12, 500]))
def test_a_size_limit_is_kept_unless_one_column_alone_is_larger(lake, limit_bytes, min_partitions):
    total = sum(size for _, size, _ in lake)
    limits = size_limits(limit_bytes, len(lake), total, min_partitions=min_partitions)
    assert limits.n_bins >= min(min_partitions, len(lake))
    sizes, _, _, partitions = _divide(lake, limits)
    loads = np.bincount(partitions, weights=sizes)
    assert (np.bincount(partitions) > 0).all()
    assert (np.bincount(partitions)[loads > limit_bytes] == 1).all()
    assert (
        len(loads)
        <= limits.n_bins + 2 * total / limit_bytes + (sizes > limits.large_bytes).sum() + 1
    )


@settings(deadline=None, max_examples=examples(60))
@given(LAKES, st.integers(1, 12))
def test_pieces_are_small_and_hold_every_column_once(lake, n_partitions):
    limits = fixed_limits(n_partitions, len(lake), sum(size for _, size, _ in lake))
    sizes, pieces, piece_of, _ = _divide(lake, limits)
    np.testing.assert_array_equal(np.bincount(piece_of, weights=sizes), pieces.n_bytes)
    np.testing.assert_array_equal(np.bincount(piece_of), pieces.n_columns)
    alone = pieces.column >= 0
    assert (pieces.n_bytes[~alone] <= max(1, limits.large_bytes)).all()
    assert (pieces.n_columns <= limits.piece_columns).all()
    assert len(pieces.n_bytes) >= limits.n_bins
    assert len(pieces.n_bytes) <= 9 * limits.n_bins + 12


def test_clusters_that_fit_stay_whole():
    lake = [(column % 3, 10, 0.1) for column in range(30)]
    partitions = _divide(lake, fixed_limits(3, 30, 300))[3]
    assert partitions.tolist() == [column % 3 for column in range(30)]


def test_an_over_full_cluster_keeps_its_core_and_gives_the_rim_to_the_nearest_centre():
    # Mean 10 columns, limit 20; cluster 3 holds 26 of 40, and centre 2 is nearest to it.
    lake = [(3, 10, column / 100) for column in range(26)] + [
        (column % 3, 10, 0.0) for column in range(14)
    ]
    partitions = _divide(lake, fixed_limits(4, 40, 400))[3]
    assert (np.bincount(partitions) <= 20).all()
    assert set(partitions[:20]) == {partitions[0]}
    assert set(partitions[20:26]) == {partitions[28]}
    assert len(set(partitions)) == 4


def test_partitions_without_a_centre_take_from_the_fullest_cluster():
    lake = [(0, 10, 0.0)] * 3 + [(1, 10, column / 100) for column in range(26)] + [(2, 10, 0.0)] * 3
    partitions = _divide(lake, fixed_limits(4, 32, 320))[3]
    assert set(partitions[3:19]) == {partitions[3]}
    assert set(partitions[19:29]) == {partitions[28]}
    assert len(set(partitions[[0, 3, 28, 29]])) == 4


def test_with_a_free_number_an_over_full_cluster_is_split_and_not_mixed():
    lake = [(0, 10, column / 100) for column in range(40)] + [(1, 10, 0.0)] * 10
    partitions = _divide(lake, size_limits(200, 50, 500))[3]
    assert set(partitions[:40]).isdisjoint(partitions[40:])
    assert len(set(partitions[:40])) == 2


def test_a_smallest_number_keeps_clusters_apart_and_opens_none_in_excess():
    lake = [(cluster, 10, 0.0) for cluster in (0, 1, 1, 1, 2)]
    assert set(_divide(lake, size_limits(1000, 5, 50))[3]) == {0}
    partitions = _divide(lake, size_limits(1000, 5, 50, min_partitions=4))[3]
    assert [partitions[0], *partitions[1:4], partitions[4]] == [0, 1, 1, 1, 2]


def test_size_model():
    assert partition_bytes(3, 5, 100) == 3 * (400 + 128) + 5 * 8
    np.testing.assert_array_equal(
        partition_bytes(np.array([1, 2]), np.array([1, 2]), 1), [140, 280]
    )
