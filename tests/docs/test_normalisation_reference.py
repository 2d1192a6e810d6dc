"""`docs/reference/normalisation.md` is what the rules say."""

import importlib.util

from doc_pages import ROOT


def test_the_page_is_up_to_date():
    path = ROOT / "docs" / "reference" / "write_normalisation.py"
    spec = importlib.util.spec_from_file_location("write_normalisation", path)
    writer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(writer)
    text = writer.PAGE.read_text(encoding="utf-8")
    assert text == writer.page(), "run: python docs/reference/write_normalisation.py"
