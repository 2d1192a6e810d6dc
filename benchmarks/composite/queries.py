"""Keys to search: drawn from the tables of a lake, or of two tables that are known to join."""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks.datasets.tables import SHARED
from pexeso.composite.query import KeyQuery, key_query
from pexeso.composite.row_keys import RowKeys
from pexeso.errors import LakeError

MOST_ROWS, LEAST_ROWS = 2000, 5
_TRIES = 100


@dataclass(frozen=True, eq=False)
class Question:
    """A key of a table of the lake, and that table, which is no answer.

    Attributes
    ----------
    query : KeyQuery
    table : int or None
        None where the table may be an answer, as its rows were changed.
    """

    query: KeyQuery
    table: int | None

    @property
    def excluded(self) -> list[int]:
        """Return the tables that are not wanted."""
        return [] if self.table is None else [self.table]


def table_texts(rows: RowKeys, table: int, columns: list[int]) -> list[pa.Array]:
    """Return the cells of columns of a table, null where one is missing."""
    begin, end = rows.table_cells[table : table + 2].tolist()
    cells = rows.cells[begin:end].reshape(-1, int(rows.widths[table]))
    return [
        rows.values.take(pa.array(cells[:, column], mask=cells[:, column] < 0))
        for column in columns
    ]


def drawn_questions(
    rows: RowKeys, m: int, n: int, *, most_keys: int = MOST_ROWS, seed: int = 0
) -> list[Question]:
    """Draw tables, and m columns of each, all alike; at most `MOST_ROWS` rows of a table."""
    rng = np.random.default_rng(seed)
    usable = np.flatnonzero((rows.widths >= m) & (np.diff(rows.table_rows) >= LEAST_ROWS))
    questions: list[Question] = []
    for _ in range(_TRIES * n if len(usable) else 0):
        table = int(rng.choice(usable))
        columns = rng.choice(int(rows.widths[table]), m, replace=False).tolist()
        query = key_query([texts[:MOST_ROWS] for texts in table_texts(rows, table, columns)])
        if 2 <= query.n_keys <= most_keys:
            questions.append(Question(query, table))
        if len(questions) == n:
            return questions
    raise LakeError(f"The lake has no {n:,} keys of {m} columns with 2 to {most_keys:,} values.")


def known_questions(rows: RowKeys, names: list[str], n: int, *, seed: int = 0) -> list[Question]:
    """Draw keys of two columns of `wikitables` that some other table is known to have in part."""
    number = {name: at for at, name in enumerate(names)}
    with gzip.open(SHARED / "wikitables" / "nary_pairs.tsv.gz", "rt", encoding="utf-8") as file:
        known = sorted(
            {
                (number[row["query_table"]], tuple(map(int, row["query_columns"].split("|"))))
                for row in csv.DictReader(file, delimiter="\t")
            }
        )
    chosen = np.random.default_rng(seed).permutation(len(known))[:n]
    return [
        Question(key_query(table_texts(rows, table, list(columns))), table)
        for table, columns in (known[at] for at in chosen)
    ]
