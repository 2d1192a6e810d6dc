"""Tests of stages: finished ones are skipped, interrupted ones redone, attempts isolated."""

import json
import time

import pytest

from pexeso.build.workers import Stages
from pexeso.errors import IndexCorruptError


def test_a_finished_stage_is_not_done_again(tmp_path):
    started, finished = [], []

    def work(folder):
        time.sleep(0.02)
        (folder / "rows").write_text("3", encoding="utf-8")
        return {"rows": 3}

    first = Stages(tmp_path, started.append, lambda: finished.append("first"))
    facts = first.run("read", work)
    assert facts["rows"] == 3
    assert 0.02 <= facts["seconds"] < 60
    second = Stages(tmp_path, started.append, lambda: finished.append("second"))
    assert second.run("read", lambda folder: pytest.fail("done again")) == facts
    assert (second.folder("read") / "rows").read_text(encoding="utf-8") == "3"
    assert (started, finished, first.resumed, second.resumed) == (
        ["read", "read"],
        ["first", "second"],
        [],
        ["read"],
    )


def test_what_a_failed_attempt_left_is_removed_by_the_next(tmp_path):
    def fail(folder):
        (folder / "half").write_text("x", encoding="utf-8")
        raise ZeroDivisionError

    stages = Stages(tmp_path)
    with pytest.raises(ZeroDivisionError):
        stages.run("read", fail)
    assert stages.finished("read") is None
    with pytest.raises(
        IndexCorruptError, match=r"The stage read of the build in .* is not finished"
    ):
        stages.folder("read")
    stages.run("read", lambda folder: (folder / "whole").write_text("x", encoding="utf-8") and None)
    assert [path.name for path in stages.folder("read").iterdir()] == ["whole"]
    assert len(list(tmp_path.iterdir())) == 2, "one folder, and the document that names it"


def test_an_attempt_that_goes_on_after_its_end_spoils_nothing(tmp_path):
    folders = []

    def abandoned(folder):
        folders.append(folder)
        raise KeyboardInterrupt

    stages = Stages(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        stages.run("read", abandoned)
    stages.run(
        "read", lambda folder: (folder / "rows").write_text("new", encoding="utf-8") and None
    )
    folders[0].mkdir()  # a task whose driver is dead
    (folders[0] / "rows").write_text("old", encoding="utf-8")
    assert (Stages(tmp_path).folder("read") / "rows").read_text(encoding="utf-8") == "new"


def test_a_forgotten_stage_is_done_again_and_leaves_nothing(tmp_path):
    stages = Stages(tmp_path)
    stages.run("read", lambda folder: {"n": 1})
    stages.forget("read")
    assert list(tmp_path.iterdir()) == []
    assert stages.run("read", lambda folder: {"n": 2})["n"] == 2


def test_a_document_that_leads_elsewhere_is_not_followed(tmp_path):
    (tmp_path / "scratch").mkdir()
    (tmp_path / "mine").mkdir()
    stages = Stages(tmp_path / "scratch")
    (tmp_path / "scratch" / "read.json").write_text(
        json.dumps({"folder": "../mine", "facts": {}}), encoding="utf-8"
    )
    assert stages.finished("read") is None
