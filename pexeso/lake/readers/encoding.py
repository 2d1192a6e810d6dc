"""Detection of the character encoding of delimited text and of JSON.

The byte order mark is tried first, then UTF-8, then a guess that is always reported.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

_MIN_COVERED = 0.9
# What a letter counts that one of several languages of a region has, but not the one at hand.
_SHARE_OF_SEVERAL = 0.95
_SHARE_OF_FREQUENT = 0.3
# So well a text fits whose bytes may also be pairs, as those of Chinese are.
_MIN_SURE = 1.15

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
_ANY_LATIN = ("".join(map("".join, _LATIN)),)
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
# Encodings of one byte a letter and the alphabets that are written in them.
#
# Where several fit equally well, the first is the likeliest.
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
    ("koi8_u", _CYRILLIC),
    ("iso8859_5", _CYRILLIC),
    ("iso8859_6", _ARABIC),
    ("mac_cyrillic", _CYRILLIC),
)
# Those that are seldom written, which so many letters more must fit.
_SELDOM, _MIN_BETTER = ("koi8_u", "iso8859_5", "iso8859_6", "mac_cyrillic"), 0.8

_MOST_LIKELY, _ANY_CURRENCY = "cp1252", "\xa4"
_BYTES_OF_A_PAIR = 2
_PAIRS = ("euc_kr", "euc_jp", "gb2312")  # an odd number of letters in a row is none of these
_SEVERAL_BYTES = ("cp932", "euc_jp", "gb18030", "big5", "cp949")

# Big5 with the characters of Hong Kong; the first byte of the last frequent ones, and which share
# of them has a second byte of ASCII: two in five, where Chinese text has many.
_BIG5, _LAST_FREQUENT, _MIN_ASCII, _MAX_ASCII = "big5hkscs", 0xC6, 0.15, 0.85

_THAI_WORD = re.compile(r"[^\s\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e]+")
_THAI_VOWEL = re.compile("[\u0e30-\u0e3a\u0e40-\u0e44\u0e47-\u0e4e]")
_THAI_SYLLABLES = re.compile(
    "(?:[\u0e40-\u0e44]?[\u0e01-\u0e2e][\u0e31\u0e34-\u0e3a\u0e47-\u0e4e]{0,3}[\u0e30\u0e32\u0e33]{0,2}"
    "|[\u0e2f\u0e46\u0e50-\u0e59A-Za-z0-9\x80-\xa0\u2018-\u2026])+"
)
_MIN_VOWELS = 2

_AT_ENDS = "\xaa\xba\xb2\xb3\xb9\xbc\xbd\xbe"
_WORD = re.compile(r"[^\W\d_]+")
_C1_CONTROL = re.compile(r"[\x80-\x9f]")
# Marks within a word, but for dashes and apostrophes; before a letter beyond ASCII or another such
# mark, but for quotation marks; those of which frames are drawn; and ``¦¬±¶`` beside a letter.
_MARK_AMID = re.compile(
    r"(?<=[^\W\d_])[^\x00-\x7f\w\xa0\xad\xb7\u2010-\u2019\u2026](?=[^\W\d_])"
    r"|[^\x00-\x7f\w\xa0\xab\xad\xb7\xbb\u2010-\u201f\u2026\u2039\u203a\u2116](?=[^\x00-\x7f])"
    r"|[\u2500-\u25ff]|[\xa6\xac\xb1\xb6](?=[^\W\d_])|(?<=[^\W\d_])[\xa6\xac\xb1\xb6]"
)
# Of Windows what no word ends in: on a Mac it is a trade mark, registered or not.
_MARK_OF_MAC = re.compile("[^\\W\\d_]\xa8|[A-Za-z]{3}\xaa")
# What no word of a language of the west has: many such letters in a row, or one where it never is.
#
# ``ª`` and ``º`` end a word, where they do not count, ``þ`` begins one, and ``ç`` comes before a
# vowel or at the end.
_NOT_WEST = re.compile(
    r"[^\x00-\x7f]{3}|[ªº]|(?<=.)þ|ç(?=[bcdfghjklmnpqrstvwxz])", re.IGNORECASE | re.DOTALL
)

_MARKS = (
    # UTF-32 before UTF-16: the mark of one starts with that of the other.
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CANDIDATES = [
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "iso8859_2"),
    *("koi8_r", "cp437", "cp850", "mac_roman", "cp932", "euc_jp", "gb18030", "big5", "cp949"),
]
_EVIDENCE_BYTES = 16 << 10
_BLOCK_BYTES = 1 << 20
_HALF_LINE_BYTES = 512
ENCODED_TWICE = "the text was encoded as UTF-8 twice: it was decoded once more"
_A_GUESS = "not UTF-8: read as {}, a guess"
_WRONG_BYTES = "not all valid {}: wrong bytes became the replacement character"
_MULTI_BYTE_CHARACTER = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
_CONTROL = re.compile(rb"\xc2[\x80-\x9f]")
_NO_MARK = re.compile(
    rb"\xc2[\x81\x83\x86-\x90\x98\x9a-\x9f]|\xc3[\x80-\xbf]\xc2[\x80-\x9f]|[A-Za-z]\xc2[\x91\x93]"
)
# A line with letters of Windows-1252 and ASCII alone, which are not UTF-8.
_LINE_NOT_UTF8 = re.compile(
    r"^[\x00-\x09\x0b-\x7f]*[\udc80-\udcff][\x00-\x09\x0b-\x7f\udc80-\udcff]*$", re.MULTILINE
)
_MIN_PARTS, _MIN_LINES, _MOST_LINES = 2, 2, 256
MIXED = "lines that are not UTF-8 were read as cp1252, a guess"
_JAPANESE_SHIFT = re.compile(rb"\x1b\$[@B]")
_CUT_LINE, _NOT_PRINTED = (
    re.compile(r"[,;|\t].*[\r\n]"),
    re.compile(r"[\s\xad\u200b-\u200f\ufeff]+"),
)
_HIGH_BYTE, _HIGH_BYTES = re.compile(rb"[\x80-\xff]"), re.compile(rb"[\x80-\xff]+")
# What UTF-8 is taken for; marks of the last three are letters of no name.
_TAKEN_FOR = ("cp1252", "cp1251", "cp1250", "mac_roman", "cp437", "cp850")
# Of few languages; what UTF-8 has two bytes for.
_ODD_LETTERS = re.compile("[\u0180-\u019f\u01a2-\u01ae\u01b1-\u0217\u021c-\u036f\u0530-\u07ff]")
_LONG_RUN = 3
# ``Ã``, ``Â`` or ``â€`` before a mark of Windows-1252: no text has two such before small letters.
_MARK = (
    rb"(?:\xc2[\x80-\xbf]|\xc5[\x92\x93\xa0\xa1\xb8\xbd\xbe]|\xc6\x92|\xcb[\x86\x9c]"
    rb"|\xe2(?:\x80[\x93-\xba]|\x82\xac|\x84\xa2))"
)
_TWICE = re.compile(
    rb"\xc3[\x82\x83]%b|\xc3\xa2(?:\xc2[\x80-\x8f]|\xe2\x82\xac)%b" % (_MARK, _MARK)
)
# Letters with accents begin so, marks, and the mark of a byte order.
_SURELY_TWICE = (b"\xc3\x82", b"\xc3\x83", b"\xc3\xaf", b"\xc3\xa2\xe2", b"\xc3\xa2\xc2\x80")


def encoding_of_letters(evidence: bytes) -> str | None:
    """Return the encoding under which letters beyond ASCII are those of one alphabet.

    None where a tenth of these letters or more fit under no encoding, or the text may be one of
    several bytes a letter.

    >>> encoding_of_letters("Москва, Уфа".encode("cp1251"))
    'cp1251'
    >>> encoding_of_letters("Seinäjoki, Jyväskylä".encode("latin-1"))
    'cp1252'
    >>> encoding_of_letters("東京, 大阪".encode("cp932")) is None
    True
    """
    of_windows = _decoded(evidence, _MOST_LIKELY) or ""
    # No one writes the sign of any currency; in its place Latin-9 has that of the Euro.
    western = "iso8859_15" if _ANY_CURRENCY in of_windows else _MOST_LIKELY
    if _has_marks_alone(_decoded(evidence, western)) and not _MARK_OF_MAC.search(of_windows):
        return western
    best, best_text, best_fit = None, "", 0.0
    may_have_several_bytes = any(_decoded(evidence, name) is not None for name in _SEVERAL_BYTES)
    for name, alphabets in _ALPHABETS:
        text = _decoded(evidence, name)
        if text is None or text == best_text:
            continue
        if name == _MOST_LIKELY != western:
            name, text = western, evidence.decode(western)
        is_latin = alphabets in _LATIN
        fit = (_latin_fit if is_latin else _other_fit)(text, alphabets)
        min_fit = _MIN_SURE if may_have_several_bytes and not is_latin else _MIN_COVERED
        if name in _SELDOM:
            fit -= _MIN_BETTER / max(1, len(_HIGH_BYTE.findall("".join(_words(text)).encode(name))))
        if fit >= min_fit and fit > best_fit:
            best, best_text, best_fit = name, text, fit
    if best is None and _has_marks_alone(_decoded(evidence, "mac_roman")):
        return "mac_roman"
    return best


def _has_marks_alone(text: str | None) -> bool:
    """Return whether a text has quotation marks, signs of currencies and the like, but no letter.

    Beyond ASCII, that is; and each is where such marks are.
    """
    if text is None or _C1_CONTROL.search(text) or _MARK_AMID.search(text):
        return False
    return all(word.isascii() for word in _words(text))


def _words(text: str) -> set[str]:
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
    if is_west:  # without it õ is in hardly any language but Estonian: it is ő, read wrongly
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

    And how many there are in all, with the marks and controls where there is none.
    """
    words = {word for word in _words(text) if not word.isascii()}
    others = {word: [letter for letter in word if letter > "\x7f"] for word in words}
    n = sum(map(len, others.values()))
    n_odd = len(_C1_CONTROL.findall(text)) + len(_MARK_AMID.findall(text))
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


@dataclass(frozen=True)
class Encoding:
    """A Python codec name, its treatment of invalid bytes, and a note if it is a guess."""

    name: str
    note: str | None = None


def detect_encoding(data: bytes) -> Encoding | None:
    """Return in which encoding a text is, None where the bytes are no text.

    A byte order mark decides. Without one, text that is UTF-8 throughout is UTF-8; text that is
    mostly UTF-8 (more multi-byte characters than stray bytes) is UTF-8 with replacement characters.
    Other text is guessed from the lines that hold non-ASCII bytes (at most 16 KiB of them): by
    whether the letters are those of one alphabet, else by charset-normalizer. Several single-byte
    encodings often fit equally well, and then Windows-1252, by far the most frequent in files, is
    taken.
    """
    for mark, name in _MARKS:
        if data.startswith(mark):
            return Encoding(name, _wrong_bytes(data, name))
    if 0 in data:
        return _wide_without_mark(data)
    if _JAPANESE_SHIFT.search(data) and _is_valid(data, "iso2022_jp"):
        return Encoding("iso2022_jp", _A_GUESS.format("iso2022_jp"))
    if _is_valid(data, "utf-8"):
        return Encoding("utf-8")
    evidence = _evidence(data)
    n_characters = len(_MULTI_BYTE_CHARACTER.findall(evidence))
    n_stray = len(_HIGH_BYTE.findall(_MULTI_BYTE_CHARACTER.sub(b"", evidence)))
    if n_characters > n_stray:
        return Encoding("utf-8", _WRONG_BYTES.format("UTF-8"))
    name = _guess(evidence)
    return Encoding(name, _A_GUESS.format(name))


def detect_json_encoding(data: bytes) -> Encoding:
    """Return in which encoding a JSON text is.

    JSON begins with ASCII, so that the place of NUL bytes shows UTF-16 and UTF-32. All else should
    be UTF-8; where it is not, it is taken for what delimited text would be.

    >>> detect_json_encoding("[1]".encode("utf-16-le")).name
    'utf-16-le'
    >>> detect_json_encoding('{"name": "café"}'.encode("latin-1"))
    Encoding(name='cp1252', note='not UTF-8: read as cp1252, a guess')
    """
    name = json.detect_encoding(data)
    encoding = detect_encoding(data) if name.startswith("utf-8") else None
    return Encoding(name, _wrong_bytes(data, name)) if encoding is None else encoding


def with_marks(data: bytes) -> bytes:
    r"""Return a UTF-8 text with the marks of Windows-1252 in place of controls, or as it is.

    There are such controls where Windows-1252 was once taken for Latin-1: U+0092 for an apostrophe.
    A text with other controls, or with them where no mark can be (after ``â``, or an opening
    quotation mark after a letter), was damaged in another way, and stays as it is.

    >>> with_marks("Land\x92s End".encode()).decode()
    'Land’s End'
    >>> with_marks("Skarsg\x8crd".encode()).decode()
    'Skarsg\x8crd'
    """
    if data.isascii() or not _CONTROL.search(data) or _NO_MARK.search(data):
        return data
    return _CONTROL.sub(lambda match: match[0][1:].decode("cp1252").encode(), data)


def encoded_once(data: bytes) -> bytes:
    r"""Return a UTF-8 text that was taken for another encoding and encoded again, or as it is.

    All its letters beyond ASCII must be such; ``É™`` alone could be those of a name in capitals.

    >>> encoded_once("MÃ¡laga, ZÃ¼rich".encode()).decode()
    'Málaga, Zürich'
    >>> encoded_once("РњРѕСЃРєРІР°".encode()).decode()
    'Москва'
    >>> encoded_once("Ã, CAFÉ™".encode()).decode()
    'Ã, CAFÉ™'
    """
    if data.isascii():
        return data
    once = next(filter(None, (_encoded_once(data, name) for name in _TAKEN_FOR)), None)
    return data if once is None else encoded_once(once)


def parts_encoded_once(data: bytes) -> bytes:
    r"""Return a text of which parts were encoded twice with these as the others, or as it is.

    >>> parts_encoded_once("Málaga, ZÃ¼rich, MalmÃ¶ns, SÃ³".encode()).decode()
    'Málaga, Zürich, Malmöns, Só'
    """
    parts = {
        part[0] for part in _TWICE.finditer(data) if data[part.end() : part.end() + 1].islower()
    }
    if len(parts) < _MIN_PARTS:
        return data
    singles = _bytes_of_letters(_MOST_LIKELY)
    return _TWICE.sub(lambda part: b"".join(map(singles.__getitem__, part[0].decode())), data)


def with_other_lines(data: bytes) -> bytes | None:
    r"""Return a text in UTF-8 of which some lines are in Windows-1252 with these as the others.

    None where there is no line of each kind, or letters are not those of the west of Europe.

    >>> with_other_lines("Köln\n".encode() + "Orléans\nNîmes\n".encode("cp1252")).decode()
    'Köln\nOrléans\nNîmes\n'
    """
    text = data.decode("utf-8", "surrogateescape")
    lines, rest = _LINE_NOT_UTF8.findall(text), _LINE_NOT_UTF8.sub("", text)
    evidence = "\n".join(lines[:_MOST_LINES]).encode("utf-8", "surrogateescape")
    if len(lines) < _MIN_LINES or _latin_fit(rest, _ANY_LATIN) < _MIN_COVERED:
        return None
    if encoding_of_letters(evidence) != _MOST_LIKELY:
        return None
    text = _LINE_NOT_UTF8.sub(
        lambda line: line[0].encode("utf-8", "surrogateescape").decode(_MOST_LIKELY), text
    )
    return text.encode("utf-8", "surrogateescape")


def _encoded_once(data: bytes, name: str) -> bytes | None:
    bytes_of_letters = _bytes_of_letters(name)
    decoded_once: dict[bytes, bytes] = {}

    def once(match: re.Match[bytes]) -> bytes:
        if match[0] not in decoded_once:
            raw = b"".join(bytes_of_letters.get(letter, b"\xff") for letter in match[0].decode())
            decoded_once[match[0]] = raw.decode().encode()
        return decoded_once[match[0]]

    try:
        text = _HIGH_BYTES.sub(once, data)
    except UnicodeDecodeError:
        return None
    runs = [run.decode() for run in decoded_once.values()]
    is_sure = len(runs) > 1 or len(runs[0]) > 1
    # Two capitals, such as those of the Ukrainian for Dili, may be the bytes of one letter.
    if name != _TAKEN_FOR[0] and len(max(runs, key=len)) < _LONG_RUN:
        odd = {letter for run in runs for letter in _ODD_LETTERS.findall(run)}
        is_sure = is_sure and odd <= bytes_of_letters.keys()
    is_sure = is_sure or next(iter(decoded_once)).startswith(_SURELY_TWICE)
    return text if is_sure else None


@cache
def _bytes_of_letters(name: str) -> dict[str, bytes]:
    """Return the byte of each letter; where there is none, programs take that of Latin-1.

    Some programs take that everywhere.
    """
    singles = [bytes([number]) for number in range(0x80, 0x100)]
    own = {single.decode(name, "ignore"): single for single in singles}
    return {single.decode("latin-1"): single for single in singles} | own


def _wrong_bytes(data: bytes, name: str) -> str | None:
    if _is_valid(data, name):
        return None
    return _WRONG_BYTES.format(name.upper().removesuffix("-SIG"))


def _is_valid(data: bytes, name: str) -> bool:
    if name == "utf-8" and data.isascii():
        return True
    decoder = codecs.getincrementaldecoder(name)()
    view = memoryview(data)
    try:
        for start in range(0, len(view), _BLOCK_BYTES):
            decoder.decode(view[start : start + _BLOCK_BYTES])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _wide_without_mark(data: bytes) -> Encoding | None:
    """Detect UTF-16 without a byte order mark.

    Such text has lines, delimiters in them, and printed characters alone. Any other file with NUL
    bytes is not text.
    """
    for name in ("utf-16-le", "utf-16-be"):
        text = data[:_BLOCK_BYTES].decode(name, "ignore")  # the last character may be cut
        if _CUT_LINE.search(text) and _NOT_PRINTED.sub("", text).isprintable():
            return Encoding(name, f"no byte order mark: read as {name}, a guess")
    return None


def _is_thai(text: str) -> bool:
    """Return whether all letters beyond ASCII are Thai, each mark above or below a consonant.

    A vowel that is written before a consonant has one behind it.
    """
    if any(_decoded(text.encode("cp874"), name) is not None for name in _PAIRS):
        return False
    words = {word for word in _THAI_WORD.findall(text) if not word.isascii()}
    n_vowels = sum(len(_THAI_VOWEL.findall(word)) for word in words)
    return n_vowels >= _MIN_VOWELS and all(map(_THAI_SYLLABLES.fullmatch, words))


def _is_big5(evidence: bytes) -> bool:
    """Return whether nearly all letters beyond ASCII are frequent ones of Big5."""
    letters = (letter for letter in _decoded(evidence, _BIG5) or "" if letter > "\x7f")
    pairs = [letter.encode(_BIG5) for letter in letters]
    n_frequent = sum(0xA1 <= pair[0] <= _LAST_FREQUENT for pair in pairs)
    n_ascii = sum(pair[1] < 0x80 for pair in pairs)
    return n_frequent >= max(1, _MIN_COVERED * len(pairs)) and (
        _MIN_ASCII * len(pairs) <= n_ascii <= _MAX_ASCII * len(pairs)
    )


def _is_korean(text: str) -> bool:
    """Return whether nearly all letters beyond ASCII are syllables of the first Korean standard.

    Python writes others as several characters of it.
    """
    letters = [letter for letter in text if letter > "\x7f"]
    n_usual = sum(
        "\uac00" <= letter <= "\ud7a3" and len(letter.encode("euc_kr")) == _BYTES_OF_A_PAIR
        for letter in letters
    )
    return n_usual >= _MIN_COVERED * len(letters)


def _evidence(data: bytes) -> bytes:
    lines: list[bytes] = []
    n_bytes = end = 0
    while n_bytes < _EVIDENCE_BYTES and (match := _HIGH_BYTE.search(data, end)):
        position = match.start()
        line_start = data.rfind(b"\n", max(end, position - _HALF_LINE_BYTES), position) + 1
        start = line_start or max(end, position - _HALF_LINE_BYTES)
        line_end = data.find(b"\n", position, position + _HALF_LINE_BYTES)
        end = line_end if line_end >= 0 else position + _HALF_LINE_BYTES
        lines.append(data[start:end])
        n_bytes += len(lines[-1])
    return b"\n".join(lines)


def _guess(evidence: bytes) -> str:
    if _is_big5(evidence):
        return _BIG5
    if _is_thai(_decoded(evidence, "cp874") or ""):
        return "cp874"
    if (encoding := encoding_of_letters(evidence)) is not None:
        return encoding
    from charset_normalizer import from_bytes  # few files need it

    is_korean = _is_korean(_decoded(evidence, "cp949") or "")
    candidates = [name for name in _CANDIDATES if is_korean or name != "cp949"]
    matches = from_bytes(evidence, cp_isolation=candidates, enable_fallback=False)
    best = matches.best()
    if best is None:
        return _MOST_LIKELY
    likely = any(
        m.encoding == _MOST_LIKELY or _MOST_LIKELY in m.could_be_from_charset
        for m in matches
        if m.chaos <= best.chaos and m.coherence >= best.coherence
    )
    return _MOST_LIKELY if likely else best.encoding
