"""The tables of the documentation are those of the result files."""

import doctest
import importlib
import re

import pytest

from benchmarks.origin import ROOT
from benchmarks.pages import KINDS, pages, with_tables
from benchmarks.report import RESULTS, read_result

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
