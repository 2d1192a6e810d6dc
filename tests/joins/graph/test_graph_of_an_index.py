"""The join graph of an index: against plain sets, searches, brute force in float64, and Spark."""

import json
from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from equal_text_lakes import shard_of
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import long_cases_but

import pexeso
from pexeso.errors import InputError
from pexeso.joins.graph import edges as containers
from pexeso.joins.graph import edges as semantic
from pexeso.joins.graph import spark_tasks
from pexeso.joins.graph.edges import EqualValues, edges_between
from pexeso.joins.graph.graphs import GraphOptions
from pexeso.joins.graph.spark_tasks import _EdgeJob, _waves, _work
from pexeso.semantic.spark_executor import on_spark, passes_of
from pexeso.sets.lake_columns import LakeColumns
from tests.bare_indexes import without_parts
from tests.joins.graph.plain_graphs import edges_of, jaccard_leaders, pairs_of, random_columns

WORDS = "oslo rome madrid vienna lisbon dublin helsinki athens bern prague sofia riga"


def lake_files(seed, n_tables):
    """Return tables of words, some misspelt, some columns copies of others."""
    random = np.random.default_rng(seed)
    files, last = {}, None
    for table in range(n_tables):
        columns = {}
        for label in ("city", "seat")[: int(random.integers(1, 3))]:
            chosen = random.choice(WORDS.split(), 8)
            cells = [word + word[-1] if random.random() < 0.3 else word for word in chosen.tolist()]
            if last is not None and random.random() < 0.2:
                cells = last
            columns[label] = last = cells
        names = list(columns)
        rows = [",".join(row) for row in zip(*columns.values(), strict=True)]
        files[f"t{table:02}.csv"] = "\n".join([",".join(names), *rows]) + "\n"
    return files


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph_lake")
    lake = folder / "lake"
    lake.mkdir()
    for name, text in lake_files(7, 12).items():
        (lake / name).write_text(text)
    return pexeso.build_index(
        lake, folder / "lake.pexeso", model="hashing", dimensions=64, parts=["overlap"],
        n_partitions=3,
    )  # fmt: skip


def columns_of(index):
    """Return the distinct normalised values of each column and their vectors in float64."""
    store, columns = index.store, {}
    names = {
        row["column_id"]: (row["table"], row["label"])
        for row in index.catalog.columns(["column_id", "table", "label"]).to_pylist()
    }
    for number in range(store.n_partitions):
        arrays, values = store.partition(number), store.texts(number, "values")
        offsets, members = arrays["column_values_offsets"], arrays["column_values_members"]
        for at, column_id in enumerate(arrays["column_ids"].tolist()):
            rows = np.asarray(members[offsets[at] : offsets[at + 1]])
            texts = values.take(pa.array(rows)).to_pylist()
            columns[names[column_id]] = (texts, np.asarray(arrays["vectors"][rows], np.float64))
    return columns


def counted(columns, left, right, max_distance):
    mine, theirs = columns[left][1], columns[right][1]
    apart = np.sqrt(((mine[:, None] - theirs[None]) ** 2).sum(2)) / 2
    return int((apart <= max_distance).any(1).sum())


def edges_by_distance(columns, min_joinability, max_distance, k=None):
    edges, floor = {}, Fraction(str(min_joinability))
    for left in sorted(columns):
        total = len(columns[left][0])
        counts = [
            (counted(columns, left, right, max_distance), right)
            for right in sorted(columns)
            if right[0] != left[0]
        ]
        kept = [pair for pair in counts if pair[0] and Fraction(pair[0], total) >= floor]
        kept.sort(key=lambda pair: -pair[0])
        edges |= {(left, right): (n, total) for n, right in kept[:k]}
    return edges


@pytest.mark.parametrize(
    ("distance", "share", "k"), [(0.0, 0.3, None), (0.2, 0.6, 2), (0.35, 0.4, 5)]
)
def test_edges_are_those_of_distances_in_float64(index, monkeypatch, distance, share, k):
    truth = edges_by_distance(columns_of(index), share, distance, k)
    options = {"min_joinability": share, "max_distance": distance, "k": "all" if k is None else k}
    graph = index.graph(method="semantic", **options)
    assert pairs_of(graph.rows()) == truth
    assert list(pairs_of(graph.rows())) == list(truth)
    assert len(truth) > 10
    monkeypatch.setattr(semantic, "MAX_CHUNK_QUERIES", 3)
    assert index.graph(method="semantic", **options).rows() == graph.rows()
    for kernel in ("compiled", "torch"):
        other = pexeso.open_index(index.path, device="cpu", kernel=kernel)
        assert other.graph(method="semantic", **options).rows() == graph.rows()


def test_edges_are_those_of_searches_with_each_column(index):
    rows = pairs_of(index.graph(method="semantic", k="all").rows())
    for table, column in columns_of(index):
        matches = index.search(
            pexeso.results.query.read_query(index.lake / table, column), exclude_self=True,
            k="all", min_joinability=0.5, fold_copies=False, rerank=False,
        )  # fmt: skip
        mine = {ends[1]: n for ends, n in rows.items() if ends[0] == (table, column)}
        assert mine == {(m.table, m.column): (m.matched, m.total) for m in matches}


@pytest.mark.parametrize(
    ("method", "fold_copies"),
    long_cases_but(
        [("overlap", True), ("semantic", False)], product(["overlap", "semantic"], [False, True])
    ),
)
def test_spark_gives_what_this_process_gives(index, spark, method, fold_copies):
    options = {"method": method, "k": 3, "fold_copies": fold_copies}
    here = index.stream_graph(**options)
    there = on_spark(index, spark, device="cpu")
    ran = there.stream_graph(**options, passes=passes_of(index, spark))
    assert pa.Table.from_batches(ran.batches()) == pa.Table.from_batches(here.batches())
    assert ran.summary() == here.summary()
    assert here.n_cut > 0


def test_copies_are_folded_by_values_alike_too(index):
    columns = columns_of(index)
    leaders = jaccard_leaders({name: set(texts) for name, (texts, _) in columns.items()})
    graph = index.graph(method="semantic", fold_copies=True, k="all", max_distance=0.2)
    assert {
        (row["table"], row["column"]): (row["of_table"], row["of_column"])
        for row in graph.copies.to_pylist()
    } == {name: leader for name, leader in leaders.items() if name != leader}
    kept = {name: column for name, column in columns.items() if leaders[name] == name}
    assert pairs_of(graph.rows()) == edges_by_distance(kept, 0.5, 0.2)
    assert 0 < graph.copies.num_rows == len(columns) - graph.n_columns
    row = next(row for row in graph.rows() if row["right_copies"])
    assert (
        row["right_copies"]
        == list(leaders.values()).count((row["right_table"], row["right_column"])) - 1
    )


def test_deleted_tables_are_no_nodes(index, tmp_path):
    import shutil

    copy = tmp_path / "copy.pexeso"
    shutil.copytree(index.path, copy)
    other = pexeso.open_index(copy)
    other.delete(["t03.csv"])
    for method in ("overlap", "semantic"):
        before = index.graph(method=method, k="all").rows()
        ends = ("left_table", "right_table")
        left = [row for row in before if "t03.csv" not in {row[end] for end in ends}]
        assert other.graph(method=method, k="all").rows() == left != before


def test_the_method_follows_the_index(index, tmp_path):
    assert index.graph().options["method"] == "overlap"
    assert index.graph(max_distance=0.1).options == {
        "method": "semantic", "min_joinability": 0.5, "max_distance": 0.1, "k": 20,
        "fold_copies": False,
    }  # fmt: skip
    bare = pexeso.open_index(without_parts(index.path, tmp_path / "bare.pexeso"))
    assert bare.graph().options["method"] == "semantic"
    with pytest.raises(InputError, match="has no part for searches by overlap"):
        bare.graph(method="overlap")


def test_a_graph_is_had_as_tables_and_texts(index, tmp_path):
    graph = index.graph(k=2)
    assert len(graph) == len(graph.rows()) == graph.to_arrow().num_rows > 5
    assert graph.to_pandas().to_dict("records") == graph.to_polars().to_dicts() == graph.rows()
    assert json.loads(json.dumps(graph.to_dict()))["edges"] == graph.rows()
    shown = graph._repr_html_()
    assert f"<table><caption>{len(graph)} edges between" in shown
    assert shown.count("<svg") == 1
    assert repr(graph) == f"ColumnGraph({len(graph)} edges between {graph.n_columns} columns)"
    assert graph.to_mermaid().startswith("flowchart LR\n")
    streamed = index.stream_graph(k=2).write(tmp_path / "a.jsonl")
    assert [json.loads(line) for line in streamed.read_text().splitlines()] == graph.rows()
    assert graph.write(tmp_path / "b.jsonl").read_bytes() == streamed.read_bytes()


def test_progress_ends_with_all_columns(index):
    for method in ("overlap", "semantic"):
        said = []
        graph = index.graph(method=method, progress=lambda *step: said.append(step))  # noqa: B023
        assert said == sorted(said)
        assert said[-1] == (graph.n_columns, graph.n_columns)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "containment"}, "method must be one of overlap, semantic. Got 'containment'"),
        ({"min_joinability": 1.5}, "min_joinability must be a number in"),
        ({"min_joinability": None}, "min_joinability must be a number in"),
        ({"max_distance": -1}, "max_distance must be a number in"),
        ({"method": "overlap", "max_distance": 0.1}, "the method overlap compares equal ones"),
        ({"k": 0}, "k must be a whole number of at least 1"),
        ({"fold_copies": "no"}, "fold_copies must be True or False. Got 'no' instead."),
        ({"top_k": 3}, "Options of a graph are method, .*fold_copies. Got top_k."),
    ],
)
def test_options_are_checked(given, message):
    with pytest.raises(InputError, match=message):
        GraphOptions.of(given)


def lake_of(folder, columns, *, shards=1, deleted=()):
    """Write the columns of a lake into shards by table; each table has 30 rows."""
    opened = []
    for number in range(shards):
        mine = {
            name: tokens
            for name, tokens in columns.items()
            if int(name[0][1:-4]) % shards == number
        }
        if mine:
            gone = [at for at, name in enumerate(sorted(mine)) if name[0] in deleted]
            place = folder / str(number)
            place.mkdir()
            opened.append(shard_of(place, mine, deleted=gone))
    tables = sorted({table for table, _ in columns})
    return LakeColumns.of(
        opened, pa.array(tables, pa.string()), pa.array([30] * len(tables), pa.int64())
    )


def found_in(compared, edges):
    """Return edges as `edges_of` does, in their order."""
    nodes, pairs = compared.nodes, {}
    names = list(zip(nodes.tables.to_pylist(), nodes.labels.to_pylist(), strict=True))
    for left, right, matched, _ in edges:
        for one, other, n in zip(left.tolist(), right.tolist(), matched.tolist(), strict=True):
            pairs[names[one], names[other]] = (n, int(nodes.totals[one]))
    return pairs


def missing(columns):
    return np.full(len(columns), -1, np.int64)


@settings(max_examples=30)
@given(
    st.integers(0, 10**6),
    st.sampled_from([1e-9, 0.1, 0.5, 0.8, 1.0]),
    st.sampled_from([None, 1, 3]),
    st.sampled_from([1, 2]),
)
def test_edges_are_those_of_plain_sets(tmp_path_factory, seed, min_joinability, k, shards):
    columns = random_columns(seed)
    known = lake_of(tmp_path_factory.mktemp("lake"), columns, shards=shards)
    compared = EqualValues.of(known, missing(known), folds=False)
    truth = edges_of(columns, min_joinability, k)
    edges = found_in(compared, compared.edges(min_joinability, k))
    assert edges == truth
    assert list(edges) == list(truth)


@pytest.mark.parametrize("at_once", [1, 20, 1 << 21])
def test_the_tokens_that_are_taken_at_a_time_do_not_matter(tmp_path, monkeypatch, at_once):
    columns = random_columns(3, n_tables=12)
    known = lake_of(tmp_path, columns, shards=3)
    compared = EqualValues.of(known, missing(known), folds=False)
    monkeypatch.setattr(containers, "CHUNK_TOKENS", at_once)
    truth = edges_of(columns, 0.3, 2)
    assert found_in(compared, compared.edges(0.3, 2)) == truth
    assert len(truth) > 30


def test_ranges_of_columns_make_up_the_whole(tmp_path):
    columns = random_columns(4, n_tables=12)
    known = lake_of(tmp_path, columns)
    compared = EqualValues.of(known, missing(known), folds=False)
    parts = {}
    for begin in range(0, len(known), 5):
        end = min(begin + 5, len(known))
        parts |= found_in(compared, edges_between(known, 0.3, None, begin, end))
    assert parts == edges_of(columns, 0.3, None)


def test_deleted_tables_have_no_edge(tmp_path):
    columns = random_columns(5, n_tables=8)
    known = lake_of(tmp_path, columns, shards=2, deleted=("t2.csv", "t5.csv"))
    compared = EqualValues.of(known, missing(known), folds=False)
    live = {name: tokens for name, tokens in columns.items() if name[0] not in ("t2.csv", "t5.csv")}
    assert found_in(compared, compared.edges(0.2, None)) == edges_of(live, 0.2, None)


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from([1, 3]))
def test_copies_are_folded_as_plain_sets_are(tmp_path_factory, seed, shards):
    columns = random_columns(seed, n_tables=9)
    known = lake_of(tmp_path_factory.mktemp("lake"), columns, shards=shards)
    compared = EqualValues.of(known, missing(known), folds=True)
    leaders = jaccard_leaders(columns)
    kept = {name: columns[name] for name in columns if leaders[name] == name}
    assert found_in(compared, compared.edges(0.3, None)) == edges_of(kept, 0.3, None)
    copies = {
        (row["table"], row["column"]): (row["of_table"], row["of_column"])
        for row in compared.copies.to_pylist()
    }
    assert copies == {name: leader for name, leader in leaders.items() if name != leader}
    assert compared.nodes.n_copies.sum() == len(copies)


def test_a_column_is_unique_where_all_its_cells_differ(tmp_path):
    columns = {
        ("t0.csv", "c0"): {f"v{at}" for at in range(30)},  # all 30 rows
        ("t0.csv", "c1"): {f"v{at}" for at in range(28)},  # and two cells without a value
        ("t1.csv", "c0"): {f"v{at}" for at in range(29)},  # one value twice, or one "n/a"
        ("t1.csv", "c1"): {f"v{at}" for at in range(30, 60)},  # nothing known of its cells
    }
    known = lake_of(tmp_path, columns)
    nodes = EqualValues.of(known, np.array([0, 2, 0, -1]), folds=False).nodes
    assert nodes.unique.tolist() == [True, True, False, False]


def test_a_lake_without_columns_has_no_edge(tmp_path):
    known = LakeColumns.of([], pa.array([], pa.string()), pa.array([], pa.int64()))
    for folds in (False, True):
        compared = EqualValues.of(known, missing(known), folds=folds)
        assert found_in(compared, compared.edges(0.5, None)) == {}


@pytest.mark.parametrize("n_tasks", [1, 3, 50])
def test_waves_hold_each_column_once_in_order(n_tasks):
    sizes = np.random.default_rng(0).integers(1, 40, 90)
    waves = list(_waves(sizes, n_tasks))
    assert all(len(wave) <= n_tasks for wave in waves)
    runs = [run for wave in waves for run in wave]
    assert [begin for begin, _ in runs] == [0, *(end for _, end in runs[:-1])]
    assert runs[-1][1] == len(sizes)
    assert len(runs) >= min(n_tasks, 2)


def test_no_column_is_no_wave():
    assert list(_waves(np.empty(0, np.int64), 4)) == []


def test_tasks_give_what_one_process_does(tmp_path, monkeypatch):
    monkeypatch.setattr(spark_tasks, "take_one_thread", lambda: None)  # of this process
    known = lake_of(tmp_path, random_columns(8, n_tables=12), shards=2)
    sent = SimpleNamespace(value=_EdgeJob("a pass", known, 0.3, 4))
    batches = []
    for wave in _waves(known.sizes, 5):
        numbers = pa.record_batch([pa.array(range(len(wave)))], names=["id"])
        batches += _work(iter([numbers]), sent=sent, wave=wave)
    whole = edges_between(known, 0.3, 4, 0, len(known))
    expected = [pa.record_batch(list(arrays[:3]), schema=batches[0].schema) for arrays in whole]
    assert pa.Table.from_batches(batches) == pa.Table.from_batches(expected)
    assert list(spark_tasks._READ) == ["a pass"]  # for the next task of the same pass alone
