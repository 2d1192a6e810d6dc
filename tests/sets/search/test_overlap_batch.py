"""`Index.overlap_batch` answers each query as `Index.overlap` does."""

import shutil

import pytest
from bare_indexes import without_parts

import pexeso
from pexeso.errors import DeviceError, InputError, QueryError
from pexeso.results.query import read_query

QUERIES = [
    ["Oslo", "Rome", "Madrid", "Oslo", None],
    [1, 2.0, "3"],
    [],
    ["nowhere"],
    ["Oslo", "Rome"],
]


@pytest.fixture(scope="module")
def index(small_index):
    return pexeso.open_index(small_index, device="cpu")


def plain(result):
    document = result.to_dict(explain=True)
    return {name: value for name, value in document.items() if name != "stats"}


def overlaps_of(result):
    return [(match.table, match.column, match.overlap) for match in result]


@pytest.mark.parametrize("k", [1, 2, 10])
def test_answers_are_those_of_single_searches_in_the_order_of_the_queries(index, k):
    results = index.overlap_batch(iter(QUERIES), k=k)
    assert [plain(result) for result in results] == [
        plain(index.overlap(query, k=k)) for query in QUERIES
    ]
    assert [len(result) for result in results] == [min(k, n) for n in (2, 1, 0, 0, 2)]


def test_counts_are_of_distinct_equal_texts(index):
    [places, numbers] = index.overlap_batch([["Oslo", "Oslo", "Rome", "Vienna"], [1, "2"]])
    assert overlaps_of(places) == [("cities.csv", "city", 3), ("nested/companies.csv", "place", 3)]
    assert overlaps_of(numbers) == [("numbers.csv", "id", 2)]
    assert places[0].shared() == ["Oslo", "Rome", "Vienna"]


def test_each_query_leaves_out_its_own_table(index, small_lake):
    queries = [
        read_query(small_lake / "cities.csv", "city"),
        read_query(small_lake / "nested/companies.csv", "place"),
        ["Oslo"],
    ]
    results = index.overlap_batch(queries, exclude_self=True)
    assert [plain(result) for result in results] == [
        plain(index.overlap(query, exclude_self=True)) for query in queries
    ]
    tables = [{match.table for match in result} for result in results]
    assert "cities.csv" not in tables[0]
    assert "cities.csv" in tables[1]
    assert "cities.csv" in tables[2]
    assert "cities.csv" in {match.table for match in index.overlap_batch(queries)[0]}


def test_deleted_tables_are_not_found(small_index, tmp_path):
    index = pexeso.open_index(shutil.copytree(small_index, tmp_path / "copy.pexeso"), device="cpu")
    assert "cities.csv" in {match.table for match in index.overlap_batch(QUERIES)[0]}
    assert index.delete(["cities.csv"]).committed
    after = index.overlap_batch(QUERIES)
    assert "cities.csv" not in {match.table for match in after[0]}
    assert [plain(result) for result in after] == [plain(index.overlap(query)) for query in QUERIES]


def test_the_work_is_told(index):
    stats = index.overlap_batch(QUERIES)[0].stats
    assert stats["shards"] == len(index.shards)
    assert stats["ways"] == {"batched": len(index.shards)}
    assert stats["entries"] > 0


def test_the_device_is_that_of_the_index_unless_one_is_given(index, monkeypatch):
    devices = []
    for shard in index.shards:
        vars(shard)["_batched"] = Recorded(devices, shard.overlap)
    index.overlap_batch(QUERIES[:1])
    index.overlap_batch(QUERIES[:1], device="cpu")
    assert devices == ["cpu", "cpu"]


class Recorded(dict):
    def __init__(self, devices, overlap):
        self.devices, self.overlap = devices, overlap

    def __contains__(self, device):
        self.devices.append(device)
        return super().__contains__(device)


def test_what_cannot_be_asked_is_refused(index, small_index, tmp_path):
    for k in (0, -1, 1.5, "2", True):
        with pytest.raises(InputError, match=r"k must be a whole number of at least 1, or 'all'"):
            index.overlap_batch(QUERIES, k=k)
    with pytest.raises(QueryError, match="must be a list of values, not one text"):
        index.overlap_batch([["Oslo"], "Rome"])
    with pytest.raises(DeviceError, match="There is no device cuda:99"):
        index.overlap_batch(QUERIES, device="cuda:99")
    assert index.overlap_batch([]) == []
    without_parts(small_index, tmp_path / "bare.pexeso")
    with pytest.raises(
        InputError, match=r"has no part for searches by overlap of equal texts. Add it with"
    ):
        pexeso.open_index(tmp_path / "bare.pexeso", device="cpu").overlap_batch(QUERIES)
