"""What is reasons apart never matches at the default distance, and an explanation says so."""

import re

import pytest

import pexeso
from pexeso.faces.cli.search import explanation_lines

STORED = ["Terminal 2", "Southern Region", "North Korea", "Rocky III", "Wal-Mart", "Moskva"]
QUERIES = ["Terminal 1", "Northern Region", "South Korea", "Rocky II", "WalMart", "Москва", "Zzyzx"]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("apart")
    lake = folder / "lake"
    lake.mkdir()
    (lake / "t.csv").write_text(
        "name,code\n" + "".join(f"{name},k{row}x\n" for row, name in enumerate(STORED)),
        encoding="utf-8",
    )
    return pexeso.build_index(lake, folder / "lake.pexeso")


def test_an_explanation_names_what_tells_apart(index):
    explanation = index.explain(QUERIES, "t.csv", "name")
    pairs = {pair.query: pair.value for pair in explanation.match.pairs()}
    assert pairs == {"WalMart": "Wal-Mart", "Москва": "Moskva"}
    reasons = {
        unmatched.query: (unmatched.reason, unmatched.value) for unmatched in explanation.unmatched
    }
    assert reasons.pop("Zzyzx")[0] == "too far"
    assert reasons == {
        query: ("apart", value) for query, value in zip(QUERIES[:4], STORED[:4], strict=True)
    }
    because = {unmatched.query: unmatched.because for unmatched in explanation.unmatched}
    assert because == {
        "Terminal 1": "1 against 2",
        "Northern Region": "northern against southern",
        "South Korea": "south against north",
        "Rocky II": "2 against 3",
        "Zzyzx": None,
    }
    lines = "\n".join(explanation_lines(explanation))
    assert re.search("Terminal 1 +is not +Terminal 2 +1 against 2\n", lines)
    assert "northern against southern" in explanation.to_html()


def test_an_explanation_says_in_what_form_values_are_compared(index):
    explanation = index.explain(QUERIES, "t.csv", "name")
    assert explanation.match.forms() == {"Москва": "moskva (Latin spelling)"}
    assert explanation.to_dict()["compared_as"] == explanation.match.forms()
    assert re.search(
        "Москва +moskva \\(Latin spelling\\)", "\n".join(explanation_lines(explanation))
    )
    assert "moskva (Latin spelling)" in explanation.to_html()


def test_a_rule_that_is_off_tells_nothing_apart(index, tmp_path):
    normaliser = pexeso.Normaliser().switched(off=["different-numbers"])
    loose = pexeso.build_index(index.info().lake, tmp_path / "loose.pexeso", normaliser=normaliser)
    explanation = loose.explain(QUERIES, "t.csv", "name", max_distance=0.6)
    pairs = {(pair.query, pair.value) for pair in explanation.match.pairs()}
    assert ("Terminal 1", "Terminal 2") in pairs
    assert ("South Korea", "North Korea") not in pairs


def test_an_exhaustive_search_finds_the_same(index):
    for distance in (0.0, 0.1, 0.3, 0.45, 0.8):
        quick, exhaustive = (
            index.search(QUERIES, max_distance=distance, min_joinability=1, exact=exact)
            for exact in (False, True)
        )
        assert [match.matched for match in quick] == [match.matched for match in exhaustive]


def test_a_value_with_words_more_is_preferred_to_one_with_another_word(tmp_path):
    names = ["Columbus Memorial Hospital", "Columbia General Memorial Regional Hospital"]
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "t.csv").write_text("name\n" + "\n".join([*names, "Oslo", "Rome", "Bern"]))
    for off, first in ([], 1), (["unmatched-words"], 0):
        index = pexeso.build_index(
            tmp_path / "lake",
            tmp_path / "i.pexeso",
            normaliser=pexeso.Normaliser().switched(off=off),
            overwrite=True,
        )
        match = index.explain(["Columbia Memorial Hospital"], "t.csv", "name").match
        assert [pair.value for pair in match.pairs()] == [names[first], names[1 - first]]
