"""Tests that malicious indexes are refused with an error of pexeso."""

import json
import os
import sys
from collections.abc import Callable
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


def copied(act: Callable[[Path, Path], object], **options: object) -> Callable:
    """Return what copies an index and changes what lies where in the copy."""

    def make(index: Path, copy: Path) -> Path:
        harm.copy_with(index, copy, **options)
        act(index, copy)
        return copy

    return make


def link(name: str) -> Callable:
    """Put a link to a file of the index into the place of its copy."""

    def change(index: Path, copy: Path) -> None:
        (copy / name).unlink()
        (copy / name).symlink_to(index / name)

    return copied(change)


def link_folder(index: Path, copy: Path) -> None:
    (copy / "partitions").rename(copy.parent / f"{copy.name} moved")
    (copy / "partitions").symlink_to(copy.parent / f"{copy.name} moved")


def pipe(name: str) -> Callable:
    return copied(lambda _, copy: ((copy / name).unlink(), os.mkfifo(copy / name)))


def nest_manifest(index: Path, copy: Path) -> None:
    (copy / "manifest.json").unlink()  # a link to that of the index
    (copy / "manifest.json").write_bytes(harm.NESTED)


VECTORS = f"{harm.PARTITION}/vectors.npy"
PLACES = {
    "a link for a file": link(VECTORS),
    "a link for a folder": copied(link_folder),
    "a link for the manifest": link("manifest.json"),
    "a pipe for a file": pipe(VECTORS),
    "a pipe for the manifest": pipe("manifest.json"),
    "a manifest without its checksum": copied(
        lambda *_: None, change=harm.put("generation", value=5), seal=False
    ),
    "a manifest nested too deep": copied(nest_manifest),
}


def test_the_whole_index_answers_everything(reports: dict[str, dict], small_index: Path) -> None:
    assert set(reports[small_index.name]["ended"].values()) == {"answer"}


@pytest.mark.parametrize(
    "wrong",
    [
        lambda report: "FOREIGN" in json.dumps(report["ended"]),
        lambda report: report.get("outside"),
        lambda report: report.get("grown", 0) > MOST_GROWN,
        lambda report: report.get("seconds", 0) > 20,
    ],
    ids=["an error that is not ours", "opened outside", "memory for what is claimed", "hangs"],
)
def test_no_index_does_harm(reports: dict[str, dict], wrong: Callable[[dict], object]) -> None:
    assert {name: report for name, report in reports.items() if wrong(report)} == {}


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
