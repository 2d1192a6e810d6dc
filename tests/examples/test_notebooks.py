"""The notebooks show what happens: each is executed, and its outputs are those that are kept."""

import copy
import re
from pathlib import Path

import nbformat
import pytest
from doc_pages import same_output
from long_runs import long_but
from write_notebooks import EXAMPLES, METADATA, NOTEBOOKS, execute, link_tables

FEWEST_CODE_CELLS = 8


def kept(name: str) -> nbformat.NotebookNode:
    return nbformat.read(EXAMPLES / name, as_version=4)


def shown(cell: nbformat.NotebookNode) -> list[str]:
    """Return the lines that a cell shows: of each output its kind, then its text and its HTML."""
    lines: list[str] = []
    for output in cell.outputs:
        if output.output_type == "stream":
            parts = {output.name: output.text}
        else:
            parts = output.get("data", {"error": str(output.get("evalue"))})
        for kind in sorted(parts):
            lines += [f"[{kind}]", *parts[kind].replace("</tr>", "</tr>\n").splitlines()]
    return lines


def differences(
    notebook: nbformat.NotebookNode, executed: nbformat.NotebookNode
) -> dict[str, list[str]]:
    """Return what cells show now, by the id of each cell that shows something else than before."""
    return {
        now.id: shown(now)
        for before, now in zip(notebook.cells, executed.cells, strict=True)
        if before.cell_type == "code" and not same_output(shown(before), shown(now))
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """One folder for all notebooks: the second opens the index that the first builds."""
    made = tmp_path_factory.mktemp("notebooks")
    link_tables(made)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("name", long_but(NOTEBOOKS[:1], NOTEBOOKS))
def test_a_notebook_shows_what_happens(name, folder):
    assert differences(kept(name), execute(EXAMPLES / name, folder)) == {}, (
        f"run examples/write_notebooks.py {name}, and look at what has changed"
    )


def test_every_notebook_is_executed():
    assert sorted(NOTEBOOKS) == sorted(path.name for path in EXAMPLES.glob("*.ipynb"))


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_kept_as_the_program_writes_it(name):
    notebook = kept(name)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert notebook.metadata == METADATA
    assert nbformat.writes(notebook) + "\n" == (EXAMPLES / name).read_text(encoding="utf-8")
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(code) >= FEWEST_CODE_CELLS
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert [cell.id for cell in notebook.cells if cell.metadata] == []
    assert [cell.id for cell in notebook.cells if not re.fullmatch(r"[a-z0-9-]+", cell.id)] == []


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_outputs_have_no_error_no_bar_and_no_path_of_a_machine(name):
    for cell in kept(name).cells:
        lines = shown(cell) if cell.cell_type == "code" else []
        assert not {"[stderr]", "[error]"} & set(lines), cell.id
        assert not re.search(r"(^|[\s'\">])/\w+/", "\n".join(lines)), cell.id


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_first_cell_says_what_is_needed(name):
    first = kept(name).cells[0]
    assert first.cell_type == "markdown"
    assert "**Needed:**" in first.source
    assert "docs/how-to/install.md" in first.source


def test_a_changed_output_is_found():
    notebook = kept(NOTEBOOKS[0])
    changed = copy.deepcopy(notebook)
    cell = next(cell for cell in changed.cells if cell.id == "search-pandas")
    cell.outputs[0].data["text/html"] = cell.outputs[0].data["text/html"].replace("25", "24", 1)
    assert list(differences(notebook, changed)) == ["search-pandas"]
    assert differences(notebook, copy.deepcopy(notebook)) == {}


def test_the_kernel_of_a_failing_notebook_is_shut_down(tmp_path):
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell("import os\nraise ValueError(f'pid {os.getpid()} end')")]
    )
    nbformat.write(notebook, tmp_path / "failing.ipynb")
    with pytest.raises(Exception, match="ValueError") as failed:
        execute(tmp_path / "failing.ipynb", tmp_path)
    pid = re.search(r"pid (\d+) end", str(failed.value))[1]
    assert not Path("/proc", pid).exists()
