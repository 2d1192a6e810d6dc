import json
import os
from pathlib import Path

import numpy as np
import pytest

from pexeso.build.diagnostics.info import check_index
from pexeso.errors import IndexCorruptError, IndexNotFoundError, IndexVersionError
from pexeso.runtime.formatting import format_bytes
from pexeso.store import manifest as manifest_module
from pexeso.store.arrays import write_arrays
from pexeso.store.integrity import check_store
from pexeso.store.local import reader
from pexeso.store.local.reader import open_store
from pexeso.store.local.writer import IndexWriter
from pexeso.store.manifest import FileEntry, FolderEntry, Manifest
from pexeso.store.opening import open_store_anywhere


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
    [[tables]] = store.catalog_files("tables")
    assert tables.read_bytes() == b"tables 0"
    assert (store.embedder_folder / "words" / "model.bin").read_bytes() == bytes(range(256))


def test_opening_reads_no_file_but_the_manifest(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_open, opened = open, []

    def watched(path, *args, **keywords):
        opened.append(os.readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else path)
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
    (tmp_path / "broken").symlink_to("nowhere")
    with pytest.raises(IndexNotFoundError, match="it is no folder"):
        open_store(tmp_path / "broken")
    for name in ("a\0", "\ud800"):
        with pytest.raises(IndexNotFoundError, match="no such folder"):
            open_store_anywhere(tmp_path / name)
    for look_at in (open_store_anywhere, check_index):
        with pytest.raises(IndexNotFoundError, match="cannot be looked at: File name too long"):
            look_at(tmp_path / ("x" * 300))  # as a folder that is closed to the user is
    with pytest.raises(IndexNotFoundError, match=r"the folder has no manifest.json"):
        open_store(tmp_path)
    (tmp_path / ".building").mkdir()
    with pytest.raises(
        IndexNotFoundError,
        match=r"but a build of one that was broken off: run 'pexeso index' again",
    ):
        open_store(tmp_path)


@pytest.mark.parametrize(
    "name", ["catalog/tables.parquet", "embedder/words/model.bin", "partitions/00001/codes.npy"]
)
def test_a_file_missing_or_cut_short_is_named_when_opening(index: Path, name: str) -> None:
    path = index / name
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    with pytest.raises(IndexCorruptError) as caught:
        open_store(index)
    assert str(caught.value) == (
        f"'{path}' has {len(data) - 1} bytes, but {len(data)} were written: it was cut short or "
        "changed. "
        "'pexeso check' lists all such files."
    )
    path.unlink()
    with pytest.raises(
        IndexCorruptError,
        match=f"'{path}' is missing. Restore it from a copy, or build the index again",
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


def test_a_header_changed_at_the_same_size_is_found_by_the_array_reader(
    index: Path, monkeypatch
) -> None:
    monkeypatch.setattr(reader, "SMALL_FILE_BYTES", -1)
    path = index / "partitions" / "00000" / "codes.npy"
    path.write_bytes(path.read_bytes().replace(b"(7,)", b"(9,)"))
    with pytest.raises(
        IndexCorruptError, match=r"codes.npy' has 184 bytes, but 200 bytes are expected"
    ):
        open_store(index).partition(0)


@pytest.mark.parametrize("name", ["codes.npy", "values.arrow", "meta.json"])
def test_a_changed_small_file_is_found_when_it_is_opened(index: Path, name: str) -> None:
    path = index / "partitions" / "00001" / name
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    store = open_store(index)
    readers = {
        "codes.npy": lambda: store.array(1, "codes"),
        "values.arrow": lambda: store.texts(1, "values"),
    }
    with pytest.raises(
        IndexCorruptError, match=f"{name}' is not as it was written, by its checksum"
    ):
        readers.get(name, lambda: store.document(1))()


def test_names_that_are_not_there_are_told_with_those_that_are(index: Path) -> None:
    store = open_store(index)
    with pytest.raises(
        IndexCorruptError,
        match=r"lists no file '.*x.parquet'; .* has 'columns.parquet', 'tables.parq",
    ):
        store._file(store.manifest.catalogs[0], "x.parquet")
    with pytest.raises(IndexCorruptError, match="lists no file"):
        store._file(store.manifest.catalogs[0], "../manifest.json")
    with pytest.raises(IndexCorruptError, match="lists no file"):
        store.array(0, "absent")


@pytest.mark.parametrize(
    "name", ["partitions/00001/codes.npy", "partitions/00001", "partitions", "catalog"]
)
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


def test_a_forged_manifest_does_not_make_us_look_outside(
    index: Path, tmp_path: Path, monkeypatch
) -> None:
    """Right checksum, wrong paths: refused before a single look at the disk beyond the manifest."""
    (tmp_path / "secret").write_text("x")
    original = open_store(index).manifest
    forged = original.to_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(manifest_module, "require_relative", lambda path: path)
        patch.setattr(manifest_module, "require_folder", lambda folder: folder)
        entry = FolderEntry("catalog", (FileEntry("../../secret", 1, "0" * 32),))
        forged = Manifest(
            "x", "x", 1, {}, {}, {}, (entry,), original.embedder, original.parts
        ).to_bytes()
    (index / "manifest.json").write_bytes(forged)
    monkeypatch.setattr(reader, "_require_size", lambda *_: pytest.fail("looked at a file"))
    with pytest.raises(
        IndexCorruptError, match=r"'\.\./\.\./secret' is not a relative path inside the index"
    ):
        open_store(index)


def test_an_index_of_a_newer_format_is_told_in_one_sentence(index: Path, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(manifest_module, "FORMAT_VERSION", 5)
        document = json.loads((index / "manifest.json").read_bytes())
        values = {key: value for key, value in document.items() if key != "checksum"} | {
            "format_version": 5
        }
        values["checksum"] = manifest_module._checksum(values)
        (index / "manifest.json").write_bytes(manifest_module._canonical(values))
    with pytest.raises(
        IndexVersionError, match="format version 5, and this pexeso reads up to version 4: upgrade"
    ):
        open_store(index)


def test_an_oversized_manifest_is_not_read(index: Path) -> None:
    with open(index / "manifest.json", "r+b") as file:
        file.truncate(2**30 + 1)  # sparse
    with pytest.raises(IndexCorruptError, match=r"has 1.0 GiB; a manifest has at most 1.0 GiB"):
        open_store(index)


def test_a_reader_keeps_its_snapshot_until_it_is_closed(
    index: Path, build_index, arrays_of
) -> None:
    store = open_store(index)
    for seed in (8, 9):
        build_index(index, seed=seed, overwrite=True)
    np.testing.assert_array_equal(store.partition(0)["vectors"], arrays_of(0)["vectors"])
    assert store.catalog_files("tables")[0][0].read_bytes() == b"tables 0"
    assert check_store(index) == []
    # Nobody held the one between: it is gone.
    assert sorted(os.listdir(index / "retired")) == ["manifest.1.json"]
    assert sorted(os.listdir(index)) == [
        "catalog",
        "catalog.3",
        "embedder",
        "embedder.3",
        "manifest.json",
        "partitions",
        "retired",
    ]
    store.hold.release()
    build_index(index, seed=9, overwrite=True)
    assert sorted(os.listdir(index)) == ["catalog.4", "embedder.4", "manifest.json", "partitions"]
    with pytest.raises(
        IndexCorruptError, match="has been written anew since it was opened: open it again"
    ):
        store.partition(0)


def test_a_manifest_replaced_while_it_is_opened_is_opened_anew(
    index: Path, build_index, monkeypatch
) -> None:
    real = reader.lock
    replaced = []

    def replace_first(descriptor: int, kind: int) -> bool | None:
        if not replaced:
            replaced.append(None)
            replaced[0] = build_index(index, seed=8, overwrite=True)
        return real(descriptor, kind)

    monkeypatch.setattr(reader, "lock", replace_first)
    store = open_store(index)
    assert store.manifest == replaced[0]
    build_index(index, seed=9, overwrite=True)
    assert store.document(0) == {"seed": 8}


def test_without_locks_what_is_superseded_stays_for_a_day(
    index: Path, build_index, monkeypatch
) -> None:
    monkeypatch.setattr(reader, "lock", lambda descriptor, kind: None)
    store = open_store(index)
    build_index(index, seed=8, overwrite=True)
    store.hold.release()
    build_index(index, seed=9, overwrite=True)
    assert store.document(0) == {"seed": 0}
    monkeypatch.setattr(reader, "RETENTION_SECONDS", -1)
    build_index(index, seed=10, overwrite=True)
    assert sorted(os.listdir(index)) == ["catalog.4", "embedder.4", "manifest.json", "partitions"]


def test_deleted_columns_are_marked_by_their_ids(index: Path, fill_index) -> None:
    with IndexWriter(index, update=True) as writer:
        folder = writer.partition_folder(0)
        ids = np.array([2, 3, 5, 9, 12, 40])
        files = write_arrays(folder, {"column_ids": ids})
        old = writer.previous
        kept = {
            "catalogs": old.catalogs,
            "embedder": old.embedder,
            "parts": {"semantic": [writer.seal_folder(folder, known=files)]},
        }
        writer.commit(
            written_by="test", **kept, deleted_columns=[(0, 3), (3, 4), (6, 9), (12, 30), (41, 50)]
        )
    assert open_store(index).deleted_mask(0).tolist() == [True, True, False, False, True, False]


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1023 bytes"),
        (1024, "1.0 KiB"),
        (2**60, "1024.0 PiB"),
        (2**31, "2.0 GiB"),
    ],
)
def test_sizes_read_well(n_bytes: int, text: str) -> None:
    assert format_bytes(n_bytes) == text


def test_an_open_index_stays_the_one_that_was_opened_whatever_takes_its_name(
    index: Path, tmp_path: Path, build_index, arrays_of
) -> None:
    store = open_store(index)
    index.rename(tmp_path / "old")
    build_index(index, n_partitions=3, seed=5)
    np.testing.assert_array_equal(store.array(1, "vectors"), arrays_of(1)["vectors"], strict=True)
    assert store.texts(1, "values").to_pylist() == ["oslo", "lima", "1"]
    assert store.document(1) == {"seed": 1}
    assert open_store(index).document(1) == {"seed": 6}


def test_what_was_mapped_stays_when_another_file_takes_its_name(index: Path, arrays_of) -> None:
    store = open_store(index)
    vectors, texts = store.array(0, "vectors"), store.texts(0, "values")
    folder = index / store.partition_entry(0).folder
    for name in ("vectors.npy", "values.arrow"):
        (folder / "other").write_bytes(b"")
        os.replace(folder / "other", folder / name)
    np.testing.assert_array_equal(vectors, arrays_of(0)["vectors"], strict=True)
    assert texts.to_pylist() == ["oslo", "lima", "0"]
    with pytest.raises(IndexCorruptError, match="has 0 bytes"):
        store.array(0, "vectors")


def test_the_file_that_was_looked_at_is_the_file_that_is_mapped(
    index: Path, monkeypatch, arrays_of
) -> None:
    """Another file of the same size takes the name between the look at its size and the mapping."""
    store, real = open_store(index), reader.map_array
    path = index / store.partition_entry(0).folder / "vectors.npy"

    def replaced_before(file, *given):
        (index / "other").write_bytes(bytes(path.stat().st_size))
        os.replace(index / "other", path)
        return real(file, *given)

    monkeypatch.setattr(reader, "map_array", replaced_before)
    np.testing.assert_array_equal(store.array(0, "vectors"), arrays_of(0)["vectors"], strict=True)


@pytest.mark.parametrize(
    "place", ["partitions", "partitions/00000", "partitions/00000/vectors.npy"]
)
def test_no_link_is_followed_below_an_open_index(index: Path, tmp_path: Path, place: str) -> None:
    store = open_store(index)
    (index / place).rename(tmp_path / "moved")
    (index / place).symlink_to(tmp_path / "moved")
    with pytest.raises(IndexCorruptError, match="is a symbolic link"):
        store.array(0, "vectors")


def test_a_pipe_in_place_of_a_file_is_refused_and_not_waited_for(index: Path) -> None:
    store = open_store(index)
    path = index / "partitions" / "00000" / "vectors.npy"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(IndexCorruptError, match="is not a plain file"):
        store.array(0, "vectors")


def test_an_index_that_is_let_go_of_leaves_no_descriptor(index: Path) -> None:
    before = os.listdir("/proc/self/fd")
    store = open_store(index)
    for number in range(3):
        store.partition(number)
        store.texts(number, "values")
    del store
    assert len(os.listdir("/proc/self/fd")) == len(before)
