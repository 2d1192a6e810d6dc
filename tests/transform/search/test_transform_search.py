"""Search for columns that join after a learned program: a lake with planted columns and decoys."""

from __future__ import annotations

import csv
import io
import json
import random

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from pexeso.errors import InputError
from pexeso.faces.cli.main import cli
from pexeso.index import build_index, open_index
from pexeso.semantic.open_index import open_without_models
from pexeso.transform.search.candidates import QueryGrams, find_candidates, order_of
from pexeso.transform.search.searches import TransformSearches

FIRST = [
    *("Suhela", "Maureen", "Carolyn", "Kelly", "Missy", "Barack", "Ronald", "Bill", "George"),
    *("Ingrid", "Tomás", "Zoë", "Akira", "Farid", "Wanjiru", "Pedro", "Olga", "Niamh", "Rajesh"),
]
LAST = [
    *("Chowdhury", "Paluzzi", "Craddock", "Moore", "Payne", "Obama", "Reagan", "Clinton", "Bush"),
    *("Nordahl", "Quiroga", "Lindqvist", "Tanaka", "Haddad", "Kamau", "Almeida", "Petrova"),
    *("Gallagher", "Srinivasan", "Vestergaard"),
]
_drawn = random.Random(3)
NAMES = [
    f"{first} {last}"
    for first, last in zip(
        _drawn.sample(FIRST * 4, 60), _drawn.sample([*LAST, *LAST, *LAST], 60), strict=True
    )
]
NAMES = list(dict.fromkeys(NAMES))[:50]
PLANTED = {
    ("mails.csv", "address"): "source to target",
    ("register.csv", "person"): "target to source",
    ("pages/wiki.csv", "url"): "source to target",
}
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "October"]
WORDS = [
    *("amber", "birch", "cedar", "dune", "ember", "fjord", "grove", "heath", "isle", "juniper"),
    *("knoll", "lagoon", "mesa"),
]


def _table(columns: dict[str, list[str]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def _shuffled(values: list[str], seed: int) -> list[str]:
    return random.Random(seed).sample(values, len(values))


def _address(name: str) -> str:
    first, last = name.split()
    return f"{last}.{first}@corp.example"


def _person(name: str, number: int) -> str:
    first, last = name.split()
    return f"{last}, {first} ({1930 + number}-)"


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    drawn = random.Random(11)
    folder = tmp_path_factory.mktemp("planted") / "lake"
    mails = [_address(name) for name in NAMES]
    others = [
        "".join(drawn.choices("bcdfglmnprst", k=6)) + " " + "".join(drawn.choices("aeiourst", k=7))
        for _ in range(50)
    ]
    tables = {
        "mails.csv": {"address": _shuffled(mails, 1), "floor": [f"f{at % 7}" for at in range(50)]},
        "old/mails.csv": {"mail": _shuffled(mails, 2)},
        "register.csv": {
            "person": [_person(name, at) for at, name in enumerate(_shuffled(NAMES, 3)[:40])],
            "seat": [f"{drawn.choice(WORDS)} {drawn.choice(WORDS)}" for _ in range(40)],
        },
        "pages/wiki.csv": {
            "url": [f"https://wiki.example/{n.replace(' ', '_')}" for n in _shuffled(NAMES, 4)],
            "views": [str(drawn.randint(10, 10**6)) for _ in range(50)],
        },
        # Decoys: equal names alone, other names, words, mails of others.
        "staff.csv": {"name": NAMES, "team": [drawn.choice(WORDS) for _ in NAMES]},
        "others.csv": {
            "name": others,
            "mail": [f"{'.'.join(reversed(n.split()))}@corp.example" for n in others],
        },
        "places.csv": {
            "place": [" ".join(drawn.sample(WORDS, 3)) for _ in range(60)],
            "code": ["".join(drawn.choices("ABCDEF0123456789", k=8)) for _ in range(60)],
        },
    }
    for name, columns in tables.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_table(columns), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def path(lake, tmp_path_factory):
    out = tmp_path_factory.mktemp("planted_index") / "lake.pexeso"
    return build_index(lake, out, n_partitions=2, parts=["overlap"]).path


@pytest.fixture(scope="module")
def index(path):
    return open_index(path)


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    file = tmp_path_factory.mktemp("query") / "people.csv"
    columns = {"name": NAMES, "first": [name.split()[0] for name in NAMES]}
    columns["last"] = [name.split()[1] for name in NAMES]
    file.write_text(_table(columns), encoding="utf-8")
    return file


def test_exactly_the_planted_columns_are_found(index):
    result = index.search(NAMES, method="transform")
    assert {(match.table, match.column): match.direction for match in result} == PLANTED
    assert [match.matched for match in result] == [50, 50, 40]
    assert [match.table for match in result] == ["mails.csv", "pages/wiki.csv", "register.csv"]
    assert [match.joinability for match in result] == [1.0, 1.0, 0.8]
    assert (result.query["values"], result.n_more) == (50, 0)
    assert all(match.equal == 0 and match.total == 50 for match in result)


def test_the_pairs_are_right(index):
    by_table = {match.table: match for match in index.search(NAMES, method="transform")}
    pairs = by_table["mails.csv"].pairs()
    assert sorted(pairs) == sorted((name, _address(name), "program") for name in NAMES)
    for mine, theirs, kind in by_table["register.csv"].pairs():
        last, first = theirs.split(" (")[0].split(", ")
        assert (mine, kind) == (f"{first} {last}", "program")


def test_a_program_is_shown_in_words_sql_and_python(index):
    match = index.search(NAMES, method="transform")[0]
    assert '"@corp.example"' in match.program
    assert match.sql().count("@corp.example") == match.sql("spark").count("@corp.example") == 1
    named: dict = {}
    exec(match.python, named)
    assert named["transform"]({"value": "Ada Lovelace"}) == "Lovelace.Ada@corp.example"


def test_the_other_way_round(index):
    mails = [_address(name) for name in NAMES[:30]]
    result = index.search(mails, method="transform")
    assert ("staff.csv", "name") in {(match.table, match.column) for match in result}
    assert ("others.csv", "name") not in {(match.table, match.column) for match in result}
    assert ("mails.csv", "address") not in {(match.table, match.column) for match in result}


def test_copies_are_folded_unless_asked_not_to(index):
    first = index.search(NAMES, method="transform")[0]
    assert [(copy.table, copy.column) for copy in first.copies] == [("old/mails.csv", "mail")]
    every = index.search(NAMES, method="transform", fold_copies=False)
    assert [match.table for match in every] == [
        "mails.csv",
        "old/mails.csv",
        "pages/wiki.csv",
        "register.csv",
    ]


def test_how_many_more_there_are_does_not_depend_on_how_many_are_wanted(tmp_path):
    folder = tmp_path / "lake"
    folder.mkdir()
    urls = [f"https://wiki.example/{name.replace(' ', '_')}" for name in NAMES]
    tables = {
        "mails.csv": {"address": [_address(name) for name in NAMES]},
        "urls.csv": {"url": urls},
        "urls_once.csv": {"url": urls[:48]},
    }
    for name, columns in tables.items():
        (folder / name).write_text(_table(columns), encoding="utf-8")
    index = open_index(build_index(folder, tmp_path / "lake.pexeso").path)
    for k, n_more in (("all", 0), (2, 0), (1, 1)):
        result = index.search(NAMES, method="transform", k=k)
        assert (len(result), result.n_more) == (2 - n_more, n_more)
    assert len(index.search(NAMES, method="transform", fold_copies=False)) == 3


def test_what_a_join_brings(index):
    assert index.search(NAMES, method="transform")[0].brings == ("floor",)


def test_k_and_the_smallest_joinability(index):
    result = index.search(NAMES, method="transform", k=1)
    assert (len(result), result.n_more) == (1, 2)
    assert len(index.search(NAMES, method="transform", min_joinability=0.9)) == 2


def test_fewer_candidates_are_those_that_share_most(index):
    few = np.int64(2)  # a number of NumPy is as good
    result = index.search(NAMES, method="transform", max_candidates=few, fold_copies=False)
    assert result.stats["candidates"] == 2
    assert {match.table for match in result} <= {"mails.csv", "old/mails.csv", "pages/wiki.csv"}


def test_candidates_do_not_depend_on_how_values_lie_in_partitions(index):
    """Programs are learned from examples in their order, so an update must not change it."""
    query = QueryGrams.of(pa.array(NAMES, pa.large_string()))
    columns, _ = find_candidates(index.store, query, 100)
    assert {(column.table, column.label) for column in columns} >= set(PLANTED)
    for column in columns:
        turned = column.texts[::-1]
        assert turned.take(pa.array(order_of(turned))).equals(column.texts)
    [mails] = [column for column in columns if column.table == "mails.csv"]
    right = {_address(name): name for name in NAMES}
    pairs = list(zip(*mails.pairs(query.texts), strict=True))
    assert len(pairs) == 50
    assert sum(right[theirs] == mine for mine, theirs in pairs) > 40


def test_the_own_table_is_left_out_when_asked(index, lake):
    from pexeso.results.query import read_query

    query = read_query(lake / "mails.csv", "address")
    result = index.search(query, method="transform", exclude_self=True, fold_copies=False)
    assert result.options["exclude_table"] == "mails.csv"
    assert all(match.table != "mails.csv" for match in result)


def test_deleted_tables_are_not_found(path, tmp_path):
    import shutil

    from pexeso.build.updates import delete

    copy = shutil.copytree(path, tmp_path / "copy.pexeso")
    delete(copy, ["mails.csv", "register.csv"])
    result = open_index(copy).search(NAMES, method="transform")
    assert [match.table for match in result] == ["old/mails.csv", "pages/wiki.csv"]


@pytest.mark.parametrize(
    "values",
    [
        [],
        [None, "", "  "],
        ["same"] * 30,
        ["one row"],
        list(range(40)),
        ["x" * 100_000 + str(at) for at in range(5)],
        ["\x00\x1b\u0301" + str(at) for at in range(20)],
        [f"שלום עולם {at}" for at in range(20)],
        [f"東京都{at}号" for at in range(20)],
        ["٣٤٥", "🤷🏽‍♀️", "é", "e\u0301"] * 5,
    ],
)
def test_queries_that_nothing_is_learned_from(index, values):
    result = index.search(values, method="transform")
    assert len(result) == 0
    assert result.hints().nearest == ()


def test_the_same_days_of_another_year_are_no_join(tmp_path):
    folder = tmp_path / "lake"
    folder.mkdir()
    every = [f"{month} {day}" for month in MONTHS for day in range(1, 29)]
    days = random.Random(4).sample(every, 24)
    held = {"day": [f"{day}, 1998" for day in days], "short": days}
    (folder / "days.csv").write_text(_table(held), encoding="utf-8")
    index = open_index(build_index(folder, tmp_path / "lake.pexeso").path)
    result = index.search([f"{day}, 2007" for day in days], method="transform")
    assert {match.column for match in result} == {"short"}


def test_shuffled_letters_are_joined_by_nothing(index):
    drawn = random.Random(5)
    for _ in range(20):
        query = ["".join(drawn.sample(name, len(name))) for name in NAMES]
        assert len(index.search(query, method="transform")) == 0


def test_the_same_answer_for_rows_in_another_order_and_repeated(index):
    plain = index.search(NAMES, method="transform")
    other = index.search(_shuffled(NAMES * 2, 9), method="transform")
    named = [(match.table, match.column, match.matched, match.total) for match in plain]
    assert named == [(match.table, match.column, match.matched, match.total) for match in other]


def test_other_methods_under_one_name(index):
    by_overlap = index.search(NAMES, method="overlap", k=3)
    assert by_overlap.to_dict()["results"] == index.overlap(NAMES, k=3).to_dict()["results"]
    assert index.search(NAMES, method="semantic", k=2).matches == index.search(NAMES, k=2).matches
    combined = index.search(NAMES, method="all", k=10)
    by_name = {(match.table, match.column): match for match in combined}
    assert by_name["mails.csv", "address"].found_by[-1] == "transform"
    assert by_name["mails.csv", "address"].share == 1.0
    assert by_name["staff.csv", "name"].transform is None
    document = by_name["mails.csv", "address"].to_dict(explain=True)
    assert document["transformed"] == 1.0
    assert len(document["transform"]["pairs"]) == 50
    semantic = {(e.table, e.column): e.meaning for e in combined if e.meaning is not None}
    for match in index.search(NAMES, k=10):
        assert semantic[match.table, match.column] == match


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "nearness"}, "method must be one of semantic, overlap, containment, transform"),
        ({"method": "transform", "max_candidates": 0}, "max_candidates must be a whole number"),
        ({"method": "transform", "max_candidates": True}, "max_candidates must be a whole number"),
        ({"method": "transform", "seed": -1}, "seed must be a whole number of at least 0"),
        ({"method": "transform", "k": 0}, "k must be"),
        ({"method": "transform", "min_joinability": 2}, "min_joinability must be"),
        ({"method": "transform", "max_distance": 0.1}, "has the options k, min_joinability"),
    ],
)
def test_options_that_are_refused(index, options, words):
    with pytest.raises(InputError) as refused:
        index.search(NAMES, **options)
    assert words in str(refused.value)


def run(*arguments):
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], prog_name="pexeso")


def test_the_command_line(path, people):
    arguments = ("search", path, f"{people}:name", "--method", "transform")
    shown = run(*arguments)
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    names = "joinability joined table column program copies brings"
    assert lines[0].split() == names.split()
    assert lines[1].split()[:5] == ["100.0", "%", "50/50", "mails.csv", "address"]
    assert "learned from" in shown.stderr
    explained = run(*arguments, "--explain", "--pairs", 2, "-k", 1).stdout
    assert "    reads yours: " in explained
    assert "    and 48 more pairs (--pairs all)" in explained
    document = json.loads(run(*arguments, "--json", "--explain").stdout)
    assert [match["table"] for match in document["results"]] == [
        "mails.csv",
        "pages/wiki.csv",
        "register.csv",
    ]
    assert len(document["results"][0]["pairs"]) == 50
    assert document["results"][0]["copies"][0]["table"] == "old/mails.csv"
    rows = list(csv.DictReader(io.StringIO(run(*arguments, "--csv").stdout)))
    assert [row["matched"] for row in rows] == ["50", "50", "40"]
    pairs = list(csv.DictReader(io.StringIO(run(*arguments, "--csv", "--explain").stdout)))
    assert len(pairs) == 140
    assert {row["joined"] for row in pairs} == {"program"}


def test_nothing_found_is_told(path, tmp_path):
    file = tmp_path / "odd.csv"
    file.write_text("code\nzzqx1\nqqzv2\nxxjw3\n", encoding="utf-8")
    said = run("search", path, f"{file}:code", "--method", "transform")
    assert (said.exit_code, said.stdout) == (0, "")
    assert said.stderr.startswith("No program joins a column with yours: ")


def test_every_column_of_a_table(path, people):
    done = run("search", path, people, "--all-columns", "--method", "transform", "--json")
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    assert [document["query"]["column"] for document in documents] == ["name", "first", "last"]


def test_models_are_not_needed(path):
    result = TransformSearches(open_without_models(path)).search(NAMES)
    assert {(match.table, match.column) for match in result} == set(PLANTED)
