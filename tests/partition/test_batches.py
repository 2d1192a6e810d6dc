import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from partition import clustering as divergence
from partition import plan
from partition.clustering import SCALE, hash64, nearest, normalise, partial_sums
from pexeso.build.workers import Attempt
from pexeso.errors import InputError
from pexeso.runtime.exchange import read_bucket

VECTORS = pa.list_(pa.float32())


def _histogram_batch(counts, ids=None):
    codes = [np.flatnonzero(row).astype(np.int32) for row in counts]
    return pa.record_batch(
        {
            "column_id": np.arange(len(counts)) if ids is None else ids,
            "n_values": counts.sum(axis=1),
            "tie": hash64(np.arange(len(counts)), 0),
            "codes": pa.array(codes, pa.list_(pa.int32())),
            "counts": pa.array([row[row > 0] for row in counts], pa.list_(pa.int64())),
        }
    )


def _counts(n=50, regions=9, seed=0):
    return np.random.default_rng(seed).poisson(0.7, (n, regions)) + np.eye(
        n, regions, dtype=np.int64
    )


def test_missing_vectors_are_zeros_also_in_a_slice():
    array = pa.array([[1, 2], None, [3, 4], None, [5, 6]], VECTORS)
    assert plan.matrix_of(array, 2).tolist() == [[1, 2], [0, 0], [3, 4], [0, 0], [5, 6]]
    assert plan.matrix_of(array.slice(2, 2), 2).tolist() == [[3, 4], [0, 0]]
    assert plan.matrix_of(array.slice(0, 0), 2).shape == (0, 2)


def test_a_vector_of_another_length_is_refused():
    with pytest.raises(InputError, match=r"must have 2 dimensions. Got one of 3"):
        plan.matrix_of(pa.array([[1, 2], None, [1, 2, 3]], VECTORS), 2)


def test_histograms_survive_the_way_through_a_batch():
    counts = _counts()
    batch = _histogram_batch(counts)
    features = plan.features_of(batch.slice(7, 20), 9)
    np.testing.assert_array_equal(features, normalise(counts)[7:27])


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "features.parquet"
    pq.write_table(pa.Table.from_batches([_histogram_batch(_counts())]), path)
    return path


def test_columns_are_read_slice_by_slice(file, monkeypatch):
    monkeypatch.setattr(divergence, "CHUNK_ELEMENTS", 7 * 9 + 1)
    rows, features = zip(*plan.columns_in(file, 9), strict=True)
    assert max(part.num_rows for part in rows) == 7
    assert [at for part in rows for at in part["column_id"].to_pylist()] == list(range(50))
    np.testing.assert_array_equal(np.vstack(features), normalise(_counts()))


def test_partial_sums_survive_the_way_through_batches(file, monkeypatch):
    features = normalise(_counts())
    centres = features[[2, 9, 30]]
    monkeypatch.setattr(plan, "BATCH_ROWS", 11)
    back = plan.sum_by_centre(file, None, centres=centres)
    whole = partial_sums(features, centres)
    for name in ("sums", "counts", "costs"):
        np.testing.assert_array_equal(getattr(back, name), getattr(whole, name), err_msg=name)
    assert back.costs.sum() / SCALE == pytest.approx(nearest(features, centres)[1].sum(), abs=1e-6)


def test_columns_are_assigned_with_their_sizes(file, tmp_path):
    counts = _counts()
    features = normalise(counts)
    attempt = Attempt(tmp_path)
    plan.assign_columns(file, attempt, centres=features[:4], dimensions=100, entry_bytes=4)
    parts = [read_bucket(tmp_path / "assigned", at, 4, plan.ASSIGNED) for at in range(4)]
    table = pa.concat_tables(parts).sort_by("column_id")
    clusters, divergences = nearest(features, features[:4])
    np.testing.assert_array_equal(table["cluster"].to_numpy(), clusters)
    np.testing.assert_array_equal(table["divergence"].to_numpy(), divergences)
    np.testing.assert_array_equal(table["n_bytes"].to_numpy(), counts.sum(axis=1) * (400 + 128 + 8))
