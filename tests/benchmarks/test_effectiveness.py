"""Tests of the effectiveness measures."""

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.effectiveness import methods, similar
from benchmarks.effectiveness.command import founds_of, measure
from benchmarks.effectiveness.found_pairs import FoundPairs, found_by_values
from benchmarks.effectiveness.judged import (
    BY_MEANING,
    BY_TEXT,
    NEGATIVE,
    NOT_JUDGED,
    Judged,
    incidence,
    read_judged,
)
from benchmarks.effectiveness.methods import AUTOMATIC, METHODS, RERANKED, Workshop, make_method
from benchmarks.effectiveness.report import tables_of
from benchmarks.effectiveness.scoring import (
    JOINABILITIES,
    best_f1,
    by_meaning_at,
    choose,
    cross_validated,
    folds_of,
    intervals,
    ranked,
    rates,
    truth_of,
)
from benchmarks.effectiveness.searched import numbers_of, ranked_pairs, searched
from benchmarks.effectiveness.sets import TruthSet

TOWNS = ["Oslo", "Rome", "Madrid", "Vienna", "Lisbon", "Dublin"]
TABLES = {
    "a.csv": ["team", *TOWNS],
    "b.csv": ["city", *[town.upper() for town in TOWNS]],
    "c.csv": ["club", *[f"{town} United" for town in TOWNS]],
    "d.csv": ["colour", "red", "green", "blue", "black", "white", "pink"],
    "e.csv": ["half", *TOWNS[:2], "Bergen", "Turin", "Porto", "Graz"],
}
PAIRS = [
    ("a", 0, "c", 0, 6, 6),  # by meaning
    ("c", 0, "a", 0, 6, 6),
    ("a", 0, "e", 0, 6, 3),  # too few for a positive pair, too many for a negative one
]


def write_tables(folder: Path) -> Path:
    folder.mkdir()
    for name, rows in TABLES.items():
        (folder / name).write_text(
            "\n".join([f"{rows[0]},n", *(f"{row},1" for row in rows[1:])]) + "\n"
        )
    return folder


@pytest.fixture
def lake(tmp_path):
    folder = write_tables(tmp_path / "lake")
    header = (
        "query_table\tquery_column\tcandidate_table\tcandidate_column\t"
        "linked_values\tentity_matches\texact_matches"
    )
    lines = [header, *("\t".join(map(str, (*pair, 0))) for pair in PAIRS)]
    (tmp_path / "join_pairs.tsv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    listed = ["table\tcolumn", *(f"{name[0]}\t0" for name in TABLES)]
    (tmp_path / "entity_columns.tsv.gz").write_bytes(gzip.compress("\n".join(listed).encode()))
    return folder


@pytest.fixture
def judged(lake):
    return read_judged(lake, lake.parent / "join_pairs.tsv.gz")


def test_pairs_are_judged_as_the_truth_says(judged):
    assert judged.keys == [(name, 0) for name in TABLES]
    classes = judged.classes(
        *(np.array(numbers) for numbers in zip(*np.ndindex(5, 5), strict=True))
    ).reshape(5, 5)
    expected = np.full((5, 5), NEGATIVE)
    expected[0, 1] = expected[1, 0] = BY_TEXT
    expected[0, 2] = expected[2, 0] = BY_MEANING
    expected[0, 4] = NOT_JUDGED
    np.fill_diagonal(expected, NOT_JUDGED)
    np.testing.assert_array_equal(classes, expected)
    assert judged.queries.tolist() == [0, 1, 2]
    assert [judged.positives_of(number) for number in range(5)] == [2, 1, 1, 0, 0]


@pytest.mark.lakes
def test_the_shared_lake_has_the_pairs_that_its_description_counts(lake_folder, shared_lakes):
    wikitables = read_judged(
        lake_folder("wikitables"), shared_lakes / "wikitables" / "join_pairs.tsv.gz"
    )
    counts = {label: len(pairs) for label, pairs in wikitables.labels.items()}
    assert (wikitables.n_columns, len(wikitables.queries)) == (1949, 627)
    assert (counts[BY_TEXT] + counts[BY_MEANING], counts[BY_MEANING]) == (5111, 452)


WORDS = st.lists(
    st.sampled_from(["ab", "abc", "abd", "x", "xy", "xyz", "qqqqqqqqqq", "qqqqqqqqqr"]), min_size=1
)
VALUES = st.lists(WORDS.map(lambda words: " ".join(words[:4])), min_size=1, max_size=8, unique=True)


def edit_distance(left: str, right: str) -> int:
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        above, row = row, [i]
        for j, b in enumerate(right, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (a != b)))
    return row[-1]


def edit(left: str, right: str) -> float:
    return 1 - edit_distance(left, right) / max(len(left), len(right))


def jaccard(left: str, right: str) -> float:
    a, b = set(left.split()), set(right.split())
    return len(a & b) / len(a | b)


def fuzzy(left: str, right: str) -> float:
    a, b = set(left.split()), set(right.split())
    alike = {(x, y): edit(x, y) if edit(x, y) >= 0.8 else 0.0 for x in a for y in b}
    overlap = min(
        sum(max(alike[x, y] for y in b) for x in a), sum(max(alike[x, y] for x in a) for y in b)
    )
    return overlap / (len(a) + len(b) - overlap)


@pytest.mark.parametrize(
    ("measure", "definition"),
    [
        (similar.jaccard_of_tokens, jaccard),
        (similar.edit_similarity, edit),
        (similar.fuzzy_tokens, fuzzy),
    ],
)
def test_measures_are_those_of_their_definition(measure, definition):
    pytest.importorskip("rapidfuzz")

    @given(VALUES, VALUES, st.sampled_from([0.3, 0.5, 0.7]))
    def check(values, others, min_similarity):
        for against, similarities in (
            (values, similar.whole(measure(values, values, min_similarity), len(values))),
            (others, sp.vstack(list(measure(values, others, min_similarity)))),
        ):
            expected = np.array([[definition(left, right) for right in against] for left in values])
            clear = abs(expected - min_similarity) > 1e-6
            wanted = np.where(expected >= min_similarity, expected, 0)
            np.testing.assert_allclose(similarities.toarray()[clear], wanted[clear], atol=1e-5)

    check()


def test_equal_and_rare_words_count():
    values = ["red cubs", "blue cubs", "blue sox", "cubs"]
    np.testing.assert_array_equal(
        sp.vstack(list(similar.equal(values, values, 1.0))).toarray(), np.eye(4)
    )
    similarities = similar.whole(similar.tfidf(values, values, 0.3), len(values)).toarray()
    np.testing.assert_allclose(np.diag(similarities), 1, atol=1e-6)
    assert similarities[0, 3] > similarities[0, 1] > similarities[0, 2] == 0


@pytest.mark.parametrize("measure", [measure for measure, _ in methods.MEASURES.values()])
def test_pieces_are_bounded_and_say_the_same_as_one(measure, monkeypatch):
    pytest.importorskip("rapidfuzz")
    values, others = (
        ["red cubs", "", "blue cubs", "cubs", "blue sox"],
        ["cubs red", "", "blue cub", "cubs"],
    )
    whole = sp.vstack(list(measure(values, others, 0.3))).toarray()
    assert whole.any()
    assert not whole[1].any(), "a value of no text is like nothing"
    assert not whole[:, 1].any()
    monkeypatch.setattr(similar, "PIECE_PAIRS", 9)
    pieces = list(measure(values, others, 0.3))
    assert [piece.shape for piece in pieces] == [(2, 4), (2, 4), (1, 4)]
    np.testing.assert_array_equal(sp.vstack(pieces).toarray(), whole)


def random_judged(seed: int, n_columns: int = 30) -> tuple[Judged, sp.csr_matrix]:
    generator = np.random.default_rng(seed)
    texts = [
        pa.array(sorted({f"v{v}" for v in generator.integers(0, 25, 8)})) for _ in range(n_columns)
    ]
    pairs = generator.permutation(n_columns * n_columns)[:120]
    labels = {BY_TEXT: pairs[:60], BY_MEANING: pairs[60:90], NOT_JUDGED: pairs[90:]}
    labels = {label: np.sort(part[part % (n_columns + 1) != 0]) for label, part in labels.items()}
    judged = Judged([(f"t{number}", 0) for number in range(n_columns)], texts, labels)
    return judged, incidence([column.to_pylist() for column in texts])[1]


@pytest.mark.parametrize("seed", range(3))
def test_columns_are_found_by_counting_similar_values(seed):
    judged, held = random_judged(seed)
    generator = np.random.default_rng(seed)
    alike = generator.random((held.shape[1],) * 2).astype(np.float32) * (
        generator.random((held.shape[1],) * 2) < 0.2
    )
    np.fill_diagonal(alike, 1)
    [hits] = found_by_values(judged, held, sp.csr_matrix(alike), [0.6])
    values = [set(held[number].indices) for number in range(judged.n_columns)]
    expected = {}
    for query, candidate in np.ndindex(judged.n_columns, judged.n_columns):
        matches = sum(any(alike[v, w] >= 0.6 for w in values[candidate]) for v in values[query])
        if query != candidate and matches >= 4 and matches >= 0.3 * len(values[query]):
            expected[query, candidate] = matches / len(values[query])
    returned = dict(
        zip(
            zip(hits.query.tolist(), hits.candidate.tolist(), strict=True),
            hits.joinability,
            strict=True,
        )
    )
    assert returned.keys() == expected.keys()
    np.testing.assert_allclose(
        [returned[pair] for pair in expected], list(expected.values()), rtol=1e-6
    )


def random_founds(judged: Judged, seed: int) -> list[FoundPairs]:
    generator = np.random.default_rng(seed)
    founds = []
    for threshold in (0.1, 0.2, 0.3):
        pairs = np.sort(generator.permutation(judged.n_columns**2)[:300])
        pairs = pairs[pairs % (judged.n_columns + 1) != 0]
        query, candidate = pairs // judged.n_columns, pairs % judged.n_columns
        joinability = np.round(generator.uniform(0.3, 1, len(pairs)), 2)
        founds.append(
            FoundPairs(threshold, query, candidate, joinability, judged.classes(query, candidate))
        )
    return founds


def test_thresholds_come_from_the_columns_that_are_not_scored():
    judged, _ = random_judged(1)
    founds = random_founds(judged, 1)
    _, chosen = cross_validated(judged, founds, best_f1)
    fold_ = folds_of(judged)[0]
    # Whatever the labels of a fold are, its own thresholds stay.
    spoiled = [
        replace(f, label=np.where(np.isin(f.query, fold_), BY_TEXT, f.label)) for f in founds
    ]
    assert cross_validated(judged, spoiled, best_f1)[1][0] == chosen[0]
    assert sorted(np.concatenate(folds_of(judged)).tolist()) == list(range(judged.n_columns))


@pytest.mark.parametrize("goal", [best_f1, by_meaning_at(0.4)])
def test_the_best_thresholds_are_chosen(goal):
    judged, _ = random_judged(2)
    founds = random_founds(judged, 2)
    truth = truth_of(judged, np.arange(judged.n_columns))
    place, joinability = choose(founds, truth, goal)
    best = goal(*rates(founds[place].from_joinability(joinability), truth))
    assert best == max(
        goal(*rates(f.from_joinability(j), truth)) for f in founds for j in JOINABILITIES
    )


def test_ranking_is_scored_as_defined():
    labels = {
        BY_TEXT: np.array([0 * 4 + 1, 0 * 4 + 2]),
        BY_MEANING: np.array([1 * 4 + 0]),
        NOT_JUDGED: np.array([3]),
    }
    judged = Judged([(f"t{number}", 0) for number in range(4)], [], labels)
    query, candidate = np.array([0, 0, 0, 1]), np.array([1, 3, 2, 2])
    hits = FoundPairs(
        0.1, query, candidate, np.array([0.5, 1.0, 0.4, 0.9]), judged.classes(query, candidate)
    )
    average, recall = ranked(judged, hits)
    # Query 0 has its two pairs first and second, as the third is not judged; query 1 misses its
    # only one.
    assert (average, recall) == ((1 + 0) / 2, (1 + 0) / 2)


def test_intervals_hold_the_scores():
    judged, _ = random_judged(3)
    hits = random_founds(judged, 3)[0]
    precision, recall, by_meaning = rates(hits, truth_of(judged, np.arange(judged.n_columns)))
    bounds = intervals(judged, hits)
    for name, score in (
        ("precision", precision),
        ("recall", recall),
        ("semantic_only_recall", by_meaning),
    ):
        low, high = bounds[name]
        assert low < score < high, name


@pytest.fixture(scope="module")
def index_path(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("effectiveness")
    lake = write_tables(folder / "lake")
    return Workshop([], lake, folder).index().path


@pytest.fixture
def shop(judged, lake, index_path):
    return Workshop(judged.texts, lake, index_path.parent)


@pytest.mark.long
@pytest.mark.spark
def test_methods_find_what_they_can_and_the_index_answers_the_same(
    shop, judged, lake, monkeypatch, tmp_path
):
    pytest.importorskip("rapidfuzz")
    pytest.importorskip("faiss")
    monkeypatch.setattr(methods, "DISTANCES", (0.0, 0.1, 0.3, 0.4))
    for name in [name for name in METHODS[:-1] if name not in (AUTOMATIC, RERANKED)]:
        founds = founds_of(make_method(name, shop), judged)
        assert (0, 1) in set(
            zip(founds[-1].query.tolist(), founds[-1].candidate.tolist(), strict=True)
        ), name
    for method, model in (("pexeso", "lexical"), ("hashing", "hashing"), ("fasttext", "fasttext")):
        founds, index = founds_of(make_method(method, shop), judged), shop.index(model)
        assert index.embedder.kind == model
        pairs = set(zip(founds[-1].query, founds[-1].candidate, strict=True))
        assert {(0, 2), (2, 0)} <= pairs or method == "fasttext"
        for ours, theirs in zip(founds, searched(judged, index, methods.DISTANCES), strict=True):
            for name in ("query", "candidate", "joinability", "label"):
                ordered = [
                    getattr(hits, name)[np.lexsort((hits.candidate, hits.query))]
                    for hits in (ours, theirs)
                ]
                np.testing.assert_allclose(*ordered, rtol=1e-6)
    result = measure(TruthSet("few", lake, judged), shop, METHODS)
    assert list(result["methods"]) == list(METHODS[:-1])
    assert result["skipped"] == {"sentence": "No sentence model was given (--sentence-model)."}
    assert result["methods"]["equi"]["semantic_only_recall"] == 0
    models = {name: scores.get("model") for name, scores in result["methods"].items()}
    assert (models["pexeso"], models["pexeso-pq"]) == ("lexical", "hashing, 256 dimensions")
    assert models["fasttext"] == "fasttext, 100 dimensions"
    assert models["tf-idf-normalised"] is None
    assert result["methods"][AUTOMATIC]["advice"] == shop.index().advise().to_dict()
    assert tables_of(result).count("\n| ") == len(METHODS) + 1  # a heading of two, all but one


@pytest.mark.spark
def test_rivals_have_the_normaliser_of_the_index_and_pexeso_has_a_row_without(shop):
    cells = [pa.array(["ST. LOUIS", "U.K."])]
    plain, whole = [["st louis", "u k"]], [["saint louis", "united kingdom great britain"]]
    for name in methods.MEASURES:
        assert make_method(name, shop).prepare(cells) == plain
        assert make_method(f"{name}-normalised", shop).prepare(cells) == whole
    assert make_method("pexeso", shop).prepare(cells) == whole
    # Its rule for punctuation keeps initials together.
    assert make_method("pexeso-folded", shop).prepare(cells) == [["st louis", "uk"]]
    assert shop.folded_index.embedder.kind == shop.index().models[0]


@pytest.mark.spark
def test_pairs_are_ranked_by_the_similarity_of_a_search(shop, judged):
    index, pairs = shop.index(), ranked_pairs(judged, shop.index())
    number_of = numbers_of(judged.keys, index)
    assert len(pairs.query)
    for query in np.unique(pairs.query).tolist():
        alone = index.search(judged.texts[query], max_distance=0.9, k="all", fold_copies=False)
        similarity = {number_of[match.column_id]: match.similarity for match in alone}
        own = pairs.query == query
        np.testing.assert_allclose(
            pairs.joinability[own],
            [0.3 + 0.7 * similarity[other] for other in pairs.candidate[own].tolist()],
        )


@pytest.mark.spark
def test_a_model_that_the_index_lacks_has_no_row(judged, lake, tmp_path, spark):
    shop = Workshop(judged.texts, lake, tmp_path, "lexical")
    result = measure(TruthSet("few", lake, judged), shop, ["equi", "pexeso-pq", "fasttext"])
    assert list(result["methods"]) == ["equi"]
    assert result["skipped"] == {
        "pexeso-pq": "The index holds no model of vectors.",
        "fasttext": "The index holds no model fasttext.",
    }
