"""The index gives the answer of brute force on real query columns, in one partition and in many.

The long run is ``PYTHONPATH=. python tests/agreement.py INDEX INDEX --queries 200`` over all shared
lakes.
"""

import shutil

import agreement
import pytest
from long_runs import EVERYTHING

from pexeso.index import build_index
from tests.conftest import ROOT

QUERIES = 10 if EVERYTHING else 4


def indexes(lake, folder):
    one = build_index(lake, folder / "one.pexeso", model="hashing", n_partitions=1)
    many = build_index(
        lake, folder / "many.pexeso", model=str(one.store.embedder_folder), n_partitions=8
    )
    assert (one.store.n_partitions, many.store.n_partitions) == (1, 8)
    return str(one.path), str(many.path)


def test_on_a_part_of_the_demo_lake(tmp_path, capsys):
    assert (
        agreement.main(
            [*indexes(ROOT / "examples" / "lake" / "business", tmp_path), "--queries", str(QUERIES)]
        )
        == 0
    )
    assert capsys.readouterr().out.endswith(
        f"{QUERIES} query columns, 4 settings, 1 and 8 partitions: 0 differences\n"
    )


@pytest.mark.lakes
@pytest.mark.long
def test_on_a_real_lake(lake_folder, tmp_path, capsys):
    """Compare with brute force in the same partitions, on some tables of a real lake.

    Not all tables are used, since a second build would take half a minute.
    """
    lake = tmp_path / "lake"
    lake.mkdir()
    for path in sorted(lake_folder("pudding").rglob("*.csv"))[::8]:
        shutil.copy(path, lake)
    index = build_index(lake, tmp_path / "many.pexeso", model="hashing", n_partitions=8)
    assert agreement.main([str(index.path), "--queries", "4"]) == 0
    assert capsys.readouterr().out.endswith(
        "4 query columns, 4 settings, 8 partitions: 0 differences\n"
    )


def test_a_difference_is_told(small_index, monkeypatch, capsys):
    real = agreement.answer
    answers = iter(range(1000))
    monkeypatch.setattr(agreement, "answer", lambda result: [*real(result), next(answers)])
    assert agreement.main([str(small_index), "--queries", "1"]) == 1
    assert "DIFFERENT:" in capsys.readouterr().out
