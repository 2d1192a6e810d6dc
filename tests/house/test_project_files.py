"""The files that code hosts read: the citation, the guide, and the forms for issues."""

import re
from pathlib import Path

import pytest
import yaml

import pexeso

ROOT = Path(__file__).resolve().parent.parent.parent
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {name: citation[name] for name in ("cff-version", "type", "version", "license")} == {
        "cff-version": "1.2.0",
        "type": "software",
        "version": pexeso.__version__,
        "license": "Apache-2.0",
    }
    assert citation["authors"] == [{"name": "The pexeso authors"}]
    assert citation["title"]
    assert citation["message"]


def test_the_guide_names_files_that_exist():
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"\b(?:tests|benchmarks|docs|pexeso|examples)/[\w/.-]*\w", guide)
    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_forms_have_what_code_hosts_ask_for(form):
    content = yaml.safe_load(form.read_text(encoding="utf-8"))
    assert set(content) == {"name", "description", "body"}
    fields = [part for part in content["body"] if part["type"] != "markdown"]
    assert fields
    assert len({part["id"] for part in fields}) == len(fields)
    assert all(part["type"] in ("input", "textarea") for part in fields)
    assert all(part["attributes"]["label"] for part in fields)


def test_there_are_forms_for_bugs_and_questions():
    assert [form.stem for form in FORMS] == ["bug", "question"]
