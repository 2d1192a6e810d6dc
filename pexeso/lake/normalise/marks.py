"""Removal of marks that a page puts around a value.

The marks are footnotes, ranks, opponents, list numbers, and text in parentheses.

Each rule takes texts without nulls and white space around them, of any case, and gives as many; a
text of which nothing would be left stays as it is. A cheap test, mostly for one character, comes
before each pattern: nearly all values of a lake hold no mark.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.normalise.characters import Bytes
from pexeso.lake.normalise.folding import only_where

# Any letter, and all else beyond ASCII: Unicode's classes would take milliseconds to prepare, for
# every table.
_LETTER = r"[A-Za-z\x{80}-\x{10FFFF}]"
_FOOTNOTE = r"(?i)\s*\[(?:\d{1,3}|[a-z]{1,2}|(?:note|nb|fn|n)\s?\d{1,3}|citation needed)\]"
_OPPONENT = rf"(?i)^(?:(?:@\s*|(?:at|vs\.?|versus)\s+))+((?:[#(]|{_LETTER}{_LETTER}).*)$"
# Words behind which "at" is no mark of a schedule but part of a phrase or title.
_PHRASE = (
    r"(?i)^at\s+(?:and|the|an?|my|his|her|our|your|their|this|that|all|any|no|one|last|first|least|most|best|worst|large|home|work|school|sea|war|"
    r"rest|risk|once|will|issue|bat|play|night|noon|dawn|dusk|midnight|sunset|sunrise)\b"
)
# Initials that would be one of those words without their dots are kept apart.
_INITIALS = tuple(
    rf"(?i)^({one})\.\s?({other})\.\s*([^\s.]{{2}}.*)$" for one, other in ("at", "vs")
)
_RANK = rf"^(?:#\s?\d{{1,3}}|\(#?\d{{1,3}}\))\s+({_LETTER}[^#]*)$"
_NUMBERING = rf"(?i)^(?:\d{{1,4}}[.)]|no\.\s?\d{{1,4}})\s+({_LETTER}.*)$"
_COUNT = r"^(.*\S)\s*\(\d{1,3}\)$"
_QUALIFIER = r"^(.*\S)\s*\([^()]*\)$"
_NAME = r"(?:[^\s,\d]+\s+){0,2}[^\s,\d]+"
_INVERTED = rf"^({_NAME}),\s*({_NAME})$"
_SUFFIX = r"(?i),\s*(?:jr|sr|i{1,3}|iv|esq|phd|md|inc|ltd|llc|corp|co)\.?$"


def without_footnotes(texts: pa.StringArray) -> pa.StringArray:
    """Remove marks of footnotes in square brackets.

    Examples
    --------
    >>> without_footnotes(pa.array(["Berlin[3]", "[3]"])).to_pylist()
    ['Berlin', '[3]']
    """
    return _rewritten(texts, pc.match_substring(texts, "["), _FOOTNOTE, "")


def without_opponents(texts: pa.StringArray) -> pa.StringArray:
    """Remove "at", "@" and "vs" at the start.

    Examples
    --------
    >>> texts = pa.array(["at Texas", "@ Detroit", "At the Movies", "A.T. Kearney"])
    >>> without_opponents(texts).to_pylist()
    ['Texas', 'Detroit', 'At the Movies', 'A T Kearney']
    """
    text_bytes = Bytes(texts)
    first = text_bytes.at(0) | 0x20
    may_be_initials = pa.array(
        ((first == ord("a")) | (first == ord("v"))) & (text_bytes.at(1) == ord("."))
    )
    for pattern in _INITIALS:
        texts = _rewritten(texts, may_be_initials, pattern, r"\1 \2 \3")
    return _rewritten(texts, may_name_opponents(texts), _OPPONENT, r"\1", unless=_PHRASE)


def may_name_opponents(texts: pa.StringArray) -> pa.BooleanArray:
    """Return which texts begin with "@" or the word of an opponent, whatever follows."""
    text_bytes = Bytes(texts)
    first = text_bytes.at(0)
    may = first == ord("@")
    lower = first | 0x20
    positions = np.flatnonzero((lower == ord("a")) | (lower == ord("v")))
    if len(positions):
        for word in (b"at ", b"vs ", b"vs.", b"versus "):
            may[positions[text_bytes.start_with(positions, word)]] = True
    return pa.array(may)


def without_ranks(texts: pa.StringArray) -> pa.StringArray:
    """Remove a marked rank at the start.

    Examples
    --------
    >>> without_ranks(pa.array(["#3 Duke", "(2) Duke", "3 Duke"])).to_pylist()
    ['Duke', 'Duke', '3 Duke']
    """
    first = Bytes(texts).at(0)
    return _rewritten(texts, pa.array((first == ord("#")) | (first == ord("("))), _RANK, r"\1")


def without_numbering(texts: pa.StringArray) -> pa.StringArray:
    """Remove a number of a list at the start.

    Examples
    --------
    >>> without_numbering(pa.array(["1. Maryland", "No. 5 UConn", "5 Guys"])).to_pylist()
    ['Maryland', 'UConn', '5 Guys']
    """
    first = Bytes(texts).at(0)
    may = ((first | 0x20) == ord("n")) | ((first >= ord("0")) & (first <= ord("9")))
    return _rewritten(texts, pa.array(may), _NUMBERING, r"\1")


def without_counts(texts: pa.StringArray) -> pa.StringArray:
    """Remove a small number in parentheses at the end.

    Examples
    --------
    >>> without_counts(pa.array(["Arsenal (3)", "(3)"])).to_pylist()
    ['Arsenal', '(3)']
    """
    return _rewritten(texts, pc.ends_with(texts, ")"), _COUNT, r"\1")


def without_qualifiers(texts: pa.StringArray) -> pa.StringArray:
    """Remove what stands in parentheses at the end.

    Examples
    --------
    >>> without_qualifiers(pa.array(["Springfield (MA)", "(MA)"])).to_pylist()
    ['Springfield', '(MA)']
    """
    return _rewritten(texts, pc.ends_with(texts, ")"), _QUALIFIER, r"\1")


def with_names_in_order(texts: pa.StringArray) -> pa.StringArray:
    """Put what stands behind the only comma first, where both parts may be words of a name.

    Examples
    --------
    >>> with_names_in_order(pa.array(["Curie, Marie", "Billings, Jr.", "a, b, c"])).to_pylist()
    ['Marie Curie', 'Billings, Jr.', 'a, b, c']
    """
    return _rewritten(texts, pc.match_substring(texts, ","), _INVERTED, r"\2 \1", unless=_SUFFIX)


MARK_RULES: dict[str, Callable[[pa.StringArray], pa.StringArray]] = {
    "footnotes": without_footnotes,
    "opponents": without_opponents,
    "ranks": without_ranks,
    "numbering": without_numbering,
    "counts": without_counts,
    "qualifiers": without_qualifiers,
    "inverted-names": with_names_in_order,
}
"""The rules of this module by name, in the order in which they are applied."""


def _rewritten(
    texts: pa.StringArray,
    may: pa.BooleanArray,
    pattern: str,
    replacement: str,
    *,
    unless: str | None = None,
) -> pa.StringArray:
    """Replace the pattern in the texts that `may` selects.

    A text stays unchanged if `unless` matches it or if nothing would be left of it.
    """

    def rewrite(some: pa.StringArray) -> pa.StringArray:
        changed = pc.utf8_trim_whitespace(pc.replace_substring_regex(some, pattern, replacement))
        is_unchanged = pc.equal(changed, "")
        if unless is not None:
            is_unchanged = pc.or_(is_unchanged, pc.match_substring_regex(some, unless))
        return pc.if_else(is_unchanged, some, changed)

    return only_where(texts, may, rewrite)
