"""Tables of the paper's experiments: what is written is what the results hold."""

import pytest

from benchmarks.freshness import RESULTS
from benchmarks.origin import ROOT
from benchmarks.paper_tables import KINDS, written
from benchmarks.report import read_result
from pexeso.errors import InputError

TAU = "swdc/sweep-published-tau_50d-x0.01_pexeso+pexeso-published3+pexeso_h-published3+ept_q5_d0.06_j0.6_r1_s0_cpu_t1.json"  # noqa: E501


def test_every_kind_of_table_is_in_the_page_of_benchmarks():
    text = (ROOT / "docs" / "explanation" / "benchmarks.md").read_text(encoding="utf-8")
    assert [kind for kind in KINDS if f"<!-- table: {kind} " not in text] == []


def test_a_sweep_has_a_line_for_each_algorithm_and_a_column_for_each_value():
    text = written(f"before\n<!-- table: sweep {TAU} -->\nold\n<!-- end -->\nafter\n")
    lines = [line for line in text.split("\n") if line.startswith("| ")]
    assert lines[0] == "| `swdc` 1/100, by `max_distance` | 2% | 4% | 6% | 8% |"
    rows = read_result(RESULTS / TAU)["rows"]
    published = [row for row in rows if row["algorithm"] == "pexeso:published3"]
    (line,) = [line for line in lines if "pexeso:published3" in line and "_h" not in line]
    shown = [float(cell.split()[0]) for cell in line.split(" | ")[1:]]
    exact = [row["median_processor_seconds"] * 1e3 for row in published]
    assert shown == pytest.approx(exact, rel=0.06)
    assert text.startswith("before\n<!-- table: sweep")
    assert text.endswith("<!-- end -->\nafter\n")
    assert "old" not in text
    assert written(text) == text


def test_what_is_not_there_is_refused():
    with pytest.raises(InputError, match=r"Kinds of tables are .*sweep\. Got 'other' instead\.$"):
        written("<!-- table: other a.json -->\n<!-- end -->")
    with pytest.raises(InputError, match=r"names 'swdc/none\.json', and there is no such result"):
        written("<!-- table: sweep swdc/none.json -->\n<!-- end -->")
