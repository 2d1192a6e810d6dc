"""Columns of dates, numbers and codes: near values are others, so equal ones match by default."""

import datetime
import json
import random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pexeso.errors import OutputError
from pexeso.index import build_index
from pexeso.lake.choose import ColumnRules, profile_column
from pexeso.results.query import EXACT_KINDS, exact_kind
from pexeso.semantic.batch_file import run_batch

FORMS = ("%Y-%m-%d", "%d.%m.%Y", "%B %d, %Y", "%d %b %Y")
FIRST = datetime.date(2021, 1, 13)


def days(seed, n):
    return [FIRST + datetime.timedelta(at) for at in random.Random(seed).sample(range(120), n)]


LAKE = {f"weather-{seed}.csv": days(seed, 20) for seed in range(8)}
NUMBERS = {
    f"rooms-{seed}.csv": random.Random(seed).sample(range(100, 190), 20) for seed in range(4)
}


def codes(seed, n):
    """Return codes many of which differ in one character or in the order of two."""
    return [f"AB{at:05d}X" for at in random.Random(seed).sample(range(0, 3000, 9), n)]


CODES = {f"parts-{seed}.csv": codes(seed, 40) for seed in range(6)}


@pytest.fixture(scope="module", params=["lexical", "hashing"])
def index(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "lake").mkdir()
    for number, (name, dates) in enumerate(LAKE.items()):
        cells = [date.strftime(FORMS[number % len(FORMS)]) for date in dates]
        rows = "".join(f'"{cell}",{at}.5\n' for at, cell in enumerate(cells))
        (folder / "lake" / name).write_text(f"day,rain\n{rows}", encoding="utf-8")
    for name, rooms in NUMBERS.items():
        rows = "".join(f"{room},guest {room % 7}\n" for room in rooms)
        (folder / "lake" / name).write_text(f"room,guest\n{rows}", encoding="utf-8")
    for number, (name, values) in enumerate(CODES.items()):
        cells = [code if number % 2 else f" {code.lower()}" for code in values]
        rows = "".join(f"{cell},part {at % 3}\n" for at, cell in enumerate(cells))
        (folder / "lake" / name).write_text(f"code,part\n{rows}", encoding="utf-8")
    rules = ColumnRules(kinds=("text", "date", "number"))
    return build_index(folder / "lake", folder / "index", model=request.param, rules=rules)


def found_in(result, column):
    return {match.table: match.matched for match in result if match.column == column}


def shared(query, lake):
    counts = {name: len(set(query) & set(values)) for name, values in lake.items()}
    return {name: n for name, n in counts.items() if n}


def test_dates_match_where_they_are_equal(index):
    for seed in range(20, 26):
        query = days(seed, 15)
        texts = [date.strftime(FORMS[seed % len(FORMS)]) for date in query]
        result = index.search(texts, k=50, fold_copies=False)
        assert found_in(result, "day") == shared(query, LAKE)
        assert result.options.max_distance == 0.0
        assert result.options.advice.why == "the values are dates, and near dates are other dates."
        [(table, matched), *_] = found_in(result, "day").items()
        explained = index.explain(texts, table, "day")
        assert (explained.match.matched, explained.options.max_distance) == (matched, 0.0)
        [batched] = index.search_batch([texts], k=50, fold_copies=False)
        assert found_in(batched, "day") == shared(query, LAKE)


def test_numbers_match_where_they_are_equal(index):
    query = list(range(120, 150))
    result = index.search(query, k=50, fold_copies=False)
    assert found_in(result, "room") == shared(query, NUMBERS)
    assert result.options.advice.evidence == {"kind": "number"}


def test_codes_match_where_they_are_equal(index):
    query = codes(20, 60)
    result = index.search(query, k=50, fold_copies=False)
    assert found_in(result, "code") == shared(query, CODES)
    assert result.options.advice.why == "the values are codes, and near codes are other codes."
    near = index.search(query, k=50, fold_copies=False, max_distance=0.45)
    # Codes of other numbers are apart in the default model, and near in one of vectors.
    is_equal = found_in(near, "code") == shared(query, CODES)
    assert is_equal == (index.embedder.kind == "lexical")
    joined = result[0].join({"mine": query}, on="mine").to_pandas().dropna(subset="code")
    assert len(joined) == result[0].matched
    assert joined["mine"].tolist() == joined["code"].str.strip().str.upper().tolist()


def test_what_is_asked_for_is_done(index):
    query = ["2021-03-01", "2021-03-02", "2021-03-03"]
    for distance in (0.0, 0.4):
        result = index.search(query, k=5, max_distance=distance)
        assert (result.options.max_distance, result.options.advice) == (distance, None)
    plain = index.search(query).to_dict()
    for options in ({"auto": False}, {"min_precision": None}):
        assert index.search(query, **options).to_dict()["options"] == plain["options"]
    texts = ["guest 1", "guest 2", "March"]
    assert index.search(texts, k=5).options.max_distance == index.usual_max_distance
    advised = index.search(query, auto=True, k=5).options
    assert (advised.max_distance, advised.advice.evidence) == (0.0, {"kind": "date"})
    table = next(iter(LAKE))
    for advice in (
        index.explain(query, table, "day", auto=True).options.advice,
        index.advise(query, table, "day"),
        index.advise(query),
    ):
        assert (advice.max_distance, advice.evidence) == (0.0, {"kind": "date"})


@pytest.mark.parametrize(("column", "lake"), [("day", LAKE), ("code", CODES)])
def test_edges_of_a_graph_are_those_of_searches(index, column, lake):
    edges = index.graph(method="semantic", min_joinability=0.05, fold_copies=False).to_pandas()
    ours = edges[(edges.left_column == column) & (edges.right_column == column)]
    counts = {(edge.left_table, edge.right_table): edge.matched for edge in ours.itertuples()}
    assert counts == {
        (one, other): len(set(left) & set(right))
        for one, left in lake.items()
        for other, right in lake.items()
        if one != other and len(set(left) & set(right)) >= 0.05 * len(left)
    }


def test_a_batch_is_resumed_with_the_distance_it_was_begun_with(index, tmp_path):
    queries = [["2021-03-01", "2021-03-02"], ["guest 1", "guest 2"]]
    lines = [(at, json.dumps({"values": values})) for at, values in enumerate(queries, 1)]
    answers = tmp_path / "answers.jsonl"
    run_batch(index, lines, answers, k=3)
    run = run_batch(index, lines, answers, k=3, resume=True)
    assert (run.earlier, run.failed) == (2, 0)
    with pytest.raises(OutputError, match="made with other options"):
        run_batch(index, lines, answers, k=3, max_distance=0.4, resume=True)


CELLS = [
    None,
    "",
    " ",
    "\u00a0",
    "Oslo",
    "Rome 2",
    "2021-07-14",
    "14 July 2021",
    "7.5 %",
    "12",
    "\u0663",
    "AB-0017",
    "anna@x.org",
    "WWW.x.org",
    "+41 44 123 45 67",
    "NGC 4414",
]


@given(st.lists(st.sampled_from(CELLS), max_size=9))
def test_the_kind_is_that_of_a_column_of_the_lake(cells):
    column = pa.array(cells, pa.string())
    kind = profile_column(column).value_kind
    assert exact_kind(column) == (kind if kind in EXACT_KINDS else None)
