"""The measures of searches by composite keys, on a small lake and a small drawn one."""

import json

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from benchmarks.composite.command import (
    FOUR,
    WAYS,
    composite_command,
    drawn_questions,
    load_lake,
    power_law_rows,
)
from benchmarks.composite.published_filter import PublishedXash
from pexeso.composite.row_keys import faults_within
from pexeso.errors import InputError, LakeError


@pytest.fixture
def lake(tmp_path):
    for number in range(3):
        rows = [f"A{row},b{row % 3}, {row}.0" for row in range(number, number + 9)]
        (tmp_path / f"{number}.csv").write_text("\n".join(["x,y,z", *rows]) + "\n")
    return tmp_path


def test_cells_have_the_form_in_which_they_are_compared(lake):
    rows = load_lake(str(lake))
    assert (rows.n_tables, rows.n_rows) == (3, 27)
    assert rows.values.to_pylist()[:3] == ["0", "1", "10"]
    assert "a0" in rows.values.to_pylist()


def test_every_way_is_measured_and_trends_are_those_of_the_paper(lake):
    arguments = [str(lake), "--queries", "4", "--json"]
    done = CliRunner().invoke(composite_command, arguments, catch_exceptions=False)
    results = json.loads(done.output)
    for m in (2, 3):
        result = results[f"{m} columns"]
        assert sum(result["choice"]["chosen"].values()) == 4
        assert set(result["choice"]) == {"queries", "chosen", "auto", *FOUR}
        filters = result["filters"]
        assert set(filters) == set(WAYS)
        assert len({filters[name]["probes"] for name in WAYS if name != "MCR"}) == 1
        assert all(filters[name]["precision"] >= filters["SCR"]["precision"] for name in WAYS)


def test_the_power_law_lake_is_sound_and_the_same_for_a_seed():
    rows, again = power_law_rows(2000), power_law_rows(2000)
    assert rows.n_rows == 2000
    assert list(faults_within(rows)) == []
    assert np.array_equal(rows.cells, again.cells)
    assert rows.values.equals(again.values)
    assert not np.array_equal(rows.cells[:500], power_law_rows(2000, seed=1).cells[:500])
    with pytest.raises(InputError, match="at least 100 rows"):
        power_law_rows(99)


def test_drawn_keys_are_of_the_table_that_is_left_out():
    rows = power_law_rows(2000)
    for question in drawn_questions(rows, 2, 5):
        assert 0 <= question.table < rows.n_tables
        assert question.query.n_keys >= 2
    with pytest.raises(LakeError, match="no 3 keys of 9 columns"):
        drawn_questions(rows, 9, 3)


def test_the_published_program_sets_its_bits():
    texts = ["muhammad", "lee", "2021 01 05", "x" * 120, "the quick brown fox"]
    assert [f"{PublishedXash().number_of(text):032x}" for text in texts[:4]] == [
        "00800401004000000000000400000800",
        "00040000002000020000000000000000",
        "02000000002005240000000000000000",
        "00012000000000000000000000000000",
    ]
    assert f"{PublishedXash(64).number_of('muhammad'):016x}" == "0000200211200010"
    hashes = PublishedXash().hashes(pa.array(["", *texts]))
    assert (hashes.dtype, hashes.shape, hashes[0].tolist()) == (np.uint64, (6, 2), [0, 0])
    assert hashes[1].tolist() == [0x0080040100400000, 0x0000000400000800]
