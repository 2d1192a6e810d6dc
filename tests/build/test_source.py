"""Where tables come from, and how they are dealt out to the tasks that read them."""

from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pexeso.build import source
from pexeso.build.workers import LocalWorkers, run_tasks
from pexeso.errors import LakeError
from pexeso.runtime.exchange import read_bucket


def test_files_are_dealt_out_by_size(tmp_path):
    """Each task reads about as many bytes, and every file is read once."""
    rows = [{"table": f"{n}.csv", "n_bytes": n} for n in range(100)]
    listing = pa.Table.from_pylist(rows, schema=source.LISTING_SCHEMA)
    for number, part in enumerate((listing.slice(0, 60), listing.slice(60))):
        pq.write_table(part, tmp_path / f"{number}.parquet")
    groups = list(enumerate([[tmp_path / "0.parquet"], [tmp_path / "1.parquet"]]))
    run_tasks(LocalWorkers(), partial(source._deal, n_hands=4), groups, tmp_path)
    hands = [
        read_bucket(tmp_path / source.HANDS, hand, 4, source.LISTING_SCHEMA) for hand in range(4)
    ]
    sizes = [sum(hand["n_bytes"].to_pylist()) for hand in hands]
    assert max(sizes) - min(sizes) < 100
    names = sorted(name for hand in hands for name in hand["table"].to_pylist())
    assert names == sorted(row["table"] for row in rows)


@pytest.mark.parametrize(
    ("n_bytes", "n_tasks"), [(0, 1), (1 << 20, 1), (5 << 20, 3), (1 << 28, 8), (1 << 30, 32)]
)
def test_larger_lakes_are_read_in_more_tasks(n_bytes, n_tasks):
    assert source.n_reading_tasks(LocalWorkers(2), n_bytes) == n_tasks


@pytest.mark.parametrize("lake", ["nowhere", "no where.csv", "a.b.c.d", "/nowhere/at.all"])
def test_what_is_neither_a_path_nor_a_name_of_spark_is_told_at_once(lake, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LakeError, match="neither a folder nor a file"):
        source.source_of(lake)


@pytest.mark.parametrize("lake", ["sales.orders", "spark_catalog.sales.orders"])
def test_a_name_with_a_dot_is_one_of_sparks_catalog(lake, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert isinstance(source.source_of(lake), source.SparkSource)
    assert source.source_of(lake).name == f"spark:{lake}"
