"""Doubtful pairs: those near the thresholds first, none twice, and none that was judged."""

import random
from itertools import zip_longest

import pytest

import pexeso
from pexeso.lake.judgements import Judgement, record_judgements
from pexeso.semantic.thresholds.judging import find_doubts, judged_labels
from pexeso.semantic.thresholds.tuning import calibration_of


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """Index 24 columns that share more values the nearer their numbers are."""
    folder = tmp_path_factory.mktemp("judging") / "lake"
    folder.mkdir()
    draw = random.Random(2)
    words = ["".join(draw.choices("bcdfglmnprstvaeiou", k=9)).title() for _ in range(80)]
    for number in range(24):
        chosen = words[2 * number : 2 * number + 16]
        spelt = [f"{word}e" if at == 3 else word for at, word in enumerate(chosen)]
        (folder / f"t{number:02}.csv").write_text("name\n" + "".join(f"{w}\n" for w in spelt))
    return pexeso.build_index(folder, folder.parent / "lake.pexeso")


@pytest.fixture
def index(lake):
    yield lake
    (lake.path / "judgements.csv").unlink(missing_ok=True)


def doubts_of(index, limit=200):
    return find_doubts(index._snapshot.semantic, limit)


def test_the_nearest_to_the_threshold_come_first(index):
    doubts = doubts_of(index)
    columns = [doubt for doubt in doubts if not doubt.judgement.of_values]
    values = [doubt for doubt in doubts if doubt.judgement.of_values]
    away = [abs(doubt.score - 0.5) for doubt in columns]
    assert away == sorted(away)
    assert len(columns) > 20
    distances = [doubt.score for doubt in values]
    assert distances == sorted(distances, reverse=True)
    assert len({doubt.judgement.pair for doubt in doubts}) == len(doubts)
    kinds = [doubt.judgement.of_values for doubt in doubts[:6]]
    assert kinds == [False, False, True, False, False, True]
    assert doubts_of(index, 7) == doubts[:7]


def test_a_doubt_shows_what_a_search_counts(index):
    doubt = doubts_of(index)[0]
    row = doubt.judgement
    explanation = index.explain(index_column(index, row.query), *row.lake)
    assert explanation.match.matched == doubt.matched
    assert explanation.match.joinability == doubt.score
    pairs = {(pair.query, pair.value) for pair in explanation.match.pairs()}
    assert 0 < len(doubt.pairs) <= 5
    assert set(doubt.pairs) <= pairs


def index_column(index, column):
    from pexeso.results.query import read_query

    return read_query(f"{index.lake / column[0]}:{column[1]}")


def test_what_is_judged_is_not_a_doubt_again(index):
    first, second, *_ = doubts_of(index)
    verdicts = zip_longest((first, second), ("yes", "unsure"))
    rows = [Judgement(*d.judgement.query, *d.judgement.lake, verdict=v) for d, v in verdicts]
    record_judgements(index.path, rows)
    left = {doubt.judgement.pair for doubt in doubts_of(index)}
    assert left.isdisjoint({first.judgement.pair, second.judgement.pair})


def test_from_twenty_pairs_on_there_is_a_probability_and_tune_has_labels(index):
    opened = index._opened
    with pytest.raises(pexeso.InputError, match="No pair of columns of the lake is judged"):
        index.tune()
    doubts = [doubt for doubt in doubts_of(index) if not doubt.judgement.of_values]
    doubts = doubts[:10] + doubts[-20:]
    rows = [
        Judgement(*d.judgement.query, *d.judgement.lake, verdict="yes" if d.score > 0.6 else "no")
        for d in doubts
    ]
    outside = Judgement("elsewhere.csv", "city", "t00.csv", "name", verdict="yes")
    record_judgements(index.path, [*rows[:19], outside])
    labels, n_unread = judged_labels(opened, opened.judgements)
    assert (len(labels), n_unread) == (19, 1)
    assert calibration_of(opened, labels) is None
    record_judgements(index.path, rows[19:])
    labels, _ = judged_labels(opened, opened.judgements)
    calibration = calibration_of(opened, labels)
    assert calibration.probability(0.3) < 0.5 < calibration.probability(0.95)
    advice = index.tune()
    assert advice.evidence["labels"] == 30
    assert advice.max_distance == index.usual_max_distance
    assert 0.5 < advice.min_joinability <= 0.65
