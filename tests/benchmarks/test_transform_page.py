"""The page shows the results of the transformation benchmark that are kept."""

import pytest

from benchmarks.transform import page
from benchmarks.transform.page import NOT_MEASURED, PAGE, PARTS, kept_results, rendered
from benchmarks.transform.scores import counted
from benchmarks.transform.tables import unsolved_table
from pexeso.errors import InputError


def test_the_page_shows_the_results_that_are_kept():
    text = PAGE.read_text(encoding="utf-8")
    results = kept_results()
    assert None not in results.values()
    assert rendered(text, results) == text, (
        "write it anew: python -m benchmarks transform --write --write-docs"
    )
    for name in PARTS:
        assert f"<!-- transform: {name} -->" in text


def test_parts_are_replaced_and_the_rest_stays(tmp_path, monkeypatch):
    text = "# T\n<!-- transform: means -->\nold\n<!-- end -->\nkept\n"
    assert rendered(text, {}) == text.replace("\nold\n", f"\n\n{NOT_MEASURED}\n\n")
    own = {**counted(1, 2, 2), "solved": 0, "cases": 1, "seconds": 1.0}
    new = rendered(text, {"cases": {"means": {"entities": {"equality": own}}}})
    assert "| entities | equality | .500 | .500 | .500 | 0 of 1 | 1.0 |" in new
    assert new.startswith("# T\n<!-- transform: means -->\n\n| cases |")
    assert new.endswith("|\n\n<!-- end -->\nkept\n")
    with pytest.raises(InputError, match="a part 'nonsense'"):
        rendered(text.replace("means", "nonsense"), {})
    path = tmp_path / "page.md"
    path.write_text(text)
    monkeypatch.setattr(page, "PAGE", path)
    monkeypatch.setattr(page, "kept_results", dict)
    page.write_page()
    assert path.read_text() == rendered(text, {})


def test_only_rule_cases_that_are_not_solved_are_listed():
    def case(name, group, f):
        return {"case": name, "group": group, "methods": {"named": {"f": f}, "equality": {"f": 0}}}

    rows = [case("a", "string rules", 0.95), case("b", "string rules", 0.94)]
    lines = unsolved_table({"cases": [*rows, case("c", "entities", 0.1)]}).splitlines()
    assert lines[2:] == ["| b | .940 | .000 |"]
