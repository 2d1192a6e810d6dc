"""Folding of characters: Unicode forms, case, accents and punctuation, on arrays of texts."""

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

COMMA = ","
"""The token that stands for a comma after `separate_words`: it ends a part of an address."""

_PLAIN = r"^[0-9A-Za-z]+(?: [0-9A-Za-z]+)*$"
_INVISIBLE = r"[\x{ad}\x{200b}-\x{200f}\x{2060}\x{feff}]"
# Control characters stand in for what is to survive while punctuation goes; those of the text are removed before.
_INNER_DOT, _POINT, _MINUS, _PLUS, _HASH = "\x01", "\x02", "\x03", "\x04", "\x05"
_STEPS = (
    (_INVISIBLE, ""),
    (r"\p{Cc}", " "),
    # Steps that need a letter or digit on both sides run twice: a match uses up what the next one would start with.
    (r"(\pL)['`\x{2019}\x{2bc}](\pL)", r"\1\2"),
    (r"(\pL)['`\x{2019}\x{2bc}](\pL)", r"\1\2"),
    (r"&", " and "),
    (r"\.(\pL)", _INNER_DOT + r"\1"),
    (r"(\pN),(\pN{3})", r"\1\2"),
    (r"(\pN),(\pN{3})", r"\1\2"),
    (r"(\pN)\.(\pN)", r"\1" + _POINT + r"\2"),
    (r"(\pN)\.(\pN)", r"\1" + _POINT + r"\2"),
    (r"^[-\x{2212}]\s?(\pN)", _MINUS + r"\1"),
    (r"(\pL)\+\+", r"\1" + _PLUS + _PLUS),
    (r"(\pL)\+", r"\1" + _PLUS),
    (r"(\pL)#", r"\1" + _HASH),
    (r"[,;]", f" {COMMA} "),
    (rf"[^\pL\pM\pN{COMMA}\x01-\x05]+", " "),
)
_SURVIVORS = ((_POINT, "."), (_MINUS, "-"), (_PLUS, "+"), (_HASH, "#"))
_ACRONYM = rf"^\pL(?:{_INNER_DOT}\pL)+$"


def only_where(
    values: pa.StringArray, mask: pa.BooleanArray, change: Callable[[pa.StringArray], pa.StringArray]
) -> pa.StringArray:
    """Return `values` with `change` applied to those chosen by `mask` (no nulls in it), an array to an array."""
    n_chosen = pc.sum(mask).as_py() or 0
    if n_chosen == 0:
        return values
    if n_chosen == len(values):
        return change(values)
    return pc.replace_with_mask(values, mask, change(values.filter(mask)))


def fold_unicode(values: pa.StringArray, *, accents: bool, letters: Mapping[str, str]) -> pa.StringArray:
    """Bring texts into Unicode's form NFKC, with the accents of Latin and Greek letters removed if `accents`.

    Marks of other scripts stay: there they tell letters apart (Cyrillic й, the vowels of Indian scripts).

    Parameters
    ----------
    values
        Texts without nulls.
    accents
        Whether to remove accents, and to replace the letters of `letters`, which have no decomposition.
    letters
        Lower-case letter to its plain spelling, such as ``ø`` to ``o``.
    """

    def fold(texts: pa.StringArray) -> pa.StringArray:
        if accents:
            texts = pc.utf8_normalize(texts, form="NFKD")
            texts = pc.replace_substring_regex(texts, r"(\p{Latin}|\p{Greek})[\x{300}-\x{36f}]+", r"\1")
            for letter, plain in letters.items():
                texts = pc.replace_substring(texts, letter, plain)
                texts = pc.replace_substring(texts, letter.upper(), plain.upper())
        return pc.utf8_normalize(texts, form="NFKC")

    return only_where(values, pc.invert(pc.string_is_ascii(values)), fold)


def separate_words(values: pa.StringArray) -> pa.StringArray:
    """Reduce texts to words separated by single spaces; commas and semicolons stay as words of their own.

    Letters, marks and digits of every script stay. So do a decimal point, the minus sign of a number, and ``+`` and
    ``#`` behind a letter ("C++"). Apostrophes inside words and dots inside acronyms go without a trace ("O'Neil",
    "U.S.A."), thousands separators too; ``&`` becomes "and"; all else becomes a space.

    Examples
    --------
    >>> separate_words(pa.array(["U.S.A. (est. 1776)", "AT&T,  Inc.", "C++", "-1,234.50"])).to_pylist()
    ['USA est 1776', 'AT and T , Inc', 'C++', '-1234.50']
    """
    return only_where(values, pc.invert(pc.match_substring_regex(values, _PLAIN)), _separate)


def _separate(values: pa.StringArray) -> pa.StringArray:
    for pattern, replacement in _STEPS:
        values = pc.replace_substring_regex(values, pattern, replacement)
    for stand_in, character in _SURVIVORS:
        values = pc.replace_substring(values, stand_in, character)
    values = only_where(values, pc.match_substring(values, _INNER_DOT), _join_acronyms)
    return single_spaces(values)


def _join_acronyms(values: pa.StringArray) -> pa.StringArray:
    """Remove the inner dots of tokens that are single letters with dots between; of all others make spaces."""
    tokens = pc.split_pattern(values, " ")
    distinct = tokens.flatten().dictionary_encode()
    words = distinct.dictionary
    words = only_where(
        words, pc.match_substring_regex(words, _ACRONYM), lambda found: pc.replace_substring(found, _INNER_DOT, "")
    )
    words = pc.replace_substring(words, _INNER_DOT, " ")
    return pc.binary_join(pa.ListArray.from_arrays(tokens.offsets, words.take(distinct.indices)), " ")


def single_spaces(values: pa.StringArray) -> pa.StringArray:
    """Reduce every run of white space to one space and remove it at both ends."""
    return pc.utf8_trim_whitespace(pc.replace_substring_regex(values, r"[\s\pZ]+", " "))
