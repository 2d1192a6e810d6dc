"""Tests of effectiveness on judged values."""

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.effectiveness import joining
from benchmarks.effectiveness.joining import best_threshold, scores_of_values
from benchmarks.effectiveness.judged import BY_MEANING, BY_TEXT, NEGATIVE, NOT_JUDGED
from benchmarks.effectiveness.methods import PQ_RECALL, Quantised, make_method
from benchmarks.effectiveness.nearest import Joined, nearest_of
from benchmarks.effectiveness.partners import joinabilities, ranks_of_partners, scores_of_partners
from benchmarks.effectiveness.sets import ENGLISH, read_countries, shared_set, tasks_set
from benchmarks.effectiveness.tasks import read_tasks
from pexeso.errors import InputError

JACCARD = make_method("jaccard", None)

TASKS = {
    "towns": (
        ["Oslo city", "Rome city", "Rome town", "Bern"],
        ["Oslo town", "Rome", "", "bern", "Turin"],
        [(0, 0), (1, 1), (3, 3)],
    ),
    "rivers": (["the Po", "the Rhine", "the Elbe"], ["Po", "Rhine river"], [(0, 0), (1, 1)]),
}


@pytest.fixture
def folder(tmp_path):
    for name, (left, right, pairs) in TASKS.items():
        place = tmp_path / "sets" / name
        place.mkdir(parents=True)
        for side, texts in (("left", left), ("right", right)):
            rows = [f"{10 * number},{text}" for number, text in enumerate(texts)]
            (place / f"{side}.csv").write_text("\n".join(["id,title", *rows]) + "\n")
        (place / "gt.csv").write_text(
            "\n".join(["id_l,id_r", *(f"{10 * a},{10 * b}" for a, b in pairs)]) + "\n"
        )
    return tmp_path / "sets"


def test_tasks_are_read_without_rows_that_have_no_text(folder):
    rivers, towns = read_tasks(folder)
    assert (rivers.name, towns.group) == ("rivers", "towns")
    assert towns.queries.to_pylist() == ["Oslo town", "Rome", "bern", "Turin"]
    np.testing.assert_array_equal(
        towns.partners.toarray(), [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    )
    assert towns.has_partner().tolist() == [True, True, True, False]
    assert towns.has_equal_partner().tolist() == [False, False, True, False]


@given(
    st.lists(
        st.lists(st.sampled_from([0.0, 0.4, 0.5, 0.9]), min_size=3, max_size=3),
        min_size=1,
        max_size=6,
    )
)
def test_the_nearest_shares_its_credit_among_ties(rows):
    similar = np.array(rows, np.float32)
    partners = sp.csr_matrix(np.eye(len(rows), 3, dtype=np.float32))
    pieces = (
        [sp.csr_matrix(similar[:2]), sp.csr_matrix(similar[2:])]
        if len(rows) > 2
        else [sp.csr_matrix(similar)]
    )
    similarity, credit, nearest = nearest_of(pieces, partners)
    for number, row in enumerate(similar):
        if not row.any():
            assert (similarity[number], credit[number], nearest[number]) == (-np.inf, 0, -1)
            continue
        best = np.flatnonzero(row == row.max())
        assert similarity[number] == row.max()
        assert nearest[number] == best[0]
        assert credit[number] == pytest.approx((number in best) / len(best))


def random_joined(seed: int, n_tasks: int, n: int = 40) -> list[Joined]:
    generator = np.random.default_rng(seed)
    tasks = []
    for number in range(n_tasks):
        similarity = generator.random(n).astype(np.float32)
        credit = (generator.random(n) < similarity).astype(float)
        has_partner = (credit > 0) | (generator.random(n) < 0.5)
        equal = has_partner & (generator.random(n) < 0.3)
        thresholds = [0.1, 0.3, 0.5, 0.7, 0.9]
        args = (similarity, credit, np.zeros(n, np.int64), has_partner, equal, thresholds)
        tasks.append(Joined(f"t{number}", f"t{number}", *args))
    return tasks


def f1_by_hand(joined: Joined, min_similarity: float, some: np.ndarray) -> float:
    hits = (joined.similarity >= min_similarity) & some
    precision = joined.credit[hits].sum() / hits.sum() if hits.any() else 1
    recall = joined.credit[hits].sum() / (joined.has_partner & some).sum()
    return 2 * precision * recall / (precision + recall) if precision + recall else 0


def test_thresholds_are_chosen_on_other_tasks():
    joined = random_joined(0, 7)
    thresholds = tuple(joined[0].similarities)
    scores = scores_of_values(joined, thresholds)
    assert scores["chosen_on"] == "other tasks"
    everything = np.ones(40, bool)
    f1s = np.array(
        [[f1_by_hand(task, threshold, everything) for threshold in thresholds] for task in joined]
    )
    for fold in joining.drawn_folds(np.arange(7)):
        rest = np.setdiff1d(np.arange(7), fold)
        best = thresholds[best_threshold(f1s[rest])]
        for number in fold:
            own = scores["tasks"][f"t{number}"]
            assert own["thresholds"] == [best]
            assert own["f1"] == pytest.approx(
                f1_by_hand(joined[number], best, everything), abs=1e-4
            )
    assert scores["f1"] == pytest.approx(
        np.mean([own["f1"] for own in scores["tasks"].values()]), abs=1e-3
    )
    low, high = scores["intervals"]["f1"]
    assert low < scores["f1"] < high


def test_of_few_tasks_thresholds_are_chosen_on_other_values():
    [joined] = random_joined(1, 1)
    thresholds = tuple(joined.similarities)
    scores = scores_of_values([joined], thresholds)
    hits = np.zeros(40, bool)
    for fold in joining.drawn_folds(np.arange(40)):
        rest = np.ones(40, bool)
        rest[fold] = False
        f1s = np.array([[f1_by_hand(joined, threshold, rest) for threshold in thresholds]])
        hits[fold] = joined.similarity[fold] >= thresholds[best_threshold(f1s)]
    assert scores["precision"] == pytest.approx(joined.credit[hits].sum() / hits.sum(), abs=1e-4)
    other = joined.has_partner & ~joined.has_equal_partner
    expected = joined.credit[hits & other].sum() / other.sum()
    assert scores["recall_of_other_spellings"] == pytest.approx(expected, abs=1e-4)


def test_partners_are_ranked_among_the_columns_of_other_tables(folder, tmp_path):
    (folder / "towns" / "right.csv").write_text("id,title\n0,Oslo\n10,Rome\n20,Nice\n30,bern\n")
    (folder / "rivers" / "right.csv").write_text("id,title\n0,Oslo\n10,Rome\n")
    (folder / "rivers" / "gt.csv").write_text("id_l,id_r\n0,0\n10,10\n")
    lake = tasks_set("autofj", folder, tmp_path / "truth").partners
    assert not list(folder.rglob("gt.csv")), "truth is no table of the lake"
    assert lake.tables == [
        "rivers/left.csv",
        "rivers/right.csv",
        "towns/left.csv",
        "towns/right.csv",
    ]
    assert lake.pair_by_task == {"rivers": (1, 0), "towns": (3, 2)}
    # "towns/right" holds both asked values of "rivers", and two of the four of "towns" stand in
    # "rivers/right".
    np.testing.assert_array_equal(
        lake.twins, [[False, True, False, True], [False, True, False, True]]
    )
    shares = joinabilities(JACCARD, lake)
    strict = JACCARD.thresholds.index(1.0)
    np.testing.assert_allclose(shares[:, :, strict], [[0, -1, 0, 1], [0, 0.5, 0.25, -1]])
    assert ranks_of_partners(lake, shares, twins=True)[:, strict].tolist() == [3, 2]
    assert ranks_of_partners(lake, shares, twins=False)[:, strict].tolist() == [2, 1]
    scores = scores_of_partners(JACCARD, lake)
    assert (scores["asked"], scores["first"], scores["first_with_twins"]) == (2, 1, 0)
    assert set(scores["ranks"]) == {"rivers", "towns"}


COUNTRY_ROWS = {
    "iso3166.csv": ("name", ["Bolivia (Plurinational State of)", "Chile", "Peru", "Cuba", "Chad"]),
    "names_en.csv": ("value", ["Bolivia", "Chile", "Peru", "Cuba", "Chad"]),
    "names_de.csv": ("value", ["Bolivien", "Chile", "Peru", "Kuba", "Tschad"]),
    "gdp.csv": ("Country Name", ["Bolivia", "Chile", "Peru", "Cuba", "Chad"]),
}
CODES = ["BOL", "CHL", "PER", "CUB", "TCD"]


@pytest.fixture
def countries(tmp_path):
    lake, truth = tmp_path / "lake", tmp_path / "truth"
    lake.mkdir()
    truth.mkdir()
    columns = {}
    for table, (name, cells) in COUNTRY_ROWS.items():
        (lake / table).write_text("\n".join([name, *cells]) + "\n")
        columns[table, name] = cells
    names = [name for table, name in ENGLISH if table == "country-codes.csv"]
    formal = [f"the Republic of {cell}" for cell in COUNTRY_ROWS["gdp.csv"][1]]
    cells = {
        name: formal if "Formal" in name else [cell.upper() for cell in COUNTRY_ROWS["gdp.csv"][1]]
        for name in names
    }
    columns |= {("country-codes.csv", name): own for name, own in cells.items()}
    capitals = ["Sucre", "Santiago", "Lima", "Havana", "N'Djamena"]
    rows = [
        ",".join([*(cells[name][row] for name in names), capitals[row], str(row)])
        for row in range(len(CODES))
    ]
    (lake / "country-codes.csv").write_text(
        "\n".join([",".join([*names, "Capital", "M49"]), *rows]) + "\n"
    )
    lines = [
        f"{table},{column},{cell},{code}"
        for (table, column), own in columns.items()
        if table != "names_de.csv"
        for cell, code in zip(own, CODES, strict=True)
    ]
    (truth / "name_codes.csv").write_text("\n".join(["table,column,name,alpha3", *lines]) + "\n")
    pairs = [f"{a[0]},{a[1]},{b[0]},{b[1]},5,5,0" for a in columns for b in columns if a != b]
    header = "table_a,column_a,table_b,column_b,names_a,code_matches,exact_matches"
    (truth / "join_pairs.csv").write_text("\n".join([header, *pairs]) + "\n")
    return lake, truth


def test_countries_are_judged_by_code(countries):
    judged, tasks = read_countries(*countries)
    assert len(judged.allowed_queries) == len(ENGLISH) == 8
    assert judged.n_columns == 10, "names in German and capitals are candidates, numbers are not"
    capital = judged.texts.index(pa.array(["Sucre", "Santiago", "Lima", "Havana", "N'Djamena"]))
    german = judged.keys.index(("names_de.csv", 0))
    codes = "country-codes.csv"
    formal, short = judged.keys.index((codes, 2)), judged.keys.index((codes, 1))
    iso, world_bank = judged.keys.index(("iso3166.csv", 0)), judged.keys.index(("gdp.csv", 0))
    query = np.array([formal, iso, iso, iso, iso])
    candidate = np.array([short, world_bank, german, capital, iso])
    expected = [BY_MEANING, BY_TEXT, NOT_JUDGED, NEGATIVE, NOT_JUDGED]
    assert judged.classes(query, candidate).tolist() == expected
    assert sum(map(judged.positives_of, judged.allowed_queries)) == 8 * 7
    assert judged.queries.tolist() == judged.allowed_queries.tolist()
    assert len(tasks) == 8 * 7
    task = next(task for task in tasks if task.name == "UN formal name -> ISO name")
    assert task.group == "UN formal name"
    np.testing.assert_array_equal(task.partners.toarray(), np.eye(5))


def test_codes_find_the_recall_that_they_are_cut_for():
    pytest.importorskip("faiss")
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(300, 8)) + 3 * np.eye(8)[generator.integers(0, 8, 300)]
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    vectors[0] = 0
    quantised = Quantised(vectors)
    queries, coded = quantised.as_queries(vectors), quantised.coded(vectors)
    products = queries @ coded.T
    distances = np.linalg.norm(vectors[1:, None] - coded[None, 1:, :8], axis=2)
    np.testing.assert_allclose(products[1:, 1:], 1 - distances**2 / 2, atol=1e-5)
    assert products[0].max() == 0
    assert products[:, 0].max() <= 0
    cut, lower = quantised.cuts([0.8, 0.5])
    assert lower < cut
    assert quantised.cuts([1.1]) == [1.1], "no pair is so near"
    exact = vectors @ vectors.T
    np.fill_diagonal(exact, 0)
    assert (products >= cut)[exact >= 0.8].mean() == pytest.approx(PQ_RECALL, abs=0.01)


@pytest.mark.lakes
def test_the_shared_sets_have_what_their_description_counts(shared_lakes, tmp_path):
    entity_pairs = shared_set("entity-pairs", tmp_path / "a", shared_lakes)
    assert [int(task.partners.sum()) for task in entity_pairs.tasks] == [1076, 2224, 89]
    assert len(entity_pairs.partners.texts) > 10
    countries = shared_set("countries", tmp_path / "b", shared_lakes)
    assert sum(map(countries.judged.positives_of, countries.judged.allowed_queries)) == 56
    assert not (countries.lake / "name_codes.csv").exists()
    with pytest.raises(InputError, match="The data set autofj is not on this machine"):
        shared_set("autofj", tmp_path / "c", tmp_path)
