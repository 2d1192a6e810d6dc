"""The measurement of lexical searches beside products, on a small made-up lake."""

import json

import numpy as np
from click.testing import CliRunner

from benchmarks.lexical_speed import main, planted_partition


def test_a_planted_lake_has_columns_of_twenty_values_in_the_space_of_letters():
    partition = planted_partition(400)
    assert (partition.n_values, partition.n_columns) == (400, 20)
    assert np.diff(partition.column_lists.offsets).tolist() == [20] * 20
    np.testing.assert_array_equal(
        partition.vectors.norms, planted_partition(400).vectors.norms, "the same each time"
    )


def test_ratios_are_told_for_each_distance():
    done = CliRunner().invoke(main, ["--planted", "400"], catch_exceptions=False)
    head, *lines = done.output.splitlines()
    assert head.startswith("400 values, ")
    told = [json.loads(line) for line in lines]
    assert [each["max_distance"] for each in told] == [0.06, 0.2, 0.4]
    assert all(each["product_over_search"] >= 0 for each in told)
