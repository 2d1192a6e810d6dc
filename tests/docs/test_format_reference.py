"""`docs/reference/format.md` names every file of an index."""

import re

import pytest
from doc_pages import ROOT, prose

from pexeso.index import build_index

PAGE = ROOT / "docs" / "reference" / "format.md"


@pytest.mark.slow
def test_every_file_of_an_index_is_described(small_lake, tmp_path):
    index = build_index(
        small_lake,
        tmp_path / "lake.pexeso",
        model="lexical,hashing",
        parts=["containment", "composite", "redundancy"],
    )
    page = PAGE.read_text(encoding="utf-8")
    named = {word for span in re.findall(r"`[^`]+`", prose(page)) for word in span.split("`")}
    named |= {f"{start}{end}" for start, end in _lists(page)}
    files = {path.name for path in index.path.rglob("*") if path.is_file()}
    files = {re.sub(r"-\d{5}\.parquet$", ".parquet", name) for name in files}
    shown = page.replace("-00000.parquet", ".parquet")
    assert sorted(name for name in files if name not in named and f"/{name}" not in shown) == []


def _lists(page):
    """Yield the two halves of each name whose row gives an ending alone, such as ``_members``."""
    for row in page.splitlines():
        if start := re.match(r"\| `(\w+)_offsets\.npy`", row):
            for ending in re.findall(r"`(_\w+\.npy)`", row):
                yield start[1], ending
