"""The archive of Spark's classes: used where it is, made in the background where it is not."""

import os
from pathlib import Path

import pytest

from pexeso.build import archive_maker
from pexeso.build.spark import java as class_archive
from pexeso.build.spark.java import (
    JAVA_OPTIONS,
    Java,
    archive_path,
    make_archive_later,
    with_archive,
)


@pytest.fixture
def java(tmp_path, monkeypatch):
    """A Java, and an empty cache folder of its user."""
    monkeypatch.setenv("PEXESO_CLASS_ARCHIVE", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(class_archive, "_missing", set())
    program = tmp_path / "java"
    program.write_text("", encoding="utf-8")
    return Java(program, 17, "PATH")


@pytest.fixture
def started(monkeypatch):
    """The commands that are started in the background."""
    commands = []
    monkeypatch.setattr(
        class_archive.subprocess, "Popen", lambda command, **_: commands.append(command)
    )
    return commands


def write_archive(java):
    path = archive_path(java)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"classes")
    return path


def test_java_is_told_of_an_archive_that_is_there(java):
    path = write_archive(java)
    settings = with_archive({JAVA_OPTIONS: "-XX:+UseSerialGC", "a": "b"}, java)
    assert settings["a"] == "b"
    assert settings[JAVA_OPTIONS].startswith(f"-XX:+UseSerialGC -XX:SharedArchiveFile={path} ")
    assert with_archive({}, java)[JAVA_OPTIONS].startswith(f"-XX:SharedArchiveFile={path} ")


def test_options_of_the_user_about_archives_stay(java):
    write_archive(java)
    for option in ("-XX:SharedArchiveFile=/a", "-XX:ArchiveClassesAtExit=/a"):
        assert with_archive({JAVA_OPTIONS: option}, java) == {JAVA_OPTIONS: option}


def test_the_archive_of_another_java_or_spark_is_another(java, tmp_path):
    path = archive_path(java)
    assert path == archive_path(java)
    assert path.parent == tmp_path / "cache" / "pexeso-spark"
    os.utime(java.command, (1, 1))
    assert archive_path(java) != path


def test_none_is_used_where_it_is_switched_off_or_cannot_be_named(java, monkeypatch, tmp_path):
    write_archive(java)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a folder"))
    assert archive_path(java) is None
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PEXESO_CLASS_ARCHIVE", "0")
    assert with_archive({"a": "b"}, java) == {"a": "b"}


def test_a_missing_archive_is_made_once(java, started):
    make_archive_later()
    assert started == []
    assert with_archive({}, java) == {}
    make_archive_later()
    make_archive_later()
    assert [command[1:] for command in started] == [["-m", "pexeso.build.archive_maker"]]
    with_archive({}, java)
    make_archive_later()
    assert len(started) == 1
    tried = Path(archive_path(java)).with_suffix(".tried")
    os.utime(tried, (1, 1))
    with_archive({}, java)
    make_archive_later()
    assert len(started) == 2


def test_one_that_is_there_may_be_used_and_none_made(java, started, monkeypatch):
    monkeypatch.setenv("PEXESO_CLASS_ARCHIVE", "use")
    assert with_archive({}, java) == {}
    make_archive_later()
    assert started == []
    write_archive(java)
    assert with_archive({}, java).keys() == {JAVA_OPTIONS}


def test_a_cache_that_cannot_be_written_is_no_failure(java, started, tmp_path):
    (tmp_path / "cache").write_text("a file", encoding="utf-8")
    with_archive({}, java)
    make_archive_later()
    assert started == []


def test_archives_of_other_environments_stay_while_they_are_used(java, monkeypatch):
    made = archive_path(java)
    made.parent.mkdir(parents=True)
    used = {"last month": 1, "yesterday": 3, "last week": 2}
    for name, time in used.items():
        other = made.with_name(f"{name}.jsa")
        other.write_bytes(b"classes")
        os.utime(other, (time, 0))  # read then, and written before all

    def build(lake, index, options, *, master, conf):
        Path(conf[JAVA_OPTIONS].rpartition("=")[2]).write_bytes(b"classes")

    monkeypatch.setattr(archive_maker, "find_java", lambda: java)
    monkeypatch.setattr("pexeso.build.job.build", build)
    monkeypatch.setattr("pexeso.build.spark.session.STOP_SECONDS", 1)
    tried = made.with_name("gone.tried")
    tried.touch()
    os.utime(tried, (1, 1))
    assert archive_maker.make_archive() == made
    left = sorted(path.name for path in made.parent.iterdir())
    assert left == sorted([made.name, "last week.jsa", "yesterday.jsa"])
