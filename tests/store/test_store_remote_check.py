"""Checking an index elsewhere finds what checking the same index here finds."""

import json

import pytest

from pexeso.errors import IndexNotFoundError
from pexeso.store.integrity import check_store
from pexeso.store.remote.publish import begin, publish


@pytest.fixture
def index(bucket, tmp_path, build_index):
    place = bucket.joined("lake.pexeso")
    manifest = publish(
        tmp_path / "local", build_index(tmp_path / "local", n_partitions=1), begin(place)
    )
    return place, manifest


def kinds(place) -> dict[str, str]:
    return {problem.path: problem.kind for problem in check_store(place)}


def test_a_whole_index_has_no_problem_and_every_byte_is_read(index):
    place, manifest = index
    steps = []
    assert check_store(place, lambda done, total: steps.append((done, total))) == []
    assert steps[-1] == (manifest.n_bytes, manifest.n_bytes)


def test_what_is_wrong_is_found_and_called_as_it_is_here(index, tmp_path):
    place, manifest = index
    local, folder = tmp_path / "local", manifest.partitions[0].folder

    def spoil(name: str, change) -> None:
        """Change a file here and there."""
        for file in (local / "partitions" / "00000" / name, place.joined(f"{folder}/{name}")):
            data = change(file.read_bytes() if hasattr(file, "read_bytes") else file.read())
            if data is None:
                (file.unlink if hasattr(file, "unlink") else file.remove)()
            else:
                (file.write_bytes if hasattr(file, "write_bytes") else file.write)(data)

    spoil("vectors.npy", lambda data: data[:-1] + bytes([data[-1] ^ 1]))
    spoil("codes.npy", lambda data: data[:-1])
    spoil("kept.npy", lambda data: None)
    here = {problem.path.rpartition("/")[2]: problem.kind for problem in check_store(local)}
    there = {path.rpartition("/")[2]: kind for path, kind in kinds(place).items()}
    assert there == here == {"codes.npy": "size", "kept.npy": "missing", "vectors.npy": "checksum"}


def test_notes_tell_what_is_foreign_and_what_is_unfinished_and_pass_over_what_readers_use(
    index, tmp_path, build_index
):
    place, _ = index
    publish(
        tmp_path / "second",
        build_index(tmp_path / "second", seed=1, n_partitions=1),
        begin(place, overwrite=True),
    )
    assert check_store(place) == []
    place.joined("mine.txt").write(b"x")
    place.joined(".building/upload-1.json").write(
        json.dumps({"files": ["catalog.7/tables.parquet"]}).encode()
    )
    place.joined("catalog.7/tables.parquet").write(b"half")
    problems = check_store(place)
    assert {problem.path: problem.kind for problem in problems} == {
        ".building/upload-1.json": "unfinished",
        "mine.txt": "foreign",
    }
    assert not any(problem.is_failure for problem in problems)


def test_a_changed_manifest_is_the_one_problem(index):
    place, _ = index
    place.joined("manifest.json").write(
        place.joined("manifest.json").read().replace(b"pexeso test", b"pexeso best")
    )
    assert kinds(place) == {"manifest.json": "manifest"}


def test_no_index_is_an_error(bucket):
    with pytest.raises(IndexNotFoundError):
        check_store(bucket.joined("none"))
