"""Tests of memory budgets on CPU and device, and of what opening a partition reads."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from long_runs import long_but
from searching_stores import SmallLake, query_of, scan_of

from benchmarks.out_of_core.asking import own_peak
from pexeso.engine.dense import space as dense_space
from pexeso.engine.dense.space import DenseSpace
from pexeso.engine.kernels.choice import choose_kernel
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.engine.partition import Pages, Partition
from pexeso.engine.vector_space import BYTES_A_PAIR, MAX_PAIRS, WORKING_BYTES
from pexeso.errors import DeviceError, IndexCorruptError
from pexeso.options import SearchOptions
from pexeso.semantic import partition_loader
from pexeso.semantic.executor import search_store
from pexeso.semantic.partition_loader import CHECK_BYTES, MIN_PAIRS, PartitionLoader
from pexeso.store import arrays

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
MIB = 1 << 20
OPTIONS = PartitionLayoutOptions(map="projection", n_axes=4, block_size=4)


def sphere(n: int, dimensions: int = 8, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(n, dimensions))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def lake() -> SmallLake:
    vectors = sphere(400)
    columns = [list(range(begin, begin + 100)) for begin in range(0, 400, 100)]
    return SmallLake(vectors, columns, [(f"t{number}", "c") for number in range(4)], [0, 0, 1, 1])


@pytest.fixture
def store(lake, tmp_path):
    return lake.store(OPTIONS, folder=tmp_path)


def scan_on(store, device: torch.device, memory_budget: int | None) -> PartitionLoader:
    """A scan of what lies on that device, as far as it knows: there need not be such a device."""
    return PartitionLoader(
        store, DenseSpace(OPTIONS), device, memory_budget, choose_kernel("torch", CPU)
    )


def test_on_the_cpu_the_budget_is_for_the_pairs_and_the_pieces_that_are_worked_on(store):
    assert scan_on(store, CPU, None).max_pairs(0) == MAX_PAIRS
    assert scan_on(store, CPU, WORKING_BYTES + 48 * MIB).max_pairs(0) == 48 * MIB // BYTES_A_PAIR
    assert scan_on(store, CPU, 1).max_pairs(0) == MIN_PAIRS
    assert scan_on(store, CPU, 1 << 40).max_pairs(0) == MAX_PAIRS
    assert WORKING_BYTES + MIN_PAIRS * BYTES_A_PAIR == 140 * MIB  # as `open_index` says


@pytest.mark.parametrize("together", [1, 2])
def test_a_search_is_told_how_many_pairs_its_budget_allows(lake, store, monkeypatch, together):
    limits = []
    name = "search_partition" if together == 1 else "search_batch_partition"
    real = getattr(dense_space, name)

    def recorded(*given, max_pairs, **options):
        limits.append(max_pairs)
        return real(*given, max_pairs=max_pairs, **options)

    monkeypatch.setattr(dense_space, name, recorded)
    queries = [query_of(lake.vectors[:150], [1] * 150)] * together
    answers = search_store(scan_on(store, CPU, 200 * MIB), queries, [SearchOptions()] * together)
    assert [hit.column_id for hit in answers[-1][0]] == [0]
    assert set(limits) == {72 * MIB // BYTES_A_PAIR}


def test_on_a_device_the_budget_is_for_the_partition_too(store):
    arrays = store.partition(0)
    headers = 128 * len(arrays)
    fixed = (
        WORKING_BYTES
        + sum(array.nbytes for name, array in arrays.items() if name != "column_ids")
        + headers
    )
    left = 24 * MIB
    assert (
        0
        <= scan_on(store, CUDA, fixed + left).max_pairs(0) - left // BYTES_A_PAIR
        <= headers // BYTES_A_PAIR
    )
    scan_on(store, CUDA, fixed + MIN_PAIRS * BYTES_A_PAIR).require_room()
    expected = (
        r"^To search partition [01] of '.*' on the device cuda takes 140\.0 MiB, and the memory "
        r"budget is 139\.0 MiB: raise the budget above that, build the "
        r"index with smaller partitions \(--partition-bytes\), or search on the CPU \(--device "
        r"cpu\)\.$"
    )
    with pytest.raises(DeviceError, match=expected):
        search_store(scan_on(store, CUDA, 139 * MIB), [], [])


@pytest.mark.parametrize("budgeted", [True, False])
def test_as_many_partitions_as_fit_stay_on_a_device(lake, tmp_path, monkeypatch, budgeted):
    """Two others have room beside those that stay, unless all do."""
    names = [(f"t{number}", "c") for number in range(8)]
    store = SmallLake(lake.vectors, lake.columns * 2, names, list(range(8))).store(
        OPTIONS, folder=tmp_path
    )
    sizes = [scan_on(store, CUDA, 0)._copied_bytes(number) for number in range(8)]
    beside = WORKING_BYTES + MAX_PAIRS * BYTES_A_PAIR + CHECK_BYTES
    whole, passing = sum(sizes), 2 * max(sizes)
    for room, n_kept in (
        (whole, 8),
        (sum(sizes[:5]) + passing, 5),
        (sizes[0] + passing, 1),
        (sizes[0] + passing - 3, 0),
        (passing, 0),
        (passing - 3, 0),
    ):
        free = int((beside + room) / partition_loader.SHARE_OF_DEVICE) + 1
        monkeypatch.setattr(partition_loader, "free_bytes", lambda device, free=free: free)
        loader = scan_on(store, CUDA, beside + room if budgeted else None)
        assert loader.kept_numbers == frozenset(range(n_kept))
        assert loader.copies_ahead == (n_kept < 8 and room >= passing)
        assert loader.max_pairs(7) == MAX_PAIRS or not n_kept
    on_cpu = scan_on(store, CPU, beside + whole)
    assert (on_cpu.kept_numbers, on_cpu.copies_ahead) == (frozenset(), False)


def test_partitions_that_stay_make_room_where_memory_runs_out(store, monkeypatch):
    real, copied = Partition.from_arrays, []

    def from_arrays(arrays, options, device=CPU, *, pages=None, copy=None):
        if str(device) != "cpu":
            copied.append(len(arrays["vectors"]))
            if len(copied) == 2:
                raise torch.OutOfMemoryError("out of memory")
        return real(arrays, options, pages=pages)

    monkeypatch.setattr(Partition, "from_arrays", from_arrays)
    scan = scan_on(store, torch.device("meta"), 1 << 40)
    assert scan.kept_numbers == frozenset({0, 1})
    for number in (0, 0, 1, 1, 0):
        assert scan.open(number).n_values == scan.mapped(number).n_values
    assert not scan.copies_ahead
    # Once and kept; once in vain, again, and from then on each time.
    assert len(copied) == 1 + 2 + 1 + 1


class RecordingPages(Pages):
    """Pages that always miss: writes down what is asked for."""

    def __init__(self) -> None:
        self.wanted: dict[str, set[int]] = {}

    def missing(self) -> bool:
        return True

    def want(self, name: str, rows) -> None:
        assert bool((rows[1:] >= rows[:-1]).all())
        self.wanted.setdefault(name, set()).update(rows.tolist())


LAYOUTS = {
    "projection, blocks": OPTIONS,
    "pivots, blocks": PartitionLayoutOptions(map="pivots", n_pivots=4, block_size=4),
    "projection, grid": PartitionLayoutOptions(
        map="projection", n_axes=3, cells="grid", n_levels=3
    ),
    "pivots, grid": PartitionLayoutOptions(map="pivots", n_pivots=4, cells="grid", n_levels=3),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("together", [1, 2])
def test_where_pages_are_missing_what_a_search_reads_is_asked_for_and_nothing_else_changes(
    lake, layout, together
):
    options, kernel = LAYOUTS[layout], "compiled"
    query, request = (
        query_of(lake.vectors[10:40], [1] * 30),
        SearchOptions(max_distance=0.06, min_joinability=0.3),
    )
    queries, all_asked = [query] * together, [request] * together
    store = lake.store(options)
    plain = search_store(scan_of(store, options, kernel), queries, all_asked)
    scan, pages = scan_of(store, options, kernel), {number: RecordingPages() for number in range(2)}
    for number in range(2):
        object.__setattr__(scan.mapped(number), "pages", pages[number])
    again = search_store(scan, queries, all_asked)
    assert [hits for hits, _ in again] == [hits for hits, _ in plain]
    counters = [{**stats.to_dict(), "seconds": None} for _, stats in (plain[0], again[0])]
    assert counters[0] == counters[1]
    partition, wanted = scan.mapped(0), pages[0].wanted
    cells = {"boxes", "block_codes"} if options.cells == "blocks" else {"mapped"}
    assert set(wanted) >= cells
    stored = {tuple(row): place for place, row in enumerate(partition.vectors.tolist())}
    rows = {stored[tuple(row)] for row in query.vectors.tolist()}
    if options.cells == "grid":
        assert rows <= wanted["mapped"]
    else:
        assert {row // 4 for row in rows} <= wanted["block_codes"]
        assert len(wanted["block_codes"]) <= len(partition.blocks)
    if together == 1:
        assert set(wanted) == cells | {"value_columns_offsets", "value_columns_members", "vectors"}
        # A pivot's distance to itself is known to be zero (Lemma 2): its vector is not read.
        assert len(rows - wanted["vectors"]) <= (1 if options.map == "pivots" else 0)
        assert len(wanted["vectors"]) < partition.n_values


@pytest.mark.parametrize("n_partitions", [1, 2])
def test_pages_that_were_missing_once_are_not_asked_for_ever_after(lake, n_partitions, monkeypatch):
    faults = [0]
    monkeypatch.setattr(arrays, "usage", lambda field: faults[0])
    options = LAYOUTS["projection, blocks"]
    lake = replace(lake, partitions=[number % n_partitions for number in lake.partitions])
    scan = scan_of(lake.store(options), options)
    query, request = query_of(lake.vectors[10:40], [1] * 30), SearchOptions(max_distance=0.06)
    missing = []
    for new in (0, arrays.FEW_FAULTS + 1, 0, 0, 0):
        search_store(scan, [query], [request])
        faults[0] += new  # as if the search had found its pages missing
        missing.append(scan.watch.missing())
    assert missing == [False, True, True, False, False]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("exact", [False, True])
def test_a_partition_whose_vectors_are_not_its_own_is_refused_by_the_search(lake, layout, exact):
    store = lake.store(LAYOUTS[layout])
    vectors = store.partition(1)["vectors"]
    vectors[:] = vectors[np.random.default_rng(1).permutation(len(vectors))]
    query, request = (
        query_of(lake.vectors[110:140], [1] * 30),
        SearchOptions(max_distance=0.06, exact=exact, min_joinability=0.01),
    )
    assert [
        hit.column_id
        for hit in search_store(
            scan_of(lake.store(LAYOUTS[layout]), LAYOUTS[layout]), [query], [request]
        )[0][0]
    ] == [1]
    far = query_of(lake.vectors[310:340], [1] * 30)
    with pytest.raises(
        IndexCorruptError, match=r"Partition 1 of '.*' cannot be searched: Of 16 vectors looked at"
    ):
        search_store(scan_of(store, LAYOUTS[layout]), [far], [request])


def test_a_partition_with_boxes_that_are_no_numbers_is_refused_and_not_skipped(lake):
    store = lake.store(OPTIONS)
    store.partition(1)["boxes"][:] = np.nan
    with pytest.raises(
        IndexCorruptError, match=r"Partition 1 of '.*' cannot be searched: Boxes are not finite"
    ):
        search_store(
            scan_of(store, OPTIONS), [query_of(lake.vectors[:20], [1] * 20)], [SearchOptions()]
        )


@pytest.mark.parametrize("together", long_but([2], [1, 2]))
def test_a_search_takes_no_more_memory_than_its_budget_however_much_matches(tmp_path, together):
    n_values, n_columns = 20_000, 100
    middle = sphere(1, 16)
    vectors = middle + 0.05 * np.random.default_rng(1).normal(size=(2 * n_values, 16))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    columns = [rows.tolist() for rows in np.array_split(np.arange(2 * n_values), 2 * n_columns)]
    places = [number // n_columns for number in range(2 * n_columns)]
    options = PartitionLayoutOptions(map="projection", n_axes=8)
    lake = SmallLake(
        vectors, columns, [(f"t{number:04}", "c") for number in range(2 * n_columns)], places
    )
    scan = scan_of(
        lake.store(options, folder=tmp_path), options, memory_budget=WORKING_BYTES + 12 * MIB
    )
    request = SearchOptions(max_distance=0.3, min_joinability=1.0)
    queries = [query_of(vectors[start : start + 400], [1] * 400) for start in range(together)]
    few = [query_of(query.vectors[:4].numpy(), [1] * 4) for query in queries]
    search_store(scan, few, [request] * together)  # whatever is loaded at first use
    with own_peak() as peak:
        answers = search_store(scan, queries, [request] * together)
    assert all(len(hits) == 2 * n_columns for hits, _ in answers)
    assert (
        answers[0][1].candidates >= 400 * 2 * n_values
    )  # without a budget 16 million pairs and more are held at a time
    assert 0 < peak.n_bytes <= 24 * MIB
