import json
import os
from pathlib import Path

import numpy as np
import pytest

from pexeso.errors import DeviceError, IndexCorruptError, IndexNotFoundError, IndexVersionError, InputError
from pexeso.store import manifest as manifest_module
from pexeso.store import reader
from pexeso.store.manifest import FileEntry, FolderEntry, Manifest
from pexeso.store.reader import open_store
from pexeso.store.scan import copied_bytes, scan_partitions
from pexeso.store.sizes import format_bytes


@pytest.fixture
def index(tmp_path: Path, build_index) -> Path:
    build_index(tmp_path / "lake.pexeso", n_partitions=3)
    return tmp_path / "lake.pexeso"


def test_everything_comes_back_as_it_was_written(index: Path, arrays_of) -> None:
    store = open_store(index)
    assert store.n_partitions == 3
    for number in range(3):
        arrays, expected = store.partition(number), arrays_of(number)
        assert arrays.keys() == expected.keys()
        for name, array in expected.items():
            np.testing.assert_array_equal(arrays[name], array, strict=True)
            assert not arrays[name].flags.writeable
        assert store.array(number, "codes").tolist() == expected["codes"].tolist()
        assert store.texts(number, "values").to_pylist() == ["oslo", "lima", str(number)]
        assert store.document(number) == {"seed": number}
    assert store.catalog_path("tables.parquet").read_bytes() == b"tables 0"
    assert (store.embedder_folder / "words" / "model.bin").read_bytes() == bytes(range(256))


def test_opening_reads_no_file_but_the_manifest(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_open, opened = open, []

    def watched(path, *args, **keywords):
        opened.append(path)
        return real_open(path, *args, **keywords)

    monkeypatch.setattr("builtins.open", watched)
    monkeypatch.setattr("io.open", watched)
    open_store(index)
    assert [Path(path).name for path in opened] == ["manifest.json"]


def test_an_index_may_be_moved_and_reached_through_a_link(index: Path, tmp_path: Path) -> None:
    index.rename(tmp_path / "moved")
    (tmp_path / "link").symlink_to("moved")
    assert open_store(str(tmp_path / "link")).partition(2)["seed"] == 2


def test_where_there_is_no_index_the_message_says_what_is_there(tmp_path: Path) -> None:
    with pytest.raises(IndexNotFoundError, match=r"no such folder. Build one with 'pexeso index'"):
        open_store(tmp_path / "absent")
    (tmp_path / "file").write_text("x")
    with pytest.raises(IndexNotFoundError, match="it is no folder"):
        open_store(tmp_path / "file")
    with pytest.raises(IndexNotFoundError, match=r"the folder has no manifest.json"):
        open_store(tmp_path)
    (tmp_path / ".building").mkdir()
    with pytest.raises(IndexNotFoundError, match=r"no finished index at .*, but a build of one: wait .* build again"):
        open_store(tmp_path)


@pytest.mark.parametrize("name", ["catalog/tables.parquet", "embedder/words/model.bin", "partitions/00001/codes.npy"])
def test_a_file_missing_or_cut_short_is_named_when_opening(index: Path, name: str) -> None:
    path = index / name
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    with pytest.raises(IndexCorruptError) as caught:
        open_store(index)
    assert str(caught.value) == (
        f"'{path}' has {len(data) - 1} bytes, but {len(data)} were written: it was cut short or changed. "
        "'pexeso check' lists all such files."
    )
    path.unlink()
    with pytest.raises(
        IndexCorruptError, match=f"'{path}' is missing. Restore it from a copy, or build the index again"
    ):
        open_store(index)


def test_a_file_cut_short_after_opening_is_named_when_used(index: Path) -> None:
    store = open_store(index)
    path = index / "partitions" / "00001" / "values.arrow"
    path.write_bytes(b"short")
    with pytest.raises(IndexCorruptError, match=r"values.arrow' has 5 bytes"):
        store.texts(1, "values")
    (index / "partitions" / "00001" / "meta.json").unlink()
    with pytest.raises(IndexCorruptError, match=r"meta.json' is missing"):
        store.document(1)


def test_a_header_changed_at_the_same_size_is_found_by_the_array_reader(index: Path) -> None:
    path = index / "partitions" / "00000" / "codes.npy"
    path.write_bytes(path.read_bytes().replace(b"(7,)", b"(9,)"))
    with pytest.raises(IndexCorruptError, match=r"codes.npy' has 184 bytes, but 200 bytes are expected"):
        open_store(index).partition(0)


def test_names_that_are_not_there_are_told_with_those_that_are(index: Path) -> None:
    store = open_store(index)
    with pytest.raises(InputError, match=r"has partitions 0 to 2. Got 3"):
        store.partition(3)
    with pytest.raises(InputError, match="Got -1"):
        store.partition(-1)
    with pytest.raises(IndexCorruptError, match=r"lists no file '.*x.parquet'; .* has 'columns.parquet', 'tables.parq"):
        store.catalog_path("x.parquet")
    with pytest.raises(IndexCorruptError, match="lists no file"):
        store.catalog_path("../manifest.json")
    with pytest.raises(IndexCorruptError, match="lists no file"):
        store.array(0, "absent")


@pytest.mark.parametrize("name", ["partitions/00001/codes.npy", "partitions/00001", "partitions", "catalog"])
def test_links_inside_an_index_are_refused(index: Path, tmp_path: Path, name: str) -> None:
    (index / name).rename(tmp_path / "elsewhere")
    (index / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(IndexCorruptError, match=f"'{index / name}' is a symbolic link"):
        open_store(index)


def test_a_folder_or_pipe_in_place_of_a_file_is_refused(index: Path) -> None:
    path = index / "partitions" / "00001" / "codes.npy"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(IndexCorruptError, match=r"codes.npy' is not a plain file"):
        open_store(index)
    path.unlink()
    (index / "manifest.json").unlink()
    (index / "manifest.json").symlink_to("/etc/hostname")
    with pytest.raises(IndexCorruptError, match=r"manifest.json' is a symbolic link"):
        open_store(index)


def test_a_forged_manifest_does_not_make_us_look_outside(index: Path, tmp_path: Path, monkeypatch) -> None:
    """Right checksum, wrong paths: refused before a single look at the disk beyond the manifest."""
    (tmp_path / "secret").write_text("x")
    original = open_store(index).manifest
    forged = original.to_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(manifest_module, "require_relative", lambda path: path)
        patch.setattr(manifest_module, "require_folder", lambda folder: folder)
        entry = FolderEntry("catalog", (FileEntry("../../secret", 1, "0" * 32),))
        forged = Manifest("x", "x", 1, {}, {}, {}, entry, original.embedder, original.partitions).to_bytes()
    (index / "manifest.json").write_bytes(forged)
    monkeypatch.setattr(reader, "_require_size", lambda *_: pytest.fail("looked at a file"))
    with pytest.raises(IndexCorruptError, match=r"'\.\./\.\./secret' is not a relative path inside the index"):
        open_store(index)


def test_an_index_of_a_newer_format_is_told_in_one_sentence(index: Path, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(manifest_module, "FORMAT_VERSION", 2)
        document = json.loads((index / "manifest.json").read_bytes())
        values = {key: value for key, value in document.items() if key != "checksum"} | {"format_version": 2}
        values["checksum"] = manifest_module._checksum(values)
        (index / "manifest.json").write_bytes(manifest_module._canonical(values))
    with pytest.raises(IndexVersionError, match="format version 2, and this pexeso reads up to version 1: upgrade"):
        open_store(index)


def test_an_oversized_manifest_is_not_read(index: Path) -> None:
    with open(index / "manifest.json", "r+b") as file:
        file.truncate(2**30 + 1)  # sparse
    with pytest.raises(IndexCorruptError, match=r"has 1.0 GiB; a manifest has at most 1.0 GiB"):
        open_store(index)


def test_an_index_replaced_between_two_looks_opens_as_the_new_one(index: Path, build_index, monkeypatch) -> None:
    real = reader._require_size
    replaced = []

    def replace_first(*args) -> None:
        if not replaced:
            replaced.append(build_index(index, seed=8, overwrite=True))
        real(*args)

    monkeypatch.setattr(reader, "_require_size", replace_first)
    assert open_store(index).manifest == replaced[0]


def test_an_index_replaced_after_opening_says_so(index: Path, build_index) -> None:
    store = open_store(index)
    build_index(index, seed=8, overwrite=True)
    with pytest.raises(IndexCorruptError, match="has been written anew since it was opened: open it again"):
        store.partition(0)


def test_a_scan_gives_each_partition_and_then_lets_it_go(index: Path, arrays_of) -> None:
    seen = []
    for number, arrays in scan_partitions(open_store(index)):
        assert all(not previous for _, previous in seen), "the one before is emptied"
        np.testing.assert_array_equal(arrays["vectors"], arrays_of(number)["vectors"])
        seen.append((number, arrays))
    assert [number for number, _ in seen] == [0, 1, 2]
    assert not seen[-1][1]
    assert [number for number, _ in scan_partitions(open_store(index), numbers=[2, 0])] == [2, 0]


def test_a_scan_opens_one_partition_at_a_time(index: Path, monkeypatch) -> None:
    opened: list[int] = []
    real = reader.Store.partition
    monkeypatch.setattr(reader.Store, "partition", lambda self, number: opened.append(number) or real(self, number))
    scan = scan_partitions(open_store(index))
    assert opened == []
    next(scan)
    assert opened == [0]
    next(scan)
    assert opened == [0, 1]


def test_the_budget_bounds_what_is_copied_and_is_checked_before_anything_is_opened(index: Path, monkeypatch) -> None:
    store = open_store(index)
    assert copied_bytes(store, 0, ["vectors"]) == 128 + 7 * 3 * 4
    assert copied_bytes(store, 0) == sum(file.n_bytes for file in store.manifest.partitions[0].files[:2]) + sum(
        file.n_bytes
        for file in store.manifest.partitions[0].files
        if file.path in ("nothing.npy", "seed.npy", "vectors.npy")
    )
    assert len(list(scan_partitions(store, copied=["vectors"], memory_budget=212))) == 3
    monkeypatch.setattr(reader.Store, "partition", lambda *_: pytest.fail("opened a partition"))
    with pytest.raises(DeviceError) as caught:
        scan_partitions(store, copied=["vectors"], memory_budget=211)
    assert str(caught.value) == (
        f"Partition 0 of '{index}' needs 212 bytes in memory, and the budget is 211 bytes: "
        "raise the memory budget to that, or build the index with smaller partitions."
    )
    with pytest.raises(InputError, match=r"positive number of bytes. Got 0"):
        scan_partitions(store, memory_budget=0)
    with pytest.raises(InputError, match="Got 9"):
        scan_partitions(store, numbers=[9])


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [(0, "0 bytes"), (1, "1 byte"), (1023, "1023 bytes"), (1024, "1.0 KiB"), (2**60, "1024.0 PiB"), (2**31, "2.0 GiB")],
)
def test_sizes_read_well(n_bytes: int, text: str) -> None:
    assert format_bytes(n_bytes) == text
