"""Tests that malicious indexes are refused with an error of pexeso.

No byte outside of the index folder is read, and no memory is taken for what the index claims.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import malicious_indexes as harm
import pytest
from long_runs import EVERYTHING

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MOST_GROWN = 300 << 20
EVERY = 1 if EVERYTHING else 3


def tried(attacks: dict) -> dict:
    """Return the attacks of one kind that are tried: one in three, or all in a run of all tests."""
    return dict(list(attacks.items())[::EVERY])


MANIFESTS = tried(harm.MANIFESTS)


def probe(whole: Path, suspects: list[Path]) -> dict[str, dict]:
    """Ask all suspects in one process; give what it tells of each, by the name of its folder."""
    here = Path(__file__).resolve().parent
    done = subprocess.run(
        [sys.executable, str(here / "malicious_probe.py"), *map(str, (whole, *suspects))],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["path"] for each in told] == list(map(str, (whole, *suspects)))
    return {Path(each["path"]).name: each for each in told}


@pytest.fixture(scope="module")
def told(small_index: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    folder = tmp_path_factory.mktemp("harm")
    (folder / harm.SECRET).write_bytes(b"\x93NUMPY secre")
    suspects = [
        harm.copy_with(small_index, folder / name, change=change)
        for name, change in MANIFESTS.items()
    ]
    for attacks in (harm.partition_files, harm.token_files, harm.other_files):
        suspects += [
            harm.copy_with(small_index, folder / name, changed)
            for name, changed in tried(attacks(small_index)).items()
        ]
    suspects += [make(small_index, folder / name) for name, make in PLACES.items()]
    return probe(small_index, suspects)


def linked_file(index: Path, copy: Path) -> Path:
    harm.copy_with(index, copy)
    path = copy / harm.PARTITION / "vectors.npy"
    path.unlink()
    path.symlink_to(index / harm.PARTITION / "vectors.npy")
    return copy


def linked_folder(index: Path, copy: Path) -> Path:
    harm.copy_with(index, copy)
    (copy / "partitions").rename(copy.parent / f"{copy.name} moved")
    (copy / "partitions").symlink_to(copy.parent / f"{copy.name} moved")
    return copy


def linked_manifest(index: Path, copy: Path) -> Path:
    harm.copy_with(index, copy)
    (copy / "manifest.json").unlink()
    (copy / "manifest.json").symlink_to(index / "manifest.json")
    return copy


def pipe(name: str):
    def make(index: Path, copy: Path) -> Path:
        harm.copy_with(index, copy)
        (copy / name).unlink()
        os.mkfifo(copy / name)
        return copy

    return make


def without_seal(index: Path, copy: Path) -> Path:
    return harm.copy_with(index, copy, change=harm.put("generation", value=5), seal=False)


PLACES = {
    "a link for a file": linked_file,
    "a link for a folder": linked_folder,
    "a link for the manifest": linked_manifest,
    "a pipe for a file": pipe(f"{harm.PARTITION}/vectors.npy"),
    "a pipe for the manifest": pipe("manifest.json"),
    "a manifest without its checksum": without_seal,
}


def test_the_whole_index_answers_everything(told: dict[str, dict], small_index: Path) -> None:
    assert set(told[small_index.name]["ended"].values()) == {"answer"}


def test_nothing_ends_in_an_error_that_is_not_ours(told: dict[str, dict]) -> None:
    foreign = {
        name: each["ended"] for name, each in told.items() if "FOREIGN" in json.dumps(each["ended"])
    }
    assert foreign == {}


def test_nothing_is_opened_outside_of_the_folder(told: dict[str, dict]) -> None:
    assert {name: each["outside"] for name, each in told.items() if each.get("outside")} == {}


def test_no_memory_is_taken_for_what_is_claimed(told: dict[str, dict]) -> None:
    assert {
        name: each["grown"] for name, each in told.items() if each.get("grown", 0) > MOST_GROWN
    } == {}


def test_nothing_hangs(told: dict[str, dict]) -> None:
    assert {
        name: each["seconds"] for name, each in told.items() if each.get("seconds", 0) > 20
    } == {}


def test_a_check_refuses_all_of_them(told: dict[str, dict], small_index: Path) -> None:
    passed = [
        name
        for name, each in told.items()
        if each["ended"]["check"] == "answer" and name != small_index.name
    ]
    assert passed == []


def test_manifests_and_places_are_refused_by_every_search(told: dict[str, dict]) -> None:
    questions = ("search", "best", "exact", "explain", "compiled")
    answered = {
        name: [question for question in questions if told[name]["ended"][question] == "answer"]
        for name in (*MANIFESTS, *PLACES)
    }
    assert {name: found for name, found in answered.items() if found} == {}
