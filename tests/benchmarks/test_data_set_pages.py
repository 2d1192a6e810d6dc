"""What pages say of the data sets that need nothing is what these are."""

import re
from pathlib import Path

import pyarrow.compute as pc
import pytest

from benchmarks.datasets import Source
from benchmarks.datasets.tables import demo_sources, number_columns, read_postings
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.normalise.rules import DEFAULT_RULES
from pexeso.options import BuildOptions

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = ("docs/explanation/benchmarks.md", "benchmarks/datasets/README.md")


def row_of(page: str, name: str) -> list[str]:
    """The cells of the first table row of a page that starts with a name."""
    text = (ROOT / page).read_text(encoding="utf-8")
    (line, *_) = re.findall(rf"^\| `{name}` \|.*$", text, re.MULTILINE)
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.fixture(scope="module")
def demo() -> tuple[str, str]:
    """Distinct values and columns of the demo lake, as pages write them."""
    with demo_sources().open() as folders:
        postings = read_postings(folders, BuildOptions().rules, Normaliser(rules=DEFAULT_RULES))
    _, names = number_columns(postings)
    return f"{len(pc.unique(postings['value'])):,}", f"{len(names):,}"


@pytest.mark.parametrize("page", PAGES)
def test_the_demo_lake_has_one_number_of_values_on_all_pages(page, demo):
    assert tuple(row_of(page, "demo")[2:4]) == demo


def test_other_pages_show_the_same_number_of_values(demo):
    values, columns = demo
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"{columns} columns and {values} distinct values" in text
    assert f"{values} distinct" in (ROOT / "docs/how-to/messy-tables.md").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize("page", PAGES)
def test_the_random_lake_is_what_pages_call_it(page):
    lake = Source("random").data_set()
    n_values, n_columns, dimensions = row_of(page, "random")[2:5]
    assert (n_values, n_columns) == (f"{lake.n_values:,}", f"{lake.n_columns:,}")
    assert dimensions in (str(lake.dimensions), "as asked")
