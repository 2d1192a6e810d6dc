"""Containment indexes: brute force, recall, files, and damage that is named."""

import contextlib
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from long_runs import long_but
from synthetic_sets import NumberLists, ensemble_of, ragged, some_of, text_numbers, vocabularies

from pexeso.errors import (
    IndexCorruptError,
    IndexNotFoundError,
    IndexVersionError,
    InputError,
    OutputError,
)
from pexeso.sets.containment import DOCUMENT, LISTS_ALONE, EnsembleOptions, tokens_needed
from pexeso.sets.containment import ensemble as ensemble_module
from pexeso.sets.containment.bands import Tuner
from pexeso.sets.containment.ensemble import (
    Ensemble,
    bands_seconds,
    lists_seconds,
    read_ensemble,
    write_ensemble,
)
from pexeso.sets.containment.hashing import (
    distinct_sorted,
)
from pexeso.sets.part.open import check_ensemble
from pexeso.store.arrays import open_array

SMALL = EnsembleOptions(permutations=64, partitions=4)
TEN = np.arange(1, 11, dtype=np.uint64)
ROUTES = ("auto", "lists", "bands")


def lake_of(*sets: list[str], options: EnsembleOptions | None = None) -> Ensemble:
    numbers = text_numbers([text for one in sets for text in one])
    return ensemble_of(numbers, np.cumsum([0, *(len(one) for one in sets)]), options)


def numbered(*sets: list[int], options: EnsembleOptions = SMALL) -> Ensemble:
    return ensemble_of(*ragged([np.array(one, np.uint64) for one in sets]), options)


def test_w1_containment_ranks_where_similarity_does_not():
    second = [
        "Illinois",
        "Chicago",
        "New York City",
        "New York",
        "Nova Scotia",
        "Halifax",
        "California",
    ]
    second += ["San Francisco", "Seattle", "Washington", "Ontario", "Toronto"]
    index = lake_of(["Alberta", "Ontario", "Manitoba"], second)
    answer = index.search(text_numbers(["Ontario", "Toronto"]), 0.5)
    assert answer.sets.tolist() == [1, 0]
    assert answer.containments.tolist() == [1.0, 0.5]
    assert answer.overlaps.tolist() == [2, 1]
    assert index.search(text_numbers(["Ontario", "Toronto"]), 1.0).sets.tolist() == [1]


@given(
    st.lists(st.lists(st.integers(0, 25), max_size=12), max_size=12),
    st.lists(st.integers(0, 30), max_size=12),
    st.sampled_from([0.1, 0.3, 0.55, 0.8, 1.0]),
)
def test_acceptance_10_what_is_found_is_right_and_posting_lists_miss_nothing(
    sets, query, threshold
):
    index = numbered(*sets, options=EnsembleOptions(permutations=16, partitions=3))
    hashed = np.array(query, np.uint64)
    size = len(set(query))
    exact = {i: len(set(one) & set(query)) for i, one in enumerate(sets)}
    truth = {i for i, count in exact.items() if size and count / size >= threshold - 1e-12}
    answer = index.search(hashed, threshold)
    assert set(answer.sets.tolist()) <= truth
    assert answer.overlaps.tolist() == [exact[i] for i in answer.sets.tolist()]
    assert answer.sizes.tolist() == [len(set(sets[i])) for i in answer.sets.tolist()]
    assert set(index.search(hashed, threshold, route="lists").sets.tolist()) == truth
    by_bands = index.search(hashed, threshold, route="bands")
    assert set(by_bands.sets.tolist()) <= truth
    assert by_bands.overlaps.tolist() == [exact[i] for i in by_bands.sets.tolist()]


def test_without_verification_estimates_order_candidates():
    index = numbered(TEN.tolist(), [*TEN.tolist(), *range(20, 25)], list(range(6, 16)))
    answer = index.search(TEN, 0.5, verify=False, route="bands")
    assert answer.overlaps.tolist() == [-1, -1, -1]
    assert answer.sets.tolist() == [0, 1, 2]
    assert answer.containments[0] == 1.0
    assert (np.diff(answer.containments) <= 0).all()
    assert np.abs(answer.containments - [1, 1, 0.5]).max() < 0.25


def test_a_partition_of_small_sets_is_skipped_and_small_sets_are_dropped():
    index = numbered(*([i] for i in range(30)), TEN.tolist())
    answer = index.search(TEN, 0.9, verify=False, route="bands")
    assert answer.sets.tolist() == [30]


def test_pitfall_3_a_share_is_not_rounded_up():
    hundred = np.arange(100, dtype=np.uint64)
    index = numbered(list(range(55)), list(range(54)))
    answer = index.search(hundred, 0.55)
    assert answer.needed == 55
    assert answer.sets.tolist() == [0]


def test_a_query_of_one_value_finds_it_in_sets_of_any_size():
    rng = np.random.default_rng(8)
    sets = [[1, *rng.integers(100, 2**40, size).tolist()] for size in (0, 1, 10, 200, 5000)]
    others = [rng.integers(100, 2**40, 50).tolist() for _ in range(50)]
    answer = numbered(*sets, *others).search(np.array([1], np.uint64), 1.0)
    assert answer.sets.tolist() == [0, 1, 2, 3, 4]
    assert answer.route == "lists"


def test_the_same_seed_gives_the_same_candidates_and_another_draws_others():
    rng = np.random.default_rng(9)
    sets = [rng.integers(0, 300, 60).tolist() for _ in range(300)]
    query = np.array(sets[0][:20] + list(range(1000, 1020)), np.uint64)

    def candidates(seed):
        index = numbered(*sets, options=EnsembleOptions(permutations=32, seed=seed))
        return index.search(
            query, 0.3, tuner=Tuner(permutations=32, recall=0.5), verify=False, route="bands"
        ).sets.tolist()

    assert candidates(1) == candidates(1)
    assert candidates(1) != candidates(2)


@pytest.mark.parametrize(
    "options",
    [
        *(
            {"permutations": 0},
            {"permutations": 64.0},
            {"max_rows": 0},
            {"max_rows": 65},
            {"partitions": 0},
        ),
        *({"seed": -1}, {"partitions": True}),
    ],
)
def test_options_that_are_not_allowed_are_refused(options):
    with pytest.raises(InputError, match=f"'{next(iter(options))}' must be"):
        EnsembleOptions(**options)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("verify", [True, False])
def test_excluded_sets_are_not_found(route, verify):
    index = numbered(TEN.tolist(), [*TEN.tolist(), 11], TEN.tolist(), [70, 71])
    for exclude in ([0, 3], [0, 3, 99]):
        answer = index.search(TEN, 0.9, exclude=np.array(exclude), route=route, verify=verify)
        assert sorted(answer.sets.tolist()) == [1, 2]
        assert answer.n_candidates == 2
    assert len(index.search(TEN, 0.9, exclude=np.arange(3), route=route)) == 0


def test_the_route_that_is_expected_to_be_sooner_done_is_taken(monkeypatch):
    sets = [list(range(100)) for _ in range(50)]
    index, query = numbered(*sets), np.arange(100, dtype=np.uint64)
    monkeypatch.setattr(ensemble_module, "lists_seconds", lambda n_tokens, n_entries: n_entries)
    monkeypatch.setattr(ensemble_module, "bands_seconds", lambda *known: 2000.0)
    # At 0.9 eleven lists of fifty sets must be read, at 0.5 fifty-one.
    assert index.search(query, 0.9).route == "lists"
    assert index.search(query, 0.5).route == "bands"


def test_where_bands_cannot_keep_the_recall_lists_are_read(monkeypatch):
    index = numbered([1], list(range(5000)))
    monkeypatch.setattr(ensemble_module, "lists_seconds", lambda n_tokens, n_entries: 1e9)
    answer = index.search(np.array([1], np.uint64), 1.0)
    assert (answer.sets.tolist(), answer.route) == ([0, 1], "lists")
    few = Tuner(permutations=64, recall=1e-9)
    assert index.search(np.array([1], np.uint64), 1.0, tuner=few).route == "bands"
    assert index.search(np.arange(4000, dtype=np.uint64), 1.0).route == "bands"


def test_more_costs_more():
    assert lists_seconds(10, 100) < lists_seconds(20, 100) < lists_seconds(20, 1000)
    usual = {
        "n_tokens": 100,
        "permutations": 256,
        "n_sets": 10**5,
        "n_entries": 10**5,
        "usual_size": 50.0,
    }
    for name, more in {
        "permutations": 512,
        "n_sets": 10**6,
        "n_entries": 10**6,
        "usual_size": 10.0,
    }.items():
        assert bands_seconds(**usual) < bands_seconds(**{**usual, name: more})


def test_few_entries_are_read_and_many_are_not():
    assert lists_seconds(20, 0) < bands_seconds(20, 256, 10, 0, 1.0)
    assert lists_seconds(1000, 10**8) > bands_seconds(1000, 256, 10**6, 10**8, 100.0)


def test_an_empty_lake_and_an_empty_query_cost_nothing_unheard_of():
    some = bands_seconds(0, 256, 2, 0, 1.0)
    assert bands_seconds(0, 256, 0, 0, 1.0) == pytest.approx(some, rel=1e-4)
    assert lists_seconds(0, 0) > 0


RNG = np.random.default_rng(12)
VOCABULARIES = vocabularies(5, RNG, max_size=500)
SETS = [some_of(VOCABULARIES[i % 5], RNG) for i in range(60)]
OPTIONS = EnsembleOptions(permutations=32, partitions=3)


LISTS = NumberLists(*distinct_sorted(*ragged(SETS)))
NAMES = ["sets", "sizes", "starts", "signatures", "table_values", "table_sets"]


def written(folder, options=OPTIONS, sets=SETS):
    folder.mkdir(parents=True, exist_ok=True)
    index = ensemble_of(*ragged(sets), options)
    write_ensemble(index, folder)
    return index


@pytest.fixture
def folder(tmp_path):
    written(tmp_path / "index")
    return tmp_path / "index"


def test_a_stored_index_gives_the_same_answers(tmp_path):
    index = written(tmp_path / "deep" / "index")
    opened = read_ensemble(tmp_path / "deep" / "index", LISTS)
    assert opened.options == OPTIONS
    assert not opened.signatures.flags.writeable
    assert check_ensemble(opened) == check_ensemble(index) == []
    for query in SETS[:5]:
        for route in ("auto", "bands"):
            one, other = (which.search(query, 0.5, route=route) for which in (index, opened))
            assert one.sets.tolist() == other.sets.tolist()
            assert one.containments.tolist() == other.containments.tolist()
            assert (one.overlaps >= 0).all()


def test_values_of_another_width_are_refused(folder):
    path = folder / "containment_table_values.npy"
    np.save(path, np.load(path).astype(np.int32))
    with pytest.raises(IndexCorruptError, match="must hold integers of u2"):
        read_ensemble(folder, LISTS)


def test_lists_of_fewer_sets_do_not_fit_together(folder):
    lists = NumberLists(*distinct_sorted(*ragged(SETS[:3])))
    with pytest.raises(IndexCorruptError, match="do not fit together, as sets tells"):
        read_ensemble(folder, lists)


def test_an_empty_index_is_stored(tmp_path):
    opened = read_ensemble(tmp_path, written(tmp_path, sets=[]).lists)
    assert len(opened.search(SETS[0], 0.5)) == len(opened.search(SETS[0], 0.5, route="bands")) == 0
    assert check_ensemble(opened) == []


def test_an_index_lies_beside_other_files_and_tells_its_own(tmp_path):
    (tmp_path / "sets.npy").write_bytes(b"of another")
    entries = write_ensemble(ensemble_of(*ragged(SETS), OPTIONS), tmp_path)
    assert {entry.path for entry in entries} == {path.name for path in tmp_path.iterdir()} - {
        "sets.npy"
    }
    assert all((tmp_path / entry.path).stat().st_size == entry.n_bytes for entry in entries)
    assert all(entry.path.startswith("containment") for entry in entries)
    with pytest.raises(OutputError, match="containment_sets"):
        write_ensemble(ensemble_of(*ragged(SETS), OPTIONS), tmp_path)


def test_opening_reads_no_numbers_of_sets_or_tokens(folder, monkeypatch):
    touched = []
    import pexeso.sets.containment.ensemble as stored

    def opened(path, n_bytes=None):
        array = open_array(path, n_bytes)
        if path.name != "containment_starts.npy":
            # Shapes can be asked for, numbers cannot.
            array = np.memmap(path, array.dtype, "r", array.offset, array.shape).view(Unread)
            touched.append(path.name)
        return array

    monkeypatch.setattr(stored, "open_array", opened)
    monkeypatch.setattr(stored.np, "asarray", lambda array: array)
    read_ensemble(folder, LISTS)
    assert len(touched) == len(NAMES) - 1


class Unread(np.memmap):
    def __getitem__(self, place):
        raise AssertionError("numbers are read")

    def __array_ufunc__(self, *arguments, **named):
        raise AssertionError("numbers are read")


def test_a_folder_without_an_index_is_named(tmp_path):
    with pytest.raises(IndexNotFoundError, match=r"no 'containment\.json'"):
        read_ensemble(tmp_path, LISTS)


def changed(folder, change):
    document = json.loads((folder / DOCUMENT).read_text(encoding="ascii"))
    document = change(document) or document
    (folder / DOCUMENT).write_text(json.dumps(document), encoding="ascii")


def test_posting_lists_alone_are_told_from_bands(folder):
    assert read_ensemble(folder, LISTS) is not None
    (folder / DOCUMENT).write_text(f'{{"version": {LISTS_ALONE}}}', encoding="ascii")
    assert read_ensemble(folder, LISTS) is None


@pytest.mark.parametrize("version", [1, 4, None, "1"])
def test_another_version_is_named(folder, version):
    changed(folder, lambda document: document.update(version=version))
    with pytest.raises(IndexVersionError, match="build it again"):
        read_ensemble(folder, LISTS)


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.pop("options"),
        lambda document: document["options"].update(permutations=0),
        lambda document: document["options"].update(permutations=31),
        lambda document: document["options"].update(more=1),
        lambda document: document.pop("hashed_lists"),
        lambda document: document.update(hashed_lists=True),
        lambda document: document["options"].update(tables=False),
        lambda document: document["options"].pop("keep_tokens"),
        lambda document: document.update(options=None),
    ],
)
def test_a_changed_document_is_named(folder, change):
    changed(folder, lambda document: change(document) and None)
    with pytest.raises(IndexCorruptError):
        read_ensemble(folder, LISTS)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_is_cut_short_missing_or_of_another_width_is_named(folder, name):
    path = folder / f"containment_{name}.npy"
    whole = path.read_bytes()
    np.save(path, np.load(path).astype(np.int8))
    with pytest.raises(IndexCorruptError, match=name):
        read_ensemble(folder, LISTS)
    path.write_bytes(whole[:-1])
    with pytest.raises(IndexCorruptError, match=name):
        read_ensemble(folder, LISTS)
    path.unlink()
    with pytest.raises(IndexCorruptError, match=name):
        read_ensemble(folder, LISTS)


@pytest.mark.parametrize("name", NAMES)
def test_arrays_of_another_length_do_not_fit_together(folder, name):
    path = folder / f"containment_{name}.npy"
    np.save(path, np.load(path)[:-2])
    with pytest.raises(IndexCorruptError, match=r"do not fit together|60 sets or more"):
        read_ensemble(folder, LISTS)


DAMAGE = {
    "sets": [(0, 10**12), (0, -1)],
    "sizes": [(0, 0), (-1, 0), (0, 10**12)],
    "starts": [],
    "signatures": [(3, 7)],
    "table_values": [(5, 7)],
    "table_sets": [(5, -1), (5, 32_000), (5, 0)],
}


@pytest.mark.parametrize(
    ("name", "place", "number"),
    [(name, *change) for name, changes in DAMAGE.items() for change in changes],
)
def test_damaged_numbers_lead_no_loop_astray_and_a_check_names_them(folder, name, place, number):
    path = folder / f"containment_{name}.npy"
    array = np.load(path)
    array.reshape(-1)[place] = number
    np.save(path, array)
    opened = read_ensemble(folder, LISTS)
    assert check_ensemble(opened)
    for query in SETS[:3]:
        for route in ("lists", "bands"):
            with contextlib.suppress(IndexCorruptError):
                opened.search(query, 0.5, route=route)


@pytest.mark.parametrize("starts", [[0, 2, 2, 60], [1, 60], [0, 61], [0, 30, 20, 60]])
def test_partitions_that_are_no_runs_are_refused(folder, starts):
    np.save(folder / "containment_starts.npy", np.array(starts))
    with pytest.raises(IndexCorruptError, match="starts"):
        read_ensemble(folder, LISTS)


def test_partitions_that_share_a_size_are_found_by_a_check(folder):
    same = np.flatnonzero(np.diff(np.load(folder / "containment_sizes.npy")) == 0)
    np.save(folder / "containment_starts.npy", np.array([0, same[0] + 1, 60]))
    assert any("lie apart" in sentence for sentence in check_ensemble(read_ensemble(folder, LISTS)))


THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
RATIOS = (2, 5, 20)
N_PLANTED = 40


class Lake:
    """Sets and queries drawn as the specification prescribes."""

    def __init__(self):
        rng = np.random.default_rng(21)
        words = vocabularies(120, rng)
        self.sets = [some_of(words[rng.integers(len(words))], rng) for _ in range(2000)]
        drawn = (some_of(words[rng.integers(len(words))], rng) for _ in range(10_000))
        self.queries = [one for one in drawn if 10 <= len(one) <= 1000][:60]
        self.planted = []
        for _ in range(N_PLANTED):
            query = rng.integers(0, 2**63, rng.integers(10, 200), dtype=np.uint64)
            ids = {}
            for ratio in RATIOS:
                ids[ratio] = len(self.sets)
                more = rng.integers(0, 2**63, (ratio - 1) * len(query), dtype=np.uint64)
                self.sets.append(np.concatenate([query, more]))
            self.planted.append((query, ids))
        self.indexes, self.shared = {}, {}

    def index(self, partitions: int) -> Ensemble:
        if partitions not in self.indexes:
            self.indexes[partitions] = ensemble_of(
                *ragged(self.sets), EnsembleOptions(partitions=partitions)
            )
        return self.indexes[partitions]

    def overlaps(self, at: int, threshold: float) -> np.ndarray:
        """Return the tokens that each set shares with a query, below 0 where they are too few."""
        if (at, threshold) not in self.shared:
            lists, query = self.index(32).lists, self.queries[at]
            needed = tokens_needed(len(np.unique(query)), threshold)
            every = lists.look_up(query).overlaps(np.arange(len(self.sets)), needed)
            self.shared[at, threshold] = every
        return self.shared[at, threshold]

    def recall(self, threshold: float, route: str) -> float:
        recalls = []
        for at, query in enumerate(self.queries):
            answer = self.index(32).search(query, threshold, route=route)
            every = self.overlaps(at, threshold)
            truth = set(np.flatnonzero(every >= 0).tolist())
            assert set(answer.sets.tolist()) <= truth  # precision 1 after verification
            assert (answer.overlaps == every[answer.sets]).all()
            recalls += [len(answer) / len(truth)] if truth else []
        return float(np.mean(recalls))

    def precision(self, threshold: float, partitions: int) -> float:
        """Return the mean precision of bands before verification."""
        precisions = []
        for at, query in enumerate(self.queries):
            index, every = self.index(partitions), self.overlaps(at, threshold)
            candidates = index.search(query, threshold, verify=False, route="bands").sets
            precisions += [np.mean(every[candidates] >= 0)] if len(candidates) else []
        return float(np.mean(precisions))


@pytest.fixture(scope="module")
def lake() -> Lake:
    return Lake()


@pytest.mark.parametrize("threshold", long_but([0.1, 0.7, 1.0], [0.1, *THRESHOLDS]))
def test_acceptance_9_the_recall_is_kept(lake, threshold):
    # The largest sets are out of reach of 256 hash functions at 1.0, and lists find those.
    assert lake.recall(threshold, "bands") >= (0.95 if threshold < 1 else 0.9)
    assert lake.recall(threshold, "auto") >= 0.95
    assert lake.recall(threshold, "lists") == 1.0


@pytest.mark.parametrize("threshold", THRESHOLDS)
@pytest.mark.parametrize("ratio", RATIOS)
def test_supersets_of_two_five_and_twenty_times_the_query_are_found(lake, threshold, ratio):
    hits = [
        ids[ratio] in lake.index(32).search(query, threshold).sets for query, ids in lake.planted
    ]
    assert np.mean(hits) >= 0.95


def test_acceptance_9_more_partitions_are_more_precise(lake):
    precisions = [lake.precision(0.5, partitions) for partitions in (1, 8, 32)]
    assert precisions[0] < precisions[1] < precisions[2]


def test_estimates_are_near_the_containment(lake):
    errors = []
    for query in lake.queries[:20]:
        exact = lake.index(32).search(query, 0.5, route="lists")
        answer = lake.index(32).search(query, 0.5, route="bands", verify=False)
        counted = dict(zip(exact.sets.tolist(), exact.containments.tolist(), strict=True))
        near = np.isin(answer.sets, exact.sets) & (answer.sizes < 2 * answer.query_size)
        errors += (
            answer.containments[near] - [counted[one] for one in answer.sets[near].tolist()]
        ).tolist()
    assert len(errors) > 100
    assert np.abs(errors).mean() < 0.05
