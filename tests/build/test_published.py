"""An index by the preset ``"published"``: the published system, exact answers."""

import shutil
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import pexeso
from pexeso.errors import EmbedderError, InputError
from pexeso.faces.cli.inspect import info_lines
from pexeso.lake.containers.reader import read_table

LAKES = {"countries": 2, "pudding": 12}
"""Real lakes, and the how manieth of their tables are taken."""

SETTINGS = ((0.02, 0.1), (0.06, 0.6), (0.2, 0.3), (0.5, 0.9), (0.0, 0.05))
"""``max_distance`` and ``min_joinability`` of searches."""

N_QUERIES = 6
MAX_QUERY_ROWS = 300


def made_up_lake(folder, *, n_tables=24):
    """Write tables of six topics: of the topic's names, some misspelt, and some empty cells."""
    rng = np.random.default_rng(0)
    letters = list("abcdefghiklmnoprstuv")
    words = np.array(["".join(rng.choice(letters, 7)) for _ in range(240)])
    topics = [rng.choice(words[40 * number :][:40], (60, 2)) for number in range(6)]
    folder.mkdir()
    for number in range(n_tables):
        names = rng.permutation(topics[number % 6])[:40]
        rows = ["name,n", *(f"{a} {b},{n}" for n, (a, b) in enumerate(names))]
        rows += [f"{a[:3]}x{a[4:]} {b},1" for a, b in names[:6]] + [",3", "!?,4"]
        (folder / f"t{number:02}.csv").write_text("\n".join(rows), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def made_up(tmp_path_factory):
    folder = tmp_path_factory.mktemp("published")
    lake = made_up_lake(folder / "lake")
    return pexeso.build_index(
        lake, folder / "lake.pexeso", preset="published", n_pivots=3, dimensions=24, seed=3
    )


def columns_of(index):
    """Read the cells of each indexed column from the lake's own files."""
    listed = index.catalog.columns(["table", "label", "position", "column_id"]).to_pylist()
    tables = {}
    for row in listed:
        if row["column_id"] is None:
            continue
        if row["table"] not in tables:
            tables[row["table"]] = read_table(index.lake / row["table"]).columns
        cells = tables[row["table"]][row["position"]].cast(pa.string())
        yield (row["table"], row["label"]), cells


class BruteForce:
    """All distances between two columns, in float64, embedded by the index's own model."""

    def __init__(self, index):
        self.index = index
        columns = columns_of(index)
        self.columns = {name: (cells, self.distinct(cells)) for name, cells in columns}

    def distinct(self, cells):
        return self.index.normaliser.normalise(cells).drop_null().unique().to_pylist()

    def vectors(self, values):
        return self.index.embedder.embed(pa.array(values, pa.string())).astype(np.float64)

    def nearest(self, query):
        """Return the distance of the nearest value for each of `query`, of each column."""
        ours = self.vectors(query)
        result = {}
        for name, (_, values) in self.columns.items():
            theirs = self.vectors(values)
            theirs = theirs[theirs.any(1)]
            distances = np.full(len(ours), np.inf)
            for at in np.flatnonzero(ours.any(1)) if len(theirs) else ():
                distances[at] = np.sqrt(((theirs - ours[at]) ** 2).sum(1)).min()
            result[name] = distances
        return result

    def answer(self, nearest, max_distance, min_joinability):
        tau = 2 * max_distance
        gaps = np.abs(np.concatenate(list(nearest.values())) - tau)
        assert max_distance == 0 or gaps.min() > 1e-12  # no rounding decides
        counts = {name: int((distances <= tau).sum()) for name, distances in nearest.items()}
        share = Fraction(str(min_joinability))
        return {
            name: count
            for name, count in counts.items()
            if count >= share * len(nearest[name]) and count
        }


def counts_of(result):
    return {(match.table, match.column): match.matched for match in result}


def check_against_brute_force(index, n_queries=N_QUERIES):
    oracle = BruteForce(index)
    assert len(oracle.columns) == index.info().columns_indexed
    names = sorted(oracle.columns)
    picked = np.linspace(0, len(names) - 1, n_queries, dtype=int)
    columns = [oracle.columns[names[at]][0].slice(0, MAX_QUERY_ROWS) for at in picked]
    listed = {"k": "all", "rerank": False, "fold_copies": False}
    nearest = [oracle.nearest(oracle.distinct(cells)) for cells in columns]
    n_found = 0
    for max_distance, min_joinability in SETTINGS:
        thresholds = {"max_distance": max_distance, "min_joinability": min_joinability}
        expected = [
            oracle.answer(distances, max_distance, min_joinability) for distances in nearest
        ]
        assert [
            counts_of(index.search(cells, **thresholds, **listed)) for cells in columns
        ] == expected
        batch = index.search_batch(columns, **thresholds, **listed)
        assert [counts_of(result) for result in batch] == expected
        n_found += sum(map(len, expected))
    assert n_found > 2 * n_queries


def test_the_index_is_what_the_paper_describes(made_up):
    info = made_up.info().to_dict()
    assert info["as_published"] is True
    assert any(line.startswith("method      as published: ") for line in info_lines(made_up.info()))
    assert (info["model"], info["dimensions"], info["vector_precision"]) == (
        "fasttext",
        24,
        "single",
    )
    assert (info["map"], info["cells"], info["metric"]) == ("pivots", "grid", "euclidean")
    assert made_up.embedder.kind == "fasttext-mean"
    assert len(info["partitions"]) == 10
    for partition in info["partitions"]:
        assert partition["map"] == "pivots"
        assert partition["coordinates"] <= 3
        assert partition["levels"] == partition["choice"]["trials"][0]["n_levels"]


def test_columns_of_one_topic_share_a_partition(made_up):
    topics = [
        {int(table[1:3]) % 6 for table in made_up.store.texts(number, "tables").to_pylist()}
        for number in range(made_up.store.n_partitions)
    ]
    assert [len(some) for some in topics] == [1] * len(topics)


def test_answers_are_those_of_brute_force(made_up):
    check_against_brute_force(made_up)


@pytest.mark.slow
def test_an_index_as_published_is_kept_up_to_date(made_up, tmp_path):
    lake, path = tmp_path / "lake", tmp_path / "lake.pexeso"
    shutil.copytree(made_up.lake, lake)
    index = pexeso.build_index(lake, path, preset="published", dimensions=8)
    (lake / "more.csv").write_text((lake / "t01.csv").read_text().replace("x", "y"), "utf-8")
    (lake / "t00.csv").unlink()
    assert index.append(delete_missing=True).committed
    assert index.info().to_dict()["as_published"] is True
    assert len(index.info().partitions) == 11
    index.compact()
    assert len(index.info().partitions) == 10
    assert index.info().to_dict()["as_published"] is True
    check_against_brute_force(index, 3)
    index.add_model("lexical")
    info = index.info().to_dict()
    assert (info["as_published"], info["further_models"][0]["as_published"]) == (True, False)


@pytest.mark.lakes
@pytest.mark.long
@pytest.mark.parametrize("name", LAKES)
def test_answers_on_a_real_lake_are_those_of_brute_force(lake_folder, tmp_path, name):
    lake = tmp_path / "lake"
    lake.mkdir()
    for path in sorted(lake_folder(name).rglob("*.csv"))[:: LAKES[name]]:
        shutil.copy(path, lake)
    index = pexeso.build_index(lake, tmp_path / "lake.pexeso", preset="published")
    assert index.info().to_dict()["as_published"] is True
    assert len(index.info().partitions) == 10
    check_against_brute_force(index)


def test_fewer_columns_make_fewer_partitions(small_lake, tmp_path):
    index = pexeso.build_index(small_lake / "cities.csv", tmp_path / "a.pexeso", preset="published")
    info = index.info()
    assert len(info.partitions) == info.columns_indexed == 2
    few = pexeso.build_index(
        small_lake, tmp_path / "b.pexeso", preset="published", n_partitions=1, dimensions=4
    )
    assert (len(few.info().partitions), few.info().to_dict()["as_published"]) == (1, True)


def test_the_same_options_by_hand_are_as_published_and_others_are_not(small_lake, tmp_path):
    options = {
        "model": "fasttext",
        "value_vectors": "mean",
        "vector_precision": "single",
        "map": "pivots",
        "cells": "grid",
        "dimensions": 4,
    }
    by_hand = pexeso.build_index(small_lake, tmp_path / "a.pexeso", **options, n_levels=None)
    assert by_hand.info().to_dict()["as_published"] is True
    six = pexeso.build_index(small_lake, tmp_path / "b.pexeso", **options, n_levels=6)
    assert six.info().to_dict()["as_published"] is False


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"preset": "fast"}, InputError, "preset must be one of published. Got 'fast'"),
        ({"preset": "published", "model": "no.bin"}, EmbedderError, "no fastText model at no.bin"),
        ({"preset": "published", "colour": 1}, InputError, "Build options are model, "),
        ({"min_rows": 2}, InputError, "Give min_rows by rules=pexeso.ColumnRules(min_rows=...)."),
        (
            {"preset": "published", "n_pivots": 63},
            InputError,
            "n_pivots must be a whole number of at least 1 and at most 62",
        ),
    ],
)
def test_bad_options_are_refused_before_anything_is_read(tmp_path, options, error, sentence):
    with pytest.raises(error) as caught:
        pexeso.build_index(tmp_path / "no lake", tmp_path / "out.pexeso", **options)
    assert sentence in str(caught.value)
    assert not (tmp_path / "out.pexeso").exists()


def test_a_file_that_is_no_model_is_refused(small_lake, tmp_path):
    model = tmp_path / "wrong.bin"
    model.write_bytes(b"no model" * 40)
    with pytest.raises(EmbedderError, match=r"wrong\.bin is not a "):
        pexeso.build_index(
            small_lake, tmp_path / "out.pexeso", preset="published", model=str(model)
        )
    assert not (tmp_path / "out.pexeso" / "manifest.json").exists()
