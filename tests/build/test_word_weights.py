"""Words are weighed by the lake as it is: a compaction counts them again after updates."""

import random
from functools import partial

import pytest

import pexeso
from embed.corpus import write_corpus
from pexeso.semantic.part import write as semantic_write

FIRST = ("north", "old", "lower", "saint", "upper", "little")
SECOND = ("bridge", "mill", "harbour", "hill", "green", "wood", "ford")
KINDS = ("town", "county", "school", "village")
PARTS = ("overlap", "containment", "composite")


def cells(chance, kind, n=9):
    """Return values that share a common word, of which the rare ones differ by some letters."""
    names = [f"{chance.choice(FIRST)} {chance.choice(SECOND)}" for _ in range(n)]
    spelt = [name[:-1] if chance.random() < 0.3 else name for name in names]
    return [f"{name} {kind}" if chance.random() < 0.7 else name for name in spelt]


def write_table(lake, number, seed):
    chance = random.Random(seed)
    kind = KINDS[number % len(KINDS)]
    rows = zip(cells(chance, kind), cells(chance, KINDS[seed % len(KINDS)]), range(9), strict=True)
    text = "".join(f"{place},{other},{n}\n" for place, other, n in rows)
    (lake / f"t{number}.csv").write_text(f"place,other,n\n{text}", encoding="utf-8")


def first_lake(folder, n_tables=5):
    folder.mkdir(parents=True)
    for number in range(n_tables):
        write_table(folder, number, number)
    return folder


def update(index, lake, first=0, rounds=1):
    """Append, change and delete tables so that the words of the lake become others."""
    for step in range(first, first + rounds):
        write_table(lake, 10 + step, 50 + step)
        write_table(lake, step, 100 + step)
        index.append(lake)
        gone = f"t{step + 1}.csv" if step < 4 else f"t{step + 5}.csv"
        (lake / gone).unlink()
        index.delete([gone])


def queries():
    return [cells(random.Random(seed), KINDS[seed % len(KINDS)], 6) for seed in (200, 201)]


def plain(result):
    """Return a result as JSON, without numbers of columns, which no two builds share."""
    document = result.to_dict(explain=True)["results"]
    for match in document:
        match.pop("column_id", None)
    return document


def answers(index):
    """Return what searches by similar values find."""
    results = []
    for values in queries():
        for options in (
            {"max_distance": 0.1, "min_joinability": 0.2},
            {"max_distance": 0.25, "min_joinability": 0.4, "k": "all"},
            {"max_distance": 0.25, "min_joinability": 0.2, "rerank": False, "fold_copies": False},
            {"max_distance": 0.25, "min_joinability": 0.2, "exact": True},
            {"k": 3},
        ):
            results.append(plain(index.search(values, **options)))
    batch = index.search_batch(queries(), max_distance=0.25, min_joinability=0.3)
    return [*results, *map(plain, batch)]


def other_answers(index):
    """Return what the other kinds of searches find."""
    values, more = queries()[:2]
    return [
        *(plain(index.search(values, method=method)) for method in ("all", "transform")),
        plain(index.search(values, auto=True)),
        plain(index.overlap(values, k=50)),
        plain(index.contain(values, min_containment=0.2)),
        [
            (match.table, match.matched_keys)
            for match in index.search_composite(
                {"place": values, "other": more}, ["place", "other~"], min_joinability=0.1
            )
        ],
    ]


def require_fresh(index, lake, folder, **options):
    fresh = pexeso.build_index(lake, folder, **options)
    assert answers(index) == answers(fresh)
    for model in index.models:
        one, other = (side.with_model(model).embedder for side in (index, fresh))
        assert one.fingerprint == other.fingerprint
    assert index.check() == []
    return fresh


def test_after_a_compaction_answers_are_those_of_a_fresh_build(tmp_path):
    lake = first_lake(tmp_path / "lake")
    index = pexeso.build_index(lake, tmp_path / "index", parts=PARTS)
    assert index.info().word_weights == "current"
    update(index, lake, rounds=3)
    assert index.info().word_weights == "earlier"
    other = pexeso.build_index(lake, tmp_path / "other", parts=PARTS)
    assert answers(index) != answers(other), "the updates must make a difference"
    assert index.compact().committed
    assert index.info().word_weights == "current"
    assert index.info().to_dict()["values"] == other.info().to_dict()["values"]
    require_fresh(index, lake, tmp_path / "fresh", parts=PARTS)
    assert not index.compact().committed
    update(index, lake, first=5)
    index.compact(everything=True)
    fresh = require_fresh(index, lake, tmp_path / "again", parts=PARTS)
    assert other_answers(index) == other_answers(fresh)


@pytest.mark.long
def test_on_spark_and_with_further_models_too(tmp_path):
    lake = first_lake(tmp_path / "lake")
    options = {"model": "lexical,hashing", "dimensions": 24, "n_partitions": 2, "parts": PARTS}
    index = pexeso.build_index(lake, tmp_path / "index", **options)
    before = index.store.manifest
    update(index, lake)
    index.compact()
    fresh = require_fresh(index, lake, tmp_path / "fresh", **options)
    hashing, other = (side.with_model("hashing") for side in (index, fresh))
    assert hashing.info().further_models[0]["dimensions"] == 24
    assert answers(hashing) == answers(other)
    assert index.store.manifest.embedder.folder != before.embedder.folder


@pytest.mark.parametrize("many", [False, True])
def test_of_a_lake_that_is_sampled_the_same_sample_is_drawn(tmp_path, monkeypatch, many, request):
    monkeypatch.setattr(semantic_write, "write_corpus", partial(write_corpus, max_tokens=60))
    if many:
        monkeypatch.setattr(semantic_write, "VALUES_PER_CORPUS", 50)
    # Whose processes would not have what is set here.
    monkeypatch.setattr("pexeso.build.job.has_session", lambda: False)
    lake = first_lake(tmp_path / "lake")
    index = pexeso.build_index(lake, tmp_path / "index")
    update(index, lake)
    index.compact()
    fresh = pexeso.build_index(lake, tmp_path / "fresh")
    assert index.embedder.fingerprint == fresh.embedder.fingerprint


def test_where_no_weight_changes_the_model_stays(tmp_path):
    lake = first_lake(tmp_path / "lake")
    index = pexeso.build_index(lake, tmp_path / "index")
    (lake / "copy.csv").write_text("place\n" + "\n".join(FIRST), encoding="utf-8")
    index.append(lake)
    index.delete(["copy.csv"])
    (lake / "copy.csv").unlink()
    before = index.store.manifest
    assert index.info().word_weights == "earlier"
    stages = []
    assert index.compact(progress=stages.append).committed
    assert stages.count("train") == 1
    assert index.store.manifest.embedder == before.embedder
    assert index.info().word_weights == "current"
    assert not index.compact().committed


def test_a_model_that_was_read_keeps_its_weights(tmp_path):
    lake = first_lake(tmp_path / "lake")
    made = pexeso.build_index(lake, tmp_path / "made")
    index = pexeso.build_index(lake, tmp_path / "index", model=str(made.store.embedder_folder))
    assert index.info().word_weights is None
    update(index, lake)
    before = index.embedder.fingerprint
    index.compact()
    assert index.embedder.fingerprint == before
    assert index.info().word_weights is None


def test_a_compaction_that_is_interrupted_leaves_the_index_and_is_taken_up(tmp_path):
    class Stop(Exception):
        pass

    lake = first_lake(tmp_path / "lake")
    index = pexeso.build_index(lake, tmp_path / "index")
    update(index, lake)
    before, manifest = answers(index), index.store.manifest
    for stage in ("values", "train", "partition", "index", "commit"):

        def stop(name, stage=stage):
            if name == stage:
                raise Stop

        reopened = pexeso.open_index(index.path)
        with pytest.raises(Stop):
            reopened.compact(progress=stop)
        reopened = pexeso.open_index(index.path)
        assert reopened.store.manifest == manifest
        assert [problem.kind for problem in reopened.check()] == ["unfinished"]
    assert answers(reopened) == before
    reopened.compact()
    require_fresh(reopened, lake, tmp_path / "fresh")
    assert answers(index) == before, "who has it open reads it as it was"


def test_an_index_whose_last_column_is_gone_is_compacted(tmp_path):
    lake = first_lake(tmp_path / "lake", n_tables=1)
    index = pexeso.build_index(lake, tmp_path / "index")
    index.delete(["t0.csv"])
    index.compact()
    assert index.info().word_weights == "current"
    write_table(lake, 1, 1)
    (lake / "t0.csv").unlink()
    index.append(lake)
    index.compact()
    require_fresh(index, lake, tmp_path / "fresh")
