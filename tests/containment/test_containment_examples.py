"""The examples of docstrings."""

import doctest
import importlib
import pkgutil

import pytest

import pexeso.containment

NAMES = [module.name for module in pkgutil.iter_modules(pexeso.containment.__path__)]


@pytest.mark.parametrize("name", NAMES)
def test_examples_give_what_they_say(name):
    module = importlib.import_module(f"pexeso.containment.{name}")
    assert doctest.testmod(module).failed == 0


def test_the_package_says_which_module_is_which_part():
    assert [name for name in NAMES if f"`{name}`" not in pexeso.containment.__doc__] == []
