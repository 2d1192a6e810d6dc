"""The rivals: exact where they say so, one query column or many, whatever they are set to."""

import sys

import numpy as np
import pytest
import torch
from processes import ran

from benchmarks import counting
from benchmarks.algorithms.brute_gemm import scan
from benchmarks.checking import normal_form, oracle_answer
from benchmarks.datasets.synthetic import RandomData
from benchmarks.declared import load_candidates
from benchmarks.drawing import draw_queries
from benchmarks.lake import BenchmarkLake, BenchmarkQuery
from benchmarks.tuning import draw_sample
from pexeso.engine.dense.oracle import oracle_pairs

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
        algorithm.build(lake, **candidate.build_arguments)
        algorithm.set_query_arguments(**candidate.query_arguments)
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
    for block_products in (1, 2000, 10**6):
        rival = BruteGemm(CPU)
        rival.build(lake, block_products=block_products, precision=precision)
        assert [normal_form(answer) for answer in rival.query_batch(queries[:4])] == right[:4], (
            block_products
        )


def one_column(name, vectors, max_distance=0.06):
    ones = torch.ones(len(vectors), dtype=torch.int64)
    return BenchmarkQuery(name, vectors, ones, len(vectors), max_distance, 1)


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


@pytest.mark.parametrize("name", ["faiss_hnsw", "faiss_pq"])
def test_an_approximate_rival_reaches_the_recall_it_was_tuned_to(name, lake, queries):
    pytest.importorskip("faiss")
    tau = queries[0].tau
    recalls, precisions = {}, {}
    for target in (0.3, 0.75, 0.99):
        (candidate,) = load_candidates([name], CPU)
        rival = candidate.adapter(CPU)
        rival.build(lake, **candidate.build_arguments)
        rival.set_query_arguments(target_recall=target)
        rival.query(queries[0])
        sample = draw_sample(lake, tau)
        pairs = rival.find(sample.vectors, tau)
        recalls[target] = sample.recall(pairs)
        assert recalls[target] >= target
        precisions[target] = sample.is_right(pairs).mean()
    assert recalls[0.3] <= recalls[0.75] <= recalls[0.99]
    if name == "faiss_hnsw":
        assert set(precisions.values()) == {1.0}, "its distances are those of the vectors"
    else:
        assert recalls[0.3] < 0.5, "the radius is as small as the recall allows"
        assert min(precisions.values()) < 1.0, (
            "its distances are those of codes, and nothing is checked again"
        )


@pytest.mark.parametrize("name", ["faiss_hnsw", "faiss_pq"])
def test_an_approximate_rival_tells_its_work(name, lake, queries):
    pytest.importorskip("faiss")
    ((_, rival),) = built(name, lake)
    for query in queries:
        rival.query(query)
        assert 0 < rival.work["distances"] < len(query) * lake.n_values
        assert rival.work["bytes_read"] > 0
    assert rival.index_bytes > 0


def test_a_sample_holds_the_right_pairs(lake, queries):
    sample = draw_sample(lake, queries[0].tau)
    pairs = oracle_pairs(sample.vectors, torch.from_numpy(lake.vectors), queries[0].tau)[:2]
    assert sample.recall(pairs) == sample.is_right(pairs).mean() == 1.0
    assert len(sample.keys) == len(pairs[0])
    assert sample.recall(tuple(part[::2] for part in pairs)) == pytest.approx(0.5, abs=0.01)
    wrong = (
        torch.cat([pairs[0], torch.tensor([0])]),
        torch.cat([pairs[1], torch.tensor([lake.n_values - 1])]),
    )
    assert sample.recall(wrong) == 1.0
    assert sample.is_right(wrong).tolist() == [True] * len(pairs[0]) + [False]


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
        rival.build(lake, **candidate.build_arguments)
        rival._ef_search = 512
        queries, _ = rival.find(torch.from_numpy(lake.vectors), 1e-3)
        assert len(set(queries.tolist())) > 1900
    """
    done = ran([sys.executable, "-c", program], timeout=120)
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
        rival.build(lake, **candidate.build_arguments)
        rival.set_query_arguments(**candidate.query_arguments)
        assert [normal_form(rival.query(query)) for query in queries] == right
        assert [normal_form(answer) for answer in rival.query_batch(queries)] == right
