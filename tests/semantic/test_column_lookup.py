"""Values of a column near query values are those of all pairs, whichever lists serve for them."""

import random

import pytest

import pexeso
from pexeso.semantic.column_lookup import ColumnLookup
from pexeso.semantic.explanation import locate_column

SYLLABLES = (
    "ber",
    "gar",
    "hol",
    "man",
    "ste",
    "fel",
    "wik",
    "dor",
    "hau",
    "bak",
    "lin",
    "vik",
    "ova",
)
N_MANY, N_FEW = 400, 40


def drawn_names(seed: int, n_names: int) -> list[str]:
    draw = random.Random(seed)
    names = {f"{draw.choice(SYLLABLES)}{draw.choice(SYLLABLES)} {draw.choice(SYLLABLES)}"}
    while len(names) < n_names:
        names.add(" ".join("".join(draw.choices(SYLLABLES, k=2)) for _ in range(2)))
    return sorted(names)


@pytest.fixture(scope="module", params=["lexical", "hashing"])
def index(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "lake").mkdir()
    for file, names in (("many.csv", drawn_names(1, N_MANY)), ("few.csv", drawn_names(2, N_FEW))):
        (folder / "lake" / file).write_text("name\n" + "\n".join(names) + "\n", encoding="utf-8")
    return pexeso.build_index(folder / "lake", folder / "lake.pexeso", model=request.param)


def queries_of(names: list[str]) -> list[str | None]:
    draw = random.Random(9)
    some = [name.upper() if draw.random() < 0.3 else name[:-1] for name in draw.sample(names, 30)]
    return [*some, *drawn_names(5, 10), None, "", some[0]]


@pytest.mark.parametrize("table", ["many.csv", "few.csv"])
@pytest.mark.parametrize("limit", [3, N_MANY])
def test_lookups_find_the_nearest_of_all_pairs(index, table, limit):
    names = drawn_names(1, N_MANY) if table == "many.csv" else drawn_names(2, N_FEW)
    queries = queries_of(names)
    max_distance = index.usual_max_distance
    lookup = ColumnLookup(index._opened, locate_column(index.store, table, "name"))
    assert sorted(lookup.texts.to_pylist()) == names
    encoded = index.encode(queries)
    near = lookup.near(encoded, max_distance, limit)
    values, keys = encoded.values.to_pylist(), lookup.keys.to_pylist()
    expected: dict[str, list[tuple[float, str]]] = {value: [] for value in values}
    for pair in index.explain(values, table, "name", max_distance=max_distance).match.pairs():
        expected[pair.query].append((pair.distance, pair.key))
    assert (near.query[1:] >= near.query[:-1]).all()
    for number, value in enumerate(values):
        rows = near.query == number
        distances = near.distance[rows]
        assert distances.tolist() == pytest.approx(
            sorted(distance for distance, _ in expected[value])[:limit]
        )
        found_keys = [keys[position] for position in near.position[rows].tolist()]
        assert set(zip(distances.round(9).tolist(), found_keys, strict=True)) <= {
            (round(distance, 9), key) for distance, key in expected[value]
        }
        assert near.equal[rows].tolist() == [key == value for key in found_keys]
        assert not near.equal[rows][1:].any()
    assert sum(map(len, expected.values())) > 20
