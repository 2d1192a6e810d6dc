import contextlib
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

from pexeso.errors import IndexCorruptError, OutputError
from pexeso.store.arrays import open_texts, require_sound, take_texts, take_wide, write_texts
from pexeso.store.files import checksum_file


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("texts")


values = st.lists(
    st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5), max_size=6
)


@given(values, st.sampled_from([pa.string(), pa.large_string()]), st.integers(0, 3))
@settings(max_examples=examples(100), deadline=None)
def test_texts_come_back_as_they_were(
    folder: Path, texts: list, kind: pa.DataType, skipped: int
) -> None:
    path = folder / "texts.arrow"
    path.unlink(missing_ok=True)
    array = pa.array(texts, kind).slice(skipped)
    entry = write_texts(path, array)
    back = open_texts(path)
    assert back.type == kind
    assert back.to_pylist() == array.to_pylist()
    assert (entry.n_bytes, entry.checksum) == checksum_file(path)


@pytest.mark.parametrize("chunks", [[], [["a"]], [["a", None], [], ["b"]]])
def test_chunks_are_joined(tmp_path: Path, chunks: list) -> None:
    write_texts(tmp_path / "t.arrow", pa.chunked_array(chunks, pa.string()))
    back = open_texts(tmp_path / "t.arrow")
    assert isinstance(back, pa.StringArray)
    assert back.to_pylist() == [text for chunk in chunks for text in chunk]


def test_texts_are_mapped_and_not_copied(tmp_path: Path) -> None:
    write_texts(tmp_path / "t.arrow", pa.array(["x" * 1000] * 1000))
    before = pa.total_allocated_bytes()
    back = open_texts(tmp_path / "t.arrow")
    assert pa.total_allocated_bytes() - before < 10_000
    assert back[999].as_py() == "x" * 1000


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    write_texts(tmp_path / "t.arrow", pa.array(["a"]))
    with pytest.raises(OutputError, match="File exists"):
        write_texts(tmp_path / "t.arrow", pa.array(["b"]))
    assert open_texts(tmp_path / "t.arrow").to_pylist() == ["a"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_really_full_disk_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_open = open
    monkeypatch.setattr("builtins.open", lambda path, mode: real_open("/dev/full", "wb"))
    with pytest.raises(OutputError, match=r"^No space is left"):
        write_texts(tmp_path / "t.arrow", pa.array(["x" * 1000] * 1000))


def test_files_that_are_no_texts_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.arrow"
    with pytest.raises(IndexCorruptError, match="is not a list of texts"):
        open_texts(path)
    for data in (b"", b"ARROW1", os.urandom(500)):
        path.write_bytes(data)
        with pytest.raises(IndexCorruptError, match="is not a list of texts"):
            open_texts(path)
    for table, batches in (
        (pa.table({"n": [1]}), 1),
        (pa.table({"text": ["a"]}), 2),
        (pa.table({"text": ["a"]}), 0),
    ):
        with pa.ipc.new_file(path, table.schema) as writer:
            for _ in range(batches):
                writer.write_table(table)
        with pytest.raises(IndexCorruptError, match="one batch of one column of texts"):
            open_texts(path)


def test_taken_texts_are_those_asked_for(tmp_path: Path) -> None:
    array = pa.array(["oslo", None, "", "łódź"])
    for kind in (pa.string(), pa.large_string()):
        path = tmp_path / f"{kind}.arrow"
        write_texts(path, array.cast(kind))
        back = open_texts(path)
        assert take_texts(back, np.array([3, 1, 3, 0, 2])).to_pylist() == [
            "łódź",
            None,
            "łódź",
            "oslo",
            "",
        ]
        assert take_texts(back, np.array([], np.int32)).to_pylist() == []
        assert take_texts(back.slice(2), np.array([1])).to_pylist() == ["łódź"]


@pytest.mark.parametrize("row", [-1, 3, 2**40])
def test_a_text_that_is_not_there_is_refused(row: int) -> None:
    with pytest.raises(IndexCorruptError, match="there are 3"):
        take_texts(pa.array(["a", "b", "c"]), np.array([0, row]))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_texts_whose_offsets_lead_out_of_the_file_are_refused_before_they_are_read(
    kind: pa.DataType,
) -> None:
    width = np.int32 if kind == pa.string() else np.int64
    for offsets in ([0, 2**30, 2], [0, -(2**30), 2], [0, 2, 1]):
        buffers = [None, pa.py_buffer(np.array(offsets, width)), pa.py_buffer(b"ab")]
        texts = pa.Array.from_buffers(kind, 2, buffers)
        with pytest.raises(IndexCorruptError, match="is damaged"):
            take_texts(texts, np.array([0, 1]))
        with pytest.raises(IndexCorruptError, match="is damaged"):
            require_sound(texts)


def test_texts_that_are_no_utf8_are_refused_when_they_are_taken() -> None:
    texts = pa.Array.from_buffers(
        pa.string(),
        2,
        [None, pa.py_buffer(np.array([0, 1, 3], np.int32)), pa.py_buffer(b"a\xff\xfe")],
    )
    assert take_texts(texts, np.array([0])).to_pylist() == ["a"]
    with pytest.raises(IndexCorruptError, match="is damaged"):
        take_texts(texts, np.array([1]))


def test_a_small_file_that_unpacks_to_a_large_one_is_refused_unopened(tmp_path: Path) -> None:
    batch = pa.record_batch([pa.array(["\0" * 50_000_000])], names=["text"])
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(str(tmp_path / "bomb.arrow"), batch.schema, options=options) as writer:
        writer.write_batch(batch)
    assert (tmp_path / "bomb.arrow").stat().st_size < 10_000
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(IndexCorruptError, match="not compressed"):
        open_texts(tmp_path / "bomb.arrow")
    assert pa.default_memory_pool().max_memory() == before


def test_any_changed_byte_gives_other_texts_or_a_refusal(tmp_path: Path) -> None:
    generator, path = np.random.default_rng(5), tmp_path / "t.arrow"
    write_texts(path, pa.array(["oslo", None, "łódź", ""] * 5))
    original = path.read_bytes()
    for place in generator.permutation(len(original))[:300]:
        changed = bytearray(original)
        changed[place] ^= int(generator.integers(1, 256))
        path.write_bytes(changed)
        with contextlib.suppress(IndexCorruptError):
            take_texts(open_texts(path), np.arange(20)).to_pylist()


def test_texts_that_are_too_many_when_rows_repeat_get_wide_offsets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pexeso.store.arrays.MAX_BYTES", 30)
    write_texts(tmp_path / "texts", pa.array(["x" * 10, "y", None]))
    texts = open_texts(tmp_path / "texts")
    assert take_texts(texts, [0, 1, 2, 0]).type == pa.string()
    many = take_texts(texts, [0, 0, 0, 2, 1])
    assert (many.type, many.to_pylist()) == (pa.large_string(), ["x" * 10] * 3 + [None, "y"])
    assert write_texts(tmp_path / "more", pa.chunked_array([["x" * 20], ["y" * 20]])).n_bytes
    assert open_texts(tmp_path / "more").type == pa.large_string()


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
def test_offsets_become_wide_where_rows_repeat(monkeypatch, kind) -> None:
    monkeypatch.setattr("pexeso.store.arrays.MAX_BYTES", 30)
    texts = pa.array(["x" * 10, "y", None], kind)
    few, many = pa.array([0, 1, 2, 0]), pa.array([0, 0, 0, None, 1])
    assert take_wide(texts, few).type == kind
    assert take_wide(texts, many).type != kind
    assert take_wide(texts, many).to_pylist() == texts.take(many).to_pylist()
    assert take_wide(pa.array([1, 2]), pa.array([1] * 100)).type == pa.int64()
