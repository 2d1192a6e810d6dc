"""What the tests of several faces share: a table of a user, and an index to be changed."""

import shutil

import pytest


@pytest.fixture
def places(write):
    """Write a user table of five rows, one of them empty and one that is not in the lake."""
    return write("places.csv", "place,visits\nOslo,3\nrome,1\n MADRID ,2\nXyzzyx,1\n,4\n")


@pytest.fixture
def copy(small_index, tmp_path, monkeypatch):
    """Copy the index, and have it looked at whenever its state is asked."""
    monkeypatch.setattr("pexeso.faces.service.verbs.LOOK_EVERY", 0.0)
    return shutil.copytree(small_index, tmp_path / "lake.pexeso")
