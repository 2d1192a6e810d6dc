"""Words that are not to come back: the standard ones stand in docs/reference/glossary.md."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tracked_files import ROOT, tracked_files

RETIRED = {
    r"\bthe rooms\b": "the packages",
    r"\bthe house\b": "the project",
    r"\bby equal texts?\b": "by equal values",
    r"\b[Ss]earch(es)? by meaning\b": "semantic search",
    r"\bsearch_every_way\b": "search_combined",
    r"\bGridOptions\b": "PartitionLayoutOptions",
    r"\bOutlook\b": "PartitionProbe",
    r"\bstrangers?\b": "unrelated neighbour",
    r"\bEqualText\w*": "TokenMatch, TokenSearchResult",
    r"[\"`]speaks (for|against) it": "evidence for it, against it",
    r"\bat_once\b": "chunk_size",
    r"\blooked = ": "probed",
    r"\b[Ww]hat (it is|they are) bad at\b": "limitations",
    r"\bspends? thought\b": "trade CPU for I/O",
    r"\b[Ff]rees? the room\b": "free the space",
    r"\bPlace\b\(": "Location",
    r'"""(Give|Tell whether|Tell which|Tell how) ': "Return",
}
NOT_HELD = ("CHANGELOG.md", "benchmarks/", "tests/", "docs/explanation/effectiveness")
"""Logs, and names of measured sets; tests say what they show."""


CATCH_ALLS = {"asked", "each", "found", "least", "most", "taken", "told"}
"""No names of variables, fields, functions and modules: the noun that it is says more."""


def names_given(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name


def pages() -> list[Path]:
    files = tracked_files("*.py", "*.md", "*.ipynb")
    return [path for path in files if not path.relative_to(ROOT).as_posix().startswith(NOT_HELD)]


def test_retired_words_do_not_come_back():
    hits = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]!r}, say {standard!r}"
        for path in pages()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for pattern, standard in RETIRED.items()
        if (match := re.search(pattern, line))
    ]
    assert hits == []


@pytest.mark.parametrize(
    "line", ["what the rooms promise", "found by equal text", '"""Give the sum."""']
)
def test_a_retired_word_is_found(line):
    assert any(re.search(pattern, line) for pattern in RETIRED)


def test_no_name_is_a_catch_all():
    paths = tracked_files("*.py")
    uses = [
        f"{path.relative_to(ROOT)}:{line}: {given}"
        for path in paths
        for line, given in names_given(ast.parse(path.read_text(encoding="utf-8")))
        if given.strip("_").lower() in CATCH_ALLS
    ]
    assert uses == []
    assert [path for path in paths if path.stem in CATCH_ALLS] == []


def test_a_catch_all_is_noticed():
    source = (
        "class Found:\n told: int\n def asked(self, most): self._taken = [each for each in most]"
    )
    names = {name.strip("_").lower() for _, name in names_given(ast.parse(source))}
    assert names - {"self"} == CATCH_ALLS - {"least"}
