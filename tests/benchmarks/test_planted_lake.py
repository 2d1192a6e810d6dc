"""The planted lake of the benchmark of a cluster: its words, its tables, and its truth."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks.cluster.lake import (
    LAKE,
    LEAST_ROWS,
    MOST_ROWS,
    QUERIES,
    QUERY_SIZES,
    WAYS,
    WIDTH,
    Settings,
    column_name,
    make_lake,
    table_name,
    truth_of,
    words_of,
    written,
)
from benchmarks.cluster.running import Setup
from embed.lexical import create
from pexeso.engine.sparse.vectors import LetterSpace, SparseVectors
from pexeso.lake.choose import ColumnRules
from pexeso.lake.normalise.normaliser import Normaliser

SETTINGS = Settings(columns=1500, queries=30, planted=8, min_joinability=0.5, seed=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Make a lake of 1,500 columns."""
    place = tmp_path_factory.mktemp("planted")
    make_lake(place, SETTINGS, lambda text: None)
    return place


def plain(cells):
    """Return values as people read them, without the normaliser: letters alone, in lower case."""
    return {"".join(letter for letter in cell.lower() if letter.isalpha()) for cell in cells}


def test_no_two_numbers_have_one_word():
    draws = np.random.default_rng(0)
    ids = np.unique(np.concatenate([np.arange(200_000), draws.integers(0, 400_000_000, 200_000)]))
    words = words_of(ids)
    assert len(words.unique()) == len(ids)
    assert len({word[:10] for word in words.to_pylist()}) == len(ids)
    sizes = {len(word) for word in words.to_pylist()}
    assert sizes == {10, 11, 12, 13, 14}


def test_different_words_are_far_beyond_the_threshold():
    ids = np.concatenate([np.arange(300), np.random.default_rng(1).integers(0, 4_000_000, 300)])
    model = create()
    words = model.encode(words_of(np.unique(ids)).to_pylist())
    vectors = SparseVectors.from_words(
        LetterSpace(**model.space),
        words.text,
        words.starts,
        words.weights,
        words.offsets,
        words.members,
    )
    distances = vectors.distances(vectors)
    assert np.allclose(np.diag(distances), 0)
    np.fill_diagonal(distances, 1)
    # Whatever letters two words share, their own coordinate keeps them apart.
    bound = np.sqrt(model.space["whole_word_share"] / 2)
    assert distances.min() >= bound - 1e-9
    assert Setup().max_distance < bound / 2


def test_every_way_of_writing_is_one_value_to_the_normaliser():
    words = words_of(np.arange(5000))
    cells = written(words, np.random.default_rng(0))
    normaliser = Normaliser()
    assert normaliser.normalise(words).to_pylist() == words.to_pylist()
    assert normaliser.normalise(cells).to_pylist() == words.to_pylist()
    others = sum(
        cell != word for cell, word in zip(cells.to_pylist(), words.to_pylist(), strict=True)
    )
    assert 0.2 < others / len(words) < 0.3
    shapes = {
        cell.replace(word, "{}")
        .replace(word.upper(), "{} in capitals")
        .replace(word.capitalize(), "{} with a capital")
        for cell, word in zip(cells.to_pylist(), words.to_pylist(), strict=True)
    }
    assert shapes == set(WAYS)


def test_tables_are_as_declared_and_columns_are_kept_by_the_default_rules(folder):
    files = sorted((folder / LAKE).rglob("*.parquet"))
    assert len(files) == SETTINGS.columns // WIDTH
    rows = [pq.read_metadata(path).num_rows for path in files]
    assert min(rows) >= max(LEAST_ROWS, ColumnRules().min_rows)
    assert max(rows) <= MOST_ROWS
    for path in files:
        table = pq.read_table(path)
        assert table.num_columns == WIDTH
        min_distinct = min(len(plain(column.to_pylist())) for column in table.columns)
        assert min_distinct >= ColumnRules().min_distinct


def test_the_truth_is_that_of_plain_sets_of_the_cells_on_disk(folder):
    lines = (folder / QUERIES).read_text(encoding="utf-8").splitlines()
    queries = [plain(json.loads(line)["values"]) for line in lines]
    assert [len(query) for query in queries] == [
        QUERY_SIZES[number % len(QUERY_SIZES)] for number in range(SETTINGS.queries)
    ]
    expected = [{} for _ in queries]
    n_pairs, values = 0, set()
    for path in (folder / LAKE).rglob("*.parquet"):
        table = pq.read_table(path)
        for name in table.column_names:
            cells = plain(table[name].to_pylist())
            n_pairs += len(cells)
            values |= cells
            for number, query in enumerate(queries):
                matched = len(query & cells)
                if 2 * matched >= len(query):
                    expected[number][path.relative_to(folder / LAKE).as_posix(), name] = matched
    assert truth_of(folder) == expected
    about = make_lake(folder, SETTINGS, pytest.fail)  # is there, and is not made again
    assert about["pairs"] == n_pairs
    assert about["values"] == len(values)
    assert about["truth"]["answers"] == sum(map(len, expected))
    # Every planted share of at least a half is found, and shares between all and a half.
    shares = [
        matched / len(query)
        for query, answers in zip(queries, expected, strict=True)
        for matched in answers.values()
    ]
    assert min(map(len, expected)) >= 1
    assert min(shares) == 0.5
    assert max(shares) == 1.0
    assert any(0.5 < share < 1 for share in shares)


def test_other_settings_make_another_lake(tmp_path):
    small = Settings(columns=100, queries=3, planted=2, min_joinability=0.5, seed=0)
    first = make_lake(tmp_path, small, lambda text: None)
    path = tmp_path / LAKE / table_name(0)
    before = pq.read_table(path)
    assert before.column_names == [column_name(at) for at in range(WIDTH)]
    other = Settings(columns=100, queries=3, planted=2, min_joinability=0.5, seed=1)
    second = make_lake(tmp_path, other, lambda text: None)
    assert first["settings"] != second["settings"]
    assert pq.read_table(path) != before
    make_lake(tmp_path, small, lambda text: None)
    assert pq.read_table(path) == before
