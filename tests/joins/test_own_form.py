"""A cell is joined with the same cell where there is one, then with its own form, then the rest."""

import pandas as pd
import pyarrow as pa
import pytest

from pexeso.index import build_index

LAKE = ["AA+", "AA", "AA-", "BB", "bb.", "Cc", "CC!", "BBB", "AA"]
MINE = ["AA+", "AA", "AA-", "bb", "CC", "D", "bb."]
WANTED = {
    "AA+": ["AA+"],
    "AA": ["AA", "AA"],
    "AA-": ["AA-"],
    "bb": ["BB"],
    "CC": ["Cc"],
    "D": [None],
    "bb.": ["bb."],
}


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forms")
    (folder / "lake").mkdir()
    rows = [f"{name},{number}" for number, name in enumerate(LAKE)]
    (folder / "lake" / "t.csv").write_text("\n".join(["name,n", *rows]))
    return build_index(folder / "lake", folder / "ix")


def partners(table):
    return {text: group["name"].tolist() for text, group in table.groupby("q", sort=False)}


@pytest.mark.parametrize("kind", ["pandas", "arrow", "one-to-one", "file"])
def test_the_same_cell_wins(index, kind, tmp_path):
    frame = pd.DataFrame({"q": MINE})
    match = index.search(frame, on="q", k=1, max_distance=0)[0]
    values = "one-to-one" if kind == "one-to-one" else "nearest"
    table = pa.Table.from_pandas(frame) if kind == "arrow" else frame
    joined = match.join(table, values=values, to="pandas")
    assert partners(joined.astype(object).where(joined.notna(), None)) == WANTED


def test_all_joins_every_form(index):
    match = index.search(MINE, k=1, max_distance=0)[0]
    joined = match.join(pd.DataFrame({"q": ["AA"]}), on="q", values="all")
    assert set(joined["name"]) == {"AA"}  # AA- is another grade


def test_a_statement_for_duckdb_makes_the_same_rows(index):
    duckdb = pytest.importorskip("duckdb")
    frame = pd.DataFrame({"q": MINE})
    match = index.search(frame, on="q", k=1, max_distance=0)[0]
    sql = match.sql("frame", on="q")
    made = duckdb.sql(sql).df()
    wanted = match.join(frame, provenance=())
    rows = [
        sorted(map(str, table[["q", "name"]].fillna("").to_numpy().tolist()))
        for table in (made, wanted)
    ]
    assert rows[0] == rows[1]


def test_spark_makes_the_same_rows(index, spark):
    frame = spark.createDataFrame([(text,) for text in MINE], "q string")
    joined = index.search(MINE, k=1, max_distance=0)[0].join(frame, on="q").toPandas()
    made = {text: [*map(str, names)] for text, names in partners(joined).items()}
    assert made == {text: [*map(str, names)] for text, names in WANTED.items()}
