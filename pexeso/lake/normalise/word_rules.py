"""Rules over texts that are words separated by single spaces, after abbreviations are written out: forms of companies, articles."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.normalise.abbreviations import packaged


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
