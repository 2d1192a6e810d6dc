"""Lakes made of tables: what is read, how columns are numbered, and that a made lake is kept."""

from contextlib import contextmanager

import numpy as np
import pytest

from benchmarks.datasets.cache import file_digest
from benchmarks.datasets.tables import SHARED, Sources, TablesData, web_sources

TABLES = {
    "b/cities.csv": "City,Country\nOslo,Norway\nRome,Italy\nTurin,Italy\n"
    "Paris,France\nLyon,France\n\n",
    "a/again.csv": "City,City\nOslo,Bergen\nParis,Lyon\nOSLO,Rome\nMadrid,Oslo\nRome,Turin\n",
}


@pytest.fixture
def sources(tmp_path):
    folder = tmp_path / "lake"
    for name, text in TABLES.items():
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(text, encoding="utf-8")
    opened = []

    @contextmanager
    def in_place():
        opened.append(1)
        yield {"mine": folder}

    return Sources({name: file_digest(folder / name) for name in TABLES}, in_place), opened


def test_columns_are_numbered_by_table_name_and_position(sources, tmp_path):
    lake = TablesData("mine", lambda: sources[0], "hashing", 16, 0, tmp_path / "cache").load()
    assert list(lake.columns) == [
        "mine/a/again.csv:City",
        "mine/a/again.csv:City",
        "mine/b/cities.csv:City",
        "mine/b/cities.csv:Country",
    ]
    assert np.diff(lake.column_offsets).tolist() == [4, 5, 5, 3]
    assert lake.column_rows.tolist() == [5, 5, 5, 5]
    assert lake.value_rows[:4].tolist().count(2) == 1  # Oslo and OSLO
    assert lake.value_rows.sum() == 20
    assert (lake.n_values, lake.dimensions) == (10, 16)
    assert np.allclose(np.linalg.norm(lake.vectors, axis=1), 1, atol=1e-5)
    # Oslo and Rome are in three columns; Paris, Lyon and Turin in two.
    assert sorted(lake.value_columns.sizes.tolist()) == [1, 1, 1, 1, 1, 2, 2, 2, 3, 3]


def test_a_lake_is_made_once_for_the_same_tables_and_options(sources, tmp_path):
    given, opened = sources
    first = TablesData("mine", lambda: given, "hashing", 16, 0, tmp_path / "cache").load()
    again = TablesData("mine", lambda: given, "hashing", 16, 0, tmp_path / "cache").load()
    assert len(opened) == 1
    assert again.fingerprint == first.fingerprint
    assert again.describe() == first.describe()
    TablesData("mine", lambda: given, "hashing", 8, 0, tmp_path / "cache").load()
    changed = Sources({**given.digests, "b/cities.csv": "other"}, given.open)
    TablesData("mine", lambda: changed, "hashing", 16, 0, tmp_path / "cache").load()
    assert len(opened) == 3
    assert not list((tmp_path / "cache").glob("unfinished-*"))


def test_a_lake_that_fails_leaves_nothing(sources, tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("no model")

    monkeypatch.setattr(TablesData, "_embed", fail)
    with pytest.raises(RuntimeError):
        TablesData("mine", lambda: sources[0], "hashing", 16, 0, tmp_path / "cache").load()
    assert not list((tmp_path / "cache").glob("*"))


def test_values_without_a_vector_are_dropped_but_their_rows_count(sources, tmp_path, monkeypatch):
    def embed(self, column, encoded):
        vectors = np.eye(len(encoded.dictionary), 16, dtype=np.float32)
        vectors[encoded.dictionary.to_pylist().index("oslo")] = 0
        return vectors

    monkeypatch.setattr(TablesData, "_embed", embed)
    lake = TablesData("mine", lambda: sources[0], "hashing", 16, 0, tmp_path / "cache").load()
    assert np.diff(lake.column_offsets).tolist() == [3, 4, 4, 3]
    assert lake.column_rows.tolist() == [5, 5, 5, 5]
    assert lake.facts["values_without_vector"] == 1


@pytest.mark.lakes
def test_the_real_lakes_can_be_unpacked():
    if not SHARED.is_dir():
        pytest.skip("the shared real lakes (../shared/data) are not on this machine")
    with web_sources().open() as folders:
        assert sorted(folders) == ["fivethirtyeight", "pudding", "wikitables"]
        assert all(any(path.rglob("*.csv*")) for path in folders.values())
    assert not any(path.exists() for path in folders.values())
