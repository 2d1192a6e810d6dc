"""An index with aliases answers as one of the lake whose cells were replaced by hand."""

import csv
import json
import random
import shutil

import pyarrow as pa
import pytest
from click.testing import CliRunner

from pexeso.build.updates import add_parts, append, compact
from pexeso.errors import IndexCorruptError, InputError
from pexeso.faces.cli.main import cli
from pexeso.index import build_index, open_index
from pexeso.lake.normalise.normaliser import Normaliser

ALIASES = {
    "NYC": "New York City",
    "Big Apple": "nyc",  # by way of another alias
    "new york city": "New York City",  # stands for itself
    "LA": "Los Angeles",
    "0042": "Saint Mary Harbour",  # a code, in columns of codes
    "0043": "Old Mill",
    "0044": "Lower Bridge",
    "Emerald Isle": "Ireland",
    "Hibernia": "IRELAND",  # written as in its own row
}
BY_HAND = {
    "NYC": "New York City",
    "nyc": "New York City",
    "N.Y.C.": "New York City",
    "Big Apple": "New York City",
    "big apple": "New York City",
    "LA": "Los Angeles",
    "0042": "Saint Mary Harbour",
    "0043": "Old Mill",
    "0044": "Lower Bridge",
    "Emerald Isle": "Ireland",
    "Hibernia": "Ireland",
}
"""Each spelling of an alias that lakes and queries hold, and what stands in its place."""

PLACES = [
    *BY_HAND,
    *("New York City", "new york city", "Los Angeles", "Ireland", "Old Mill", "Old Mil"),
    *("Lower Bridge", "Rome", "ROME", "Oslo", "Vienna", "Big Apples", "NYC Council"),
]
CODES = ["0042", "0043", "0044"]


def write_lake(folder, seed, replaced):
    """Write tables of places, and one of codes; replaced by hand or as they are."""
    draw = random.Random(seed)
    folder.mkdir(parents=True)
    for number in range(12):
        rows = [draw.choice(PLACES) for _ in range(draw.randrange(6, 14))]
        if number < 2:
            rows = [draw.choice(CODES) for _ in range(3)] + CODES
        with open(folder / f"{number:02d}.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["place", "n"])
            writer.writerows((replaced.get(place, place), row) for row, place in enumerate(rows))


def write_aliases(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("alias", "name"), *rows])
    return path


def answers(index, query):
    """Return what each kind of search finds, without texts and times."""
    options = {"k": "all", "fold_copies": False}
    alike = {"min_joinability": 0.2, "max_distance": 0.4, "rerank": False, **options}
    hits = index.search(query, **alike)
    [of_batch] = index.search_batch([query], **alike)
    assert [(hit.table, hit.matched) for hit in of_batch] == [
        (hit.table, hit.matched) for hit in hits
    ]
    return {
        "search": [(hit.table, hit.column, hit.matched, hit.total) for hit in hits],
        "pairs": [
            sorted({(pair.key, round(pair.distance, 9)) for pair in hit.pairs()}) for hit in hits
        ],
        "overlap": [
            (hit.table, hit.column, hit.overlap, hit.size, hit.shared())
            for hit in index.overlap(query, **options)
        ],
        "batch": [
            (hit.table, hit.column, hit.overlap)
            for hit in index.overlap_batch([query], **options)[0]
        ],
        "contain": [
            (hit.table, hit.column, hit.overlap, hit.containment)
            for hit in index.contain(query, min_containment=0.3, **options)
        ],
    }


def requires_equal_answers(index, by_hand, seed):
    draw = random.Random(seed)
    for _ in range(8):
        query = [draw.choice(PLACES) for _ in range(draw.randrange(1, 9))]
        replaced = [BY_HAND.get(place, place) for place in query]
        assert answers(index, query) == answers(by_hand, replaced)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("aliases")
    write_aliases(folder / "aliases.csv", ALIASES.items())
    return folder


@pytest.fixture(scope="module")
def pairs_of_indexes(folder):
    """Return for each of some lakes its index with aliases, and one of the lake made by hand."""
    pairs = []
    for seed, model in ((0, "lexical"), (1, "hashing")):
        write_lake(folder / f"lake{seed}", seed, {})
        write_lake(folder / f"hand{seed}", seed, BY_HAND)
        options = {"model": model, "parts": ["containment"]}
        pairs.append(
            (
                build_index(
                    folder / f"lake{seed}",
                    folder / f"{seed}.pexeso",
                    aliases=folder / "aliases.csv",
                    **options,
                ),
                build_index(folder / f"hand{seed}", folder / f"hand{seed}.pexeso", **options),
            )
        )
    return pairs


def test_answers_are_those_of_a_lake_replaced_by_hand(pairs_of_indexes):
    for index, by_hand in pairs_of_indexes:
        requires_equal_answers(index, by_hand, 7)


def test_codes_of_which_aliases_make_names_are_columns_of_text(pairs_of_indexes):
    for index, by_hand in pairs_of_indexes:
        kinds = [
            side.catalog.columns(["table", "kind", "reason", "n_distinct"]).to_pylist()
            for side in (index, by_hand)
        ]
        assert kinds[0] == kinds[1]
        [match] = index.search(["saint mary harbour"], max_distance=0.0, k=1, fold_copies=False)
        assert match.pairs()[0].value == "0042", "cells are shown as they are"


def test_explanations_name_pairs_by_an_alias(pairs_of_indexes, tmp_path):
    index, _ = pairs_of_indexes[0]
    matches = index.search(["nyc", "Rome"], max_distance=0.0, k="all", fold_copies=False)
    for match in matches:
        for pair in match.pairs():
            plain = Normaliser().normalise([pair.query, pair.value]).to_pylist()
            assert (pair.kind == "alias") == (len(set(plain)) == 2), pair
    named = {pair.kind: match for match in matches for pair in match.pairs()}
    assert {"alias"} < set(named) <= {"alias", "exact", "spelling"}
    match = named["alias"]
    page = index.explain(["nyc"], match.table, match.column).to_html()
    assert '<span class="kind kind-alias">alias</span>' in page
    assert '<span class="soft">(as <bdi>new york city</bdi>)</span>' in page
    query_file = tmp_path / "asked.csv"
    query_file.write_text("city\nnyc\nRome\n", encoding="utf-8")
    column = f"{match.table}:{match.column}"
    asking = ["explain", str(index.path), f"{query_file}:city", column]
    run = CliRunner().invoke
    assert "0.000  alias: new york city" in run(cli, asking).stdout
    explanation = json.loads(run(cli, [*asking, "--json"]).stdout)
    assert explanation["kinds"]["alias"]["matched"] == 1
    assert {pair[3] for pair in explanation["pairs"]} >= {"alias"}


def test_searches_by_equal_values_tell_aliases_of_the_query(pairs_of_indexes, tmp_path):
    index, by_hand = pairs_of_indexes[0]
    query = ["nyc", "Big Apple", "nyc", "New York City", "Rome", "Emerald Isle", None]
    for matches in (index.overlap(query), index.contain(query, min_containment=0.1)):
        rows = matches.to_dict(explain=True)["results"]
        assert all(set(row["aliases"]) <= set(row["shared"]) for row in rows if "aliases" in row)
        of_all = {value: texts for row in rows for value, texts in row.get("aliases", {}).items()}
        assert of_all == {"New York City": ["Big Apple", "nyc"], "Ireland": ["Emerald Isle"]}
    rows = by_hand.overlap(query).to_dict(explain=True)["results"]
    assert not any("aliases" in row for row in rows)
    query_file = tmp_path / "asked.csv"
    query_file.write_text("city\nnyc\nRome\n", encoding="utf-8")
    for method in ("overlap", "all"):
        arguments = [
            "search",
            str(index.path),
            f"{query_file}:city",
            "--method",
            method,
            "--explain",
        ]
        shown = CliRunner().invoke(cli, arguments).stdout
        assert ("New York City  alias: nyc\n" if method == "overlap" else "alias") in shown


def test_joins_bring_rows_of_aliases(pairs_of_indexes):
    index, by_hand = pairs_of_indexes[0]

    def joined(side, cities):
        matches = side.search(cities, max_distance=0.0, k=3, fold_copies=False, rerank=False)
        table = pa.table({"city": cities})
        return [match.join(table, on="city")["n"].to_pylist() for match in matches]

    ours = joined(index, ["nyc", "Hibernia", "Rome"])
    theirs = joined(by_hand, ["New York City", "Ireland", "Rome"])
    assert ours == theirs
    assert all(any(row is not None for row in rows) for rows in ours)


@pytest.mark.long
def test_updates_keep_the_aliases(folder, pairs_of_indexes):
    late = ("01.csv", "03.csv", "04.csv")
    indexes = []
    for name, replaced, aliases in (("kept", {}, True), ("kept-hand", BY_HAND, False)):
        lake, path, aside = folder / name, folder / f"{name}.pexeso", folder / f"{name}-aside"
        write_lake(lake, 2, replaced)
        aside.mkdir()
        for table in late:
            shutil.move(lake / table, aside / table)
        file = shutil.copy(folder / "aliases.csv", folder / "gone.csv") if aliases else None
        options = {"model": "lexical", "parts": ["overlap"], "aliases": file}
        build_index(lake, path, **options)
        (folder / "gone.csv").unlink(missing_ok=True)
        for table in late:
            shutil.move(aside / table, lake / table)
        assert append(path).new == len(late)
        add_parts(path, ["containment"])
        indexes.append(path)
    requires_equal_answers(*map(open_index, indexes), 8)
    for path in indexes:
        compact(path, everything=True)
    index = open_index(indexes[0])
    assert len(index.store.manifest.catalogs) == 1
    requires_equal_answers(index, open_index(indexes[1]), 9)
    assert not any(problem.is_failure for problem in index.check())
    assert index.info().aliases == len(ALIASES) - 1


def test_a_damaged_file_of_aliases_is_found(folder, pairs_of_indexes):
    path = folder / "damaged.pexeso"
    shutil.copytree(folder / "0.pexeso", path)
    [file] = path.glob("catalog*/aliases-*.parquet")
    data = file.read_bytes()
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(IndexCorruptError, match="not as it was written"):
        open_index(path)
    problems = [
        problem for problem in open_index(folder / "0.pexeso").check() if problem.is_failure
    ]
    assert problems == []
    file.unlink()
    with pytest.raises(IndexCorruptError, match="is missing"):
        open_index(path)


def test_an_index_with_aliases_is_refused_by_versions_that_know_none(pairs_of_indexes):
    index, by_hand = pairs_of_indexes[0]
    described = index.store.manifest.options["normaliser"]
    with pytest.raises(InputError, match="must have the keys version, rules, extra"):
        Normaliser.from_json(described)
    assert "aliases" not in json.loads(by_hand.store.manifest.options["normaliser"])
    assert index.normaliser.fingerprint != by_hand.normaliser.fingerprint


def test_bad_tables_of_aliases_are_refused_before_a_build(folder, pairs_of_indexes):
    bad = write_aliases(folder / "bad.csv", [("a", "b"), ("b", "a")])
    with pytest.raises(InputError, match="go in a circle"):
        build_index(folder / "lake0", folder / "never.pexeso", aliases=bad)
    assert not (folder / "never.pexeso").exists()
    with pytest.raises(InputError, match="aliases must be the path or URL of a table"):
        build_index(folder / "lake0", folder / "never.pexeso", aliases={"a": "b"})


@pytest.mark.long
def test_an_index_elsewhere_carries_its_aliases(
    folder, pairs_of_indexes, s3_server, bucket, monkeypatch, tmp_path
):
    for name, value in {**s3_server.environment, "PEXESO_CACHE": str(tmp_path / "cache")}.items():
        monkeypatch.setenv(name, value)
    lake = shutil.copytree(folder / "lake0", tmp_path / "lake")
    bucket.joined("aliases.csv").write((folder / "aliases.csv").read_bytes())
    options = {"model": "lexical", "parts": ["containment"], "aliases": f"{bucket}/aliases.csv"}
    built = build_index(lake, bucket.joined("lake.pexeso"), **options)
    there = open_index(f"{bucket}/lake.pexeso", device="cpu")
    requires_equal_answers(there, pairs_of_indexes[0][1], 10)
    assert there.check() == []
    late = "city\nNYC\nBig Apple\nLA\nHibernia\n0042\n0043\n"
    (lake / "late.csv").write_text(late, encoding="utf-8")
    assert built.append().new == 1  # tasks of the shared session know no other way to the server
    assert there.refresh()
    query = ["New York City", "Los Angeles", "Ireland", "Saint Mary Harbour", "Old Mill"]
    matches = there.contain(query, min_containment=1.0, fold_copies=False)
    assert {match.table: match.size for match in matches}["late.csv"] == 5
