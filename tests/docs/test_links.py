"""Links lead somewhere, pages can be reached from the first one of the docs, tables have a head."""

import re
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest
from doc_pages import PAGES, ROOT, anchors, links, prose

TEXTS = [
    *PAGES,
    ROOT / "CONTRIBUTING.md",
    ROOT / "benchmarks" / "EXPERIMENTS.md",
    ROOT / "examples" / "README.md",
    *sorted((ROOT / "examples").glob("*.ipynb")),
]


def relative(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def targets(page: Path) -> list[tuple[str, Path, str]]:
    """Return each link of a page as written, the file it leads to, and the name of the heading."""
    page_targets = []
    for link in links(page.read_text(encoding="utf-8")):
        file, _, anchor = unquote(link).partition("#")
        page_targets.append((link, (page.parent / file).resolve() if file else page, anchor))
    return page_targets


@pytest.mark.parametrize("page", TEXTS, ids=relative)
def test_links_lead_somewhere(page):
    for link, file, anchor in targets(page):
        assert file.exists(), f"{relative(page)}: {link}"
        assert file.is_relative_to(ROOT), f"{relative(page)}: {link} leads out of the project"
        if anchor:
            assert anchor in anchors(file.read_text(encoding="utf-8")), f"{relative(page)}: {link}"


@pytest.mark.parametrize("page", TEXTS, ids=relative)
def test_rows_of_tables_follow_a_head(page):
    """Rows behind a blank line are shown as text."""
    if page.suffix == ".md":
        lines = ["", *prose(page.read_text(encoding="utf-8")).splitlines(), ""]
        for (before, row), after in zip(pairwise(lines), lines[2:], strict=False):
            if row.startswith("|") and not before.startswith("|"):
                assert re.fullmatch(r"\|[-: |]+\|", after), f"{relative(page)}: {row}"


def test_every_page_can_be_reached():
    start = ROOT / "docs" / "README.md"
    seen, pending = {start}, [start]
    while pending:
        pages = {file for _, file, _ in targets(pending.pop()) if file.suffix == ".md"} - seen
        seen |= pages
        pending += pages
    missing = [
        relative(page) for page in PAGES if page.is_relative_to(start.parent) and page not in seen
    ]
    assert missing == []


def test_the_first_page_leads_to_the_docs():
    assert ROOT / "docs" / "README.md" in {file for _, file, _ in targets(ROOT / "README.md")}
