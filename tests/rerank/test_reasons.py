"""Tests of reasons in words: every feature has a phrase, and no column repeats a phrase.

A feature has a phrase whatever its value.
"""

import numpy as np
import pytest

from pexeso.rerank.attributions import Reason, in_words
from pexeso.rerank.features import FEATURES


@pytest.mark.parametrize("value", [0.0, 1e-6, 0.25, 0.5, 0.8, 1.0])
def test_every_feature_has_a_phrase_of_its_own(value):
    phrases = [phrase for name in FEATURES for phrase in in_words([Reason(name, 1.0, value)], 0.3)]
    assert len(set(phrases)) == len(FEATURES)
    for name, phrase in zip(FEATURES, phrases, strict=True):
        assert 10 < len(phrase) < 90, name
        assert phrase == phrase.strip()
        assert phrase[0].islower() or phrase[0].isdigit()


@pytest.mark.parametrize(
    ("feature", "value", "phrase"),
    [
        ("matched 0", 0.0, "none of your distinct values match exactly"),
        ("matched 1", 0.95, "95.0 % of your distinct values match within distance 0.06"),
        ("matched back 1.4", 1.0, "all of its distinct values match back within distance 0.084"),
        ("one to one 1", 0.0, "no values match within distance 0.06"),
        (
            "one to one 1",
            0.5,
            "50.0 % as many values match on one side as on the other within distance 0.06",
        ),
        ("one to one 0", 1.0, "just as many values match on one side as on the other exactly"),
        ("query values", np.log(1), "your column has 1 distinct value"),
        ("lake values", np.log(1234), "it has 1,234 distinct values"),
        ("rarity", 0.0, "no rare value matches exactly"),
        ("rarity", 0.9, "the values that match exactly are rare in the lake"),
        (
            "rarity matched 1",
            0.4,
            "weighted by rarity, 40.0 % of your values match within distance 0.06",
        ),
        ("rarity of query values", 0.5, "your values are neither rare nor common in the lake"),
        ("rarity of lake values", 0.1, "its values are common in the lake"),
        ("same name", 1.0, "the two columns have the same name"),
        ("words in names", 0.0, "the names of the two columns have no word in common"),
        (
            "words in names",
            0.5,
            "the names of the two columns have 50.0 % of their words in common",
        ),
    ],
)
def test_what_phrases_say(feature, value, phrase):
    assert in_words([Reason(feature, 1.0, value)], 0.06) == [phrase]


def test_the_same_count_at_several_distances_is_told_once():
    reasons = [
        Reason("matched 1", 3.0, 0.5),
        Reason("same name", 2.0, 1.0),
        Reason("matched 0", 1.0, 0.5),
    ]
    assert in_words(reasons, 0.35) == [
        "50.0 % of your distinct values match exactly and within 0.35",
        "the two columns have the same name",
    ]
    reasons[1] = Reason("matched 0.8", 2.0, 0.5)
    assert in_words(reasons, 0.35) == [
        "50.0 % of your distinct values match exactly and within 0.28 and 0.35"
    ]
    reasons[2] = Reason("matched 0", 1.0, 0.4)
    assert in_words(reasons, 0.35) == [
        "50.0 % of your distinct values match within distance 0.28 and 0.35",
        "40.0 % of your distinct values match exactly",
    ]
    assert in_words([], 0.35) == []
