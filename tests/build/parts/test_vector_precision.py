"""Indexes whose vectors have 16 or 32 bits: what is stored, told, checked and kept by updates."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from long_runs import long_cases_but

import pexeso
from embed.stored import HalfPrecision, in_half
from pexeso.build.diagnostics.estimate import estimate_build
from pexeso.build.parts.metadata import options_of
from pexeso.engine.dense.oracle import oracle_pairs
from pexeso.errors import InputError
from pexeso.options import BuildOptions
from pexeso.store.manifest import MANIFEST, Manifest

NAMES = ["Oslo", "Bergen", "Trondheim", "Stavanger", "Tromsø", "Bodø", "Hamar", "Drammen"]
NAMES += ["Molde", "Narvik", "Harstad", "Alta"]
TABLES = {
    f"places_{number}.csv": "place,code\n"
    + "".join(f"{name},{name[: number + 3]} {number}\n" for name in NAMES[number : number + 8])
    for number in range(5)
}
MORE = {"more.csv": "town\n" + "".join(f"{name}n\n" for name in NAMES[:7])}
QUERY = [*NAMES[:6], "Hammar", "Dramen"]
SETTINGS = {"model": "hashing", "dimensions": 48}


def write_tables(folder: Path, tables: dict[str, str]) -> Path:
    """Write tables into a new folder."""
    folder.mkdir()
    for name, text in tables.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    return write_tables(tmp_path_factory.mktemp("precision") / "lake", TABLES)


@pytest.fixture(scope="module")
def built(lake, tmp_path_factory):
    folder = tmp_path_factory.mktemp("precision")
    return {
        name: pexeso.build_index(lake, folder / name, vector_precision=name, **SETTINGS)
        for name in ("half", "single")
    }


def stored(index):
    """The arrays of vectors of all partitions."""
    return [index.store.array(number, "vectors") for number in range(index.store.n_partitions)]


def require_right_answers(index):
    """Require of a search what the stored numbers say, compared one by one, and by ``exact``."""
    query = index.encode(QUERY)
    for distance in (0.0, 0.2, 0.35):
        options = {"max_distance": distance, "min_joinability": 0.1, "k": "all"}
        expected = {}
        for number, vectors in enumerate(stored(index)):
            arrays = index.store.partition(number)
            lake = index._opened.loader.mapped(number).vectors.float()
            metric = index._opened.loader.space.metric
            tau = metric.threshold(distance)
            query_rows, rows, _ = oracle_pairs(query.vectors, lake, tau)
            matched = {row: set() for row in range(len(vectors))}
            for one, row in zip(query_rows.tolist(), rows.tolist(), strict=True):
                matched[row].add(one)
            hidden = index.store.deleted_mask(number)
            for column, column_id in enumerate(arrays["column_ids"].tolist()):
                begin, end = arrays["column_values_offsets"][column : column + 2]
                members = arrays["column_values_members"][begin:end].tolist()
                if hidden is None or not hidden[column]:
                    expected[column_id] = len(set().union(*(matched[row] for row in members)))
        for exact in (False, True):
            hits = index.search(QUERY, exact=exact, rerank=False, fold_copies=False, **options)
            assert sorted(hit.matched for hit in hits) == sorted(n for n in expected.values() if n)
        assert hits


@pytest.mark.long
def test_half_stores_the_rounded_vectors(built):
    half, single = built["half"], built["single"]
    assert [vectors.dtype for vectors in stored(half)] == [np.float16]
    assert [vectors.dtype for vectors in stored(single)] == [np.float32]
    texts = [index.store.texts(0, "values").to_pylist() for index in (half, single)]
    order = [texts[1].index(text) for text in texts[0]]
    assert np.array_equal(stored(half)[0], in_half(stored(single)[0][order]))
    assert isinstance(half.embedder, HalfPrecision)
    assert half.embedder.fingerprint != single.embedder.fingerprint
    for index in built.values():
        assert index.check() == []
        require_right_answers(index)


def test_equal_text_is_at_distance_zero(built):
    for index in built.values():
        matches = index.search(NAMES[:8], max_distance=0.0, min_joinability=1.0)
        assert [match.column for match in matches] == ["place"]


def test_info_and_the_recorded_options_tell_it(built):
    for name, index in built.items():
        assert index.info().of_parts["vector_precision"] == name
        assert options_of(index.store).vector_precision == name
    assert built["half"].info().to_dict()["vector_precision"] == "half"


def test_estimates_tell_it_and_count_the_bytes(lake):
    half, single, lexical = (
        estimate_build(lake, BuildOptions(**options))
        for options in (SETTINGS, {**SETTINGS, "vector_precision": "single"}, {"model": "lexical"})
    )
    precisions = [estimate.to_dict()["vector_precision"] for estimate in (half, single, lexical)]
    assert precisions == ["half", "single", None]
    vectors = [estimate.index_bytes - estimate.model_bytes for estimate in (single, half)]
    assert vectors[0] - vectors[1] == 2 * 48 * half.values


@pytest.mark.parametrize(
    ("name", "n_partitions"),
    long_cases_but([("half", 1)], [("half", 1), ("half", 2), ("single", 2)]),
)
def test_updates_and_partitions_keep_it(built, lake, tmp_path, name, n_partitions):
    if n_partitions == 1:
        index = pexeso.open_index(shutil.copytree(built[name].path, tmp_path / "index"))
    else:
        options = {"vector_precision": name, "n_partitions": n_partitions, **SETTINGS}
        index = pexeso.build_index(lake, tmp_path / "index", **options)
    require_right_answers(index)
    index.append(write_tables(tmp_path / "more", {**TABLES, **MORE}))
    require_right_answers(index)
    index.delete(["places_1.csv"])
    require_right_answers(index)
    dtype = stored(built[name])[0].dtype
    assert {vectors.dtype for vectors in stored(index)} == {dtype}
    before = stored(index)
    index.compact(everything=True)
    require_right_answers(index)
    assert {vectors.dtype for vectors in stored(index)} == {dtype}
    assert len(before) == n_partitions + 1 > len(stored(index))
    assert index.check() == []


def test_check_finds_vectors_of_another_precision_than_is_told(built, tmp_path):
    shutil.copytree(built["half"].path, tmp_path / "index")
    path = tmp_path / "index" / MANIFEST
    manifest = Manifest.from_bytes(path.read_bytes())
    manifest.options["grid"]["vector_precision"] = "single"
    path.write_bytes(manifest.to_bytes())
    [problem] = pexeso.open_index(tmp_path / "index").check()
    assert "those of the vector_precision 'half'" in problem.sentence


def test_precisions_that_cannot_be():
    with pytest.raises(InputError, match="vector_precision must be one of half, single"):
        BuildOptions(model="hashing", vector_precision="float16")
    with pytest.raises(InputError, match="vector_precision is for models of vectors"):
        BuildOptions(vector_precision="single")
    assert "vector_precision" not in BuildOptions().grid()
    assert BuildOptions(model="lexical,hashing").grid()["vector_precision"] == "half"
