"""Writing of the archive of Spark's classes in a process of its own: `pexeso.build.spark.java`."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from pexeso.build import job
from pexeso.build.spark import session
from pexeso.build.spark.java import JAVA_OPTIONS, RETRY_SECONDS, archive_path, find_java
from pexeso.options import BuildOptions
from pexeso.runtime.system import give_way

# Most archives that are kept: one for each installation of Spark or Java.
MAX_ARCHIVES = 3


def make_archive() -> Path | None:
    """Build a small index on Spark and let Java write the archive of its classes when it ends.

    None where Java wrote none.
    """
    path = archive_path(find_java())
    if path is None:
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in (*path.parent.glob("*.part"), *path.parent.glob("*.tried")):
        if time.time() - left.stat().st_mtime > RETRY_SECONDS:
            left.unlink(missing_ok=True)
    attempt = path.with_suffix(f".{os.getpid()}.part")
    session.STOP_SECONDS = 600  # Java writes it after Spark has stopped
    # The compilers and collectors of small builds; those of others can use the classes too.
    java = f"{job.SMALL_LAKE_SETTINGS[JAVA_OPTIONS]} -XX:ArchiveClassesAtExit={attempt}"
    try:
        with tempfile.TemporaryDirectory(prefix="pexeso-spark-") as folder:
            lake = Path(folder, "cities.csv")
            rows = (f"city {number},country {number % 5}\n" for number in range(20))
            lake.write_text("".join(["city,country\n", *rows]), encoding="ascii")
            index = Path(folder, "lake.pexeso")
            job.build(lake, index, BuildOptions(), master="local[2]", conf={JAVA_OPTIONS: java})
        if not attempt.is_file():
            return None
        attempt.chmod(0o600)
        os.replace(attempt, path)
    finally:
        attempt.unlink(missing_ok=True)
    _remove_unused(path)
    return path


def _remove_unused(new_archive: Path) -> None:
    """Keep the archive just made and, of other environments, those used last."""

    def last_use(path: Path) -> float:
        status = path.stat()
        return max(status.st_atime, status.st_mtime)

    others = (path for path in new_archive.parent.glob("*.jsa") if path != new_archive)
    for unused in sorted(others, key=last_use, reverse=True)[MAX_ARCHIVES - 1 :]:
        unused.unlink(missing_ok=True)


if __name__ == "__main__":
    give_way()
    make_archive()
