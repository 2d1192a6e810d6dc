"""A small lake with people of the user's: sick where the zip code is that of the smog."""

from __future__ import annotations

from types import SimpleNamespace

from pexeso.lake.rows import name_within
from tests.acquisition.indexes import opened_lake, write_lake

ZIPS = ["07003", "10001", "10002", "02139"]

PEOPLE = {"zip": ZIPS * 10, "sick": ["yes", "no", "no", "no"] * 10}

LAKE = {
    "zips.csv": {"zip": ZIPS, "state": ["NJ", "NY", "NY", "MA"]},
    "states.csv": {
        "state": ["NJ", "NJ", "NY", "MA"],
        "smog": ["high", "high", "low", "low"],
        "flag": ["x", "x", "x", "x"],
    },
    "direct.csv": {"zip": ZIPS, "smog_level": ["a", "a", "b", "b"]},
    "alone.csv": {"moon": ["new", "full"]},
}


def small_index(folder, tables=None):
    return index_of(
        write_lake(folder / "lake", LAKE if tables is None else tables), folder / "index"
    )


def index_of(lake, folder):
    opened = opened_lake(lake, folder)

    def labels_of(table):
        rows = opened.catalog.columns(["table", "label", "position"]).sort_by("position")
        return [row["label"] for row in rows.to_pylist() if row["table"] == table]

    return SimpleNamespace(
        **vars(opened), table_of=lambda file: name_within(lake, file), labels_of=labels_of
    )
