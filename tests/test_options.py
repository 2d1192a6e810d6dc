"""Options are checked where they are made, and say what is allowed."""

import pytest

from pexeso.engine import options as grid_options
from pexeso.engine.kernels import choice
from pexeso.engine.vector_space import Lemma
from pexeso.errors import InputError
from pexeso.options import (
    CELLS,
    KERNELS,
    LEMMAS,
    MAPS,
    METRICS,
    BuildOptions,
    SearchOptions,
    parse_bytes,
    search_options,
)


def test_the_bounds_themselves_are_allowed():
    assert SearchOptions(max_distance=0, min_joinability=1).max_distance == 0
    assert SearchOptions(max_distance=1, k=1).k == 1


def test_k_alone_means_the_k_best_however_small():
    assert search_options({"k": 3}).min_joinability is None
    assert search_options({"k": 3, "min_joinability": 0.5}).min_joinability == 0.5
    assert search_options({}).min_joinability == 0.5


def test_an_unknown_search_option_is_named():
    with pytest.raises(InputError, match=r"Search options are max_distance, .*\. Got tau\."):
        search_options({"tau": 0.1})


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"metric": "cosine"}, "metric must be one of euclidean"),
        ({"dimensions": 1}, "dimensions must be a whole number of at least 2 and at most 4,096"),
        ({"n_partitions": 0}, "n_partitions must be a whole number of at least 1"),
        ({"n_partitions": 10**20}, r"n_partitions must be a whole number below 2\^63. Got 1000"),
        (
            {"map": "pivots", "cells": "grid", "n_pivots": 9, "n_levels": 7},
            "with 9 coordinates n_levels can be at most 6",
        ),
        (
            {"map": "projection", "cells": "grid", "n_axes": 8, "n_levels": 7},
            r"n_axes \+ 1 times n_levels must be at most 62",
        ),
        ({"cells": "grid"}, "The cells of a grid need the map to be given"),
        ({"cells": "hexagons"}, "cells must be one of blocks, grid"),
        ({"partition_bytes": 10}, "partition_bytes must be a whole number of at least 1,048,576"),
        ({"metric": "manhattan"}, "metric must be one of euclidean, angular"),
        ({"n_axes": 0}, "n_axes must be a whole number of at least 1"),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
    ],
)
def test_build_options_out_of_range_are_refused(options, sentence):
    with pytest.raises(InputError, match=sentence):
        BuildOptions(**options)


def test_names_that_two_rooms_keep_are_the_same():
    # The options are checked before the engine is imported, so they hold these names themselves.
    assert (MAPS, METRICS) == (grid_options.MAPS, grid_options.METRICS)
    assert (CELLS, KERNELS) == (grid_options.CELLS, choice.KERNELS)
    assert tuple(lemma.value for lemma in Lemma) == LEMMAS


@pytest.mark.parametrize("text", ["", "GiB", "8 apples", "-1GiB", "1e3"])
def test_a_size_that_is_none_is_refused(text):
    with pytest.raises(InputError, match="A size must be a number with a unit"):
        parse_bytes(text)


@pytest.mark.parametrize("text", ["9" * 20, 1 << 63, "9" * 400, "9300000TB", "8388608 TiB"])
def test_a_size_beyond_what_files_have_is_refused_as_one(text):
    assert parse_bytes("8388607 TiB") == 8388607 << 40
    with pytest.raises(InputError, match="and below 8 EiB"):
        parse_bytes(text)


@pytest.mark.parametrize("wrong", [3, None, ["a"]])
def test_filters_of_rows_are_names(wrong):
    with pytest.raises(InputError, match="row_filters are none, or one of each kind among"):
        BuildOptions(row_filters=wrong)
