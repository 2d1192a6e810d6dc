from types import SimpleNamespace

import pytest

from pexeso.build.parts.metadata import require_contents, stored_grid_options
from pexeso.errors import IndexCorruptError

WHOLE = {
    "options": {
        "grid": {"metric": "angular", "map": "auto", "n_axes": None},
        "normaliser": "{}",
        "model": "hashing",
    },
    "fingerprints": {"embedder": "a", "normaliser": "b"},
    "facts": {"lake": "/lake", "values": 3, "postings": 4, "dimensions": 5},
}
NEEDED = [(place, name) for place, entries in WHOLE.items() for name in entries]


def manifest(**changed: object) -> SimpleNamespace:
    partition = SimpleNamespace(folder="partitions/00000", facts={"columns": 2, "map": "pivots"})
    return SimpleNamespace(**{**WHOLE, "partitions": (partition,), **changed})


def test_what_is_needed_is_enough() -> None:
    require_contents(manifest())
    assert stored_grid_options(manifest()).metric == "angular"


@pytest.mark.parametrize(("place", "name"), NEEDED)
def test_what_is_missing_or_of_another_type_is_named(place: str, name: str) -> None:
    for changed in ({}, {name: ["other"]}, {name: None}, {name: True}):
        kept = {key: value for key, value in WHOLE[place].items() if key != name}
        with pytest.raises(IndexCorruptError, match=f"{name!r} among its {place}"):
            require_contents(manifest(**{place: {**kept, **changed}}))


def test_counts_of_a_partition_are_numbers() -> None:
    partition = SimpleNamespace(folder="partitions/00007", facts={"columns": "many"})
    with pytest.raises(IndexCorruptError, match="'columns' among the facts of partitions/00007"):
        require_contents(manifest(partitions=(partition,)))


@pytest.mark.parametrize(
    "grid",
    [None, [], "euclidean", {"metric": "none"}, {"metric": "euclidean", "x": 1}, {"n_axes": "7"}],
)
def test_options_that_no_partition_can_have_are_refused(grid: object) -> None:
    with pytest.raises(IndexCorruptError, match="none can have"):
        stored_grid_options(manifest(options={"grid": grid}))
