"""Tests of `pexeso demo` with an index made elsewhere, since building one takes a while."""

import shlex

import pytest

import pexeso.faces.cli.demo
from pexeso.faces.cli.demo import demo_folder, equal_cells
from pexeso.index import Index


@pytest.fixture
def prepared(monkeypatch, small_index):
    """Let the demo use the small index; return the commands it runs."""
    ran = []
    run = pexeso.faces.cli.demo.run

    def replaced(*arguments):
        ran.append(arguments)
        if arguments[0] != "index":
            run(arguments[0], str(small_index), *arguments[2:])

    monkeypatch.setattr(pexeso.faces.cli.demo, "run", replaced)
    return ran


def test_the_second_table_has_no_text_in_common_with_the_lake():
    examples = demo_folder()
    assert equal_cells(examples / "lake", examples / "my_autographs.csv", "signed_by") == (25, 0)
    n_rows, n_equal = equal_cells(examples / "lake", examples / "my_suppliers.csv", "supplier")
    assert n_equal == n_rows > 20


def test_the_story(run, prepared):
    result = run("demo")
    assert [arguments[0] for arguments in prepared] == ["index", "search", "search"]
    assert "values would find 0 of 25 names." in result.stdout
    shown = [line for line in result.stdout.splitlines() if line.startswith("$ ")]
    assert [shlex.split(line)[1:3] for line in shown] == [["pexeso", "search"]] * 2
    assert "The index of this demo was temporary" in result.stdout


def test_the_index_can_be_kept(run, prepared, tmp_path):
    result = run("demo", tmp_path / "kept.pexeso")
    assert prepared[0][2] == str(tmp_path / "kept.pexeso")
    assert "temporary" not in result.stdout


def test_a_demo_that_is_interrupted(run, prepared, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(Index, "search_batch", interrupted)
    run("demo", code=130)


def test_without_the_demo_lake(fail, monkeypatch, tmp_path):
    package = tmp_path / "site" / "pexeso"
    monkeypatch.setattr(pexeso, "__file__", str(package / "__init__.py"))
    assert fail(1, "demo") == (
        f"Error: The demo lake is not where the package has it, in {package / 'demo'}. Install "
        "pexeso again, or index your own folder: pexeso index FOLDER my.pexeso.\n"
    )
