"""The measurement of lexical searches beside products, on a small made-up lake."""

import json

from click.testing import CliRunner

from benchmarks import lexical_speed, report
from benchmarks.lexical_speed import main, planted_partition, tables_of


def test_times_are_told_for_each_distance(tmp_path, monkeypatch):
    monkeypatch.setattr(lexical_speed, "partition_of", lambda path: planted_partition(400))
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(lexical_speed, "DISTANCES", (0.4,))
    done = CliRunner().invoke(
        main,
        ["--index", str(tmp_path), "--threads", "1,2", "--planted", "400", "--write"],
        catch_exceptions=False,
    )
    result = json.loads((tmp_path / "lexical" / "speed.json").read_text("utf-8"))
    assert [row["max_distance"] for row in result["index"]["threads"]["2"]] == [0.4]
    planted = result["planted"]["400"]["measured"]
    assert [row["max_distance"] for row in planted] == [0.06, 0.2, 0.4]
    assert f"{planted[-1]['microseconds_a_value']:,} µs" in tables_of(result).splitlines()[-1]
    assert tables_of(result) in done.stdout
