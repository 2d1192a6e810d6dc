"""Tables that are to be joined, and named columns joined by the most similar keys."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from embed.corpus import write_corpus
from embed.registry import create_embedder
from pexeso import learn_transformation
from pexeso.build.parts.metadata import sparse_vectors
from pexeso.engine.sparse.vectors import pair_distances
from pexeso.errors import ColumnNotFoundError, InputError, QueryError, TableReadError
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.transform.joins import learned
from pexeso.transform.joins.sides import file_name, side_of
from pexeso.transform.nearest import nearest_values


def named(side):
    return [side.names[at] for at in side.columns]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text('first,last,age,"a,b"\nAnn,Lee,3,x\nBob,Fox,4,y\n', encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("spec", "columns", "expected"),
    [
        ("{}", None, ["first", "last", "a,b"]),
        ("{}:last", None, ["last"]),
        ("{}:last,first", None, ["last", "first"]),
        ("{}:first,first", None, ["first"]),
        ("{}:a,b", None, ["a,b"]),
        ("{}:#2", None, ["age"]),
        ("{}", "age", ["age"]),
        ("{}", ["age", "first"], ["age", "first"]),
        ("{}", "first,age", ["first", "age"]),
    ],
)
def test_columns_are_named_or_those_of_text(table, spec, columns, expected):
    side = side_of(spec.format(table), columns)
    assert named(side) == expected
    assert side.named == (columns is not None or ":" in spec)
    assert side.n_rows == 2


def test_a_path_is_as_good_as_a_text(table):
    assert named(side_of(table)) == ["first", "last", "a,b"]


def test_a_table_of_an_index(small_index):
    side = side_of(f"{small_index}:cities.csv:city")
    assert named(side) == ["city"]
    assert side.cells[0].to_pylist()[:2] == ["Oslo", "Rome"]
    assert named(side_of(f"{small_index}:cities.csv")) == ["city", "country"]
    assert named(side_of(f"{small_index}:cities.csv:city,country")) == ["city", "country"]


def test_names_are_made_different():
    table = pa.table([pa.array(["x"])] * 3, names=["a", "a", ""])
    assert side_of(table).names == ("#0", "#1", "#2")


@pytest.mark.parametrize(
    ("cells", "is_text"),
    [
        (["1", "2", "30"], False),
        (["1,000", "2.5 kg", "-7 %"], True),
        (["1,000", "2.5", "-7 %"], False),
        (["2020-01-01", "2021-02-02", None], True),
        ([1, 2, 3], False),
        ([1.5, 2.5, None], False),
        ([None, None, None], False),
        ([" ", "", "\N{NO-BREAK SPACE}"], False),
        ([["x"], ["y"], []], False),
        ([b"\xff", b"x", b"y"], False),
        ([b"z", b"x", b"y"], True),
    ],
)
def test_columns_of_numbers_and_of_nothing_are_left_out(cells, is_text):
    side = side_of({"sure": ["x", "y", "z"], "c": pa.array(cells)})
    assert named(side) == (["sure", "c"] if is_text else ["sure"])


def test_numbers_are_taken_where_there_is_nothing_else():
    assert named(side_of({"n": [1, 2], "none": pa.array([None, None]), "m": [3, 4]})) == ["n", "m"]


def test_cells_are_cleaned_for_programs_alone():
    side = side_of({"c": [" e\u0301 ", ""]})
    assert side.texts.columns[0].cells.to_pylist() == ["é", None]
    assert list(side.cells[0].to_pylist()) == [" e\u0301 ", ""]


def test_floats_are_read_as_files_have_them():
    side = side_of({"phone": [49301234567.0, None], "part": [0.5, 2.0]})
    texts = [column.cells.to_pylist() for column in side.texts.columns]
    assert texts == [["49301234567", None], ["0.5", "2"]]


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        ({"c": pa.array([], pa.string())}, QueryError, "The table has no rows, so there is noth"),
        ({}, QueryError, "The table has no column"),
        ({"c": ["", None]}, QueryError, "The table has no text, so there is nothing to join."),
        ({"c": [["x"]]}, QueryError, "The table has no text, so there is nothing to join."),
        (7, QueryError, "Got int"),
    ],
)
def test_tables_without_cells_are_refused(table, error, message):
    with pytest.raises(error, match=message):
        side_of(table)


def test_a_column_that_is_no_text_is_refused_by_its_name():
    with pytest.raises(QueryError, match=r"The column 'c' holds list<.*>, which is not text"):
        side_of({"c": pa.array([["x"]])}, "c")


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", TableReadError, "is empty: it has no header row"),
        ("a,b\n", TableReadError, "has no rows, so there is nothing to join"),
        ("a,b\n,\n", TableReadError, "has no text, so there is nothing to join"),
    ],
)
def test_files_without_cells_are_refused(tmp_path, text, error, message):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(error, match=message):
        side_of(str(path))


def test_columns_and_files_that_are_not_there_are_refused(table, small_index, tmp_path):
    with pytest.raises(ColumnNotFoundError, match=r"'lst' \(did you mean 'last'\?\)"):
        side_of(f"{table}:lst")
    with pytest.raises(ColumnNotFoundError, match="There is no column 'lst'"):
        side_of(f"{table}:first,lst")
    with pytest.raises(TableReadError, match="cannot be read: No such file"):
        side_of(tmp_path / "none.csv")
    with pytest.raises(InputError, match=r"The lake has no table 'none\.csv'"):
        side_of(f"{small_index}:none.csv")
    with pytest.raises(InputError, match=r"'broken\.parquet' is not in the index: "):
        side_of(f"{small_index}:broken.parquet")


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("tr1.csv:first/last", "tr1.csv"),
        ("data/tr1.csv:first/last,b/c", "tr1.csv"),
        ("data/tr1.csv", "tr1.csv"),
        ("lake.pexeso:a/b.csv:c/d", "b.csv"),
        ("in/lake.pexeso:a/b.csv", "b.csv"),
        ("in/lake.pexeso:b.csv", "lake.pexeso:b.csv"),
        ("s3://there/a.csv:x/y", "a.csv"),
        ("s3://there/a.csv", "a.csv"),
    ],
)
def test_the_name_of_a_file_ends_before_its_columns(spec, name):
    assert file_name(spec) == name


def test_a_folder_with_a_colon_is_no_file(tmp_path):
    folder = tmp_path / "a:b"
    folder.mkdir()
    (folder / "c.csv").touch()
    assert file_name(str(folder / "c.csv")) == file_name(f"{folder / 'c.csv'}:d/e") == "c.csv"


TEAMS = ["Buffalo Bills", "New York Jets", "Oakland Raiders", "Denver Broncos", "Miami Dolphins"]
LIKE = ["Buffalo Bils", "NY Jets", "Los Angeles Raiders", "Dolphins of Miami", "Chess", "Bern"]


def brute_force(texts, keys, folder):
    columns = [pa.array(side, pa.string()) for side in (texts, keys)]
    left, right = Normaliser().normalise_columns(columns)
    corpus = folder / "corpus.txt"
    held = pa.table({"group": np.zeros(len(right), np.int64), "value": right})
    write_corpus(held.to_batches(), corpus)
    embedder = create_embedder("lexical", corpus=corpus)
    queries, stored = (sparse_vectors(embedder, side) for side in (left, right))
    shape = len(texts), len(keys)
    row, key = (positions.ravel() for positions in np.indices(shape))
    return pair_distances(queries.take(row), stored.take(key)).reshape(shape)


def test_the_nearest_key_within_the_usual_distance(tmp_path):
    distances = brute_force(LIKE, TEAMS, tmp_path)
    places, nearest = nearest_values(pa.array(LIKE), pa.array(TEAMS))
    smallest = distances.min(axis=1)
    expected = np.where(smallest <= 0.4, distances.argmin(axis=1), -1)
    assert places.tolist() == expected.tolist()
    assert np.array_equal(nearest, np.where(smallest <= 0.4, smallest, 0.0))
    assert places.tolist()[0] == 0
    assert -1 in places.tolist()


def test_named_columns_without_a_program_are_joined_by_similarity():
    tables = {"a": [*LIKE, "Denver Broncos"]}, {"b": TEAMS}
    joined = learn_transformation(*tables, columns="a", target_columns="b")
    assert joined.program is None
    assert ("Denver Broncos", "Denver Broncos", "equal") in joined.pairs
    assert ("Buffalo Bils", "Buffalo Bills", "fuzzy") in joined.pairs
    assert {kind for *_, kind in joined.pairs} == {"equal", "fuzzy"}
    for options in ({}, {"columns": "a"}, {"columns": "a", "target_columns": "b", "fuzzy": False}):
        alone = learn_transformation(*tables, **options)
        assert alone.pairs == [("Denver Broncos", "Denver Broncos", "equal")]


@pytest.mark.parametrize(
    ("texts", "keys", "max_values"),
    [
        # Six texts have no partner: what repeats, and what is equal to a key, does not count.
        ([*LIKE, *LIKE, "Denver Broncos"], TEAMS, 6),
        (TEAMS[:2], [*LIKE, "Denver Broncos"], 7),
    ],
)
def test_more_values_than_the_limit_are_not_compared(monkeypatch, texts, keys, max_values):
    def joined(limit):
        monkeypatch.setattr(learned, "MAX_VALUES", limit)
        return learn_transformation({"a": texts}, {"b": keys}, columns="a", target_columns="b")

    compared, left_out = joined(max_values), joined(max_values - 1)
    assert "fuzzy" in {kind for *_, kind in compared.pairs}
    assert "fuzzy" not in {kind for *_, kind in left_out.pairs}
    assert left_out.tried == (
        f"{compared.tried}; similar values were not joined either, as a column has more than "
        f"{max_values - 1} distinct ones: index one table and use 'pexeso join', or give fewer rows"
    )


def test_columns_of_many_different_values_end_at_once():
    n_values = learned.MAX_VALUES + 1
    many = {"a": [f"{number:x}" for number in np.random.default_rng(0).permutation(n_values)]}
    joined = learn_transformation(many, {"b": ["zz top"]}, columns="a", target_columns="b")
    assert joined.pairs == []
    assert "more than 15,000 distinct ones" in joined.tried


@pytest.mark.parametrize(
    ("texts", "keys", "places"),
    [
        (["AB0017X", "AB0071X", "GH-9999"], ["AB0017Y", "AB0071Z", "gh-9999"], [-1, -1, 2]),
        (["2019", "2020", "2021"], ["2019/20", "2020-21", "2021."], [-1, -1, 2]),
        (["j.smith@a.org", "b.lee@a.org"], ["j.smyth@a.org", "b.lee@A.org"], [-1, 1]),
        # Most are equal with the day first.
        (["05/01/2024", "06/01/2024"], ["2024-05-01", "2024-01-05", "2024-01-06"], [1, 2]),
        (["2024-01-05", "2024-01-06"], ["01/05/2024", "06/01/2024", "05/01/2024"], [2, 1]),
    ],
)
def test_of_codes_numbers_and_dates_equal_ones_alone(texts, keys, places):
    assert nearest_values(pa.array(texts), pa.array(keys))[0].tolist() == places
    tables = {"a": texts}, {"b": keys}
    joined = learn_transformation(*tables, columns="a", target_columns="b")
    assert [left for left, *_ in joined.pairs] == [
        text for text, place in zip(texts, places, strict=True) if place >= 0
    ]
