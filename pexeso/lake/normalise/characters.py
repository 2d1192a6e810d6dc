"""Texts as arrays of code points.

Rules about single characters run over a whole column in one pass.

Regular expressions with Unicode classes would say the same, but each costs milliseconds to compile,
for every column.
"""

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.engine.lists import offsets_of
from pexeso.runtime.buffers import string_buffers

# Classes of characters: Unicode's L, M, N and S; what has no width; all else.
OTHER, LETTER, MARK, NUMBER, SYMBOL, INVISIBLE = range(6)

DIGITS = b"0123456789"

_BLOCK_BYTES = 4 << 20
_END = "\n"
_INVISIBLE_CHARACTERS = frozenset([0xAD, *range(0x200B, 0x2010), 0x2060, 0xFEFF])

_PAGE = 0x100
_classes = np.zeros(0x110000, np.uint8)
_known_pages: set[int] = set()
# Classes are looked up page by page, since those of all characters take a quarter of a second, in
# every process, and few texts need them.

_CLASS_OF_CATEGORY = {"L": LETTER, "M": MARK, "N": NUMBER, "S": SYMBOL}

# The word that stands for a comma after `separate_words`: it ends a part of an address.
COMMA = ","
_PLAIN = r"^[0-9A-Za-z]+(?: [0-9A-Za-z]+)*$"
_APOSTROPHES = "'`\u2018\u2019\u201b\u02bb\u02bc\u02bd\u02be\u02bf"
_MINUS_SIGNS = "-\u2212\u2013"
_BEFORE_MINUS = "(,;="
_SPELLED_SIGNS = ("&", " and "), ("<=", "\u2264"), (">=", "\u2265")
# The sign of a time zone, which is a minus, and hyphens before numbers that are none.
_SIGNS_BEHIND = (
    r"\b(?:(utc|gmt)([-\x{2212}])|(sector|block|phase|ward|plot|unit|flat|house|lot|zone|room|gate|"
    r"section|route|platform|district) [-\x{2212}\x{2013}]([0-9]))"
)
CURRENCIES = "$\u20ac\xa3\xa5\u20b9"  # by themselves or at a number, signs that are words
_COMPARISONS = "<>\u2264\u2265\u00b1"  # before a number
_ACCENTS = (0x300, 0x36F)
_DIAERESIS, _CYRILLIC_IE = 0x308, (0x415, 0x435)
# Vowel signs and the like that are written or not, and the stretching of Arabic words: Hebrew,
# Arabic, and the dot below of Indian scripts.
_OPTIONAL_MARKS = (
    (0x591, 0x5C7),
    (0x610, 0x61A),
    (0x640, 0x640),
    (0x64B, 0x65F),
    (0x670, 0x670),
    (0x6D6, 0x6ED),
    *((point, point) for point in (0x93C, 0x9BC, 0xA3C, 0xABC, 0xB3C, 0xCBC)),
)
# Blocks of Unicode whose letters take accents that may be dropped: Latin and Greek, with their
# extensions.
_ACCENTED_SCRIPTS = (
    (0x41, 0x24F),
    (0x370, 0x3FF),
    (0x1E00, 0x1FFF),
    (0x2C60, 0x2C7F),
    (0xA720, 0xA7FF),
)


def classes_of(points: np.ndarray) -> np.ndarray:
    """Return the class of each code point: uint8, of the shape of `points`."""
    one_page = points.max(initial=0) < _PAGE
    pages = (0,) if one_page else np.flatnonzero(np.bincount(points.ravel() >> 8)).tolist()
    for page in pages:
        if page not in _known_pages:
            span = range(page * _PAGE, (page + 1) * _PAGE)
            categories = map(unicodedata.category, map(chr, span))
            _classes[page * _PAGE : (page + 1) * _PAGE] = [
                _CLASS_OF_CATEGORY.get(category[0], OTHER) for category in categories
            ]
            _classes[[point for point in _INVISIBLE_CHARACTERS if point in span]] = INVISIBLE
            _known_pages.add(page)
    return _classes[points]


def change_characters(
    values: pa.StringArray,
    change: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]],
) -> pa.StringArray:
    """Apply a function of code points to texts, in blocks of about 4 MiB to bound memory.

    It takes the code points of a block (uint32), each value followed by a newline, and the row of
    each (int64, ascending), and returns new ones without those newlines, and their rows.
    """
    blocks = [
        texts_of_points(*change(*code_points(block)), len(block)) for block in text_blocks(values)
    ]
    return pa.concat_arrays(blocks) if blocks else values


def first_classes(values: pa.StringArray) -> np.ndarray:
    """Return the class of each text's first character, uint8; `OTHER` for an empty text."""
    first = Bytes(values).at(0)
    if (first < 0x80).all():
        return classes_of(first)
    points, rows = code_points(pc.utf8_slice_codeunits(values, 0, 1))
    _, first = np.unique(rows, return_index=True)
    return classes_of(points[first])


_COUNTED_BYTES = 1 << 20


def byte_table(members: bytes) -> np.ndarray:
    """Return which of the 256 bytes are members."""
    table = np.zeros(256, bool)
    table[list(members)] = True
    return table


class Bytes:
    """The bytes of texts, for cheap tests that come before patterns."""

    def __init__(self, values: pa.StringArray | pa.LargeStringArray) -> None:
        text, self._offsets = string_buffers(values)
        self._data = text if len(text) else np.zeros(1, np.uint8)  # of which bytes are taken
        self.lengths = np.diff(self._offsets)

    def at(self, position: int) -> np.ndarray:
        """Return one byte of each text as uint8, or 0 if the text is shorter.

        Positions count from the start, or from the end with -1 for the last byte.
        """
        if position >= 0:
            return self._data.take(self._offsets[:-1] + position, mode="clip") * (
                self.lengths > position
            )
        return self._data.take(self._offsets[1:] + position, mode="clip") * (
            self.lengths >= -position
        )

    @cached_property
    def occurring(self) -> set[int]:
        """The bytes that there are in any text."""
        data = self._data[self._offsets[0] : self._offsets[-1]]
        counts = np.zeros(256, np.int64)
        for start in range(0, len(data), _COUNTED_BYTES):  # NumPy takes eight bytes for each
            counts += np.bincount(data[start : start + _COUNTED_BYTES], minlength=256)
        return set(np.flatnonzero(counts).tolist())

    def start_with(self, positions: np.ndarray, start: bytes) -> np.ndarray:
        """Return which of the texts at given positions start with some bytes.

        ASCII capital letters are compared as small letters.
        """
        flags = self.lengths[positions] >= len(start)
        for step, byte in enumerate(start):
            flags &= _small()[self._data.take(self._offsets[positions] + step, mode="clip")] == byte
        return flags


@cache
def _small() -> np.ndarray:
    return np.frombuffer(bytes(range(256)).lower(), np.uint8)


def has_symbol(values: pa.StringArray) -> pa.BooleanArray:
    flags = [np.zeros(0, dtype=bool)]
    for block in text_blocks(values):
        points, rows = code_points(block)
        flags.append(np.bincount(rows[classes_of(points) == SYMBOL], minlength=len(block)) > 0)
    return pa.array(np.concatenate(flags))


def text_blocks(values: pa.StringArray) -> Iterator[pa.StringArray]:
    """Yield texts in blocks of about 4 MiB, of at least one text."""
    ends = np.cumsum(pc.binary_length(values).to_numpy(zero_copy_only=False).astype(np.int64))
    start = 0
    while start < len(values):
        limit = (ends[start - 1] if start else 0) + _BLOCK_BYTES
        stop = max(start + 1, int(np.searchsorted(ends, limit, side="right")))
        yield values.slice(start, stop - start)
        start = stop


def code_points(values: pa.StringArray) -> tuple[np.ndarray, np.ndarray]:
    """Return the code points of the values, each followed by a newline, and their rows."""
    ended = pc.binary_join_element_wise(values, _END, "")
    data, offsets = string_buffers(ended)
    text = data[offsets[0] : offsets[-1]].tobytes()
    if text.isascii():
        lengths = np.diff(offsets)
        points = np.frombuffer(text, dtype=np.uint8).astype(np.uint32)
    else:
        points = np.frombuffer(text.decode("utf-8").encode("utf-32-le"), dtype=np.uint32)
        lengths = pc.utf8_length(ended).to_numpy()
    return points, np.repeat(np.arange(len(values)), lengths)


def texts_of_points(points: np.ndarray, rows: np.ndarray, n_rows: int) -> pa.StringArray:
    """Return the texts of code points, of which `rows` says whose they are, ascending."""
    if points.max(initial=0) < 0x80:
        lengths, text = np.bincount(rows, minlength=n_rows), points.astype(np.uint8).tobytes()
    else:
        n_bytes = 1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000)
        lengths = np.bincount(rows, weights=n_bytes, minlength=n_rows).astype(np.int64)
        text = points.astype("<u4").tobytes().decode("utf-32-le").encode("utf-8")
    offsets = offsets_of(lengths).astype(np.int32)
    return pa.StringArray.from_buffers(n_rows, pa.py_buffer(offsets), pa.py_buffer(text))


def as_mask(flags: pa.BooleanArray) -> np.ndarray:
    """Return flags as an array of NumPy, false where they are null."""
    return pc.fill_null(flags, False).to_numpy(zero_copy_only=False)


def only_where(
    values: pa.StringArray,
    mask: pa.BooleanArray,
    change: Callable[[pa.StringArray], pa.StringArray],
) -> pa.StringArray:
    """Return `values` with `change` applied to those that `mask` selects.

    `mask` holds no nulls. `change` maps an array to an array.
    """
    n_chosen = mask.true_count
    if n_chosen == 0:
        return values
    if n_chosen == len(values):
        return change(values)
    return pc.replace_with_mask(values, mask, change(values.filter(mask)))


def where_matching(
    values: pa.StringArray,
    may: pa.BooleanArray,
    pattern: str,
    change: Callable[[pa.StringArray], pa.StringArray],
) -> pa.StringArray:
    """Return `values` with `change` applied to those that a pattern matches, out of some that may.

    Which may is a cheaper test.
    """
    return only_where(
        values, may, lambda some: only_where(some, pc.match_substring_regex(some, pattern), change)
    )


def replaced_at(values: pa.Array, positions: np.ndarray, texts: pa.Array) -> pa.Array:
    """Return `values` with `texts` in the place of those at some positions, ascending."""
    mask = np.zeros(len(values), dtype=bool)
    mask[positions] = True
    return pc.replace_with_mask(values, pa.array(mask), texts)


def fold_unicode(
    values: pa.StringArray, *, accents: bool, letters: dict[str, str]
) -> pa.StringArray:
    """Convert texts to Unicode form NFKC, and remove Latin and Greek accents if `accents`.

    Marks of other scripts stay: there they tell letters apart (Cyrillic й, the vowels of Indian
    scripts).
    """

    def fold(texts: pa.StringArray) -> pa.StringArray:
        # NFKC makes a space and an accent of it.
        texts = pc.replace_substring(texts, "\u00b4", "'")
        for mark in "\u2122\u2120":  # of it, letters
            texts = pc.replace_substring(texts, mark, " ")
        if accents:
            texts = change_characters(pc.utf8_normalize(texts, form="NFKD"), _without_accents)
            if pc.all(pc.string_is_ascii(texts)).as_py():
                return texts
            data = texts.buffers()[2].to_pybytes()
            spellings = letters | {
                letter.upper(): plain.upper() for letter, plain in letters.items()
            }
            for letter, plain in spellings.items():
                if letter.encode() in data:
                    texts = pc.replace_substring(texts, letter, plain)
        return pc.utf8_normalize(texts, form="NFKC")

    return only_where(values, pc.invert(pc.string_is_ascii(values)), fold)


def _without_accents(points: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    is_accent = (points >= _ACCENTS[0]) & (points <= _ACCENTS[1])
    # The base of a run of accents is the last character before it; -1 where a text starts with one.
    base = np.maximum.accumulate(np.where(is_accent, -1, np.arange(len(points))))
    base_points = points[np.maximum(base, 0)]
    is_foldable = _within(base_points, _ACCENTED_SCRIPTS)
    is_foldable |= np.isin(base_points, _CYRILLIC_IE) & (points == _DIAERESIS)
    is_end = np.append(rows[1:] != rows[:-1], True)[: len(rows)]  # newlines
    mask = ~(is_accent & is_foldable) & ~is_end & ~_within(points, _OPTIONAL_MARKS)
    return with_ascii_digits(points[mask]), rows[mask]


def _within(points: np.ndarray, spans: Sequence[tuple[int, int]]) -> np.ndarray:
    flags = np.zeros(len(points), dtype=bool)
    for first, last in spans:
        flags |= (points >= first) & (points <= last)
    return flags


def with_ascii_digits(points: np.ndarray) -> np.ndarray:
    """Write the decimal digits of every script as those of ASCII."""
    may = np.flatnonzero((points >= 0x80) & (classes_of(points) == NUMBER))
    distinct, which = np.unique(points[may], return_inverse=True)
    digits = [unicodedata.decimal(chr(point), None) for point in distinct.tolist()]
    table = [
        point if digit is None else ord("0") + digit
        for point, digit in zip(distinct.tolist(), digits, strict=True)
    ]
    if table:
        points = points.copy()
        points[may] = np.array(table, points.dtype)[which]
    return points


def separate_words(values: pa.StringArray, *, join_initials: bool = True) -> pa.StringArray:
    """Reduce texts to words separated by single spaces.

    Commas and semicolons remain as separate words.

    Letters, marks and digits of every script stay. So do a decimal point, the minus sign of a
    number at the start, in brackets or behind a word, ``<`` and the like before a number, ``+`` and
    ``#`` behind a letter or number ("C++", "18+"), and ``-`` behind up to three letters at the end
    ("AA-"). Signs of currencies at a number or by themselves are words. Apostrophes inside words
    and dots inside acronyms go without a trace ("O'Neil", "U.S.A."), thousands separators too;
    ``&`` becomes "and"; all else becomes a space.

    >>> texts = pa.array(["U.S.A. (est. 1776)", "AT&T,  Inc.", "C++", "-1,234.50"])
    >>> separate_words(texts).to_pylist()
    ['USA est 1776', 'AT and T , Inc', 'C++', '-1234.50']
    """

    def separate(texts: pa.StringArray) -> pa.StringArray:
        for sign, replacement in _SPELLED_SIGNS:
            texts = pc.replace_substring(texts, sign, replacement)
        texts = where_matching(
            texts,
            pc.match_substring_regex(texts, r"[-\x{2212}\x{2013}][0-9]"),
            _SIGNS_BEHIND,
            lambda some: pc.replace_substring_regex(some, _SIGNS_BEHIND, r"\1\3 \2\4"),
        )
        return change_characters(texts, partial(_words, join_initials=join_initials))

    return only_where(values, pc.invert(pc.match_substring_regex(values, _PLAIN)), separate)


def _words(
    points: np.ndarray, rows: np.ndarray, *, join_initials: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Keep the characters of words and commas.

    One space precedes each word except the first of a row.
    """
    classes = classes_of(points)
    if (classes == INVISIBLE).any():
        visible = classes != INVISIBLE
        points, rows, classes = points[visible], rows[visible], classes[visible]
    number = classes == NUMBER
    letter = (classes == LETTER) | (classes == MARK)
    dropped, kept_sign = np.zeros((2, len(points)), dtype=bool)
    # Few texts have signs that are not simply spaces between words.
    signs = set(points[~(letter | number)].tolist())
    if not signs.isdisjoint(map(ord, _MINUS_SIGNS)):
        minus = _is_any(points, _MINUS_SIGNS)
        space = _is_space_behind_minus(points, minus, number)
        is_first = np.concatenate([[True], rows[1:] != rows[:-1]])
        is_number_next = _after(number) | _after(space)
        kept_sign |= (is_first & minus & is_number_next) | (minus & _is_bracketed(points))
        kept_sign |= (
            minus & _after(number) & _may_precede_minus(points, rows, letter, number, is_first)
        )
        is_last = ~_after(points != ord("\n"))
        kept_sign |= minus & is_last & _before(letter) & ~_follows(letter, 4)
        points = np.where(kept_sign, ord("-"), points)
        dropped |= space
    if not signs.isdisjoint(map(ord, _COMPARISONS)):
        comparison = _is_any(points, _COMPARISONS)
        space = (points == ord(" ")) & _before(comparison) & _after(number)
        gap, price = points == ord(" "), _is_any(points, CURRENCIES)
        price &= _after(number) | (_after(gap) & _after(number, 2))
        is_price_next = _after(price) | (_after(gap) & _after(price, 2))
        kept_sign |= comparison & (_after(number) | _after(space) | is_price_next)
        dropped |= space
    if not signs.isdisjoint(map(ord, _APOSTROPHES)):
        dropped |= _is_any(points, _APOSTROPHES) & _before(letter) & _after(letter)
    if ord(".") in signs:
        dot = points == ord(".")
        dropped |= _is_dot_of_initials(points, dot, letter, number, join_initials)
        kept_sign |= dot & _before(number) & _after(number)
    if ord(COMMA) in signs:
        after_1, after_2, after_3, after_4 = (_after(number, steps) for steps in (1, 2, 3, 4))
        dropped |= (points == ord(COMMA)) & _before(number) & after_1 & after_2 & after_3 & ~after_4
    if ord("+") in signs or ord("#") in signs:
        plus, sharp = points == ord("+"), points == ord("#")
        first_plus = plus & _before(letter | number) & ~_after(letter | number)
        kept_sign |= first_plus | (plus & _before(first_plus)) | (sharp & _before(letter))
        kept_sign |= plus & _is_bracketed(points)
    comma = ((points == ord(COMMA)) | (points == ord(";"))) & ~dropped
    points, alone = np.where(comma, ord(COMMA), points), comma
    if not signs.isdisjoint(map(ord, CURRENCIES)):
        alone = comma | _are_currencies(points, letter, number)
    # Dropped characters go first: what stood on their two sides becomes one word.
    stays = ~dropped
    points, rows = points[stays], rows[stays]
    alone, in_word = alone[stays], (letter | number | kept_sign)[stays]
    mask = alone | in_word
    is_start = alone | (in_word & ~_before(in_word))
    points, rows, is_start = points[mask], rows[mask], is_start[mask]
    has_space = is_start & (rows == np.concatenate([[-1], rows[:-1]]))
    source = np.repeat(np.arange(len(points)), 1 + has_space)
    is_space = (
        np.concatenate([source[1:] == source[:-1], [False]]) if len(source) else source.astype(bool)
    )
    return np.where(is_space, ord(" "), points[source]), rows[source]


def _is_bracketed(points: np.ndarray) -> np.ndarray:
    """Return which characters are alone in brackets: "(+)-limonene"."""
    return _before(points == ord("(")) & _after(points == ord(")"))


def _are_currencies(points: np.ndarray, letter: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Return which signs of currencies are words: "$5", "5 €", "US$ 5" and "(US$)", not "Ke$ha"."""
    sign, space, word = _is_any(points, CURRENCIES), points == ord(" "), letter | number
    is_single = ~_before(sign) & ~_after(sign)
    is_at_number = _before(number) | _after(number)
    behind, ahead = _before(space & _before(number)), _after(space) & _after(number, 2)
    is_last = ~_after(word) & (~_before(word) | _after(points == ord(")")))
    return sign & is_single & (is_at_number | behind | ahead | is_last)


def _is_dot_of_initials(
    points: np.ndarray, dot: np.ndarray, letter: np.ndarray, number: np.ndarray, join_initials: bool
) -> np.ndarray:
    lone = letter & ~_before(letter | number) & ~_after(letter | number)
    dropped = dot & _before(lone) & _after(lone)
    if not join_initials:
        return dropped
    # The dot behind the second letter tells initials from the end of a sentence.
    between = dot & _before(lone) & _after(points == ord(" ")) & _after(lone, 2) & _after(dot, 3)
    return dropped | between | _before(between)


def _is_space_behind_minus(points: np.ndarray, minus: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Return which spaces stand between a minus sign that starts its value and a number: "- 5"."""
    starts = minus & ~_before(points != ord("\n"))
    return (points == ord(" ")) & _before(starts) & _after(number)


def _may_precede_minus(
    points: np.ndarray,
    rows: np.ndarray,
    letter: np.ndarray,
    number: np.ndarray,
    is_first: np.ndarray,
) -> np.ndarray:
    """Return what stands behind a bracket or the like, or a space behind one or behind a letter.

    Behind a number that is so where a text has no letters, as in "24 (-4)", and a dash where it has
    some, as in "Boeing 737 -800", and behind a year, as in "1937 -38". Behind a colon without a
    space it is a dash, as in "No:-5".
    """
    opener, space, colon = _is_any(points, _BEFORE_MINUS), points == ord(" "), points == ord(":")
    between = opener | space | colon
    has_letters = np.zeros(rows[-1] + 1, bool)
    has_letters[rows[letter]] = True

    def is_behind(flags: np.ndarray) -> np.ndarray:
        """Return what stands behind something, with up to two brackets or spaces between."""
        once = _before(between & flags)
        return flags | once | _before(between & once)

    fraction = points == ord(".")  # four digits behind a point are no year
    for _ in range(5):
        fraction = _before(fraction)
    year = _follows(number, 4) & ~_follows(number, 5) & ~fraction
    is_dash = is_behind(year) | (is_behind(_before(number)) & has_letters[rows])
    is_space = space & _before(opener | colon | letter | number)
    return _before((opener | is_space) & ~is_dash) & ~is_first


def _follows(mask: np.ndarray, n: int) -> np.ndarray:
    """Return what stands behind so many characters of a kind, or more."""
    flags, before = np.ones(len(mask), dtype=bool), mask
    for _ in range(n):
        before = _before(before)
        flags &= before
    return flags


def _is_any(points: np.ndarray, characters: str) -> np.ndarray:
    flags = points == ord(characters[0])
    for character in characters[1:]:
        flags |= points == ord(character)
    return flags


def _before(flags: np.ndarray) -> np.ndarray:
    return np.concatenate([[False], flags[:-1]]) if len(flags) else flags


def _after(flags: np.ndarray, steps: int = 1) -> np.ndarray:
    shifted = np.zeros_like(flags)
    shifted[:-steps] = flags[steps:]
    return shifted


def single_spaces(values: pa.StringArray) -> pa.StringArray:
    return pc.utf8_trim_whitespace(pc.replace_substring_regex(values, r"[\s\pZ]+", " "))
