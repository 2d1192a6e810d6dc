import numpy as np
import pyarrow as pa
import pytest
from long_runs import long_but

from partition import spark as partition_spark
from partition.balance import cut, fixed_limits, partition_bytes, place
from partition.clustering import hash64, iterate_in_memory, nearest, seed_centres
from partition.codebook import assign, fit_codebook
from partition.divergence import jensen_shannon, normalise
from partition.spark import plan_partitions
from pexeso.errors import InputError, LakeError

pytestmark = pytest.mark.spark

DIMENSIONS = 6
N_COLUMNS = 60
SEED = 3


class Lake:
    """Columns of four kinds, as frames and as arrays.

    Some values have no meaning, and some have no vector.
    """

    def __init__(self, spark):
        generator = np.random.default_rng(11)
        kinds = np.repeat(np.arange(4), 50)
        self.matrix = (
            np.eye(4, DIMENSIONS)[kinds] + generator.normal(scale=0.15, size=(200, DIMENSIONS))
        ).astype("f4")
        self.matrix /= np.linalg.norm(self.matrix, axis=1, keepdims=True)
        self.matrix[::40] = 0
        self.column_ids = np.arange(N_COLUMNS, dtype=np.int64) * 5 + 2
        # Every column has one value of another kind; the last ten values of the matrix have no
        # vector.
        self.values = [
            np.concatenate(
                [
                    generator.choice(50, generator.integers(2, 25), False) + 50 * (c % 4),
                    [(50 * c + 60) % 200],
                ]
            )
            for c in range(N_COLUMNS)
        ]
        self.values = [np.unique(values) for values in self.values]
        rows = [
            (int(c), f"v{v}")
            for c, values in zip(self.column_ids, self.values, strict=True)
            for v in values
        ]
        rows = [rows[i] for i in generator.permutation(len(rows))]
        column_ids, values = zip(*rows, strict=True)
        self.postings = spark.createDataFrame(
            pa.table({"column_id": column_ids, "value": values})
        ).repartition(3)
        known = range(190)
        self.vectors = spark.createDataFrame(
            pa.table(
                {
                    "value": [f"v{i}" for i in known],
                    "vector": pa.array([self.matrix[i] for i in known], pa.list_(pa.float32())),
                }
            )
        ).repartition(2)
        self.known = self.matrix.copy()
        self.known[190:] = 0

    def features(self, n_codes):
        codebook = fit_codebook(self.known[:190], n_codes=n_codes, seed=SEED)
        codes = assign(self.known, codebook)
        return normalise(
            np.array([np.bincount(codes[v], minlength=codebook.n_regions) for v in self.values])
        )

    def partitions(self, clustering, n_partitions):
        """Location clusters as the distributed plan must, from arrays alone."""
        n_values = np.array([len(values) for values in self.values])
        n_bytes = partition_bytes(n_values, n_values, DIMENSIONS)
        limits = fixed_limits(n_partitions, N_COLUMNS, int(n_bytes.sum()))
        ties = hash64(self.column_ids, SEED)
        pieces, piece_of = cut(
            self.column_ids, clustering.clusters, clustering.divergences, ties, n_bytes, limits
        )
        return place(pieces, limits, clustering.divergence_from)[piece_of]


class Clusters:
    def __init__(self, features, centres):
        self.clusters, self.divergences = nearest(features, centres)
        self.divergence_from = lambda cluster: jensen_shannon(centres[[cluster]], centres)[0]


@pytest.fixture(scope="module")
def lake(spark):
    return Lake(spark)


def _collected(plan):
    rows = plan.toArrow().sort_by("column_id")
    plan.unpersist()
    assert rows.schema.names == ["column_id", "partition"]
    return rows["column_id"].to_numpy(), rows["partition"].to_numpy()


# Where each pass is a job, what fills empty clusters is always compared with arrays.
@pytest.mark.parametrize("seeding_columns", long_but([10_000], [30, 10_000]))
def test_the_plan_equals_that_of_arrays(lake, seeding_columns, monkeypatch):
    # With 30, only 40 of the 60 columns are on the driver and every pass of k-means is a job.
    monkeypatch.setattr(partition_spark, "SEEDING_COLUMNS", seeding_columns)
    features, ties = lake.features(8), hash64(lake.column_ids, SEED)
    sample = np.sort(np.argsort(ties)[: max(seeding_columns, 40)])
    centres = iterate_in_memory(features, ties, seed_centres(features[sample], 4, seed=SEED))
    plan, n_partitions = plan_partitions(
        lake.postings, lake.vectors, dimensions=DIMENSIONS, n_partitions=4, n_codes=8, seed=SEED
    )
    column_ids, partitions = _collected(plan)
    np.testing.assert_array_equal(column_ids, lake.column_ids)
    expected = lake.partitions(Clusters(features, centres), 4)
    np.testing.assert_array_equal(partitions, expected)
    assert n_partitions == expected.max() + 1 == 4
    # Columns of one kind stay together.
    assert len(set(zip((np.arange(N_COLUMNS) % 4).tolist(), partitions.tolist(), strict=True))) == 4


def test_empty_clusters_are_filled_from_the_farthest_columns(lake, monkeypatch):
    def twice_the_same(sample, n_clusters, *, seed):
        return sample[[0, 0, 1, 2]]

    features = lake.features(8)
    ties = hash64(lake.column_ids, SEED)
    sample = np.sort(np.argsort(ties)[:40])
    start = twice_the_same(features[sample], 4, seed=SEED)
    centres = iterate_in_memory(features, ties, start)
    monkeypatch.setattr(partition_spark, "SEEDING_COLUMNS", 30)
    monkeypatch.setattr(partition_spark, "seed_centres", twice_the_same)
    plan, _ = plan_partitions(
        lake.postings, lake.vectors, dimensions=DIMENSIONS, n_partitions=4, n_codes=8, seed=SEED
    )
    np.testing.assert_array_equal(
        _collected(plan)[1], lake.partitions(Clusters(features, centres), 4)
    )


def test_a_size_limit_is_kept(lake):
    plan, n_partitions = plan_partitions(
        lake.postings, lake.vectors, dimensions=DIMENSIONS, partition_bytes=30_000
    )
    partitions = _collected(plan)[1]
    assert n_partitions == partitions.max() + 1 > 3
    n_values = np.bincount(partitions, weights=[len(values) for values in lake.values])
    assert (partition_bytes(n_values, n_values, DIMENSIONS) <= 30_000).all()


def test_one_partition_needs_no_vectors(lake, spark):
    nothing = spark.createDataFrame([], "value string, vector array<float>")
    plan, n_partitions = plan_partitions(
        lake.postings, nothing, dimensions=DIMENSIONS, partition_bytes=10**9
    )
    column_ids, partitions = _collected(plan)
    assert n_partitions == 1
    np.testing.assert_array_equal(column_ids, lake.column_ids)
    assert not partitions.any()


def test_only_about_as_many_rows_are_fetched_as_wanted(spark):
    ties = hash64(np.arange(20_000), 0)
    frame = spark.createDataFrame(pa.table({"tie": ties}))
    rows = partition_spark._least_ties(frame, 20_000, 50).toArrow()
    assert sorted(rows["tie"].to_pylist()) == np.sort(ties)[:50].tolist()


def test_bad_input_is_refused(lake, spark):
    with pytest.raises(
        InputError, match=r"frame postings must have the columns column_id, value.*missing: value"
    ):
        plan_partitions(
            lake.postings.select("column_id"), lake.vectors, dimensions=DIMENSIONS, n_partitions=2
        )
    with pytest.raises(InputError, match=r"must have 5 dimensions\. Got one of 6"):
        plan_partitions(lake.postings, lake.vectors, dimensions=5, n_partitions=2)
    for both in ({}, {"n_partitions": 2, "partition_bytes": 5}):
        with pytest.raises(InputError, match="Exactly one of n_partitions and partition_bytes"):
            plan_partitions(lake.postings, lake.vectors, dimensions=DIMENSIONS, **both)
    with pytest.raises(LakeError, match="no column with a value"):
        plan_partitions(lake.postings.limit(0), lake.vectors, dimensions=DIMENSIONS, n_partitions=2)
