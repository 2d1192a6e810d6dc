"""The public names: listed, sorted, and really there."""

import ast
import inspect
from functools import cached_property
from pathlib import Path

import pytest

import pexeso
import pexeso.errors

ERRORS = {name for name, one in vars(pexeso.errors).items() if inspect.isclass(one)}


def names_for_editors() -> set[str]:
    """Return the names that `if TYPE_CHECKING` imports, for editors and type checkers."""
    tree = ast.parse(Path(pexeso.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    return {alias.name for line in block.body for alias in line.names}


def test_the_list_is_sorted_and_has_no_repeats():
    assert sorted(set(pexeso.__all__)) == pexeso.__all__


def test_the_list_is_what_is_exposed():
    assert set(pexeso.__all__) == {*pexeso._HOME_OF, *ERRORS, "__version__"}
    assert set(pexeso.__all__) <= set(dir(pexeso))


def test_editors_see_the_same_names():
    assert names_for_editors() == set(pexeso._HOME_OF)


def test_every_public_name_can_be_had_and_says_what_it_is():
    values = {name: getattr(pexeso, name) for name in pexeso._HOME_OF}
    assert {name: value.__name__ for name, value in values.items()} == {
        name: name for name in values
    }
    assert {name: value.__module__ for name, value in values.items()} == dict(pexeso._HOME_OF)
    assert [name for name, value in values.items() if not inspect.getdoc(value)] == []


def test_what_public_classes_have_says_what_it_is():
    """Docstrings are for what a user reaches; elsewhere they stand where a name says too little."""
    bare = {
        f"{name}.{member}"
        for name in pexeso._HOME_OF
        if inspect.isclass(home := getattr(pexeso, name))
        for member, value in vars(home).items()
        if isinstance(value, property | cached_property) or inspect.isfunction(value)
        if not member.startswith("_") and not inspect.getdoc(value)
    }
    assert bare == set()


def test_the_version_is_numbers():
    assert pexeso.__version__.split(".")[0].isdigit()


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'pexeso' has no attribute 'serach'"):
        _ = pexeso.serach
