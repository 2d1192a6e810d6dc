"""An index and its results in other processes: forked, spawned, pickled, copied."""

import copy
import os
import pickle
import shutil
import sys

import pandas as pd
import pytest
import torch
from processes import ran

import pexeso
from pexeso.errors import DeviceError, IndexNotFoundError, StoredIndexError
from pexeso.semantic.partition_loader import PartitionLoader

PLACES = ["Oslo", "rome", " MADRID ", "Oslo", None, "Xyzzyx", "Romme"]

PROGRAM = """
import multiprocessing, sys
import torch
import pexeso

COLUMNS = [[f"{city} {number} {row}" for row in range(20) for city in ("Oslo", "Rome")] \
for number in range(40)]

def searched(index):
    results = [*index.search_batch([*COLUMNS, ["Oslo", "Rome"]], k=3), \
*index.search_batch([["Oslo"]], rerank=False)]
    results.append(index.overlap(["Oslo", "Rome"]))
    return [[(match.table, match.column) for match in result] for result in results]

def told(result):
    return [
        (match.table, match.pairs(), match.unmatched(), match.word_contributions(), \
match.join_with_report({table}).table.shape)
        for match in result
    ]

if __name__ == "__main__":
    torch.set_num_threads(2)  # those of the parent that a forked process does not have
    method, path, kernel = sys.argv[1:]
    index = pexeso.open_index(path, device="cpu", kernel=kernel)
    found = index.search(["Oslo", "rome", "Xyzzyx"], k=3)
    here = searched(index), told(found)
    with multiprocessing.get_context(method).Pool(2) as pool:
        there = pool.map(searched, [index] * 3, chunksize=1), \
pool.map(told, [found] * 3, chunksize=1)
    assert any(here[0]) and all(here[1])
    assert there == ([here[0]] * 3, [here[1]] * 3)
    assert searched(index) == here[0]
    print("the same")
""".replace("{table}", "__import__('pandas').DataFrame({'place': ['Oslo', 'rome']}), 'place'")


@pytest.fixture(scope="module")
def index(small_index):
    return pexeso.open_index(small_index, device="cpu")


def plain(result):
    document = result.to_dict(explain=True)
    return {name: value for name, value in document.items() if name != "stats"}


@pytest.mark.parametrize(
    ("method", "kernel"),
    [("fork", "compiled"), pytest.param("spawn", "auto", marks=pytest.mark.long)],
)
def test_other_processes_search_and_show_results(small_index, tmp_path, method, kernel):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    done = ran(
        [
            sys.executable,
            "-W",
            "ignore::DeprecationWarning",
            str(program),
            method,
            str(small_index),
            kernel,
        ],
        variables={"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
        timeout=180,
    )
    assert (done.returncode, done.stdout) == (0, "the same\n"), done.stderr


def test_a_forked_process_refuses_a_device_of_its_parent(index, monkeypatch):
    loader = PartitionLoader(
        index.store, None, torch.device("cuda"), None, index._opened.loader.kernel
    )
    loader.require_room()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(
        DeviceError, match="a forked process cannot use it: open the index with device='cpu'"
    ):
        loader.require_room()


def test_a_sent_index_opens_its_path_with_the_options_it_had(small_index, monkeypatch):
    monkeypatch.chdir(small_index.parent)
    index = pexeso.open_index(
        small_index.name, device="cpu", memory_budget="200MiB", kernel="torch"
    )
    expected, sent = plain(index.search(PLACES, k=3)), pickle.dumps(index)
    monkeypatch.chdir("/")
    opened = pickle.loads(sent)
    assert opened.path == small_index
    assert opened._opened.options == index._opened.options
    assert plain(opened.search(PLACES, k=3)) == expected
    assert len(sent) < 1000


def test_a_sent_index_that_is_not_there_says_so(small_index, tmp_path):
    index = pexeso.open_index(shutil.copytree(small_index, tmp_path / "gone.pexeso"), device="cpu")
    sent = pickle.dumps(index)
    shutil.rmtree(index.path)
    with pytest.raises(IndexNotFoundError, match="There is no index at"):
        pickle.loads(sent)


@pytest.mark.parametrize("asked_before", [False, True])
@pytest.mark.parametrize(
    "ask",
    [
        lambda index: index.search(PLACES, k=3),
        lambda index: index.search(PLACES, k=3, rerank=False),
        lambda index: index.search(PLACES, auto=True),
        lambda index: index.overlap(PLACES, k=3),
        lambda index: index.contain(PLACES[:4], min_containment=0.1),
        lambda index: pexeso.search_combined(index, PLACES, k=3),
    ],
    ids=["search", "no rerank", "auto", "overlap", "contain", "every way"],
)
def test_results_are_sent_and_copied_with_what_can_be_asked_of_them(index, ask, asked_before):
    result = ask(index)
    if asked_before:
        plain(result)
    others = [pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)]
    expected = plain(result)
    assert expected["results"]
    assert [plain(other) for other in others] == [expected] * 3
    assert all(other == result for other in others)


def test_a_joined_table_is_sent_with_its_report(index):
    mine = pd.DataFrame({"place": ["Oslo", "rome", "Oslo", "nowhere"]})
    joined = index.search(PLACES, k=1)[0].join_with_report(mine, "place")
    sent = pickle.loads(pickle.dumps(joined))
    assert sent.table.equals(joined.table)
    assert sent.report.to_dict() == joined.report.to_dict()
    assert sent.report.matched_rows == 3


def test_a_sent_result_makes_pages(index):
    result = index.search(PLACES, k=2)
    opened = pickle.loads(pickle.dumps(result))
    assert opened.to_html() == result.to_html()
    assert opened._repr_html_() == result._repr_html_()


def test_an_explanation_advice_and_information_are_sent(index):
    explanation = index.explain(PLACES, "cities.csv", "city")
    sent = pickle.loads(pickle.dumps(explanation))
    assert sent.to_dict() == explanation.to_dict()
    assert sent.to_html() == explanation.to_html()
    for one in (index.advise(), index.info(), index.search_options({"auto": True})):
        assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == one


def test_a_sent_result_keeps_pairs_that_were_asked_for_and_misses_others(small_index, tmp_path):
    index = pexeso.open_index(shutil.copytree(small_index, tmp_path / "gone.pexeso"), device="cpu")
    result, other = index.search(PLACES, k=1), index.search(PLACES, k=1)
    pairs = result[0].pairs()
    sent = pickle.dumps((result, other))
    shutil.rmtree(index.path)
    result, other = pickle.loads(sent)
    assert result[0].pairs() == pairs
    with pytest.raises(StoredIndexError, match="There is no index at"):
        other[0].pairs()


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy])
def test_a_copied_index_shares_the_snapshot_and_refreshes_by_itself(index, way):
    other = way(index)
    assert other is not index
    assert other._opened is index._opened
    assert plain(other.search(PLACES)) == plain(index.search(PLACES))
