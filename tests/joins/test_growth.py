"""Joins that would make far more rows than your table has are refused before any row is made."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner

import pexeso
from pexeso.errors import InputError
from pexeso.faces.cli.main import cli
from pexeso.index import build_index
from pexeso.joins.report import require_moderate_growth

TOWNS = ["Oslo", "Rome"]
N_ROWS = 200
"""Of each table: 100 rows of each town make 20,000."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("growth")
    (folder / "lake").mkdir()
    rows = [f"{TOWNS[number % 2]},2020,{number}" for number in range(N_ROWS)]
    for path in (folder / "lake" / "t.csv", folder / "mine.csv"):
        path.write_text("\n".join(["town,year,n", *rows]))
    build_index(folder / "lake", folder / "ix", parts=["composite"])
    return folder


@pytest.fixture(scope="module")
def index(folder):
    return pexeso.open_index(folder / "ix")


@pytest.fixture(scope="module")
def mine(folder):
    return pd.read_csv(folder / "mine.csv", dtype=str)


REFUSAL = (
    r"would make 20,000 rows of the 200 of your table: '(Oslo|Rome)(,2020)?' is in 100 of them, "
    r"each of which is joined with 100 rows of 't\.csv'.*--many-to-many"
)


@pytest.mark.parametrize("kind", ["pandas", "arrow"])
def test_a_join_by_one_column(index, mine, kind):
    table = pa.Table.from_pandas(mine) if kind == "arrow" else mine
    match = index.search(mine, on="town", k=1)[0]
    with pytest.raises(InputError, match=REFUSAL):
        match.join(table)
    assert len(match.join(table, many_to_many=True)) == 20_000
    assert len(match.join(table, aggregate="first")) == N_ROWS
    assert len(match.join(table[:2])) == 200


def test_a_join_by_several_columns(index, mine):
    match = index.search_composite(mine, ["town", "year"])[0]
    with pytest.raises(InputError, match=REFUSAL):
        match.join(mine)
    assert len(match.join(mine, many_to_many=True)) == 20_000


def test_the_command_line(folder, tmp_path):
    output = tmp_path / "out.parquet"
    words = ["join", str(folder / "ix"), f"{folder / 'mine.csv'}:town", "t.csv:town"]
    refused = CliRunner().invoke(cli, [*words, "-o", str(output)])
    assert refused.exit_code == 2
    assert "20,000 rows of the 200" in refused.stderr
    assert not output.exists()
    written = CliRunner().invoke(cli, [*words, "-o", str(output), "--many-to-many"])
    assert written.exit_code == 0
    assert "200 rows of your table became 20,000." in written.stderr


def test_the_service_names_the_field(folder):
    from pexeso.faces.service.verbs import Service

    request = {"verb": "join", "index": str(folder / "ix"), "lake_column": "t.csv:town"}
    request["query"] = f"{folder / 'mine.csv'}:town"
    with pytest.raises(InputError, match=REFUSAL):
        Service().answer(json.loads(json.dumps(request)))


def test_spark(index, mine, spark):
    frame = spark.createDataFrame(mine)
    match = index.search(mine, on="town", k=1)[0]
    with pytest.raises(InputError, match=REFUSAL):
        match.join(frame)
    assert match.join(frame, many_to_many=True).count() == 20_000


@pytest.mark.parametrize("how", ["left", "inner"])
def test_the_bounds_are_those_that_are_stated(how):
    rng = np.random.default_rng(3)
    options = pexeso.joins.options.JoinOptions(how=how)
    texts = pa.array([f"v{number}" for number in range(5)])
    n_refused = 0
    for _ in range(300):
        text = rng.integers(-1, 5, rng.integers(1, 400))
        counts = rng.integers(0, 60, 5) * rng.integers(0, 2, 5)
        n_joined = sum(
            int(counts[place]) if place >= 0 and counts[place] else int(how == "left")
            for place in text.tolist()
        )
        wanted = n_joined > 10 * len(text) and n_joined > 5_000
        n_refused += wanted
        if wanted:
            with pytest.raises(InputError, match=f"make {n_joined:,} rows of the {len(text):,} "):
                require_moderate_growth(texts, text, counts, "t", options)
        else:
            require_moderate_growth(texts, text, counts, "t", options)
    assert 20 < n_refused < 280
