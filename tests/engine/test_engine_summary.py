"""Tests that a summary never promises less than there is, under every metric and map."""

import itertools
from dataclasses import replace

import numpy as np
import torch
from engine_lakes import Case, build, cases, kernel_named, real_query, unit
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

from pexeso.engine.blocks import FANOUT
from pexeso.engine.dense.prefixes import look, threshold_of
from pexeso.engine.kernels.torch_kernel import Descent
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import ALL_LEMMAS, Lemma

CPU_KERNELS = ("compiled", "torch")


@settings(max_examples=examples(150))
@given(cases(), st.sampled_from(CPU_KERNELS))
def test_no_column_has_more_matches_than_the_summary_allows(case: Case, kernel):
    threshold = threshold_of(case.partition, case.tau, ALL_LEMMAS)
    stats = SearchStats()
    outlook = look(*case.arguments(), threshold, kernel_named(kernel), stats)
    assert max(case.counts, default=0) <= outlook.max_count <= int(case.weights.sum())
    matching = case.matches.any(1)
    assert not (matching & ~outlook.reaching(len(case.query))).any()
    if outlook.boxes is not None:
        assert stats.bytes_read <= case.partition.blocks.boxes.nbytes


@given(cases(cells=("blocks",)))
def test_both_ways_of_counting_agree_but_for_rounding(case: Case):
    threshold = threshold_of(case.partition, case.tau, ALL_LEMMAS)
    seen = [
        look(*case.arguments(), threshold, kernel_named(name), SearchStats())
        for name in CPU_KERNELS
    ]
    wider = look(
        *case.arguments(),
        replace(threshold, tau=threshold.tau + 1e-4),
        kernel_named("torch"),
        SearchStats(),
    )
    assert bool((seen[0].boxes <= wider.boxes).all())
    assert bool((seen[1].boxes <= wider.boxes).all())
    assert seen[0].query.weights.tolist() == seen[1].query.weights.tolist()


def test_a_summary_without_its_lemma_rules_nothing_out():
    rng = np.random.default_rng(0)
    vectors = unit(np.array([[1.0, 0, 0, 0]] * 600) + 0.01 * rng.normal(size=(600, 4)))
    options = PartitionLayoutOptions(map="projection", n_axes=3, block_size=4)
    partition, _ = build(vectors, [list(range(600))], options, raw_tau=False)
    far = torch.tensor([[0.0, 1.0, 0.0, 0.0]])
    inputs = (partition, far, torch.tensor([3]), 3)
    for kernel in (kernel_named("compiled"), kernel_named("torch")):
        assert (
            look(*inputs, threshold_of(partition, 0.1, ALL_LEMMAS), kernel, SearchStats()).max_count
            == 0
        )
        fewer = ALL_LEMMAS - {Lemma.CELL_CELL_FILTERING}
        assert (
            look(*inputs, threshold_of(partition, 0.1, fewer), kernel, SearchStats()).max_count == 3
        )
    blocks = partition.blocks
    assert 0 < blocks.n_summary_groups < len(blocks.boxes)
    assert int(blocks.starts[-2]) == blocks.n_summary_groups
    assert blocks.n_summary_groups * FANOUT >= -(-len(blocks) // FANOUT)


def test_a_partition_that_is_cut_into_a_grid_is_never_skipped():
    vectors = unit(np.random.default_rng(0).normal(size=(50, 4)))
    options = PartitionLayoutOptions(map="pivots", n_pivots=2, n_levels=2, cells="grid")
    partition, _ = build(vectors, [list(range(50))], options, raw_tau=False)
    query = -torch.from_numpy(vectors[:3])
    threshold = threshold_of(partition, 0.0, ALL_LEMMAS)
    outlook = look(
        partition,
        query,
        torch.tensor([1, 2, 3]),
        6,
        threshold,
        kernel_named("torch"),
        SearchStats(),
    )
    assert outlook.boxes is None
    assert outlook.max_count == 6
    assert outlook.reaching(3).all()


@given(cases(min_values=1, cells=("blocks",)))
def test_the_boxes_marked_for_fetching_are_those_that_are_walked(case: Case):
    query, _ = real_query(case)
    threshold, blocks = threshold_of(case.partition, case.tau, ALL_LEMMAS), case.partition.blocks
    query, kernel = replace(query, threshold=threshold), kernel_named("compiled")
    marked = [set(kernel.boxes_marked(query, level).tolist()) for level in range(blocks.n_levels)]
    for above, below in itertools.pairwise(marked):
        assert {number // FANOUT for number in below} <= above
    pairs = kernel.candidates(query, 1 << 20, SearchStats())
    rows = pairs.rows.long()
    assert (
        set(
            torch.div(
                torch.where(rows < 0, ~rows, rows), blocks.size, rounding_mode="floor"
            ).tolist()
        )
        <= marked[-1]
    )
    wider = replace(query, threshold=replace(threshold, tau=threshold.tau + 1e-4))
    walked = Descent(wider, SearchStats()).surviving_blocks()
    assert marked[-1] <= {block for _, numbers in walked for block in numbers.tolist()}
