"""Abbreviations written out where their neighbours make clear what they stand for.

Parsers of addresses are not used for it: usaddress labels six thousand values a second, one by one,
knows the addresses of one country, and gives labels for parts, of which the abbreviations would
still have to be written out; libpostal needs two gigabytes of data. Looking words up takes a column
at a time.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embed.lexical import COMPANY_FORMS
from pexeso.engine.lists import offsets_of
from pexeso.lake.normalise import package_data
from pexeso.lake.normalise.characters import (
    COMMA,
    LETTER,
    NUMBER,
    first_classes,
    only_where,
    replaced_at,
)
from pexeso.lake.normalise.dates import MAX_WORDS, month_words, read_named_dates

# The rules that are dictionaries, in the order in which these are asked.
DICTIONARIES = ("date-words", "periods", "addresses", "ordinals", "numerals", "units", "companies")

_ALWAYS = "always"
_MAX_ROUNDS = 4


# Returns the dictionaries that come with the package.
packaged = partial(package_data, "dictionaries.json")


@dataclass(frozen=True)
class Vocabulary:
    """The k words that a normaliser knows, arranged so that each lake word is looked up once."""

    known: pa.StringArray
    whens: tuple[str, ...]
    # int32 (groups, k + 1): where the text for a word of a group is in `texts`, -1 where the group
    # does not have the word; the last column is for all other words
    positions: np.ndarray
    texts: pa.StringArray
    # Of the first groups, asked in the first round alone: what the user's own words stand for is
    # taken as it is
    n_once: int
    is_month: np.ndarray


def vocabulary_of(names: Sequence[str], extra: Mapping[str, str]) -> Vocabulary:
    """Return the words of the named rules, after those of `extra`, which are always written out.

    Names that are neither one of `DICTIONARIES` nor ``dates`` are passed over.
    """
    groups: list[tuple[str, Mapping[str, str]]] = [(_ALWAYS, extra)] if extra else []
    n_once = len(groups)
    groups += [
        (entry["when"], entry["words"])
        for name in DICTIONARIES
        if name in names
        for entry in packaged()[name]
    ]
    months = set(month_words()[0].to_pylist()) if "dates" in names else set()
    if "accents" in names:
        # These never come up, and a smaller set is sooner prepared, which is done for every table.
        months = {
            word for word in months if not any("\u00c0" <= letter <= "\u024f" for letter in word)
        }
    known = sorted({word for _, words in groups for word in words} | months)
    column = {word: number for number, word in enumerate(known)}
    positions, texts = np.full((len(groups), len(known) + 1), -1, dtype=np.int32), []
    for number, (_, words) in enumerate(groups):
        for word, text in words.items():
            positions[number, column[word]] = len(texts)
            texts.append(text)
    is_month = np.array([word in months for word in known] + [False])
    whens = tuple(when for when, _ in groups)
    return Vocabulary(
        pa.array(known, pa.string()),
        whens,
        positions,
        pa.array(texts, pa.string()),
        n_once,
        is_month,
    )


def expand(
    values: pa.StringArray, vocabulary: Vocabulary, *, drop_commas: bool = False
) -> pa.StringArray:
    """Write out the abbreviations in texts of words separated by single spaces, commas being words.

    A value all of whose words are those of a date is read as one; see
    `dates.read_named_dates`. Else the first rule that knows a word and whose condition holds
    decides. What is written out may be the neighbour that another word waits for ("mar first" is
    "mar 1st" and then a date), so this is repeated, at most `_MAX_ROUNDS` times. The conditions,
    for a word within its value:

    ``always``
        No condition.
    ``by_number``
        The word before or after it starts with a digit: "5 mar", not "mar del plata".
    ``ends_part``
        It is not the first word of its part and ends it: before a comma, the end, a number, or a
        direction or unit ("main st nw", "main st apt 3"). So "main st" is a street.
    ``before_word``
        A word that starts with a letter follows: "st petersburg" is a saint.
    ``before_word_not_after_number``
        The same, unless a number comes before: "ft worth" is a fort, "6 ft tall" is not.
    ``not_after_number``
        No number comes before: a "second" behind one is a time.
    ``after_number``
        A number comes before: "5 kilometres".
    ``after_word``
        A word that starts with a letter comes before: "rocky ii".
    ``after_numbered``
        A word comes before that is followed by a number: "article v".
    ``ends_value``
        It is the last word of the value and not the only one.
    ``ends_name``
        It is the last word and "the" comes before it, behind another: "henry the eighth".
    ``starts_before_year``
        It is the first of two words, and the other is a year of four digits: "c 1850".
    ``in_address``
        The value starts with a number and names a kind of street, and the word comes right after
        the number or ends its part: "120 n main st".

    >>> vocabulary = vocabulary_of(("dates", "date-words", "addresses"), {})
    >>> texts = pa.array(["st petersburg", "main st , st louis", "5 mar 1953"])
    >>> expand(texts, vocabulary).to_pylist()
    ['saint petersburg', 'main street , saint louis', '5 march 1953']
    """
    if not len(values):
        return values
    lists = pc.split_pattern(values, " ")
    is_known = pc.is_in(pc.utf8_lower(lists.flatten()), vocabulary.known)
    rows = pc.list_parent_indices(lists).filter(is_known).unique().to_numpy()
    for number in range(_MAX_ROUNDS):
        if not len(rows):
            break
        before = values.take(pa.array(rows))
        after, is_date = _expand_all(before, vocabulary, is_first=number == 0)
        after = without_commas(after) if drop_commas else after
        values = replaced_at(values, rows, after)
        rows = rows[~is_date & pc.not_equal(before, after).to_numpy(zero_copy_only=False)]
    return without_commas(values) if drop_commas else values


def without_commas(words: pa.StringArray) -> pa.StringArray:
    def remove(some: pa.StringArray) -> pa.StringArray:
        for pattern in (f"{COMMA} ", f" {COMMA}", COMMA):
            some = pc.replace_substring(some, pattern, "")
        return some

    return only_where(words, pc.match_substring(words, COMMA), remove)


def _expand_all(
    values: pa.StringArray, vocabulary: Vocabulary, *, is_first: bool
) -> tuple[pa.StringArray, np.ndarray]:
    lists = pc.split_pattern(values, " ")
    tokens = lists.flatten()
    context = _Context(lists, tokens)
    entry = pc.fill_null(
        pc.index_in(context.lower, vocabulary.known), len(vocabulary.known)
    ).to_numpy()[context.codes.to_numpy()]
    values, is_date = _with_dates(values, lists, context, vocabulary.is_month[entry])
    chosen = np.full(len(tokens), -1, dtype=np.int32)
    for number in range(0 if is_first else vocabulary.n_once, len(vocabulary.whens)):
        position = vocabulary.positions[number][entry]
        if (position >= 0).any():
            when = vocabulary.whens[number]
            applies = (chosen < 0) & (position >= 0)
            chosen = np.where(
                applies if when == _ALWAYS else applies & _HOLDS[when](context), position, chosen
            )
    chosen[is_date[context.row]] = -1
    if not (chosen >= 0).any():
        return values, is_date
    words = pc.coalesce(vocabulary.texts.take(pa.array(chosen, mask=chosen < 0)), tokens)
    joined = pc.binary_join(pa.ListArray.from_arrays(_offsets(lists), words), " ")
    return pc.if_else(pa.array(is_date), values, joined), is_date


def _with_dates(
    values: pa.StringArray, lists: pa.ListArray, context: "_Context", is_month: np.ndarray
) -> tuple[pa.StringArray, np.ndarray]:
    """Return the values with dates in canonical form, and a mask of the dates.

    Only values with one month and one or two numbers are examined further.
    """
    n_months, n_numbers, n_words = (
        np.bincount(context.row[flags], minlength=len(values))
        for flags in (is_month, context.is_number, slice(None))
    )
    rows = np.flatnonzero(
        (n_months == 1) & (n_numbers >= 1) & (n_numbers <= 2) & (n_words <= MAX_WORDS)
    )
    is_date = np.zeros(len(values), dtype=bool)
    if not len(rows):
        return values, is_date
    some = lists.take(pa.array(rows))
    dates = read_named_dates(
        pa.ListArray.from_arrays(_offsets(some), pc.utf8_lower(some.flatten()))
    )
    is_valid = dates.is_valid().to_numpy(zero_copy_only=False)
    is_date[rows[is_valid]] = True
    return pc.replace_with_mask(values, pa.array(is_date), dates.drop_null()), is_date


def _offsets(lists: pa.ListArray) -> pa.Int32Array:
    return pa.array(offsets_of(pc.list_value_length(lists).to_numpy()), pa.int32())


class _Context:
    """What is around each token: boolean arrays, one entry a token."""

    def __init__(self, lists: pa.ListArray, tokens: pa.StringArray):
        encoded = tokens.dictionary_encode()
        self.codes = encoded.indices
        self.lower = pc.utf8_lower(encoded.dictionary)
        row = pc.list_parent_indices(lists).to_numpy()
        same_row = row[1:] == row[:-1]
        self.has_next = np.append(same_row, False)
        self.has_previous = np.append(False, same_row)
        first = first_classes(self.lower)
        self.is_number = first[self.codes.to_numpy()] == NUMBER
        self.is_word = first[self.codes.to_numpy()] == LETTER
        self.is_comma = self._of_word(pc.equal(self.lower, COMMA))
        self.row = row

    def _of_word(self, flags: pa.BooleanArray) -> np.ndarray:
        return flags.to_numpy(zero_copy_only=False)[self.codes.to_numpy()]

    def is_any(self, name: str) -> np.ndarray:
        return self._of_word(pc.is_in(self.lower, pa.array(packaged()[name])))

    def next(self, flags: np.ndarray) -> np.ndarray:
        return self.has_next & np.append(flags[1:], False)

    def previous(self, flags: np.ndarray) -> np.ndarray:
        return self.has_previous & np.append(False, flags[:-1])

    def ends_part(self) -> np.ndarray:
        stops = self.is_comma | self.is_number | self.is_any("part_ends_before")
        return self.previous(~self.is_comma) & (~self.has_next | self.next(stops))

    def ends_name(self) -> np.ndarray:
        is_the = self._of_word(pc.equal(self.lower, "the"))
        return ~self.has_next & self.previous(is_the & self.previous(self.is_word))

    def starts_before_year(self) -> np.ndarray:
        is_year = self._of_word(pc.match_substring_regex(self.lower, "^[12][0-9]{3}$"))
        return ~self.has_previous & self.next(is_year & ~self.has_next)

    def in_address(self) -> np.ndarray:
        n_rows = int(self.row[-1]) + 1
        starts = ~self.has_previous & self.is_number
        starts_with_number = np.bincount(self.row[starts], minlength=n_rows) > 0
        has_street = np.bincount(self.row[self.is_any("street_words")], minlength=n_rows) > 0
        is_address = (starts_with_number & has_street)[self.row]
        return is_address & (self.previous(starts) | self.ends_part())


# The conditions of `expand`.
_HOLDS: dict[str, Callable[[_Context], np.ndarray]] = {
    "by_number": lambda words: words.next(words.is_number) | words.previous(words.is_number),
    "ends_part": _Context.ends_part,
    "before_word": lambda words: words.next(words.is_word),
    "before_word_not_after_number": lambda words: (
        words.next(words.is_word) & ~words.previous(words.is_number)
    ),
    "not_after_number": lambda words: ~words.previous(words.is_number),
    "after_number": lambda words: words.previous(words.is_number),
    "after_word": lambda words: words.previous(words.is_word),
    "after_numbered": lambda words: words.previous(words.is_any("numbered_words")),
    "ends_value": lambda words: words.has_previous & ~words.has_next,
    "ends_name": _Context.ends_name,
    "starts_before_year": _Context.starts_before_year,
    "in_address": _Context.in_address,
}


def without_company_forms(words: pa.StringArray) -> pa.StringArray:
    """Remove forms of companies at the end; one that is the whole value stays."""
    forms = "|".join(COMPANY_FORMS)
    return pc.replace_substring_regex(words, rf"(?i)^(.*?[^ ])(?: (?:{forms}))+$", r"\1")


def without_articles(words: pa.StringArray) -> pa.StringArray:
    """Remove "the" at the start."""
    return pc.replace_substring_regex(words, r"(?i)^(?:the )+([^ ])", r"\1")


# The rules that come after abbreviations are written out, in the order in which they are applied.
WORD_RULES: dict[str, Callable[[pa.StringArray], pa.StringArray]] = {
    "company-forms": without_company_forms,
    "articles": without_articles,
}
