"""The normaliser, which makes values of the lake and of queries comparable.

Values are normalised in no other way. They are normalised before they are embedded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import InputError
from pexeso.lake.cells import present
from pexeso.lake.normalise.abbreviations import (
    WORD_RULES,
    Vocabulary,
    expand,
    packaged,
    vocabulary_of,
)
from pexeso.lake.normalise.characters import (
    COMMA,
    DIGITS,
    Bytes,
    as_mask,
    fold_unicode,
    has_symbol,
    only_where,
    replaced_at,
    separate_words,
    single_spaces,
)
from pexeso.lake.normalise.dates import DAY_FIRST, canonical_dates, month_data, months_of_years
from pexeso.lake.normalise.rules import DEFAULT_RULES, DISTINCTIONS, READINGS, in_order
from pexeso.lake.normalise.territories import Territories, default_forms, foreign, territories
from pexeso.lake.normalise.territories import packaged as territory_names
from pexeso.lake.normalise.text_rules import TEXT_RULES, simplified, without_entities

# Version of the rules.
#
# Any change that gives some value another form needs a new one: indexes hold the old form.
VERSION = 11


# What the rules leave goes through them again until nothing changes, at most so often: "(march 5,
# 2020)" is a date without its parentheses.
MAX_PASSES = 4


@dataclass(frozen=True, init=False)
class Normaliser:
    """Normalisation of values to one canonical form.

    The same rules give the same form everywhere, and a value that has that form keeps it.

    Parameters
    ----------
    rules
        Names of the rules that are on; see `pexeso.lake.normalise.rules.RULES` for what there is.
    extra
        A dictionary of the user's own: lower-case word to what it stands for. It goes before those
        of the rules.
    fold_case, fold_accents, drop_punctuation, read_dates
        False switches the rule ``case``, ``accents``, ``punctuation`` or ``dates`` off.
    dictionaries
        Which of ``dates`` (the rule ``date-words``) and ``addresses`` are on; None leaves them as
        `rules` has them.

    Attributes
    ----------
    rules : tuple of str
        In the order in which they are applied.
    extra : dict of str to str

    Raises
    ------
    InputError
        A rule or dictionary is unknown, or `extra` holds what is no single word.

    Examples
    --------
    >>> texts = pa.array([" Main St.", "ST. LOUIS", "2020-03-05", "--", None])
    >>> Normaliser().normalise(texts).to_pylist()
    ['main street', 'saint louis', '5 march 2020', None, None]
    >>> Normaliser(extra={"nyc": "new york"}).normalise(pa.array(["NYC"])).to_pylist()
    ['new york']
    >>> switched = Normaliser().switched(on=["qualifiers"], off=["accents"])
    >>> switched.normalise(pa.array(["Łódź (Poland)"])).to_pylist()
    ['łódź']
    """

    rules: tuple[str, ...] = DEFAULT_RULES
    extra: Mapping[str, str] = field(default_factory=dict)

    aliases = None  # of no dataclass field: `aliases.AliasedNormaliser` has some

    def __init__(
        self,
        rules: Iterable[str] = DEFAULT_RULES,
        extra: Mapping[str, str] | None = None,
        *,
        fold_case: bool = True,
        fold_accents: bool = True,
        drop_punctuation: bool = True,
        read_dates: bool = True,
        dictionaries: Iterable[str] | None = None,
    ) -> None:
        switches = {
            "case": fold_case,
            "accents": fold_accents,
            "punctuation": drop_punctuation,
            "dates": read_dates,
        }
        off = {name for name, is_on in switches.items() if not is_on} | _dictionaries_left_out(
            dictionaries
        )
        object.__setattr__(
            self, "rules", tuple(name for name in in_order(rules) if name not in off)
        )
        if extra is not None and not isinstance(extra, Mapping):
            raise InputError(f"extra must be a dictionary of words. Got {type(extra).__name__}.")
        for word, expansion in (extra or {}).items():
            _check_entry(word, expansion)
        object.__setattr__(self, "extra", dict(sorted((extra or {}).items())))

    def __hash__(self) -> int:
        return hash(self.to_json())

    def switched(self, on: Iterable[str] = (), off: Iterable[str] = ()) -> Normaliser:
        """Return a normaliser with rules switched on and off.

        Raises
        ------
        InputError
            There is no such rule, or one is to be on and off.
        """
        on, off = in_order(on), in_order(off)
        if both := [name for name in on if name in off]:
            raise InputError(
                f"The rule {both[0]!r} cannot be switched on and off at once: name it in one place."
            )
        return Normaliser([name for name in (*self.rules, *on) if name not in off], self.extra)

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return vocabulary_of(self.rules, self.extra)

    @cached_property
    def _own_vocabulary(self) -> Vocabulary:
        return vocabulary_of(self.rules, {}) if self.extra else self._vocabulary

    @property
    def distinctions(self) -> tuple[str, ...]:
        """Names of the rules that are on and tell values apart."""
        return tuple(name for name in self.rules if name in DISTINCTIONS)

    @property
    def readings(self) -> tuple[str, ...]:
        """Names of the rules that are on and read cells that are compared for equality."""
        return tuple(name for name in self.rules if name in READINGS)

    @property
    def version(self) -> int:
        """Version of the rules."""
        return VERSION

    @property
    def fingerprint(self) -> str:
        """Return the BLAKE2b-128 fingerprint of the normaliser, in hexadecimal.

        It covers the version, the enabled rules, `extra`, and all data that the rules depend on.
        """
        text = json.dumps(
            [self._options(), packaged(), month_data(), territory_names(), foreign(), simplified()],
            sort_keys=True,
            ensure_ascii=True,
        )
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def normalise(self, values: pa.StringArray) -> pa.StringArray:
        """Bring the values of one column into their form.

        The whole column is passed at once, because the order of day and month in dates such as
        3/5/1953 is decided by all its values. Work is done once for each distinct value.

        Parameters
        ----------
        values
            Strings of any length n, nulls allowed.

        Returns
        -------
        pa.StringArray
            Length n; words separated by single spaces, null where nothing is left and where a cell
            stands for a missing value (`pexeso.lake.cells`).
        """
        return self.normalise_columns([values])[0]

    def normalise_columns(self, columns: Sequence[pa.StringArray]) -> list[pa.StringArray]:
        """Normalise several columns in one pass over all their values.

        Each column is treated by itself, as in `normalise`.

        Patterns cost more to prepare than to apply to a short column, so this is many times faster
        for small tables.
        """
        if not columns:
            return []
        encoded = [_as_strings(column).dictionary_encode() for column in columns]
        lengths = [len(column.dictionary) for column in encoded]
        distinct = self.normalise_distinct(
            pa.concat_arrays([column.dictionary for column in encoded]),
            np.repeat(np.arange(len(columns)), lengths),
        )
        starts = np.cumsum([0, *lengths])
        return [
            distinct.slice(start, length).take(column.indices)
            for column, start, length in zip(encoded, starts, lengths, strict=False)
        ]

    def normalise_distinct(self, values: pa.StringArray, columns: np.ndarray) -> pa.StringArray:
        """Do as `normalise` with distinct values of several columns: `columns` has that of each."""
        values = present(values, columns)
        return self.with_territories(self.settled(values, columns), columns)

    def with_day_first(self, values: pa.StringArray) -> pa.StringArray:
        """Normalise distinct values of a column, with the day first where it does not say so."""
        known = pa.concat_arrays([values, pa.array([DAY_FIRST], values.type)])
        columns = np.zeros(len(known), np.int64)
        return self.normalise_distinct(known, columns).slice(0, len(values))

    def resolved(self, values: pa.StringArray) -> pa.StringArray:
        """Return the values of one column with what they stand for in the place of aliases.

        They are not normalised. Here are no aliases; see
        `pexeso.lake.normalise.aliases.AliasedNormaliser`.
        """
        encoded = _as_strings(values).dictionary_encode()
        columns = np.zeros(len(encoded.dictionary), np.int64)
        return self.resolved_distinct(encoded.dictionary, columns).take(encoded.indices)

    def resolved_distinct(self, values: pa.StringArray, columns: np.ndarray) -> pa.StringArray:
        """Return the distinct values of several columns, aliases replaced as in `resolved`."""
        return values

    def kept_in(self, folder: Path) -> Normaliser:
        """Return an equal normaliser that is cheap to send: aliases are read from the folder."""
        return self

    def settled(self, values: pa.StringArray, columns: np.ndarray) -> pa.StringArray:
        """Apply all rules but `territories` until nothing changes; see `normalise_distinct`."""
        result = self._once(values, columns, self._vocabulary)
        at = self._unsettled(values, result)
        for _ in range(MAX_PASSES - 1):
            if not len(at):
                break
            before = result.take(pa.array(at))
            after = self._once(before, columns[at], self._own_vocabulary)
            result = replaced_at(result, at, after)
            at = at[as_mask(pc.not_equal(before, after))]
        return result

    def with_territories(self, values: pa.StringArray, columns: np.ndarray) -> pa.StringArray:
        """Apply the rule `territories` to settled values, if it is on."""
        if "territories" not in self.rules:
            return values
        others = tuple(name for name in self.rules if name != "territories")
        return _territories_by(others).write_out(values, columns)

    def _unsettled(self, before: pa.StringArray, after: pa.StringArray) -> np.ndarray:
        """Return the positions of values that may change in another pass.

        What the default rules leave can change in one way, which is cheap to see: a mark, such as
        the macron that NFKC makes of ``¯``, has come next to another letter. Other sets of rules
        are not so well known, and all that a pass changed goes through another.
        """
        if (set(self.rules) ^ set(DEFAULT_RULES)) - set(READINGS) or self.extra:
            return np.flatnonzero(as_mask(pc.not_equal(before, after)))
        beyond = pc.indices_nonzero(pc.invert(pc.string_is_ascii(after))).to_numpy()
        if len(beyond):
            was, texts = before.take(pa.array(beyond)), after.take(pa.array(beyond))
            is_changed = as_mask(pc.not_equal(pc.utf8_lower(was), texts))
            beyond, texts = beyond[is_changed], texts.filter(pa.array(is_changed))
            beyond = beyond[as_mask(pc.not_equal(self._folded(texts), texts))]
        return beyond

    def _once(
        self, values: pa.StringArray, columns: np.ndarray, vocabulary: Vocabulary
    ) -> pa.StringArray:
        texts = self._folded(values)
        occurring = Bytes(texts).occurring
        read_dates = "dates" in self.rules and not occurring.isdisjoint(DIGITS)
        # Before rules by which some of these are spans of years.
        lower = texts if "case" in self.rules else pc.utf8_lower(texts)
        months = months_of_years(lower, columns) if read_dates else None
        for name, (needed, change) in TEXT_RULES.items():
            if name in self.rules and not (needed and occurring.isdisjoint(needed)):
                texts = change(texts)
        if read_dates:
            lower = texts if "case" in self.rules else pc.utf8_lower(texts)
            dates = canonical_dates(lower, columns, names_have_times=True)
            dates = pc.coalesce(months, dates)
            result = pc.coalesce(
                dates,
                only_where(texts, dates.is_null(), lambda some: self._words(some, vocabulary)),
            )
        else:
            result = self._words(texts, vocabulary)
        return pc.if_else(pc.equal(result, ""), pa.scalar(None, pa.string()), result)

    def _folded(self, values: pa.StringArray) -> pa.StringArray:
        fold_case = "case" in self.rules
        if "entities" in self.rules and ord("&") in Bytes(values).occurring:
            values = without_entities(values)
        # Before and after: ẞ has a plain spelling as ß alone, and NFKC makes capitals of what had
        # none.
        texts = fold_unicode(
            pc.utf8_lower(values) if fold_case else values,
            accents="accents" in self.rules,
            letters=packaged()["letters"],
        )
        if fold_case:
            texts = only_where(texts, pc.invert(pc.string_is_ascii(values)), pc.utf8_lower)
        return pc.utf8_trim_whitespace(texts)

    def _words(self, texts: pa.StringArray, vocabulary: Vocabulary) -> pa.StringArray:
        drop_punctuation = "punctuation" in self.rules
        join = "initials" in self.rules
        words = (
            separate_words(texts, join_initials=join) if drop_punctuation else single_spaces(texts)
        )
        words = expand(words, vocabulary, drop_commas=drop_punctuation)
        for name, change in WORD_RULES.items():
            if name in self.rules:
                words = change(words)
        at = pc.indices_nonzero(pc.equal(words, "")) if drop_punctuation else ()
        if len(at):  # of what has nothing but signs these are what there is
            lost = texts.take(at)
            kept = pc.if_else(has_symbol(lost), single_spaces(lost), "")
            words = pc.replace_with_mask(words, pc.equal(words, ""), kept)
        return words

    def to_json(self) -> str:
        """Return the version and the options as JSON text.

        `from_json` creates an equal normaliser from it.
        """
        return json.dumps(self._options(), sort_keys=True, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Normaliser:
        """Return the normaliser that `to_json` described.

        Raises
        ------
        InputError
            The text is not of that form, or was written by another version of the rules.
        """
        try:
            options = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"The description of the normaliser is not JSON: {error}.") from error
        is_described = isinstance(options, dict) and "version" in options
        if is_described and options["version"] != VERSION:
            raise InputError(
                f"The normaliser has version {options['version']!r}, and this pexeso has version "
                f"{VERSION}: build the index again, or use the pexeso that built it."
            )
        if not is_described or options.keys() != {"version", "rules", "extra"}:
            raise InputError(
                "The description of a normaliser must have the keys version, rules, extra."
            )
        return cls(options["rules"], options["extra"])

    def _options(self) -> dict[str, object]:
        return {"version": VERSION, "rules": list(self.rules), "extra": dict(self.extra)}


def _dictionaries_left_out(dictionaries: Iterable[str] | None) -> set[str]:
    rule_of = {"dates": "date-words", "addresses": "addresses"}
    if dictionaries is None:
        return set()
    if isinstance(dictionaries, str) or not set(dictionaries) <= set(rule_of):
        raise InputError(f"dictionaries must be out of {', '.join(rule_of)}. Got {dictionaries!r}.")
    return {rule for name, rule in rule_of.items() if name not in dictionaries}


@lru_cache(maxsize=8)
def _territories_by(rules: tuple[str, ...]) -> Territories:
    """Return the names of territories by other rules: for all indexes of a process once."""
    if rules == tuple(name for name in DEFAULT_RULES if name != "territories"):
        return territories(default_forms)
    return territories(Normaliser(rules).normalise_columns)


def _as_strings(values: pa.StringArray | pa.ChunkedArray) -> pa.StringArray:
    if not isinstance(values, pa.Array):
        values = (
            values.combine_chunks()
            if isinstance(values, pa.ChunkedArray)
            else pa.array(values, pa.string())
        )
    return values if values.type == pa.string() else values.cast(pa.string())


def _check_entry(word: object, expansion: object) -> None:
    if not isinstance(word, str) or not isinstance(expansion, str) or not expansion.strip():
        raise InputError(f"extra must give a text for each word. Got {word!r}: {expansion!r}.")
    if not word or word != word.lower() or len(word.split()) != 1 or COMMA in word:
        raise InputError(
            f"The words of extra must be single lower-case words without commas. Got {word!r}."
        )
