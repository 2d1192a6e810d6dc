"""Tests of an index whose manifest lists its parts by fields of their own, as it once did."""

import json
import shutil
from pathlib import Path

import numpy as np

from pexeso.index import build_index, open_index
from pexeso.sets.containment.hashing import shortened

OLD = Path(__file__).parent / "data" / "format_3"
LAKE = {
    "cities.csv": "city,country\nOslo,Norway\nRome,Italy\nMadrid,Spain\n"
    "Vienna,Austria\nLisbon,Portugal\n",
    "capitals.csv": "capital,since\nOSLO,1814\nRome,1871\nMadrid,1561\n"
    "Vienna,1919\nBern,1848\nPrague,1993\n",
    "gone.csv": "place,n\nOslo,1\nBern,2\nGraz,3\nKiel,4\nLyon,5\n",
}
"""What it was built of, before ``gone.csv`` was deleted from it."""

NAMED = ("column_ids.npy", "labels.arrow", "tables.arrow", "texts.arrow")
"""Files of a partition that depend on no rounding of the processor."""

NARROWER = (
    "groups",
    "set_offsets",
    "token_offsets",
    "containment_signatures",
    "containment_table_sets",
    "containment_table_values",
)
"""Arrays of token sets that were of twice the bits."""

CITIES = ["Oslo", "Rome", "Madrid", "Vienna", "Graz"]


def answers(index):
    """All that the index finds, by any of its parts."""
    return [
        [
            (match.table, match.column, match.matched)
            for match in index.search(CITIES, min_joinability=0.1)
        ],
        [(match.table, match.column, match.overlap) for match in index.overlap(CITIES)],
        [
            (match.table, match.column, match.overlap)
            for match in index.contain(CITIES, min_containment=0.2)
        ],
    ]


EXPECTED = [
    [("capitals.csv", "capital", 4), ("cities.csv", "city", 4)],
    [("cities.csv", "city", 4), ("capitals.csv", "capital", 3)],
    [("cities.csv", "city", 4), ("capitals.csv", "capital", 3)],
]


def test_it_is_read_as_it_was_written():
    index = open_index(OLD)
    assert index.store.manifest.format_version == 3
    assert {name: len(folders) for name, folders in index.store.manifest.parts.items()} == {
        "semantic": 1,
        "token_sets": 1,
    }
    assert answers(index) == EXPECTED
    assert index.check() == []
    info = index.info().to_dict()
    assert (info["values"], info["postings"], info["parts"]) == (15, 21, ["overlap", "containment"])
    assert [partition["columns"] for partition in info["partitions"]] == [4]
    assert [(shard["columns"], shard["deleted"]) for shard in info["token_sets"]] == [(6, 2)]


def test_an_update_brings_it_to_the_present_format(tmp_path):
    shutil.copytree(OLD, tmp_path / "index")
    index = open_index(tmp_path / "index")
    assert index.compact(everything=True).committed
    assert answers(index) == EXPECTED
    assert index.check() == []
    document = json.loads((tmp_path / "index" / "manifest.json").read_bytes())
    assert (document["format_version"], sorted(document["parts"])) == (
        4,
        ["semantic", "token_sets"],
    )
    assert document["deleted_columns"] == []


def test_the_same_lake_still_gives_the_same_bytes(tmp_path):
    (tmp_path / "lake").mkdir()
    for name, text in LAKE.items():
        (tmp_path / "lake" / name).write_text(text, encoding="utf-8")
    built = build_index(
        tmp_path / "lake", tmp_path / "index", model="hashing", dimensions=8, parts=["bands"]
    )
    old, new = (index.store.manifest.parts for index in (open_index(OLD), built))
    [[before], [now]] = old["token_sets"], new["token_sets"]
    assert {file.path for file in before.files} == {file.path for file in now.files}
    other = [file.path for file in before.files if file != now.file(file.path)]
    documents = ("containment.json", "meta.json")  # which names the part bands
    assert sorted(other) == sorted((*(f"{name}.npy" for name in NARROWER), *documents))
    for name in NARROWER:
        was, got = (
            np.load(root / entry.folder / f"{name}.npy")
            for root, entry in ((OLD, before), (built.path, now))
        )
        if name == "containment_signatures":
            was = shortened(was.view(np.uint32)).view(np.int16)
        if not name.startswith("containment_table"):  # in another order, as values are others
            assert np.array_equal(was, got), name
        assert got.itemsize < was.itemsize or name == "containment_signatures", name
    for name in NAMED:
        assert [entry.file(name) for entry in new["semantic"]] == [
            entry.file(name) for entry in old["semantic"]
        ], name
    assert [entry.facts for entry in new["semantic"]] == [entry.facts for entry in old["semantic"]]
