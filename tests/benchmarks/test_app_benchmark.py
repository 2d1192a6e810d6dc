"""The measurement of the app: its lake, its figures, and one short run."""

import csv

import pytest

pytest.importorskip("httpx", reason="httpx is not installed")
pytest.importorskip("uvicorn", reason="the extra app is not installed")

from benchmarks.app import NAMES, ROWS, measured, summary_of, write_lake
from pexeso.index import build_index


def test_tables_of_one_list_of_names_join_and_others_do_not(tmp_path):
    names = write_lake(tmp_path / "lake", 7 * ROWS, seed=0)
    columns = []
    for number in range(7):
        with (tmp_path / "lake" / f"table{number}.csv").open(encoding="utf-8") as stream:
            columns.append({row["name"] for row in csv.DictReader(stream)})
    assert [len(column) for column in columns] == [ROWS] * 7
    assert len(columns[0] & columns[5]) >= 2 * ROWS - NAMES
    assert not columns[0] & columns[1]
    assert columns[0] <= set(names[0])


def test_figures_are_medians_and_ratios_of_the_same_round():
    seconds = {"search": [0.1, 0.2, 0.4], "slider": [0.2, 0.2, 0.4], "paste": [0.1, 0.4, 1.6]}
    figures = summary_of(seconds)
    assert figures["slider"] == {"median_ms": 200.0, "q95_ms": 380.0}
    assert figures["slider_over_search"]["median"] == 1.0
    assert figures["paste_over_search"]["median"] == 2.0


@pytest.mark.long
@pytest.mark.spark
def test_a_server_is_measured(tmp_path, spark):
    names = write_lake(tmp_path / "lake", 2 * ROWS, seed=0)
    index = build_index(tmp_path / "lake", tmp_path / "lake.pexeso")
    figures = measured(index.path, names, 1, seed=0)
    assert figures["first_page"]["median_ms"] > 0
    assert {"search", "slider", "paste", "slider_over_search"} <= figures.keys()
