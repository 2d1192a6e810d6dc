"""The index that a user holds: search, results, pairs, joins, and what it refuses."""

import json
import logging
import shutil
import warnings

import numpy as np
import pandas as pd
import pytest
import torch

import pexeso
import pexeso.build.parts.metadata
from pexeso.errors import (
    DeviceError,
    EmbedderError,
    IndexVersionError,
    InputError,
    QueryError,
)
from pexeso.index import build_index, open_index
from pexeso.results.query import read_query
from pexeso.semantic import combined
from pexeso.store.manifest import Manifest

PLACES = ["Oslo", "rome", " MADRID ", "Oslo", None, "Xyzzyx"]


@pytest.fixture(scope="module")
def index(small_index):
    return open_index(small_index)


@pytest.fixture
def copy(small_index, tmp_path):
    """A copy of the index that a test may damage."""
    return shutil.copytree(small_index, tmp_path / "copy.pexeso")


def rewrite_manifest(path, **changes):
    manifest = path / "manifest.json"
    document = vars(Manifest.from_bytes(manifest.read_bytes())) | changes
    manifest.write_bytes(Manifest(**document).to_bytes())


def columns_of(result):
    return [(match.table, match.column, match.matched, match.total) for match in result]


def test_columns_are_found_best_first_and_ties_by_texts_then_table_then_column(index):
    result = index.search(PLACES, min_joinability=0.1)
    by_name = [
        ("cities.csv", "city", 3, 4),
        ("nested/capitals.tsv", "Capital", 3, 4),
        ("nested/companies.csv", "place", 3, 4),
    ]
    assert columns_of(result) == [by_name[0], by_name[2], by_name[1]]  # capitals are in capitals
    assert columns_of(index.search(PLACES, min_joinability=0.1, rerank=False)) == by_name
    assert result[0].joinability == 3 / 4


def test_values_count_once_as_they_are_normalised_and_empty_cells_do_not(index):
    values = ["Oslo", "OSLO", "Oslo", "Rome", "Xyzzyx", None, "", " - "]
    assert columns_of(index.search(values, min_joinability=2 / 3 - 1e-9))[0][2:] == (2, 3)
    assert columns_of(index.search(values, min_joinability=0.7)) == []
    left = index.search(values, min_joinability=0.6, ignore_missing=True)
    assert columns_of(left)[0][2:] == (2, 3), (
        "the model knows something about the letters of Xyzzyx"
    )


@pytest.mark.parametrize("exact", [False, True])
def test_rows_count_each_and_missing_ones_stay_in_the_total_unless_told(index, exact):
    options = {"joinability_of": "rows", "exact": exact}
    share = {**options, "min_joinability": 0.75}
    assert columns_of(index.search(["Oslo"] * 3 + ["Xyzzyx"], **share))[0][2:] == (3, 4)
    missing = ["Oslo", None, "", " - "]
    assert columns_of(index.search(missing, **options, min_joinability=0.25))[0][2:] == (1, 4)
    assert columns_of(index.search(missing, **options, min_joinability=0.3)) == []
    result = index.search(missing, **options, min_joinability=1, ignore_missing=True)
    assert columns_of(result)[0][2:] == (1, 1)
    assert result.query["empty"] == 3


def test_what_joinability_counts_is_told(index):
    for counted, numbers in ((None, (2, 3)), ("rows", (3, 4))):
        options = {"max_distance": 0.0} | ({} if counted is None else {"joinability_of": counted})
        values = ["Oslo", "oslo", "Rome", "Xyzzyx"]
        result = index.search(values, min_joinability=0.1, rerank=False, **options)
        document = result.to_dict(explain=True)
        assert document["options"]["joinability_of"] == (counted or "values")
        first = document["results"][0]
        assert (first["matched"], first["total"]) == numbers
        assert first["joinability_of"] == (counted or "values")
        assert sum(kind["matched"] for kind in first["kinds"].values()) == numbers[0]
        assert result.to_pandas()["joinability_of"][0] == (counted or "values")
        explained = index.explain(values, "cities.csv", "city", **options).match
        assert (explained.matched, explained.total) == numbers
        assert sum(explained.kinds().matched.values()) == numbers[0]


def test_what_joinability_counts_must_be_one_of_two(index):
    with pytest.raises(InputError, match=r"joinability_of must be one of values, rows\. Got 'all'"):
        index.search(PLACES, joinability_of="all")


def test_the_threshold_is_inclusive(index):
    # Thresholds are taken to nine decimals: 2 of 3 is not 0.666666667.
    assert len(index.search(["Oslo", "Rome", "x1"], min_joinability=0.666666666)) == 3
    assert len(index.search(["Oslo", "Rome", "x1"], min_joinability=0.666666667)) == 0
    assert len(index.search(["Oslo", "Rome", "Madrid", "x1", "x2"], min_joinability=0.6)) == 3
    assert len(index.search(["Oslo", "Rome", "Madrid", "x1", "x2"], min_joinability=0.6000001)) == 0


def test_k_takes_the_best_and_keeps_the_order_of_ties(index):
    everything = columns_of(index.search(PLACES, k=100))
    for k in (1, 2, 3):
        assert columns_of(index.search(PLACES, k=k)) == everything[:k]
    assert columns_of(index.search(PLACES, k=2, min_joinability=0.9)) == []


def test_brute_force_gives_the_same_answer_and_pairs(index):
    for options in (
        {"min_joinability": 0.1},
        {"k": 2},
        {"max_distance": 0.3, "min_joinability": 0.5},
        {"max_distance": 1.0},
    ):
        fast, exact = index.search(PLACES, **options), index.search(PLACES, exact=True, **options)
        assert columns_of(fast) == columns_of(exact)
        assert [match.pairs() for match in fast] == [match.pairs() for match in exact]


def test_decided_counts_are_lower_bounds_of_the_same_columns(index):
    exact = {match[:2]: match[2] for match in columns_of(index.search(PLACES, min_joinability=0.3))}
    decided = {
        match[:2]: match[2]
        for match in columns_of(index.search(PLACES, min_joinability=0.3, counts="decide"))
    }
    assert decided.keys() == exact.keys()
    assert all(2 <= decided[column] <= exact[column] for column in exact)


def test_pairs_show_the_texts_of_both_tables(index):
    pairs = index.search(PLACES, k=3)[2].pairs()
    assert [(pair.query, pair.value, pair.distance) for pair in pairs] == [
        ("Oslo", "OSLO", 0.0),
        ("rome", "ROME", 0.0),
        (" MADRID ", "MADRID", 0.0),
    ]


def test_two_spellings_of_one_value_each_have_their_pair(index):
    pairs = index.search(["oslo", "OSLO"], k=1)[0].pairs()
    assert [(pair.query, pair.value) for pair in pairs] == [("oslo", "OSLO"), ("OSLO", "OSLO")]


def test_a_file_of_the_lake_is_found_like_any_other_unless_excluded(index, small_lake):
    query = read_query(small_lake / "cities.csv", "city")
    assert columns_of(index.search(query, min_joinability=1)) == [("cities.csv", "city", 8, 8)]
    assert "cities.csv" not in {
        match.table for match in index.search(query, k=10, exclude_self=True)
    }
    assert columns_of(index.search(query, k=1, exclude_self=True)) == [
        ("nested/companies.csv", "place", 5, 8)
    ]


def test_one_table_is_left_out_and_what_is_none_is_refused(index, small_lake):
    query = read_query(small_lake / "cities.csv", "city")
    both = {"exclude_self": True, "exclude_table": "nested/companies.csv"}
    with pytest.raises(InputError, match=r"exclude_self leaves out 'cities\.csv', the query"):
        index.search(query, **both)
    same = {**both, "exclude_table": "cities.csv"}
    assert columns_of(index.search(query, k=1, **same)) == [("nested/companies.csv", "place", 5, 8)]
    for wrong in (5, ["cities.csv"]):
        with pytest.raises(InputError, match="exclude_table must be one table"):
            index.search(query, exclude_table=wrong)


@pytest.mark.parametrize("method", ["semantic", "all"])
def test_an_excluded_table_that_the_index_does_not_know_is_refused(index, small_lake, method):
    query = read_query(small_lake / "cities.csv", "city")
    left_out = [
        row["table"] for row in index.catalog.tables().to_pylist() if row["reason"] is not None
    ]
    assert left_out
    for known in ("cities.csv", *left_out):
        index.search(query, method=method, exclude_table=known)
    said = r"^exclude_table: The lake has no table 'citys\.csv'.* Did you mean 'cities\.csv'"
    with pytest.raises(InputError, match=said):
        index.search(query, method=method, exclude_table="citys.csv")


@pytest.mark.parametrize("method", ["semantic", "all"])
def test_an_excluded_table_that_was_deleted_is_refused(copy, method):
    index = open_index(copy)
    index.search(["Oslo"], method=method, exclude_table="cities.csv")
    index.delete(["cities.csv"])
    with pytest.raises(InputError, match=r"^exclude_table: The lake has no table 'cities\.csv'"):
        index.search(["Oslo"], method=method, exclude_table="cities.csv")


def test_a_file_outside_the_lake_has_nothing_to_exclude(index, write):
    path = write("cities.csv", "city\nOslo\n")
    assert columns_of(index.search(read_query(path), k=1, exclude_self=True))[0][0] == "cities.csv"


def test_a_column_without_a_name_is_found_by_its_position(index):
    assert columns_of(index.search(["a", "b", "c", "d", "e"], min_joinability=1)) == [
        ("nested/companies.csv", "#2", 5, 5)
    ]


def test_an_empty_query_finds_nothing(index):
    assert columns_of(index.search([])) == []
    assert columns_of(index.search([None, ""], k=3)) == []


def test_a_batch_answers_in_order_as_single_searches_do(index):
    queries = [PLACES, [], ["Norway", "Italy"], pd.Series(["a", "b"], name="letters")]
    batch = index.search_batch(queries, k=2)
    assert [columns_of(result) for result in batch] == [
        columns_of(index.search(query, k=2)) for query in queries
    ]
    assert batch[3].query["column"] == "letters"


def test_the_plain_form_is_json_and_has_its_keys(index):
    document = json.loads(json.dumps(index.search(PLACES, k=1).to_dict(explain=True)))
    assert list(document) == ["query", "options", "results", "n_more", "stats"]
    counts = ["table", "column", "joinability", "matched", "total", "joinability_of"]
    sizes = ["rows_per_value", "is_small_domain"]
    assert list(document["results"][0]) == [
        *(*counts, "similarity", "kinds", "pairs"),
        *("copies", "brings", *sizes),
    ]
    unranked = index.search(PLACES, k=1, rerank=False, fold_copies=False).to_dict()
    assert list(unranked["results"][0]) == [*counts, "brings", *sizes]
    assert document["results"][0]["pairs"][0] == ["Oslo", "Oslo", 0.0, "exact"]
    assert document["query"] == {
        "file": None, "column": None, "rows": 6, "distinct": 4, "empty": 1, "unknown": 0,
    }  # fmt: skip
    assert {"open", "embed", "map", "block", "verify", "explain"} <= set(
        document["stats"]["seconds"]
    )
    assert document["options"]["k"] == 1


def test_results_become_a_data_frame(index):
    frame = index.search(PLACES, k=2).to_pandas()
    assert frame.columns.tolist() == [
        *("table", "column", "joinability", "matched", "total", "joinability_of"),
        *("n_copies", "brings", "similarity"),
    ]
    assert frame["matched"].tolist() == [3, 3]
    assert index.search(["Xyzzyx"]).to_pandas().columns.tolist() == frame.columns.tolist()


def test_switching_filters_off_changes_no_answer(index):
    full = index.search(PLACES, max_distance=0.2, min_joinability=0.3)
    bare = index.search(PLACES, max_distance=0.2, min_joinability=0.3, lemmas=())
    assert columns_of(full) == columns_of(bare)
    assert full.stats["distances"] < bare.stats["distances"]


def test_one_partition_and_many_give_the_same_answer(small_lake, small_index, tmp_path):
    index = open_index(small_index)
    many = build_index(
        small_lake, tmp_path / "many.pexeso", model=str(index.store.embedder_folder), n_partitions=3
    )
    assert many.store.n_partitions == 3
    for options in ({"min_joinability": 0.1}, {"k": 2}, {"k": 1, "exclude_table": "cities.csv"}):
        for query in (PLACES, ["Norway", "Italy"]):
            one, three = index.search(query, **options), many.search(query, **options)
            assert columns_of(one) == columns_of(three)
            assert [match.pairs() for match in one] == [match.pairs() for match in three]


def test_info_counts_what_is_in_and_what_was_left_out(index):
    info = index.info()
    assert (info.files, info.tables, info.columns, info.columns_indexed) == (7, 5, 12, 7)
    assert info.values == 33
    assert info.partitions[0]["columns"] == 7
    assert info.repaired == len(index.notes()) == 0
    assert info.to_dict()["left_out"] == [group.to_dict() for group in info.left_out]
    listing = index.left_out()
    assert listing.groups == info.left_out
    assert [row.name for row in listing] == [
        "broken.parquet", "notes.txt", "cities.csv:people", "nested/capitals.tsv:Seat since",
        "numbers.csv:amount", "numbers.csv:id", "short.csv:city",
    ]  # fmt: skip
    assert (
        info.bytes
        == sum(path.stat().st_size for path in index.path.rglob("*") if path.is_file())
        - (index.path / "manifest.json").stat().st_size
    )


def test_an_index_of_another_embedder_is_refused(copy):
    fingerprints = open_index(copy).store.manifest.fingerprints
    rewrite_manifest(copy, fingerprints=fingerprints | {"embedder": "0" * 64})
    with pytest.raises(EmbedderError, match="is not the one that the index was built with"):
        open_index(copy).search(["Oslo"])


def test_an_index_of_another_normaliser_is_refused(copy):
    fingerprints = open_index(copy).store.manifest.fingerprints
    rewrite_manifest(copy, fingerprints=fingerprints | {"normaliser": "0" * 32})
    with pytest.raises(IndexVersionError, match="other rules for normalising"):
        open_index(copy)


@pytest.mark.parametrize("device", ["gpu", "cpu:1", "cuda:x", ""])
def test_a_device_that_is_no_device_is_refused(small_index, device):
    with pytest.raises(InputError, match="The device must be one of auto, cpu, cuda"):
        open_index(small_index, device=device)


def test_a_device_that_is_not_there_is_refused(small_index):
    with pytest.raises(DeviceError, match="There is no device cuda:99"):
        open_index(small_index, device="cuda:99")


def test_cuda_asked_for_and_absent_is_a_clear_error(small_index, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    for name in ("cuda", "cuda:0"):
        with pytest.raises(DeviceError) as caught:
            open_index(small_index, device=name)
        assert str(caught.value) == (
            f"There is no device {name}: torch sees 0 CUDA devices. Use the device auto or cpu, "
            "or install a torch with CUDA."
        )


def test_without_cuda_auto_takes_the_cpu_and_says_so_once(small_index, monkeypatch, caplog):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    pexeso.build.parts.metadata._log_use_of_the_cpu.cache_clear()
    with caplog.at_level("INFO", logger="pexeso"):
        for _ in range(2):
            assert open_index(small_index).device == torch.device("cpu")
        assert open_index(small_index, device="cpu").device == torch.device("cpu")
    assert caplog.record_tuples == [
        ("pexeso.index", logging.INFO, "No CUDA device was found, so searches run on the CPU.")
    ]


TOO_OLD = "CUDA initialization: The NVIDIA driver on your system is too old (found version 11040)."


def old_driver():
    warnings.warn(f"{TOO_OLD}\nPlease update your GPU driver.", UserWarning, stacklevel=1)
    return False


def broken_driver():
    raise RuntimeError(f"{TOO_OLD}\nPlease update your GPU driver.")


@pytest.mark.parametrize("is_available", [old_driver, broken_driver])
def test_a_driver_that_does_not_work_is_told(small_index, monkeypatch, caplog, is_available):
    monkeypatch.setattr(torch.cuda, "is_available", is_available)
    pexeso.build.parts.metadata._log_use_of_the_cpu.cache_clear()
    reason = f"the CUDA driver does not work ({TOO_OLD[:-1]})"
    with caplog.at_level("INFO", logger="pexeso"):
        for _ in range(2):
            assert open_index(small_index).device == torch.device("cpu")
    assert caplog.record_tuples == [
        ("pexeso.index", logging.WARNING, f"Searches run on the CPU: {reason}.")
    ]
    for name in ("cuda", "cuda:1"):
        with pytest.raises(DeviceError) as caught:
            open_index(small_index, device=name)
        assert str(caught.value) == (
            f"The device {name} cannot be used: {reason}. Use the device auto or cpu, or mend the "
            "driver."
        )


def test_the_cpu_asked_for_is_nothing_to_tell(small_index, caplog):
    pexeso.build.parts.metadata._log_use_of_the_cpu.cache_clear()
    with caplog.at_level("INFO", logger="pexeso"):
        open_index(small_index, device="cpu")
    assert not caplog.records


@pytest.mark.parametrize(
    "options", [{"max_distance": 2}, {"min_joinability": 0}, {"k": 0}, {"tau": 1}]
)
def test_options_out_of_range_are_refused(index, options):
    with pytest.raises(InputError):
        index.search(PLACES, **options)


def test_one_text_is_no_query_column(index):
    with pytest.raises(QueryError, match="not one text"):
        index.search("Oslo")


def test_a_found_column_is_joined_to_the_users_table(index):
    table = pd.DataFrame({"visits": [3, 1, 2, 5], "city": ["Oslo", "rome", "Xyzzyx", None]})
    joined = index.search(table["city"], min_joinability=0.5)[0].join(table)
    assert joined.columns.tolist() == [
        "visits", "city", "match_value", "match_distance", "cities.csv:city", "country", "people",
    ]  # fmt: skip
    assert joined["country"].tolist()[:2] == ["Norway", "Italy"]
    assert joined["country"].isna().tolist() == [False, False, True, True]
    assert joined["visits"].tolist() == [3, 1, 2, 5]
    assert joined["match_distance"].tolist()[:2] == [0.0, 0.0]


def test_a_join_needs_the_name_of_the_column(index):
    match = index.search(["Oslo"], k=1)[0]
    with pytest.raises(InputError, match="Name the query column"):
        match.join(pd.DataFrame({"a": ["Oslo"]}))
    assert match.join(pd.DataFrame({"a": ["Oslo"]}), on=0)["country"].tolist() == ["Norway"]


def test_a_join_tells_what_it_did(index):
    table = pd.DataFrame({"city": ["Oslo", "oslo", "Xyzzyx"]})
    match = index.search(table["city"], k=1)[0]
    joined = match.join_with_report(table, aggregate={"people": "sum"}, how="inner")
    assert joined.table["people"].tolist() == [717710.0, 717710.0]
    assert (joined.report.rows, joined.report.matched_rows, joined.report.counts) == (3, 2, {})
    with pytest.raises(
        InputError,
        match=r"Join options are values, how, aggregate, suffix, provenance, "
        r"many_to_many\. Got best",
    ):
        match.join_with_report(table, best=True)


def test_a_result_joins_with_its_best_column(index):
    table = pd.DataFrame({"city": ["Oslo", "Rome"]})
    result = index.search(table["city"], min_joinability=0.1)
    assert result.join(table, how="inner").equals(result[0].join(table, how="inner"))
    with pytest.raises(
        InputError, match="No column was found within distance 0, so there is none to join with"
    ):
        index.search(["Xyzzyx"], max_distance=0).join(table, "city")


def test_public_names_lead_here(index):
    assert pexeso.open_index is open_index
    assert isinstance(index, pexeso.Index)
    assert repr(index).endswith((" partitions)", ", 1 partition)"))


def test_an_array_of_numpy_strings_is_a_query(index):
    assert columns_of(index.search(np.array(["Oslo", "Rome"]), k=1)) == [
        ("cities.csv", "city", 2, 2)
    ]


def test_a_match_tells_its_kinds_its_words_and_what_is_left(index):
    match = index.explain(
        ["Oslo", "oslo", "Helsinkii", "Xyzzyx", "--", None], "cities.csv", "city", max_distance=0.5
    ).match
    assert match.kinds().matched == {"exact": 1, "spelling": 1, "meaning": 0}
    assert match.kinds().pairs["exact"] == 1
    assert match.matched == 2
    contributions = match.word_contributions(1)
    assert (contributions.words[0].label, contributions.words[0].share, contributions.n_words) == (
        "helsinkii ~ helsinki",
        0.5,
        2,
    )
    assert [value.query for value in match.unmatched()] == ["Xyzzyx", "--"]
    assert [value.query for value in match.unmatched(1)] == ["Xyzzyx"]
    with pytest.raises(InputError, match=r"A model is named by a text.* Got \['lexical'\]"):
        index.with_model(["lexical"])
    with pytest.raises(InputError, match=r"models must be a list of names\. Got 3\."):
        pexeso.search_combined(index, ["Oslo"], models=3)
    for wrong in (-1, "a", 1.5):
        with pytest.raises(InputError, match=f"limit must be a whole number .* Got {wrong!r}"):
            match.unmatched(wrong)
        with pytest.raises(InputError, match=f"n must be a whole number .* Got {wrong!r}"):
            match.word_contributions(wrong)
    assert match._details.n_unmatched(0) == 2


def test_pairs_of_a_few_columns_can_be_found_alone(index):
    result = index.search(PLACES, k=3)
    result[0]._details.find([1])
    assert list(result[0]._details._tables) == [1]
    assert result[1].pairs() == index.search(PLACES, k=3)[1].pairs()
    assert list(result[0]._details._tables) == [1]
    assert result[0].pairs()[0].query == "Oslo"
    assert sorted(result[0]._details._tables) == [0, 1, 2]


def test_a_search_by_all_methods_keeps_its_snapshot_while_the_index_is_refreshed(
    small_index, monkeypatch
):
    index = open_index(small_index)
    expected = index.search(["Oslo", "Rome", "Madrid"], method="all").to_dict()["results"]
    begin = combined.OverlapList

    def refreshed(*given):
        monkeypatch.setattr(index, "_snapshot", None)  # as that of another generation would be
        return begin(*given)

    monkeypatch.setattr(combined, "OverlapList", refreshed)
    result = index.search(["Oslo", "Rome", "Madrid"], method="all")
    assert index._snapshot is None
    assert result.to_dict()["results"] == expected != []
