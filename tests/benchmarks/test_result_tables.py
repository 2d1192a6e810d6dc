"""Tables of experiments: what is written is what the results hold."""

import pytest

from benchmarks.freshness import RESULTS
from benchmarks.origin import ROOT
from benchmarks.report import read_result
from benchmarks.result_tables import KINDS, written
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


def test_redundant_tables_and_plans_have_a_line_for_each_lake_and_number_of_tables():
    text = written("<!-- table: redundancy redundancy/derived-324MB.json -->\n<!-- end -->")
    result = read_result(RESULTS / "redundancy" / "derived-324MB.json")
    (line,) = [line for line in text.split("\n") if line.startswith("| derived")]
    lake, tables, _, contained, *seconds, precision = line.strip("| ").split(" | ")
    assert (lake, int(tables), int(contained)) == ("derived", result["tables"], result["contained"])
    ways = ("exact", "plan", "published")
    exact = [result[way]["median_seconds"] for way in ways]
    assert [float(cell) for cell in seconds] == pytest.approx(exact, abs=0.05)
    assert precision == f"{result['published']['precision']:.0%}"

    text = written("<!-- table: plans redundancy/plans.json -->\n<!-- end -->")
    solved = read_result(RESULTS / "redundancy" / "plans.json")["solver"]
    head, _, *lines = [line for line in text.split("\n") if line.startswith("| ")]
    graphs = head.strip("| ").split(" | ")[1:]
    assert graphs[-1] == "versions of files"
    (last,) = [r for r in solved if r["tables"] == 10_000 and r["graph"] == graphs[0]]
    first = lines[-1].strip("| ").split(" | ")
    assert first[0] == "10,000"
    assert float(first[1]) == pytest.approx(sorted(last["seconds"])[1], abs=0.005)


def test_a_table_that_a_benchmark_writes_itself_is_that_of_one_result():
    result = read_result(RESULTS / "lexical" / "speed.json")
    text = written("<!-- table: lexical lexical/speed.json -->\n<!-- end -->")
    for rows in result["index"]["threads"].values():
        for row in rows:
            assert f"| {row['max_distance']} | {row['microseconds_a_value']} µs | " in text
    for lake in result["planted"].values():
        assert f" {lake['values']:,} values, {lake['words']:,} words |" in text
    text = written("<!-- table: sparse lexical/sparse.json -->\n<!-- end -->")
    for row in read_result(RESULTS / "lexical" / "sparse.json")["measured"]:
        times = row["microseconds_a_value"]
        assert f"| {row['max_distance']} | {times['search']:,} µs | {times['scipy']:,} µs (" in text
