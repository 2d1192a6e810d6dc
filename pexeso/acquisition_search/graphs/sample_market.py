"""The join graph of a marketplace: a folder of samples of its tables, without an index.

A marketplace gives samples of its tables and sells the rest. All estimates of a plan then rest on
the samples; these should be correlated ones, drawn by the keys of joins at one rate, so that a key
is in the samples of all tables or of none.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

import pyarrow as pa

from pexeso.acquisition.graph.building import edges_of
from pexeso.acquisition.graph.coded import CodedColumns
from pexeso.acquisition.graph.joins import JoinGraph
from pexeso.acquisition.graph.tables import MarketTable, PriceOf
from pexeso.acquisition_search.graphs.market_graph import MATCHES, NAMES, matching
from pexeso.acquisition_search.graphs.row_pairs import pairs_of_rows
from pexeso.acquisition_search.graphs.table_pairs import PairsOfTables, named_pairs
from pexeso.acquisition_search.market.dependencies import (
    DISCOVER,
    OFF,
    read_dependencies,
    require_columns,
)
from pexeso.acquisition_search.market.lake_market import own_table
from pexeso.acquisition_search.market.prices_file import ALL, MarketPrices
from pexeso.errors import InputError, LakeError, TableReadError
from pexeso.lake.files import find_tables
from pexeso.lake.rows import read_rows


def sample_graph(
    folder: str | os.PathLike[str],
    *,
    rate: float,
    own: Sequence[tuple[str, pa.Table]] = (),
    match: str = NAMES,
    prices: str | os.PathLike[str] | Mapping[str, Mapping[str, float]] = "entropy",
    dependencies: str | os.PathLike[str] = DISCOVER,
    exclude: Collection[str] = (),
    coded: CodedColumns | None = None,
) -> tuple[JoinGraph, CodedColumns, list[str]]:
    """Return the join graph of a folder of samples and the shopper's own tables.

    Parameters
    ----------
    folder : path
        With a file for each table.
    rate : float
        The share of the keys that are in the samples, above 0 and at most 1. It stands in a note:
        weights and prices are estimates where it is below 1.
    own : sequence of (str, pyarrow.Table)
        The shopper's tables.
    match : {"names", "values"}
        Whether columns join where their names are equal, as the paper has it, or by their values,
        as those of an index do.
    prices, dependencies
        See `pexeso.acquisition_search.market`; entropies are those of the samples.
    exclude : collection of str
        Tables that are left out.
    coded : CodedColumns, optional
        What reads and keeps columns.

    Returns
    -------
    (JoinGraph, CodedColumns, list of str)
        The graph, the columns that were read for it, and notes.

    Raises
    ------
    InputError
        If an option is out of its range, or a list names a table that is not there.
    LakeError
        If the folder has no table.

    Notes
    -----
    All samples are held in memory.
    """
    if match not in MATCHES:
        raise InputError(f"match must be one of {', '.join(MATCHES)}. Got {match!r}.")
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate <= 1:
        raise InputError(
            f"rate must be a number above 0 and at most 1: the share of the keys that are in the "
            f"samples. Got {rate!r}."
        )
    own_tables = dict(own)
    if len(own_tables) < len(own):
        raise InputError("The shopper's tables must have different names. Rename one.")
    rows, notes = _read(folder, set(exclude) | set(own_tables))
    if rate < 1:
        notes.append(
            f"The tables are samples of {rate:g} of the keys: weights, quality, correlation and "
            "prices by entropy are estimates."
        )
    everything = {**rows, **own_tables}
    pairs = _by_names(everything) if match == NAMES else pairs_of_rows(everything)
    joined: dict[str, set[str]] = defaultdict(set)
    for (one, other), of_edge in pairs.items():
        joined[one] |= {left for left, _ in of_edge}
        joined[other] |= {right for _, right in of_edge}
    known = None
    if dependencies == OFF:
        known = {}
    elif dependencies != DISCOVER:
        known = read_dependencies(dependencies)
    priced = MarketPrices.of(prices)
    unknown = sorted({*priced.listed, *(known or {})} - set(everything) - {ALL})
    if unknown:
        raise InputError(
            f"There is no table '{unknown[0]}' in '{os.fspath(folder)}'. Tables are named by their "
            "paths in it."
        )
    tables = {}
    for name, table in everything.items():
        columns = tuple(table.column_names)
        held = None if known is None else require_columns(name, columns, known)
        kinds = own_table(name, table, joined[name], dependencies=held)
        price = priced.of_table(name, columns, kinds.read)
        tables[name] = kinds if name in own_tables else _for_sale(kinds, price)
    coded = CodedColumns() if coded is None else coded
    edges = edges_of(tables, pairs, coded, natural=match == NAMES)
    return (
        JoinGraph.of(tables.values(), edges if match == NAMES else matching(edges)),
        coded,
        notes,
    )


def _for_sale(table: MarketTable, price: PriceOf) -> MarketTable:
    return MarketTable(
        table.name,
        table.columns,
        table.n_rows,
        table.read,
        price,
        numeric=table.numeric,
        dependencies=table.dependencies,
    )


def _read(
    folder: str | os.PathLike[str], hidden: Collection[str]
) -> tuple[dict[str, pa.Table], list[str]]:
    files = find_tables(folder)[0]
    if not files:
        raise LakeError(f"'{os.fspath(folder)}' has no table: give a folder of samples.")
    rows, notes = {}, []
    for file in sorted(files, key=lambda file: file.table):
        if file.table in hidden:
            continue
        try:
            rows[file.table] = read_rows(folder, file.table)
        except TableReadError as error:
            notes.append(f"'{file.table}' is left out: {error}")
    return rows, notes


def _by_names(rows: Mapping[str, pa.Table]) -> PairsOfTables:
    labels = {name: list(table.column_names) for name, table in rows.items()}
    pairs: PairsOfTables = {}
    for one, other in combinations(sorted(labels), 2):
        pairs.update(named_pairs(labels, [one], [other]))
    return pairs
