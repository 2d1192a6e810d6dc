import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from long_runs import long_but

from partition import plan as partition_plan
from partition.balance import cut, fixed_limits, partition_bytes, place
from partition.clustering import (
    hash64,
    iterate_in_memory,
    jensen_shannon,
    nearest,
    normalise,
    seed_centres,
)
from partition.codebook import assign, fit_codebook
from partition.plan import plan_partitions, planned
from pexeso.build.workers import LocalWorkers, run_tasks
from pexeso.errors import InputError, LakeError
from pexeso.runtime.exchange import buckets_by_hash

DIMENSIONS = 6
N_COLUMNS = 60
SEED = 3


class Lake:
    """Columns of four kinds, as files and as arrays.

    Some values have no meaning, and some have no vector.
    """

    def __init__(self, folder):
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
        order = generator.permutation(N_COLUMNS)
        self.postings, self.vectors = [], []
        for number, columns in enumerate(np.array_split(order, 3)):
            rows = [(int(self.column_ids[c]), f"v{v}") for c in columns for v in self.values[c]]
            rows = [rows[i] for i in generator.permutation(len(rows))]
            column_ids, values = zip(*rows, strict=True)
            self.postings.append(folder / f"postings-{number}.parquet")
            pq.write_table(pa.table({"column_id": column_ids, "value": values}), self.postings[-1])
        known = np.arange(190)
        values = pa.array([f"v{i}" for i in known])
        buckets = buckets_by_hash(2, values)
        for bucket in range(2):
            rows = known[buckets == bucket]
            vectors = pa.array([self.matrix[i] for i in rows], pa.list_(pa.float32()))
            self.vectors.append(folder / f"vectors-{bucket}.parquet")
            pq.write_table(
                pa.table({"value": values.take(pa.array(rows)), "vector": vectors}),
                self.vectors[-1],
            )
        self.known = self.matrix.copy()
        self.known[190:] = 0

    def features(self, n_codes):
        codebook = fit_codebook(self.known[:190], n_codes=n_codes, seed=SEED)
        codes = assign(self.known, codebook)
        return normalise(
            np.array([np.bincount(codes[v], minlength=len(codebook) + 1) for v in self.values])
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
def lake(tmp_path_factory):
    return Lake(tmp_path_factory.mktemp("lake"))


@pytest.fixture
def plan(lake, tmp_path):
    """Return a function that plans, and returns each column's partition and their number."""

    def plan_of(postings=lake.postings, vectors=lake.vectors, **options):
        def run(task, items):
            return run_tasks(LocalWorkers(), task, items, tmp_path)[0]

        options = {"dimensions": DIMENSIONS, **options}
        n_partitions = plan_partitions(run, tmp_path, postings, vectors, **options)
        return planned(tmp_path, pa.array(lake.column_ids)), n_partitions

    return plan_of


# Where each pass runs tasks, what fills empty clusters is always compared with arrays.
@pytest.mark.parametrize("ids_per_file", [1 << 22, 50])
@pytest.mark.parametrize("seeding_columns", long_but([10_000], [30, 10_000]))
def test_the_plan_equals_that_of_arrays(lake, plan, seeding_columns, ids_per_file, monkeypatch):
    monkeypatch.setattr(partition_plan, "IDS_PER_FILE", ids_per_file)
    # With 30, only 40 of the 60 columns are on the driver and every pass of k-means runs tasks.
    monkeypatch.setattr(partition_plan, "SEEDING_COLUMNS", seeding_columns)
    features, ties = lake.features(8), hash64(lake.column_ids, SEED)
    sample = np.sort(np.argsort(ties)[: max(seeding_columns, 40)])
    centres = iterate_in_memory(features, ties, seed_centres(features[sample], 4, seed=SEED))
    partitions, n_partitions = plan(n_partitions=4, n_codes=8, seed=SEED)
    expected = lake.partitions(Clusters(features, centres), 4)
    np.testing.assert_array_equal(partitions, expected)
    assert n_partitions == expected.max() + 1 == 4
    # Columns of one kind stay together.
    assert len(set(zip((np.arange(N_COLUMNS) % 4).tolist(), partitions.tolist(), strict=True))) == 4


def test_empty_clusters_are_filled_from_the_farthest_columns(lake, plan, monkeypatch):
    def twice_the_same(sample, n_clusters, *, seed):
        return sample[[0, 0, 1, 2]]

    features = lake.features(8)
    ties = hash64(lake.column_ids, SEED)
    sample = np.sort(np.argsort(ties)[:40])
    start = twice_the_same(features[sample], 4, seed=SEED)
    centres = iterate_in_memory(features, ties, start)
    monkeypatch.setattr(partition_plan, "SEEDING_COLUMNS", 30)
    monkeypatch.setattr(partition_plan, "seed_centres", twice_the_same)
    partitions, _ = plan(n_partitions=4, n_codes=8, seed=SEED)
    np.testing.assert_array_equal(partitions, lake.partitions(Clusters(features, centres), 4))


def test_a_size_limit_is_kept(lake, plan):
    partitions, n_partitions = plan(partition_bytes=30_000)
    assert n_partitions == partitions.max() + 1 > 3
    n_values = np.bincount(partitions, weights=[len(values) for values in lake.values])
    assert (partition_bytes(n_values, n_values, DIMENSIONS) <= 30_000).all()


def test_one_partition_needs_no_vectors(lake, plan):
    partitions, n_partitions = plan(vectors=[], partition_bytes=10**9)
    assert n_partitions == 1
    assert len(partitions) == N_COLUMNS
    assert not partitions.any()


def test_only_about_as_many_rows_are_fetched_as_wanted():
    ties = hash64(np.arange(20_000), 0)
    chosen = ties[ties < partition_plan._most_tie(20_000, 50)]
    assert 50 <= len(chosen) < 400
    assert np.sort(chosen)[:50].tolist() == np.sort(ties)[:50].tolist()
    assert partition_plan._most_tie(100, 50) > ties.max()


def test_columns_without_a_plan_have_no_partition(lake, plan, tmp_path):
    plan(n_partitions=4, n_codes=8, seed=SEED)
    strange = pa.array([lake.column_ids[3], 10**9, 0])
    assert planned(tmp_path, strange).tolist()[1:] == [-1, -1]
    assert planned(tmp_path, strange.slice(0, 0)).tolist() == []


def test_bad_input_is_refused(plan):
    with pytest.raises(InputError, match=r"must have 5 dimensions\. Got one of 6"):
        plan(dimensions=5, n_partitions=2)
    with pytest.raises(LakeError, match="no column with a value"):
        plan(postings=[], n_partitions=2)
