"""Tests of the page as text: its content, user texts that stay texts, bounds, and pieces."""

import io

import pytest
from hand_made import HOSTILE, Reader, explanation, result
from hypothesis import given, settings
from hypothesis import strategies as st

from pexeso.index import build_index
from pexeso.results.pages.page import OF_RESULTS, results_page, section_of_explanation
from pexeso.runtime.formatting import plain


def test_a_page_says_what_was_found_and_why():
    text = Reader(result("Oslo").to_html()).text
    assert "Columns that join with Oslo" in text
    assert "3 columns found, best first" in text
    assert "Oslo/0.csv : Oslo 85.7 % 30 of 35 values" in text
    assert (
        "exact 22.9 % (8 values) alias 22.9 % (8 values) spelling 20.0 % (7 values) similar 20.0 % "
        "(7 values) no match 14.3 % (5 values)" in text
    )
    assert "Word contributions Oslo 50.0 % Oslo (lake) 25.0 % and 7 more words" in text
    assert "Taken from 2 of the 3 values that match, evenly spread." in text
    assert "30 pairs of values within distance 0.06" in text
    assert "Oslo 5 alias 0.005 5 Oslo (as Oslo )" in text
    assert "Oslo 6 spelling 0.006 6 Oslo" in text
    assert "22 more pairs" in text
    weakest = text.split("Weakest matches")[1]
    assert weakest.index("0.029") < weakest.index("0.028") < weakest.index("values without a match")
    assert "5 values without a match" in text
    assert (
        "Oslo \N{EN DASH} the model knows nothing about it Oslo \N{EN DASH} nothing is left of "
        "it without punctuation Oslo 0.500 Oslo" in text
    )
    assert "The first 20 of 30 rows that match. 3 more columns of your table not shown." in text
    assert "A note about Oslo" in text


def test_a_page_says_how_similar_a_column_is():
    text = Reader(result("Oslo", n_similar=2).to_html()).text
    assert (
        "3 columns found, most similar first table and column similarity joinability matched why"
        in text
    )
    assert "Oslo/1.csv : Oslo 0.88 85.7 % 30/35" in text
    assert "Oslo/2.csv : Oslo 85.7 % 30/35" in text, "it was not looked at"
    assert "Oslo/1.csv : Oslo 85.7 % 30 of 35 values similarity 0.88" in text
    assert "similarity" not in Reader(result("Oslo").to_html()).text


def test_an_explanation_has_its_own_page():
    text = Reader(explanation("Oslo").to_html()).text
    assert "Why Oslo joins with Oslo/0.csv : Oslo" in text
    assert "columns found" not in text
    nothing = Reader(explanation("Oslo", n_pairs=0, n_unmatched=4).to_html()).text
    assert "Why Oslo does not join with" in nothing
    assert "0.0 % 0 of 4 values" in nothing
    assert "side by side" not in nothing


def test_a_search_that_found_nothing_has_a_page_too():
    text = Reader(result(n_found=0).to_html()).text
    assert "No column of the lake was found." in text
    assert "best first" not in text


def test_options_and_lower_bounds_are_told():
    answer = result(counts="decide", min_joinability=0.3, max_distance=0.1, ignore_missing=True)
    text = Reader(answer.to_html()).text
    assert (
        "distance at most 0.1 at least 30.0 % of the values values that cannot match do not count"
        in text
    )
    assert "≥ 85.7 % at least 30 of 35 values" in text


def test_a_page_of_several_queries_shares_what_it_shows_and_has_no_anchor_twice():
    page = "".join(results_page([result("Oslo", n_found=20), result("Rome", n_found=20)]))
    reader = Reader(page)
    assert reader.tags.count("article") == OF_RESULTS.columns_found
    assert "Columns that join with 2 of your columns" in reader.text
    assert reader.text.count("The first 12 are shown in full below.") == 2
    anchors = [value for name, value in reader.attributes if name == "id"]
    assert len(anchors) == len(set(anchors))
    links = [value.removeprefix("#") for name, value in reader.attributes if name == "href"]
    assert links
    assert set(links) <= set(anchors)


def test_what_is_left_out_is_counted_and_no_pairs_are_looked_for_in_vain():
    answer = result(n_found=1000, n_pairs=500, n_unmatched=80)
    text = Reader(answer.to_html()).text
    assert "1,000 columns found" in text
    assert "800 more columns found, not listed here. The first 24 are shown in full below." in text
    assert "92 more pairs of 492" in text
    assert "400 further pairs not shown" in text
    assert "The first 25 of 80 values" in text
    assert answer[0]._details.wanted == list(range(24))


def test_the_largest_page_is_no_larger_than_promised():
    answer = result("<&'\"\U0001f600" * 200, n_found=1000, n_pairs=500, n_unmatched=80)
    sizes = [len(piece.encode()) for piece in results_page([answer])]
    assert sum(sizes) < 20_000_000
    assert max(sizes) < 500_000, "in pieces"


def test_it_is_written_to_a_stream_as_it_is_given_as_text():
    answer, stream = result(), io.StringIO()
    assert answer.to_html(stream) is None
    assert stream.getvalue() == answer.to_html()


@pytest.mark.parametrize("make", [result, explanation])
def test_texts_of_users_stay_texts(make):
    tame, hostile = Reader(make("Oslo").to_html()), Reader(make(HOSTILE).to_html())
    assert hostile.tags == tame.tags
    assert [name for name, _ in hostile.attributes] == [name for name, _ in tame.attributes]
    assert not {"script", "img", "iframe", "link"} & set(tame.tags)
    assert HOSTILE in hostile.text


TAME = Reader(explanation("Oslo", n_pairs=1, n_unmatched=2).to_html()).tags


@given(st.text(min_size=1, max_size=30))
@settings(max_examples=15)
def test_no_text_changes_the_structure_or_is_lost(text):
    reader = Reader(explanation(text, n_pairs=1, n_unmatched=2).to_html())
    assert reader.tags == TAME
    assert " ".join(plain(f"0 {text}").split()) in reader.text


def test_nothing_is_loaded_from_elsewhere_and_no_program_runs():
    page = result().to_html()
    assert "default-src 'none'; style-src 'unsafe-inline'" in page
    for word in ("http:", "https:", "url(", "@import", "src=", "javascript:", "<script"):
        assert word not in page


def test_notebooks_get_a_small_table():
    reader = Reader(result(HOSTILE, n_found=30)._repr_html_())
    assert reader.tags.count("tr") == 21
    assert "30 columns found, the first 20" in reader.text
    assert "script" not in reader.tags
    assert (
        "total similarity Oslo/0.csv Oslo 85.7 % 30 35 0.88"
        in Reader(result(n_similar=1)._repr_html_()).text
    )


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    lake = tmp_path_factory.mktemp("cities")
    names = ["Oslo", "Roma", "Madrid", "Vienna", "Berlin", "Paris"]
    (lake / "a.csv").write_text("\n".join(["city", *names]))
    return build_index(lake, lake / "lake.pexeso")


def test_an_explanation_draws_how_far_the_nearest_values_are(index):
    explanation = index.explain(["Oslo", "Madrids", "Xylophone", "Vienna"], "a.csv", "city")
    card = next(iter(section_of_explanation(explanation)["cards"]))
    histogram = card["histogram"]()
    pairs, distances = explanation.match.pairs(), {}
    for pair in pairs:
        distances[pair.query] = min(pair.distance, distances.get(pair.query, 1.0))
    others = [one.distance for one in explanation.unmatched if one.reason == "too far"]
    assert others, "the test needs a value without a match"
    expected = {}
    for distance in distances.values():
        place = (True, int(distance * 20))
        expected[place] = expected.get(place, 0) + 1
    for distance in others:
        place = (False, min(19, int(distance * 20)))
        expected[place] = expected.get(place, 0) + 1
    tallest = max(
        expected.get((True, place), 0) + expected.get((False, place), 0) for place in range(20)
    )
    drawn = {(bar["is_match"], round(bar["x"] * 20)): bar["height"] * tallest for bar in histogram}
    assert drawn == pytest.approx(expected)
    assert all(bar["y"] >= 0 and bar["y"] + bar["height"] <= 1 + 1e-9 for bar in histogram)
    assert explanation.to_html().count("<rect") >= len(drawn)


def test_an_explanation_counts_the_values_of_both_columns(index):
    mine = ["Oslo", "Madrids", "Madrid", "Xylophone", "Vienna"]
    explanation = index.explain(mine, "a.csv", "city")
    assert {pair.value for pair in explanation.match.pairs()} == {"Oslo", "Madrid", "Vienna"}
    assert (
        "1 of your values have no match; 4 match 3 of 6 values of the lake's column."
        in Reader(explanation.to_html()).text
    )
