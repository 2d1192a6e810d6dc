"""The tasks: a table with a key and a target, made of one table of a real lake.

That table is then left out of the lake.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Task:
    """A question to a model.

    Attributes
    ----------
    name, about : str
        In a word, and in a sentence.
    table : pandas.DataFrame
    on, target : str
    left_out : tuple of str
        Tables of the lake that the table was made of.
    entity_of : pandas.Series or None
        From a name in lower case to what it stands for, where that is known: then wrong pairs can
        be told.
    """

    name: str
    about: str
    table: pd.DataFrame
    on: str
    target: str
    left_out: tuple[str, ...]
    entity_of: pd.Series | None = None


NEWS = "fivethirtyeight/"
COUNTRIES = "countries/"
FILMS = 600
_SEED = 0


def _read(lake: Path, table: str) -> pd.DataFrame:
    return pd.read_csv(lake / table, keep_default_na=False, na_values=[""])


def _country_codes(lake: Path) -> pd.Series:
    """Return the three-letter code of each country name, in lower case.

    Names of several countries are left out.
    """
    names = _read(lake, COUNTRIES + "name_codes.csv")
    names = names.assign(name=names["name"].str.lower().str.strip()).drop_duplicates(
        ["name", "alpha3"]
    )
    return names.drop_duplicates("name", keep=False).set_index("name")["alpha3"]


def wine(lake: Path) -> Task:
    """Return the task of wine by country.

    Names are as a newspaper writes them, such as "USA", "DR Congo", "Cote d'Ivoire".
    """
    origin = NEWS + "alcohol-consumption__drinks.csv"
    table = _read(lake, origin)[["country", "beer_servings", "spirit_servings", "wine_servings"]]
    about = "servings of wine a person drinks in a year; own columns: beer and spirits"
    return Task("wine", about, table, "country", "wine_servings", (origin,), _country_codes(lake))


def football(lake: Path) -> Task:
    """Return the task of the strength of national teams.

    Names are as FIFA writes them, such as "Korea Republic", "China PR".
    """
    origin = NEWS + "elo-blatter__elo_blatter.csv"
    table = _read(lake, origin)[["country", "popu06", "elo15"]]
    about = "Elo rating of a national football team; own column: population"
    return Task("football", about, table, "country", "elo15", (origin,), _country_codes(lake))


def gdp(lake: Path) -> Task:
    """Return the task of gross domestic product by country.

    Names are the formal names of the United Nations, such as "the Republic of Albania". The table
    is joined by country code.
    """
    codes, worth = (_read(lake, COUNTRIES + name) for name in ("country-codes.csv", "gdp.csv"))
    latest = (
        worth.sort_values("Year")
        .drop_duplicates("Country Code", keep="last")
        .set_index("Country Code")["Value"]
    )
    names = ["UNTERM English Formal", "Region Name", "ISO3166-1-Alpha-3"]
    table = codes[names].set_axis(["name", "region", "code"], axis=1).dropna(subset=["name"])
    table = (
        table.assign(log_gdp=np.log10(table["code"].map(latest)))
        .dropna(subset=["log_gdp"])
        .reset_index(drop=True)
    )
    entities = pd.concat(
        [_country_codes(lake), pd.Series(table["code"].values, table["name"].str.lower())]
    )
    about = "logarithm of the gross domestic product, by formal country name; own column: region"
    left_out = (
        COUNTRIES + "country-codes.csv",
        COUNTRIES + "gdp.csv",
        COUNTRIES + "name_codes.csv",
    )
    return Task(
        "gdp",
        about,
        table.drop(columns="code"),
        "name",
        "log_gdp",
        left_out,
        entities[~entities.index.duplicated()],
    )


def hate_crimes(lake: Path) -> Task:
    """Hate crimes by state: the names of fifty states are spelled alike everywhere."""
    origin = NEWS + "hate-crimes__hate_crimes.csv"
    own_columns = ["median_household_income", "gini_index"]
    table = _read(lake, origin)[["state", *own_columns, "avg_hatecrimes_per_100k_fbi"]]
    about = "hate crimes for 100,000 people in a state; own columns: median income, Gini index"
    return Task("hate crimes", about, table, "state", "avg_hatecrimes_per_100k_fbi", (origin,))


def films(lake: Path) -> Task:
    """Worldwide takings of films by title, as two newsrooms write it."""
    return _films(lake, "films", 0)


def recent_films(lake: Path) -> Task:
    """Take only films of the years since which the lake has a table of films."""
    return _films(lake, "recent films", 2006)


def _films(lake: Path, name: str, first_year: int) -> Task:
    origin = NEWS + "bechdel__movies.csv"
    table = _read(lake, origin)[["title", "year", "binary", "intgross_2013$"]]
    gross = pd.to_numeric(table["intgross_2013$"], errors="coerce")
    table = table.drop(columns="intgross_2013$").assign(log_gross=np.log10(gross.where(gross > 0)))
    table = table[table["year"] >= first_year]
    table = (
        table.dropna(subset=["log_gross"]).sample(FILMS, random_state=_SEED).reset_index(drop=True)
    )
    since = f" since {first_year}" if first_year else ""
    about = (
        f"logarithm of the worldwide takings of {FILMS} films{since}; own columns: year, "
        "Bechdel test"
    )
    return Task(name, about, table, "title", "log_gross", (origin,))


def tattoos(lake: Path) -> Task:
    """Players of the NBA with and without tattoos: "A.J. Price" here, "AJ Price" there."""
    origin = NEWS + "nba-tattoos__nba-tattoos-data.csv"
    table = _read(lake, origin).set_axis(["player", "tattoo"], axis=1).dropna()
    return Task(
        "tattoos",
        "whether a basketball player has a tattoo; no own column",
        table,
        "player",
        "tattoo",
        (origin,),
    )


def police(lake: Path) -> Task:
    """Policemen who live where they work, by city."""
    origin = NEWS + "police-locals__police-locals.csv"
    table = _read(lake, origin)[["city", "police_force_size", "all"]]
    about = "share of the police who live in their city; own column: size of the force"
    return Task("police", about, table, "city", "all", (origin,))


def demo(lake: Path) -> Task:
    """Return the synthetic task of the days that a parcel takes.

    Days are made by seed from its weight and its continent. Names are as filed, such as "Korea,
    Rep.".
    """
    origin = "geography/countries_as_filed.csv"
    filed = pd.read_csv(lake / origin, sep=";", dtype=str)
    draw = np.random.default_rng(_SEED)
    weight = draw.uniform(0.5, 20, len(filed)).round(1)
    far = filed["Region"].map({"Europe": 2, "Asia": 7, "Africa": 9}).fillna(6)
    days = far + weight / 10 + draw.normal(0, 0.5, len(filed))
    table = pd.DataFrame(
        {"country": filed["Country Name"], "weight_kg": weight, "days": days.round(1)}
    )
    return Task(
        "demo",
        "days that a parcel takes (made up); own column: weight",
        table,
        "country",
        "days",
        (origin,),
    )


REAL: dict[str, Callable[[Path], Task]] = {
    "wine": wine,
    "football": football,
    "gdp": gdp,
    "hate-crimes": hate_crimes,
    "films": films,
    "recent-films": recent_films,
    "tattoos": tattoos,
    "police": police,
}
