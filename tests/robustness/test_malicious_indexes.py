"""Tests that malicious indexes are refused with an error of pexeso."""

import json
import os
import sys
from pathlib import Path

import malicious_indexes as harm
import pytest
from long_runs import EVERYTHING
from processes import ran

pytestmark = pytest.mark.slow

MOST_GROWN = 300 << 20
EVERY = 1 if EVERYTHING else 3


def tried(attacks: dict) -> dict:
    """Return the attacks of one kind that are tried: one in three, or all in a run of all tests."""
    return dict(list(attacks.items())[::EVERY])


MANIFESTS = tried(harm.MANIFESTS)


def probe(whole: Path, suspects: list[Path]) -> dict[str, dict]:
    """Ask all suspects in one process; give what it records each, by the name of its folder."""
    here = Path(__file__).resolve().parent
    done = ran(
        [sys.executable, str(here / "malicious_probe.py"), *map(str, (whole, *suspects))],
        variables={"OMP_NUM_THREADS": "1"},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    assert [report["path"] for report in reports] == list(map(str, (whole, *suspects)))
    return {Path(report["path"]).name: report for report in reports}


@pytest.fixture(scope="module")
def reports(small_index: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
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


def nested_manifest(index: Path, copy: Path) -> Path:
    harm.copy_with(index, copy)
    (copy / "manifest.json").unlink()  # a link to that of the index
    (copy / "manifest.json").write_bytes(harm.NESTED)
    return copy


PLACES = {
    "a link for a file": linked_file,
    "a link for a folder": linked_folder,
    "a link for the manifest": linked_manifest,
    "a pipe for a file": pipe(f"{harm.PARTITION}/vectors.npy"),
    "a pipe for the manifest": pipe("manifest.json"),
    "a manifest without its checksum": without_seal,
    "a manifest nested too deep": nested_manifest,
}


def test_the_whole_index_answers_everything(reports: dict[str, dict], small_index: Path) -> None:
    assert set(reports[small_index.name]["ended"].values()) == {"answer"}


def test_nothing_ends_in_an_error_that_is_not_ours(reports: dict[str, dict]) -> None:
    foreign = {
        name: report["ended"]
        for name, report in reports.items()
        if "FOREIGN" in json.dumps(report["ended"])
    }
    assert foreign == {}


def test_nothing_is_opened_outside_of_the_folder(reports: dict[str, dict]) -> None:
    assert {
        name: report["outside"] for name, report in reports.items() if report.get("outside")
    } == {}


def test_no_memory_is_taken_for_what_is_claimed(reports: dict[str, dict]) -> None:
    assert {
        name: report["grown"]
        for name, report in reports.items()
        if report.get("grown", 0) > MOST_GROWN
    } == {}


def test_nothing_hangs(reports: dict[str, dict]) -> None:
    assert {
        name: report["seconds"] for name, report in reports.items() if report.get("seconds", 0) > 20
    } == {}


def test_a_check_refuses_all_of_them(reports: dict[str, dict], small_index: Path) -> None:
    passed = [
        name
        for name, report in reports.items()
        if report["ended"]["check"] == "answer" and name != small_index.name
    ]
    assert passed == []


def test_manifests_and_places_are_refused_by_every_search(reports: dict[str, dict]) -> None:
    questions = ("search", "best", "exact", "explain", "compiled")
    answered = {
        name: [question for question in questions if reports[name]["ended"][question] == "answer"]
        for name in (*MANIFESTS, *PLACES)
    }
    assert {name: answers for name, answers in answered.items() if answers} == {}
