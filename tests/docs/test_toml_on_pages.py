"""Tests that files of TOML on the page of redundant tables are read by what they are for."""

import re
import textwrap

from doc_pages import ROOT

from pexeso.redundancy.planning import read_costs
from pexeso.redundancy.rebuilds import read_statements
from pexeso.redundancy.schema_tokens import read_synonyms

PAGE = ROOT / "docs" / "how-to" / "redundant-tables.md"
READERS = {"[synonyms]": read_synonyms, "[[rebuild]]": read_statements}


def test_files_on_the_page_are_read(tmp_path):
    blocks = re.findall(r"^( *)```toml[^\n]*\n(.*?)^\1```$", PAGE.read_text("utf-8"), re.M | re.S)
    texts = [textwrap.dedent(text) for _, text in blocks]
    for text in texts:
        (tmp_path / "file.toml").write_text(text, encoding="utf-8")
        assert READERS.get(text.partition("\n")[0], read_costs)(tmp_path / "file.toml")
    assert {text.partition("\n")[0] for text in texts} > READERS.keys()
