"""Countries, territories and states under one name; codes only where a column is made of them."""

import json
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.normalise.territories import (
    Territories,
    foreign,
    known_places,
    packaged,
    territories,
)


@cache
def made() -> Territories:
    return territories(Normaliser().normalise_columns)


def written(*columns: list[str | None]) -> list[list[str | None]]:
    """Write out what each column holds; all in one pass."""
    normalised = Normaliser().normalise_columns(
        [pa.array(column, pa.string()) for column in columns]
    )
    numbers = np.repeat(np.arange(len(columns)), [len(column) for column in columns])
    together = made().write_out(pa.concat_arrays(normalised), numbers).to_pylist()
    ends = np.cumsum([len(column) for column in columns])
    return [together[end - len(column) : end] for end, column in zip(ends, columns, strict=True)]


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (
            (
                *("USA", "U.S.A.", "US", "United States of America", "United States"),
                "The United States",
            ),
            "united states",
        ),
        (("UK", "U.K.", "United Kingdom"), "united kingdom great britain"),
        (
            ("Korea, Rep.", "Republic of Korea", "South Korea", "Korea (the Republic of)"),
            "south korea",
        ),
        (("Egypt, Arab Rep.", "EGYPT"), "egypt"),
        (("Bahamas, The", "The Bahamas", "Bahamas"), "bahamas"),
        (("Côte d'Ivoire", "Ivory Coast", "Côte d\u2019Ivoire"), "cote divoire"),
        (("St. Lucia", "Saint Lucia"), "saint lucia"),
        (("Sudan, South", "South Sudan"), "south sudan"),
        (("Bolivia, Plurinational State of", "Bolivia"), "bolivia"),
        (("Oesterreich", "Österreich", "Austria"), "austria"),
        (("Bosnia & Herzegovina", "Bosnia and Herzegovina"), "bosnia and herzegovina"),
    ],
)
def test_names_of_one_country_become_one(values: tuple[str, ...], name: str) -> None:
    assert set(written(list(values))[0]) == {name}


def test_names_within_other_values_stay() -> None:
    assert written(["Bank of Georgia", "Great Britain", "Paris", None, "Us and Them"]) == [
        ["bank of georgia", "great britain", "paris", None, "us and them"]
    ]


def test_a_column_of_codes_is_written_out_and_no_other() -> None:
    sports, states, words, mixed = written(
        ["GER", "USA", "ENG", "SUI"],
        ["CA", "TX", "NY", "on"],
        ["in", "the", "can", "be", "was"],
        ["GER", "north", "south"],
    )
    assert sports == ["germany", "united states", "england", "switzerland"]
    assert states == ["california", "texas", "new york", "ontario"]
    assert words == ["in", "the", "can", "be", "was"]
    assert mixed == ["ger", "north", "south"]


def test_a_column_of_months_days_or_quarters_is_written_out_and_no_other() -> None:
    months, german, days, quarters, mixed = written(
        ["Jan", "FEB.", "Mar", "Total"],
        ["Januar", "März", "Août"],
        ["Mon", "tues", "Thu"],
        ["First Quarter", "Qtr 2", "Q3", "4Q"],
        ["Jan", "Mar", "Sat", "Sun"],
    )
    assert months == ["january", "february", "march", "total"]
    assert german == ["january", "march", "august"]
    assert days == ["monday", "tuesday", "thursday"]
    assert quarters == ["q1", "q2", "q3", "q4"]
    assert mixed == ["jan", "mar", "sat", "sun"]


def test_a_column_of_names_in_another_language_is_written_out_and_no_other() -> None:
    german, japanese, mixed, colleges, few = written(
        ["Deutschland", "Frankreich", "Vereinigtes Königreich", "Côte d\u2019Ivoire", "Insgesamt"],
        ["日本", "ドイツ", "フランス"],
        ["Norge", "Sweden", "Suomi", "Denmark"],
        ["Columbia", "Norfolk", "Yale", "Georgia", "Duke"],
        ["Deutschland", "Frankreich", "A", "Polen", "Irak"],
    )
    assert german == [
        *("germany", "france", "united kingdom great britain", "cote divoire", "insgesamt"),
    ]
    assert japanese == ["japan", "germany", "france"]
    assert mixed == ["norway", "sweden", "finland", "denmark"]
    assert colleges == ["columbia", "norfolk", "yale", "georgia", "duke"]
    # Short names wait for a column of them; sections do not count.
    assert few == ["germany", "france", "a", "poland", "iraq"]
    alone, other = written(
        ["Россия", "Alemania", "Polen"], ["Polen", "Columbia", "Berlin", "x y z"]
    )
    assert alone == ["russia", "germany", "poland"]
    assert other == ["polen", "columbia", "berlin", "x y z"]


def test_forms_of_state_and_abbreviations_are_written_as_names() -> None:
    (names,) = written(
        ["Kingdom of Norway", "Hellenic Republic", "State of Texas", "Calif.", "N. Dakota", "Mass."]
    )
    assert names == ["norway", "greece", "texas", "california", "north dakota", "mass"]
    (column,) = written(["Mass.", "Conn.", "Wash.", "Calif."])
    assert column == ["massachusetts", "connecticut", "washington", "california"]


def test_what_is_written_out_stays_as_it_is() -> None:
    for column in (
        ["GER", "USA", "ENG"],
        ["Korea, Rep.", "UK", "Holy See"],
        ["CA", "TX", "NY"],
        ["Jan", "Feb", "May"],
        ["Norge", "Sverige", "Danmark", "Columbia", "Total"],
    ):
        (once,) = written(column)
        again = (
            made().write_out(pa.array(once, pa.string()), np.zeros(len(once), np.int64)).to_pylist()
        )
        assert again == once


def test_names_and_codes_are_those_of_babel() -> None:
    from territory_names import from_babel

    assert {name: packaged()[name] for name in ("english", "three_letters")} == from_babel()


def test_foreign_names_are_those_of_babel_and_stand_for_one_territory_each() -> None:
    from territory_names import foreign_from_babel

    assert foreign() == foreign_from_babel()
    texts = (
        Normaliser()
        .switched(off=["territories"])
        .normalise(pa.array([name for names in foreign().values() for name in names], pa.string()))
    )
    assert texts.null_count == 0
    assert len(texts.unique()) == len(texts)
    known = set(known_places(Normaliser().normalise_columns)[0].to_pylist())
    assert not known & set(texts.to_pylist())


def test_every_code_of_the_package_means_a_known_territory() -> None:
    known = packaged()["english"]
    assert set(packaged()["also"]) <= set(known)
    assert set(packaged()["sport_codes"].values()) <= set(known)
    assert all(len(code) == 3 for code in packaged()["sport_codes"])


def test_no_text_stands_for_two_territories() -> None:
    seen: dict[str, str] = {}
    for code, names in packaged()["also"].items():
        for text in Normaliser().normalise(pa.array(names, pa.string())).to_pylist():
            assert seen.setdefault(text, code) == code, text


def test_nothing_in_gives_nothing_out() -> None:
    assert made().write_out(pa.array([], pa.string()), np.zeros(0, np.int64)).to_pylist() == []


def test_cities_of_time_zones_are_those_of_babel() -> None:
    from territory_names import CITIES_PAGE, cities_from_babel

    assert json.loads(CITIES_PAGE.read_text("utf-8"))["zones"] == cities_from_babel()


def test_packaged_forms_are_those_of_the_default_rules() -> None:
    from territory_names import FORMS_PAGE, forms_by_default

    assert json.loads(FORMS_PAGE.read_text("utf-8")) == forms_by_default()
