"""Lakes of numbers alone: no column is compared by similarity, and other parts index them all."""

import random
from pathlib import Path

import pytest

from pexeso import build_index, open_index
from pexeso.build.diagnostics.estimate import estimate_build
from pexeso.errors import LakeError
from pexeso.options import BuildOptions


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    generator = random.Random(0)
    lake = tmp_path / "lake"
    lake.mkdir()
    lines = [
        f"{10_000 + number // 3},{70_000 + generator.randrange(50)},{generator.randrange(9)}"
        for number in range(90)
    ]
    (lake / "orders.csv").write_text("\n".join(["order_id,product_id,quantity", *lines]))
    products = [f"{70_000 + number},{generator.randrange(999)}" for number in range(50)]
    (lake / "products.csv").write_text("\n".join(["product_id,price", *products]))
    return lake


def cells(lake: Path, table: str) -> list[list[str]]:
    return [line.split(",") for line in (lake / table).read_text().splitlines()[1:]]


@pytest.mark.parametrize("models", [["lexical"], ["hashing"]])
def test_columns_of_numbers_are_found_by_equal_values(lake, tmp_path, models):
    path = tmp_path / "lake.pexeso"
    index = build_index(lake, path, model=models[0], parts=("overlap", "containment"))
    assert (index.info().values, index.check()) == (0, [])
    wanted = {row[1] for row in cells(lake, "orders.csv")}
    counts = {
        (name, column): len(wanted & {row[position] for row in cells(lake, name)})
        for name, header in (
            ("orders.csv", ["order_id", "product_id", "quantity"]),
            ("products.csv", ["product_id", "price"]),
        )
        for position, column in enumerate(header)
    }
    matches = open_index(path).overlap(sorted(wanted), k="all", fold_copies=False)
    assert {(match.table, match.column): match.overlap for match in matches} == {
        key: n for key, n in counts.items() if n
    }
    assert list(open_index(path).search(sorted(wanted))) == []


def test_composite_keys_of_numbers_are_found(lake, tmp_path):
    index = build_index(lake, tmp_path / "lake.pexeso", parts=("composite",))
    rows = cells(lake, "orders.csv")
    query = {"order": [row[0] for row in rows], "product": [row[1] for row in rows]}
    (best, *_) = index.search_composite(query, ["order", "product"])
    assert best.table == "orders.csv"
    assert best.joinability == 1


def test_an_index_of_numbers_follows_its_lake(lake, tmp_path):
    path = tmp_path / "lake.pexeso"
    index = build_index(lake, path, parts=("overlap",))
    (lake / "towns.csv").write_text("town,n\nOslo,1\nRome,2\nBern,3\nBonn,4\nLyon,5\n")
    index.append()
    assert index.search(["Oslo", "Rome"], min_joinability=1)[0].table == "towns.csv"
    index.delete(["towns.csv"])
    assert index.check() == []
    assert len(index.search(["Oslo", "Rome"])) == 0


def test_without_such_a_part_the_reason_names_them(lake, tmp_path):
    with pytest.raises(LakeError, match=r"overlap, containment and composite \(--include\) index"):
        build_index(lake, tmp_path / "lake.pexeso")
    with pytest.raises(LakeError, match="fasttext is trained on the values of such columns"):
        build_index(lake, tmp_path / "lake.pexeso", model="fasttext", parts=("overlap",))
    assert not (tmp_path / "lake.pexeso").exists()


def test_what_it_costs_is_estimated(lake):
    estimate = estimate_build(lake, BuildOptions(parts=("overlap",)))
    assert (estimate.values, estimate.postings, estimate.partitions) == (0, 0, 0)
    assert estimate.index_bytes > 0
    with pytest.raises(LakeError, match="can be a join key"):
        estimate_build(lake, BuildOptions())
