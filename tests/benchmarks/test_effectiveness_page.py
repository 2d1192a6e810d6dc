"""Results of effectiveness that are kept, the page that is written from them, and its plots."""

import json
import shlex

import pytest

from benchmarks.effectiveness import combined_study, lexical_study, model_study, score_study
from benchmarks.effectiveness.command import main
from benchmarks.effectiveness.page import PAGE, STUDIES, rendered, summary, verdict, write_page
from benchmarks.effectiveness.plots import SOURCE, fingerprint
from benchmarks.effectiveness.sets import DATA, ROOT
from benchmarks.effectiveness.stored import RESULTS, merged, store, stored_result
from benchmarks.report import read_result
from pexeso.errors import InputError

STORED = {name: stored for name in DATA if (stored := stored_result(RESULTS, name)) is not None}


def values(f1: float) -> dict[str, object]:
    rates = {"precision": 0.5, "recall": 0.5, "f1": f1, "recall_of_other_spellings": 0.1}
    tasks = {f"t{number}": rates for number in range(6)}
    own = {
        **rates,
        "intervals": {"f1": [0.1, 0.9]},
        "tasks": tasks,
        "curve": [[1.0, 0.1], [0.5, 0.5]],
    }
    return {"values": own, "measured": "2026-01-02"}


def result(**f1s: float) -> dict[str, object]:
    methods = {name.replace("_", "-"): values(f1) for name, f1 in f1s.items()}
    for name, scores in methods.items():
        if name == "pexeso":
            scores["model"] = "hashing, 8 dimensions"
    return {"data": "autofj", "tasks": 6, "methods": methods, "skipped": {"sentence": "No model."}}


def test_the_page_shows_the_stored_results():
    text = PAGE.read_text(encoding="utf-8")
    assert set(STORED) == set(DATA)
    studies = {name: read_result(RESULTS / f"{name}.json") for name in STUDIES}
    assert rendered(text, STORED, studies) == text, (
        "write it anew: python -m benchmarks.effectiveness ... --write-docs"
    )


@pytest.mark.parametrize("name", DATA)
def test_the_plots_are_those_of_the_stored_results(name):
    image = pytest.importorskip("PIL.Image")
    drawn = sorted(PAGE.with_suffix("").glob(f"{name}*.png"))
    assert drawn
    for path in drawn:
        with image.open(path) as picture:
            assert picture.text[SOURCE] == fingerprint(STORED[name]), (
                f"{path.name} was drawn from another result"
            )


START = "python -m benchmarks.effectiveness"
TEXTS = (PAGE, ROOT / "benchmarks" / "README.md")
COMMANDS = sorted(
    {
        line
        for path in TEXTS
        for line in path.read_text("utf-8").splitlines()
        if line.startswith(START)
    }
)


def test_the_commands_that_are_shown_are_understood(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "FOLDER").mkdir()
    (tmp_path / "join_pairs.tsv.gz").touch()
    assert len(COMMANDS) >= 4
    for command in COMMANDS:
        module, *arguments = shlex.split(command)[2:]
        studies = (combined_study, lexical_study, model_study, score_study)
        own = {study.__name__: study.main for study in studies}
        study_main = own.get(module, main)
        study_main.make_context(module, arguments)  # refuses options that are none


def test_measured_parts_are_replaced_and_the_rest_stays():
    text = (
        "# T\n<!-- measured: autofj -->\nold\n<!-- end -->\nkept\n<!-- measured: countries "
        "-->\n<!-- end -->\n"
    )
    new = rendered(text, {"autofj": result(equi=0.25, pexeso=0.5)})
    assert new.startswith(
        "# T\n<!-- measured: autofj -->\nMeasured 2026-01-02: 6 tasks. Model of the index: "
        "hashing, 8"
    )
    assert "| pexeso | **.500** | **.500** | **.500** | .100 to .900 | **.100** |" in new
    assert "Not measured: sentence. No model.\n<!-- end -->\nkept\n" in new
    assert new.endswith("<!-- measured: countries -->\nNot measured yet.\n<!-- end -->\n")
    assert "old" not in new
    assert rendered(new, {"autofj": result(equi=0.25, pexeso=0.5)}) == new
    with pytest.raises(InputError, match="The page has a part 'nonsense'"):
        rendered("<!-- measured: nonsense -->\n<!-- end -->", {})


def test_the_summary_says_where_pexeso_loses():
    text = summary({"autofj": result(equi=0.25, tf_idf=0.75, pexeso=0.5)})
    assert "| tf-idf | **.750** |" in text
    assert text.endswith("- autofj, values: pexeso is second in F1 (.500), behind tf-idf (.750).")
    # Sentence vectors are told, but are no method of table IV.
    first = verdict("x", {"pexeso": 0.5, "sentence": 0.9, "equi": 0.2})
    assert first == "x: pexeso is first in F1 (.500), before equi (.200)."
    normalised = verdict("x", {"pexeso": 0.5, "tf-idf-normalised": 0.6})
    assert normalised == "x: pexeso is second in F1 (.500), behind tf-idf-normalised (.600)."
    even = verdict("x", {"pexeso": 0.5001, "equi": 0.5003, "tf-idf": 0.6, "edit": 0.55})
    assert (
        even
        == "x: pexeso is third in F1 (.500), even with equi, behind tf-idf (.600) and edit (.550)."
    )


def test_some_methods_can_be_measured_anew(tmp_path):
    assert store(tmp_path, result(equi=0.25, pexeso=0.5), some=True)["methods"].keys() == {
        "equi",
        "pexeso",
    }
    kept = store(tmp_path, result(pexeso=0.75), some=True)
    assert list(kept["methods"]) == ["equi", "pexeso"]
    assert kept["methods"]["pexeso"]["values"]["f1"] == 0.75
    assert stored_result(tmp_path, "autofj") == json.loads(json.dumps(kept))
    assert store(tmp_path, result(pexeso=0.5), some=False)["methods"].keys() == {"pexeso"}
    other = {**result(pexeso=0.5), "tasks": 7}
    with pytest.raises(
        InputError, match=r"stored result of autofj is about another truth.*without --methods"
    ):
        store(tmp_path, other, some=True)


def test_a_method_that_was_skipped_is_no_longer_once_it_is_measured():
    after = merged(result(equi=0.25), {**result(sentence=0.5), "skipped": {}})
    assert (list(after["methods"]), after["skipped"]) == (["equi", "sentence"], {})


def test_the_page_and_its_plots_are_written(tmp_path):
    pytest.importorskip("matplotlib")
    store(tmp_path, result(equi=0.25, pexeso=0.5), some=False)
    page = tmp_path / "page.md"
    page.write_text("<!-- measured: summary -->\n<!-- end -->\n")
    written = write_page(page, tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in written] == [
        "page.md",
        "page/autofj-values.png",
    ]
    assert "pexeso is first" in page.read_text()
