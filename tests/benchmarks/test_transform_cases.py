"""The shared cases of the transformation benchmark: reading, scores, rivals, the fuzzy oracle."""

import csv
import json
import random
from fractions import Fraction

import pytest
from click.testing import CliRunner

from benchmarks import report
from benchmarks.cli import main
from benchmarks.datasets.tables import SHARED
from benchmarks.transform.best_fuzzy import (
    SIMILARITIES,
    STEPS,
    TOKENISERS,
    best_fuzzy_join,
)
from benchmarks.transform.cases import read_case, shared_cases
from benchmarks.transform.learned import learned
from benchmarks.transform.quality import (
    METHODS,
    RIVALS,
    by_default_model,
    by_rare_pieces,
    by_substring,
    measured_cases,
)
from benchmarks.transform.scores import counted, means, score
from benchmarks.transform.tables import means_table
from pexeso.errors import InputError

HAS_CASES = (SHARED / "transform" / "cases.tar.gz").is_file()
needs_cases = pytest.mark.skipif(not HAS_CASES, reason="needs the shared cases (../shared/data)")

NAMES = ["Suhela Chowdhury", "Maureen Paluzzi", "Carolyn Craddock", "Kelly Moore", "Ann Lee"]
MAILS = ["kmoore@a.us", "ccraddock@a.us", "schowdhury@a.us", "mpaluzzi@a.us", "123"]
TRUE = {0: 2, 1: 3, 2: 1, 3: 0}


def write_csv(path, head, rows):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([head, *rows])


@pytest.fixture
def case_folder(tmp_path):
    folder = tmp_path / "names"
    folder.mkdir()
    write_csv(folder / "source.csv", ["n", "name"], [[str(n), x] for n, x in enumerate(NAMES)])
    write_csv(folder / "target.csv", ["mail"], [[x] for x in MAILS])
    truth = [[f" {NAMES[a]}", f"{MAILS[b]}\u00a0"] for a, b in TRUE.items()]
    write_csv(folder / "ground_truth.csv", ["source_value", "target_value"], truth)
    description = {
        "kind": "one table split",
        "source_key": "column 1: name",
        "target_key": "mail",
        "relations": {"initials": 4},
    }
    (folder / "case.json").write_text(json.dumps(description))
    return folder


def test_a_case_is_read_and_its_values_are_cleaned(case_folder):
    case = read_case(case_folder)
    assert case.truth == {((NAMES[a],), MAILS[b]) for a, b in TRUE.items()}
    assert (case.source_columns, case.target_column, case.by_rule) == (("#1",), "mail", True)
    assert case.source_keys == [(name,) for name in NAMES]
    assert case.target_values == MAILS
    assert case.places() == ([1], 0)


@pytest.mark.parametrize("named", [True, False])
def test_what_pexeso_joins_in_a_case_is_scored(case_folder, named):
    result = learned(read_case(case_folder), named=named)
    assert (result["precision"], result["recall"], result["f"]) == (1.0, 1.0, 1.0)
    assert result["f_as_told"] == 1.0
    assert result["kinds"] == {"program": 4}
    assert (result["columns"], result["key_column"]) == (["name"], "mail")
    assert '"name"' in result["program"]


def test_keys_of_several_columns_are_tuples_and_a_case_without_truth_is_refused(case_folder):
    description = json.loads((case_folder / "case.json").read_text())
    description["source_key"] = ["n", "name"]
    (case_folder / "case.json").write_text(json.dumps(description))
    head = ["n", "name", "target_value"]
    write_csv(case_folder / "ground_truth.csv", head, [["0", NAMES[0], MAILS[2]]])
    case = read_case(case_folder)
    assert case.truth == {(("0", NAMES[0]), MAILS[2])}
    assert case.source_texts[1] == "1 Maureen Paluzzi"
    write_csv(case_folder / "ground_truth.csv", head, [["0", NAMES[0], " "]])
    with pytest.raises(InputError, match="no true pair"):
        read_case(case_folder)


def test_scores_of_pairs_are_those_of_a_hand_made_example():
    truth = {("a", 1), ("b", 2), ("c", 3), ("d", 4)}
    scores = score({("a", 1), ("b", 3)}, truth)
    assert scores == {"precision": 0.5, "recall": 0.25, "f": pytest.approx(1 / 3), "joined": 2}
    nothing = score(set(), truth)
    whole = score(truth, truth)
    # Nothing joined: no precision, and 0 for the others.
    assert means([scores, nothing, whole]) == {
        "precision": 0.75,
        "recall": pytest.approx(1.25 / 3),
        "f": pytest.approx(4 / 9),
        "solved": 1,
        "cases": 3,
    }


def test_substrings_join_where_the_longest_is_unique():
    assert by_substring(["Abba live", "Queen"], ["ABBA", "live", "Queens"]) == {(1, 2)}
    assert by_substring(["Abba live"], ["ABBA", "lives"]) == {(0, 0)}
    assert by_substring(["xy"], ["z"]) == set()


def test_rare_pieces_join_texts_that_alone_share_one():
    sources, targets = ["alpha one", "beta one", "gamma"], ["ALPHA-1", "beta one!", "delta"]
    assert by_rare_pieces(sources, targets) == {(0, 0), (1, 1)}


def test_the_default_model_joins_the_nearest_value():
    sources = ["Boston Red Sox", "Chicago Cubs", "nothing alike"]
    assert by_default_model(sources, ["Cubs", "Red Sox", "Braves"]) == {(0, 1), (1, 0)}


def plain_similarity(name, left, right):
    common, smaller = len(left & right), min(len(left), len(right))
    if name == "intersection":
        return Fraction(common)
    below = {"Jaccard": len(left | right), "max-inclusion": smaller}.get(name)
    if name == "Dice":
        return Fraction(2 * common, max(len(left) + len(right), 1))
    return Fraction(common, max(below, 1))


def plain_best_fuzzy(sources, targets, truth, n_true):
    """All configurations one by one, with sets and fractions."""
    best = counted(0, 0, n_true)
    for tokeniser, tokens in TOKENISERS.items():
        left, right = ([set(tokens(x)) for x in side] for side in (sources, targets))
        for name in SIMILARITIES:
            for step in STEPS:
                threshold = Fraction(step) if name == "intersection" else Fraction(step, 10)
                joined = set()
                for at, one in enumerate(left):
                    ranked = [
                        (
                            plain_similarity(name, one, other),
                            plain_similarity("Jaccard", one, other),
                            -place,
                        )
                        for place, other in enumerate(right)
                    ]
                    highest = max(ranked, default=(Fraction(0), 0, 0))
                    if highest[0] >= threshold:
                        joined.add((at, -highest[2]))
                scores = counted(len(joined & truth), len(joined), n_true)
                if scores["f"] > best["f"]:
                    chosen = {"tokeniser": tokeniser, "similarity": name}
                    best = {**scores, **chosen, "threshold": float(threshold)}
    return best


@pytest.mark.parametrize("seed", range(12))
def test_the_fuzzy_oracle_is_that_of_plain_sets_and_fractions(seed):
    drawn = random.Random(seed)
    words = ["Ann", "ann", "Bo", "bob", "Lee", "lee", "x", "de la", "O'Neil", ""]

    def texts(n):
        return list(dict.fromkeys(
            drawn.choice([" ", "-", ", "]).join(drawn.choices(words, k=3)) for _ in range(n)
        ))  # fmt: skip

    sources, targets = texts(drawn.randrange(1, 9)), texts(drawn.randrange(1, 9))
    truth = {
        (at, drawn.randrange(len(targets))) for at in range(len(sources)) if drawn.random() < 0.7
    }
    n_true = len(truth) + 1
    best_join = best_fuzzy_join(sources, targets, truth, n_true)
    assert best_join == plain_best_fuzzy(sources, targets, truth, n_true)
    if truth:
        assert best_join["f"] > 0 or "tokeniser" not in best_join


@needs_cases
def test_all_shared_cases_are_read():
    with shared_cases() as cases:
        assert len(cases) == 64
        assert sum(case.by_rule for case in cases) == 43
        assert sum(len(case.source_columns) > 1 for case in cases) == 3
        for case in cases:
            keys, values = zip(*case.truth, strict=True)
            assert set(keys) <= set(case.source_keys), case.name
            assert set(values) <= set(case.target_values), case.name


@needs_cases
def test_the_command_measures_cases_by_every_method(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    arguments = ["transform", "cases", "--only", "203-149-c2", "--write"]
    done = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    result = json.loads((tmp_path / "transform" / "cases.json").read_text())
    [row] = result["cases"]
    assert list(row["methods"]) == list(METHODS)
    assert row["group"] == "entities"
    assert list(result["means"]["string rules"]) == []
    assert set(result["means"]["entities"]) == set(METHODS)
    assert row["methods"]["best fuzzy"]["f"] >= row["methods"]["equality"]["f"]
    assert means_table(result) in done.output
    assert {"machine", "origin"} <= set(result)
    assert result["options"]["only"] == "203-149-c2"


@needs_cases
def test_a_rule_is_learned_and_rivals_join_what_they_can():
    methods = ("named", *RIVALS, "best fuzzy")
    result = measured_cases(only="baseball-first-last-to-last-comma-first", methods=methods)
    own = result["cases"][0]["methods"]
    assert own["named"]["f"] == 1.0
    assert own["equality"]["f"] == 0.0
    assert result["means"]["string rules"]["named"]["solved"] == 1
