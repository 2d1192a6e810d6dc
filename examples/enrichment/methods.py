"""The ways to find tables to join with that are compared: equal text, similar text, and pexeso."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

import pexeso
from pexeso.joins.mapping import PairColumns, make_mapping
from pexeso.joins.matched_rows import find_rows
from pexeso.joins.options import join_options
from pexeso.joins.tables import join_table
from pexeso.lake.rows import read_rows
from pexeso.results.matches import Pair

MIN_JOINABILITY = 0.5
MAX_TABLES = 50
FUZZY_THRESHOLDS = (80, 90, 95)

Table = tuple[str, str]

EQUAL = pexeso.Normaliser(
    fold_accents=False, drop_punctuation=False, read_dates=False, dictionaries=()
)
"""Equal text: but for case and what names of countries, companies and the like differ in."""

WORDS = pexeso.Normaliser(read_dates=False, dictionaries=())
"""Similar text: the same without accents and punctuation."""


@dataclass(frozen=True)
class TextMatch:
    """A column found by its text; joins as `pexeso.Match` does.

    Attributes
    ----------
    table, column : str
    joinability : float
        Share of the rows with a match.
    """

    table: str
    column: str
    joinability: float
    _lake: Path
    _normaliser: pexeso.Normaliser
    _query: TextQuery
    _pairs: list[Pair]

    def pairs(self) -> list[Pair]:
        """Return the pairs that match, nearest first."""
        return self._pairs

    def join(self, table: Any, on: str | int | None = None, **options: Any) -> Any:
        """Join with the table, each key with the nearest value."""
        query, chosen = self._query, join_options(options)
        pairs = PairColumns.of(self._pairs)
        mapping = make_mapping(query.texts, query.value_of_text, query.values, pairs, chosen.values)
        rows = read_rows(self._lake, self.table)
        found_rows = find_rows(self.table, self.column, rows, mapping, self._normaliser, chosen)
        return join_table(table, on, found_rows, query.texts).table


@dataclass(frozen=True)
class TextQuery:
    """The key of a task: its distinct texts, their normalised values, and rows per value."""

    texts: pa.StringArray
    value_of_text: np.ndarray
    values: pa.StringArray
    rows: np.ndarray
    n_rows: int

    @classmethod
    def of(cls, column: Sequence[str | None], normaliser: pexeso.Normaliser) -> TextQuery:
        """Make one of a column."""
        cells = pa.array(column, pa.string(), from_pandas=True)
        texts = cells.drop_null().unique()
        normalised = normaliser.normalise(texts)
        texts, normalised = texts.filter(normalised.is_valid()), normalised.drop_null()
        encoded = normalised.dictionary_encode()
        of_text = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        counted = cells.value_counts()
        counts = counted.field("counts").take(pc.index_in(texts, counted.field("values")))
        rows = np.bincount(of_text, weights=counts.to_numpy(), minlength=len(encoded.dictionary))
        return cls(texts, of_text, encoded.dictionary.cast(pa.string()), rows, len(cells))


def read_columns(index: pexeso.Index) -> tuple[Path, list[Table], list[pa.StringArray]]:
    """Return the lake of an index, and the names and distinct cells of its columns."""
    lake = Path(str(index.lake))
    columns = index.catalog.columns(["table", "label", "column_id"])
    index_columns = columns.filter(columns["column_id"].is_valid())
    names: list[Table] = []
    cells = []
    for table in index_columns["table"].unique().to_pylist():
        labels = index_columns.filter(pc.equal(index_columns["table"], table))["label"].to_pylist()
        rows = read_rows(lake, table, labels)
        names += [(table, label) for label in labels]
        cells += [rows[label].combine_chunks().drop_null().unique() for label in labels]
    return lake, names, cells


class LakeTexts:
    """The columns that an index holds, by their text.

    It has the distinct values of the lake, and which column has which value.
    """

    def __init__(
        self,
        lake: Path,
        columns: list[Table],
        cells: list[pa.StringArray],
        normaliser: pexeso.Normaliser,
    ) -> None:
        self.lake, self.columns, self.normaliser = lake, columns, normaliser
        raw = pa.concat_arrays(cells).dictionary_encode()
        encoded = normaliser.normalise(raw.dictionary).dictionary_encode()
        self.values: pa.StringArray = encoded.dictionary.cast(pa.string())
        value_rows = encoded.indices.take(raw.indices)
        owners = np.repeat(np.arange(len(cells)), [len(column) for column in cells])[
            value_rows.is_valid().to_numpy(False)
        ]
        value_rows = value_rows.drop_null().to_numpy(zero_copy_only=False)
        shape = (len(self.values), len(columns))
        self.held = sp.csr_matrix(
            (np.ones(len(value_rows), dtype=np.int32), (value_rows, owners)), shape=shape
        )

    def matches(
        self,
        key: Sequence[str | None],
        similar: Callable[[pa.StringArray, pa.StringArray], sp.csr_matrix],
    ) -> list[TextMatch]:
        """Find columns.

        `similar` gives the similarity, in (0, 1], of each query value to each value of the lake,
        and 0 where they do not match.
        """
        query = TextQuery.of(key, self.normaliser)
        alike = similar(query.values, self.values)
        matched = ((alike > 0).astype(np.int32) @ self.held) > 0
        joinability = (matched.T @ query.rows) / query.n_rows
        columns = [
            column
            for column in np.argsort(-joinability, kind="stable")
            if joinability[column] >= MIN_JOINABILITY
        ]
        return [self._match(query, alike, column, float(joinability[column])) for column in columns]

    def _match(
        self, query: TextQuery, alike: sp.csr_matrix, column: int, joinability: float
    ) -> TextMatch:
        value_rows = np.flatnonzero(self.held[:, column].toarray()[:, 0])
        block = alike[:, value_rows].tocoo()
        keys = self.values.take(pa.array(value_rows[block.col])).to_pylist()
        texts: dict[int, list[str]] = {}
        for text, value in zip(query.texts.to_pylist(), query.value_of_text.tolist(), strict=True):
            texts.setdefault(value, []).append(text)
        pairs = [
            Pair(text, key, 1.0 - score, key, "exact" if score == 1.0 else "spelling")
            for value, key, score in zip(block.row.tolist(), keys, block.data.tolist(), strict=True)
            for text in texts[value]
        ]
        pairs.sort(key=lambda pair: (pair.query, pair.distance, pair.key))
        return TextMatch(
            *self.columns[column], joinability, self.lake, self.normaliser, query, pairs
        )


def equal(ours: pa.StringArray, theirs: pa.StringArray) -> sp.csr_matrix:
    """Match values that are the same."""
    positions = pc.index_in(ours, theirs)
    rows = np.flatnonzero(positions.is_valid().to_numpy(zero_copy_only=False))
    columns = positions.drop_null().to_numpy(zero_copy_only=False)
    return sp.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(ours), len(theirs)))


def fuzzy(threshold: float) -> Callable[[pa.StringArray, pa.StringArray], sp.csr_matrix]:
    """Match values whose words, sorted, have at least this similarity (0 to 100) by edits."""
    from rapidfuzz.fuzz import token_sort_ratio
    from rapidfuzz.process import cdist

    def similar(ours: pa.StringArray, lake_values: pa.StringArray) -> sp.csr_matrix:
        choices = lake_values.to_pylist()
        blocks = []
        for value in ours.to_pylist():
            scores = cdist([value], choices, scorer=token_sort_ratio, score_cutoff=threshold)
            blocks.append(sp.csr_matrix(scores.astype(np.float64) / 100))
        return sp.vstack(blocks, format="csr")

    return similar


def at_least(alike: sp.csr_matrix, similarity: float) -> sp.csr_matrix:
    """Leave out what is less similar."""
    matrix = alike.copy()
    matrix.data[matrix.data < similarity - 1e-9] = 0
    matrix.eliminate_zeros()
    return matrix


def first_of_each_table(matches: Iterable[Any], left_out: Sequence[str]) -> list[Any]:
    """Return the best column of each table, without the tables left out.

    There are at most `MAX_TABLES` of them.
    """
    best: dict[str, Any] = {}
    for match in matches:
        if match.table not in left_out:
            best.setdefault(match.table, match)
    return list(best.values())[:MAX_TABLES]
