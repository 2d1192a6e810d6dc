"""Signatures: estimates, unions, independence of batches and order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_sets import ragged

from pexeso.errors import InputError
from pexeso.sets.containment.minhash import EMPTY, add_tokens, seeds_of, signatures, similarities

SEEDS = seeds_of(16, seed=1)
TOKENS = st.lists(st.integers(0, 2**64 - 1), max_size=12)


def mixed(number: int) -> int:
    """Apply the finaliser of splitmix64 in whole numbers of Python."""
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) % 2**64
    return number ^ (number >> 31)


def signed(*sets: list[int]) -> np.ndarray:
    return signatures(*ragged([np.array(one, np.uint64) for one in sets]), SEEDS)


@given(st.lists(TOKENS, max_size=6))
def test_a_signature_is_the_minimum_of_each_function(sets):
    made = signed(*sets)
    for row, tokens in zip(made, sets, strict=True):
        expected = [
            min((mixed(token ^ int(seed)) >> 32 for token in tokens), default=int(EMPTY))
            for seed in SEEDS
        ]
        assert row.tolist() == expected


@given(TOKENS, TOKENS, TOKENS)
def test_signatures_of_unions_are_merged_in_any_grouping(one, two, three):
    parts = signed(one, two, three)
    whole = signed(one + two + three)[0]
    assert (np.minimum(np.minimum(parts[0], parts[1]), parts[2]) == whole).all()
    assert (np.minimum(parts[0], np.minimum(parts[2], parts[1])) == whole).all()


@given(TOKENS, st.integers(1, 5), st.randoms(use_true_random=False))
def test_a_set_may_pass_in_batches_in_any_order_with_repeats(tokens, step, random):
    shuffled = tokens + tokens[:2]
    random.shuffle(shuffled)
    made = np.full((1, 16), EMPTY, np.uint32)
    for begin in range(0, len(shuffled), step):
        part = np.array(shuffled[begin : begin + step], np.uint64)
        add_tokens(made, part, np.array([0, len(part)]), SEEDS)
    assert (made == signed(tokens)).all()


def test_fewer_functions_are_a_beginning_of_more():
    assert (seeds_of(64, 3)[:16] == seeds_of(16, 3)).all()
    assert not (seeds_of(16, 4) == seeds_of(16, 3)).any()


def test_acceptance_1_the_mean_error_of_200_pairs_is_that_of_the_binomial_distribution():
    rng = np.random.default_rng(8)
    m, sets, exact = 256, [], []
    for _ in range(200):
        pool = rng.integers(0, 2**63, 300, dtype=np.uint64)
        begin, length = rng.integers(0, 150), rng.integers(50, 150)
        sets += [pool[:150], pool[begin : begin + length]]
        shared = max(0, 150 - begin) if begin + length > 150 else length
        exact.append(shared / (150 + length - shared))
    made = signatures(*ragged(sets), seeds_of(m, 1))
    estimates = np.array(
        [similarities(made, made[2 * i + 1], np.array([2 * i]))[0] for i in range(200)]
    )
    exact = np.array(exact)
    assert np.abs(estimates - exact).mean() <= 1.2 * np.sqrt(exact * (1 - exact) / m).mean()
    assert abs((estimates - exact).mean()) < 0.005


@pytest.mark.parametrize(("permutations", "seed"), [(0, 1), (4097, 1), (16, -1), (16, 2**64)])
def test_numbers_that_no_signature_has_are_refused(permutations, seed):
    with pytest.raises(InputError, match="hash functions"):
        seeds_of(permutations, seed)
