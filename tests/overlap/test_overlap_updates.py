"""Updates: any sequence leaves what a fresh build of the same sets would have, also from nothing."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from overlap_lakes import brute_force, index_of, random_lake, random_query

from pexeso.errors import InputError
from pexeso.overlap.index import build_index
from pexeso.overlap.josie import JosieOptions, josie
from pexeso.overlap.merge import merge_list
from pexeso.overlap.probe import probe_set
from pexeso.overlap.saving import ARRAYS
from pexeso.overlap.updates import UpdatedIndex


def require_consistent(changed, sets):
    """Positions, sizes and groups say what the sets are."""
    [texts] = [changed.pairs()[1]] if changed.n_tokens else [pa.array([], pa.large_string())]
    groups = {}
    n_entries = 0
    for token in range(changed.n_tokens):
        found = changed.posting_list(token)
        n_entries += len(found.sets)
        assert (np.diff(found.sets) > 0).all()
        for row, position, size in zip(*found, strict=True):
            members = changed.suffix(int(row), 0)
            assert members[position] == token
            assert len(members) == size
        group = int(changed.groups_of(np.array([token]))[0])
        assert groups.setdefault(group, found.sets.tolist()) == found.sets.tolist()
        assert changed.frequencies(np.array([token])).tolist() == [len(found.sets)]
    assert n_entries == len(texts) == sum(len(tokens) for tokens in sets.values())


def require_like_a_fresh_build(changed, sets, rng):
    full = {set_id: sorted(tokens) for set_id, tokens in sets.items() if tokens}
    fresh, rebuilt = index_of(full), changed.rebuilt()
    assert all(np.array_equal(getattr(fresh, name), getattr(rebuilt, name)) for name in ARRAYS)
    assert fresh.dictionary.texts.equals(rebuilt.dictionary.texts)
    for _ in range(3 if full else 0):
        query = random_query(rng, full)
        for k in (1, 3, 100):
            truth = brute_force(full, query, k)
            assert josie(changed, query, k, JosieOptions(batch=2, min_sample=1)).pairs() == truth
            assert merge_list(changed, query, k).pairs() == probe_set(changed, query, k).pairs() == truth
            exclude = [set_id for set_id, _ in truth[:1]]
            assert josie(changed, query, k, exclude=exclude).pairs() == brute_force(full, query, k, exclude)


def apply(changed, sets, set_id, token, adding):
    held = token in sets.get(set_id, set())
    if adding:
        assert changed.add(set_id, token) == (not held)
        sets.setdefault(set_id, set()).add(token)
    else:
        assert changed.delete(set_id, token) == held
        sets.get(set_id, set()).discard(token)


STEPS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9), st.booleans()), max_size=40)


@given(STEPS, st.integers(0, 1000))
@settings(max_examples=60)
def test_any_sequence_equals_a_fresh_build(steps, seed):
    rng = np.random.default_rng(seed)
    sets = {n: {f"v{token}" for token in rng.integers(0, 7, 4).tolist()} for n in range(4)}
    changed = UpdatedIndex(index_of({set_id: sorted(tokens) for set_id, tokens in sets.items()}))
    for set_id, token, adding in steps:
        apply(changed, sets, set_id, f"v{token}", adding)
    require_consistent(changed, sets)
    require_like_a_fresh_build(changed, sets, rng)


def test_an_index_can_be_made_of_additions_alone():
    rng = np.random.default_rng(2)
    changed = UpdatedIndex(build_index(np.array([], dtype=np.int64), pa.array([], pa.string())))
    lake = {set_id: set(tokens[:12]) for set_id, tokens in list(random_lake(rng).items())[:25]}
    pairs = [(set_id, token) for set_id, tokens in lake.items() for token in sorted(tokens)]
    sets = {}
    for place in rng.permutation(len(pairs)).tolist():
        apply(changed, sets, *pairs[place], True)
    require_consistent(changed, sets)
    require_like_a_fresh_build(changed, sets, rng)


def test_a_known_token_goes_to_its_place_in_a_known_set():
    # The case that the source leaves out: positions behind it, sizes everywhere, and the groups of the others stay.
    changed = UpdatedIndex(index_of({1: "ac", 2: "abc", 3: "b"}))
    groups = changed.groups_of(changed.find(pa.array(["a", "b", "c"])))
    assert groups[0] == groups[2]
    assert changed.add(1, "b")
    after = changed.groups_of(changed.find(pa.array(["a", "b", "c"])))
    assert after[[0, 2]].tolist() == groups[[0, 2]].tolist()
    assert after[1] > groups.max()
    require_consistent(changed, {1: "abc", 2: "abc", 3: "b"})


def test_what_was_deleted_can_come_back():
    changed = UpdatedIndex(index_of({1: "a", 2: "b"}))
    assert changed.delete(1, "a")
    assert josie(changed, ["a"], 3).pairs() == []
    assert changed.n_tokens == changed.n_sets == 2
    assert changed.add(1, "a")
    assert josie(changed, ["a"], 3).pairs() == [(1, 1)]
    assert not changed.delete(5, "a")
    assert not changed.delete(1, "nowhere")


def test_ids_of_new_sets_break_ties_though_they_come_last():
    changed = UpdatedIndex(index_of({5: "a", 7: "a"}))
    changed.add(1, "a")
    for search in (josie, merge_list, probe_set):
        assert search(changed, ["a", "b"], 2).pairs() == [(1, 1), (5, 1)]
        assert search(changed, ["a"], 2, exclude=[1]).pairs() == [(5, 1), (7, 1)]


def test_values_are_added_as_their_tokens_and_others_are_refused():
    changed = UpdatedIndex(index_of({1: ["1"]}))
    assert not changed.add(1, 1.0)
    assert changed.add(1, " 01 ")
    for wrong in (None, "", float("nan")):
        with pytest.raises(InputError, match="has none"):
            changed.add(1, wrong)
    with pytest.raises(InputError, match="must be a text"):
        changed.add(1, object())
    for wrong in ("1", 1.0, True):
        with pytest.raises(InputError, match="The id of a set must be an integer"):
            changed.delete(wrong, "a")


def test_a_rebuild_is_due_when_many_lists_read_have_left_their_groups():
    changed = UpdatedIndex(index_of({n: [f"a{n}", "b"] for n in range(40)}))
    changed.add(0, "c")
    for n in range(1, 40):
        josie(changed, [f"a{n}"], 1)
    assert not changed.should_be_rebuilt
    for _ in range(5):
        josie(changed, ["c"], 1)
    assert changed.should_be_rebuilt
