"""The measurement of lexical searches beside products, on a small made-up lake."""

import json
from itertools import pairwise

import numpy as np
from click.testing import CliRunner

from benchmarks import lexical_speed
from benchmarks.lexical_speed import main, planted_partition, tables_of


def test_a_planted_lake_has_columns_of_twenty_different_values_in_the_space_of_letters():
    partition = planted_partition(400)
    vectors, again = partition.vectors, planted_partition(400).vectors
    assert np.diff(partition.column_lists.offsets).tolist() == [20] * partition.n_columns
    assert 300 < partition.n_values == 20 * partition.n_columns <= 400
    values = {tuple(vectors.members[begin:end]) for begin, end in pairwise(vectors.offsets)}
    assert len(values) == partition.n_values
    np.testing.assert_array_equal(vectors.norms, again.norms, "the same each time")


def test_times_are_told_for_each_distance(tmp_path, monkeypatch):
    monkeypatch.setattr(lexical_speed, "partition_of", lambda path: planted_partition(400))
    monkeypatch.setattr(lexical_speed, "RESULTS", tmp_path / "effectiveness")
    monkeypatch.setattr(lexical_speed, "DISTANCES", (0.4,))
    done = CliRunner().invoke(
        main,
        [str(tmp_path), "--threads", "1,2", "--planted", "400", "--write"],
        catch_exceptions=False,
    )
    *measured, head, first, second, third = done.output.splitlines()[:6]
    assert head.startswith("3")
    timings = [json.loads(line) for line in (*measured, first, second, third)]
    assert [timing["max_distance"] for timing in timings] == [0.4, 0.4, 0.06, 0.2, 0.4]
    result = json.loads((tmp_path / "lexical" / "speed.json").read_text("utf-8"))
    assert [rows[0] for rows in result["index"]["threads"].values()] == timings[:2]
    assert result["planted"]["400"]["measured"] == timings[2:]
    assert f"{timings[-1]['microseconds_a_value']:,} µs" in tables_of(result).splitlines()[-1]
