"""Rules over texts that are words separated by single spaces: initials, forms of companies, articles."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.abbreviations import packaged
from pexeso.lake.characters import LETTER, MARK, NUMBER, change_characters, class_table
from pexeso.lake.folding import only_where

_MAY_HOLD_INITIALS = r"(?:^| )[^ ] [^ ](?: |$)"


def with_initials_joined(words: pa.StringArray) -> pa.StringArray:
    """Join letters that stand alone side by side.

    Examples
    --------
    >>> with_initials_joined(pa.array(["j r r tolkien", "plan b", "2 a b 3"])).to_pylist()
    ['jrr tolkien', 'plan b', '2 ab 3']
    """
    may = pc.match_substring_regex(words, _MAY_HOLD_INITIALS)
    return only_where(words, may, lambda some: change_characters(some, _initials))


def _initials(points: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Drop the spaces between letters that stand alone, and the newline behind each row."""
    classes = class_table()[points]
    of_word = (classes == LETTER) | (classes == MARK) | (classes == NUMBER)
    edge = (points == ord(" ")) | (points == ord("\n"))
    before, after = np.append(True, edge[:-1]), np.append(edge[1:], True)
    alone = of_word & (classes != NUMBER) & before & after
    dropped = (points == ord(" ")) & np.append(False, alone[:-1]) & np.append(alone[1:], False)
    kept = ~dropped & (points != ord("\n"))
    return points[kept], rows[kept]


def without_company_forms(words: pa.StringArray) -> pa.StringArray:
    """Remove forms of companies at the end; one that is the whole value stays.

    Examples
    --------
    >>> without_company_forms(pa.array(["acme co ltd", "siemens ag", "inc"])).to_pylist()
    ['acme', 'siemens', 'inc']
    """
    forms = "|".join(packaged()["company_forms"])
    return pc.replace_substring_regex(words, rf"(?i)^(.*?[^ ])(?: (?:{forms}))+$", r"\1")


def without_articles(words: pa.StringArray) -> pa.StringArray:
    """Remove "the" at the start.

    Examples
    --------
    >>> without_articles(pa.array(["the boston globe", "the"])).to_pylist()
    ['boston globe', 'the']
    """
    return pc.replace_substring_regex(words, r"(?i)^(?:the )+([^ ])", r"\1")


WORD_RULES: dict[str, Callable[[pa.StringArray], pa.StringArray]] = {
    "company-forms": without_company_forms,
    "articles": without_articles,
}
"""The rules that come after abbreviations are written out, in the order in which they are applied."""
