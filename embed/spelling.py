r"""How words of other scripts are spelled in Latin letters.

Rules bring a word near the spelling that names have in English texts: ``rules`` of a script are
patterns with what takes their place, applied in their order, and what they leave is spelled letter
by letter by anyascii. Letters that a rule has spelled already are small Latin ones.

Chinese words are not spelled, since many are of one sound, nor are Arabic and Hebrew ones, which
leave vowels out: their spelling would put different names together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from anyascii import anyascii

from embed.words import string_buffers
from pexeso.runtime.compiled import compiled

loops = compiled("embed.loops")

NOT_SPELLED = r"[\p{Han}\p{Arabic}\p{Hebrew}]"
_OTHER_LETTERS = r"[^\PL\p{Latin}\p{Han}\p{Arabic}\p{Hebrew}]"
_CITY = " (?:si|shi|city)$"  # behind the names of cities in East Asia, and in English

_Rules = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class _Script:
    """A script: what its letters match, what is put in the place of single letters, and rules."""

    letters: str
    rules: _Rules
    table: str = ""  # "letters:spelling", with spaces between

    @cached_property
    def patterns(self) -> list[tuple[re.Pattern[str], str]]:
        return [(re.compile(pattern, re.MULTILINE), text) for pattern, text in self.rules]

    @cached_property
    def letters_of(self) -> dict[int, str]:
        pieces = [piece.partition(":") for piece in self.table.split()]
        return {ord(letter): text for letters, _, text in pieces for letter in letters}

    def spell(self, text: str) -> str:
        """Spell words, each of which is a line."""
        for pattern, spelling in self.patterns:
            text = pattern.sub(spelling, text)
        return text.translate(self.letters_of)


# Russian spelling of Chinese names, where н is ng and нь is n.
_PALLADIUS = _Script(
    "чж|цз|нь$",
    (
        ("цзы", "zi"),
        ("цз(?=[июяе])", "j"),
        ("цз", "z"),
        ("чж", "zh"),
        ("ц(?=[июя])", "q"),
        ("ц", "c"),
        (r"н(?![ьаеиоуыэюя])", "ng"),
        ("ньн", "nn"),
        ("нь", "n"),
        ("сы", "si"),
        ("с(?=[июя])", "x"),
        ("([jqx])ю(?=[йэ])", r"\1u"),
        ("([jqx])юа", r"\1ua"),
        ("([jqx])ю", r"\1iu"),
        ("([jqx])и?я", r"\1ia"),
        ("уэй|уй", "ui"),
        ("эй", "ei"),
        ("юй", "yu"),
        ("(?<=[a-zа-х])я(?=ng|n|о)", "ia"),
        ("х", "h"),
        ("жи", "ri"),
        ("ж", "r"),
    ),
)

_CYRILLIC = _Script(
    r"\p{Cyrillic}",
    (("ьо", "ё"), ("[ьъ](?=[яеёюєї])", ""), ("дж", "j"), ("[иы]й$", "y")),
    "ъ:a ь: й:i ђ:dj ј:y љ:ly њ:ny џ:j ћ:c х:h щ:sh ү:u ө:o ә:a қ:k ғ:g ң:ng ҷ:j ҳһ:h ӣи:i",
)

_GREEK = _Script(
    r"\p{Greek}",
    (
        ("^μπ", "b"),
        ("(?<=[^αεηιουωυ])μπ", "b"),
        ("μπ", "b"),
        ("^ντ", "d"),
        ("(?<=[^αεηιουωυ])ντ", "d"),
        ("ντ", "nd"),
        ("νγκ|γγ", "ng"),
        ("γκ", "g"),
        ("γι(?=[αεου])", "y"),
        ("τζ", "j"),
        ("τσ", "ts"),
        ("ου(?=[αεοιη])", "w"),
        ("ου", "u"),
        ("([αε])υ(?=[βγδζλμνραειου])", r"\1v"),
        ("([αε])υ", r"\1f"),
    ),
    "χ:h ξ:x φ:f ω:o η:i β:v υ:i",
)

# Names end with the ი of the nominative.
_GEORGIAN = _Script(
    r"\p{Georgian}",
    (("(?<=[^აეიოუ\n])ი$", ""), ("უ(?=[აეიო])", "w")),
    "ფ:f ქკ:k ყ:q თტ:t პ:p ცწ:ts ჩჭ:ch",
)

_ARMENIAN = _Script(
    r"\p{Armenian}",
    (("ցզ", "j"), ("չժ", "zh"), ("ու(?=[աեէիո])", "w"), ("ու", "u")),
    "ւ:v և:ev ռ:r ե:e ծց:ts չճ:ch ք:k փ:p թ:t ղ:gh ջ:j ձ:dz յ:i",
)

# The scripts of India lie in blocks of one order, so the rules of one are those of all. A consonant
# without a vowel sign is followed by "a" (here ə), but at the end of a word, and between two
# syllables where both have a vowel: these are found from the end.
_BLOCKS_OF_INDIA = range(0x980, 0xD80)
_VOWEL, _CONSONANT, _VIRAMA = "[\u0905-\u0914\u093e-\u094cə]", "[\u0915-\u0939]", "\u094d"
_INDIC = _Script(
    r"[\x{900}-\x{D7F}]",
    (
        (f"({_CONSONANT})(?![\u093e-\u094d])", r"\1ə"),
        ("(?<=[^\n].)ə$", ""),
    ),
)
_INNER_A = re.compile(f"({_VOWEL}{_CONSONANT})ə({_CONSONANT})(?={_VOWEL})")
_INDIC_LETTERS = _Script(
    "",
    (("[\u0901\u0902](?=[\u092a-\u092e])", "m"),),
    "\u0901\u0902:n \u0903: \u094d: ə:a क:k ख:kh ग:g घ:gh ङञणनऩ:n चछ:ch ज:j झ:jh टत:t ठथ:th डद:d "
    "ढध:dh प:p फ:ph ब:b भ:bh म:m यय़:y रऱ:r लळऴ:l व:v शष:sh स:s ह:h अआा:a इईिी:i उऊुू:u ऋृॄ:ri "
    "ऍऎएॅॆे:e ऐै:ai ऑऒओॉॊो:o औौ:au",
)

# Vowels that are written before their consonant are spoken behind it.
_C, _CLUSTER = "[ก-ฮ]", "[ก-ฮ][รลว]?"
_ONSET = "[กขคตทบปผพฟดส][รล](?=[ก-ฮะ])|[ก-ฮ]"
_THAI = _Script(
    r"\p{Thai}",
    (
        ("[\u0e47-\u0e4e]", ""),
        ("ห(?=[นลยวมงร])", ""),
        ("ง(?=[\u0e30-\u0e39])", "g"),
        (f"เ({_CLUSTER})\u0e35ยว", r"\1iao"),
        (f"เ({_CLUSTER})\u0e35ยะ?", r"\1ia"),
        (f"เ({_CLUSTER})\u0e37อะ?", r"\1ua"),
        (f"เ({_CLUSTER})าะ", r"\1o"),
        (f"เ({_CLUSTER})า", r"\1ao"),
        (f"เ({_CLUSTER})\u0e34", r"\1e"),
        (f"โ({_C})ว", r"\1ou"),
        (f"เ({_CLUSTER})อะ?(?![\u0e30-\u0e39])", r"\1e"),
        (f"[เแ]({_ONSET})ะ?", r"\1e"),
        (f"โ({_ONSET})ะ?", r"\1o"),
        (f"[ใไ]({_ONSET})ย?", r"\1ai"),
        ("\u0e34ว", "iu"),
        ("าว(?![\u0e30-\u0e39a-z])", "ao"),
        ("อ(?=[\u0e30-\u0e39a-z])", ""),
        (f"^อ(?={_C})", "a"),
        ("รร", "an"),
        (f"\u0e31ว(?={_C}|$)", "ua"),
    ),
    "กขฃคฅฆ:k ง:ng จ:j ฉชฌ:ch ซศษส:s ญย:y ฎด:d ฏตฐฑฒถทธ:t ณน:n บ:b ปผพภ:p ฝฟ:f ม:m ร:r ลฬ:l ว:w หฮ:h "
    "อ:o ะาั:a ำ:am ิี:i ึืุู:u เแ:e โ:o ใไ:ai ฤ:ri",
)

_FIRST_SOUNDS = "g k n d t r m b p s s  j j ch k t p h".split(" ")
_VOWELS = "a e ya ye eo e yeo ye o wa we oe yo u wo we wi yu  ui i".split(" ")
_LAST_SOUNDS = " k k k n n n t l k m l l l p l m p p t t ng t t k t p t".split(" ")
_HANGUL = _Script(
    r"\p{Hangul}",
    (("(?<=..)(?:광역|특별|특급)?시$", ""),),  # behind the name of a city
)

_KANA_ROWS = {
    "カキクケコ": "k", "ガギグゲゴ": "g", "サシスセソ": "s", "ザジズゼゾ": "z", "タチツテト": "t",
    "ダヂヅデド": "d", "ナニヌネノ": "n", "ハヒフヘホ": "h", "バビブベボ": "b", "パピプペポ": "p",
    "マミムメモ": "m", "ラリルレロ": "r", "アイウエオ": "", "ァィゥェォ": "~",
}  # fmt: skip
_KANA = {
    letter: first + vowel
    for row, first in _KANA_ROWS.items()
    for letter, vowel in zip(row, "aiueo", strict=True)
} | dict(
    zip(
        "シジチツヂヅフヤユヨワヲンヴャュョッー",
        "shi ji chi tsu ji zu fu ya yu yo wa o n vu ^a ^u ^o".split() + ["", ""],
        strict=True,
    )
)
_KANA_RULES: _Rules = (
    ("(?<=[sc]h)i\\^", ""),
    ("(?<=j)i\\^", ""),
    ("(?<=[kg])i\\^(?=a)", ""),
    ("[eu]\\^", ""),
    ("i?\\^", "y"),
    ("(?<=[fv])u~|(?<=ts)u~", ""),
    ("(?<=[kg])u~|(?<![a-z])u~|(?<=[aiueo])u~", "w"),
    ("[aiueo]?~", ""),
    ("ou", "o"),
    ("uu", "u"),
)
_HIRAGANA = _Script(r"\p{Hiragana}", (*_KANA_RULES, ("n(?=[bp])", "m")))

# Words of other languages, in which vowels stand between consonants and at the end that no one says.
_THEIRS = "(?=[b-df-hj-np-tvz])"
_KATAKANA = _Script(
    r"\p{Katakana}",
    (
        *_KANA_RULES,
        ("^su(?=[tpkmnr])", "s"),
        ("^([kgpbf])u(?=r[aeio])|^([td])o(?=r[aeio])", r"\1\2"),
        (f"([aiueo](ts|[szkgfbpmrvl]))u(?!\\2){_THEIRS}", r"\1"),
        (f"([aiueo]([td]))o(?!\\2){_THEIRS}", r"\1"),
        ("(?<=[szkgfbpmrvl])u$|(?<=[td])o$", ""),
        ("n(?=[bp])", "m"),
    ),
)


def spellings(words: pa.LargeStringArray) -> pa.LargeStringArray:
    """Spell words of small letters in Latin ones.

    What is not to be spelled (`NOT_SPELLED`) stays as it is.

    Examples
    --------
    >>> words = pa.array(["oslo", "москва", "ストックホルム", "ไลป์ซิก", "東京"], pa.large_string())
    >>> spellings(words).to_pylist()
    ['oslo', 'moskva', 'stokhorm', 'laipsik', '東京']
    """
    is_other = pc.and_not(
        pc.invert(pc.string_is_ascii(words)), pc.match_substring_regex(words, NOT_SPELLED)
    )
    others = words.filter(is_other)
    if not len(others):
        return words
    for script, spell in _SPELLED:
        may = pc.match_substring_regex(others, script)
        if pc.any(may).as_py():
            others = pc.replace_with_mask(others, may, _by_line(others.filter(may), spell))
    return pc.replace_with_mask(words, is_other, _by_line(others, _letter_by_letter))


def sounds_of(values: pa.LargeStringArray) -> np.ndarray:
    """Return what normalised values sound like, int64 (n,), 0 where that is not known.

    The lowest bit says whether a value has letters of another script than Latin. The next 32 are a
    hash of the sounds of its letters, and those above the number of its consonants, 7 at most, in 3
    bits, and a hash of them, like ones taken for one another: values that sound the same have
    consonants that do.

    Examples
    --------
    >>> sounds = sounds_of(pa.array(["moscow", "москва", "tokyo", "токио", "5"], pa.large_string()))
    >>> [int(number) for number in (sounds[:4:2] ^ sounds[1:4:2])]
    [1, 1]
    >>> int(sounds[4])
    0
    """
    is_other = pc.match_substring_regex(values, _OTHER_LETTERS)
    texts = values
    if pc.any(is_other).as_py():
        lists = pc.split_pattern(values.filter(is_other), " ")
        words = lists.flatten().dictionary_encode()
        spelled = spellings(words.dictionary.cast(pa.large_string())).take(words.indices)
        joined = pc.binary_join(
            pa.ListArray.from_arrays(lists.offsets, spelled.cast(pa.string())), " "
        )
        texts = pc.replace_with_mask(values, is_other, joined.cast(pa.large_string()))
    texts = pc.replace_substring_regex(texts, _CITY, "")
    text, starts = string_buffers(texts)
    hashes = np.zeros(len(values), np.int64)
    if len(text):
        loops.hash_sounds(text, starts, is_other.to_numpy(zero_copy_only=False), hashes)
    return hashes


def _by_line(words: pa.LargeStringArray, spell: object) -> pa.LargeStringArray:
    return pa.array(spell("\n".join(words.to_pylist())).split("\n"), pa.large_string())


def _indic(text: str) -> str:
    places = {block: 0x900 + block % 0x80 for block in _BLOCKS_OF_INDIA}
    text = _INDIC.spell(text.translate(places))
    return _INDIC_LETTERS.spell(_INNER_A.sub(r"\1\2", text[::-1])[::-1])


def _hangul(text: str) -> str:
    text = _HANGUL.spell(text)
    return text.translate(
        {ord(letter): _syllable(letter) for letter in set(text) if "가" <= letter <= "힣"}
    ).replace("lr", "l")


def _syllable(letter: str) -> str:
    first, rest = divmod(ord(letter) - ord("가"), 588)
    vowel, last = divmod(rest, 28)
    return _FIRST_SOUNDS[first] + _VOWELS[vowel] + _LAST_SOUNDS[last]


def _kana(script: _Script, text: str) -> str:
    shifted = {point: point + 0x60 for point in range(0x3041, 0x3097)}
    return script.spell(text.translate(shifted).translate(str.maketrans(_KANA)))


def _letter_by_letter(text: str) -> str:
    # One call a character, of which there are few thousands in the largest lake.
    letters = {ord(letter): _latin(letter) for letter in set(text)}
    return text.translate(letters)


def _latin(letter: str) -> str:
    if letter == "\n":
        return letter
    return "".join(part for part in anyascii(letter).lower() if part.isalnum())


_SPELLED = (
    ("^.*(?:" + _PALLADIUS.letters + ")", _PALLADIUS.spell),
    *(
        (script.letters, script.spell)
        for script in (_CYRILLIC, _GREEK, _GEORGIAN, _ARMENIAN, _THAI)
    ),
    (_INDIC.letters, _indic),
    (_HANGUL.letters, _hangul),
    (_KATAKANA.letters, lambda text: _kana(_KATAKANA, text)),
    (_HIRAGANA.letters, lambda text: _kana(_HIRAGANA, text)),
)
