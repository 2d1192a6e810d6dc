"""Which encoding a text is in whose letters are those of one alphabet.

A short table says too little for statistics of whole texts: a few names of cities are most of what
there is to go by. The letters beyond ASCII that a language has tell more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise

_MIN_COVERED = 0.9
_SHARE_OF_SEVERAL = 0.95
"""What a letter counts that one of several languages of a region has, but not the one at hand."""
_SHARE_OF_FREQUENT = 0.3
_MIN_SURE = 1.15
"""So well a text fits whose bytes may also be pairs, as those of Chinese are."""

_WEST = (
    "àâæçèéêëîïôœùûüÿ",  # French
    "äöüßéåæøá",  # German, and the languages of the north
    "áéíñóúü",  # Spanish
    "àáâãçéêíóôúü",  # Portuguese, but for õ before e
    "àèéìíîòóùú",  # Italian
    "áðéíóúýþæöø",  # Icelandic
    "áèéêëíïóöüú",  # Dutch
    "àçèéíïòóúü",  # Catalan
    "äõöüšž",  # Estonian
)
_CENTRE = (
    "ąćęłńóśźż",  # Polish
    "áčďéěíňóřšťúůýžöü",  # Czech
    "áäčďéíĺľňóôŕšťúýž",  # Slovak
    "áéíóöőúüű",  # Hungarian
    "ăâîşţ",  # Romanian
    "čćđšž",  # Croatian, Slovene
)
_TURKISH = ("çğıİöşü",)
_BALTIC = (
    "āčēģīķļņšūž",  # Latvian
    "ąčęėįšųūž",  # Lithuanian
    "äõöüšž",  # Estonian
)
_LATIN = (_WEST, _CENTRE, _TURKISH, _BALTIC)
# Of the others the most frequent letters come first.
_RUSSIAN = ("оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё",)
_CYRILLIC = (
    *_RUSSIAN,
    "оаинвретслкдпмузяьбгйчхцжїєіфшющґ",  # Ukrainian
    "аіноертслквпдмыуяьбзгчжйцшхюэёўф",  # Belarusian
    "аиоетнрсвлкдпмзугяъбчжщйцхшюфь",  # Bulgarian
    "аиоенрсјтукдвплмзбгчњшцђћљхжџфѓќѕ",  # Serbian, Macedonian
)
_GREEK = ("αοιετσνηυρπκμλςίωόγάέδήχύθφβώξζψϊϋΐΰ",)
_HEBREW = ("יוהלארתבשמםנחדעקכפןטגזסצךףץ",)
_ARABIC = ("اليمونرتةبعدسفحكقهجشأصطخضذزغثإئءظىآؤکیگچپژ",)

_FREQUENT = 12
_ALPHABETS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("cp1252", _WEST),
    ("cp1250", _CENTRE),
    ("cp1251", _CYRILLIC),
    ("cp1253", _GREEK),
    ("cp1254", _TURKISH),
    ("cp1255", _HEBREW),
    ("cp1256", _ARABIC),
    ("cp1257", _BALTIC),
    ("iso8859_2", _CENTRE),
    ("koi8_r", _RUSSIAN),
    ("cp866", _RUSSIAN),
    ("cp850", _WEST),
    ("mac_roman", _WEST),
    ("cp852", _CENTRE),
)
"""Encodings of one byte a letter and the alphabets that are written in them.

Where several fit equally well, the first is the likeliest.
"""

_MOST_LIKELY = "cp1252"
_SEVERAL_BYTES = ("cp932", "euc_jp", "gb18030", "big5", "cp949")

_AT_ENDS = "\xaa\xba\xb2\xb3\xb9\xbc\xbd\xbe"
_WORD = re.compile(r"[^\W\d_]+")
_CONTROL = re.compile(r"[\x80-\x9f]")
_MARK_AMID = re.compile(
    r"(?<=[^\W\d_])[^\x00-\x7f\w\xa0\xad\xb7\u2010-\u2019\u2026](?=[^\W\d_])"
    r"|[^\x00-\x7f\w\xa0\xab\xad\xb7\xbb\u2010-\u201f\u2026\u2039\u203a\u2116](?=[^\x00-\x7f])"
    r"|[\u2500-\u25ff]"
)
"""Marks within a word, but for dashes and apostrophes; before a letter beyond ASCII or another such
mark, but for quotation marks; and those of which frames are drawn."""
_NOT_WEST = re.compile(
    r"[^\x00-\x7f]{3}|[ªº]|(?<=.)þ|ç(?=[bcdfghjklmnpqrstvwxz])", re.IGNORECASE | re.DOTALL
)
"""What no word of a language of the west has: many such letters in a row, or one where it never is.

``ª`` and ``º`` end a word, where they do not count, ``þ`` begins one, and ``ç`` stands before a
vowel or at the end.
"""


def encoding_of_letters(evidence: bytes) -> str | None:
    """Return the encoding under which letters beyond ASCII are those of one alphabet.

    Returns
    -------
    str or None
        Python's name; None where a tenth of these letters or more fit under no encoding, or the
        text may be one of several bytes a letter.

    Examples
    --------
    >>> encoding_of_letters("Москва, Уфа".encode("cp1251"))
    'cp1251'
    >>> encoding_of_letters("Seinäjoki, Jyväskylä".encode("latin-1"))
    'cp1252'
    >>> encoding_of_letters("東京, 大阪".encode("cp932")) is None
    True
    """
    if _has_marks_alone(_decoded(evidence, _MOST_LIKELY)):
        return _MOST_LIKELY
    best, best_text, best_fit = None, "", 0.0
    may_have_several_bytes = any(_decoded(evidence, name) is not None for name in _SEVERAL_BYTES)
    for name, alphabets in _ALPHABETS:
        text = _decoded(evidence, name)
        if text is None or text == best_text:
            continue
        is_latin = alphabets in _LATIN
        fit = (_latin_fit if is_latin else _other_fit)(text, alphabets)
        min_fit = _MIN_SURE if may_have_several_bytes and not is_latin else _MIN_COVERED
        if fit >= min_fit and fit > best_fit:
            best, best_text, best_fit = name, text, fit
    return best


def _has_marks_alone(text: str | None) -> bool:
    """Return whether a text has quotation marks, signs of currencies and the like, but no letter.

    Beyond ASCII, that is; and each stands where such marks do.
    """
    if text is None or _CONTROL.search(text) or _MARK_AMID.search(text):
        return False
    return all(word.isascii() for word in _words(text))


def _words(text: str) -> set[str]:
    """Return the different words of a text, without the ordinals and powers at their ends."""
    return {word.rstrip(_AT_ENDS) for word in _WORD.findall(text)}


def _decoded(evidence: bytes, name: str) -> str | None:
    try:
        return evidence.decode(name)
    except UnicodeDecodeError:
        return None


def _latin_fit(text: str, alphabets: Sequence[str]) -> float:
    """Return which share of the letters beyond ASCII one alphabet has; at most 1.

    Lists of places and people have names of several languages, for which a little is taken off.
    """
    is_west = alphabets is _WEST
    if is_west:  # without it õ stands in hardly any language but Estonian: it is ő, read wrongly
        text = text.replace("õe", "ãe")
    letters, n = _letters_of(text, lambda word: _is_latin_word(word, is_west))
    covered = [sum(map(_both_cases(alphabet).__contains__, letters)) for alphabet in alphabets]
    n_of_any = sum(map(_both_cases("".join(alphabets)).__contains__, letters))
    n_of_best = max(covered)
    return (n_of_best + (_SHARE_OF_SEVERAL * (n_of_any - n_of_best) if is_west else 0)) / max(1, n)


def _other_fit(text: str, alphabets: Sequence[str]) -> float:
    """Return which share of the letters beyond ASCII one alphabet has, and more for frequent ones.

    At most 1.3.
    """
    letters, n = _letters_of(text, _is_other_word)
    return max(
        sum(map(_both_cases(alphabet).__contains__, letters))
        + _SHARE_OF_FREQUENT * sum(map(_both_cases(alphabet[:_FREQUENT]).__contains__, letters))
        for alphabet in alphabets
    ) / max(1, n)


def _letters_of(text: str, is_word: Callable[[str], bool]) -> tuple[list[str], int]:
    """Return the letters beyond ASCII of different words that may be some.

    And how many there are in all, with the marks and controls that stand where none does.
    """
    words = {word for word in _words(text) if not word.isascii()}
    others = {word: [letter for letter in word if letter > "\x7f"] for word in words}
    n = sum(map(len, others.values()))
    n_odd = len(_CONTROL.findall(text)) + len(_MARK_AMID.findall(text))
    letters = [letter for word in words if is_word(word) for letter in others[word]]
    return letters, n + n_odd


@cache
def _both_cases(alphabet: str) -> frozenset[str]:
    return frozenset(alphabet) | frozenset(alphabet.upper())


def _is_latin_word(word: str, is_west: bool) -> bool:
    """Return whether no capital follows a small letter, and a letter of ASCII is among others."""
    if any(a.islower() and b.isupper() and not (a + b).isascii() for a, b in pairwise(word)):
        return False
    if len(word) > 1 and not any(letter < "\x80" for letter in word):
        return False
    return not (is_west and _NOT_WEST.search(word))


def _is_other_word(word: str) -> bool:
    """Return whether a word has no letter of ASCII, and a capital at its start alone if any."""
    if any(letter < "\x80" for letter in word):
        return False
    return word.isupper() or word[1:] == word[1:].lower()
