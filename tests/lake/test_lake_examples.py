import doctest
import importlib
import pkgutil

import pytest

import pexeso.lake

MODULES = [found.name for found in pkgutil.iter_modules(pexeso.lake.__path__, "pexeso.lake.")]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_hold(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    modules = [importlib.import_module(name) for name in MODULES]
    assert sum(bool(found.examples) for module in modules for found in finder.find(module)) >= 12
