"""An index of the lake of one table in every format: built on Spark, searched, joined, updated."""

import pytest

import pexeso
from tests.lake.every_format import TABLE, every_file

pytestmark = pytest.mark.slow

CITIES = TABLE["city"].to_pylist()


def test_every_format_is_indexed_searched_joined_and_deleted(spark, tmp_path):
    files = every_file()
    lake = tmp_path / "lake"
    lake.mkdir()
    for name, (data, _) in files.items():
        (lake / name).write_bytes(data)
    names = {name for _, tables in files.values() for name in tables}
    path = tmp_path / "lake.pexeso"
    index = pexeso.build_index(lake, path, model="hashing", dimensions=32)
    tables = index.catalog.tables().to_pylist()
    assert {row["table"] for row in tables} == names
    matches = index.search(CITIES, k="all", fold_copies=False, min_joinability=0.8)
    assert {match.table for match in matches} == names
    member = "zm.xlsx#Cities"
    (match,) = [candidate for candidate in matches if candidate.table == member]
    joined = match.join(
        spark.createDataFrame([(city,) for city in CITIES], "place string"), "place"
    )
    kinds = dict(joined.dtypes)
    assert (kinds["people"], kinds["founded"]) == ("bigint", "date")
    assert {row["founded"] for row in joined.collect()} == set(TABLE["founded"].to_pylist())
    index.delete([member])
    left = index.search(CITIES, k="all", fold_copies=False, min_joinability=0.8)
    assert {match.table for match in left} == names - {member}
