"""`pexeso redundancy --html`: a page is written, and none that is there is replaced unasked."""

import pytest


@pytest.mark.usefixtures("spark")
def test_a_page_is_written_and_not_replaced_unasked(run, fail, tmp_path):
    lake, costs, page = tmp_path / "lake", tmp_path / "costs.toml", tmp_path / "page.html"
    lake.mkdir()
    costs.write_text("accesses = 0\n")
    (lake / "all.csv").write_text("id,city\n1,Oslo\n2,Rome\n3,Bern\n")
    (lake / "<b>cities.csv").write_text("city\nOslo\nRome\nBern\n")
    done = run("redundancy", lake, "--costs", costs, "--html", page)
    assert done.exit_code == 0, done.output
    assert f"Page for the browser: '{page}'" in done.stderr
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert text.endswith("</html>")
    assert "<title>&lt;b&gt;cities.csv is rebuilt from all.csv</title>" in text
    assert "<code>SELECT `city` FROM `all.csv`</code>" in text
    assert "<b>cities" not in text

    page.write_text("mine")
    assert "is there already" in fail(1, "redundancy", lake, "--html", page)
    assert page.read_text() == "mine"
