"""Tests of a disk that fills up, on a small file system of its own."""

import shutil
import sys
from pathlib import Path

import pytest
from processes import ran

ROOT = Path(__file__).resolve().parent.parent.parent

pytestmark = pytest.mark.slow

# Mounts are seen within this process alone, and end with it.
PROGRAM = """
import gc, os, shutil, subprocess, sys
from pathlib import Path
place, lake, index = map(Path, sys.argv[1:])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", str(place)], check=True)
from pexeso.build.job import SMALL_LAKE_SETTINGS
from pexeso.errors import PexesoError
from pexeso.index import build_index, open_index
from pexeso.build.spark.session import spark_session
conf = {**SMALL_LAKE_SETTINGS, "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2", \
"spark.local.dir": str(lake.parent / "spark")}
shutil.copytree(index, place / "lake.pexeso")
query = ["Oslo", "Rome", "Madrid"]
before = open_index(place / "lake.pexeso", device="cpu").search(query, k=9).to_dict()["results"]
ballast = place / "ballast"
with spark_session("local[1]", conf=conf):
    ballast.write_bytes(bytes(os.statvfs(place).f_bavail * os.statvfs(place).f_frsize - 300_000))
    try:
        build_index(lake, place / "lake.pexeso", overwrite=True, model="hashing", dimensions=64)
        sys.exit("the disk did not fill up")
    except PexesoError as error:
        print(type(error).__name__, error)
    index = open_index(place / "lake.pexeso", device="cpu")
    print(index.search(query, k=9).to_dict()["results"] == before, \
[p for p in index.check() if p.is_failure])
    index = None  # else what it has open stays
    gc.collect()
    ballast.unlink()
    built = build_index(lake, place / "lake.pexeso", overwrite=True, model="hashing", dimensions=64)
    print(built.search(query, k=9).to_dict()["results"] == before, \
built.store.manifest.generation, built.check())
    print(sorted(os.listdir(place / "lake.pexeso")))
"""


def can_mount(folder: Path) -> bool:
    if shutil.which("unshare") is None:
        return False
    mount = "unshare --map-root-user --mount mount -t tmpfs -o size=1m tmpfs"
    return ran([*mount.split(), folder]).returncode == 0


@pytest.mark.long
def test_a_full_disk_leaves_the_old_index_and_a_rerun_finishes(tmp_path, small_lake, small_index):
    place = tmp_path / "disk"
    place.mkdir()
    if not can_mount(place):
        pytest.skip(
            "this machine does not let a test make a file system of its own (unshare, tmpfs)"
        )
    command = ["unshare", "--map-root-user", "--mount", sys.executable, "-c", PROGRAM, str(place)]
    (tmp_path / "spark").mkdir()
    lake = tmp_path / "lake"
    shutil.copytree(small_lake, lake)
    done = ran(
        [*command, str(lake), str(small_index)],
        cwd=ROOT,
        variables={"OMP_NUM_THREADS": "1"},
        timeout=400,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    error, old, new, left = done.stdout.splitlines()
    assert error.startswith("OutputError ")
    full = ("The disk is full", "No space left", "No space is left", "Not enough free space")
    assert any(said in error for said in full)
    assert old == "True []"
    assert new == "True 2 []"
    assert left == "['catalog.2', 'embedder.2', 'manifest.json', 'partitions']"
