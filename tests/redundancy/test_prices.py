"""Prices read from files, and what they come to."""

import numpy as np
import pytest

from pexeso.errors import InputError
from pexeso.redundancy.planning import Costs, read_accesses, read_costs
from pexeso.redundancy.schema_tokens import read_synonyms


def test_costs_of_tables():
    costs = Costs(storage=2, maintenance=0.5, maintenances=4, read=0.1, write=1)
    sizes = np.array([100e9, 60e9])
    np.testing.assert_allclose(costs.keeping(sizes), [400, 240])
    np.testing.assert_allclose(costs.rebuilding(sizes[:1], sizes[1:], np.array([5.0])), [350])
    np.testing.assert_allclose(costs.seconds(sizes[:1], sizes[1:]), [100 * 10 + 60 * 20])


def test_files_of_costs_and_accesses(tmp_path):
    path = tmp_path / "costs.toml"
    path.write_text('storage = 1\nmax_rebuild_seconds = 60\n[accesses_of]\n"a.csv" = 3\n')
    assert read_costs(path) == Costs(storage=1, max_rebuild_seconds=60, accesses_of={"a.csv": 3})
    table = tmp_path / "accesses.csv"
    table.write_text("table,accesses\na.csv,2\nb.csv,0.5\n")
    assert read_accesses(table) == {"a.csv": 2.0, "b.csv": 0.5}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("storge = 1", "storge"),
        ("storage = -1", "0 or more"),
        ("storage = 'x'", "is a number"),
        ("storage = true", "is a number"),
        ("accesses_of = 3", "a table of names"),
        ("storage = ", "cannot be read"),
    ],
)
def test_wrong_costs_are_refused(tmp_path, text, said):
    path = tmp_path / "costs.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        read_costs(path)


@pytest.mark.parametrize("read", [read_costs, read_synonyms])
def test_a_file_that_is_not_there_is_told_without_numbers_of_errors(tmp_path, read):
    with pytest.raises(InputError, match=r"' cannot be read: No such file or directory\.$"):
        read(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("table,n\na.csv,2\n", "its columns are table, n"),
        ("a.csv,30\n", "its columns are a.csv, 30"),
        ("", "its columns are none"),
        ("table,accesses\na.csv,many\n", "many"),
        ("table,accesses\na.csv\n", "TypeError"),
        ("table,accesses\na.csv,30\na.csv,1\n", "it names 'a.csv' twice"),
    ],
)
def test_wrong_accesses_are_refused(tmp_path, text, said):
    path = tmp_path / "accesses.csv"
    path.write_text(text)
    with pytest.raises(InputError, match="columns table and accesses, and a number") as caught:
        read_accesses(path)
    assert said in str(caught.value)
