"""An archive of the classes that Spark loads, from which Java starts in less than half the time.

Java reads and checks some fifteen thousand classes of Spark's in every process. It can write them
to an archive when it ends, and map that into memory the next time (class data sharing). Writing
takes some twenty seconds of a core and 190 MB of disk, so that no build waits for it: the first one
starts a process in the background, of the lowest priority, which starts Spark once, does a little
of what builds do, and puts the archive into the user's cache folder. Java looks whether an archive
is of the same Java and the same files, and goes without it where it is not.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pexeso.build.spark.java import Java

VARIABLE = "PEXESO_CLASS_ARCHIVE"
"""An environment variable: ``0`` neither uses an archive nor makes one, ``use`` makes none."""

JAVA_OPTIONS = "spark.driver.extraJavaOptions"

_missing: set[Path] = set()
"""Archives that a session of this process did without."""

RETRY_SECONDS = 24 * 3600
_PLAIN_PATH = re.compile(r"[\w./+@=:-]+", re.ASCII)


def archive_path(java: Java) -> Path | None:
    """Return where the archive of a Java and the installed Spark is, or is to be.

    Returns
    -------
    Path or None
        In ``~/.cache/pexeso-spark``, or below ``XDG_CACHE_HOME``; None where none is to be used, or
        Java cannot be told the path.
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
    """Return settings of Spark with which Java takes its classes from the archive, if there is one.

    Java says nothing of an archive that it cannot use, and goes without it.
    """
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
            [sys.executable, "-m", "pexeso.build.spark.archive_maker"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,
        )
