"""Tests that a build on a cluster equals a local build, even if a worker dies."""

import json
from pathlib import Path

import pytest

from benchmarks.cluster.spark_cluster import running_cluster
from pexeso.index import build_index, open_index
from pexeso.lake.catalog import Catalog

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("build_on_cluster.py")
OPTIONS = {"model": "hashing", "dimensions": 64, "n_partitions": 3}


@pytest.fixture(scope="module")
def expected(small_lake, tmp_path_factory):
    """Build the small lake in this process."""
    return build_index(small_lake, tmp_path_factory.mktemp("expected") / "lake.pexeso", **OPTIONS)


def answers(index):
    """Search with every column of the index itself, at three thresholds and for the best two."""
    columns = [
        index.store.texts(number, "texts").to_pylist() for number in range(index.store.n_partitions)
    ]
    texts = sorted({text for column in columns for text in column})
    queries = [texts[start::4] for start in range(4)]
    settings = [{"max_distance": 0.0}, {"max_distance": 0.3, "min_joinability": 0.1}, {"k": 2}]
    batches = [index.search_batch(queries, **options) for options in settings]
    return [[match.to_dict() for match in result] for results in batches for result in results]


def catalog(index):
    index_catalog = Catalog(index.store.catalog_files)
    return [index_catalog.tables().to_pylist(), index_catalog.columns().to_pylist()]


def require_same(path, expected):
    assert open_index(path).check() == []
    assert catalog(open_index(path)) == catalog(expected)
    given = answers(open_index(path))
    assert given == answers(expected)
    assert any(given)


@pytest.mark.long
def test_a_build_that_loses_a_worker_is_that_of_one_machine(
    start_on, small_lake, tmp_path, expected
):
    path = tmp_path / "lake.pexeso"
    with running_cluster() as cluster:
        process = start_on(cluster, PROGRAM, small_lake, path, json.dumps(OPTIONS))
        for line in process.stdout:
            if line.strip() == "partition":
                cluster.kill_worker(0)
                break
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said[-4000:]
        assert cluster.workers[0].poll() is not None
    require_same(path, expected)
