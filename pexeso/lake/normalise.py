"""The normaliser: the one way in which values of the lake and of a query are made comparable before they are embedded."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import InputError
from pexeso.lake.abbreviations import DICTIONARIES, Rule, expand, packaged, rules_of
from pexeso.lake.characters import has_symbol
from pexeso.lake.dates import canonical_dates
from pexeso.lake.folding import COMMA, fold_unicode, only_where, separate_words, single_spaces
from pexeso.lake.territories import Territories, territories
from pexeso.lake.territories import packaged as territory_names

VERSION = 2
"""Version of the rules. Any change that gives some value another form needs a new one: indexes hold the old form."""


@dataclass(frozen=True)
class Normaliser:
    """Brings values into one form; the same options give the same form everywhere.

    Attributes
    ----------
    fold_case
        Lower case throughout.
    fold_accents
        Latin and Greek letters without their accents, ``ø`` as ``o`` and the like. Unicode's NFKC is always applied.
    drop_punctuation
        Keep words only; see `folding.separate_words`. A value of nothing but symbols ("+", "★★") is kept as it is.
    read_dates
        Write dates in one form with a named month; see `dates.canonical_dates`.
    read_territories
        Write countries, territories and states under one name each; see `territories`.
    dictionaries
        Abbreviations to write out, of ``dates`` and ``addresses``; see `abbreviations.expand`.
    extra
        A dictionary of the user's own: lower-case word to what it stands for. It goes before the others.

    Raises
    ------
    InputError
        A dictionary is unknown, or `extra` holds what is no single word.

    Examples
    --------
    >>> Normaliser().normalise(pa.array([" Main St.", "ST. LOUIS", "2020-03-05", "--", None])).to_pylist()
    ['main street', 'saint louis', '5 march 2020', None, None]
    >>> Normaliser(extra={"nyc": "new york"}).normalise(pa.array(["NYC"])).to_pylist()
    ['new york']
    """

    fold_case: bool = True
    fold_accents: bool = True
    drop_punctuation: bool = True
    read_dates: bool = True
    read_territories: bool = True
    dictionaries: tuple[str, ...] = DICTIONARIES
    extra: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.dictionaries, str) or not set(self.dictionaries) <= set(DICTIONARIES):
            raise InputError(f"dictionaries must be out of {', '.join(DICTIONARIES)}. Got {self.dictionaries!r}.")
        object.__setattr__(self, "dictionaries", tuple(name for name in DICTIONARIES if name in self.dictionaries))
        if not isinstance(self.extra, Mapping):
            raise InputError(f"extra must be a dictionary of words. Got {type(self.extra).__name__}.")
        for word, expansion in self.extra.items():
            _check_entry(word, expansion)
        object.__setattr__(self, "extra", dict(sorted(self.extra.items())))

    def __hash__(self) -> int:
        return hash(self.to_json())

    @cached_property
    def _rules(self) -> list[Rule]:
        return rules_of(self.dictionaries, self.extra)

    @cached_property
    def _territories(self) -> Territories:
        return territories(replace(self, read_territories=False, extra={}).normalise)

    @property
    def version(self) -> int:
        """Version of the rules."""
        return VERSION

    @property
    def fingerprint(self) -> str:
        """BLAKE2b-128, in hexadecimal, over the version, the options and every dictionary entry that is in use."""
        built_in = {name: packaged()[name] for name in self.dictionaries}
        if self.fold_accents:
            built_in["letters"] = packaged()["letters"]
        if self.dictionaries:
            built_in |= {name: packaged()[name] for name in ("part_ends_before", "street_words")}
        if self.read_territories:
            built_in["territories"] = territory_names()
        text = json.dumps([self._options(), built_in], sort_keys=True, ensure_ascii=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def normalise(self, values: pa.StringArray) -> pa.StringArray:
        """Bring the values of one column into their form.

        The whole column is passed at once, because the order of day and month in dates such as 3/5/1953 is decided
        by all its values. Work is done once for each distinct value.

        Parameters
        ----------
        values
            Strings of any length n, nulls allowed.

        Returns
        -------
        pa.StringArray
            Length n; words separated by single spaces, null where nothing is left.
        """
        return self.normalise_columns([values])[0]

    def normalise_columns(self, columns: Sequence[pa.StringArray]) -> list[pa.StringArray]:
        """Normalise several columns, each by itself as `normalise` does, in one pass over all their values.

        Patterns cost more to prepare than to apply to a short column, so this is many times faster for small tables.
        """
        if not columns:
            return []
        encoded = [_as_strings(column).dictionary_encode() for column in columns]
        lengths = [len(column.dictionary) for column in encoded]
        distinct = self._normalise_distinct(
            pa.concat_arrays([column.dictionary for column in encoded]), np.repeat(np.arange(len(columns)), lengths)
        )
        starts = np.cumsum([0, *lengths])
        return [
            distinct.slice(start, length).take(column.indices)
            for column, start, length in zip(encoded, starts, lengths, strict=False)
        ]

    def _normalise_distinct(self, values: pa.StringArray, columns: np.ndarray) -> pa.StringArray:
        texts = fold_unicode(values, accents=self.fold_accents, letters=packaged()["letters"])
        texts = pc.utf8_trim_whitespace(pc.utf8_lower(texts) if self.fold_case else texts)
        if self.read_dates:
            dates = canonical_dates(pc.utf8_lower(texts), columns)
            result = pc.coalesce(dates, only_where(texts, dates.is_null(), self._words))
        else:
            result = self._words(texts)
        if self.read_territories:
            result = self._territories.write_out(result, columns)
        return pc.if_else(pc.equal(result, ""), pa.scalar(None, pa.string()), result)

    def _words(self, texts: pa.StringArray) -> pa.StringArray:
        words = separate_words(texts) if self.drop_punctuation else single_spaces(texts)
        words = expand(words, self._rules)
        if not self.drop_punctuation:
            return words
        words = only_where(words, pc.match_substring(words, COMMA), _without_commas)
        at = pc.indices_nonzero(pc.equal(words, ""))
        if not len(at):
            return words
        lost = texts.take(at)
        kept = pc.if_else(has_symbol(lost), single_spaces(lost), "")
        return pc.replace_with_mask(words, pc.equal(words, ""), kept)

    def to_json(self) -> str:
        """Return the version and the options as JSON text; `from_json` makes an equal normaliser of it."""
        return json.dumps(self._options(), sort_keys=True, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Normaliser":
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
        names = {found.name for found in fields(cls)}
        if not isinstance(options, dict) or set(options) != names | {"version"}:
            raise InputError(f"The description of a normaliser must have the keys version, {', '.join(sorted(names))}.")
        version = options.pop("version")
        if version != VERSION:
            raise InputError(
                f"The normaliser has version {version!r}, and this pexeso has version {VERSION}: "
                "build the index again, or use the pexeso that built it."
            )
        dictionaries = options["dictionaries"]
        if not isinstance(dictionaries, list) or not all(isinstance(name, str) for name in dictionaries):
            raise InputError(f"dictionaries must be a list out of {', '.join(DICTIONARIES)}. Got {dictionaries!r}.")
        return cls(**{**options, "dictionaries": tuple(dictionaries)})

    def _options(self) -> dict[str, object]:
        options = {found.name: getattr(self, found.name) for found in fields(self)}
        return options | {"dictionaries": list(self.dictionaries), "version": VERSION}


def _as_strings(values: pa.StringArray | pa.ChunkedArray) -> pa.StringArray:
    if not isinstance(values, pa.Array):
        values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else pa.array(values, pa.string())
    return values if values.type == pa.string() else values.cast(pa.string())


def _without_commas(words: pa.StringArray) -> pa.StringArray:
    for pattern in (f"{COMMA} ", f" {COMMA}", COMMA):
        words = pc.replace_substring(words, pattern, "")
    return words


def _check_entry(word: object, expansion: object) -> None:
    if not isinstance(word, str) or not isinstance(expansion, str) or not expansion.strip():
        raise InputError(f"extra must give a text for each word. Got {word!r}: {expansion!r}.")
    if not word or word != word.lower() or len(word.split()) != 1 or COMMA in word:
        raise InputError(f"The words of extra must be single lower-case words without commas. Got {word!r}.")
