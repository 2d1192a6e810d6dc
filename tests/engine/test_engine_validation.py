"""Tests that built partitions are valid and that every broken promise is reported."""

import itertools
import os
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from engine_lakes import sphere
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples
from processes import ran

from embed.stored import in_half
from pexeso.engine.arrays import Csr
from pexeso.engine.dense.building import build_partition
from pexeso.engine.dense.search import (
    BatchQuery,
    Goal,
    exact_partition,
    search_batch_partition,
    search_partition,
)
from pexeso.engine.dense.space import DenseSpace
from pexeso.engine.kernels.choice import choose_kernel
from pexeso.engine.lists import damage_made_plain
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.engine.partition import Partition
from pexeso.engine.stats import SearchStats
from pexeso.engine.validation import check_arrays, level_starts, require_shapes
from pexeso.errors import IndexCorruptError

OPTIONS = {
    "projection": PartitionLayoutOptions(map="projection", n_axes=7),
    "pivots": PartitionLayoutOptions(map="pivots", block_size=17),
    "halves": PartitionLayoutOptions(map="projection", n_axes=7, vector_precision="half"),
    "grid": PartitionLayoutOptions(map="pivots", n_pivots=3, cells="grid", n_levels=3),
    "projected grid": PartitionLayoutOptions(map="projection", n_axes=3, cells="grid", n_levels=2),
}
DIMENSIONS, N_TEXTS = 12, 9


def build(name: str, n: int = 700, n_columns: int = 23, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    vectors = sphere(rng, n, DIMENSIONS)
    vectors[: n // 50] = 0
    vectors = in_half(vectors) if OPTIONS[name].vector_precision == "half" else vectors
    sizes = rng.integers(0, 60, n_columns) if n else np.zeros(n_columns, np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    arrays, _ = build_partition(
        vectors, offsets, rng.integers(0, max(1, n), offsets[-1]), OPTIONS[name]
    )
    arrays["column_ids"] = np.arange(n_columns) * 2
    arrays["posting_texts"] = rng.integers(0, N_TEXTS, len(arrays["column_values_members"])).astype(
        np.int32
    )
    return arrays


def copy_of(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: array.copy() for name, array in arrays.items()}


@pytest.fixture(scope="module")
def built() -> dict[str, dict[str, np.ndarray]]:
    return {name: build(name) for name in OPTIONS}


@pytest.mark.parametrize(("name", "n"), list(itertools.product(OPTIONS, (0, 1, 17, 64, 65, 1100))))
def test_what_is_built_keeps_every_promise(name, n):
    assert check_arrays(build(name, n), OPTIONS[name], n_texts=N_TEXTS) == []


def test_pieces_do_not_change_what_is_found(built, monkeypatch):
    for module in ("validation", "lists"):
        monkeypatch.setattr(f"pexeso.engine.{module}.ITEMS_AT_ONCE", 7)
    for name, options in OPTIONS.items():
        assert check_arrays(built[name], options, n_texts=N_TEXTS) == []
    arrays = copy_of(built["projection"])
    arrays["value_columns_members"][100] = arrays["value_columns_members"][100] ^ 1
    assert check_arrays(arrays, OPTIONS["projection"])


@pytest.mark.parametrize("n_blocks", [0, 1, 16, 17, 256, 257, 5000])
def test_levels_are_those_that_are_built(n_blocks):
    from pexeso.engine.blocks import build_blocks

    assert build_blocks(torch.zeros(n_blocks, 3), 1).starts.tolist() == level_starts(n_blocks)


def put(name: str, place: object, value: object):
    def damage(arrays: dict[str, np.ndarray]) -> None:
        arrays[name][place] = value

    return damage


def swap(name: str, one: int, other: int):
    def damage(arrays: dict[str, np.ndarray]) -> None:
        arrays[name][[one, other]] = arrays[name][[other, one]]

    return damage


def flip(name: str, place: object, bits: int):
    def damage(arrays: dict[str, np.ndarray]) -> None:
        arrays[name][place] ^= bits

    return damage


def shift(name: str, place: object, by: float):
    def damage(arrays: dict[str, np.ndarray]) -> None:
        arrays[name][place] += by

    return damage


DAMAGES = {
    "a vector that is not finite": ("projection", "vectors", put("vectors", (5, 3), np.nan)),
    "a vector that is too long": ("projection", "vectors", put("vectors", (5, 3), 7)),
    "another vector": ("projection", "block_codes", swap("vectors", 0, 600)),
    "an axis that is not of unit length": ("projection", "axes", shift("axes", (0, 0), 0.1)),
    "an axis that is not finite": ("projection", "axes", put("axes", (0, 0), np.inf)),
    "another pivot": ("pivots", "block_codes", swap("pivots", 0, 1)),
    "another code": ("projection", "block_codes", flip("block_codes", (2, 1, 5), 128)),
    "a box that is too small": ("projection", "box", put("boxes", (-1, 0, 1, 0), -0.9)),
    "a box that is the wrong way round": (
        "pivots",
        "box",
        put("boxes", (1, slice(None), 1, 0), -1),
    ),
    "a box that is not finite": ("projection", "box", put("boxes", (-1, 1, 0, 0), np.nan)),
    "padding that is somewhere": ("projection", "boxes", put("boxes", (0, 0, 0, 15), 0)),
    "offsets that fall": (
        "projection",
        "value_columns_offsets",
        put("value_columns_offsets", 9, 10**9),
    ),
    "offsets that begin late": (
        "projection",
        "column_values_offsets",
        put("column_values_offsets", 0, 1),
    ),
    "offsets below zero": (
        "projection",
        "column_values_offsets",
        put("column_values_offsets", 4, -5),
    ),
    "a column that is not there": (
        "projection",
        "value_columns_members",
        put("value_columns_members", 7, 23),
    ),
    "a value below zero": (
        "projection",
        "column_values_members",
        put("column_values_members", 7, -1),
    ),
    "a value that is not there": (
        "grid",
        "column_values_members",
        put("column_values_members", 7, 2**31 - 1),
    ),
    "ids that fall": ("projection", "column_ids", swap("column_ids", 3, 4)),
    "an id twice": ("projection", "column_ids", put("column_ids", 3, 8)),
    "a text that is not there": ("projection", "posting_texts", put("posting_texts", 3, N_TEXTS)),
    "a text below zero": ("projection", "posting_texts", put("posting_texts", 3, -1)),
    "other coordinates": ("grid", "mapped", shift("mapped", (5, 1), 0.01)),
    "a cell in the wrong order": ("grid", "cell_codes", put("cell_codes", -1, 0)),
    "a cell in the wrong place": ("grid", "cell_codes", shift("cell_codes", 0, 1)),
    "a cell that is too small": (
        "projected grid",
        "cell_lower",
        shift("cell_upper", (-1, 0), -0.5),
    ),
    "a cell above that is too small": (
        "projected grid",
        "cell_lower",
        shift("cell_lower", (0, 0), 0.5),
    ),
    "a cell without what is below": ("grid", "cells", shift("cell_count", 0, 1)),
    "cells that run elsewhere": ("grid", "cells", shift("cell_first", 1, 2**62)),
    "another corner": ("grid", "origin", shift("origin", 0, 0.5)),
    "another level": ("projection", "box_starts", shift("box_starts", 1, 1)),
    "levels of a size below zero": ("grid", "level_sizes", put("level_sizes", 0, -1)),
}


@pytest.mark.parametrize(("name", "said", "damage"), DAMAGES.values(), ids=DAMAGES)
def test_every_broken_promise_is_told(built, name, said, damage):
    arrays = copy_of(built[name])
    damage(arrays)
    problems = check_arrays(arrays, OPTIONS[name], n_texts=N_TEXTS)
    assert said in "".join(problems[:1]), problems


LIES = {
    "another map": ("projection", {"map": "pivots"}, "map 'projection'"),
    "another map over pivots": ("pivots", {"map": "projection"}, "map 'pivots'"),
    "a grid": ("pivots", {"cells": "grid"}, "cells 'blocks'"),
    "no grid": ("grid", {"cells": "blocks"}, "cells 'grid'"),
    "fewer axes": ("projection", {"n_axes": 3}, "there are 7, and the options of the index say 3"),
    "fewer pivots": ("pivots", {"n_pivots": 3}, "there are 5, and the options of the index say 3"),
    "other levels": (
        "grid",
        {"n_levels": 4},
        "there are 3 levels, and the options of the index say 4",
    ),
    "other blocks": (
        "pivots",
        {"block_size": 16},
        "hold 17 vectors, and the options of the index say 16",
    ),
}


@pytest.mark.parametrize(("name", "lie", "said"), LIES.values(), ids=LIES)
def test_options_that_are_not_those_of_the_arrays_are_told(built, name, lie, said):
    problems = check_arrays(built[name], replace(OPTIONS[name], **lie), n_texts=N_TEXTS)
    assert said in " ".join(problems)


@pytest.mark.parametrize("name", OPTIONS)
def test_options_that_were_left_to_choose_are_no_lie(built, name):
    options = OPTIONS[name]
    left = {"map": "auto"} if options.cells == "blocks" else {"n_levels": None}
    assert check_arrays(built[name], replace(options, **left), n_texts=N_TEXTS) == []


def test_postings_that_are_not_each_other_turned_are_told(built):
    arrays = copy_of(built["projection"])
    offsets, members = arrays["value_columns_offsets"], arrays["value_columns_members"]
    row = int(np.flatnonzero(np.diff(offsets) == 1)[0])
    place = offsets[row]
    members[place] = (members[place] + 1) % 23
    assert "do not hold the same pairs" in check_arrays(arrays, OPTIONS["projection"])[0]


SHAPES = {
    "vectors": lambda array: array[:-1],
    "value_columns_offsets": lambda array: array[:-1],
    "value_columns_members": lambda array: array[:-1],
    "column_values_members": lambda array: np.concatenate([array, array]),
    "column_ids": lambda array: array[:-1],
    "posting_texts": lambda array: array[:0],
    "axes": lambda array: array[:, :-1],
    "boxes": lambda array: array[:-1],
    "block_codes": lambda array: array[:, :-1],
    "box_starts": lambda array: array + 1,
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_and_types_that_do_not_fit_are_refused_before_anything_is_used(built, name):
    arrays, options = built["projection"], OPTIONS["projection"]
    require_shapes(arrays)
    other = np.float64 if arrays[name].dtype != np.float64 else np.float32
    for changed in (
        SHAPES[name](arrays[name]),
        arrays[name].astype(other),
        arrays[name][None],
        None,
    ):
        given = (
            {**arrays, name: changed}
            if changed is not None
            else {k: v for k, v in arrays.items() if k != name}
        )
        if changed is None and name in ("column_ids", "posting_texts"):
            continue
        with pytest.raises(IndexCorruptError, match="pexeso check"):
            Partition.from_arrays(given, options)


def test_a_shape_beyond_all_memory_is_refused_without_allocating(built):
    arrays = built["projection"]
    huge = np.broadcast_to(np.zeros(1, np.float32), (2**40, DIMENSIONS))
    with pytest.raises(IndexCorruptError, match="31 bits"):
        require_shapes({**arrays, "vectors": huge})
    wide = np.broadcast_to(np.zeros(1, np.float32), (1, 2**40))
    with pytest.raises(IndexCorruptError, match="dimensions"):
        require_shapes({**arrays, "vectors": wide})


def test_the_error_of_a_tensor_operation_becomes_one_of_ours():
    with pytest.raises(IndexCorruptError, match="'here' names"), damage_made_plain("'here'"):
        torch.zeros(2)[torch.tensor([5])]


NUMBERS = (-(2**63), -(2**31), -1, 0, 1, 5, 10**6, 2**31 - 1, 2**62, 2**63 - 1)
REFERENCES = (
    *(
        "value_columns_offsets",
        "value_columns_members",
        "column_values_offsets",
        "column_values_members",
    ),
    *("boxes", "block_codes", "vectors"),
)


@st.composite
def led_astray(draw: st.DrawFn, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays of the right shapes with some numbers that lead elsewhere."""
    arrays = copy_of(arrays)
    for _ in range(draw(st.integers(1, 6))):
        array = arrays[draw(st.sampled_from(REFERENCES))]
        place = draw(st.integers(0, array.size - 1))
        if array.dtype.kind == "i":
            info = np.iinfo(array.dtype)
            array.flat[place] = min(max(draw(st.sampled_from(NUMBERS)), info.min), info.max)
        elif array.dtype.kind == "u":
            array.flat[place] = draw(st.integers(0, 255))
        else:
            array.flat[place] = draw(st.sampled_from((np.nan, np.inf, -np.inf, 1e30, 0.0, -1.0)))
    return arrays


def search(arrays: dict[str, np.ndarray], kernel: str) -> Partition:
    rng = np.random.default_rng(1)
    vectors, weights = (
        torch.from_numpy(sphere(rng, 6, DIMENSIONS)),
        torch.ones(6, dtype=torch.int64),
    )
    partition = Partition.from_arrays(arrays, OPTIONS["projection"])
    chosen = choose_kernel(kernel, torch.device("cpu"))
    for goal in (Goal(0.4, 2), Goal(0.4, 1, k=3)):
        search_partition(partition, vectors, weights, 6, goal, SearchStats(), kernel=chosen)
    queries = [
        BatchQuery(torch.arange(3), weights[:3], 1),
        BatchQuery(torch.arange(2, 6), weights[2:], 2),
    ]
    search_batch_partition(partition, vectors, queries, 0.4, SearchStats(), kernel=chosen)
    return partition


@settings(max_examples=examples(40))
@given(st.data())
def test_tensor_operations_are_not_led_out_of_an_array(built, data):
    arrays = data.draw(led_astray(built["projection"]))
    vectors = torch.from_numpy(sphere(np.random.default_rng(1), 6, DIMENSIONS))
    with suppress(IndexCorruptError), damage_made_plain("the partition"):
        partition = search(arrays, "torch")
        exact_partition(partition, vectors, torch.ones(6, dtype=torch.int64), Goal(0.4, 1))
        space = DenseSpace(partition.options)
        space.column_pairs(partition, vectors, np.array([0, 3]), 0.4, SearchStats())


def loops_refuse(arrays: dict[str, np.ndarray]) -> bool:
    """Return whether the compiled kernel refuses damaged arrays.

    An index that leads out of an array does not count as a refusal.
    """
    try:
        partition = search(arrays, "compiled")
        vectors = torch.from_numpy(sphere(np.random.default_rng(1), 6, DIMENSIONS))
        space, columns = DenseSpace(partition.options), np.arange(partition.n_columns)
        space.nearest_in_columns(partition, vectors, columns, 0.4, SearchStats())
    except IndexCorruptError:
        return True
    return False


PROGRAM = """
import sys
sys.path[:0] = [{tests!r}, {root!r}, {root!r} + "/tests"]
import warnings
warnings.simplefilter("ignore")
import test_engine_validation as tests
from hypothesis import given, settings, strategies as st

arrays, refused = tests.build("projection", 150, 7), []

@settings(max_examples={n}, deadline=None, derandomize=True, database=None)
@given(st.data())
def attempt(data):
    refused.append(tests.loops_refuse(data.draw(tests.led_astray(arrays))))

attempt()
print(sum(refused), len(refused))
"""


def test_compiled_loops_are_not_led_out_of_an_array():
    """The build for tests checks every index: one that a loop does not check itself is an error."""
    here = Path(__file__).resolve().parent
    program = PROGRAM.format(
        tests=str(here), root=str(here.parent.parent), n=int(os.environ.get("PEXESO_EXAMPLES", 25))
    )
    done = ran([sys.executable, "-c", program], variables={"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr[-3000:]
    refused, total = map(int, done.stdout.split())
    assert 0 < refused < total


@pytest.mark.parametrize("offsets", [[0, 3, 2, 4], [-1, 0, 1, 4], [0, 1, 2, 5], [0, 2**62, 2, 4]])
def test_sizes_of_rows_that_are_no_runs_are_refused_before_they_are_allocated(offsets):
    csr = Csr(torch.tensor(offsets), torch.zeros(4, dtype=torch.int32))
    for ask in (
        lambda: csr.sizes,
        lambda: csr.sizes_of(torch.arange(3)),
        lambda: csr.require_sound(1),
    ):
        with pytest.raises(IndexCorruptError, match="lead out of it"):
            ask()


@pytest.mark.parametrize("member", [-1, 5, 2**31 - 1])
def test_members_that_are_not_there_are_refused_for_programs_that_do_not_look(member, monkeypatch):
    monkeypatch.setattr("pexeso.engine.arrays._ROWS_AT_ONCE", 2)
    offsets, members = torch.tensor([0, 3, 3, 12]), torch.arange(12, dtype=torch.int32) % 5
    Csr(offsets, members).require_sound(5)
    Csr(torch.zeros(1, dtype=torch.int64), members[:0]).require_sound(0)
    members[10] = member
    with pytest.raises(IndexCorruptError, match=f"has a member {member}, where 0 to 4"):
        Csr(offsets, members).require_sound(5)
