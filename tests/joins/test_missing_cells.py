"""No search and no join brings together cells that stand for a missing value."""

import pandas as pd
import pyarrow as pa
import pytest

import pexeso
from pexeso.index import build_index

GAPS = ["N/A", "null", "-", "unknown", "#REF!", "NA", "(blank)", "нет данных", "不明"]
TOWNS = ["Oslo", "Rome", "Bern", "Bonn", "Lima"]
MINE = pd.DataFrame(
    {"town": [*GAPS, *GAPS, *TOWNS], "year": ["2020"] * (2 * len(GAPS) + len(TOWNS))}
)
COUNTRIES = ["NA", "NO", "IT", "DE", "PE"]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("missing")
    (folder / "lake").mkdir()
    rows = [f"{town},2020,{number}" for number, town in enumerate([*GAPS, *GAPS, *TOWNS])]
    (folder / "lake" / "t.csv").write_text("\n".join(["name,when,n", *rows]))
    codes = [f"{code},{number}" for number, code in enumerate([*COUNTRIES, "N/A"])]
    (folder / "lake" / "codes.csv").write_text("\n".join(["code,n", *codes]))
    (folder / "lake" / "gaps.csv").write_text("\n".join(["gap,n", *(f"{gap},1" for gap in GAPS)]))
    parts = ["overlap", "containment", "composite"]
    return build_index(folder / "lake", folder / "ix", parts=parts)


def towns_joined(table):
    """Return the rows of a joined table that have a partner, by the town of yours."""
    joined = table[table["n"].notna()]
    return sorted(joined["town"])


def test_semantic_search_and_its_joins(index):
    result = index.search(MINE, on="town", k=10)
    assert [(match.table, match.column) for match in result.matches] == [("t.csv", "name")]
    assert towns_joined(result.join(MINE)) == sorted(TOWNS)
    assert towns_joined(result.join(pa.Table.from_pandas(MINE)).to_pandas()) == sorted(TOWNS)
    assert towns_joined(result.join(MINE, values="all")) == sorted(TOWNS)


def test_equal_values(index):
    [match] = index.overlap(MINE, on="town", k=10).matches
    assert (match.table, match.overlap) == ("t.csv", len(TOWNS))
    [match] = index.contain(MINE, on="town").matches
    assert (match.table, match.overlap) == ("t.csv", len(TOWNS))
    assert not index.overlap(pa.array(GAPS), k=10).matches


def test_a_code_among_codes_is_a_value(index):
    assert index.overlap(pa.array(COUNTRIES), k=10).matches[0].overlap == len(COUNTRIES)


def test_keys_of_several_columns(index):
    [match] = index.search_composite(MINE, ["town", "year"], k=10).matches
    assert match.table == "t.csv"
    assert towns_joined(match.join(MINE)) == sorted(TOWNS)


def test_learned_programs():
    theirs = pd.DataFrame({"key": [*GAPS, *TOWNS], "n": range(len(GAPS) + len(TOWNS))})
    joined = pexeso.learn_transformation(MINE[["town"]], theirs)
    assert towns_joined(joined.join().to_pandas()) == sorted(TOWNS)


def test_enrichment(index):
    joined = pexeso.enrich(index, MINE, on="town", min_coverage=0.0).table
    filled = joined[joined.filter(like="n").notna().any(axis=1) & joined["town"].isin(GAPS)]
    columns = [name for name in joined.columns if name not in MINE.columns]
    assert columns
    assert filled[columns].isna().all(axis=None)


def test_spark(index, spark):
    frame = spark.createDataFrame(MINE)
    joined = index.search(MINE, on="town").join(frame)
    assert towns_joined(joined.toPandas()) == sorted(TOWNS)


def test_aliases_of_a_missing_word_are_missing(tmp_path):
    (tmp_path / "lake").mkdir()
    own = ["-999", "see note", "n.n."]
    rows = [f"{town},2020,{number}" for number, town in enumerate([*own, *TOWNS])]
    (tmp_path / "lake" / "t.csv").write_text("\n".join(["name,when,n", *rows]))
    lines = [f"{gap},N/A" for gap in own]
    (tmp_path / "aliases.csv").write_text("\n".join(["alias,stands for", *lines]))
    index = build_index(
        tmp_path / "lake",
        tmp_path / "ix",
        parts=["overlap", "composite"],
        aliases=tmp_path / "aliases.csv",
    )
    mine = pd.DataFrame({"town": [*own, *TOWNS], "year": ["2020"] * 8})
    assert towns_joined(index.search(mine, on="town").join(mine)) == sorted(TOWNS)
    assert index.overlap(mine, on="town").matches[0].overlap == len(TOWNS)
    [match] = index.search_composite(mine, ["town", "year"]).matches
    assert towns_joined(match.join(mine)) == sorted(TOWNS)
