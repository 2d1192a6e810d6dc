"""Thirty answers raise the F1 of the lake that they were given for, on lakes whose truth is known.

Nothing is learned from other lakes. The person answers about columns by the truth, in the order in
which they are asked, and is unsure about values.
"""

import csv
import gzip
import io
import tarfile
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

import pexeso
from pexeso.lake.judgements import record_judgements
from pexeso.semantic.explanation import locate_columns
from pexeso.semantic.thresholds.advice import Advice
from pexeso.semantic.thresholds.judging import find_doubts, stored_column

PARTS = 4
"""Lakes that the Wikipedia tables are divided into."""


def rows_of(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def part_of(table: str) -> int:
    return zlib.crc32(table.encode()) % PARTS


def wikitables(shared: Path, folder: Path, part: int):
    """Write the columns with truth of a part of the tables; return the pairs that join."""
    shared = shared / "wikitables"
    columns: dict[str, list[int]] = {}
    for row in rows_of(shared / "entity_columns.tsv.gz"):
        columns.setdefault(row["table"], []).append(int(row["column"]))
    with tarfile.open(shared / "tables.tar.gz") as tables:
        for member in tables:
            name = Path(member.name).stem
            if member.isfile() and name in columns and part_of(name) == part:
                text = io.TextIOWrapper(tables.extractfile(member), "utf-8", newline="")
                cells = [[row[at] for at in columns[name]] for row in csv.reader(text)][1:]
                with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
                    csv.writer(file).writerows([[f"c{at}" for at in columns[name]], *cells])
    truth = set()
    for row in rows_of(shared / "join_pairs.tsv.gz"):
        tables_of_pair = row["query_table"], row["candidate_table"]
        n_matches = int(row["entity_matches"])
        if n_matches >= 4 and n_matches / int(row["linked_values"]) >= 0.5:
            ends = zip(tables_of_pair, (row["query_column"], row["candidate_column"]), strict=True)
            if {part_of(table) for table in tables_of_pair} == {part}:
                truth.add(tuple((f"{table}.csv", f"c{column}") for table, column in ends))
    return truth


def fuzzy_joins(shared: Path, folder: Path, _part: int):
    """Write the two tables of each task; they join."""
    truth = set()
    with tarfile.open(shared / "autofj" / "datasets.tar.gz") as tables:
        for member in tables:
            task, name = Path(member.name).parent.name, Path(member.name).name
            if name in ("left.csv", "right.csv"):
                text = io.TextIOWrapper(tables.extractfile(member), "utf-8", newline="")
                titles = [[row["title"]] for row in csv.DictReader(text)][:2000]
                with (folder / f"{task}_{name}").open("w", newline="", encoding="utf-8") as file:
                    csv.writer(file).writerows([["title"], *titles])
                truth.add(((f"{task}_right.csv", "title"), (f"{task}_left.csv", "title")))
    return truth


def score(index, truth, advice) -> float:
    """Return the F1 of searches with all columns of a lake."""
    names = index.catalog.columns(["table", "label", "column_id"]).to_pylist()
    hits = locate_columns(
        index.store, [(row["table"], row["label"]) for row in names if row["column_id"] is not None]
    )
    options = {"max_distance": advice.max_distance, "min_joinability": advice.min_joinability}
    queries = [
        replace(stored_column(index._opened, hit), file=f"{index.lake}/{hit.table}") for hit in hits
    ]
    results = index.search_batch(
        queries, k="all", exclude_self=True, rerank=False, fold_copies=False, **options
    )
    pairs = {
        ((hit.table, hit.label), (match.table, match.column))
        for hit, result in zip(hits, results, strict=True)
        for match in result
    }
    return 2 * len(pairs & truth) / (len(pairs) + len(truth))


@pytest.mark.long
@pytest.mark.parametrize(
    ("write", "part"), [*((wikitables, part) for part in range(PARTS)), (fuzzy_joins, 0)]
)
def test_thirty_answers_raise_f1(shared_lakes, tmp_path, write, part):
    folder = tmp_path / "lake"
    folder.mkdir()
    truth = write(shared_lakes, folder, part)
    index = pexeso.build_index(folder, tmp_path / "lake.pexeso")
    usual = Advice(index.usual_max_distance, 0.5, "", {})
    before = score(index, truth, usual)
    for doubt in find_doubts(index._snapshot.semantic, 30):
        row = doubt.judgement
        joins = {(row.query, row.lake), (row.lake, row.query)} & truth
        if not row.of_values:
            record_judgements(index.path, [replace(row, verdict="yes" if joins else "no")])
    has_both = len({row.verdict for row in index._opened.judgements.columns}) == 2
    after = score(index, truth, index.tune() if has_both else usual)
    assert after > before, (before, after)
