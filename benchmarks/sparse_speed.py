"""The command ``python -m benchmarks sparse-speed``: lexical searches beside sparse products.

A user could multiply and cut a sparse matrix of the very same vectors, by scipy or, where it is
installed, by ``sparse_dot_topn``. The fastest way to multiply is chosen on columns that are not
measured, and the pairs must be those of a search. The answers of tf-idf of whole words, the usual
baseline, are others: it knows no letters.

Times are processor time in one thread, all ways in turn, the fastest of `REPEATS`.
"""

from __future__ import annotations

import importlib.util
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import scipy.sparse as sp

from benchmarks.commands import benchmark, setting
from benchmarks.lexical_speed import ask_alone, partition_of
from benchmarks.machine import pin_threads
from benchmarks.report import markdown_table
from benchmarks.timing import timed_call
from pexeso.engine.sparse.partition import SparsePartition
from pexeso.engine.sparse.search import find_rows
from pexeso.engine.sparse.sparse_space import SparseSpace
from pexeso.engine.sparse.vectors import SparseVectors, pair_distances
from pexeso.engine.stats import SearchStats
from pexeso.errors import PexesoError
from pexeso.runtime.compiled import compiled

loops = compiled("pexeso.engine.sparse.loops")

DISTANCES = (0.06, 0.2, 0.4)
REPEATS = 3
N_COLUMNS, N_TUNING = 40, 10
"""Query columns that are measured, and others on which a product is tuned."""

ROWS = (1, 8, 64)
"""Query values that are multiplied together, as tuning tries them."""

SLACK = 1e-5
"""Cosines of float32 sums so near the threshold are decided by the definition."""

WORD_SUMS = "words first"
WAYS = ("values", WORD_SUMS)

Pairs = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class SparseProduct:
    """The stored values of a partition as sparse matrices, all rows of unit length.

    Attributes
    ----------
    left : scipy.sparse.csr_matrix
        Values by features, float32: query values are rows of it.
    """

    partition: SparsePartition
    left: sp.csr_matrix
    right: sp.csr_matrix
    words: sp.csr_matrix | None = None
    values: sp.csr_matrix | None = None
    way: str = "values"
    rows: int = 8
    topn: bool = False

    @property
    def described(self) -> str:
        return f"{self.way}, rows: {self.rows}"

    def candidates(self, members: np.ndarray, min_cosine: float) -> Pairs:
        """Return the pairs of positions in `members` and stored values from a cosine on."""
        blocks = []
        for begin in range(0, len(members), self.rows):
            products = self._multiply(self.left[members[begin : begin + self.rows]], min_cosine)
            row = np.repeat(np.arange(products.shape[0]), np.diff(products.indptr))
            near = np.flatnonzero(products.data >= min_cosine)
            blocks.append((row[near] + begin, products.indices[near]))
        row, column = (np.concatenate(part) for part in zip(*blocks, strict=True))
        return row.astype(np.int64), column.astype(np.int64)

    def _multiply(self, some: sp.csr_matrix, min_cosine: float) -> sp.csr_matrix:
        if self.way == WORD_SUMS:
            some, right = some @ self.words, self.values
        else:
            right = self.right
        if not self.topn:
            return some @ right
        from sparse_dot_topn import sp_matmul_topn

        # As many as there are values: nothing above the threshold is left out.
        return sp_matmul_topn(some, right, top_n=right.shape[1], threshold=min_cosine, n_threads=1)

    def pairs(self, members: np.ndarray, max_distance: float) -> Pairs:
        """Return the pairs that match by the definition, as `searched_pairs` does."""
        min_cosine = 1 - 2 * max_distance * max_distance
        row, column = self.candidates(members, min_cosine - SLACK)
        vectors = self.partition.vectors
        distances = pair_distances(vectors.take(members[row]), vectors.take(column))
        right = distances <= max_distance
        return row[right], column[right]


def letters_of(partition: SparsePartition) -> SparseProduct:
    """Return the vectors of the lexical model, whose cosines are those of its definition."""
    n_words = len(partition.vectors.weights)
    lists = partition.key_words
    counts = sp.csr_matrix(
        (np.ones(len(lists.members)), lists.members, lists.offsets),
        shape=(len(partition.keys), n_words),
    ).T.tocsr()
    # A common pair counts PAIR, and 1 more for each common block: three features of each key.
    pair, blocks = partition.keys >> loops.BITS_OF_BLOCKS, partition.keys & loops.BLOCKS
    half = loops.BITS_OF_BLOCK
    named = (pair, (pair << half) | (blocks >> half), (pair << half) | (blocks & ((1 << half) - 1)))
    parts = []
    for names, weight in zip(named, (np.sqrt(loops.PAIR), 1.0, 1.0), strict=True):
        _, number = np.unique(names, return_inverse=True)
        rows = np.arange(len(names))
        parts.append(sp.csr_matrix((np.full(len(names), weight), (rows, number))))
    spelled = counts @ sp.hstack(parts, "csr")
    space, squares = partition.vectors.space, partition.vectors.squares
    words = sp.hstack(
        [
            sp.diags(np.sqrt(space.letters / squares)) @ spelled,
            sp.diags(np.full(n_words, np.sqrt(space.whole_word_share))),
        ],
        "csr",
    )
    held = _held(partition.vectors)
    held = sp.diags(1 / _lengths(partition.vectors.norms)) @ held
    left = (held @ words).astype(np.float32).tocsr()
    return SparseProduct(
        partition,
        left,
        left.T.tocsr(),
        words.T.tocsr().astype(np.float32),
        held.T.tocsr().astype(np.float32),
    )


def whole_words_of(partition: SparsePartition) -> SparseProduct:
    """Return tf-idf vectors: the words of values and their weights, with no letters."""
    held = _held(partition.vectors)
    lengths = np.sqrt(np.asarray(held.multiply(held).sum(1)).ravel())
    left = (sp.diags(1 / _lengths(lengths**2)) @ held).astype(np.float32).tocsr()
    return SparseProduct(partition, left, left.T.tocsr())


def _held(vectors: SparseVectors) -> sp.csr_matrix:
    """Return values by words: the weight of each word as often as a value has it."""
    data = vectors.weights[vectors.members].astype(float)
    # A copy, as `sum_duplicates` works in place.
    parts = (data, vectors.members.copy(), vectors.offsets.copy())
    held = sp.csr_matrix(parts, shape=(len(vectors), len(vectors.weights)))
    held.sum_duplicates()
    return held


def _lengths(squares: np.ndarray) -> np.ndarray:
    return np.sqrt(np.where(squares > 0, squares, 1))


def searched_pairs(
    partition: SparsePartition, members: np.ndarray, max_distance: float
) -> np.ndarray:
    """Return the pairs of positions and stored values that a search finds, sorted."""
    matches = find_rows(partition, partition.vectors.take(members), max_distance, 1, SearchStats())
    row = np.repeat(np.arange(len(members)), np.diff(matches.offsets))
    return np.unique(np.stack([row, matches.members], 1), axis=0)


def differences(product: SparseProduct, members: np.ndarray, max_distance: float) -> int:
    """Count the pairs that a product and a search do not both find."""
    ours = {tuple(pair) for pair in searched_pairs(product.partition, members, max_distance)}
    product_pairs = set(zip(*product.pairs(members, max_distance), strict=True))
    return len(ours ^ product_pairs)


def tuned(
    product: SparseProduct, columns: list[np.ndarray], max_distance: float
) -> tuple[SparseProduct, dict[str, float]]:
    """Return the fastest way to multiply on some columns, and the seconds of each."""
    ways = WAYS if product.words is not None else WAYS[:1]
    tried = [replace(product, way=way, rows=rows) for way in ways for rows in ROWS]
    seconds = [
        min(_processor_seconds(_multiply, trial, columns, max_distance) for _ in range(2))
        for trial in tried
    ]
    best = tried[int(np.argmin(seconds))]
    return best, {trial.described: round(s, 3) for trial, s in zip(tried, seconds, strict=True)}


def drawn_columns(partition: SparsePartition) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Draw columns to measure and others to tune on, each as its stored values."""
    rng = np.random.default_rng(1)
    usable = np.flatnonzero(np.diff(partition.column_lists.offsets) >= 5)
    chosen = rng.permutation(usable)[: N_COLUMNS + N_TUNING].tolist()
    values = [np.asarray(partition.column_lists[column], np.int64) for column in chosen]
    return values[N_TUNING:], values[:N_TUNING]


def measured(partition: SparsePartition) -> dict[str, Any]:
    """Measure a search and the products in turn, once their answers are the same."""
    pin_threads(1)
    columns, tuning = drawn_columns(partition)
    letters, words = letters_of(partition), whole_words_of(partition)
    products = {"scipy": letters, "words": words}
    if importlib.util.find_spec("sparse_dot_topn") is not None:
        products["sparse_dot_topn"] = replace(letters, topn=True)
    tuning_seconds = {}
    for name, product in products.items():
        products[name], tuning_seconds[name] = tuned(product, tuning, 0.2)
        click.echo(json.dumps({name: tuning_seconds[name]}), err=True)
    n_values = sum(map(len, columns))
    space, rows = SparseSpace(partition.space), []
    for distance in DISTANCES:
        for name, product in products.items():
            wrong = name != "words" and differences(product, np.concatenate(tuning), distance)
            if wrong:
                raise PexesoError(f"{name} and a search differ in {wrong} pairs at {distance}.")
        times: dict[str, list[float]] = {name: [] for name in ("search", *products)}
        for _ in range(REPEATS):
            times["search"].append(
                _processor_seconds(ask_alone, space, partition, columns, distance)
            )
            for name, product in products.items():
                times[name].append(_processor_seconds(_multiply, product, columns, distance))
        row = {name: min(seconds) / n_values for name, seconds in times.items()}
        rows.append(
            {
                "max_distance": distance,
                "microseconds_a_value": {name: round(s * 1e6) for name, s in row.items()},
                "over_search": {name: round(row[name] / row["search"], 2) for name in products},
            }
        )
        click.echo(json.dumps(rows[-1]), err=True)
    return {
        "values": partition.n_values,
        "words": partition.n_words,
        "columns": len(columns),
        "query_values": n_values,
        "features_a_value": round(letters.left.nnz / max(1, partition.n_values), 1),
        "index_bytes": {name: _bytes_of(product) for name, product in products.items()},
        "tuned": {name: chosen_product.described for name, chosen_product in products.items()},
        "tuning_seconds": tuning_seconds,
        "measured": rows,
    }


def _bytes_of(product: SparseProduct) -> int:
    held = (product.words, product.values) if product.way == WORD_SUMS else (product.right,)
    return sum(m.data.nbytes + m.indices.nbytes + m.indptr.nbytes for m in (product.left, *held))


def _multiply(product: SparseProduct, columns: list[np.ndarray], max_distance: float) -> None:
    """Find the pairs alone: neither are doubtful ones decided, nor columns counted."""
    for members in columns:
        product.candidates(members, 1 - 2 * max_distance * max_distance)


def table_of(result: Mapping[str, Any]) -> str:
    """Return a stored result as a table of Markdown."""
    names = list(result["measured"][0]["over_search"])
    titles = {
        "scipy": "scipy, the same vectors",
        "sparse_dot_topn": "sparse_dot_topn, the same vectors",
        "words": "tf-idf of words, other answers",
    }
    rows = []
    for row in result["measured"]:
        took = row["microseconds_a_value"]
        cells = [f"{took[name]:,} µs ({row['over_search'][name]:.2g}x)" for name in names]
        rows.append([row["max_distance"], f"{took['search']:,} µs", *cells])
    return markdown_table(["`max_distance`", "search", *map(titles.get, names)], rows)


def _processor_seconds(*call: Any) -> float:
    return timed_call(*call, clock=time.process_time)[0]


@dataclass(frozen=True)
class Request:
    index: str = setting(nargs=1, type=click.Path())


@benchmark("sparse-speed", Request, table_of)
def main(request: Request) -> Iterator[tuple[str, dict[str, Any]]]:
    """Measure searches of a lexical INDEX of one partition beside exact sparse products."""
    yield "lexical/sparse", measured(partition_of(Path(request.index)))
