"""Program that writes the names and codes of territories, and their names in other languages.

The source is the Unicode Common Locale Data Repository as Babel has it. Usage:
``python tests/lake/territory_names.py``.

The package carries the file instead of asking Babel, so that values have the same form whatever
version of Babel a machine has.
"""

import json
from collections import defaultdict
from pathlib import Path

import pyarrow as pa
from babel import Locale
from babel.core import get_global

from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.normalise.territories import known_places, packaged, territories

PAGE = Path(__file__).resolve().parents[2] / "pexeso" / "lake" / "normalise" / "territories.json"
FOREIGN_PAGE = PAGE.with_name("foreign_territories.json")
CITIES_PAGE = PAGE.with_name("cities.json")
FORMS_PAGE = PAGE.with_name("territory_forms.json")
LANGUAGES = [
    *("ar", "bg", "ca", "cs", "da", "de", "el", "es", "et", "eu", "fa", "fi", "fr", "ga", "gl"),
    *("he", "hi", "hr", "hu", "id", "is", "it", "ja", "ko", "lt", "lv", "ms", "mt", "nb", "nl"),
    *("nn", "pl", "pt", "ro", "ru", "sk", "sl", "sq", "sr", "sv", "th", "tr", "uk", "vi", "zh"),
]
"""Those of `month_names.py` and others that tables are written in."""

NO_TERRITORIES = {"EU", "EZ", "QO", "UN", "XA", "XB", "ZZ"}


def from_babel() -> dict[str, dict[str, str]]:
    """Return English territory names by two-letter codes, and these by three-letter codes.

    The three-letter codes are those of ISO 3166.
    """
    english = Locale("en").territories
    names = {
        code: english[code]
        for code in sorted(english)
        if len(code) == 2 and code not in NO_TERRITORIES
    }
    aliases = sorted(get_global("territory_aliases").items())
    three = {
        code: to[0]
        for code, to in aliases
        if len(code) == 3 and code.isalpha() and len(to) == 1 and to[0] in names
    }
    return {"english": names, "three_letters": three}


def foreign_from_babel() -> dict[str, list[str]]:
    """Return the names in other languages by two-letter codes, without those of two territories."""
    english = from_babel()["english"]
    spelled: dict[str, list[str]] = {code: [] for code in english}
    for language in LANGUAGES:
        names = Locale.parse(language).territories
        for code, own in spelled.items():
            if code in names:
                own.append(names[code])
    named = [(code, name) for code, own in spelled.items() for name in dict.fromkeys(own)]
    normaliser = Normaliser().switched(off=["territories"])
    forms = normaliser.normalise(pa.array([name for _, name in named], pa.string()))
    meant: dict[str | None, set[str]] = defaultdict(set)
    for (code, _), form in zip(named, forms.to_pylist(), strict=True):
        meant[form].add(code)
    known = set(known_places(normaliser.normalise_columns)[0].to_pylist())
    names_by_code: dict[str, dict[str, str]] = {code: {} for code in english}
    for (code, name), form in zip(named, forms.to_pylist(), strict=True):
        if form and len(meant[form]) == 1 and form not in known:
            names_by_code[code].setdefault(form, name)
    return {code: sorted(own.values()) for code, own in names_by_code.items() if own}


def cities_from_babel() -> dict[str, list[str]]:
    """Return the normalised names of cities of time zones in other scripts, by the English one."""
    named = {
        (zone.rpartition("/")[2].replace("_", " "), names["city"])
        for language in LANGUAGES
        for zone, names in Locale.parse(language).time_zones.items()
        if "city" in names and "/" in zone and not names["city"].isascii()
    }
    normaliser = Normaliser().switched(off=["territories"])
    columns = [pa.array(side, pa.string()) for side in zip(*sorted(named), strict=True)]
    english, others = (side.to_pylist() for side in normaliser.normalise_columns(columns))
    states = normaliser.normalise(pa.array([*packaged()["states"].values()])).to_pylist()
    # New York is the city.
    territories = set(known_places(normaliser.normalise_columns)[0].to_pylist()) - set(states)
    meant: dict[str, set[str]] = defaultdict(set)
    for city, name in zip(english, others, strict=True):
        # Names in Latin letters are near each other, or written by hand.
        if city and name and not name.isascii() and city not in territories:
            meant[name].add(city)
    names_by_city: dict[str, list[str]] = defaultdict(list)
    for name, cities in sorted(meant.items()):
        if len(cities) == 1:
            names_by_city[min(cities)].append(name)
    return dict(sorted(names_by_city.items()))


def forms_by_default() -> dict[str, str | None]:
    """Return what the default rules make of the names, but for the same in small letters."""
    normaliser = Normaliser().switched(off=["territories"])
    forms: dict[str, str | None] = {}

    def recorded(columns: list[pa.StringArray]) -> list[pa.StringArray]:
        normalised = normaliser.normalise_columns(columns)
        for names, own in zip(columns, normalised, strict=True):
            for name, form in zip(names.to_pylist(), own.to_pylist(), strict=True):
                if forms.setdefault(name, form) != form:
                    raise ValueError(f"{name!r} has two forms: {forms[name]!r} and {form!r}.")
        return normalised

    territories(recorded)
    known_places(recorded)
    return {name: form for name, form in sorted(forms.items()) if form != name.lower()}


def by_line(names: dict[str, list[str]]) -> str:
    """Write names by code, one code a line."""
    lines = [
        f"{json.dumps(code, ensure_ascii=False)}: {json.dumps(some, ensure_ascii=False)}"
        for code, some in names.items()
    ]
    return "{\n " + ",\n ".join(lines) + "\n}"


if __name__ == "__main__":
    PAGE.write_text(
        json.dumps(json.loads(PAGE.read_text("utf-8")) | from_babel(), indent=1, ensure_ascii=False)
        + "\n",
        "utf-8",
    )
    FOREIGN_PAGE.write_text(by_line(foreign_from_babel()) + "\n", "utf-8")
    pages = {
        "also": json.loads(CITIES_PAGE.read_text("utf-8"))["also"],
        "zones": cities_from_babel(),
    }
    texts = [f'"{name}": {by_line(names)}' for name, names in pages.items()]
    CITIES_PAGE.write_text("{\n" + ",\n".join(texts) + "\n}\n", "utf-8")
    FORMS_PAGE.write_text(
        json.dumps(forms_by_default(), indent=0, ensure_ascii=False) + "\n", "utf-8"
    )
