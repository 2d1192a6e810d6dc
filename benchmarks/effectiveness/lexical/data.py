"""The data sets of the study: raw cells of lakes, judged columns, and tasks of judged values."""

from __future__ import annotations

import csv
import gzip
import tarfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.effectiveness.judged import (
    BY_MEANING,
    BY_TEXT,
    MIN_JOINABILITY,
    NOT_JUDGED,
    NOT_JUDGED_JOINABILITY,
    Judged,
    distinct_cells,
)
from benchmarks.effectiveness.partners import PartnerLake, true_shares
from benchmarks.effectiveness.sets import SHARED, TruthSet, shared_set
from benchmarks.effectiveness.tasks import Task, incidence_of
from pexeso.errors import InputError
from pexeso.lake.choose import ColumnRules, reason_left_out
from pexeso.lake.containers.reader import read_table
from pexeso.lake.files import find_tables
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.sniff import profile_columns

Prepare = Callable[[Sequence[pa.StringArray]], list[list[str]]]
"""From the cells of columns to normalised values, one for one; empty where nothing is left."""

LAKES = ("fivethirtyeight", "pudding")
"""Lakes without truth, of which values are taken to be misspelt."""

MIN_SHARE, MIN_LINKED = 0.3, 4
"""Of the linked cells of a column, how many the other one must have for the two to be a task."""


@dataclass(frozen=True)
class StudySet:
    """One data set.

    Attributes
    ----------
    name : str
    lake : list of pyarrow.StringArray
        The distinct cells of each column that an index keeps.
    judged : Judged or None
        Which pairs of columns can be joined.
    tasks : list of Task
        Which values are the same.
    entities : dict of str to frozenset of str
        What cells are known to stand for.
    """

    name: str
    lake: list[pa.StringArray]
    judged: Judged | None = None
    tasks: list[Task] = field(default_factory=list)
    entities: dict[str, frozenset[str]] = field(default_factory=dict)


def study_set(name: str, place: Path, shared: Path = SHARED) -> StudySet:
    """Read a data set; its tables are unpacked into `place`, an empty folder.

    Raises
    ------
    InputError
        It is not on this machine.
    """
    if name in LAKES:
        return StudySet(name, lake_columns(_unpacked(name, place, shared)))
    truth = shared_set(name, place, shared)
    lake = lake_columns(truth.lake)
    if name == "wikitables":
        path = shared / name / "cell_entities.tsv.gz"
        entities, tasks = _linked(path, shared / name / "join_pairs.tsv.gz")
        return StudySet(name, lake, truth.judged, tasks, entities)
    judged = truth.judged if truth.partners is None else judged_partners(truth.partners, truth)
    return StudySet(name, lake, judged, truth.tasks)


def lake_columns(folder: Path, rules: ColumnRules | None = None) -> list[pa.StringArray]:
    """Return the distinct cells of each column that an index of a folder keeps."""
    rules, texts = rules or ColumnRules(), []
    for file in find_tables(folder)[0]:
        columns = read_table(file.path).columns
        for cells, profile in zip(columns, profile_columns(columns), strict=True):
            if reason_left_out(profile, rules) is None:
                texts.append(distinct_cells(cells))
    return texts


def word_counts(columns: Iterable[Sequence[str]]) -> Counter[str]:
    """Count the words of columns, each distinct value of a column once."""
    counts: Counter[str] = Counter()
    for column in columns:
        for value in {value for value in column if value}:
            counts.update(value.split())
    return counts


def judged_partners(lake: PartnerLake, truth: TruthSet) -> Judged:
    """Return judged pairs of columns, where columns of tasks are asked for what holds their values.

    A pair is positive when the column holds at least half of the cells or their partners, and not
    judged from a share of 0.3 on.
    """
    n = len(lake.tables)
    shares = true_shares(lake.texts, truth.tasks)
    queries = np.array([query for query, _ in lake.pair_by_task.values()], np.int64)
    pairs = queries[:, None] * n + np.arange(n)
    partner = np.array([query * n + other for query, other in lake.pair_by_task.values()])
    same = np.array([[table == lake.tables[query] for table in lake.tables] for query in queries])
    positive = np.unique(np.concatenate([pairs[(shares >= MIN_JOINABILITY) & ~same], partner]))
    doubtful = np.setdiff1d(pairs[(shares >= NOT_JUDGED_JOINABILITY) & ~same], positive)
    labels = {BY_TEXT: np.zeros(0, np.int64), BY_MEANING: positive, NOT_JUDGED: doubtful}
    keys = [(table, position) for position, table in enumerate(lake.tables)]
    return Judged(keys, lake.texts, labels, np.sort(queries))


def _unpacked(name: str, folder: Path, shared: Path) -> Path:
    archive = shared / name / "tables.tar.gz"
    if not archive.is_file():
        raise InputError(
            f"The data set {name} is not on this machine: there is no {name}/{archive.name} in "
            f"{shared}."
        )
    with tarfile.open(archive) as tables:
        tables.extractall(folder / "lake", filter="data")
    return folder / "lake"


def _linked(cells: Path, pairs: Path) -> tuple[dict[str, frozenset[str]], list[Task]]:
    """Read what linked cells stand for, and tasks of pairs of columns that differ in spelling."""
    held: dict[tuple[str, str], dict[str, set[str]]] = {}
    known: dict[str, set[str]] = {}
    for row in _rows(cells):
        texts = held.setdefault((row["table"], row["column"]), {})
        texts.setdefault(row["text"], set()).add(row["entity"])
        known.setdefault(row["text"], set()).add(row["entity"])
    tasks = []
    for row in _rows(pairs):
        linked_values, matches = int(row["linked_values"]), int(row["entity_matches"])
        enough = matches >= MIN_LINKED and matches >= MIN_SHARE * linked_values
        if enough and matches > int(row["exact_matches"]):
            query, other = (
                (row[f"{side}_table"], row[f"{side}_column"]) for side in ("query", "candidate")
            )
            tasks.append(_linked_task(query, other, held[query], held[other]))
    return {text: frozenset(entities) for text, entities in known.items()}, tasks


def _linked_task(
    query: tuple[str, str],
    other: tuple[str, str],
    entities: dict[str, set[str]],
    others: dict[str, set[str]],
) -> Task:
    texts, other_texts = list(entities), list(others)
    by_entity: dict[str, list[int]] = {}
    for position, text in enumerate(other_texts):
        for entity in others[text]:
            by_entity.setdefault(entity, []).append(position)
    right = [
        (row, column)
        for row, text in enumerate(texts)
        for entity in entities[text]
        for column in by_entity.get(entity, ())
    ]
    rows, columns = zip(*right, strict=True)
    return Task(
        f"{'.'.join(query)} -> {'.'.join(other)}",
        query[0],
        pa.array(texts, pa.string()),
        pa.array(other_texts, pa.string()),
        incidence_of(rows, columns, (len(texts), len(other_texts))),
    )


def _rows(path: Path) -> Iterable[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)


@dataclass(frozen=True)
class PreparedSet:
    """A data set whose cells are normalised.

    Attributes
    ----------
    study : StudySet
    counts : mapping of str to int
        The words of its lake.
    columns : list of list of str
        The values of the judged columns.
    sides : list of (list of str, list of str)
        The asked and the other values of each task.
    values : list of str
        All of these, distinct, ascending.
    """

    study: StudySet
    counts: Counter[str]
    columns: list[list[str]]
    sides: list[tuple[list[str], list[str]]]
    values: list[str]

    def number(self) -> dict[str, int]:
        """Return the position of each value."""
        return {value: position for position, value in enumerate(self.values)}


def prepared(study: StudySet, prepare: Prepare) -> PreparedSet:
    """Normalise the cells of a data set."""
    columns = prepare(study.judged.texts) if study.judged else []
    flat = prepare([side for task in study.tasks for side in (task.queries, task.others)])
    return PreparedSet(
        study,
        word_counts(prepare(study.lake)),
        columns,
        list(zip(flat[::2], flat[1::2], strict=True)),
        sorted({value for column in (*columns, *flat) for value in column}),
    )


def normalised(normaliser: Normaliser) -> Prepare:
    """Return what prepares cells with a normaliser."""
    return lambda columns: [
        [text or "" for text in column.to_pylist()]
        for column in normaliser.normalise_columns(list(columns))
    ]
