"""Tests that a check finds every flipped byte and that no search fails on one."""

from pathlib import Path

import flip_run
import pytest
from flip_run import (
    OTHER,
    REFUSED_AT_OPEN,
    REFUSED_LATER,
    SAME,
    SEED,
    SHORT_FLIPS,
    FlipTest,
    summary,
)

from pexeso.store.integrity import Problem


@pytest.fixture(scope="module")
def flip_test(small_index: Path, tmp_path_factory: pytest.TempPathFactory) -> FlipTest:
    return FlipTest(small_index, tmp_path_factory.mktemp("flips"))


def test_flipped_bytes_are_found_and_nothing_falls_over(flip_test: FlipTest) -> None:
    flips = [flip_test(*flip) for flip in flip_test.flips(SHORT_FLIPS, SEED)]
    assert [flip for flip in flips if flip.failures] == []
    assert {flip.outcome for flip in flips} <= {REFUSED_AT_OPEN, REFUSED_LATER, SAME, OTHER}
    assert summary(flips).startswith(f"{SHORT_FLIPS} flips, 0 failures: ")


def test_every_file_is_flipped_and_every_byte_put_back(flip_test: FlipTest) -> None:
    before = [path.read_bytes() for path in flip_test.paths]
    flips = flip_test.flips(500, 3)
    assert {path for path, _, _ in flips} == set(flip_test.paths)
    manifest = next(flip for flip in flips if flip[0].name == "manifest.json")
    assert flip_test(*manifest).outcome == REFUSED_AT_OPEN
    assert [path.read_bytes() for path in flip_test.paths] == before


def test_a_check_that_overlooks_a_flip_is_a_failure(flip_test: FlipTest, monkeypatch) -> None:
    flip = flip_test.flips(1, 3)[0]
    monkeypatch.setattr(flip_run, "check_index", lambda path: [Problem("other", "checksum", "?")])
    assert "check names ['other']" in flip_test(*flip).failures[0]


def test_an_error_that_is_not_ours_is_a_failure(flip_test: FlipTest, monkeypatch) -> None:
    def explode(index: object) -> None:
        raise KeyError("broken")

    monkeypatch.setitem(flip_run._SEARCHES, "search", explode)
    embedder = next(path for path in flip_test.paths if path.name == "signs.npy")
    assert "search raised KeyError" in flip_test(embedder, 1 << 18, 1).failures[0]
