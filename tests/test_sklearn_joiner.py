"""`pexeso.sklearn.LakeJoiner` is a transformer of scikit-learn that adds columns of a lake."""

import gc
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import pexeso
from pexeso.sklearn import LakeJoiner

CITIES = (
    *("Oslo", "Rome", "Madrid", "Vienna", "Lisbon", "Berlin"),
    *("Paris", "Bern", "Athens", "Riga", "Lima", "Quito"),
)
N_CITIES = len(CITIES)
PEOPLE = {city: 10.0 * number**2 for number, city in enumerate(CITIES)}
COUNTRY = {city: f"country {number % 3}" for number, city in enumerate(CITIES)}
ADDED = ["cities.csv:country", "cities.csv:people"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("joiner")
    (folder / "lake").mkdir()
    rows = "".join(f"{city},{COUNTRY[city]},{PEOPLE[city]:.0f}\n" for city in CITIES)
    text = f"city,country,people\n{rows}Rome,other,300\n"
    (folder / "lake" / "cities.csv").write_text(text, encoding="utf-8")
    pexeso.build_index(folder / "lake", folder / "lake.pexeso")
    return folder


@pytest.fixture(autouse=True)
def in_folder(folder, monkeypatch):
    monkeypatch.chdir(folder)


@pytest.fixture
def mine():
    return pd.DataFrame(
        {"n": range(N_CITIES + 2), "city": [*map(str.upper, CITIES), "Romes", None]}
    )


@parametrize_with_checks([LakeJoiner("lake.pexeso")])
def test_it_is_an_estimator_as_scikit_learn_wants_it(estimator, check):
    check(estimator)


def test_the_columns_of_the_first_table_are_added_to_all(mine):
    joiner = LakeJoiner("lake.pexeso", on="city").fit(mine)
    assert [one.name for one in joiner.columns_] == ADDED
    joined = joiner.transform(mine)
    assert list(joined.columns) == ["n", "city", *ADDED] == list(joiner.get_feature_names_out())
    rome = (PEOPLE["Rome"] + 300) / 2
    people = [rome if city == "Rome" else PEOPLE[city] for city in CITIES]
    np.testing.assert_array_equal(joined[ADDED[1]], [*people, rome, np.nan])
    assert joined[ADDED[0]].iloc[:N_CITIES].tolist() == list(COUNTRY.values())
    pd.testing.assert_frame_equal(joined[["n", "city"]], mine)
    other = pd.DataFrame({"n": [7, 8], "city": ["Xyzzy", "vienna"]}, index=[5, 9])
    later = joiner.transform(other)
    assert later[ADDED[1]].fillna(-1).tolist() == [-1, PEOPLE["Vienna"]]
    assert later.index.tolist() == [5, 9]
    assert later.dtypes[ADDED[1]] == np.float64
    none = joiner.transform(other.iloc[:1])
    assert none[ADDED[1]].isna().tolist() == [True]
    assert none.dtypes[ADDED[1]] == np.float64


def test_tables_of_other_kinds_keep_their_kind(mine):
    expected = LakeJoiner("lake.pexeso", on="city").fit(mine).transform(mine)
    polars = pl.from_pandas(mine)
    joined = LakeJoiner("lake.pexeso", on="city").fit(polars).transform(polars)
    assert isinstance(joined, pl.DataFrame)
    assert joined[ADDED[1]].to_list()[:N_CITIES] == expected[ADDED[1]].tolist()[:N_CITIES]
    array = mine.to_numpy()
    joined = LakeJoiner("lake.pexeso", on=1).fit(array).transform(array)
    assert joined.shape == (N_CITIES + 2, 4)
    assert joined[:N_CITIES, 3].tolist() == expected[ADDED[1]].tolist()[:N_CITIES]
    named = LakeJoiner("lake.pexeso", on=1).set_output(transform="pandas").fit_transform(array)
    assert list(named.columns) == ["x0", "x1", *ADDED]


def test_what_gives_the_target_away_is_left_out(mine):
    mine = mine.iloc[:N_CITIES]
    mean_people = {**PEOPLE, "Rome": (PEOPLE["Rome"] + 300) / 2}
    target = [1000 - mean_people[city.title()] for city in mine["city"]]
    joiner = LakeJoiner("lake.pexeso", on="city").fit(mine, target)
    assert [one.name for one in joiner.columns_] == ADDED[:1]
    assert list(joiner.transform(mine).columns) == ["n", "city", ADDED[0]]


def test_a_model_behind_it_learns_from_the_lake(mine):
    mine = mine.iloc[:N_CITIES]
    target = [PEOPLE[city.title()] % 37 for city in mine["city"]]
    numbers = make_column_transformer(("passthrough", make_column_selector(dtype_include="number")))
    joiner = LakeJoiner("lake.pexeso", on="city", exclude_tables=())
    model = make_pipeline(joiner, numbers, LinearRegression()).fit(mine, target)
    assert model[-1].n_features_in_ == 2
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(mine), model.predict(mine))


def test_options_are_those_of_an_enrichment(mine):
    assert LakeJoiner("lake.pexeso", on="city", max_distance=0).fit(mine).columns_ != ()
    nothing = LakeJoiner("lake.pexeso", on="city", exclude_tables=["cities.csv"]).fit(mine)
    assert nothing.columns_ == ()
    pd.testing.assert_frame_equal(nothing.transform(mine), mine)
    opened = LakeJoiner(pexeso.open_index("lake.pexeso"), on="city")
    assert [one.name for one in clone(opened).fit(mine).columns_] == ADDED


def test_a_folder_of_tables_is_indexed_for_the_time(mine):
    joiner = LakeJoiner("lake", on="city").fit(mine)
    path = joiner.index_.path
    again = pickle.loads(pickle.dumps(joiner))
    pd.testing.assert_frame_equal(again.transform(mine), joiner.transform(mine))
    expected = LakeJoiner("lake.pexeso", on="city").fit(mine).transform(mine)
    pd.testing.assert_frame_equal(joiner.transform(mine), expected)
    del joiner
    gc.collect()
    assert not path.exists()


def test_wrong_parameters_are_refused_in_a_sentence(mine):
    with pytest.raises(pexeso.InputError, match=r"lake='lake\.pexeso'"):
        LakeJoiner().fit(mine)
    with pytest.raises(pexeso.IndexNotFoundError):
        LakeJoiner("nowhere").fit(mine)
    with pytest.raises(pexeso.ColumnNotFoundError, match="'town'"):
        LakeJoiner("lake.pexeso", on="town").fit(mine)
    joiner = LakeJoiner("lake.pexeso", on="city").fit(mine)
    with pytest.raises(ValueError, match="feature"):
        joiner.transform(mine[["city"]])
