"""The operations that the kill test interrupts, between two states of a small lake.

The module also provides the answers before and after.
"""

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [path for path in (str(ROOT), str(ROOT / "tests")) if path not in sys.path]

from pexeso.build.diagnostics.info import check_index  # noqa: E402
from pexeso.errors import IndexNotFoundError  # noqa: E402
from pexeso.index import open_index  # noqa: E402

OPTIONS = {"model": "hashing", "dimensions": 24, "n_partitions": 3, "parts": ["overlap"]}
INDEX = "lake.pexeso"
_WORDS = [
    *("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "junco"),
    *("kelp", "larch", "marsh", "north", "ocean", "plume", "quartz", "ridge", "slate", "thorn"),
]
_QUERIES = [
    _WORDS[:8],
    [word.upper() for word in _WORDS[5:15]],
    ["river " + word for word in _WORDS[:6]],
]

Answers = list[list[tuple[str, str, int]]] | None
"""What searches find (table, column, matching rows or shared values).

It is None where there is no index.
"""


def write_lakes(folder: Path) -> None:
    """Write the lake as it is first, and as it is later: tables came, changed and went."""
    for state in ("first", "later"):
        lake = folder / state
        lake.mkdir(parents=True)
        for number in range(10):
            _write_table(
                lake / f"t{number}.csv", number, shift=state == "later" and number in (2, 5)
            )
        (lake / "numbers.csv").write_text(
            "id,n\n" + "".join(f"{n},{n * n}\n" for n in range(9)), encoding="utf-8"
        )
        (lake / "readme.md").write_text("no table", encoding="utf-8")
    for number in (20, 21):
        _write_table(folder / "later" / f"t{number}.csv", number, shift=False)
    (folder / "later" / "t7.csv").unlink()


def _write_table(path: Path, number: int, *, shift: bool) -> None:
    start = number + 7 * shift
    words = [_WORDS[(start + step) % len(_WORDS)] for step in range(7)]
    rows = "".join(f"{word},river {word},{place}\n" for place, word in enumerate(words))
    path.write_text(f"name,water,n\n{rows}", encoding="utf-8")


@dataclass(frozen=True)
class Operation:
    """One operation.

    Attributes
    ----------
    name : str
    before : str
        The prepared index that it starts from; empty where there is none.
    run : callable
        Does it, given the folder of the lakes and the path of the index.
    with_spark : bool
    """

    name: str
    before: str
    run: Callable[[Path, Path], Any]
    with_spark: bool = True


def _build(lakes: Path, path: Path) -> None:
    from pexeso.index import build_index

    if not (path / "manifest.json").exists():  # killed after its commit, it is done
        build_index(lakes / "first", path, **OPTIONS)


def _overwrite(lakes: Path, path: Path) -> None:
    from pexeso.index import build_index

    if open_index(path).store.manifest.generation == 1:
        build_index(lakes / "later", path, overwrite=True, **OPTIONS)


def _append(lakes: Path, path: Path) -> None:
    open_index(path).append(lakes / "later", delete_missing=True)


def _delete(lakes: Path, path: Path) -> None:
    from pexeso.lake.catalog import Catalog

    index = open_index(path)
    there = Catalog(index.store.catalog_files).tables(["table"])["table"].to_pylist()
    if "t3.csv" in there:
        index.delete(["t3.csv", "t4.csv"])


def _compact(lakes: Path, path: Path) -> None:
    open_index(path).compact()


def _add(lakes: Path, path: Path) -> None:
    open_index(path).add_parts(["containment"])


def _add_model(lakes: Path, path: Path) -> None:
    index = open_index(path)
    if index.models == ("hashing",):
        index.add_model("lexical")


OPERATIONS = {
    operation.name: operation
    for operation in (
        Operation("build", "", _build),
        Operation("overwrite", "built", _overwrite),
        Operation("append", "built", _append),
        Operation("delete", "appended", _delete, with_spark=False),
        Operation("compact", "deleted", _compact),
        Operation("add", "deleted", _add),
        Operation("add model", "deleted", _add_model),
    )
}
PREPARED = {
    "built": ("", "build"),
    "appended": ("built", "append"),
    "deleted": ("appended", "delete"),
}
"""Each prepared index: what it is made from, and by which operation."""


def start_state(folder: Path, name: str, place: Path) -> Path:
    """Put the prepared index of a name (or nothing) at a place; give the path of the index."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    if name:
        shutil.copytree(folder / name / INDEX, place / INDEX)
    return place / INDEX


def answers(path: Path) -> Answers:
    """Search an index that must be whole, by its check.

    Raises
    ------
    AssertionError
        It is not whole.
    """
    try:
        index = open_index(path, device="cpu")
    except IndexNotFoundError:
        return None
    results = [
        [
            (match.table, match.column, match.matched)
            for match in index.with_model(model).search(query, min_joinability=0.1)
        ]
        for model in index.models
        for query in _QUERIES
    ]
    results += [
        [(match.table, match.column, match.overlap) for match in index.overlap(query, k=50)]
        for query in (*_QUERIES, range(5))
    ]
    problems = [problem for problem in check_index(path) if problem.is_failure]
    if problems:
        raise AssertionError(f"The index is damaged: {problems}")
    return results


def quiet_environment() -> dict[str, str]:
    """Return the environment of a child process."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
