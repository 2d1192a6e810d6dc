"""Every example in a docstring is run."""

import doctest
import importlib
from itertools import chain
from pathlib import Path

import embed
import partition
import pexeso

PACKAGES = (pexeso, embed, partition)


def modules_with_examples(package):
    """Yield the names of modules with a prompt: looking through the others takes longer."""
    [folder] = map(Path, package.__path__)
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        if path.stem != "__main__" and ">>>" in path.read_text(encoding="utf-8"):
            yield ".".join(parts[:-1] if path.stem == "__init__" else parts)


def test_examples_in_docstrings_show_what_happens(spark):
    """One begins a session, and is given that of the tests."""
    tried, failed = 0, []
    for name in sorted(chain(*map(modules_with_examples, PACKAGES))):
        outcome = doctest.testmod(importlib.import_module(name))
        tried += outcome.attempted
        if outcome.failed:
            failed.append(name)
    assert failed == []
    assert tried > 100
