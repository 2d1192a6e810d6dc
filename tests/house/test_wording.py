"""Words that are not to come back: the standard ones stand in docs/reference/glossary.md."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
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


def pages() -> list[Path]:
    done = subprocess.run(
        ["git", "ls-files", "-z", "*.py", "*.md", "*.ipynb"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip("not a git checkout, so there is no list of tracked files")
    return [
        ROOT / name for name in done.stdout.split("\0") if name and not name.startswith(NOT_HELD)
    ]


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
