"""`docs/reference/python.md` names everything public, with the signatures that the code has."""

import dataclasses
import inspect
import re

import pytest
from doc_pages import ROOT, headings

import pexeso
from pexeso import errors, options
from pexeso.composite.results import CompositeMatch
from pexeso.joins.enrichment.gathering import EnrichmentRules
from pexeso.registry import choices
from pexeso.results.matches import Pair

PAGE = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
CLASSES = (
    pexeso.Index, pexeso.SearchResult, pexeso.Match, CompositeMatch, pexeso.TokenSearchResult,
    pexeso.TokenMatch, pexeso.CombinedResult, pexeso.CombinedMatch, pexeso.FoundKeys,
    pexeso.CandidateKey, pexeso.Redundancy, pexeso.PlanCheck, pexeso.TransformJoin,
    pexeso.TransformMatch, pexeso.TransformSearchResult, pexeso.AcquisitionPlan,
    pexeso.AcquisitionResult, pexeso.Clusters, pexeso.ColumnGraph, pexeso.JoinChecks,
)  # fmt: skip
SHOWN_FIELDS = (
    pexeso.ColumnRules, pexeso.Normaliser, EnrichmentRules, options.BuildOptions,
    options.SearchOptions, pexeso.Match, pexeso.TokenMatch, pexeso.CombinedMatch, Pair,
)  # fmt: skip


def test_every_part_of_an_index_is_named():
    row = next(line for line in PAGE.splitlines() if line.startswith("| `parts` | `()`"))
    for word in choices():
        assert f"`{word}`" in row
        assert f'``"{word}"``' in (options.BuildOptions.__doc__ or "")


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("pexeso.verify_plan", "InputError"),
        ("pexeso.apply_plan", "InputError"),
        ("pexeso.undo_plan", "InputError"),
        ("Index.tune", "TableReadError"),
    ],
)
def test_errors_of_files_that_are_not_there_are_listed(name, error, small_index, tmp_path):
    one, _, function = name.rpartition(".")
    home = pexeso if one == "pexeso" else pexeso.open_index(small_index)
    with pytest.raises(getattr(errors, error)):
        getattr(home, function)(tmp_path / "none.json")
    section = PAGE.partition(f"### `{name}(")[2].partition("\n### ")[0]
    listed = (inspect.getdoc(getattr(home, function)) or "").partition("Raises\n")[2]
    assert f"`{error}`" in section
    assert error in listed


def test_parts_are_all_but_semantic_search(small_index):
    assert pexeso.open_index(small_index).parts == ("overlap", "containment")
    assert "besides semantic search" in (pexeso.Index.parts.__doc__ or "")


def signature(name: str, function: object) -> str:
    """Return a call without annotations, texts in double quotes, without `self`."""
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name != "self"
    ]
    return f"{name}{inspect.Signature(parameters)}".replace("'", '"')


def methods(one: type) -> dict[str, object]:
    """Return the public methods of a class, including those of project base classes.

    The methods that a sequence type brings are known and left out.
    """
    ours = [vars(base) for base in reversed(one.__mro__) if base.__module__.startswith("pexeso.")]
    members = {name: value for attributes in ours for name, value in attributes.items()}
    return {
        name: value
        for name, value in members.items()
        if not name.startswith("_") and inspect.isfunction(value)
    }


FUNCTIONS = [
    signature("pexeso.build_index", pexeso.build_index),
    *(
        signature(f"pexeso.{name}", getattr(pexeso, name))
        for name in (
            "cluster", "open_index", "enrich", "enrich_from", "select_features", "search_combined",
            "find_keys", "find_redundancy", "fuzzy_join", "learn_transformation", "record_join",
            "verify", "verify_plan", "apply_plan", "undo_plan", "read_judgements",
            "record_judgements", "set_verbosity",
        )
    ),
    *(
        signature(f"{one.__name__}.{name}", method)
        for one in CLASSES
        for name, method in methods(one).items()
    ),
]  # fmt: skip


@pytest.mark.parametrize("call", FUNCTIONS)
def test_every_call_has_an_entry_with_its_signature(call):
    assert f"`{call}`" in headings(PAGE)


def test_no_entry_is_of_something_that_is_not_there():
    entries = [heading.strip("`") for heading in headings(PAGE) if "(" in heading]
    assert sorted(entries) == sorted(FUNCTIONS)


@pytest.mark.parametrize("name", sorted(set(pexeso.__all__)))
def test_every_public_name_is_there(name):
    assert re.search(rf"`(pexeso\.)?{re.escape(name)}[`(]", PAGE)


@pytest.mark.parametrize("one", SHOWN_FIELDS, ids=lambda one: one.__name__)
def test_every_field_is_there_with_its_default(one):
    for field in dataclasses.fields(one):
        if field.name.startswith("_"):
            continue
        assert f"| `{field.name}` |" in PAGE, field.name
        if isinstance(field.default, str | int | float) and not isinstance(field.default, bool):
            row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{field.name}` |"))
            shown = f"{field.default:,}" if isinstance(field.default, int) else str(field.default)
            assert shown in row, field.name


def test_the_page_draws_the_tree_of_errors():
    drawn = inspect.cleandoc(errors.__doc__)
    tree = [
        line.strip()
        for line in drawn.splitlines()
        if re.search(r"\w+Error\b", line) and "─" in line
    ]
    assert tree
    assert all(re.search(r"(\w+Error)", line).group(1) in PAGE for line in tree)
