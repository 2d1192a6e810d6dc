"""The truth about a lake: which column pairs can be joined, and which are not judged.

Joinable pairs are exact-value or semantic-only pairs.

Truth is a table of directed column pairs with the number of distinct linked values of the query
column and how many of them have the same entity in the other column. A pair is *positive* when at
least four values, and at least half of the distinct ones of the query column, are common by entity
or by folded text; entity truth alone would count a column of countries that link to the teams of
the same countries as an error. Pairs with an entity joinability of at least 0.3 and three entity
matches or more that are not positive are *not judged*, and nor are pairs within a table. All others
are negative.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv
import scipy.sparse as sp

from pexeso.errors import InputError
from pexeso.lake.containers.reader import open_table
from pexeso.lake.rows import table_path

MIN_MATCHES = 4
MIN_JOINABILITY = 0.5
NOT_JUDGED_JOINABILITY, NOT_JUDGED_MATCHES = 0.3, 3

NEGATIVE, BY_TEXT, BY_MEANING, NOT_JUDGED = range(4)
"""What a pair can be; positive pairs are those by text and those by meaning alone."""

PAIR_COLUMNS = (
    "query_table",
    "query_column",
    "candidate_table",
    "candidate_column",
    "linked_values",
    "entity_matches",
)
_NO_WORD = re.compile(r"[\W_]+")


@dataclass(frozen=True)
class Judged:
    """The columns of a lake that have truth, and the truth.

    Attributes
    ----------
    allowed_queries : numpy.ndarray of int64 or None
        The columns that are asked, ascending; None: all.
    """

    keys: list[tuple[str, int]]
    texts: list[pa.StringArray]
    labels: dict[int, np.ndarray]
    allowed_queries: np.ndarray | None = None
    within_tables: bool = False

    @property
    def n_columns(self) -> int:
        return len(self.keys)

    @property
    def queries(self) -> np.ndarray:
        """The columns that have a positive pair, ascending."""
        return np.unique(
            np.concatenate([self.labels[BY_TEXT], self.labels[BY_MEANING]]) // self.n_columns
        )

    def classes(self, query: np.ndarray, candidate: np.ndarray) -> np.ndarray:
        """Return the classes of pairs, int8."""
        pairs = query.astype(np.int64) * self.n_columns + candidate
        classes = np.zeros(len(pairs), np.int8)
        for label, known in self.labels.items():
            classes[np.isin(pairs, known)] = label
        groups = self.groups()
        classes[groups[query] == groups[candidate]] = NOT_JUDGED
        return classes

    def groups(self) -> np.ndarray:
        """Return a group number for each column, int64."""
        if self.within_tables:
            return np.arange(self.n_columns)
        return np.unique([table for table, _ in self.keys], return_inverse=True)[1]

    def positives_of(self, query: int) -> int:
        """Count the positive pairs of a query column."""
        return sum(
            int(
                np.diff(
                    np.searchsorted(
                        self.labels[label], [query * self.n_columns, (query + 1) * self.n_columns]
                    )
                )[0]
            )
            for label in (BY_TEXT, BY_MEANING)
        )


def fold(text: str) -> str:
    """Fold a text so that case, punctuation and white space do not count."""
    return _NO_WORD.sub(" ", text.casefold()).strip()


def incidence(columns: Sequence[Sequence[str]]) -> tuple[list[str], sp.csr_matrix]:
    """Return the sorted distinct values of columns, and which column holds which."""
    vocabulary = sorted({value for column in columns for value in column})
    number = {value: position for position, value in enumerate(vocabulary)}
    held = [sorted({number[value] for value in column}) for column in columns]
    offsets = np.concatenate([[0], np.cumsum([len(column) for column in held])])
    members = np.fromiter((member for column in held for member in column), np.int64, offsets[-1])
    shape = (len(columns), len(vocabulary))
    return vocabulary, sp.csr_matrix(
        (np.ones(len(members), np.float32), members, offsets), shape=shape
    )


def read_judged(lake: Path, truth: Path) -> Judged:
    """Read the truth, and the columns that it is about."""
    pairs = _read_table(truth, PAIR_COLUMNS)
    listed = truth.with_name("entity_columns.tsv.gz")
    keys = (
        _keys(_read_table(listed, ("table", "column")), "table", "column")
        if listed.is_file()
        else []
    )
    for side in ("query", "candidate"):
        keys += _keys(pairs, f"{side}_table", f"{side}_column")
    keys = sorted(set(keys))
    names = _names_in(lake)
    missing = sorted({table for table, _ in keys} - set(names))
    if missing:
        raise InputError(
            f"The truth {truth} is about tables that are not in {lake}: {', '.join(missing[:3])}."
        )
    texts = _distinct_cells(lake, names, keys)
    return Judged(
        [(names[table], position) for table, position in keys], texts, _labels(keys, texts, pairs)
    )


def _labels(
    keys: list[tuple[str, int]], texts: list[pa.StringArray], pairs: pa.Table
) -> dict[int, np.ndarray]:
    number = {key: position for position, key in enumerate(keys)}
    tables = np.array([table for table, _ in keys])
    by_text = pairs_by_text(texts)
    by_text = by_text[tables[by_text // len(keys)] != tables[by_text % len(keys)]]
    query, candidate = (
        np.array([number[key] for key in _keys(pairs, f"{side}_table", f"{side}_column")], np.int64)
        for side in ("query", "candidate")
    )
    matches, linked = (
        pairs[name].to_numpy().astype(np.int64) for name in ("entity_matches", "linked_values")
    )
    return labels_of(by_text, query * len(keys) + candidate, matches, linked)


def pairs_by_text(texts: Sequence[pa.StringArray]) -> np.ndarray:
    """Return the pairs of columns with enough folded texts in common."""
    _, held = incidence(
        [[folded for text in column.to_pylist() if (folded := fold(text))] for column in texts]
    )
    common, sizes = (held @ held.T).tocoo(), np.asarray(held.sum(1)).ravel()
    enough = (common.data >= MIN_MATCHES) & (common.data >= MIN_JOINABILITY * sizes[common.row])
    enough &= common.row != common.col
    return np.unique(common.row[enough].astype(np.int64) * len(texts) + common.col[enough])


def labels_of(
    by_text: np.ndarray, pairs: np.ndarray, matches: np.ndarray, sizes: np.ndarray
) -> dict[int, np.ndarray]:
    """Label pairs of columns by text and by what they truly have in common."""
    share = matches / np.maximum(sizes, 1)
    positive = (matches >= MIN_MATCHES) & (share >= MIN_JOINABILITY)
    doubtful = (matches >= NOT_JUDGED_MATCHES) & (share >= NOT_JUDGED_JOINABILITY)
    by_meaning = np.setdiff1d(pairs[positive], by_text)
    known = np.concatenate([by_text, by_meaning])
    return {
        BY_TEXT: by_text,
        BY_MEANING: by_meaning,
        NOT_JUDGED: np.setdiff1d(pairs[doubtful], known),
    }


def _read_table(path: Path, columns: Sequence[str]) -> pa.Table:
    names = [name for name in columns if name.endswith("table")]
    try:
        table = pv.read_csv(
            path,
            parse_options=pv.ParseOptions(delimiter="\t", quote_char=False),
            convert_options=pv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), include_columns=columns
            ),
        )
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"The truth {path} must be tab-separated with the columns {', '.join(columns)}. {error}"
        ) from error
    return table


def _keys(table: pa.Table, name: str, position: str) -> list[tuple[str, int]]:
    return list(zip(table[name].to_pylist(), table[position].to_pylist(), strict=True))


def _names_in(lake: Path) -> dict[str, str]:
    """Map the names that truth uses, with or without an extension, to those of the lake's files."""
    files = sorted(path.relative_to(lake).as_posix() for path in lake.rglob("*") if path.is_file())
    return {
        **{name.rpartition("/")[2].partition(".")[0]: name for name in files},
        **{name: name for name in files},
    }


def _distinct_cells(
    lake: Path, names: dict[str, str], keys: list[tuple[str, int]]
) -> list[pa.StringArray]:
    by_table: dict[str, list[int]] = {}
    for table, position in keys:
        by_table.setdefault(table, []).append(position)
    cells = {}
    for table, positions in by_table.items():
        columns = open_table(*table_path(lake, names[table])).text().columns
        cells |= {(table, position): columns[position] for position in positions}
    return [distinct_cells(cells[key]) for key in keys]


def distinct_cells(column: pa.Array) -> pa.StringArray:
    """Return the distinct cells of a column in order of first appearance."""
    texts = pc.utf8_trim_whitespace(pc.unique(column.drop_null().cast(pa.string())))
    return pc.unique(texts.filter(pc.not_equal(texts, "")))
