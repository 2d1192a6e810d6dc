"""Doubtful pairs: those near the thresholds first, none twice, and none that was judged."""

import random
from dataclasses import replace
from itertools import product, zip_longest

import pytest

import pexeso
from pexeso.lake.judgements import Judgement, record_judgements
from pexeso.results.query import read_query
from pexeso.semantic.thresholds.advice import Advice
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


def drawn_words(n: int) -> list[str]:
    draw = random.Random(2)
    return ["".join(draw.choices("bcdfglmnprstvaeiou", k=9)).title() for _ in range(n)]


def write_lake(folder, columns: dict[str, list[str]]):
    folder.mkdir()
    for name, values in columns.items():
        (folder / f"{name}.csv").write_text("name\n" + "".join(f"{value}\n" for value in values))
    return pexeso.build_index(folder, folder.parent / "lake.pexeso")


def chained(folder):
    """Write 24 tables that share more values the nearer their numbers are: those within 3 join."""
    words = drawn_words(80)
    columns = {f"t{n:02}": words[2 * n : 2 * n + 16] for n in range(24)}
    apart = {(one, other): abs(int(one[1:]) - int(other[1:])) for one, other in pairs_of(columns)}
    return write_lake(folder, columns), {pair for pair, n in apart.items() if n <= 3}


def paired(folder):
    """Write 16 pairs of tables that share 4 to 11 of 16 values; all share 2 with the next pair."""
    words, columns = drawn_words(700), {}
    for number in range(16):
        own, n_shared = words[40 * number : 40 * number + 40], 4 + number // 2
        columns[f"a{number:02}"] = own[:14] + words[40 * number + 50 : 40 * number + 52]
        columns[f"b{number:02}"] = own[14 - n_shared : 28 - n_shared] + own[10:12]
    joins = {pair for pair in pairs_of(columns) if pair[0][1:] == pair[1][1:]}
    return write_lake(folder, columns), joins


def pairs_of(names) -> list[tuple[str, str]]:
    return [(one, other) for one, other in product(names, names) if one != other]


def score(index, truth, advice) -> float:
    """Return the F1 of searches with all columns of the lake."""
    options = {"max_distance": advice.max_distance, "min_joinability": advice.min_joinability}
    pairs = set()
    for table in sorted({table for pair in truth for table in pair}):
        query = read_query(f"{index.lake / table}.csv:name")
        result = index.search(query, k="all", exclude_self=True, fold_copies=False, **options)
        pairs |= {(table, match.table.removesuffix(".csv")) for match in result}
    return 2 * len(pairs & truth) / (len(pairs) + len(truth))


@pytest.mark.parametrize(("make", "gain"), [(chained, 0.05), (paired, 0.2)])
def test_thirty_answers_raise_f1(tmp_path, make, gain):
    index, truth = make(tmp_path / "lake")
    usual = Advice(index.usual_max_distance, 0.5, "", {})
    before = score(index, truth, usual)
    for doubt in doubts_of(index, 30):
        row = doubt.judgement
        tables = tuple(table.removesuffix(".csv") for table in (row.query_table, row.lake_table))
        if not row.of_values:
            record_judgements(
                index.path, [replace(row, verdict="yes" if tables in truth else "no")]
            )
    rejected = score(index, truth, usual)
    has_both = len({row.verdict for row in index._opened.judgements.columns}) == 2
    after = score(index, truth, index.tune() if has_both else usual)
    assert rejected >= before
    assert after >= max(before + gain, rejected - 0.005), (before, rejected, after)
