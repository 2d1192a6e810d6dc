"""The data sets with truth, read in one form.

They have judged columns, judged values, and columns with a partner.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from benchmarks.effectiveness.countries import TRUTH, read_countries
from benchmarks.effectiveness.judged import MIN_JOINABILITY, MIN_MATCHES, Judged, read_judged
from benchmarks.effectiveness.partners import PartnerLake, partner_lake
from benchmarks.effectiveness.tasks import NAMES, Task, read_tasks
from pexeso.errors import InputError
from pexeso.lake.containers.reader import read_table
from pexeso.lake.sniff import profile_column

ROOT = Path(__file__).resolve().parent.parent.parent
SHARED = ROOT.parent / "shared" / "data"
DATA = ("wikitables", "countries", "autofj", "entity-pairs")


@dataclass(frozen=True)
class TruthSet:
    """A lake and what is known about it.

    Attributes
    ----------
    name : str
    lake : Path
        The folder of tables that an index is made of; truth is not in it.
    judged : Judged or None
        Which pairs of columns can be joined.
    tasks : list of Task
        Which values are the same; empty where that is not known.
    partners : PartnerLake or None
        Columns that have one partner in the lake.
    """

    name: str
    lake: Path
    judged: Judged | None = None
    tasks: list[Task] = field(default_factory=list)
    partners: PartnerLake | None = None

    @property
    def texts(self) -> list[pa.StringArray]:
        """All cells that methods compare, by column."""
        judged = self.judged.texts if self.judged else []
        partners = self.partners.texts if self.partners else []
        return [
            *judged,
            *partners,
            *(column for task in self.tasks for column in (task.queries, task.others)),
        ]


def lake_with_truth(lake: Path, truth: Path) -> TruthSet:
    """Read any lake with a table of joinable pairs.

    See `benchmarks.effectiveness.judged.read_judged`.
    """
    judged = read_judged(lake, truth)
    if not len(judged.queries):
        raise InputError(
            f"The truth {truth} has no pair that can be joined: at least {MIN_MATCHES} values, "
            f"and at least {100 * MIN_JOINABILITY:g} % of those of the"
            " query column, must be common."
        )
    return TruthSet(str(lake), lake, judged)


def shared_set(name: str, place: Path, shared: Path = SHARED) -> TruthSet:
    """Unpack and read a data set of `DATA`."""
    folder = shared / name
    archive = folder / (
        "datasets.tar.gz" if name in ("autofj", "entity-pairs") else "tables.tar.gz"
    )
    if not archive.is_file():
        raise InputError(
            f"The data set {name} is not on this machine: there is no {name}/{archive.name} in "
            f"{shared}."
        )
    lake = place / "lake"
    with tarfile.open(archive) as tables:
        tables.extractall(lake, filter="data")
    if name == "wikitables":
        return TruthSet(name, lake, read_judged(lake, folder / "join_pairs.tsv.gz"))
    # These archives hold one folder of the same name.
    lake = lake / name
    return (
        countries_set(lake, place / "truth")
        if name == "countries"
        else tasks_set(name, lake, place / "truth")
    )


def countries_set(lake: Path, truth: Path) -> TruthSet:
    """Read `countries`; the files of its truth are moved out of the lake."""
    truth.mkdir(parents=True, exist_ok=True)
    for name in TRUTH:
        (lake / name).rename(truth / name)
    judged, tasks = read_countries(lake, truth)
    return TruthSet("countries", lake, judged, tasks)


def tasks_set(name: str, lake: Path, truth: Path) -> TruthSet:
    """Read a data set of tasks whose tables are also a lake.

    The files of its truth are moved out of the lake.
    """
    tasks = read_tasks(lake)
    truth.mkdir(parents=True, exist_ok=True)
    for task in tasks:
        (lake / task.name / "gt.csv").rename(truth / f"{task.name}.csv")
    return TruthSet(
        name, lake, tasks=tasks, partners=partner_lake(text_columns(lake), NAMES, tasks)
    )


def text_columns(lake: Path) -> Iterator[tuple[str, str, pa.StringArray]]:
    """Return the columns of text of a lake: table, name and cells."""
    for path in sorted(lake.rglob("*.csv")):
        table = read_table(path)
        for name, cells in zip(table.names, table.columns, strict=True):
            if profile_column(cells).kind == "text":
                yield path.relative_to(lake).as_posix(), name, cells
