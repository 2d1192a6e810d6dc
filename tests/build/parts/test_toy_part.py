"""A part of an index of which nothing outside this file knows: the longest texts of each column.

It is built, asked for, kept up
to date, checked and told of by the commands that know the other parts.
"""

import json
from dataclasses import replace
from functools import partial

import pytest

from pexeso.build.diagnostics.check import check_index
from pexeso.build.diagnostics.estimate import estimate_build
from pexeso.build.parts.base import PartEstimate, Written, worn_folders
from pexeso.errors import InputError
from pexeso.index import build_index
from pexeso.lake.record_schema import batch_of
from pexeso.options import BuildOptions
from pexeso.registry import register, unregister
from pexeso.store.files import read_document, write_document
from pexeso.store.integrity import Problem
from pexeso.store.local.target import META

PATH = f"{__name__}:LONGEST"
OPTIONS = {"model": "hashing", "dimensions": 8}


def write_longest(rows, number, folder):
    """Write the one folder: each column with its longest text."""
    return {"columns": len(rows)}, [
        write_document(folder / META, {"columns": len(rows), "rows": rows})
    ]


def entries_of(store):
    return store.manifest.parts.get(LONGEST.name, ())


def rows_of(store, entry):
    """Read the rows of a folder that hold."""
    gone = entry.facts.get("deleted", [])
    return [row for row in read_document(store.folder(entry) / META)["rows"] if row[0] not in gone]


class LongestTexts:
    name, choices, stages, folders_are = "longest_texts", ("longest",), ("longest",), "lists"

    def records(self, tables):
        for name, column in ((table.name, column) for table in tables for column in table.columns):
            texts = [text for text in column.cells.to_pylist() if text]
            value = max(texts, key=lambda text: (len(text), text), default="")
            about = {"position": column.position, "label": column.label, "value": value}
            yield batch_of([{"record": "longest", "table": name, **about}])

    def write(self, job):
        rows = job.records("longest").select("table", "label", "value").toArrow().to_pylist()
        return self._written(
            job, sorted([row["table"], row["label"], row["value"]] for row in rows)
        )

    def _written(self, job, rows):
        return Written(
            job.write_folders("longest", int(bool(rows)), partial(write_longest, rows))
            if rows
            else []
        )

    def delete(self, store, tables):
        names = [*tables.to_pylist()]
        return [
            replace(
                entry,
                facts={**entry.facts, "deleted": sorted({*entry.facts.get("deleted", []), *names})},
            )
            for entry in entries_of(store)
        ]

    def worn(self, store, options):
        return worn_folders(
            entries_of(store), [0.0] * len(entries_of(store)), options.partition_bytes
        )

    def rewrite(self, job, numbers):
        chosen = [entries_of(job.index)[number] for number in numbers]
        return self._written(
            job, sorted(row for entry in chosen for row in rows_of(job.index, entry))
        )

    def check(self, store, progress):
        return [
            Problem(entry.folder, "content", f"'{entry.folder}' has other rows than it says.")
            for entry in entries_of(store)
            if len(read_document(store.folder(entry) / META)["rows"]) != entry.facts["columns"]
        ]

    def info(self, store):
        return {"longest": [{"columns": len(rows_of(store, entry))} for entry in entries_of(store)]}

    def totals(self, folders):
        return {"longest_columns": sum(entry.facts["columns"] for entry in folders)}

    def estimate(self, sample):
        columns = sample.count("longest")
        return PartEstimate(
            {"longest_columns": columns}, n_bytes=columns, memory_bytes=1, seconds={"longest": 0.5}
        )


LONGEST = LongestTexts()


@pytest.fixture(autouse=True)
def _registered():
    register(PATH)
    yield
    unregister(PATH)


@pytest.fixture
def lake(tmp_path):
    folder = tmp_path / "lake"
    folder.mkdir()
    for name, texts in (
        ("a", "Oslo Rome Madrid Vienna Lisbon"),
        ("b", "Bern Graz Lyon Kiel Rotterdam"),
    ):
        (folder / f"{name}.csv").write_text(
            "city\n" + "\n".join(texts.split()) + "\n", encoding="utf-8"
        )
    return folder


def longest(index):
    store = index.store
    return [row for entry in entries_of(store) for row in rows_of(store, entry)]


@pytest.mark.spark
def test_every_verb_and_report_knows_a_part_that_is_registered(lake, tmp_path, spark):
    path, stages = tmp_path / "toy.pexeso", []
    index = build_index(lake, path, parts=["longest"], progress=stages.append, **OPTIONS)
    assert stages == [
        "list",
        "read",
        "catalog",
        "train",
        "embed",
        "partition",
        "index",
        "longest",
        "commit",
    ]
    assert longest(index) == [["a.csv", "city", "Vienna"], ["b.csv", "city", "Rotterdam"]]
    assert (index.info().parts, index.info().longest) == (["longest"], [{"columns": 2}])

    (lake / "c.csv").write_text(
        "town\nOdense\nAarhus\nEsbjerg\nHorsens\nKolding\n", encoding="utf-8"
    )
    (lake / "a.csv").write_text("city\nTromso\nOslo\nRome\nNarvik\nFredrikstad\n", encoding="utf-8")
    update = index.append()
    assert (update.new, update.changed, update.lists_added, update.partitions_added) == (1, 1, 1, 1)
    expected = [
        ["a.csv", "city", "Fredrikstad"],
        ["b.csv", "city", "Rotterdam"],
        ["c.csv", "town", "Kolding"],
    ]
    assert sorted(longest(index)) == expected

    index.delete(["b.csv"])
    assert sorted(longest(index)) == [expected[0], expected[2]]
    update = index.compact()
    assert (update.lists_rewritten, update.lists_added, update.to_dict()["lists_added"]) == (
        2,
        1,
        1,
    )
    assert longest(index) == [expected[0], expected[2]]
    assert check_index(path) == []
    assert [match.table for match in index.search(["Oslo", "Rome"], min_joinability=1)] == ["a.csv"]


@pytest.mark.long
@pytest.mark.spark
def test_it_is_added_to_an_index_that_has_none(lake, tmp_path, spark):
    index = build_index(lake, tmp_path / "toy.pexeso", **OPTIONS)
    assert longest(index) == []
    added = index.add_parts(["longest"])
    assert (added.committed, added.parts, added.longest_columns) == (True, ("longest",), 2)
    assert [row[2] for row in longest(index)] == ["Vienna", "Rotterdam"]
    added = index.add_parts(["overlap", "longest"])
    assert (added.parts, added.columns) == (("overlap", "longest"), 2)
    assert len(longest(index)) == 2
    assert index.overlap(["Oslo", "Rome"])[0].table == "a.csv"
    assert check_index(index.path) == []


@pytest.mark.spark
def test_it_is_checked(lake, tmp_path, spark):
    from pexeso.store.manifest import Manifest

    index = build_index(lake, tmp_path / "toy.pexeso", parts="longest", **OPTIONS)
    manifest = Manifest.from_bytes((index.path / "manifest.json").read_bytes())
    [entry] = manifest.parts["longest_texts"]
    parts = {**manifest.parts, "longest_texts": (replace(entry, facts={"columns": 7}),)}
    (index.path / "manifest.json").write_bytes(replace(manifest, parts=parts).to_bytes())
    [problem] = check_index(index.path)
    assert (problem.path, problem.kind) == (entry.folder, "content")


def test_it_is_estimated(lake):
    estimate = estimate_build(lake, BuildOptions(parts="longest", **OPTIONS))
    without = estimate_build(lake, BuildOptions(**OPTIONS))
    assert (estimate.longest_columns, estimate.seconds["longest"]) == (2, 0.5)
    assert estimate.index_bytes == without.index_bytes + 2
    document = json.loads(json.dumps(estimate.to_dict()))
    assert document["longest_columns"] == 2
    assert "of_parts" not in document


def test_words_and_names_are_taken_once():
    with pytest.raises(InputError, match="need different names"):
        register(PATH)
    with pytest.raises(
        InputError,
        match="The parts that an index can have are overlap, containment, bands, composite, "
        "redundancy, longest",
    ):
        BuildOptions(parts="other")
