"""The tasks of a graph by equal values, without Spark: together they give what one process does."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from pexeso.joins.graph import spark_tasks
from pexeso.joins.graph.edges import edges_between
from pexeso.joins.graph.spark_tasks import _EdgeJob, _waves, _work
from tests.joins.graph.plain_graphs import random_columns
from tests.joins.graph.test_equal_values import lake_of


@pytest.mark.parametrize("n_tasks", [1, 3, 50])
def test_waves_hold_each_column_once_in_order(n_tasks):
    sizes = np.random.default_rng(0).integers(1, 40, 90)
    waves = list(_waves(sizes, n_tasks))
    assert all(len(wave) <= n_tasks for wave in waves)
    runs = [run for wave in waves for run in wave]
    assert [begin for begin, _ in runs] == [0, *(end for _, end in runs[:-1])]
    assert runs[-1][1] == len(sizes)
    assert len(runs) >= min(n_tasks, 2)


def test_no_column_is_no_wave():
    assert list(_waves(np.empty(0, np.int64), 4)) == []


def test_tasks_give_what_one_process_does(tmp_path, monkeypatch):
    monkeypatch.setattr(spark_tasks, "take_one_thread", lambda: None)  # of this process
    known = lake_of(tmp_path, random_columns(8, n_tables=12), shards=2)
    sent = SimpleNamespace(value=_EdgeJob("a pass", known, 0.3, 4))
    batches = []
    for wave in _waves(known.sizes, 5):
        numbers = pa.record_batch([pa.array(range(len(wave)))], names=["id"])
        batches += _work(iter([numbers]), sent=sent, wave=wave)
    whole = edges_between(known, 0.3, 4, 0, len(known))
    expected = [pa.record_batch(list(arrays[:3]), schema=batches[0].schema) for arrays in whole]
    assert pa.Table.from_batches(batches) == pa.Table.from_batches(expected)
    assert list(spark_tasks._READ) == ["a pass"]  # for the next task of the same pass alone
