"""A capability of which nothing outside its folder knows: part, verb, request and output.

It is built, requested, kept up to date, checked and reported by the commands that know the others,
and has a command and an answer in JSON of its own.
"""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from pexeso.build.diagnostics.estimate import estimate_build
from pexeso.build.diagnostics.info import check_index
from pexeso.errors import InputError
from pexeso.faces.cli.main import cli
from pexeso.faces.service.verbs import Service
from pexeso.index import build_index
from pexeso.options import BuildOptions
from pexeso.registry import register
from tests.toy_capability import longest as capability

OPTIONS = {"model": "hashing", "dimensions": 8}


@pytest.fixture(autouse=True)
def _registered():
    capability.add()
    yield
    capability.remove()


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
    return capability.longest(index.store)


def test_every_verb_and_report_knows_a_part_that_is_registered(lake, tmp_path):
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
def test_it_is_added_to_an_index_that_has_none(lake, tmp_path):
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


def test_it_is_checked(lake, tmp_path):
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
        register(capability.PATH)
    with pytest.raises(
        InputError,
        match="The parts that an index can have are overlap, containment, bands, composite, "
        "redundancy, longest",
    ):
        BuildOptions(parts="other")


def test_it_has_a_command_and_answers_in_json(lake, tmp_path):
    path = tmp_path / "toy.pexeso"
    build_index(lake, path, parts=["longest"], **OPTIONS)
    run = CliRunner().invoke
    said = run(cli, ["longest", str(path), "--min-length", "7"])
    assert (said.exit_code, said.stdout) == (0, "b.csv:city  Rotterdam\n")
    document = json.loads(run(cli, ["longest", str(path), "--json"]).stdout)
    assert document == Service().answer({"verb": "longest", "index": str(path)})
    assert document["longest"] == [["a.csv", "city", "Vienna"], ["b.csv", "city", "Rotterdam"]]
    help_text = run(cli, ["longest", "--help"]).stdout
    assert " longest [OPTIONS] INDEX" in help_text
    assert "--min-length N" in help_text
    refused = run(cli, ["longest", str(path), "--min-length", "-1"])
    assert refused.exit_code == 2
    assert "--min-length must be a whole number of at least 0. Got -1 instead." in refused.stderr
    assert "longest" in run(cli, ["--help"]).stdout
