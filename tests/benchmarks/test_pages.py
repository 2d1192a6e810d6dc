"""The tables of the documentation are those of the result files."""

import doctest
import importlib
import re

import pytest

from benchmarks.origin import ROOT
from benchmarks.pages import KINDS, pages, with_tables
from benchmarks.report import RESULTS, read_result

TAU = "swdc/sweep-published-tau_50d-x0.1_pexeso+pexeso-published3+pexeso_h-published3+ept_q5_d0.06_j0.6_r1_s0_cpu_t1.json"  # noqa: E501


TEXTS = {path: path.read_text(encoding="utf-8") for path in pages()}
NAMED = {
    name
    for text in TEXTS.values()
    for names in re.findall(r"<!-- table: \S+ (.+?) -->", text)
    for name in names.split()
}
SHOWN_ELSEWHERE = {"enrichment/result.json", "engines.json", "install.json"}
"""In words, by the pages of what they measure."""


def test_examples_in_docstrings_show_what_happens():
    tried = 0
    for path in (ROOT / "benchmarks").rglob("*.py"):
        if ">>>" in path.read_text(encoding="utf-8"):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            outcome = doctest.testmod(importlib.import_module(name))
            assert outcome.failed == 0, name
            tried += outcome.attempted
    assert tried > 20


@pytest.mark.parametrize("page", TEXTS, ids=lambda path: path.name)
def test_tables_of_the_documentation_are_those_of_the_results(page):
    assert with_tables(TEXTS[page]) == TEXTS[page]


def test_every_kind_and_every_result_is_shown():
    shown = {kind for text in TEXTS.values() for kind in re.findall(r"<!-- table: (\S+) ", text)}
    assert shown == set(KINDS)
    stored = {path.relative_to(RESULTS).as_posix() for path in RESULTS.rglob("*.json")}
    assert stored == NAMED | SHOWN_ELSEWHERE


def test_every_result_names_commit_date_and_machine():
    for path in RESULTS.rglob("*.json"):
        result = read_result(path)
        assert re.fullmatch(r"[0-9a-f]{7,40}\+?", result["origin"]["commit"]), path
        assert re.match(r"\d{4}-\d\d-\d\dT", result["origin"]["date"]), path
        assert {"processor", "cores", "device"} <= result["machine"].keys(), path


def test_a_sweep_has_a_line_for_each_algorithm_and_a_column_for_each_value():
    text = with_tables(f"before\n<!-- table: sweep {TAU} -->\nold\n<!-- end -->\nafter\n")
    lines = [line for line in text.split("\n") if line.startswith("| ")]
    assert lines[0] == "| `swdc` 1/10, by `max_distance` | 2% | 4% | 6% | 8% |"
    rows = read_result(RESULTS / TAU)["rows"]
    published = [row for row in rows if row["algorithm"] == "pexeso:published3"]
    (line,) = [line for line in lines if "pexeso:published3" in line and "_h" not in line]
    shown = [float(cell.split()[0]) for cell in line.split(" | ")[1:]]
    exact = [row["median_processor_seconds"] * 1e3 for row in published]
    assert shown == pytest.approx(exact, rel=0.06)
    assert text.startswith("before\n<!-- table: sweep")
    assert text.endswith("<!-- end -->\nafter\n")
    assert "old" not in text
    assert with_tables(text) == text


def test_redundant_tables_and_plans_have_a_line_for_each_lake_and_number_of_tables():
    text = with_tables("<!-- table: redundancy redundancy/derived-324MB.json -->\n<!-- end -->")
    result = read_result(RESULTS / "redundancy" / "derived-324MB.json")
    (line,) = [line for line in text.split("\n") if line.startswith("| derived")]
    lake, tables, _, contained, *seconds, precision = line.strip("| ").split(" | ")
    assert (lake, int(tables), int(contained)) == ("derived", result["tables"], result["contained"])
    ways = ("exact", "plan", "published")
    exact = [result[way]["median_seconds"] for way in ways]
    assert [float(cell) for cell in seconds] == pytest.approx(exact, abs=0.05)
    assert precision == f"{result['published']['precision']:.0%}"

    text = with_tables("<!-- table: plans redundancy/plans.json -->\n<!-- end -->")
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
    text = with_tables("<!-- table: lexical lexical/speed.json -->\n<!-- end -->")
    for rows in result["index"]["threads"].values():
        for row in rows:
            assert f"| {row['max_distance']} | {row['microseconds_a_value']} µs | " in text
    for lake in result["planted"].values():
        assert f" {lake['values']:,} values, {lake['words']:,} words |" in text
    text = with_tables("<!-- table: sparse lexical/sparse.json -->\n<!-- end -->")
    for row in read_result(RESULTS / "lexical" / "sparse.json")["measured"]:
        times = row["microseconds_a_value"]
        assert f"| {row['max_distance']} | {times['search']:,} µs | {times['scipy']:,} µs (" in text
