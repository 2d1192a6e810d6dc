"""Words of other scripts are spelled in Latin letters, and values know what they sound like."""

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

from embed.spelling import sounds_of, spellings

SPELLED = {
    "москва": "moskva",
    "гуанчжоу": "guangzhou",
    "чэньчжоу": "chenzhou",
    "αθήνα": "athina",
    "μπερνη": "berni",
    "ბათუმი": "batum",
    "երևան": "erevan",
    "जबलपुर": "jabalpur",
    "দিল্লি": "dilli",
    "เลเวอร์คูเซิน": "lewerkusen",
    "แบร์เกน": "berken",
    "발렌시아": "balensia",
    "부산광역시": "busan",
    "ストックホルム": "stokhorm",
    "マグデブルク": "magdebruk",
    "とくしま": "tokushima",
    "ヴィーン": "vin",
    "サンティアゴ": "santiago",
    "القاهرة": "alqahra",
    "وارسو": "warsu",
    "طنطا": "ttntta",
    "ירושלים": "irushlim",
    "בודפשט": "budpshtt",
}
NOT_SPELLED = ["oslo", "東京", "", "2020"]


def strings(texts: list[str]) -> pa.LargeStringArray:
    return pa.array(texts, pa.large_string())


def test_words_are_spelled_near_the_way_names_have_in_english():
    result = spellings(strings([*SPELLED, *NOT_SPELLED])).to_pylist()
    assert result == [*SPELLED.values(), *NOT_SPELLED]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Zs", "Cc", "Zl", "Zp"]))))
@settings(max_examples=examples(200), deadline=None)
def test_each_word_is_spelled_by_itself_whatever_others_there_are(words):
    words = ["".join(word.split()) for word in words]
    alone = [spellings(strings([word]))[0].as_py() for word in words]
    assert spellings(strings(words)).to_pylist() == alone


NEAR = [  # of one sound, in two scripts
    ("moscow", "москва", False),
    ("moskva", "москва", True),
    ("santa clara", "산타클라라", True),
    ("kolkata", "콜카타", True),
    ("magdeburg", "マグデブルク", False),
    ("tbilisi", "тбилиси", True),
    ("guangzhou", "гуанчжоу", True),
    ("tanta", "طنطا", False),
    ("aktau", "اقتاو", True),
    ("lima", "לימא", True),
    ("berlin", "ברלין", False),
    ("tianjin", "天津", True),
    ("wanzhou", "万州", True),
    ("kyoto", "京都", None),
    ("sao paulo", "сан паулу", None),
    ("bern", "минск", None),
]


@pytest.mark.parametrize(("latin", "other", "is_same"), NEAR)
def test_values_of_other_scripts_sound_like_latin_ones(latin, other, is_same):
    mine, its = sounds_of(strings([latin, other])).tolist()
    assert (mine & 1, its & 1) == (0, 1)
    assert (mine >> 33 == its >> 33) == (is_same is not None)
    assert (mine ^ its == 1) == bool(is_same)


def test_values_without_letters_that_are_spelled_sound_like_nothing():
    assert sounds_of(strings(["5", "東京タワー", "", "1 2"])).tolist() == [0] * 4


# What `hash_sounds` does, in patterns that are tried in their order at each place.
SOUNDS = [
    ("tsch|tch", "C"), ("sch|sh", "S"), ("dzh|d[jz]|zh", "J"), ("[kg]h", "h"), ("ch", "C"),
    ("ph", "f"), ("th", "t"), ("dh", "d"), ("bh", "b"), ("ck", "k"), ("t[sz]", "s"),
    ("c(?=[eiy])|z", "s"), ("qu(?=[ei])", "k"), ("gu(?=[ei])", "g"), ("ng(?![aeiouyh])", "n"),
    ("^x|x(?=[iu])|ks(?=[iu])", "s"), ("x", "ks"), ("[cq]", "k"), ("[wv]|u(?=[aeio])", "b"),
    ("j", "J"), ("ou(?=[aeio])", "b"), ("o[ou]", "u"), ("ee", "i"), ("y", "i"), ("l", "r"),
    ("(?<=[aeiou])h(?![aeiou])", ""), (".", None),
]  # fmt: skip
CONSONANTS = {"bpf": "b", "td": "d", "kgh": "k", "sCSJ": "s", "aeiou": "a"}


def sounds(text: str) -> str:
    place, result = 0, ""
    while place < len(text):
        tried = ((re.compile(pattern).match(text, place), sound) for pattern, sound in SOUNDS)
        match, sound = next((match, sound) for match, sound in tried if match)
        result += match[0] if sound is None else sound
        place = match.end()
    return re.sub(r"(.)\1+", r"\1", result)


def consonants(heard: str) -> str:
    for some, letter in CONSONANTS.items():
        heard = re.sub(f"[{some}]", letter, heard)
    return re.sub(r"(.)\1+", r"\1", heard[:1] + heard[1:].replace("a", ""))


@given(st.lists(st.text("abcdeghijklnopqstuvwxyz5", min_size=1, max_size=8), min_size=2))
@settings(max_examples=examples(400), deadline=None)
def test_sounds_are_those_of_plain_patterns(texts):
    texts = [text for text in texts if not text.isdigit()]
    result = sounds_of(strings(texts))
    heard = [sounds(text) for text in texts]
    for number, reference in ((result >> 1, heard), (result >> 33, list(map(consonants, heard)))):
        same = number[:, np.newaxis] == number
        expected = np.array([[one == other for other in reference] for one in reference], bool)
        np.testing.assert_array_equal(same, expected.reshape(same.shape))
    lengths = [min(7, len(re.sub("a", "", consonants(one)))) for one in heard]
    np.testing.assert_array_equal((result >> 33) & 7, lengths)
