"""Word vectors from text files, in the forms they are published in."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from embed import glove, load_embedder
from pexeso.errors import EmbedderError

LINES = 'paris 3 4\nrome -1.5e0 2\n. . . 1 0\nnan 0 1\n" 5 0\n'


def write(folder: Path, text: str | bytes, name: str = "vectors.txt") -> Path:
    path = folder / name
    raw = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return path


@pytest.mark.parametrize("name", ["vectors.txt", "vectors.txt.gz"])
@pytest.mark.parametrize("header", ["", "5 2\n"])
@pytest.mark.parametrize("ending", ["\n", " \n", "\r\n"])
def test_all_forms_are_read_alike(tmp_path: Path, name: str, header: str, ending: str) -> None:
    embedder = glove.load_text(write(tmp_path, (header + LINES).replace("\n", ending), name))
    assert (embedder.kind, embedder.dimensions) == ("glove", 2)
    # (0.6, 0.8) + (-0.6, 0.8) = (0, 1.6)
    vectors = embedder.embed(["paris", "paris rome", "nan", '"', "london", "london paris", None])
    expected = [[0.6, 0.8], [0, 1], [0, 1], [1, 0], [0, 0], [0.6, 0.8], [0, 0]]
    np.testing.assert_allclose(vectors, expected, atol=1e-6)


def test_blocks_of_a_file_join_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(1)
    rows = generator.standard_normal((500, 3)).astype(np.float32)
    text = "".join(
        f"w{place} " + " ".join(map(repr, map(float, row))) + "\n" for place, row in enumerate(rows)
    )
    monkeypatch.setattr(glove, "_READ_BYTES", 1000)
    vectors = glove.load_text(write(tmp_path, text)).embed([f"w{place}" for place in range(500)])
    np.testing.assert_allclose(
        vectors, rows / np.linalg.norm(rows, axis=1, keepdims=True), atol=1e-6
    )


def test_the_first_of_two_equal_words_wins_and_damaged_words_are_no_obstacle(
    tmp_path: Path,
) -> None:
    embedder = glove.load_text(write(tmp_path, b"oslo 1 0\n\xff\xfe 1 1\noslo 0 1"))
    np.testing.assert_array_equal(embedder.embed(["oslo"]), [[1, 0]])


def test_a_saved_model_is_opened_bit_by_bit(tmp_path: Path) -> None:
    embedder = glove.load_text(write(tmp_path, LINES))
    embedder.save(tmp_path / "model")
    opened = load_embedder(tmp_path / "model", verify=True)
    values = ["paris rome", "nan paris", "x"]
    assert opened.embed(values).tobytes() == embedder.embed(values).tobytes()
    assert opened.fingerprint == embedder.fingerprint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "first line is not a word and numbers"),
        ("word\n", "first line is not a word and numbers"),
        ("some plain text\nmore of it\n", "first line is not a word and numbers"),
        ("a 1 2\nb 1\n", "a line is not a word and 2 numbers"),
        ("a 1 2\nb 1 x\n", "a line is not a word and 2 numbers"),
        ("a 1 2\nb c d e\n", "a line is not a word and 2 numbers"),
        ("a 1 2\nb nan 1\n", "not finite numbers"),
    ],
)
def test_a_file_that_holds_no_word_vectors_is_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(EmbedderError, match=message):
        glove.load_text(write(tmp_path, text))


def test_missing_and_broken_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EmbedderError, match=r"absent\.txt cannot be read: No such file"):
        glove.load_text(tmp_path / "absent.txt")
    broken = tmp_path / "cut.txt.gz"
    broken.write_bytes(gzip.compress(LINES.encode())[:-12])
    with pytest.raises(EmbedderError, match=r"cut\.txt\.gz cannot be read"):
        glove.load_text(broken)
