"""Small tables to search composite keys in."""

import pyarrow as pa
from hypothesis import strategies as st

# Few values, so that they repeat in rows and columns, and an empty one, which is missing.
CELLS = st.sampled_from(["", "a", "b", "c", "ab", "é"])


def rows_of(width, limit=7):
    return st.lists(st.lists(CELLS, min_size=width, max_size=width), max_size=limit)


TABLES = st.integers(1, 5).flatmap(rows_of)


def arrow_table(rows):
    """Return rows of texts as an Arrow table; a table without rows has no columns."""
    columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    return pa.table(columns, names=[f"c{number}" for number in range(len(columns))])


RUNNING_QUERY = [
    ["muhammad", "lee", "us"],
    ["ansel", "adams", "uk"],
    ["ansel", "adams", "us"],
    ["muhammad", "lee", "germany"],
    ["helmut", "newton", "germany"],
]
RUNNING_TABLE = [
    ["helmut", "newton", "germany", "photographer"],
    ["muhammad", "lee", "us", "dancer"],
    ["ansel", "adams", "uk", "dancer"],
    ["ansel", "adams", "us", "photographer"],
    ["muhammad", "ali", "us", "boxer"],
    ["muhammad", "lee", "germany", "birder"],
    ["gretchen", "lee", "germany", "artist"],
    ["adam", "sandler", "us", "actor"],
]
MINI_LAKE = [
    [["nothing", "is", "here"]],
    RUNNING_TABLE,
    [
        ["us", "muhammad", "lee"],
        ["germany", "helmut", "newton"],
        ["us", "lee", "muhammad"],
        ["uk", "ansel", "adams"],
        ["uk", "ansel", "adams"],
    ],
    4 * [["muhammad", "ali", "us"]] + 4 * [["ansel", "karl", "uk"]],
    [["lee", "muhammad", "us", "x"], ["adams", "ansel", "uk", "y"]],
]
"""The tables of the worked example have the numbers 1 to 4."""
