"""Every example in a docstring is run."""

import doctest
import importlib
import pkgutil

import embed
import partition
import pexeso

PACKAGES = (pexeso, embed, partition)


def test_examples_in_docstrings_show_what_happens():
    names = [
        module.name
        for package in PACKAGES
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    tried, failed = 0, []
    for name in names:
        if name.endswith("__main__"):
            continue
        outcome = doctest.testmod(importlib.import_module(name))
        tried += outcome.attempted
        if outcome.failed:
            failed.append(name)
    assert failed == []
    assert tried > 100
