"""Tests of the measurement of a lake larger than a device, at a size that takes a second."""

import json

import pytest
import torch

from benchmarks.gpu import out_of_core
from benchmarks.gpu.out_of_core import measure_out_of_core
from benchmarks.gpu.timing import Clock

CPU = torch.device("cpu")


def test_all_that_does_not_stay_is_copied_once_a_search_and_once_a_batch():
    clock = Clock(60.0)
    result = measure_out_of_core(CPU, clock, 6 * 2_000, 16, 6, 0.6)
    assert json.loads(json.dumps(result)) == result
    assert result["agree"]
    assert result["copies_ahead"]
    assert result["columns_found"] >= 100 * 6 // 2
    n_copied = 6 - result["partitions_kept"]
    assert n_copied >= 3
    one = result["lake_bytes"] // 6
    assert result["copied_bytes"] == result["batch_copied_bytes"]
    assert 0.95 * one * n_copied < result["copied_bytes"] <= one * n_copied
    assert result["share_of_link"] > 0
    assert result["batch_seconds"] > 0
    assert not clock.left_out


def test_a_batch_is_left_out_where_the_time_is_over():
    clock = Clock(0.0)
    result = measure_out_of_core(CPU, clock, 2 * 400, 8, 2, 0.0)
    assert result["batch_seconds"] is None
    assert [part["part"] for part in clock.left_out] == ["out of core: a batch"]
    assert result["agree"]
    assert not result["copies_ahead"]


@pytest.mark.parametrize("what", ["vectors", "value_columns_members"])
def test_a_copy_that_went_wrong_is_noticed(monkeypatch, what):
    real = out_of_core.MemoryStore.partition

    def partition(store, number):
        arrays = real(store, number)
        if number == 3:
            arrays[what] = arrays[what][::-1].copy()
        return arrays

    monkeypatch.setattr(out_of_core.MemoryStore, "partition", partition)
    monkeypatch.setattr(
        out_of_core.PartitionLoader,
        "mapped",
        lambda scan, number: scan._mapped.setdefault(
            number, scan.space.open(real(scan.store, number))
        ),
    )
    result = measure_out_of_core(CPU, Clock(60.0), 6 * 2_000, 16, 6, 0.0)
    assert not result["agree"]
