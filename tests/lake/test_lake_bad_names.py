"""Names of files and descriptions of normalisers that nothing can have."""

import json

import pytest

from pexeso.errors import InputError, TableReadError
from pexeso.lake.containers.reader import read_table
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.results.query import read_batch_line


@pytest.mark.parametrize("name", ["a\0b.csv", "\ud800.csv"])
def test_a_name_that_no_file_has_is_refused(name: str) -> None:
    with pytest.raises(TableReadError, match="cannot be the name of a file"):
        read_table(name)
    line = read_batch_line(1, json.dumps({"file": name, "column": "x"}))
    assert line.query is None
    assert "cannot be the name of a file" in line.error


@pytest.mark.parametrize("rules", [5, "dates", [["dates"]], None, {"dates": 1}, ["none"]])
def test_rules_that_are_none_are_refused(rules: object) -> None:
    description = {**json.loads(Normaliser().to_json()), "rules": rules}
    with pytest.raises(InputError, match=r"rules must be a list of names|There is no rule"):
        Normaliser.from_json(json.dumps(description))


def test_a_description_nested_too_deep_is_refused() -> None:
    with pytest.raises(InputError, match="is not JSON"):
        Normaliser.from_json("[" * 200_000)
