"""Tests that reworded country names are found at the automatic thresholds, in real tables."""

import re

import numpy as np
import pyarrow as pa
import pytest
from searching_stores import SmallLake, scan_of

from embed.hashing import create
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.lake.choose import profile_column
from pexeso.lake.containers.reader import read_table
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.options import USUAL_MAX_DISTANCES, SearchOptions
from pexeso.results.query import Hit, QueryColumn
from pexeso.semantic.encoded_query import prepare
from pexeso.semantic.executor import search_store
from pexeso.semantic.thresholds.advisor import Advisor

TABLES = ("country-codes.csv", "iso3166.csv", "names_en.csv", "gdp.csv")
OPTIONS = PartitionLayoutOptions(map="projection", n_axes=7)
FORMAL, SHORT, CAPITALS = (
    "UNTERM English Formal",
    "UNTERM English Short",
    "ISO4217-currency_country_name",
)
EXPECTED_PAIRS = [
    (FORMAL, SHORT),
    (FORMAL, "name"),
    (CAPITALS, "name"),
    ("name", CAPITALS),
    ("name", "Country Name"),
    ("Country Name", "name"),
]
FOREIGN = re.compile("Arabic|Chinese|French|Russian|Spanish|_(ar|cn|es|fr|ru)$")
USUAL = USUAL_MAX_DISTANCES["hashing"]
NOT_FOUND = ("Capital", "Region Name", "ISO4217-currency_name", "Continent")


@pytest.fixture(scope="module")
def lake(lake_folder, tmp_path_factory):
    """The columns of text, by name, and an index of them under the model that needs no training."""
    folder = lake_folder("countries") / "countries"
    columns = {}
    for table in TABLES:
        read = read_table(str(folder / table))
        kept = {
            name: cells
            for name, cells in zip(read.names, read.columns, strict=True)
            if profile_column(cells).kind == "text"
        }
        columns |= {name: cells.drop_null().unique() for name, cells in kept.items()}
    columns = {
        name: cells
        for name, cells in columns.items()
        if len(cells) >= 5 and not FOREIGN.search(name)
    }
    normalised = [
        cells.drop_null().unique()
        for cells in Normaliser().normalise_columns(list(columns.values()))
    ]
    values = pa.chunked_array(normalised).unique()
    corpus = tmp_path_factory.mktemp("countries_corpus") / "corpus.txt"
    corpus.write_text(
        "\n".join(text for cells in normalised for text in cells.to_pylist()), encoding="utf-8"
    )
    embedder = create(corpus=corpus)
    members = [pa.compute.index_in(cells, values).to_pylist() for cells in normalised]
    names = [("t.csv", name) for name in columns]
    small = SmallLake(embedder.embed(values), members, names, [0] * len(members))
    return columns, embedder, scan_of(small.store(OPTIONS), OPTIONS)


def test_what_is_the_same_countries_is_found_and_what_is_not_is_not(lake):
    columns, embedder, scan = lake
    advice = Advisor(scan, USUAL).columns()
    query_names = sorted({query for query, _ in EXPECTED_PAIRS})
    queries = [prepare(QueryColumn(columns[name]), Normaliser(), embedder) for name in query_names]
    options = SearchOptions(advice.max_distance, advice.min_joinability)
    results = search_store(scan, queries, [options] * len(queries))
    labels = {
        name: {hit.label for hit in hits}
        for name, (hits, _) in zip(query_names, results, strict=True)
    }
    assert all(candidate in labels[query] for query, candidate in EXPECTED_PAIRS), (advice, labels)
    assert not any(set(NOT_FOUND) & names for names in labels.values()), (advice, labels)


def test_formal_names_are_joined_with_short_ones(lake, lake_folder):
    columns, embedder, scan = lake
    query, short = (
        prepare(QueryColumn(columns[name]), Normaliser(), embedder) for name in (FORMAL, SHORT)
    )
    place = list(columns).index(SHORT)
    advice = Advisor(scan, USUAL).pair(query, Hit(place, 0, 0, place))
    apart = 1 - query.vectors.numpy() @ short.vectors.numpy().T  # half the square of the distance
    nearest, near = apart.argmin(1), apart.min(1) <= 2 * advice.max_distance**2
    truth = read_table(str(lake_folder("countries") / "countries" / TABLES[0]))
    rows = Normaliser().normalise_columns(
        [truth.columns[truth.names.index(name)] for name in (FORMAL, SHORT)]
    )
    partner = dict(zip(*(column.to_pylist() for column in rows), strict=True))
    right = [
        partner[text] == short.values[number].as_py()
        for text, number in zip(query.values.to_pylist(), nearest, strict=True)
    ]
    assert near.mean() > 0.9
    assert np.mean(np.array(right)[near]) > 0.9
