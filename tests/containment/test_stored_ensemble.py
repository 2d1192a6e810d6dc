"""The index on disk: the same answers, and damage that is named."""

import json

import numpy as np
import pytest
from synthetic_sets import ragged, some_of, vocabularies

from pexeso.containment.ensemble import Ensemble
from pexeso.containment.options import EnsembleOptions
from pexeso.containment.stored import DOCUMENT, open_ensemble, save_ensemble
from pexeso.errors import IndexCorruptError, IndexNotFoundError, IndexVersionError, OutputError

RNG = np.random.default_rng(12)
VOCABULARIES = vocabularies(5, RNG, most=500)
SETS = [some_of(VOCABULARIES[i % 5], RNG) for i in range(60)]
OPTIONS = EnsembleOptions(permutations=32, partitions=3)


@pytest.fixture
def folder(tmp_path):
    save_ensemble(Ensemble.build(*ragged(SETS), OPTIONS), tmp_path / "index")
    return tmp_path / "index"


@pytest.mark.parametrize("tables", [True, False])
@pytest.mark.parametrize("keep_tokens", [True, False])
def test_a_stored_index_gives_the_same_answers(tmp_path, tables, keep_tokens):
    options = EnsembleOptions(permutations=32, partitions=3, tables=tables, keep_tokens=keep_tokens)
    index = Ensemble.build(*ragged(SETS), options)
    save_ensemble(index, tmp_path / "deep" / "index")
    opened = open_ensemble(tmp_path / "deep" / "index")
    assert opened.options == options
    assert not opened.signatures.flags.writeable
    for query in SETS[:5]:
        one, other = (which.search(query, 0.5, verify=keep_tokens) for which in (index, opened))
        assert one.sets.tolist() == other.sets.tolist()
        assert one.containments.tolist() == other.containments.tolist()
        assert one.asked == other.asked


def test_an_empty_index_is_stored(tmp_path):
    save_ensemble(Ensemble.build(*ragged([]), OPTIONS), tmp_path)
    assert len(open_ensemble(tmp_path).search(SETS[0], 0.5)) == 0


def test_a_folder_with_something_in_it_is_left_alone(folder):
    with pytest.raises(OutputError, match="must be empty"):
        save_ensemble(Ensemble.build(*ragged(SETS), OPTIONS), folder)


def test_a_folder_without_an_index_is_named(tmp_path):
    with pytest.raises(IndexNotFoundError, match=r"no 'containment\.json'"):
        open_ensemble(tmp_path)


def changed(folder, change):
    document = json.loads((folder / DOCUMENT).read_text(encoding="ascii"))
    document = change(document) or document
    (folder / DOCUMENT).write_text(json.dumps(document), encoding="ascii")


@pytest.mark.parametrize("version", [2, None, "1"])
def test_another_version_is_named(folder, version):
    changed(folder, lambda document: document.update(version=version))
    with pytest.raises(IndexVersionError, match="build it again"):
        open_ensemble(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.pop("options"),
        lambda document: document["options"].update(permutations=0),
        lambda document: document["options"].update(permutations=31),
        lambda document: document["options"].update(more=1),
        lambda document: document["options"].update(tables=False),
        lambda document: document.pop("files"),
        lambda document: document["files"].pop(),
        lambda document: document["files"][0].update(n_bytes=1),
        lambda document: document["files"][0].update(path=3),
    ],
)
def test_a_changed_document_is_named(folder, change):
    changed(folder, lambda document: change(document) and None)
    with pytest.raises(IndexCorruptError):
        open_ensemble(folder)


@pytest.mark.parametrize(
    "name", ["sets", "sizes", "starts", "signatures", "table_sets", "tokens", "token_offsets", "posting_sets"]
)
def test_a_file_that_is_cut_short_or_missing_is_named(folder, name):
    path = folder / f"{name}.npy"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(IndexCorruptError, match=name):
        open_ensemble(folder)
    path.unlink()
    with pytest.raises(IndexCorruptError, match=name):
        open_ensemble(folder)


@pytest.mark.parametrize("name", ["sizes", "starts", "token_offsets"])
def test_numbers_that_lead_out_of_the_arrays_are_refused(folder, name):
    array = np.load(folder / f"{name}.npy")
    array[-1] += 1
    np.save(folder / f"{name}.npy", array)
    with pytest.raises(IndexCorruptError):
        open_ensemble(folder)


def test_numbers_of_another_width_are_refused(folder):
    array = np.load(folder / "signatures.npy").astype(np.int64).reshape(-1)[: 60 * 16].reshape(60, 16)
    np.save(folder / "signatures.npy", array)
    with pytest.raises(IndexCorruptError, match="signatures"):
        open_ensemble(folder)
