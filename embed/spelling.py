"""How words of other scripts are spelled in Latin letters.

Rules bring a word near the spelling that names have in English texts, and what they leave is
spelled letter by letter by anyascii.

Chinese words are compared by their own characters, since many are of one sound: what they sound
like counts beside values in Latin letters alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache, partial
from importlib.resources import files
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from anyascii import anyascii

from pexeso.runtime.buffers import string_buffers
from pexeso.runtime.compiled import compiled

loops = compiled("embed.loops")

NOT_SPELLED = r"\p{Han}"
_BEYOND_LATIN = r"[\x{b5}\x{250}-\x{10ffff}]"  # soon prepared: a sign or more than plain Latin
_OTHER_LETTERS = r"[^\PL\p{Latin}]"
_HAN_ALONE = r"^\p{Han}+$"

# The scripts of India lie in blocks of one order, so the rules of one are those of all. A consonant
# without a vowel sign is followed by "a" (ə in rules), but at the end of a word, and between two
# syllables that both have a vowel: these are found from the end.
_BLOCKS_OF_INDIA = range(0x980, 0xD80)
_VOWEL = "[\u0905-\u0914\u093e-\u094cə]"
_INNER_A = re.compile(f"({_VOWEL}[क-ह])ə([क-ह])(?={_VOWEL})")

_HIRAGANA = range(0x3041, 0x3097)
_KATAKANA_FROM_HIRAGANA = 0x60


def spellings(words: pa.LargeStringArray) -> pa.LargeStringArray:
    """Spell words of small letters in Latin ones.

    What is not to be spelled (`NOT_SPELLED`) stays as it is.
    """
    is_ascii = pc.string_is_ascii(words)
    if pc.all(is_ascii).as_py():
        return words
    is_other = pc.and_not(pc.invert(is_ascii), pc.match_substring_regex(words, NOT_SPELLED))
    others = words.filter(is_other)
    if not len(others):
        return words
    for script, spell in _SPELLED.items():
        may = pc.match_substring_regex(others, _packaged()[script]["letters"])
        if pc.any(may).as_py():
            spelled = _by_line(others.filter(may), partial(spell, script=script))
            others = pc.replace_with_mask(others, may, spelled)
    return pc.replace_with_mask(words, is_other, _by_line(others, _letter_by_letter))


def sounds_of(values: pa.LargeStringArray) -> np.ndarray:
    """Return what normalised values sound like, int64 (n,), 0 where that is not known.

    "City" at the end, or a word for it in East Asia, is passed over. The lowest bit says whether a
    value has letters of another script than Latin. The next 32 are a hash of the sounds of its
    letters, and those above the number of its consonants, 7 at most, in 3 bits, and a hash of them,
    like ones taken for one another: values that sound the same have consonants that do.
    """
    is_other, texts = np.zeros(len(values), bool), values
    if pc.any(pc.match_substring_regex(values, _BEYOND_LATIN)).as_py():
        is_other = pc.match_substring_regex(values, _OTHER_LETTERS).to_numpy(zero_copy_only=False)
    if is_other.any():
        lists = pc.split_pattern(values.filter(pa.array(is_other)), " ")
        words = lists.flatten().dictionary_encode()
        spelled = spoken(words.dictionary.cast(pa.large_string())).take(words.indices)
        joined = pc.binary_join(
            pa.ListArray.from_arrays(lists.offsets, spelled.cast(pa.string())), " "
        )
        texts = pc.replace_with_mask(values, pa.array(is_other), joined.cast(pa.large_string()))
    text, starts = string_buffers(texts)
    hashes = np.zeros(len(values), np.int64)
    if len(text):
        loops.hash_sounds(text, starts, is_other, hashes)
    return hashes


def spoken(words: pa.LargeStringArray) -> pa.LargeStringArray:
    """Spell words as they are read beside Latin ones: also those of Chinese characters alone."""
    spelled = spellings(words)
    is_han = pc.match_substring_regex(words, _HAN_ALONE)
    if pc.any(is_han).as_py():
        chinese = _by_line(words.filter(is_han), _letter_by_letter)
        spelled = pc.replace_with_mask(spelled, is_han, chinese)
    return spelled


def _by_line(words: pa.LargeStringArray, spell: Callable[[str], str]) -> pa.LargeStringArray:
    return pa.array(spell("\n".join(words.to_pylist())).split("\n"), pa.large_string())


@cache
def _packaged() -> dict[str, dict[str, Any]]:
    """Return ``spellings.json``: of each script the letters by which it is known, rules, a table.

    Rules are patterns, for lines that are words, with what takes their place, and come before the
    table, of letters and the spelling of each. Chinese names in Russian (``palladius``, where н is
    ng and нь is n) come before other Cyrillic words. Georgian names lose the ending of the
    nominative, Thai vowels written before their consonant are spoken behind it, and Katakana, which
    is for words of other languages, loses vowels between consonants and at the end.
    """
    return json.loads(files("embed").joinpath("spellings.json").read_text("utf-8"))


@cache
def _rules(script: str) -> list[tuple[re.Pattern[str], str]]:
    rules = _packaged()[script].get("rules", [])
    return [(re.compile(pattern, re.MULTILINE), text) for pattern, text in rules]


@cache
def _table(script: str) -> dict[int, str]:
    table = _packaged()[script].get("table", {})
    return {ord(letter): text for letters, text in table.items() for letter in letters}


def _by_rules(text: str, script: str) -> str:
    """Spell words, each of which is a line."""
    for pattern, spelling in _rules(script):
        text = pattern.sub(spelling, text)
    return text.translate(_table(script))


def _indic(text: str, script: str) -> str:
    places = {block: 0x900 + block % 0x80 for block in _BLOCKS_OF_INDIA}
    text = _by_rules(text.translate(places), script)
    return _by_rules(_INNER_A.sub(r"\1\2", text[::-1])[::-1], "indic_letters")


def _hangul(text: str, script: str) -> str:
    text = _by_rules(text, script)
    letters = {ord(letter): _syllable(letter) for letter in set(text) if "가" <= letter <= "힣"}
    return text.translate(letters).replace("lr", "l")


def _syllable(letter: str) -> str:
    sounds = _packaged()["syllables"]
    first, rest = divmod(ord(letter) - ord("가"), 588)
    vowel, last = divmod(rest, 28)
    return sounds["first"][first] + sounds["vowel"][vowel] + sounds["last"][last]


def _kana(text: str, script: str) -> str:
    katakana = {point: point + _KATAKANA_FROM_HIRAGANA for point in _HIRAGANA}
    return _by_rules(text.translate(katakana).translate(_table("kana")), script)


def _letter_by_letter(text: str) -> str:
    # One call a character, of which there are few thousands in the largest lake.
    return text.translate({ord(letter): _latin(letter) for letter in set(text)})


def _latin(letter: str) -> str:
    if letter == "\n":
        return letter
    return "".join(part for part in anyascii(letter).lower() if part.isalnum())


_SPELLED: dict[str, Callable[[str, str], str]] = {
    **dict.fromkeys(("palladius", "cyrillic", "greek", "georgian", "armenian", "thai"), _by_rules),
    **dict.fromkeys(("arabic", "hebrew"), _by_rules),
    "indic": _indic,
    "hangul": _hangul,
    **dict.fromkeys(("katakana", "hiragana"), _kana),
}
