"""What every search gives without being asked: twenty lines, copies folded, hints where none is."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import pexeso
from pexeso.faces.cli.main import cli
from pexeso.faces.service.verbs import Service

WORDS = [
    *("Oslo", "Rome", "Madrid", "Vienna", "Lisbon", "Dublin", "Helsinki", "Athens", "Prague"),
    *("Warsaw", "Budapest", "Brussels", "Paris", "Berlin", "London", "Copenhagen", "Stockholm"),
    *("Tallinn", "Riga", "Vilnius", "Zagreb", "Ljubljana", "Bratislava", "Sofia", "Bucharest"),
]
ODD = ["Quetzal", "Xylophone", "Zirconium", "Wombat", "Vaporware"]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """Index 3 copies of one column, one of them in another order, and 24 columns like no other."""
    lake = tmp_path_factory.mktemp("people") / "lake"
    lake.mkdir()
    for number, words in enumerate((WORDS, WORDS[::-1], [*WORDS[1:], "Bern"])):
        rows = "".join(f"{word},{row},x{row}\n" for row, word in enumerate(words))
        (lake / f"copy{number}.csv").write_text(f"city,rank,code{number}\n{rows}", encoding="utf-8")
    for number in range(24):
        words = [word for place, word in enumerate(WORDS) if place % 24 != number]
        others = [f"{word} {number}" for word in ODD]
        rows = "".join(f"{word}\n" for word in [*words, *others])
        (lake / f"other{number:02}.csv").write_text(f"town\n{rows}", encoding="utf-8")
    (lake / "numbers.csv").write_text("n\n" + "".join(f"{n}\n" for n in range(9)), encoding="utf-8")
    path = tmp_path_factory.mktemp("people_index") / "lake.pexeso"
    return pexeso.build_index(lake, path, parts=["containment"])


def folded(result):
    return {
        f"{match.table}:{match.column}": [copy.table for copy in match.copies] for match in result
    }


ASK = {
    "semantic": lambda index, **more: index.search(WORDS, max_distance=0.05, **more),
    "overlap": lambda index, **more: index.overlap(WORDS, **more),
    "containment": lambda index, **more: index.contain(WORDS, **more),
    "all": lambda index, **more: pexeso.search_combined(index, WORDS, max_distance=0.05, **more),
}


@pytest.mark.parametrize("method", ASK)
def test_every_search_gives_twenty_lines_and_all_when_asked(index, method):
    ask = ASK[method]
    usual, every, apart = ask(index), ask(index, k="all"), ask(index, k="all", fold_copies=False)
    assert (len(usual), len(every), len(apart)) == (20, 25, 27)
    assert [match.table for match in usual] == [match.table for match in every[:20]]
    assert usual.n_more in (None, 5)
    assert (every.n_more, apart.n_more) == (0, 0)
    copies = {"copy0.csv:city": ["copy1.csv", "copy2.csv"]}
    assert {name: tables for name, tables in folded(every).items() if tables} == copies
    assert not any(match.copies for match in apart)
    assert every[0].brings == ("rank", "code0")
    assert every[0].copies[0].brings == ("rank", "code1")
    assert len(ask(index, k=3)) == 3
    assert usual.to_pandas()["n_copies"].tolist() == [2] + [0] * 19
    assert "n_copies" not in apart.to_pandas()


def test_numbers_of_numpy_are_told_as_plain_json(index):
    k, yes, share = np.int64(3), np.True_, np.float32(0.5)
    for result in (
        index.search(WORDS, method="all", k=k, min_joinability=share, fold_copies=yes),
        index.search(WORDS, method="containment", k=k, min_joinability=share, verify=yes),
        index.graph(method="semantic", k=k, min_joinability=share, max_distance=share),
        index.graph(method="overlap", k=k, fold_copies=yes),
        index.acquire({"city": WORDS}, columns="city", max_seconds=np.float32(60), k=k),
    ):
        document = result.to_dict()
        assert json.loads(json.dumps(document)) == document


def test_batches_and_json_give_the_same(index):
    [in_batch] = index.search_batch([WORDS], max_distance=0.05)
    assert folded(in_batch) == folded(ASK["semantic"](index))
    assert in_batch.n_more == 5
    [overlap] = index.overlap_batch([WORDS])
    assert folded(overlap) == folded(ASK["overlap"](index))
    request = {"verb": "batch", "index": str(index.path), "queries": [{"values": WORDS}]}
    [answer] = Service().answer({**request, "max_distance": 0.05})["answers"]
    first = answer["results"][0]
    assert (len(answer["results"]), answer["n_more"]) == (20, 5)
    assert [copy["table"] for copy in first["copies"]] == ["copy1.csv", "copy2.csv"]
    assert first["brings"] == ["rank", "code0"]
    [answer] = Service().answer({**request, "max_distance": 0.05, "k": "all"})["answers"]
    assert len(answer["results"]) == 25


def test_where_nothing_is_found_the_nearest_and_what_is_left_out_are_told(index):
    query = [*ODD, *WORDS[:2]]
    result = index.search(query, max_distance=0.05)
    assert not len(result)
    hints = result.hints()
    assert [(near.matched, near.total) for near in hints.nearest] == [(2, 7)] * 3
    assert all(near.max_distance == 0.05 for near in hints.nearest)
    assert any(group.reason == "numbers" for group in hints.left_out)
    contained = index.contain(query).hints()
    assert [(near.matched, near.max_distance) for near in contained.nearest] == [(2, None)] * 3
    document = Service().answer(
        {"verb": "search", "index": str(index.path), "query": query, "max_distance": 0.05}
    )
    assert len(document["hints"]["nearest"]) == 3
    assert ASK["semantic"](index).hints().nearest == ()
    assert not index.search([]).hints().nearest


def test_the_command_line_says_it(index, tmp_path):
    mine = tmp_path / "mine.csv"
    mine.write_text("place\n" + "".join(f"{word}\n" for word in WORDS), encoding="utf-8")

    def shown(*options):
        arguments = ["search", str(index.path), f"{mine}:place", "--max-distance", "0.05", *options]
        return CliRunner().invoke(cli, arguments, prog_name="pexeso")

    lines = shown().stdout.splitlines()
    assert lines[0].split() == [
        *("similarity", "joinability", "matched", "table", "column", "copies", "brings")
    ]
    assert "copy0.csv" in lines[1]
    assert lines[1].endswith("+2  rank, code0")
    assert lines[21:] == [
        "and 5 more columns (-k 40, or -k all)",
        "copies hold the same values, or nearly (--no-fold-copies lists each)",
    ]
    assert shown().stderr.startswith("20 of 25 columns in ")
    assert len(shown("-k", "all", "--no-fold-copies").stdout.splitlines()) == 28
    explained = shown("--explain", "--pairs", "1").stdout
    assert "    same values: copy1.csv:city, copy2.csv:city\n" in explained
    assert json.loads(shown("--json").stdout)["n_more"] == 5
    csv = shown("--csv").stdout.splitlines()
    assert (
        csv[0] == "table,column,joinability,matched,total,joinability_of,n_copies,brings,similarity"
    )
    assert ",2,rank; code0," in csv[1]

    mine.write_text("place\n" + "".join(f"{word}\n" for word in [*ODD, *WORDS[:2]]))
    nothing = shown()
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert "\nNearest:\n" in nothing.stderr
    assert "28.6 %      2/7" in nothing.stderr
    assert (
        "Columns of numbers join by equal values: pexeso search --method overlap." in nothing.stderr
    )
