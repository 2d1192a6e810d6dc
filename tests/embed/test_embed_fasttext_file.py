"""A fastText file that is cut short or damaged is refused, and is never read for ever."""

import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from embed import fasttext
from embed.fasttext import require_whole
from pexeso.errors import EmbedderError

HEAD = 8 + 12 * 4 + 8 + 3 * 4 + 2 * 8


def rewritten(binary: Path, folder: Path, change) -> Path:
    data = bytearray(binary.read_bytes())
    path = folder / "model.bin"
    changed = change(data)
    path.write_bytes(data if changed is None else changed)
    return path


def test_a_whole_file_is_read(binary: Path) -> None:
    require_whole(binary)
    assert fasttext.load_binary(binary).dimensions == 12


@pytest.mark.parametrize("share", [0, 0.0001, 0.002, 0.003, 0.01, 0.5, 0.9, 0.9999])
def test_a_file_that_is_cut_short_is_refused(binary: Path, tmp_path: Path, share: float) -> None:
    """What comes before its end reads as a model does: the package takes the rest for zeros."""
    n_bytes = int(share * binary.stat().st_size)
    path = rewritten(binary, tmp_path, lambda data: data[:n_bytes])
    expected = "is not a fastText model" if n_bytes < HEAD else "is damaged or cut short, at"
    with pytest.raises(EmbedderError, match=rf"model\.bin {expected}|model that {expected}"):
        fasttext.load_binary(path)


def test_every_end_inside_the_words_and_the_headers_is_seen(binary: Path, tmp_path: Path) -> None:
    whole = binary.read_bytes()
    path = tmp_path / "model.bin"
    for n_bytes in [*range(1500), *range(len(whole) - 60, len(whole))]:
        path.write_bytes(whole[:n_bytes])
        with pytest.raises(EmbedderError, match=r"is not a fastText model|damaged or cut short"):
            require_whole(path)


def no_end_of_words(data: bytearray) -> None:
    data[HEAD:] = bytes(len(data) - HEAD).replace(b"\0", b"x")


def many_words(data: bytearray) -> None:
    struct.pack_into("<i", data, 8 + 12 * 4 + 8, 2**31 - 1)


def other_magic(data: bytearray) -> None:
    struct.pack_into("<i", data, 0, 7)


@pytest.mark.parametrize("change", [no_end_of_words, many_words, other_magic])
def test_a_damaged_file_is_refused(binary: Path, tmp_path: Path, change) -> None:
    with pytest.raises(EmbedderError, match=r"is not a fastText model|damaged or cut short"):
        fasttext.load_binary(rewritten(binary, tmp_path, change))


def test_vectors_that_are_no_numbers_are_refused(upstream, binary: Path, tmp_path: Path) -> None:
    row = np.ascontiguousarray(upstream.get_input_matrix()[3], np.float32).tobytes()
    whole = binary.read_bytes()
    assert whole.count(row) == 1
    wrong = np.full(12, np.nan, np.float32).tobytes()
    path = rewritten(binary, tmp_path, lambda data: data.replace(row, wrong))
    with pytest.raises(EmbedderError, match=r"model .*model\.bin has vectors that are not finite"):
        fasttext.load_binary(path)


def test_a_quantised_model_is_refused(tmp_path: Path) -> None:
    package = pytest.importorskip("fasttext")
    text = tmp_path / "labelled.txt"
    lines = "".join(f"__label__{n % 2} word{n % 50} other{n % 30}\n" for n in range(600))
    text.write_text(lines)
    options = {"dim": 8, "epoch": 1, "thread": 12, "verbose": 0, "bucket": 300}
    model = package.train_supervised(str(text), minn=2, maxn=3, **options)
    model.save_model(str(tmp_path / "labels.bin"))
    assert fasttext.load_binary(tmp_path / "labels.bin").dimensions == 8
    model.quantize()
    model.save_model(str(tmp_path / "small.bin"))
    with pytest.raises(EmbedderError, match=r"small\.bin is a quantised fastText model"):
        fasttext.load_binary(tmp_path / "small.bin")


def test_what_is_read_is_what_the_package_reads(
    binary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = fasttext.trained_table(pytest.importorskip("fasttext").load_model(str(binary)))
    monkeypatch.setitem(sys.modules, "fasttext", None)
    ours = fasttext.read_table(binary)
    assert ours.words.equals(theirs.words)
    assert ours.rows.tobytes() == theirs.rows.tobytes()
    assert ours.counts.tolist() == theirs.counts.tolist()
    assert (ours.min_n, ours.max_n) == (theirs.min_n, theirs.max_n)
