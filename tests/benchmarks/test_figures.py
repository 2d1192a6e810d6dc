"""Every time and ratio that a page tells has a result behind it, or a reason why not."""

import json

import pytest

from benchmarks.figures import (
    Block,
    blocks,
    figures_of,
    files_of,
    not_found,
    pages,
    rendered,
    write_pages,
)
from benchmarks.origin import ROOT
from pexeso.errors import InputError

LARGEST = "### The largest scales (Table VII)"
FASTTEXT = "### With fastText, and with parts for equal text"
MATE = "### Keys of several columns (MATE)"
TABLE_VII = "### Distances and joinabilities (Table VII, Figure 6)"

# Sections whose times or ratios are in no stored result: (page, heading): why.
NO_RESULT = {
    ("benchmarks.md", "## How it is measured"): "a pause that is set, not measured",
    ("effectiveness.md", "## The order of what is found"): "a factor that is set",
    ("how-search-works.md", "## The order of what is found"): "a factor that is set",
    ("messy-tables.md", "## What is read"): "a limit that is set",
    ("messy-tables.md", "## Aliases of your own"): "a limit that is set",
    ("normalisation.md", "### periods"): "a decade",
    ("normalisation.md", "### ordinals"): "an ordinal number",
    ("python.md", "### `Index.explain_composite"): "a factor that is set",
}
# Figures of sections with results that these do not hold as they are: (heading, figure): why.
NOT_AS_IT_IS = {
    ("## Figures", "100 times"): "an aim",
    ("## Figures", "54 times"): "a figure of the log, on another machine",
    ("## The default model", "40 times"): "an aim",
    ("## Redundant tables", "9.7 times"): "a quotient of two rows of the table",
    ("## Redundant tables", "10.1 times"): "a quotient of two rows of the table",
    ("## Data acquisition", "50 times"): "a quotient of two results",
    ("## Data acquisition", "20,000 times"): "a figure of the paper",
    ("### Held-back targets", "36 s"): "a sum over the targets, the mean of five splits",
    ("### Partitions (Figure 7b)", "1.6 times"): "a figure of the paper",
    ("### Beside exact sparse products", "24 times"): "a quotient of two columns of the table",
    ("## Disk", "3.5 times"): "arithmetic",
    ("## Partitions", "2.8 times"): "the reciprocal of a ratio",
    ("## Searching a billion columns", "17 s"): "arithmetic",
    (FASTTEXT, "4.6 µs"): "the reciprocal of values a second",
    (FASTTEXT, "2.6 µs"): "the reciprocal of values a second",
    (FASTTEXT, "3.0 µs"): "a quotient of seconds and pairs",
    (MATE, "1,000 times"): "a figure of the paper",
    (MATE, "60 times"): "a figure of the paper",
    (LARGEST, "1.9 times"): "a quotient of two figures",
    (LARGEST, "3.6 times"): "a quotient of two rows of the table",
    (LARGEST, "1,300 times"): "a quotient of two rows of the table",
    (LARGEST, "1,900 times"): "a quotient of two rows of the table",
    **{(LARGEST, figure): "a figure of the paper" for figure in ("12.8 s", "51.8 s", "603 s")},
}
# Sections whose ratios are quotients of processor times or counts, which their results hold.
QUOTIENTS = {
    "### Pivots and levels (Table VI)",
    TABLE_VII,
    "### Choice of pivots (Figure 7a)",
    "### Columns, rows and dimensions (Figures 9 and 10)",
    "## What each filter is worth",
}

PAGES = [(page, block) for page in pages() for block in blocks(page.read_text(encoding="utf-8"))]


def reason_of(page, heading):
    return [key for key in NO_RESULT if key[0] == page.name and heading.startswith(key[1])]


def test_every_figure_has_a_result_or_a_reason_why_not():
    assert len(PAGES) > 30
    bare = [
        (page.name, block.heading, block.text[:60])
        for page, block in PAGES
        if not block.results and not reason_of(page, block.heading)
    ]
    assert bare == [], "name the results in the section: <!-- figures: PATTERN ... -->"


def test_every_figure_is_in_the_results_of_its_section():
    wrong = [
        (page.name, block.heading, figure)
        for page, block in PAGES
        if block.results
        for figure in not_found(block)
        if (block.heading, figure) not in NOT_AS_IT_IS
        and not (block.heading in QUOTIENTS and figure.endswith((" x", " times")))
    ]
    assert wrong == []


def test_no_exception_is_left_over():
    bare = [(page, block.heading) for page, block in PAGES if not block.results]
    used = {key for page, heading in bare for key in reason_of(page, heading)}
    assert set(NO_RESULT) - used == set()
    named = [block for _, block in PAGES if block.results]
    missing = {(block.heading, figure) for block in named for figure in not_found(block)}
    assert set(NOT_AS_IT_IS) - missing == set()


def test_most_wrong_figures_would_be_found():
    """A figure that is a quarter off is mostly no number of its results."""
    seen = tried = 0
    for _, block in PAGES:
        wrong = set(not_found(block)) if block.results else set()
        for number, unit in figures_of(block.text) if block.results else ():
            decimals = len(number.partition(".")[2])
            other = f"{float(number.replace(',', '')) * 1.25:.{decimals}f}"
            if f"{number} {unit}" in wrong or float(other) == float(number.replace(",", "")):
                continue
            tried += 1
            seen += bool(not_found(Block(block.heading, f"{other} {unit}", block.results)))
    assert tried > 100
    assert seen / tried > 0.7


def test_pages_say_when_their_figures_were_measured():
    for page in pages():
        text = page.read_text(encoding="utf-8")
        assert rendered(text) == text, f"{page.name}: python -m benchmarks figures"
    benchmarks = (ROOT / "docs" / "explanation" / "benchmarks.md").read_text(encoding="utf-8")
    assert benchmarks.count("\n*Measured ") >= 8


@pytest.fixture
def lab(tmp_path):
    """A page with the figures of one result."""
    page, result = tmp_path / "docs" / "a.md", tmp_path / "results" / "lexical" / "a.json"
    for path in (page, result):
        path.parent.mkdir(parents=True)
    (tmp_path / "README.md").write_text("# A\n", encoding="utf-8")
    page.write_text("# A\n\n<!-- figures: lexical/*.json -->\n\nTook 12 ms (2.5x).\n", "utf-8")
    figures = {"machine": {"date": "2026-01-02T03:04:05"}, "seconds": 0.0123, "over": {"it": 2.46}}
    result.write_text(json.dumps(figures), encoding="utf-8")
    return tmp_path


def test_a_figure_is_looked_up_as_it_is_rounded(lab):
    [block] = blocks((lab / "docs" / "a.md").read_text())
    assert figures_of(block.text) == [("12", "ms"), ("2.5", "x")]
    assert not_found(block, lab / "results") == []
    text = "13 ms, 12.3 ms, 12,300 µs, 12 s, 0.01 s, 2 times, 2.46x, 2.4x"
    wrong = Block("", text, block.results)
    assert not_found(wrong, lab / "results") == ["13 ms", "12 s", "2.4 x"]


def test_the_line_is_written_anew_with_the_result(lab):
    page = lab / "docs" / "a.md"
    assert write_pages(lab, lab / "results") == [page]
    assert (
        "-->\n*Measured 2026-01-02, before results named their code.*\n\nTook" in page.read_text()
    )
    origin = {"code": "12ab", "version": "0.2.0", "date": "2027-01-02T03:04:05+00:00"}
    (lab / "results" / "lexical" / "a.json").write_text(json.dumps({"origin": origin}), "utf-8")
    write_pages(lab, lab / "results")
    assert "-->\n*Measured 2027-01-02 with pexeso 0.2.0 (code 12ab).*\n\nTook" in page.read_text()
    assert write_pages(lab, lab / "results") == []


def test_results_that_are_not_there_are_told(lab):
    with pytest.raises(InputError, match=r"'web/none\.json'; there are none"):
        files_of(["web/none.json"], lab / "results")


def test_links_to_results_are_sources_and_code_is_no_text():
    text = "# A\n[this](../../benchmarks/results/app.json)\n\n2x\n\n```\n3x\n```\n"
    assert [(section.text, section.results) for section in blocks(text)] == [("2x", ("app.json",))]
    assert figures_of("at 1/20, ms") == []
    assert figures_of("| a, ms |\n|---|\n| 8.5 |") == [("8.5", "ms")]
    written = "# A\n<!-- measured: b -->\n2x\n<!-- end -->\n"
    assert blocks(written) == []


def test_precision_and_recall_beside_the_papers_are_those_of_the_result():
    page = (ROOT / "docs/explanation/benchmarks.md").read_text(encoding="utf-8")
    section = page.partition("### What is found (Tables IV and V)")[2].partition("\n### ")[0]
    result = json.loads((ROOT / "benchmarks/results/effectiveness/wikitables.json").read_text())
    rows = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("| `")]
    assert len(rows) == 7
    for name, *_, folded, normalised, by_meaning, by_meaning_normalised in rows:
        method = name.strip(" `")
        of_folded, of_normalised = {
            "pexeso": ("pexeso-folded", "pexeso"),
            "pexeso-pq": ("", "pexeso-pq"),
        }.get(method, (method, f"{method}-normalised"))
        for rates, recall, source in (
            (folded, by_meaning, of_folded),
            (normalised, by_meaning_normalised, of_normalised),
        ):
            figures = [text.strip() for text in (*rates.split("/"), recall) if text.strip()]
            keys = ("precision", "recall", "semantic_only_recall_at_p90")
            scores = [result["methods"][source][key] for key in keys] if source else []
            assert figures == [f"{score:.3f}".removeprefix("0") for score in scores], method
