"""Execute the notebooks in this folder and keep what they show.

    python examples/write_notebooks.py                         # all of them
    python examples/write_notebooks.py enrich_a_model.ipynb    # some of them

They run in one temporary folder that holds the lake and the tables of this one, so that nothing is
left here and the second one finds the index that the first one built. What differs from machine to
machine, such as times and versions, is not kept.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

EXAMPLES = Path(__file__).resolve().parent
NOTEBOOKS = ("find_and_join.ipynb", "enrich_a_model.ipynb", "a_lake_on_spark.ipynb")
"""In the order in which they are read and run: the second opens the index of the first."""

READ_BY_NOTEBOOKS = ("lake", "my_autographs.csv", "my_suppliers.csv")
CELL_SECONDS = 600
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def link_tables(folder: Path) -> None:
    """Link the lake and the tables that notebooks read into a folder, where they run."""
    for name in READ_BY_NOTEBOOKS:
        (folder / name).symlink_to(EXAMPLES / name)


def execute(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Run a notebook in a folder, and return it with its outputs as they are kept.

    Its kernel is shut down at the end, also where a cell fails or takes too long.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        A cell fails.
    nbclient.exceptions.CellTimeoutError
        A cell takes longer than `CELL_SECONDS`.
    """
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory(prefix="pexeso-kernel-") as sockets:
        # Files in place of ports, whose traffic others on this machine could read.
        transport = {"transport": "ipc", "ip": f"{sockets}/kernel"}
        NotebookClient(
            notebook,
            kernel_name="python3",
            timeout=CELL_SECONDS,
            record_timing=False,
            coalesce_streams=True,
            config=Config({"KernelManager": transport}),
            resources={"metadata": {"path": str(folder)}},
        ).execute()
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        cell.metadata = nbformat.NotebookNode()
        for output in cell.get("outputs", ()):
            if "metadata" in output:
                output.metadata = nbformat.NotebookNode()
    nbformat.validate(notebook)
    return notebook


def main(arguments: list[str]) -> None:
    """Execute the notebooks that are named, or all, and write them in place."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("names", nargs="*", metavar="NOTEBOOK", help=", ".join(NOTEBOOKS))
    names = parser.parse_args(arguments).names or NOTEBOOKS
    if unknown := set(names) - set(NOTEBOOKS):
        parser.error(f"NOTEBOOK is one of {', '.join(NOTEBOOKS)}. Got {', '.join(unknown)}.")
    with tempfile.TemporaryDirectory(prefix="pexeso-notebooks-") as name:
        link_tables(Path(name))
        for notebook in names:
            nbformat.write(execute(EXAMPLES / notebook, Path(name)), EXAMPLES / notebook)
            sys.stdout.write(f"{notebook}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
