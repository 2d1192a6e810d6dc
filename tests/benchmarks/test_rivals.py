"""The rivals: exact where they say so, one query column or many, whatever they are set to."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from benchmarks import batching, counting
from benchmarks.algorithms.brute_gemm import scan
from benchmarks.batching import distinct_rows, make_batch
from benchmarks.checking import normal_form, oracle_answer
from benchmarks.counting import column_hits, count_batch, sum_by_key
from benchmarks.datasets.synthetic import RandomData
from benchmarks.declared import load_candidates
from benchmarks.drawing import draw_queries
from benchmarks.lake import BenchmarkLake, BenchmarkQuery
from benchmarks.tuning import draw_samples
from pexeso.engine.arrays import csr_from_pairs
from pexeso.engine.dense.oracle import oracle_pairs
from pexeso.errors import InputError

CPU = torch.device("cpu")
EXACT = (
    "brute_gemm:default",
    "brute_gemm:bf16",
    "faiss_flat:default",
    "faiss_flat:metrics",
    "ball_tree:default",
    "ept:default",
)


@pytest.fixture(scope="module")
def lake():
    return RandomData(n_columns=40, n_values=600, dimensions=16, n_topics=4, seed=3).load()


@pytest.fixture(scope="module")
def queries(lake):
    return draw_queries(lake, 12, max_distance=0.06, min_joinability=0.6, seed=0)


@pytest.fixture(scope="module")
def right(lake, queries):
    answers = [oracle_answer(lake, query) for query in queries]
    assert sum(map(len, answers)) > len(queries), "columns beyond the query's own must be found"
    return answers


def built(spec, lake):
    """Build every point of a grid."""
    if spec.startswith("faiss"):
        pytest.importorskip("faiss")
    for candidate in load_candidates([spec], CPU):
        algorithm = candidate.adapter(CPU)
        algorithm.build(lake, candidate.build_arguments)
        algorithm.set_query_arguments(candidate.query_arguments)
        yield candidate.name, algorithm


@pytest.mark.parametrize("spec", EXACT)
def test_every_exact_rival_gives_the_answers_of_the_oracle_one_by_one_and_in_a_batch(
    spec, lake, queries, right
):
    for name, rival in built(spec, lake):
        for query, answer in zip(queries, right, strict=True):
            assert normal_form(rival.query(query)) == answer, f"{name}, {query.name}"
        single = rival.work["distances"]
        assert [normal_form(answer) for answer in rival.query_batch(queries)] == right, name
        assert rival.work["distances"] > single > 0, name
        assert rival.work["bytes_read"] > 0, name
        assert rival.index_bytes > lake.vectors.nbytes, name


@pytest.mark.parametrize("spec", EXACT)
def test_a_value_that_stands_in_several_query_columns_is_compared_once(spec, lake, queries):
    for _, rival in built(spec, lake):
        rival.query_batch(queries)
        once = dict(rival.work)
        rival.query_batch([*queries, *queries])
        assert rival.work["distinct_values"] == once["distinct_values"] < sum(map(len, queries))
        assert rival.work["distances"] == once["distances"]


@pytest.mark.parametrize("spec", EXACT)
def test_a_threshold_so_wide_that_everything_matches(spec, lake, queries):
    query = queries[0]
    wide = BenchmarkQuery(query.name, query.vectors, query.weights, query.total, 1.0, query.needed)
    for name, rival in built(spec, lake):
        assert normal_form(rival.query(wide)) == oracle_answer(lake, wide), name


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_the_size_of_blocks_and_tiles_changes_no_answer(
    monkeypatch, precision, lake, queries, right
):
    from benchmarks.algorithms.brute_gemm.module import BruteGemm

    monkeypatch.setattr(scan, "TILE_QUERIES", 64)
    monkeypatch.setattr(scan, "SETTLE_AT", 10)
    monkeypatch.setattr(counting, "POSTINGS_AT_ONCE", 7)
    monkeypatch.setattr(counting, "ENTRIES_AT_ONCE", 50)
    monkeypatch.setattr(batching, "_ROWS_AT_ONCE", 100)
    for block_products in (1, 2000, 10**6):
        rival = BruteGemm(CPU)
        rival.build(lake, {"block_products": block_products, "precision": precision})
        assert [normal_form(answer) for answer in rival.query_batch(queries[:4])] == right[:4], (
            block_products
        )


def test_a_batch_holds_no_more_products_than_it_is_told(monkeypatch, lake, queries):
    from benchmarks.algorithms.brute_gemm.module import BruteGemm

    seen = []
    real = torch.mm
    monkeypatch.setattr(
        torch, "mm", lambda *args, out: seen.append(out.numel()) or real(*args, out=out)
    )
    rival = BruteGemm(CPU)
    rival.build(lake, {"block_products": 3000})
    rival.query_batch(queries)
    assert len(seen) > 10
    assert max(seen) <= 3000


def one_column(name, vectors, max_distance=0.06):
    ones = torch.ones(len(vectors), dtype=torch.int64)
    return BenchmarkQuery(name, vectors, ones, len(vectors), max_distance, 1)


def test_rows_are_distinct_by_their_bits():
    rows = torch.tensor([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0], [-0.0, 1.0], [0.0, 1.0]])
    distinct, like = distinct_rows(rows)
    assert len(distinct) == 4
    assert torch.equal(distinct[like].view(torch.int32), rows.view(torch.int32))


def test_rows_whose_sums_are_equal_are_told_apart_by_their_bytes(monkeypatch):
    monkeypatch.setattr(batching, "_sums", lambda words: np.zeros(len(words), dtype=np.uint64))
    rows = torch.tensor([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]])
    distinct, like = distinct_rows(rows)
    assert len(distinct) == 2
    assert torch.equal(distinct[like], rows)


def test_a_batch_needs_one_threshold():
    vectors = torch.eye(3)
    with pytest.raises(InputError, match="Got 2 with 2 thresholds"):
        make_batch([one_column("a", vectors, 0.06), one_column("b", vectors, 0.07)])
    with pytest.raises(InputError, match="Got 0 with 0 thresholds"):
        make_batch([])


def test_counts_of_a_batch_are_those_of_each_column():
    # Values: 0 in columns 0 and 1, 1 in column 1, 2 in column 3.
    postings = csr_from_pairs(torch.tensor([0, 0, 1, 2]), torch.tensor([0, 1, 1, 3]), 3)
    vectors = torch.eye(4)
    first = BenchmarkQuery("first", vectors[:2], torch.tensor([2, 3]), 5, 0.06, 3)
    second = BenchmarkQuery("second", vectors[1:], torch.tensor([1, 4, 1]), 6, 0.06, 1)
    batch = make_batch([first, second])
    place = {int(row.argmax()): number for number, row in enumerate(batch.vectors)}
    # Query value 0 matches lake values 0 and 1, value 1 lake value 1, value 2 lake value 2.
    queries = torch.tensor([place[0], place[0], place[1], place[2]])
    answers = count_batch(queries, torch.tensor([0, 1, 1, 2]), batch, postings, 4)
    assert [normal_form(answer) for answer in answers] == [{1: 5}, {1: 1, 3: 4}]


def test_a_query_value_with_many_postings_is_marked_in_one_row(monkeypatch):
    generator = np.random.default_rng(0)
    values, columns = (torch.from_numpy(generator.integers(0, 30, 200)) for _ in "ab")
    postings = csr_from_pairs(values, columns, 30)
    queries, hits = (torch.from_numpy(generator.integers(0, n, 60)) for n in (8, 30))
    whole = column_hits(queries, hits, 8, postings, 30)
    for limit in (1, 10, 40):
        monkeypatch.setattr(counting, "POSTINGS_AT_ONCE", limit)
        assert all(map(torch.equal, whole, column_hits(queries, hits, 8, postings, 30))), limit


@pytest.mark.parametrize("n_keys", [50, 10**12])
def test_sums_are_equal_laid_out_and_sorted(n_keys):
    generator = torch.Generator().manual_seed(0)
    keys, weights = (torch.randint(low, 50, (300,), generator=generator) for low in (0, 1))
    distinct_keys, sums = sum_by_key(keys, weights, n_keys)
    expected = {key: int(weights[keys == key].sum()) for key in sorted(set(keys.tolist()))}
    assert dict(zip(distinct_keys.tolist(), sums.tolist(), strict=True)) == expected


def test_a_lake_of_no_values_answers_nothing():
    nothing = np.zeros(0, dtype=np.int64)
    lake = BenchmarkLake(
        "none",
        np.zeros((0, 4), dtype=np.float32),
        np.zeros(2, dtype=np.int64),
        nothing,
        nothing,
        np.ones(1),
        ["a"],
        {},
    )
    ((_, rival),) = built("brute_gemm", lake)
    assert normal_form(rival.query(one_column("q", torch.eye(4)))) == {}
    assert [
        normal_form(answer) for answer in rival.query_batch([one_column("q", torch.eye(4))])
    ] == [{}]


def test_a_pivot_table_is_the_same_in_small_pieces(monkeypatch, lake, queries, right):
    from benchmarks.algorithms.ept import module

    monkeypatch.setattr(module, "ROWS_AT_ONCE", 100)
    monkeypatch.setattr(module, "PAIRS_AT_ONCE", 50)
    rival = module.ExtremePivotTable(CPU)
    rival.build(lake, {"n_groups": 3, "group_size": 5})
    assert [normal_form(answer) for answer in rival.query_batch(queries[:4])] == right[:4]
    assert rival.work["vectors_touched"] < len(make_batch(queries[:4]).vectors) * lake.n_values / 10


def test_more_groups_of_pivots_leave_fewer_candidates(lake, queries):
    from benchmarks.algorithms.ept.module import ExtremePivotTable

    touched = []
    for n_groups in (1, 4, 16):
        rival = ExtremePivotTable(CPU)
        rival.build(lake, {"n_groups": n_groups, "group_size": 4})
        rival.query_batch(queries)
        touched.append(rival.work["vectors_touched"])
    assert touched[0] > 1.5 * touched[1] > 1.5 * touched[2]


@pytest.mark.parametrize("name", ["faiss_hnsw", "faiss_pq"])
def test_an_approximate_rival_reaches_the_recall_it_was_tuned_to(name, lake, queries):
    pytest.importorskip("faiss")
    tau = queries[0].tau
    recalls, precisions = {}, {}
    for target in (0.3, 0.75, 0.99):
        (candidate,) = load_candidates([name], CPU)
        rival = candidate.adapter(CPU)
        rival.build(lake, candidate.build_arguments)
        rival.set_query_arguments({"target_recall": target})
        rival.query(queries[0])
        sample, other = draw_samples(lake, tau)
        recalls[target] = sample.recall(rival.find(sample.vectors, tau))
        assert recalls[target] >= target
        pairs = rival.find(other.vectors, tau)
        precisions[target] = other.precision(pairs)
        assert (rival.tuned["sample_recall"], rival.tuned["sample_precision"]) == (
            other.recall(pairs),
            precisions[target],
        )
    assert recalls[0.3] <= recalls[0.75] <= recalls[0.99]
    if name == "faiss_hnsw":
        assert set(precisions.values()) == {1.0}, "its distances are those of the vectors"
    else:
        assert recalls[0.3] < 0.5, "the radius is as small as the recall allows"
        assert min(precisions.values()) < 1.0, (
            "its distances are those of codes, and nothing is checked again"
        )


@pytest.mark.parametrize("name", ["faiss_hnsw", "faiss_pq"])
def test_an_approximate_rival_tells_its_work_and_whether_it_knew_the_question(name, lake, queries):
    pytest.importorskip("faiss")
    ((_, rival),) = built(name, lake)
    sample, _ = draw_samples(lake, queries[0].tau)
    assert {query.name for query in queries} & sample.names
    for query in queries:
        rival.query(query)
        assert rival.work["tuned_on"] == (query.name in sample.names)
        assert 0 < rival.work["distances"] < len(query) * lake.n_values
        assert rival.work["bytes_read"] > 0
    rival.query_batch(queries)
    assert rival.work["tuned_on"] == sum(query.name in sample.names for query in queries)
    assert rival.index_bytes > 0


def test_the_halves_of_a_sample_share_no_column_and_hold_the_right_pairs(lake, queries):
    halves = draw_samples(lake, queries[0].tau)
    assert not halves[0].names & halves[1].names
    assert min(len(half.names) for half in halves) > 10
    for half in halves:
        pairs = oracle_pairs(half.vectors, torch.from_numpy(lake.vectors), queries[0].tau)[:2]
        assert half.recall(pairs) == half.precision(pairs) == 1.0
        assert len(half.keys) == len(pairs[0])
        assert half.recall(tuple(part[::2] for part in pairs)) == pytest.approx(0.5, abs=0.01)
        wrong = (
            torch.cat([pairs[0], torch.tensor([0])]),
            torch.cat([pairs[1], torch.tensor([lake.n_values - 1])]),
        )
        assert half.recall(wrong) == 1.0
        assert half.precision(wrong) == pytest.approx(1 - 1 / len(wrong[0]))


def test_a_graph_answers_more_values_than_faiss_searches_between_two_looks_for_ctrl_c():
    """In a process of its own, since faiss ends it where it cannot."""
    pytest.importorskip("faiss")
    program = """if True:
        import torch
        from benchmarks.datasets.synthetic import RandomData
        from benchmarks.declared import load_candidates
        (candidate,) = load_candidates(["faiss_hnsw"], torch.device("cpu"))
        rival = candidate.adapter(torch.device("cpu"))
        lake = RandomData(n_values=2000, n_columns=40, dimensions=300, seed=0).load()
        rival.build(lake, {})
        rival._ef_search = 512
        queries, _ = rival.find(torch.from_numpy(lake.vectors), 1e-3)
        assert len(set(queries.tolist())) > 1900
    """
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA GPU")
@pytest.mark.parametrize(
    "spec",
    [
        "brute_gemm:default",
        "brute_gemm:bf16",
        "ept:default",
    ],
)
def test_every_exact_rival_gives_the_answers_of_the_oracle_on_cuda(spec, lake, queries, right):
    cuda = torch.device("cuda")
    for candidate in load_candidates([spec], cuda):
        rival = candidate.adapter(cuda)
        rival.build(lake, candidate.build_arguments)
        rival.set_query_arguments(candidate.query_arguments)
        assert [normal_form(rival.query(query)) for query in queries] == right
        assert [normal_form(answer) for answer in rival.query_batch(queries)] == right
