"""A model that is added to an index answers as if the index had been built with it."""

import shutil

import pytest
from several_models import (
    DIMENSIONS,
    MODELS,
    MORE,
    QUERY,
    TABLES,
    answers,
    build,
    require_as_alone,
    write_lake,
)

import pexeso
from pexeso.build.diagnostics.info import last_report
from pexeso.errors import EmbedderError, InputError
from pexeso.store.opening import open_store_anywhere


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    return write_lake(tmp_path_factory.mktemp("add-model") / "lake")


@pytest.fixture(scope="module")
def built(lake):
    """Return the index of both models, and that of each."""
    alone = {name: build(lake, lake.parent / name, name) for name in MODELS}
    return build(lake, lake.parent / "both", "lexical,hashing"), alone


@pytest.fixture
def first(built, tmp_path):
    """Return a copy of the index of the first model."""
    shutil.copytree(built[1]["lexical"].path, tmp_path / "index")
    return pexeso.open_index(tmp_path / "index")


def test_what_is_added_is_what_a_build_would_have_written(built, first, tmp_path):
    both, alone = built
    before = first.store.manifest
    added = first.add_model("hashing", dimensions=DIMENSIONS)
    assert (added.committed, added.partitions_added, first.models) == (True, 1, MODELS)
    require_as_alone(first, alone)
    manifest, expected = (open_store_anywhere(index.path).manifest for index in (first, both))
    assert manifest.parts["semantic"] == before.parts["semantic"]
    assert [entry.files for entry in manifest.parts["semantic_2"]] == [
        entry.files for entry in expected.parts["semantic_2"]
    ]
    assert manifest.embedder.files == expected.embedder.files
    for name in ("options", "facts", "fingerprints"):
        assert getattr(manifest, name) == getattr(expected, name)


def test_the_main_model_can_be_one_of_vectors(built, tmp_path):
    shutil.copytree(built[1]["hashing"].path, tmp_path / "index")
    index = pexeso.open_index(tmp_path / "index")
    index.add_model("lexical")
    assert index.models == ("hashing", "lexical")
    alone = built[1]
    assert answers(index) == answers(alone["hashing"])
    assert answers(index.with_model("lexical")) == answers(alone["lexical"])
    assert index.check() == []


@pytest.mark.long
def test_updates_before_and_after(lake, tmp_path):
    """The files of the tables may be gone by then: what the index holds is embedded.

    It answers as an index that was built with both models and updated alike. That one answers as
    each model alone: tests/build/parts/test_models.py.
    """
    folder = shutil.copytree(lake, tmp_path / "lake")
    index = build(folder, tmp_path / "index", "lexical", n_partitions=2, parts=["overlap"])
    both = build(folder, tmp_path / "both", "lexical,hashing")

    def require_as_both():
        require_as_alone(index, {name: both.with_model(name) for name in MODELS})

    (folder / "more.csv").write_text(MORE, encoding="utf-8")
    for updated_index in (index, both):
        updated_index.append(folder)
        updated_index.delete(["cities.csv"])
    (folder / "cities.csv").unlink()
    shutil.move(folder, tmp_path / "gone")
    index.add_model("hashing", dimensions=DIMENSIONS)
    require_as_both()
    assert "cities.csv" not in str(answers(index.with_model("hashing")))
    shutil.move(tmp_path / "gone", folder)
    (folder / "new.csv").write_text(MORE.replace("place", "harbour"), encoding="utf-8")
    for updated_index in (index, both):
        assert updated_index.append(folder).new == 1
    require_as_both()
    assert "new.csv" in str(answers(index.with_model("hashing")))
    for updated_index in (index, both):
        updated_index.delete(["towns.csv"])
        updated_index.compact(everything=True)
    require_as_both()
    assert index.overlap(["Oslo"])[0].table == "more.csv"


@pytest.mark.long
def test_several_models_at_once_with_their_options(lake, tmp_path, first):
    """Options of vectors are for the models that have them, in a build and later."""
    (tmp_path / "words.txt").write_text(vectors_of_all_words(), encoding="utf-8")
    more = f"fasttext,{tmp_path / 'words.txt'}"
    added = first.add_model(more, value_vectors="mean")
    assert added.partitions_added == 2
    built = pexeso.build_index(
        lake, tmp_path / "built", model=f"lexical,{more}", value_vectors="mean"
    )
    kinds = [first.with_model(name).embedder.kind for name in first.models]
    assert kinds == ["lexical", "fasttext-mean", "glove"]
    assert kinds == [built.with_model(name).embedder.kind for name in built.models]
    glove = first.models[2]
    assert answers(first.with_model(glove)) == answers(built.with_model(glove))
    assert first.check() == []


def vectors_of_all_words():
    words = sorted({word for text in TABLES.values() for word in text.lower().split()})
    cells = sorted({cell for word in words for cell in word.split(",")})
    return "".join(f"{cell} {1 + n % 7} {1 + n % 5} {n % 3}\n" for n, cell in enumerate(cells))


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("lexical", {}, "holds the models lexical. Got the model 'lexical' to be added"),
        ("fasttext,lexical", {}, "Got the model 'lexical' to be added: name one that it does not"),
        ("hashing,hashing", {}, "model must name 1 to 3 different models"),
        ("", {}, "model must name 1 to 3 different models"),
        ("fast-text", {}, 'The model must be "lexical" or "hashing"'),
        ("hashing", {"value_vectors": "mean"}, "value_vectors is for fasttext"),
        ("hashing", {"dimensions": 1}, "dimensions must be a whole number of at least 2"),
        ("hashing", {"colour": "red"}, "colour"),
    ],
)
def test_models_that_cannot_be_added(first, model, options, message):
    manifest = (first.path / "manifest.json").read_bytes()
    with pytest.raises((InputError, TypeError), match=message):
        first.add_model(model, **options)
    with pytest.raises(EmbedderError, match=r"There is no fastText model at cc\.bin"):
        first.add_model("cc.bin")
    assert (first.path / "manifest.json").read_bytes() == manifest
    assert not (first.path / ".building").exists()


def test_an_index_holds_so_many_models_and_no_more(built, tmp_path):
    shutil.copytree(built[0].path, tmp_path / "index")
    index = pexeso.open_index(tmp_path / "index")
    (tmp_path / "words.txt").write_text("oslo 1 0\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"can hold at most 3 models, and .* would hold lexical, "):
        index.add_model(f"fasttext,{tmp_path / 'words.txt'}")


def test_values_that_no_model_knows_are_not_in_the_index(lake, tmp_path):
    (tmp_path / "words.txt").write_text("oslo 1 0\nbergen 0 1\n", encoding="utf-8")
    index = pexeso.build_index(lake, tmp_path / "index", model=str(tmp_path / "words.txt"))
    with pytest.raises(InputError, match="lacks the values that its model knows nothing about"):
        index.add_model("lexical")
    assert not (index.path / ".building").exists()


def test_what_was_interrupted_leaves_the_index_and_is_taken_up(built, first):
    class Stop(Exception):
        pass

    def stop(stage):
        if stage == "partition_2":
            raise Stop

    with pytest.raises(Stop):
        first.add_model("hashing", dimensions=DIMENSIONS, progress=stop)
    index = pexeso.open_index(first.path)
    assert index.models == ("lexical",)
    assert [problem.kind for problem in index.check()] == ["unfinished"]
    assert answers(index) == answers(built[1]["lexical"])
    index.add_model("hashing", dimensions=DIMENSIONS)
    finished = ["catalog", "values", "train_2", "embed_2"]
    assert last_report(index.store).facts["taken_up"] == finished
    require_as_alone(index, built[1])


def test_an_open_index_answers_as_it_did(built, first):
    other = pexeso.open_index(first.path)
    first.add_model("hashing", dimensions=DIMENSIONS)
    assert other.models == ("lexical",)
    assert answers(other) == answers(built[1]["lexical"])
    assert other.refresh()
    assert answers(other.with_model("hashing")) == answers(built[1]["hashing"])
    assert other.search(QUERY, k=1)[0].table == "cities.csv"
