"""An index of two models answers by each as an index of that model alone, whatever updates it."""

import pickle
import shutil

import pytest
from several_models import (
    DIMENSIONS,
    MODELS,
    MORE,
    QUERY,
    answers,
    build,
    require_as_alone,
    write_lake,
)

import pexeso
from pexeso.build.job import stage_names
from pexeso.build.parts.metadata import options_for_model, store_of_model
from pexeso.errors import IndexCorruptError, InputError
from pexeso.options import BuildOptions
from pexeso.store.opening import open_store_anywhere


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    return write_lake(tmp_path_factory.mktemp("models") / "lake")


@pytest.fixture(scope="module")
def built(lake, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    both = build(lake, folder / "both", "lexical,hashing")
    return both, {name: build(lake, folder / name, name) for name in MODELS}


def test_each_model_answers_as_alone(built):
    both, alone = built
    assert both.models == MODELS
    require_as_alone(both, alone)
    opened = pexeso.open_index(both.path, model="hashing")
    assert answers(opened) == answers(alone["hashing"])
    assert opened.usual_max_distance == 0.35 != both.usual_max_distance
    assert opened.embedder.dimensions == DIMENSIONS
    assert answers(opened.with_model("lexical")) == answers(alone["lexical"])


def test_an_index_keeps_its_model_where_it_is_sent_and_renewed(built):
    other = built[0].with_model("hashing")
    assert answers(pickle.loads(pickle.dumps(other))) == answers(other)
    assert not other.refresh()
    assert other.store.manifest.options["model"] == "hashing"


@pytest.mark.long
def test_updates_keep_every_model(built, lake, tmp_path):
    folder = tmp_path / "lake"
    shutil.copytree(lake, folder)
    both = build(folder, tmp_path / "both", "lexical,hashing")
    alone = {name: build(folder, tmp_path / name, name) for name in MODELS}
    (folder / "more.csv").write_text(MORE, encoding="utf-8")
    every = [both, *alone.values()]
    added = [index.append(folder).partitions_added for index in every]
    assert added == [2, 1, 1]
    require_as_alone(both, alone)
    assert "more.csv" in str(answers(both.with_model("hashing"))[0])
    for index in every:
        index.delete(["towns.csv"])
    require_as_alone(both, alone)
    assert "towns.csv" not in str(answers(both.with_model("hashing"))[0])
    rewritten = [index.compact(everything=True).partitions_rewritten for index in every]
    assert rewritten == [4, 2, 2]
    require_as_alone(both, alone)
    both.add_parts(["overlap"])
    require_as_alone(both, alone)
    assert set(open_store_anywhere(both.path).manifest.parts) == {
        "semantic",
        "semantic_2",
        "token_sets",
    }


@pytest.mark.long
def test_several_partitions_of_each_model(lake, built, tmp_path):
    both = build(lake, tmp_path / "both", "lexical,hashing", n_partitions=2)
    assert both.with_model("hashing").store.n_partitions == 2
    require_as_alone(both, built[1])


def test_the_main_model_is_stored_as_that_of_one(built):
    both, alone = built
    manifest, other = (
        open_store_anywhere(index.path).manifest for index in (both, alone["lexical"])
    )
    digests = [
        [(file.path, file.checksum) for file in document.partitions[0].files]
        for document in (manifest, other)
    ]
    assert digests[0] == digests[1]
    assert not any(name.startswith("semantic_") for name in (*other.parts, *other.facts))
    assert "model_number" not in manifest.facts


def test_info_tells_of_every_model(built):
    info = built[0].info()
    assert info.model == "lexical"
    [further] = info.further_models
    assert (further["model"], further["dimensions"]) == ("hashing", DIMENSIONS)
    assert further["values"] == info.values
    assert built[0].with_model("hashing").info() == info
    assert built[1]["hashing"].info().further_models == []


def test_a_model_that_the_index_does_not_hold(built):
    both, alone = built
    expected = r"does not hold the model 'glove', but lexical, hashing\. Leave the model out"
    for ask in (
        lambda: both.with_model("glove"),
        lambda: pexeso.open_index(both.path, model="glove"),
    ):
        with pytest.raises(InputError, match=expected):
            ask()
    with pytest.raises(InputError, match="does not hold the model 'hashing', but lexical"):
        alone["lexical"].with_model("hashing")


@pytest.mark.parametrize("model", ["", "lexical,", "hashing, hashing", "a.bin,b.bin,c.bin,d.bin"])
def test_lists_of_models_that_cannot_be(model):
    with pytest.raises(InputError, match="model must name 1 to 3 different models"):
        BuildOptions(model=model)


def test_options_of_vectors_are_for_the_models_that_have_them(built):
    options = BuildOptions(model="lexical, hashing", dimensions=DIMENSIONS, metric="angular")
    assert options_for_model(options, 0) == BuildOptions(model="lexical")
    assert options_for_model(options, 1).metric == "angular"


def test_each_model_has_the_metric_of_its_own(lake, tmp_path):
    both = pexeso.build_index(lake, tmp_path / "both", model="lexical,hashing", metric="angular")
    metrics = [info["metric"] for info in (both.info().to_dict(), *both.info().further_models)]
    assert metrics == ["euclidean", "angular"]
    shutil.copytree(lake, tmp_path / "more")
    (tmp_path / "more" / "more.csv").write_text(MORE, encoding="utf-8")
    both.append(tmp_path / "more")
    matches = both.with_model("hashing").search(QUERY, min_joinability=0.2)
    assert "more.csv" in [match.table for match in matches]


def test_damage_of_a_further_model_is_found(built, tmp_path):
    shutil.copytree(built[0].path, tmp_path / "copy")
    [folder] = (tmp_path / "copy").glob("embedder/semantic_2")
    description = folder / "embedder.json"
    description.write_bytes(description.read_bytes().replace(b"hashing", b"hashinG", 1))
    assert [problem.is_failure for problem in pexeso.open_index(tmp_path / "copy").check()] == [
        True
    ]
    store = open_store_anywhere(built[0].path)
    del store.manifest.facts["semantic_2"]
    with pytest.raises(IndexCorruptError, match="tells nothing of its model 'hashing'"):
        store_of_model(store, 1)


def test_every_model_has_stages_of_its_own():
    names = stage_names(3)
    assert {"train", "train_2", "train_3", "index", "index_3"} < set(names)
    assert len(set(names)) == len(names) == len(stage_names()) + 8
