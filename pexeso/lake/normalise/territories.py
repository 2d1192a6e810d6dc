"""Normalisation of the names and codes of countries, territories and states.

Examples are "UK" and "United Kingdom", "Korea, Rep." and "South Korea", a column of "GER", "FRA",
"USA", and one of "Deutschland", "Frankreich", "Italien".

English names and ISO 3166 codes come from the Unicode CLDR; ``territories.json`` holds them and
what else tables write: short and official names, the World Bank's spellings, the three-letter codes
of sports where they are not those of ISO, and the postal codes of the states and provinces of the
USA and Canada. Only whole values are replaced: "Bank of Georgia" stays.

A code of two or three letters is a word or another abbreviation more often than not ("IN", "CAN"),
so a column decides together: codes of one list are written out where they make up at least three
quarters of its distinct values, and three of them. UK, US and USA always are. Months, days of the
week and quarters of a year are such lists as well: a column of "Jan", "Feb", "Mar".

Names in other languages, of the Unicode CLDR in ``foreign_territories.json``, are replaced too.
Those in Latin letters that are short or the names of other things as well ("Columbia", "Man") are
written out only where names of territories, in whatever language, make up as much of a column.
Values of one or two letters, such as those of sections, do not count then.

``territory_forms.json`` holds what the default rules make of the names, where that is not the name
in small letters, so that a process does not normalise thousands of names for a few values.

The United Kingdom is written "united kingdom great britain": the state goes by both names, while
Great Britain by itself may be the island, and stays near and not the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embed.words import Vocabulary
from pexeso.lake.normalise import package_data

# The share of the distinct values of a column, and how many of them, that must be codes of one
# list, or names, for these to be written out.
LEAST_SHARE, LEAST_CODES = 0.75, 3

MOST_OF_A_SECTION = 2  # letters of values that stand for sections of a table

# Names in Latin letters that are as long are rarely anything else.
LEAST_LETTERS_OF_A_NAME = 6

_WRITTEN_OUT = str.maketrans(dict(zip("äöüÄÖÜ", ("ae", "oe", "ue", "Ae", "Oe", "Ue"), strict=True)))

_FORMS = ("{}", "The {}", "{}, the")

packaged = partial(package_data, "territories.json")
# Returns names in other languages by two-letter codes.
foreign = partial(package_data, "foreign_territories.json")

Normalise = Callable[[Sequence[pa.StringArray]], list[pa.StringArray]]
# Texts and what they stand for, both normalised.
Names = dict[str, str]


class Territories:
    """What is replaced: names anywhere, codes and foreign names where a column is made of them.

    Names of months and the like are replaced as codes are.
    """

    def __init__(self, names: Names, codes: Sequence[Names], foreign: Names) -> None:
        lists = [names, *codes, foreign]
        texts = pa.array(chain(*lists), pa.string()).dictionary_encode()
        self._texts = Vocabulary(texts.dictionary.cast(pa.large_string()))
        self._names = pa.array(chain(*(part.values() for part in lists)), pa.string())
        # Of each list the name of each text; the last place is that of a text not found.
        self._names_of = np.full((len(lists), len(self._texts) + 1), -1, np.int64)
        of_list = np.repeat(np.arange(len(lists)), list(map(len, lists)))
        self._names_of[of_list, texts.indices.to_numpy()] = np.arange(len(texts))

    def write_out(self, values: pa.StringArray, columns: np.ndarray) -> pa.StringArray:
        """Replace the names and codes of territories by one name each."""
        text = self._texts.find(values.cast(pa.large_string()))
        if not (text >= 0).any():
            return values
        is_long = pc.greater(pc.utf8_length(values), MOST_OF_A_SECTION)
        name = self._resolved(text, columns, pc.fill_null(is_long, False).to_numpy(False))
        if not (name >= 0).any():
            return values
        return pc.coalesce(self._names.take(pa.array(name, mask=name < 0)), values)

    def _resolved(self, text: np.ndarray, columns: np.ndarray, is_long: np.ndarray) -> np.ndarray:
        """Return the name of each value, int64; -1 where it stays as it is."""
        names, *codes, foreign = self._names_of[:, text]
        sizes = np.bincount(columns)
        best = np.full(len(sizes), max(LEAST_CODES - 1, 0))
        for code_names in codes:
            is_code = code_names >= 0
            counts = np.bincount(columns[is_code], minlength=len(sizes))
            # The list that holds most of a column decides, the first of equal ones.
            better = (counts > best) & (counts >= LEAST_SHARE * sizes)
            best = np.where(better, counts, best)
            names = np.where(better[columns] & is_code, code_names, names)
        is_name = (names >= 0) | (foreign >= 0)
        counts = np.bincount(columns[is_name], minlength=len(sizes))
        n_long = np.bincount(columns[is_long], minlength=len(sizes))
        made_of_names = (counts >= LEAST_CODES) & (counts >= LEAST_SHARE * n_long)
        return np.where((names < 0) & made_of_names[columns], foreign, names)


def territories(normalise: Normalise) -> Territories:
    written = {code: names[0] for code, names in _names_by_code().items()}
    two, three = _country_codes(written)
    abroad = [(name, written[code]) for code, names in foreign().items() for name in names]
    # Umlauts are written out as well: Daenemark. Others of their names have signs or accents left.
    plain = [(name.translate(_WRITTEN_OUT), written) for name, written in abroad]
    abroad += [entry for entry in plain if entry[0].isascii() and entry[0].isalpha()]
    codes = [mapping.items() for mapping in (three, packaged()["states"], two)]
    codes += [_months(), _days(), _quarters()]
    english, *codes, abroad = _lists([_english_names(), *codes, abroad], normalise)
    ambiguous = set(packaged()["ambiguous"])
    sure = {
        text: name
        for text, name in abroad.items()
        if not text.isascii() or (len(text) >= LEAST_LETTERS_OF_A_NAME and text not in ambiguous)
    }
    return Territories(sure | english, codes, abroad)


def known_places(normalise: Normalise) -> tuple[pa.LargeStringArray, pa.LargeStringArray]:
    """Return normalised English names of countries, territories and states, and the name of each.

    Names of states that are gone are among them, and those of the parts of the United Kingdom.
    """
    document = packaged()
    more = [*document["states"].values(), *document["home_nations"].values(), *document["past"]]
    english, others = _lists([_english_names(), [(name, name) for name in more]], normalise)
    sides = zip(*sorted((others | english).items()), strict=True)
    texts, names = (pa.array(side, pa.large_string()) for side in sides)
    return texts, names


def default_forms(columns: Sequence[pa.StringArray]) -> list[pa.StringArray]:
    """Normalise columns of names by the default rules without `territories`, from the package."""
    forms = package_data("territory_forms.json")
    return [
        pa.array([forms.get(text, text.lower()) for text in column.to_pylist()], pa.string())
        for column in columns
    ]


def _english_names() -> list[tuple[str, str]]:
    document = packaged()
    countries = [
        (form.format(name), names[0])
        for form in _FORMS
        for names in _names_by_code().values()
        for name in names
    ]
    states = [(f"State of {name}", name) for name in document["states"].values()]
    return [*document["state_forms"].items(), *states, *countries]


@cache
def plain_names() -> pa.StringArray:
    """Return the names of countries, territories and states in small letters without accents."""
    names = [name for name, _ in _english_names()]
    names += [name for entries in foreign().values() for name in entries]
    names += packaged()["states"].values()
    lower = pc.utf8_lower(pc.utf8_normalize(pa.array(names, pa.string()), "NFKD"))
    return pc.unique(pc.replace_substring_regex(lower, r"\p{Mn}", ""))


def _names_by_code() -> dict[str, list[str]]:
    also = packaged()["also"]
    return {code: [*also.get(code, []), english] for code, english in packaged()["english"].items()}


def _months() -> list[tuple[str, str]]:
    """Return names and abbreviations of months in any language, with the English name of each."""
    document = package_data("months.json")
    names = zip(document["english"], document["others"], strict=True)
    return [(text, own.split()[-1]) for own, others in names for text in f"{own} {others}".split()]


def _days() -> list[tuple[str, str]]:
    words = package_data("dictionaries.json")["date-words"][0]["words"].items()
    days = {short: day for short, day in words if day.endswith("day")}
    return [*days.items(), *((day, day) for day in days.values())]


def _quarters() -> list[tuple[str, str]]:
    ordinals = enumerate(("1st", "2nd", "3rd", "4th"), start=1)
    return [
        (text, f"q{number}")
        for number, ordinal in ordinals
        for part in ("quarter", "qtr")
        for text in (f"{ordinal} {part}", f"{part} {number}", f"q{number}", f"{number}q")
    ]


def _country_codes(written: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return what codes of two letters stand for, and those of three.

    They are those of ISO 3166, and those of sports where a code means nothing else.
    """
    document = packaged()
    sports, standard = (
        {code: written[short] for code, short in document[name].items()}
        for name in ("sport_codes", "three_letters")
    )
    return dict(written), document["home_nations"] | sports | standard


def _lists(entries: Sequence[Iterable[tuple[str, str]]], normalise: Normalise) -> list[Names]:
    """Normalise lists of names; of a text that a list has twice the first name counts."""
    columns = [pa.array(side, pa.string()) for rows in entries for side in zip(*rows, strict=True)]
    texts = [column.to_pylist() for column in normalise(columns)]
    lists = (zip(*sides, strict=True) for sides in zip(texts[::2], texts[1::2], strict=True))
    return [
        {text: name for text, name in reversed(list(pairs)) if text is not None} for pairs in lists
    ]
