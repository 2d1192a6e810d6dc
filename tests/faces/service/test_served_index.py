"""An index that is served: turns on one snapshot, and looks at whether it has changed."""

import shutil

import pytest

import pexeso
from pexeso.errors import IndexNotFoundError
from pexeso.faces.service import verbs as served_module
from pexeso.faces.service.lake import BrowseRequest
from pexeso.faces.service.verbs import ServedIndex


def test_a_turn_keeps_its_snapshot_while_another_one_reloads(copy):
    served = ServedIndex.of(str(copy))
    browse = BrowseRequest.of(index=str(copy))
    before = served.run(browse)
    with served.turn() as service:
        pexeso.open_index(copy).delete(["cities.csv"])
        served.reload()
        after = served.run(browse)
        assert after.total == before.total - 1
        assert service.run(browse) == before
        assert (service.state(str(copy)), served.state()) == ("newer", "current")
    assert served.run(browse) == after


def test_an_index_that_was_built_anew_in_its_place_is_reloaded(copy, small_lake):
    served = ServedIndex.of(str(copy))
    shutil.rmtree(copy)
    pexeso.build_index(small_lake / "cities.csv", copy, model="hashing", dimensions=64)
    assert served.state() == "newer"
    served.reload()
    assert served.state() == "current"
    assert served.run(BrowseRequest.of(index=str(copy))).total == 1


def test_an_index_in_its_place_is_current_without_reading_it_again(copy, monkeypatch):
    served = ServedIndex.of(str(copy))

    def read(path):
        raise AssertionError("the manifest was read")

    monkeypatch.setattr("pexeso.store.opening.open_store_anywhere", read)
    with served.turn() as service:
        assert service.state(str(copy)) == "current"
    assert served.index.refresh() is False


def test_a_storage_that_does_not_answer_is_no_deleted_index(copy, monkeypatch):
    served = ServedIndex(str(copy))

    def down(path):
        raise OSError("unreachable")

    with monkeypatch.context() as patched:
        patched.setattr("pexeso.store.opening.open_store_anywhere", down)
        assert served.state() == "current"
    shutil.rmtree(copy)
    assert served.state() == "gone"
    with monkeypatch.context() as patched:
        patched.setattr("pexeso.store.opening.open_store_anywhere", down)
        assert served.state() == "gone"


def test_the_index_is_looked_at_now_and_then_alone(copy, monkeypatch):
    monkeypatch.setattr(served_module, "LOOK_EVERY", 3600.0)
    served = ServedIndex(str(copy))
    assert served.state() == "current"
    shutil.rmtree(copy)
    assert served.state() == "current"


def test_there_must_be_an_index(tmp_path):
    with pytest.raises(IndexNotFoundError):
        ServedIndex.of(str(tmp_path / "none.pexeso"))
