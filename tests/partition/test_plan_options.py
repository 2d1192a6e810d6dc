import pytest

from partition.options import PlanOptions
from pexeso.errors import InputError


def test_the_default_is_the_true_divergence():
    assert PlanOptions(dimensions=10, n_partitions=2).method == "jensen-shannon"


def test_limits_follow_what_was_asked_for():
    fixed = PlanOptions(dimensions=10, n_partitions=4, max_imbalance=1.5).limits(100, 1000)
    assert (fixed.n_bins, fixed.fixed, fixed.limit_bytes) == (4, True, 375)
    sized = PlanOptions(dimensions=10, partition_bytes=300).limits(100, 1000)
    assert (sized.n_bins, sized.fixed, sized.limit_bytes) == (4, False, 300)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "Exactly one of n_partitions and partition_bytes"),
        ({"n_partitions": 2, "partition_bytes": 5}, "Exactly one of n_partitions and partition_bytes"),
        ({"n_partitions": 0}, "n_partitions must be a whole number from 1 to 2147483647. Got 0"),
        ({"n_partitions": True}, "n_partitions must be a whole number .* Got True"),
        ({"partition_bytes": 0.5}, "partition_bytes must be a whole number of at least 1. Got 0.5"),
        ({"n_partitions": 2, "dimensions": 0}, "dimensions must be a whole number of at least 1. Got 0"),
        ({"n_partitions": 2, "n_codes": 300}, "n_codes must be a whole number from 1 to 256. Got 300"),
        ({"n_partitions": 2, "max_iterations": 0}, "max_iterations must be a whole number of at least 1. Got 0"),
        ({"n_partitions": 2, "seed": -1}, "seed must be a whole number from 0 .* Got -1"),
        ({"n_partitions": 2, "method": "jsd"}, "method must be one of jensen-shannon, .* Got 'jsd'"),
        ({"n_partitions": 2, "max_imbalance": float("inf")}, "max_imbalance must be a number of at least 1.1. Got inf"),
        ({"n_partitions": 2, "max_imbalance": "2"}, "max_imbalance must be a number of at least 1.1. Got '2'"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        PlanOptions(**{"dimensions": 10, **options})
