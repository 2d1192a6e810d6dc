"""Packages that are refused for a while."""

import importlib.util
import sys

import pytest

from pexeso.runtime.refusing import refusing


def test_packages_are_missing_and_then_there_again(tmp_path, monkeypatch):
    for name in ("refused_one", "refused_other"):
        (tmp_path / f"{name}.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    with refusing("refused_one", "refused_other"):
        for name in ("refused_one", "refused_other"):
            with pytest.raises(ModuleNotFoundError, match=f"{name} is not looked for now"):
                importlib.import_module(name)
        import ast  # others are not refused  # noqa: F401
    assert importlib.util.find_spec("refused_one") is not None
    importlib.import_module("refused_other")
    del sys.modules["refused_other"]


def test_it_ends_where_the_block_fails():
    before = list(sys.meta_path)
    with pytest.raises(ValueError, match="inside"), refusing("refused_one"):
        raise ValueError("inside")
    assert sys.meta_path == before
