"""Abbreviations written out where their neighbours make clear what they stand for."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.characters import LETTER, NUMBER, first_classes
from pexeso.lake.folding import COMMA, only_where

DICTIONARIES = ("date-words", "addresses", "ordinals", "companies")
"""The rules that are dictionaries, in the order in which these are asked."""

_ALWAYS = "always"
_MAX_ROUNDS = 4


@cache
def packaged() -> dict[str, Any]:
    """Return the dictionaries that come with the package: ``dictionaries.json``. Not to be changed by the caller."""
    return json.loads(files("pexeso.lake").joinpath("dictionaries.json").read_text("utf-8"))


@dataclass(frozen=True)
class Rule:
    """Words that are written out under one condition on their neighbours."""

    when: str
    words: pa.StringArray
    expansions: pa.StringArray


def rules_of(names: Sequence[str], extra: Mapping[str, str]) -> list[Rule]:
    """Return the rules of the named dictionaries, after those of `extra`, whose words are always written out."""
    found = [_rule(_ALWAYS, extra)] if extra else []
    for name in names:
        found.extend(_rule(entry["when"], entry["words"]) for entry in packaged()[name])
    return found


def _rule(when: str, words: Mapping[str, str]) -> Rule:
    return Rule(when, pa.array(list(words), pa.string()), pa.array(list(words.values()), pa.string()))


def expand(
    values: pa.StringArray, rules: Sequence[Rule], *, n_once: int = 0, drop_commas: bool = False
) -> pa.StringArray:
    """Write out the abbreviations in texts of words separated by single spaces, commas being words.

    The first rule that knows a word and whose condition holds decides. What is written out may be the neighbour that another word waits for ("mar first" is
    "mar 1st" and then "march 1st"), so this is repeated, at most `_MAX_ROUNDS` times. The conditions, for a word within its value:

    ``always``
        No condition.
    ``by_number``
        The word before or after it starts with a digit: "5 mar", not "mar del plata".
    ``ends_part``
        It is not the first word of its part and ends it: before a comma, the end, a number, or a direction or unit
        ("main st nw", "main st apt 3"). So "main st" is a street.
    ``before_word``
        A word that starts with a letter follows: "st petersburg" is a saint.
    ``before_word_not_after_number``
        The same, unless a number comes before: "ft worth" is a fort, "6 ft tall" is not.
    ``not_after_number``
        No number comes before: a "second" behind one is a time.
    ``ends_value``
        It is the last word of the value and not the only one.
    ``in_address``
        The value starts with a number and names a kind of street, and the word comes right after the number or ends its
        part: "120 n main st".

    Parameters
    ----------
    values
        Length n, no nulls.
    rules
        From `rules_of`.
    n_once
        So many of the first rules are applied in the first round alone: what the user's own words stand for is taken as it is.
    drop_commas
        Whether to remove commas once they have told where a part of an address ends.

    Returns
    -------
    pa.StringArray
        Length n.

    Examples
    --------
    >>> rules = rules_of(("date-words", "addresses"), {})
    >>> expand(pa.array(["st petersburg", "main st , st louis", "mar 1953"]), rules).to_pylist()
    ['saint petersburg', 'main street , saint louis', 'march 1953']
    """
    if rules and len(values):
        known = pc.unique(pa.concat_arrays([rule.words for rule in rules]))
        rows = _rows_that_hold(values, known)
        for number in range(_MAX_ROUNDS):
            if not len(rows):
                break
            before = values.take(pa.array(rows))
            after = _expand_all(pc.split_pattern(before, " "), rules if number == 0 else rules[n_once:])
            after = without_commas(after) if drop_commas else after
            mask = np.zeros(len(values), dtype=bool)
            mask[rows] = True
            values = pc.replace_with_mask(values, pa.array(mask), after)
            changed = rows[pc.not_equal(before, after).to_numpy(zero_copy_only=False)]
            rows = changed[_rows_that_hold(values.take(pa.array(changed)), known)]
    return without_commas(values) if drop_commas else values


def _rows_that_hold(values: pa.StringArray, known: pa.StringArray) -> np.ndarray:
    lists = pc.split_pattern(values, " ")
    is_hit = pc.is_in(pc.utf8_lower(lists.flatten()), known).to_numpy(zero_copy_only=False)
    return np.unique(pc.list_parent_indices(lists).to_numpy()[is_hit])


def without_commas(words: pa.StringArray) -> pa.StringArray:
    """Remove the words that stand for commas."""

    def remove(some: pa.StringArray) -> pa.StringArray:
        for pattern in (f"{COMMA} ", f" {COMMA}", COMMA):
            some = pc.replace_substring(some, pattern, "")
        return some

    return only_where(words, pc.match_substring(words, COMMA), remove)


def _expand_all(lists: pa.ListArray, rules: Sequence[Rule]) -> pa.StringArray:
    tokens = lists.flatten()
    context = _Context(lists, tokens)
    result = tokens
    is_open = np.ones(len(tokens), dtype=bool)
    for rule in rules:
        entry = pc.index_in(context.lower, rule.words).take(context.codes)
        applies = entry.is_valid().to_numpy(zero_copy_only=False) & is_open & context.holds(rule.when)
        is_open &= ~applies
        result = pc.if_else(pa.array(applies), rule.expansions.take(entry), result)
    # The offsets of a list array that was taken start at 0 and fit its flattened values.
    offsets = np.concatenate([[0], np.cumsum(pc.list_value_length(lists).to_numpy())])
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), result), " ")


class _Context:
    """What stands around each token: boolean arrays, one entry a token."""

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

    def _is_any(self, name: str) -> np.ndarray:
        return self._of_word(pc.is_in(self.lower, pa.array(packaged()[name])))

    def _next(self, flags: np.ndarray) -> np.ndarray:
        return self.has_next & np.append(flags[1:], False)

    def _previous(self, flags: np.ndarray) -> np.ndarray:
        return self.has_previous & np.append(False, flags[:-1])

    def holds(self, when: str) -> np.ndarray:
        """Tell for each token whether the condition holds; see `expand`."""
        return getattr(self, f"_{when}")()

    def _always(self) -> np.ndarray:
        return np.ones(len(self.row), dtype=bool)

    def _by_number(self) -> np.ndarray:
        return self._next(self.is_number) | self._previous(self.is_number)

    def _ends_part(self) -> np.ndarray:
        stops = self.is_comma | self.is_number | self._is_any("part_ends_before")
        return self._previous(~self.is_comma) & (~self.has_next | self._next(stops))

    def _before_word(self) -> np.ndarray:
        return self._next(self.is_word)

    def _before_word_not_after_number(self) -> np.ndarray:
        return self._before_word() & ~self._previous(self.is_number)

    def _not_after_number(self) -> np.ndarray:
        return ~self._previous(self.is_number)

    def _ends_value(self) -> np.ndarray:
        return self.has_previous & ~self.has_next

    def _in_address(self) -> np.ndarray:
        n_rows = int(self.row[-1]) + 1
        is_first = ~self.has_previous
        starts_with_number = np.bincount(self.row[is_first & self.is_number], minlength=n_rows) > 0
        has_street = np.bincount(self.row[self._is_any("street_words")], minlength=n_rows) > 0
        after_house_number = self._previous(is_first & self.is_number)
        return (starts_with_number & has_street)[self.row] & (after_house_number | self._ends_part())
