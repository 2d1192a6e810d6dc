"""The index on disk: the same answers, and damage that is named."""

import contextlib
import json

import numpy as np
import pytest
from synthetic_sets import NumberLists, ensemble_of, ragged, some_of, vocabularies

from pexeso.errors import IndexCorruptError, IndexNotFoundError, IndexVersionError, OutputError
from pexeso.sets.containment import DOCUMENT, LISTS_ALONE, EnsembleOptions
from pexeso.sets.containment.ensemble import read_ensemble, write_ensemble
from pexeso.sets.containment.hashing import (
    distinct_sorted,
)
from pexeso.sets.part.open import check_ensemble
from pexeso.store.arrays import open_array

RNG = np.random.default_rng(12)
VOCABULARIES = vocabularies(5, RNG, max_size=500)
SETS = [some_of(VOCABULARIES[i % 5], RNG) for i in range(60)]
OPTIONS = EnsembleOptions(permutations=32, partitions=3)


LISTS = NumberLists(*distinct_sorted(*ragged(SETS)))
NAMES = ["sets", "sizes", "starts", "signatures", "table_values", "table_sets"]


def written(folder, options=OPTIONS, sets=SETS):
    folder.mkdir(parents=True, exist_ok=True)
    index = ensemble_of(*ragged(sets), options)
    write_ensemble(index, folder)
    return index


@pytest.fixture
def folder(tmp_path):
    written(tmp_path / "index")
    return tmp_path / "index"


def test_a_stored_index_gives_the_same_answers(tmp_path):
    index = written(tmp_path / "deep" / "index")
    opened = read_ensemble(tmp_path / "deep" / "index", LISTS)
    assert opened.options == OPTIONS
    assert not opened.signatures.flags.writeable
    assert check_ensemble(opened) == check_ensemble(index) == []
    for query in SETS[:5]:
        for route in ("auto", "bands"):
            one, other = (which.search(query, 0.5, route=route) for which in (index, opened))
            assert one.sets.tolist() == other.sets.tolist()
            assert one.containments.tolist() == other.containments.tolist()
            assert (one.overlaps >= 0).all()


def test_values_of_another_width_are_refused(folder):
    path = folder / "containment_table_values.npy"
    np.save(path, np.load(path).astype(np.int32))
    with pytest.raises(IndexCorruptError, match="must hold integers of u2"):
        read_ensemble(folder, LISTS)


def test_lists_of_fewer_sets_do_not_fit_together(folder):
    lists = NumberLists(*distinct_sorted(*ragged(SETS[:3])))
    with pytest.raises(IndexCorruptError, match="do not fit together, as sets tells"):
        read_ensemble(folder, lists)


def test_an_empty_index_is_stored(tmp_path):
    opened = read_ensemble(tmp_path, written(tmp_path, sets=[]).lists)
    assert len(opened.search(SETS[0], 0.5)) == len(opened.search(SETS[0], 0.5, route="bands")) == 0
    assert check_ensemble(opened) == []


def test_an_index_lies_beside_other_files_and_tells_its_own(tmp_path):
    (tmp_path / "sets.npy").write_bytes(b"of another")
    entries = write_ensemble(ensemble_of(*ragged(SETS), OPTIONS), tmp_path)
    assert {entry.path for entry in entries} == {path.name for path in tmp_path.iterdir()} - {
        "sets.npy"
    }
    assert all((tmp_path / entry.path).stat().st_size == entry.n_bytes for entry in entries)
    assert all(entry.path.startswith("containment") for entry in entries)
    with pytest.raises(OutputError, match="containment_sets"):
        write_ensemble(ensemble_of(*ragged(SETS), OPTIONS), tmp_path)


def test_opening_reads_no_numbers_of_sets_or_tokens(folder, monkeypatch):
    touched = []
    import pexeso.sets.containment.ensemble as stored

    def opened(path, n_bytes=None):
        array = open_array(path, n_bytes)
        if path.name != "containment_starts.npy":
            # Shapes can be asked for, numbers cannot.
            array = np.memmap(path, array.dtype, "r", array.offset, array.shape).view(Unread)
            touched.append(path.name)
        return array

    monkeypatch.setattr(stored, "open_array", opened)
    monkeypatch.setattr(stored.np, "asarray", lambda array: array)
    read_ensemble(folder, LISTS)
    assert len(touched) == len(NAMES) - 1


class Unread(np.memmap):
    def __getitem__(self, place):
        raise AssertionError("numbers are read")

    def __array_ufunc__(self, *arguments, **named):
        raise AssertionError("numbers are read")


def test_a_folder_without_an_index_is_named(tmp_path):
    with pytest.raises(IndexNotFoundError, match=r"no 'containment\.json'"):
        read_ensemble(tmp_path, LISTS)


def changed(folder, change):
    document = json.loads((folder / DOCUMENT).read_text(encoding="ascii"))
    document = change(document) or document
    (folder / DOCUMENT).write_text(json.dumps(document), encoding="ascii")


def test_posting_lists_alone_are_told_from_bands(folder):
    assert read_ensemble(folder, LISTS) is not None
    (folder / DOCUMENT).write_text(f'{{"version": {LISTS_ALONE}}}', encoding="ascii")
    assert read_ensemble(folder, LISTS) is None


@pytest.mark.parametrize("version", [1, 4, None, "1"])
def test_another_version_is_named(folder, version):
    changed(folder, lambda document: document.update(version=version))
    with pytest.raises(IndexVersionError, match="build it again"):
        read_ensemble(folder, LISTS)


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.pop("options"),
        lambda document: document["options"].update(permutations=0),
        lambda document: document["options"].update(permutations=31),
        lambda document: document["options"].update(more=1),
        lambda document: document.pop("hashed_lists"),
        lambda document: document.update(hashed_lists=True),
        lambda document: document["options"].update(tables=False),
        lambda document: document["options"].pop("keep_tokens"),
        lambda document: document.update(options=None),
    ],
)
def test_a_changed_document_is_named(folder, change):
    changed(folder, lambda document: change(document) and None)
    with pytest.raises(IndexCorruptError):
        read_ensemble(folder, LISTS)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_is_cut_short_missing_or_of_another_width_is_named(folder, name):
    path = folder / f"containment_{name}.npy"
    whole = path.read_bytes()
    np.save(path, np.load(path).astype(np.int8))
    with pytest.raises(IndexCorruptError, match=name):
        read_ensemble(folder, LISTS)
    path.write_bytes(whole[:-1])
    with pytest.raises(IndexCorruptError, match=name):
        read_ensemble(folder, LISTS)
    path.unlink()
    with pytest.raises(IndexCorruptError, match=name):
        read_ensemble(folder, LISTS)


@pytest.mark.parametrize("name", NAMES)
def test_arrays_of_another_length_do_not_fit_together(folder, name):
    path = folder / f"containment_{name}.npy"
    np.save(path, np.load(path)[:-2])
    with pytest.raises(IndexCorruptError, match=r"do not fit together|60 sets or more"):
        read_ensemble(folder, LISTS)


DAMAGE = {
    "sets": [(0, 10**12), (0, -1)],
    "sizes": [(0, 0), (-1, 0), (0, 10**12)],
    "starts": [],
    "signatures": [(3, 7)],
    "table_values": [(5, 7)],
    "table_sets": [(5, -1), (5, 32_000), (5, 0)],
}


@pytest.mark.parametrize(
    ("name", "place", "number"),
    [(name, *change) for name, changes in DAMAGE.items() for change in changes],
)
def test_damaged_numbers_lead_no_loop_astray_and_a_check_names_them(folder, name, place, number):
    path = folder / f"containment_{name}.npy"
    array = np.load(path)
    array.reshape(-1)[place] = number
    np.save(path, array)
    opened = read_ensemble(folder, LISTS)
    assert check_ensemble(opened)
    for query in SETS[:3]:
        for route in ("lists", "bands"):
            with contextlib.suppress(IndexCorruptError):
                opened.search(query, 0.5, route=route)


@pytest.mark.parametrize("starts", [[0, 2, 2, 60], [1, 60], [0, 61], [0, 30, 20, 60]])
def test_partitions_that_are_no_runs_are_refused(folder, starts):
    np.save(folder / "containment_starts.npy", np.array(starts))
    with pytest.raises(IndexCorruptError, match="starts"):
        read_ensemble(folder, LISTS)


def test_partitions_that_share_a_size_are_found_by_a_check(folder):
    same = np.flatnonzero(np.diff(np.load(folder / "containment_sizes.npy")) == 0)
    np.save(folder / "containment_starts.npy", np.array([0, same[0] + 1, 60]))
    assert any("lie apart" in sentence for sentence in check_ensemble(read_ensemble(folder, LISTS)))
