"""An index with the lexical model answers as brute force, through builds and updates."""

import shutil

import pytest

import pexeso
from pexeso.errors import IndexCorruptError, InputError

TABLES = {
    "cities.csv": {"Oslo": "Anne", "Bergen": "Rune", "Trondheim": "Kent", "Bodø": "Odd",
                   "Hamar": "Einar", "Narvik": "Rolf"},
    "towns.csv": {"olso": "Østland", "Bergenn": "Vestland", "Trondhjem": "Trøndelag",
                  "Bodo": "Nordland", "Hammer": "Innlandet"},
    "people.csv": {"Marie Curie": "Warsaw", "Niels Bohr": "Copenhagen", "Lise Meitner": "Vienna",
                   "Ada Lovelace": "London", "Alan Turing": "London"},
}  # fmt: skip
HEADERS = {"cities.csv": "city,mayor", "towns.csv": "town,county", "people.csv": "person,born"}
MORE = "place,code\nOslo,OSL\nBergen,BGO\nTrondheim,TRD\nStavanger,SVG\nTromsø,TOS\n"


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lexical") / "lake"
    folder.mkdir()
    for name, rows in TABLES.items():
        lines = [HEADERS[name], *(f"{left},{right}" for left, right in rows.items())]
        (folder / name).write_text("\n".join(lines), encoding="utf-8")
    return folder


def build(lake, path, **options):
    return pexeso.build_index(lake, path, model="lexical", **options)


def columns_of(index, values, **options):
    answers = []
    for exact in (False, True):
        result = index.search(values, min_joinability=0.2, rerank=False, exact=exact, **options)
        answers.append([(match.table, match.column, match.matched) for match in result.matches])
    assert answers[0] == answers[1]
    return answers[0]


QUERY = ["Oslo", "Bergen", "Trondheim", "Bodø", "Hamar"]
EXPECTED = [("cities.csv", "city", 5), ("towns.csv", "town", 3)]


@pytest.fixture(scope="module")
def built(lake):
    """Index the lake in one partition and in two; return the indexes by these numbers."""
    return {n: build(lake, lake.parent / f"index_{n}", n_partitions=n) for n in (1, 2)}


@pytest.mark.parametrize("n_partitions", [1, 2])
def test_a_build_finds_misspelt_values_and_is_sound(built, n_partitions):
    index = built[n_partitions]
    assert columns_of(index, QUERY) == EXPECTED
    assert index.check() == []
    assert [match.matched for match in index.search_batch([QUERY], min_joinability=0.2)[0].matches]
    assert "vectors" not in index.store.partition(0)


def test_rows_or_distinct_values_count(built):
    index = built[1]
    values = [*QUERY, *["Bergen"] * 5]
    assert columns_of(index, values) == EXPECTED
    rows = [("cities.csv", "city", 10), ("towns.csv", "town", 8)]
    assert columns_of(index, values, joinability_of="rows") == rows


def test_torch_gives_the_answers_of_compiled_loops_and_other_kernels_are_refused(built):
    path = built[2].path
    assert columns_of(pexeso.open_index(path, kernel="torch"), QUERY) == EXPECTED
    with pytest.raises(InputError, match=r"kernels compiled, on the CPU, and torch\. Got 'triton'"):
        pexeso.open_index(path, kernel="triton", device="cpu").search(QUERY)
    with pytest.raises(InputError, match="The kernel must be one of auto, compiled"):
        pexeso.open_index(path, kernel="numpy")


@pytest.mark.long
def test_updates_give_the_answers_of_a_fresh_build(lake, tmp_path):
    folder = tmp_path / "lake"
    shutil.copytree(lake, folder)
    index = build(folder, tmp_path / "index")
    (folder / "more.csv").write_text(MORE, encoding="utf-8")
    (folder / "towns.csv").unlink()
    index.append(folder)
    index.delete(["towns.csv"])
    expected = [("cities.csv", "city", 5), ("more.csv", "place", 3)]
    assert columns_of(index, QUERY) == expected
    index.compact()
    assert columns_of(index, QUERY) == expected
    assert index.check() == []


def test_a_space_that_none_can_have_is_damage(built, monkeypatch):
    index = built[1]
    monkeypatch.setitem(index.store.manifest.facts, "letters", {"whole_word_share": 2.0})
    from pexeso.build.parts.metadata import stored_space

    with pytest.raises(IndexCorruptError, match="lexical space that none can have"):
        stored_space(index.store.manifest)


LONG = "".join(chr(0x4E00 + 7 * n % 20_000) for n in range(10_000))
ODD = {
    "a" * 10_000: "a" * 9_999,
    "qw" * 5_000: "qw" * 4_999 + "q",
    LONG: LONG[:5_000] + LONG[5_001:],
    "😀😀😀": "😀😀😀",
    "👩‍🔬 Curie": "👩‍🔬 Curiee",
    "שלום עולם": "שלום עולמ",
    "مدينة الكويت": "مدينه الكويت",
    "x": "x",
    "東": "東",
    "İstanbul": "Istanbul",
}
"""Values, and each as another column has it."""


def test_odd_values_are_searched_as_brute_force_does(tmp_path):
    folder = tmp_path / "lake"
    folder.mkdir()
    for name, values in (("odd", ODD), ("other", ODD.values())):
        lines = [f"{name},n", *(f"{value},{n}" for n, value in enumerate(values))]
        (folder / f"{name}.csv").write_text("\n".join(lines), encoding="utf-8")
    index = build(folder, tmp_path / "index")
    query, table = list(ODD), "other.csv"
    at_least = {0.0: 3, 0.1: 4, 0.4: 5}
    for distance, n_least in at_least.items():
        options = {"max_distance": distance, "k": "all"}
        answers = columns_of(index, query, **options)
        assert answers[0] == ("odd.csv", "odd", 10)
        assert {name: n for name, _, n in answers}[table] >= n_least
        batch = index.search_batch([query, query[:3]], min_joinability=0.2, rerank=False, **options)
        assert [(match.table, match.column, match.matched) for match in batch[0]] == answers
        explanation, exact = (
            index.explain(query, table, "other", max_distance=distance, exact=is_exact).to_dict()
            for is_exact in (False, True)
        )
        assert explanation["pairs"] == exact["pairs"]
        assert len(explanation["pairs"]) >= n_least
    torch = pexeso.open_index(index.path, kernel="torch", device="cpu")
    assert columns_of(torch, query) == columns_of(index, query)
    assert index.check() == []
