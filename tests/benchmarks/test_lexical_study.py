"""Tests of the study of lexical models.

They cover features of words, the sparse space, misspelt values, and distances chosen on other sets.
"""

import json

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from click.testing import CliRunner

from benchmarks.effectiveness import lexical_study
from benchmarks.effectiveness.judged import BY_MEANING, BY_TEXT, NOT_JUDGED, Judged
from benchmarks.effectiveness.lexical.data import normalised, prepared, study_set, word_counts
from benchmarks.effectiveness.lexical.grams import KINDS, WordGrams, pieces_of
from benchmarks.effectiveness.lexical.held_out import SetScores, held_out
from benchmarks.effectiveness.lexical.misspelt import (
    are_variants,
    drawn_misspellings,
    may_be_same,
    misspell,
    nearest_unrelated,
)
from benchmarks.effectiveness.lexical.products import best_by_column, products
from benchmarks.effectiveness.lexical.scores import DISTANCES, column_scores, value_scores
from benchmarks.effectiveness.lexical.space import (
    N_GRAMS,
    RECOMMENDED,
    LexicalModel,
    cosines_of,
    projected_vectors,
    value_vectors,
    weights_of,
    word_vectors,
)
from benchmarks.effectiveness.lexical.study import MODELS, methods, scores_of
from benchmarks.effectiveness.scoring import JOINABILITIES
from benchmarks.effectiveness.sets import SHARED
from benchmarks.effectiveness.tasks import Task, incidence_of
from embed.lexical.weights import rarity
from pexeso.errors import InputError
from pexeso.lake.normalise.normaliser import Normaliser

VALUES = ["berlin", "berlni", "chicago bears", "chicago bulls", "of the bears", "the bears"]
COUNTS = {"the": 90, "of": 100, "bears": 4, "bulls": 3, "chicago": 9, "berlin": 2, "2006": 70}


def vectors_of(values, model=RECOMMENDED):
    grams = WordGrams([word for value in values for word in value.split()])
    return value_vectors(values, grams, COUNTS, model)


@pytest.mark.parametrize("kind", KINDS)
def test_features_are_counted_with_repeats(kind):
    grams = WordGrams(["banana", "ab", "a"])
    counts = grams.counts(kind)
    for word, row in zip(grams.words, counts.toarray(), strict=True):
        pieces = pieces_of(word, kind)
        assert sorted(row[row > 0]) == sorted(map(pieces.count, set(pieces)))
    assert grams.counts(kind) is counts


def test_a_word_has_two_pairs_a_letter_and_one_more():
    for word in ("a", "ab", "berlin"):
        assert len(pieces_of(word, "near")) == 2 * len(word) + 1
        assert len(pieces_of(word, "edges")) == 2 * len(word) + 3


def test_words_are_as_similar_as_their_counts_and_the_same_word_by_its_share():
    grams = WordGrams(["berlin", "berlni"])
    model = LexicalModel({"near": 2, "start": 1, "end": 1}, 0.25)
    similar = (word_vectors(grams, model) @ word_vectors(grams, model).T).toarray()
    sums = {
        (a, b): sum(
            times**2 * float(grams.counts(kind)[a].multiply(grams.counts(kind)[b]).sum())
            for kind, times in model.grams.items()
        )
        for a, b in ((0, 0), (0, 1), (1, 1))
    }
    assert similar[0, 1] == pytest.approx(0.75 * sums[0, 1] / np.sqrt(sums[0, 0] * sums[1, 1]))
    np.testing.assert_allclose(np.diag(similar), 1)


def test_words_of_digits_alone_can_be_wholes():
    long = "1" * 15
    grams = WordGrams(["2006", "2007", "b2006", long, f"{long}2", "٢٠٠٦"])
    whole = word_vectors(grams, LexicalModel(N_GRAMS, 0.1, has_whole_numbers=True))
    place = [grams.number[word] for word in ("2006", "2007", "b2006", long, f"{long}2")]
    similar = (whole @ whole.T).toarray()[np.ix_(place, place)]
    assert similar[0, 1] == similar[0, 2] == 0
    assert similar[0, 0] == pytest.approx(1)
    assert similar[3, 4] > 0.5


def test_weights_are_those_of_the_embedder():
    words = sorted(COUNTS)
    theirs = rarity(
        pa.array(words, pa.large_string()),
        np.array([COUNTS[word] for word in words]),
        sum(COUNTS.values()),
    )
    ours = weights_of([*words, "unseen"], COUNTS, LexicalModel(N_GRAMS, 0.25))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_the_space_is_what_the_embedder_projects(tmp_path):
    exact = vectors_of(VALUES, LexicalModel(N_GRAMS, 0.25))
    projected = projected_vectors(VALUES, COUNTS, str(tmp_path / "words.txt"))
    assert np.abs((exact @ exact.T).toarray() - projected @ projected.T).max() < 0.25


@pytest.mark.parametrize("name", MODELS)
def test_every_model_gives_unit_vectors(name):
    vectors = vectors_of([*VALUES, ""], MODELS[name])
    lengths = np.asarray(vectors.multiply(vectors).sum(1)).ravel()
    np.testing.assert_allclose(lengths, [1] * len(VALUES) + [0])


def test_products_are_those_of_dense_vectors():
    vectors = vectors_of(VALUES)
    expected = vectors.toarray() @ vectors.toarray().T
    for some in (vectors, vectors.toarray()):
        cosines = np.array([row.copy() for row in products(some, some)])
        np.testing.assert_allclose(cosines, expected, atol=1e-12)


def test_the_best_of_each_column_is_kept():
    vectors = vectors_of(VALUES)
    held = sp.csr_matrix(np.array([[1, 0, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], [0, 1, 0, 0, 0, 0]]))
    similarities = best_by_column(vectors, vectors, held, 0.3).toarray()
    dense = vectors.toarray() @ vectors.toarray().T
    best = np.array([np.where(row, dense, 0).max(1) for row in held.toarray()]).T
    np.testing.assert_allclose(similarities, np.where(best >= 0.3, best, 0), atol=1e-12)


def test_a_misspelling_is_one_edit_away():
    generator = np.random.default_rng(0)
    for _ in range(200):
        misspelt = misspell("hamburg", generator)
        assert 6 <= len(misspelt) <= 8
        assert are_variants("hamburg", misspelt)


def test_misspellings_are_drawn_by_a_seed_and_are_no_values():
    lakes = {"a": ["berlin", "bern", "x1y2z3", "new york", "usa"], "b": ["hamburg", "hamburgs"]}
    drawn = drawn_misspellings(lakes, 3, seed=5)
    assert drawn == drawn_misspellings(lakes, 3, seed=5)
    assert sum(len(draw.originals) for draw in drawn.values()) == 3
    for lake, draw in drawn.items():
        assert set(draw.originals) <= {"berlin", "bern", "hamburg", "hamburgs"}
        assert not set(draw.misspellings) & set(lakes[lake])


def test_variants_and_unrelated_words():
    assert are_variants("german", "germany")
    assert are_variants("adelaide", "adelayda")
    assert not are_variants("bern", "bear")
    assert not are_variants("john", "johnson")
    assert may_be_same("berlin", "greater berlin area")
    assert not may_be_same("chicago bears", "chicago bulls")


def test_the_nearest_unrelated_value_is_looked_for_in_the_lake_and_in_the_column():
    values = ["berlin", "berlin germany", "bern", "merlot"]
    vectors = vectors_of(values)
    cosines = (vectors @ vectors.T).toarray()[0]
    (cosine,) = nearest_unrelated(vectors[[0]], ["berlin"], vectors, values, 0.01)
    assert cosine == pytest.approx(max(cosines[2], cosines[3]))
    (cosine,) = nearest_unrelated(
        vectors[[0]], ["berlin"], vectors, values, 0.01, within=[np.array([0, 1, 3])]
    )
    assert cosine == pytest.approx(cosines[3])


def task(queries, others, pairs):
    rows, columns = zip(*pairs, strict=True)
    partners = incidence_of(rows, columns, (len(queries), len(others)))
    return Task("t", "t", pa.array(queries), pa.array(others), partners)


def test_values_are_scored_at_each_distance():
    queries, others = ["berlin", "berlni"], ["berlin", "hamburg"]
    values = sorted({*queries, *others})
    number = {value: position for position, value in enumerate(values)}
    judged = task(queries, others, [(0, 0), (1, 0)])
    rates = value_scores(
        [judged], [(queries, others)], vectors_of(values), number, distances=(0.01, 0.6)
    )
    np.testing.assert_allclose(rates[0], [[1, 0.5, 2 / 3], [1, 1, 1]])


def test_columns_are_scored_at_each_distance_and_joinability():
    columns = [
        ["berlin", "hamburg", "munich", "cologne"],
        ["berlni", "hambrug", "munihc", "cologne"],
        ["berlin", "hamburg", "munich", "cologne", "bonn"],
    ]
    labels = {BY_TEXT: np.array([2, 6]), BY_MEANING: np.array([1, 3]), NOT_JUDGED: np.array([5])}
    texts = [pa.array(column) for column in columns]
    judged = Judged([("a", 0), ("b", 0), ("c", 0)], texts, labels)
    values = sorted({value for column in columns for value in column})
    number = {value: position for position, value in enumerate(values)}
    scores = column_scores(judged, columns, vectors_of(values), number, distances=(0.01, 0.45))
    assert scores.positive.sum(0).tolist() == [2, 2]
    precision, recall, semantic = scores.rates()
    at = np.argmin(np.abs(JOINABILITIES - 0.5))
    assert (recall[0, at], semantic[0, at]) == (0.5, 0)
    assert (recall[1, at], semantic[1, at]) == (1, 1)
    assert precision[0, at] == 1


def test_a_set_is_scored_at_the_distance_that_suits_the_others():
    def scores(best):
        f1 = np.exp(-np.abs(np.array(DISTANCES) - best))
        return SetScores(np.repeat(f1[:, None], len(JOINABILITIES), axis=1), f1, {0.9: 0.5})

    result = held_out({"a": scores(0.3), "b": scores(0.3), "c": scores(0.45)})
    assert [row["distance"] for row in result["sets"].values()] == pytest.approx([0.3, 0.3, 0.3])
    assert result["sets"]["c"]["columns"] == pytest.approx(np.exp(-0.15))
    assert result["distance"] == pytest.approx(0.3)


def test_distances_and_cosines():
    np.testing.assert_allclose(cosines_of([0, 0.35, 1]), [1, 0.755, -1], atol=1e-8)


def test_words_are_counted_once_a_value_and_column():
    assert word_counts([["new york", "new york", ""], ["new york"]]) == {"new": 2, "york": 2}


def test_an_unknown_model_is_refused():
    with pytest.raises(InputError, match="The models are projected, tf-idf of words"):
        lexical_study.run(["nearly"], 0, Normaliser())


def test_a_data_set_that_is_not_there_is_told(tmp_path):
    with pytest.raises(InputError, match="The data set wikitables is not on this machine"):
        lexical_study.run([], 0, Normaliser(), shared=tmp_path)


@pytest.mark.lakes
def test_the_recommended_model_beats_the_projected_one_on_countries(shared_lakes, tmp_path):
    if not (SHARED / "countries" / "tables.tar.gz").is_file():
        pytest.skip("the shared lake countries (../shared/data/countries) is not on this machine")
    countries = prepared(study_set("countries", tmp_path / "lake"), normalised(Normaliser()))
    measured = methods(tmp_path)
    ours, theirs = (scores_of(countries, measured[name]) for name in ("placed pairs", "projected"))
    assert ours.at(0.4)[0] >= theirs.at(0.35)[0]
    assert ours.at(0.4)[1] >= theirs.at(0.35)[1] + 0.02


def test_models_are_kept_beside_others_of_the_same_truth():
    def result(n_drawn, counts=5, **models):
        return {
            "counts": counts,
            "distances": [0.3],
            "misspelt": {"drawn": n_drawn},
            "models": models,
        }

    before = result(3000, a={"mean": 1, "misspelt": 2}, b={"mean": 3})
    merged = lexical_study.merged(before, result(0, a={"mean": 4}))
    assert merged == result(3000, a={"mean": 4, "misspelt": 2}, b={"mean": 3})
    other = result(0, counts=6, a={"mean": 4})
    assert lexical_study.merged(before, other) == lexical_study.merged(None, other) == other


def test_the_command_prints_a_table_and_plain_data(monkeypatch):
    own = {"distance": 0.4, "columns": 0.9, "values": 0.8}
    model = {
        "model": None,
        "sets": {name: own for name in lexical_study.DATA},
        "columns": 0.9,
        "values": 0.8,
        "mean": 0.85,
        "distance": 0.4,
        "semantic_recall": {0.9: 0.7, 0.95: 0.5},
        "misspelt": {
            "found": [0.0] * 10 + [0.8] * 21,
            "unrelated_in_lake": [0.02] * 31,
            "unrelated_in_column": [0.01] * 31,
        },
    }
    monkeypatch.setattr(lexical_study, "run", lambda *_: {"models": {"pairs": model}})
    done = CliRunner().invoke(lexical_study.main, [])
    assert done.exit_code == 0, done.output
    assert "| pairs | 0.40 | 0.900 0.800 (0.40) |" in done.output
    assert "| 0.8500 | 0.700 | 0.500 | 0.40 | 0.020, 0.010 |" in done.output
    done = CliRunner().invoke(lexical_study.main, ["--json"])
    assert json.loads(done.output)["models"]["pairs"]["mean"] == 0.85
    done = CliRunner().invoke(lexical_study.main, ["--rules", "nothing"])
    assert "There is no rule 'nothing'" in done.output
