"""A check looks at what the bytes say, beyond their checksums."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pexeso.build.diagnostics.info import check_index
from pexeso.errors import IndexCorruptError
from pexeso.store.arrays import open_texts, write_arrays, write_texts
from pexeso.store.files import write_document
from pexeso.store.local.reader import open_store
from pexeso.store.manifest import FolderEntry, Manifest

Rewrite = Callable[[Manifest], Manifest]


@pytest.fixture
def index(small_index: Path, tmp_path: Path) -> Path:
    """A copy whose files may be replaced, but not written into."""
    return Path(shutil.copytree(small_index, tmp_path / "copy.pexeso", copy_function=os.link))


def manifest_of(index: Path) -> Manifest:
    return Manifest.from_bytes((index / "manifest.json").read_bytes())


def seal(index: Path, manifest: Manifest) -> None:
    (index / "manifest.json").unlink()
    (index / "manifest.json").write_bytes(manifest.to_bytes())


def resealed(data: bytes) -> bytes:
    """Return a manifest the right checksum of itself, whatever it says."""
    document = json.loads(data)
    document.pop("checksum")
    plain = json.dumps(document, sort_keys=True, separators=(",", ":")).encode() + b"\n"
    document["checksum"] = hashlib.blake2b(plain, digest_size=16).hexdigest()
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def rewritten(
    index: Path, name: str, write: Callable[[Path], object], facts: dict | None = None
) -> None:
    """Write a file of the first partition anew, with the checksum that belongs to it."""
    manifest = manifest_of(index)
    partition = manifest.partitions[0]
    path = index / partition.folder / name
    path.unlink()
    entry = write(path)
    files = [entry if file.path == name else file for file in partition.files]
    changed = FolderEntry(
        partition.folder, tuple(files), partition.facts if facts is None else facts
    )
    seal(
        index,
        replace(
            manifest, parts={**manifest.parts, "semantic": (changed, *manifest.partitions[1:])}
        ),
    )


def array(index: Path, name: str) -> np.ndarray:
    return np.load(index / manifest_of(index).partitions[0].folder / f"{name}.npy")


def problems(index: Path) -> list[tuple[str, str]]:
    return [
        (problem.kind, problem.sentence) for problem in check_index(index) if problem.is_failure
    ]


def test_a_whole_index_has_no_problem_and_progress_ends_at_its_total(index: Path) -> None:
    calls: list[tuple[int, int]] = []
    assert check_index(index, lambda done, total: calls.append((done, total))) == []
    assert calls == sorted(calls)
    assert calls[-1][0] == calls[-1][1] == 2 * manifest_of(index).n_bytes


def test_changed_bytes_are_told_and_nothing_is_said_of_what_they_mean(index: Path) -> None:
    path = index / manifest_of(index).partitions[0].folder / "meta.json"
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data.replace(b"1", b"2", 1))
    assert [kind for kind, _ in problems(index)] == ["checksum"]


def test_arrays_that_cannot_be_searched_are_told(index: Path) -> None:
    vectors = array(index, "vectors") * 2
    rewritten(index, "vectors.npy", lambda path: write_arrays(path.parent, {"vectors": vectors})[0])
    ((kind, sentence),) = problems(index)
    assert kind == "content"
    assert "vectors: 33 of 33 are not of unit length" in sentence


def test_texts_of_another_number_are_told(index: Path) -> None:
    rewritten(index, "tables.arrow", lambda path: write_texts(path, pa.array(["one.csv"])))
    assert "it holds 1 texts for 7 columns" in problems(index)[0][1]


def test_texts_that_are_missing_are_told(index: Path) -> None:
    path = index / manifest_of(index).partitions[0].folder / "values.arrow"
    values = [None, *open_texts(path).to_pylist()[1:]]
    rewritten(index, "values.arrow", lambda path: write_texts(path, pa.array(values, pa.string())))
    assert "values: 1 of its texts are missing" in problems(index)[0][1]


def test_counts_that_are_not_true_are_told(index: Path) -> None:
    facts = dict(manifest_of(index).partitions[0].facts)
    document = json.loads(
        (index / manifest_of(index).partitions[0].folder / "meta.json").read_bytes()
    )
    rewritten(
        index,
        "meta.json",
        lambda path: write_document(path, {**document, "values": 5}),
        {**facts, "postings": 7},
    )
    sentences = [sentence for _, sentence in problems(index)]
    assert len(sentences) == 2
    assert "meta.json: it records 5 values, and there are 33" in sentences[0]
    assert "manifest.json: it records 7 postings" in sentences[1]


def test_columns_that_the_catalog_does_not_list_are_told(index: Path) -> None:
    ids = array(index, "column_ids") + 3
    rewritten(
        index, "column_ids.npy", lambda path: write_arrays(path.parent, {"column_ids": ids})[0]
    )
    text = " ".join(sentence for _, sentence in problems(index))
    assert "has 3 columns that its catalog does not list" in text
    assert "has 3 columns that no partition holds" in text


@pytest.mark.parametrize(("name", "what"), [("tables", "table"), ("labels", "label")])
def test_columns_under_another_name_than_in_the_catalog_are_told(
    index: Path, name: str, what: str
) -> None:
    path = index / manifest_of(index).partitions[0].folder / f"{name}.arrow"
    names = open_texts(path).to_pylist()[::-1]
    rewritten(index, f"{name}.arrow", lambda path: write_texts(path, pa.array(names, pa.string())))
    text = " ".join(sentence for _, sentence in problems(index))
    assert f"by another {what} than its catalog; the first is '{names[0]}'" in text


def test_columns_of_token_sets_under_another_label_than_in_the_catalog_are_told(
    index: Path,
) -> None:
    manifest = manifest_of(index)
    [shard] = manifest.parts["token_sets"]
    path = index / shard.folder / "labels.arrow"
    labels = ["A" + label for label in open_texts(path).to_pylist()]
    path.unlink()
    entry = write_texts(path, pa.array(labels, pa.string()))
    files = [entry if file.path == "labels.arrow" else file for file in shard.files]
    seal(
        index,
        replace(
            manifest,
            parts={
                **manifest.parts,
                "token_sets": (FolderEntry(shard.folder, tuple(files), shard.facts),),
            },
        ),
    )
    text = " ".join(sentence for _, sentence in problems(index))
    assert "columns by another label than the catalog" in text


LIES = {
    "another metric": (
        "grid",
        {"metric": "angular"},
        "it records metric 'euclidean', where 'angular' is right",
    ),
    "another map": (
        "grid",
        {"map": "pivots", "n_axes": 3},
        "the options of the index say 'pivots'",
    ),
    "other cells": (
        "grid",
        {"map": "projection", "n_axes": 15, "cells": "grid", "n_levels": 2},
        "say 'grid'",
    ),
    "no postings": ("facts", {"postings": 0}, "records 0 postings, and there are"),
    "less than no values": ("facts", {"values": -1}, "records -1 values"),
    "more values than there are": ("facts", {"values": 10**15}, f"records {10**15} values"),
    "other dimensions": (
        "facts",
        {"dimensions": 65},
        "with 64 dimensions, and the manifest records 'hashing' with 65",
    ),
    "another model": ("facts", {"embedder": "glove"}, "the manifest records 'glove' with 64"),
    "no number for the next column": (
        "facts",
        {"next_column": 2**62},
        f"would number the next column {2**62}",
    ),
    "a number that is taken": (
        "facts",
        {"next_column": 2},
        "would number the next column 2, and the last one is",
    ),
}


@pytest.mark.parametrize(("where", "lie", "said"), LIES.values(), ids=LIES)
def test_lies_in_a_manifest_with_the_right_checksum_are_told(
    index: Path, where: str, lie: dict, said: str
) -> None:
    manifest = manifest_of(index)
    if where == "facts":
        seal(index, replace(manifest, facts={**manifest.facts, **lie}))
    else:
        grid = {**manifest.options["grid"], **lie}
        seal(index, replace(manifest, options={**manifest.options, "grid": grid}))
    findings = problems(index)
    assert {kind for kind, _ in findings} == {"content"}
    assert said in " ".join(sentence for _, sentence in findings)


@pytest.mark.parametrize(
    "lie", [{"cells": 0}, {"coordinates": 10**15}, {"map": "pivots"}, {"values_without_vector": -1}]
)
def test_lies_in_the_facts_of_a_partition_are_told(index: Path, lie: dict) -> None:
    manifest = manifest_of(index)
    [name] = lie
    first = replace(manifest.partitions[0], facts={**manifest.partitions[0].facts, **lie})
    seal(
        index,
        replace(manifest, parts={**manifest.parts, "semantic": (first, *manifest.partitions[1:])}),
    )
    ((kind, sentence),) = problems(index)
    assert kind == "content"
    assert "manifest.json: it records" in sentence
    assert name.replace("_", " ").split()[0] in sentence


def test_a_generation_that_no_index_reaches_is_refused(index: Path) -> None:
    data = json.loads((index / "manifest.json").read_bytes())
    data["generation"] = 10**30
    (index / "manifest.json").unlink()
    (index / "manifest.json").write_bytes(resealed(json.dumps(data).encode()))
    ((kind, sentence),) = problems(index)
    assert kind == "manifest"
    assert "generation" in sentence
    with pytest.raises(IndexCorruptError, match="generation"):
        open_store(index)


@pytest.mark.parametrize(
    ("change", "kind", "said"),
    [
        (
            lambda manifest: {
                "options": {**manifest.options, "grid": {"metric": 5, "map": "auto"}}
            },
            "content",
            "metric",
        ),
        (lambda manifest: {"options": {**manifest.options, "layout": 1}}, "version", "layout 1"),
        (
            lambda manifest: {"options": {**manifest.options, "normaliser": "{}"}},
            "version",
            "normaliser",
        ),
        (
            lambda manifest: {"fingerprints": {**manifest.fingerprints, "normaliser": "0"}},
            "version",
            "rules",
        ),
        (
            lambda manifest: {"fingerprints": {**manifest.fingerprints, "embedder": "0"}},
            "content",
            "not the one",
        ),
        (lambda manifest: {"facts": {}}, "content", "'lake'"),
    ],
)
def test_options_and_fingerprints_that_do_not_fit_are_told(
    index: Path, change: Rewrite, kind: str, said: str
) -> None:
    manifest = manifest_of(index)
    seal(index, replace(manifest, **change(manifest)))
    findings = problems(index)
    assert findings[0][0] == kind
    assert said in findings[0][1]
