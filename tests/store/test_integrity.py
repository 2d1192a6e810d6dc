import os
from pathlib import Path

import numpy as np
import pytest

from pexeso.errors import IndexNotFoundError
from pexeso.store import files
from pexeso.store.integrity import check_store
from pexeso.store.local.writer import IndexWriter


@pytest.fixture
def index(tmp_path: Path, build_index) -> Path:
    build_index(tmp_path / "lake.pexeso")
    return tmp_path / "lake.pexeso"


def all_files(index: Path) -> list[Path]:
    return sorted(path for path in index.rglob("*") if path.is_file())


def failures(index: Path) -> list[tuple[str, str]]:
    return [(problem.path, problem.kind) for problem in check_store(index) if problem.is_failure]


def test_a_whole_index_has_no_problem_and_progress_ends_at_its_size(index: Path) -> None:
    calls: list[tuple[int, int]] = []
    assert check_store(index, lambda done, total: calls.append((done, total))) == []
    total = sum(path.stat().st_size for path in all_files(index) if path.name != "manifest.json")
    assert calls[-1] == (total, total)
    assert calls == sorted(calls)


def test_any_flipped_byte_is_found_and_named(index: Path) -> None:
    generator = np.random.default_rng(20)
    paths = all_files(index)
    sizes = np.array([path.stat().st_size for path in paths])
    # Half of the flips go to any byte alike, half to any file alike, so that small files get
    # theirs.
    by_byte = generator.choice(len(paths), 150, p=sizes / sizes.sum())
    for which in np.concatenate([by_byte, np.arange(len(paths)).repeat(8)]):
        path = paths[which]
        original = path.read_bytes()
        changed = bytearray(original)
        position = int(generator.integers(len(original)))
        changed[position] ^= int(generator.integers(1, 256))
        path.write_bytes(changed)
        kind = "manifest" if path.name == "manifest.json" else "checksum"
        expected = [(path.relative_to(index).as_posix(), kind)]
        assert failures(index) == expected, f"byte {position} of {path}"
        path.write_bytes(original)
    assert check_store(index) == []


def test_cut_lengthened_and_removed_files_are_found(index: Path) -> None:
    for path in all_files(index):
        original, name = path.read_bytes(), path.relative_to(index).as_posix()
        manifest = path.name == "manifest.json"
        for changed in (original[:-1], b"", original + b"\0"):
            path.write_bytes(changed)
            assert failures(index) == [(name, "manifest" if manifest else "size")]
        path.unlink()
        if manifest:
            with pytest.raises(IndexNotFoundError):
                check_store(index)
        else:
            assert failures(index) == [(name, "missing")]
        path.write_bytes(original)


def test_all_problems_are_listed_not_only_the_first(index: Path) -> None:
    (index / "catalog" / "tables.parquet").unlink()
    (index / "partitions" / "00001" / "seed.npy").write_bytes(b"")
    (index / "mine.txt").write_text("x")
    (index / "folder" / "below").mkdir(parents=True)
    (index / "folder" / "x").write_text("x")
    problems = check_store(index)
    assert [(problem.path, problem.kind) for problem in problems] == [
        ("catalog/tables.parquet", "missing"),
        ("partitions/00001/seed.npy", "size"),
        ("folder", "foreign"),
        ("mine.txt", "foreign"),
    ]
    assert [problem.is_failure for problem in problems] == [True, True, False, False]
    assert "pexeso neither reads nor removes it" in problems[-1].sentence


def test_links_and_unreadable_files_are_failures(index: Path, tmp_path: Path, monkeypatch) -> None:
    path = index / "catalog" / "tables.parquet"
    (tmp_path / "copy").write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to(tmp_path / "copy")
    assert failures(index) == [("catalog/tables.parquet", "not-plain")]
    path.unlink()
    path.write_bytes((tmp_path / "copy").read_bytes())

    def broken(path: Path, *_: object) -> tuple[int, str]:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("pexeso.store.integrity.checksum_file", broken)
    assert {kind for _, kind in failures(index)} == {"unreadable"}


def test_a_manifest_of_another_version_is_one_failure(index: Path, monkeypatch) -> None:
    monkeypatch.setattr("pexeso.store.manifest.FORMAT_VERSION", 1)
    [problem] = check_store(index)
    assert (problem.path, problem.kind) == ("manifest.json", "version")
    assert "format version 4, and this pexeso reads up to version 1" in problem.sentence


def test_files_written_wrong_from_the_start_are_found(tmp_path: Path, fill_index) -> None:
    with IndexWriter(tmp_path / "lake") as new:
        entries = fill_index(new, n_partitions=1)
        folder = new.partition_folder(0)
        for name in ("codes.npy", "values.arrow", "meta.json"):
            (folder / name).write_bytes(b"{")
        entries["parts"] = {"semantic": [new.seal_folder(folder)]}
        new.commit(**entries)
    assert failures(tmp_path / "lake") == [
        ("partitions/00000/codes.npy", "structure"),
        ("partitions/00000/meta.json", "structure"),
        ("partitions/00000/values.arrow", "structure"),
    ]


def test_large_files_are_read_in_pieces_of_a_mebibyte(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(os.urandom(3 * 2**20 + 5))
    pieces: list[int] = []
    size, _ = files.checksum_file(tmp_path / "large", pieces.append)
    assert size == sum(pieces) == 3 * 2**20 + 5
    assert max(pieces) == 2**20
