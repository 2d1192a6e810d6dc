"""Normalisation of the names and codes of countries, territories and states.

Examples are "UK" and "United Kingdom", "Korea, Rep." and "South Korea", a column of "GER", "FRA",
"USA", and one of "Deutschland", "Frankreich", "Italien".

English names and ISO 3166 codes come from the Unicode CLDR; ``territories.json`` holds them and
what else tables write: short and official names, the World Bank's spellings, the three-letter codes
of sports where they are not those of ISO, and the postal codes of the states and provinces of the
USA and Canada. Only whole values are replaced: "Bank of Georgia" stays.

A code of two or three letters is a word or another abbreviation more often than not ("IN", "CAN"),
so a column decides together: codes of one list are written out where they make up at least three
quarters of its distinct values, and three of them. UK, US and USA always are.

Names in other languages, of the Unicode CLDR in ``foreign_territories.json``, are words of English
or other things as well ("Columbia", "Man"): they are written out where names of territories, in
whatever language, make up as much of a column.

The United Kingdom is written "united kingdom great britain": the state goes by both names, while
Great Britain by itself may be the island, and stays near and not the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

LEAST_SHARE, LEAST_CODES = 0.75, 3
"""The share of the distinct values of a column, and how many of them, that must be codes of one
list, or names, for these to be written out."""

_FORMS = ("{}", "The {}", "{}, the")

Normalise = Callable[[Sequence[pa.StringArray]], list[pa.StringArray]]


@dataclass(frozen=True)
class NameList:
    """Texts and what they stand for, both normalised; each text once."""

    texts: pa.StringArray
    names: pa.StringArray


@dataclass(frozen=True)
class Territories:
    """What is replaced: names anywhere, codes and foreign names where a column is made of them.

    Attributes
    ----------
    codes : sequence of NameList
        One a list of codes: of countries by two letters and by three, of states.
    foreign : NameList
        Names in other languages.
    """

    names: NameList
    codes: Sequence[NameList]
    foreign: NameList

    def write_out(self, values: pa.StringArray, columns: np.ndarray) -> pa.StringArray:
        """Replace the names and codes of territories by one name each.

        Parameters
        ----------
        values
            Normalised, length n, nulls allowed; the distinct values of columns.
        columns
            int64, shape (n,), 0 or more: the column that each value comes from.
        """
        resolved = self._resolved(values, columns)
        replaced = resolved.is_valid()
        return pc.if_else(replaced, resolved, values) if pc.any(replaced).as_py() else values

    def _resolved(self, values: pa.StringArray, columns: np.ndarray) -> pa.StringArray:
        resolved = _looked_up(values, self.names)
        if not len(values):
            return resolved
        sizes = np.bincount(columns)
        best = np.full(len(sizes), max(LEAST_CODES - 1, 0))
        for code_list in self.codes:
            names = _looked_up(values, code_list)
            is_code = names.is_valid().to_numpy(zero_copy_only=False)
            counts = np.bincount(columns[is_code], minlength=len(sizes))
            # The list that holds most of a column decides, the first of equal ones.
            better = (counts > best) & (counts >= LEAST_SHARE * sizes)
            best = np.where(better, counts, best)
            resolved = pc.if_else(pa.array(better[columns] & is_code), names, resolved)
        return pc.coalesce(resolved, self._foreign(values, columns, resolved, sizes))

    def _foreign(
        self,
        values: pa.StringArray,
        columns: np.ndarray,
        resolved: pa.StringArray,
        sizes: np.ndarray,
    ) -> pa.StringArray:
        """Return what foreign names stand for in columns made of names; null elsewhere."""
        names = _looked_up(values, self.foreign)
        if names.null_count == len(names):
            return names
        is_name = pc.or_(resolved.is_valid(), names.is_valid()).to_numpy(zero_copy_only=False)
        counts = np.bincount(columns[is_name], minlength=len(sizes))
        made_of_names = (counts >= LEAST_CODES) & (counts >= LEAST_SHARE * sizes)
        return pc.if_else(pa.array(made_of_names[columns]), names, pa.scalar(None, pa.string()))


def _looked_up(values: pa.StringArray, name_list: NameList) -> pa.StringArray:
    return name_list.names.take(pc.index_in(values, value_set=name_list.texts, skip_nulls=True))


def territories(normalise: Normalise) -> Territories:
    """Make the lists, with texts and names in the form that values have.

    Parameters
    ----------
    normalise
        The other rules of a normaliser, for several columns in one pass, each by itself.
    """
    written = {code: names[0] for code, names in _names_by_code().items()}
    two, three = _country_codes(written)
    abroad = [(name, written[code]) for code, names in foreign().items() for name in names]
    codes = [mapping.items() for mapping in (three, packaged()["states"], two)]
    english, *codes, abroad = _lists([_english_names(), *codes, abroad], normalise)
    return Territories(english, codes, abroad)


def english_names(normalise: Normalise) -> NameList:
    """Return the English names of territories, and the one that each is written as."""
    return _lists([_english_names()], normalise)[0]


def _english_names() -> list[tuple[str, str]]:
    return [
        (form.format(name), names[0])
        for form in _FORMS
        for names in _names_by_code().values()
        for name in names
    ]


@cache
def packaged() -> dict[str, Any]:
    """Return ``territories.json``. Not to be changed by the caller."""
    return json.loads(
        files("pexeso.lake.normalise").joinpath("territories.json").read_text("utf-8")
    )


@cache
def foreign() -> dict[str, list[str]]:
    """Return ``foreign_territories.json``: names in other languages by two-letter codes.

    Not to be changed by the caller.
    """
    return json.loads(
        files("pexeso.lake.normalise").joinpath("foreign_territories.json").read_text("utf-8")
    )


def _names_by_code() -> dict[str, list[str]]:
    """Return the names of each territory of ISO 3166, the one to be written first."""
    also = packaged()["also"]
    return {code: [*also.get(code, []), english] for code, english in packaged()["english"].items()}


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


def _lists(entries: Sequence[Iterable[tuple[str, str]]], normalise: Normalise) -> list[NameList]:
    """Return a list of each sequence of texts and names."""
    columns = [pa.array(side, pa.string()) for rows in entries for side in zip(*rows, strict=True)]
    texts = [column.to_pylist() for column in normalise(columns)]
    return [_list(*sides) for sides in zip(texts[::2], texts[1::2], strict=True)]


def _list(texts: list[str | None], names: list[str | None]) -> NameList:
    unique = {
        text: name
        for text, name in reversed(list(zip(texts, names, strict=True)))
        if text is not None
    }
    return NameList(pa.array(unique, pa.string()), pa.array(unique.values(), pa.string()))
