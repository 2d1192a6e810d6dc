"""Tests of files that are written whole: what cannot be looked at is told as what is there."""

import pytest

from pexeso.errors import OutputError
from pexeso.io.whole_files import require_free, written_whole

LONG = "x" * 300
"""No file system has such a name: it is refused as what lies in a folder of somebody else is."""


def test_a_file_that_cannot_be_looked_at_cannot_be_written(tmp_path):
    require_free(tmp_path / LONG, overwrite=False)  # nothing is there as far as one can see
    told = pytest.raises(OutputError, match="cannot be written: File name too long")
    with told, written_whole(tmp_path / LONG, overwrite=False):
        pass


def test_a_folder_that_cannot_be_looked_at_is_told(tmp_path):
    with pytest.raises(OutputError, match="there is no folder"):
        require_free(tmp_path / LONG / "a.csv", overwrite=False)
