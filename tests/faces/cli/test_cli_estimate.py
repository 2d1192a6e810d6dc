"""`pexeso estimate`: figures with their basis."""

import json

from pexeso.build.job import stage_names
from pexeso.composite.part.part import ROW_KEYS_PART
from pexeso.redundancy.part.part import ROW_HASHES_PART

STAGES = tuple(
    stage
    for stage in ("start", *stage_names())
    if stage not in ("changes", *ROW_KEYS_PART.stages, *ROW_HASHES_PART.stages)
)


def test_a_small_lake_is_counted(run, small_lake):
    result = run("estimate", small_lake, "--model", "hashing", "--dimensions", 64)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"lake     {small_lake}: 7 files, ")
    assert lines[1:4] == [
        "tables   5",
        "columns  12, of which 7 will be indexed",
        "values   33 distinct, in 42 (column, value) pairs",
    ]
    assert lines[-1] == "Counted in all 7 files; bytes, memory and time are rough."
    assert result.stderr == ""


def test_a_larger_lake_is_sampled(run, tmp_path):
    for number in range(240):
        rows = "".join(f"word{number:03d}x{row}\n" for row in range(6))
        (tmp_path / f"t{number:03d}.csv").write_text(f"word\n{rows}", encoding="utf-8")
    lines = run("estimate", tmp_path, "--model", "hashing").stdout.splitlines()
    assert lines[1] == "tables   about 240"
    assert lines[-1].startswith("From 200 of 240 files (83 % of the bytes): a rough figure.")


def test_json(run, small_lake):
    document = json.loads(run("estimate", small_lake, "--model", "hashing", "--json").stdout)
    assert document["exact"] is True
    assert document["values"] == 33
    assert tuple(document["seconds"]) == tuple(
        stage for stage in STAGES if stage not in ("divide", "tokens")
    )


def test_parts_for_equal_text(run, small_lake):
    words = (
        "estimate",
        small_lake,
        "--model",
        "hashing",
        "--dimensions",
        64,
        "--include",
        "overlap",
    )
    lines = run(*words).stdout.splitlines()
    assert lines[0].startswith(f"lake        {small_lake}: 7 files, ")
    assert lines[5].startswith(
        "equal text  overlap: 11 columns, 61 distinct values in 66 (column, value) pairs; of the "
        "index about "
    )
    assert lines[5].endswith(" in 1 shard")
    assert ", divide " in lines[7]
    document = json.loads(run(*words, "--json").stdout)
    assert tuple(document["seconds"]) == STAGES
    assert document["equal_text"]["parts"] == ["overlap"]


def test_nothing_to_estimate(fail, tmp_path):
    assert "There is no table in" in fail(1, "estimate", tmp_path)
