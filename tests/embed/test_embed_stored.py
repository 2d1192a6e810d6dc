"""Saved models: whole, plain, mapped into memory, and every changed byte is found."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from embed import hashing, load_embedder, stored
from embed.subword import SubwordEmbedder
from pexeso.errors import EmbedderError, OutputError


def model(**changes) -> SubwordEmbedder:
    arguments = {
        "kind": "fasttext",
        "rows": np.arange(24, dtype=np.float32).reshape(8, 3),
        "words": pa.array(["oslo", "zürich"], pa.large_string()),
        "centre": np.ones(3, np.float32),
        "min_n": 3,
        "max_n": 4,
        "notes": {"seed": 1},
    } | changes
    return SubwordEmbedder(arguments.pop("kind"), **arguments)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model().save(tmp_path / "model")
    return tmp_path / "model"


def test_a_saved_model_is_plain_files(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == [
        "centre.npy",
        "embedder.json",
        "rows.npy",
        "weights.npy",
        "words.arrow",
    ]
    description = json.loads((folder / "embedder.json").read_text())
    assert description["format"] == stored.FORMAT_VERSION
    assert description["kind"] == "fasttext"
    assert description["options"] == {
        "min_n": 3,
        "max_n": 4,
        "own_rows": True,
        "notes": {"seed": 1},
    }


def test_opening_maps_the_table_and_cannot_change_it(folder: Path) -> None:
    before = (folder / "rows.npy").read_bytes()
    opened = load_embedder(folder)
    assert isinstance(opened._rows.base, np.memmap)
    opened._rows[:] = 7
    assert (folder / "rows.npy").read_bytes() == before


def test_the_same_model_has_the_same_fingerprint_and_any_change_another() -> None:
    rows = np.arange(24, dtype=np.float32).reshape(8, 3)
    rows[7, 2] = np.nextafter(rows[7, 2], np.float32(99))
    others = [
        model(kind="glove"),
        model(rows=rows),
        model(words=pa.array(["osl", "ozürich"], pa.large_string())),
        model(centre=np.array([1, 1, 1.0000001], np.float32)),
        model(min_n=2),
        model(weights=np.array([1, 1, 1.0000001], np.float32)),
        model(own_rows=False),
        model(notes={"seed": 2}),
        model(rows=np.arange(24, dtype=np.float32).reshape(4, 6), centre=np.ones(6, np.float32)),
    ]
    marks = {other.fingerprint for other in others} | {model().fingerprint}
    assert len(marks) == len(others) + 1
    assert (
        model(words=pa.array(["x", "oslo", "zürich"], pa.large_string()).slice(1)).fingerprint
        == model().fingerprint
    )


def test_a_flipped_bit_is_found_wherever_it_is(folder: Path) -> None:
    load_embedder(folder, verify=True)
    for path in sorted(folder.iterdir()):
        original = path.read_bytes()
        for place in range(0, len(original), 1 if len(original) < 200 else 7):
            changed = bytearray(original)
            changed[place] ^= 1
            path.write_bytes(changed)
            with pytest.raises(EmbedderError):
                load_embedder(folder, verify=True)
        path.write_bytes(original)
    load_embedder(folder, verify=True)


def test_files_that_agree_among_themselves_but_not_with_the_fingerprint_are_found(
    folder: Path,
) -> None:
    mark = json.loads((folder / "embedder.json").read_text())["fingerprint"]
    np.save(folder / "centre.npy", np.zeros(3, np.float32))
    (folder / "embedder.json").unlink()
    stored.write_description(
        folder, "fasttext", {"min_n": 3, "max_n": 4, "own_rows": True, "notes": {"seed": 1}}, mark
    )
    load_embedder(folder)
    with pytest.raises(EmbedderError, match="does not have the fingerprint"):
        load_embedder(folder, verify=True)


@pytest.mark.parametrize("name", ["rows.npy", "centre.npy", "weights.npy", "words.arrow"])
def test_missing_and_shortened_files_are_found_without_reading_them(
    folder: Path, name: str
) -> None:
    raw = (folder / name).read_bytes()
    (folder / name).write_bytes(raw[:-1])
    with pytest.raises(
        EmbedderError, match=rf"{name} has {len(raw) - 1:,} bytes instead of {len(raw):,}"
    ):
        load_embedder(folder)
    (folder / name).unlink()
    with pytest.raises(EmbedderError, match=f"lacks its file {name}"):
        load_embedder(folder)


def test_shapes_are_checked_against_each_other(folder: Path) -> None:
    np.save(folder / "centre.npy", np.zeros(4, np.float32))
    _describe_again(folder)
    with pytest.raises(
        EmbedderError, match="centre of a fasttext model has 4 numbers and its rows have 3"
    ):
        load_embedder(folder)
    np.save(folder / "centre.npy", np.zeros(3))
    _describe_again(folder)
    with pytest.raises(
        EmbedderError, match=r"centre\.npy holds float64 with 1 axes; float32 with 1 is needed"
    ):
        load_embedder(folder)


def test_arrays_that_would_need_pickle_are_refused(folder: Path) -> None:
    np.save(folder / "centre.npy", np.array([{}], object), allow_pickle=True)
    _describe_again(folder)
    with pytest.raises(EmbedderError, match=r"centre\.npy is not a complete array file"):
        load_embedder(folder)


def _describe_again(folder: Path) -> None:
    description = json.loads((folder / "embedder.json").read_text())
    (folder / "embedder.json").unlink()
    stored.write_description(
        folder, description["kind"], description["options"], description["fingerprint"]
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 1}, "has format 1 and this version reads format 2"),
        ({"kind": "other"}, "kind 'other' is not known"),
        ({"options": {}}, "has no option 'min_n' of type int"),
        ({"fingerprint": 5}, "is not complete"),
        ({"files": {"../secret": {"bytes": 1}}}, "lacks its file ../secret"),
    ],
)
def test_descriptions_that_do_not_fit_are_refused(folder: Path, change: dict, message: str) -> None:
    description = json.loads((folder / "embedder.json").read_text()) | change
    (folder / "embedder.json").write_text(json.dumps(description))
    with pytest.raises(EmbedderError, match=message):
        load_embedder(folder)


def test_a_folder_without_a_model_and_a_broken_description_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EmbedderError, match=r"holds no model: there is no embedder\.json in it"):
        load_embedder(tmp_path)
    for text in ("{", "[]"):
        (tmp_path / "embedder.json").write_text(text)
        with pytest.raises(EmbedderError, match=r"embedder\.json"):
            load_embedder(tmp_path)


def test_nothing_is_written_into_a_folder_that_holds_something(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(OutputError, match="is not empty; save the model to a new folder"):
        hashing.create(2, buckets=4).save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    with pytest.raises(OutputError, match="cannot be made"):
        hashing.create(2, buckets=4).save(tmp_path / "mine.txt")
