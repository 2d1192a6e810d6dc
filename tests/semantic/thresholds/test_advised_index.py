"""An open index that advises, searches by its advice and learns from labels: small real indexes."""

import json

import pytest

import pexeso
from pexeso.errors import ColumnNotFoundError, InputError
from pexeso.results.query import query_from_values
from pexeso.semantic.thresholds.labels import ColumnLabel, ValueLabel
from pexeso.semantic.thresholds.tuning import COLUMN_DISTANCES, _label_distances, label_curve

CITIES = ["oslo", "Rome", "MADRID", "Vienna", "Lisbon"]


@pytest.fixture(scope="module")
def index(small_index):
    return pexeso.open_index(small_index, device="cpu")


def test_a_search_goes_by_the_advice_and_carries_it(index):
    advice = index.advise()
    result = index.search(CITIES, auto=True)
    assert result.options.max_distance == advice.max_distance
    assert result.options.advice == advice
    assert result == index.search(
        CITIES, max_distance=advice.max_distance, min_joinability=result.options.min_joinability
    )
    document = json.loads(json.dumps(result.to_dict()))
    assert document["options"]["advice"] == advice.to_dict()
    assert "advice" not in index.search(CITIES).to_dict()["options"]


def test_advice_on_two_columns_is_about_the_distance_alone(index):
    explained = index.explain(CITIES, "cities.csv", "city", auto=True)
    advice = index.advise(CITIES, "cities.csv", "city")
    assert explained.options.advice == advice
    assert advice.min_joinability is None
    assert explained.match.matched == 5


def test_advice_is_the_same_in_every_process_and_for_every_copy(index, small_index):
    assert pexeso.open_index(small_index, device="cpu").advise() == index.advise()


@pytest.mark.parametrize(
    "arguments",
    [
        {"table": "cities.csv"},
        {"values": CITIES, "table": "cities.csv"},
        {"table": "a", "column": "b"},
    ],
)
def test_what_belongs_together_must_be_given_together(index, arguments):
    with pytest.raises(InputError, match="Advice on joining needs values, table and column"):
        index.advise(**arguments)


def test_unknown_columns_and_options_are_named(index):
    with pytest.raises(ColumnNotFoundError):
        index.advise(CITIES, "cities.csv", "towns")
    with pytest.raises(
        InputError,
        match=r"Search options are max_distance, .*, auto, min_precision\. Got automatic\.",
    ):
        index.search(CITIES, automatic=True)
    with pytest.raises(InputError, match="min_precision must be a number"):
        index.search(CITIES, min_precision=2)


def test_a_labelled_column_that_is_not_there_is_named_whole(index):
    query = query_from_values(CITIES)
    for table, column, said in (
        ("cities.csv", "towns", r"'cities\.csv': There is no column 'towns'"),
        ("towns.csv", "city", r"no table 'towns\.csv'.* Got the column 'towns\.csv:city'\."),
    ):
        labels = [ColumnLabel(query, table, column, same) for same in (True, False)]
        with pytest.raises(InputError, match=said):
            index.tune(labels)


def test_labels_are_a_table_or_rows_with_truth_values(index):
    with pytest.raises(InputError, match=r"labels must be the path of a table, or rows.*Got 7"):
        index.tune(7)
    same = [ValueLabel("Oslo", "OSLO", "yes"), ValueLabel("Oslo", "Rome", "no")]
    with pytest.raises(InputError, match=r"same must be True or False\. Got 'yes' instead"):
        index.tune(same)


def test_labelled_values_are_embedded_as_the_index_does(index):
    labels = [
        ValueLabel("OSLO", "Oslo", True),
        ValueLabel("Rome", "rome.", True),
        ValueLabel("Oslo", "Madrid", False),
        ValueLabel("--", "Oslo", True),
    ]
    advice = index.tune(labels)
    assert advice.evidence["precision"] == 1.0
    assert advice.evidence["recall"] == pytest.approx(2 / 3, abs=1e-3)  # nothing is left of "--"
    assert advice.min_joinability == 0.5


def test_values_of_either_side_are_those_of_a_column(index):
    """Codes of countries are written out as in a search: by themselves, not among other texts."""
    names = {"US": "United States", "FR": "France", "DE": "Germany", "IT": "Italy", "JP": "Japan"}
    codes, countries = list(names), list(names.values())
    labels = [ValueLabel(code, country, True) for code, country in names.items()]
    turned = [*countries[1:], countries[0]]
    labels += [ValueLabel(*pair, False) for pair in zip(codes, turned, strict=True)]
    apart = _label_distances(index._opened, labels)
    assert apart[:5].max() < 1e-3
    assert apart[5:].min() > 0.3


def test_values_without_words_match_nothing(index):
    labels = [ValueLabel("--", "Oslo", True), ValueLabel("?!", "Rome", False)]
    assert index.tune(labels).evidence["recall"] == 0.0


def test_labelled_columns_are_compared_row_by_row(index):
    cities, companies = (
        query_from_values([*CITIES, None]),
        query_from_values(["Nordlys Energi", "Tejo Vidros"]),
    )
    labels = [
        ColumnLabel(cities, "cities.csv", "city", True),
        ColumnLabel(cities, "nested/capitals.tsv", "Capital", True),
        ColumnLabel(companies, "cities.csv", "city", False),
        ColumnLabel(cities, "nested/companies.csv", "name", False),
    ]
    advice = index.tune(labels)
    result = index.search(
        cities, max_distance=advice.max_distance, min_joinability=advice.min_joinability
    )
    assert {("cities.csv", "city"), ("nested/capitals.tsv", "Capital")} <= {
        (match.table, match.column) for match in result
    }
    assert advice.evidence["f1"] == 1.0


FIRST = ["Anna", "Bert", "Carla", "Dieter", "Emma", "Franz", "Greta", "Hugo", "Ines", "Jan"]
LAST = ["Meier", "Schulz", "Novak", "Rossi", "Dubois", "Smith", "Garcia"]


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """Index 70 names by two models."""
    lake = tmp_path_factory.mktemp("people") / "lake"
    lake.mkdir()
    names = [f"{first} {last}" for first in FIRST for last in LAST]
    (lake / "people.csv").write_text("\n".join(["name", *names]), encoding="utf-8")
    return pexeso.build_index(lake, lake.parent / "index", model="lexical,hashing")


@pytest.mark.parametrize("model", ["lexical", "hashing"])
def test_labelled_columns_match_at_each_distance_as_a_search_has_it(people, model):
    index = people.with_model(model)
    # Each name misspelt in one of seven ways, so that some nearest distances lie just above one
    # that is tried.
    misspelt = [
        f"{first[: 1 + turn % 3]}{'aeioukh'[turn]}{first[1:]} {last[: 2 + turn // 3]}{last[3:]}"
        for first in FIRST
        for turn, last in enumerate(LAST)
    ]
    values = ["anna MEIER", "Bert Schulz", *misspelt]
    label = ColumnLabel(query_from_values(values), "people.csv", "name", True)
    curve = label_curve(index._opened, label)
    options = {"min_joinability": 1e-9, "rerank": False}
    results = [
        list(index.search(values, max_distance=float(distance), **options))
        for distance in COLUMN_DISTANCES
    ]
    assert curve.tolist() == [matches[0].joinability if matches else 0.0 for matches in results]
    assert curve[0] == 2 / len(values)
    assert curve[-1] > 0.9
