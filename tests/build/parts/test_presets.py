"""Presets: what they set, what they refuse, and when an index counts as published."""

import json

import numpy as np
import pytest

from pexeso.build.parts.metadata import build_options, is_as_published, with_preset
from pexeso.errors import InputError
from pexeso.faces.service.bases import Request
from pexeso.faces.service.index_requests import BuildRequest, EstimateRequest

CONTRADICTIONS = {
    "value_vectors": "weighted",
    "vector_precision": "half",
    "metric": "angular",
    "map": "projection",
    "n_axes": 8,
    "pivot_choice": "random",
    "cells": "blocks",
    "n_levels": 6,
}
LEFT_OPEN = {
    "model": "wiki.bin",
    "dimensions": 50,
    "n_pivots": 3,
    "n_partitions": 4,
    "partition_bytes": 1 << 20,
    "seed": 9,
    "parts": ("overlap",),
}
DOCUMENT = {"verb": "build", "lake": "lake", "index": "out", "preset": "published"}


def test_the_published_options():
    options = build_options({}, "published")
    assert (options.model, options.value_vectors, options.vector_precision) == (
        "fasttext",
        "mean",
        "single",
    )
    assert (options.map, options.pivot_choice, options.cells) == ("pivots", "pca", "grid")
    assert (options.metric, options.n_levels, options.n_pivots) == ("euclidean", None, 5)
    assert (options.n_partitions, options.min_partitions) == (None, 10)


def test_without_a_preset_nothing_is_added():
    assert with_preset({"cells": "grid"}, None) == {"cells": "grid"}


def test_what_a_preset_leaves_open_may_be_given():
    options = build_options(LEFT_OPEN, "published")
    assert {name: getattr(options, name) for name in LEFT_OPEN} == LEFT_OPEN
    assert options.cells == "grid"


@pytest.mark.parametrize(
    "model", ["fasttext", "a/wiki.bin", "glove.txt", "x.vec.gz", "a.bin,lexical"]
)
def test_models_of_word_vectors_are_taken(model):
    assert build_options({"model": model}, "published").model == model


@pytest.mark.parametrize(("name", "value"), CONTRADICTIONS.items())
def test_what_contradicts_a_preset_is_refused_in_a_sentence(name, value):
    with pytest.raises(InputError) as caught:
        with_preset({name: value}, "published")
    assert str(caught.value).startswith(f"The preset 'published' sets {name} to ")
    assert str(caught.value).endswith(
        f"Got {name}={value!r}: leave it out, or leave the preset out."
    )


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_the_value_of_the_preset_may_be_given_too(name):
    published = with_preset({}, "published")
    assert with_preset({name: published[name]}, "published") == published


@pytest.mark.parametrize("name", ["n_levels", "map"])
@pytest.mark.parametrize("value", [np.arange(3), [], object(), np.int64(4), True])
def test_values_that_are_no_option_are_refused_too(name, value):
    with pytest.raises(InputError, match=f"The preset 'published' sets {name} to "):
        with_preset({name: value}, "published")


@pytest.mark.parametrize(
    "model", ["lexical", "hashing", "sentence:minilm", "some/folder", "lexical,fasttext"]
)
def test_a_model_without_word_vectors_is_refused(model):
    with pytest.raises(
        InputError, match=r"takes a model of word vectors: .* Got model='.*': leave it out, or"
    ):
        with_preset({"model": model}, "published")


@pytest.mark.parametrize("preset", ["Published", "", "fast", 7, ["published"], True])
def test_an_unknown_preset_is_refused(preset):
    with pytest.raises(InputError, match="preset must be one of published"):
        with_preset({}, preset)


def test_a_request_takes_a_preset_and_comes_back_from_json():
    request = Request.from_dict(DOCUMENT)
    assert (request.cells, request.n_levels, request.min_partitions) == ("grid", None, 10)
    assert Request.from_dict(json.loads(json.dumps(request.to_dict()))) == request
    assert BuildRequest.from_dict(DOCUMENT | {"n_pivots": 3}).n_pivots == 3
    estimate = EstimateRequest.from_dict({"lake": "lake", "preset": "published"})
    assert estimate.model == "fasttext"


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        # The first is the default of builds, and is refused like any other.
        ({"cells": "blocks"}, "sets cells to 'grid'. Got cells='blocks'"),
        ({"preset": 7}, "preset must be one of published. Got 7"),
    ],
)
def test_a_request_that_contradicts_its_preset_is_refused(more, sentence):
    with pytest.raises(InputError) as caught:
        Request.from_dict(DOCUMENT | more)
    assert sentence in str(caught.value)


def test_a_request_made_in_python_must_agree_with_its_preset():
    with pytest.raises(InputError, match="Got "):
        BuildRequest.of(lake="lake", index="out", preset="published")


PUBLISHED = {
    "metric": "euclidean",
    "map": "pivots",
    "pivot_choice": "pca",
    "cells": "grid",
    "n_levels": None,
    "vector_precision": "single",
    "n_pivots": 3,
    "n_axes": 15,
}


@pytest.mark.parametrize("embedder", ["fasttext-mean", "glove"])
def test_an_index_as_published_is_known_by_what_it_is(embedder):
    assert is_as_published(PUBLISHED, embedder)


@pytest.mark.parametrize("embedder", ["fasttext", "hashing", "lexical", "sentence", None, 7])
def test_an_index_of_another_model_is_not_as_published(embedder):
    assert not is_as_published(PUBLISHED, embedder)


@pytest.mark.parametrize("name", sorted(set(PUBLISHED) - {"n_pivots", "n_axes"}))
def test_an_index_that_differs_is_not_as_published(name):
    assert not is_as_published(PUBLISHED | {name: 6}, "fasttext-mean")
    assert not is_as_published(
        {key: value for key, value in PUBLISHED.items() if key != name}, "fasttext-mean"
    )
