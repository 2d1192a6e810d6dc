"""Searches follow judgements: compared with the pairs of a search without, vetoed and accepted."""

import random
from dataclasses import replace
from itertools import product

import pyarrow as pa
import pytest

import pexeso
from pexeso.lake.judgements import Judgement, record_judgements
from pexeso.results.query import QueryColumn

WORDS = [
    *(
        "Oslo",
        "Rome",
        "Paris",
        "Berlin",
        "Madrid",
        "Lisbon",
        "Vienna",
        "Prague",
        "Warsaw",
        "Dublin",
    ),
    *("Oslo City", "Roma", "Pariss", "Berlln", "Madrid Spain", "Lisboa", "Viena", "Praha"),
]
QUERY = ["Oslo", "Rome", "Paris", "Berlin", "Madrid", "Lisbon", "Nowhere", "Oslo"]
FAR = ["Timbuktu", "Kathmandu", "Ulaanbaatar", "Xining", "Zhytomyr"]
TABLES = [f"t{number}.csv" for number in range(8)]


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judged") / "lake"
    folder.mkdir()
    draw = random.Random(5)
    columns = {}
    for table in TABLES:
        columns[table] = draw.sample(WORDS, draw.randint(5, 10))
        rows = "".join(f"{value}\n" for value in columns[table])
        (folder / table).write_text(f"place\n{rows}")
    (folder / "far.csv").write_text("place\n" + "".join(f"{name}\n" for name in FAR))
    columns["far.csv"] = FAR
    query = folder.parent / "mine.csv"
    query.write_text("city\n" + "".join(f"{value}\n" for value in QUERY))
    return folder, columns, query


@pytest.fixture(scope="module")
def built(lake, tmp_path_factory):
    path = tmp_path_factory.mktemp("judged") / "lake.pexeso"
    return pexeso.build_index(lake[0], path, parts=("overlap", "containment"), n_partitions=2)


@pytest.fixture
def index(built):
    yield built
    (built.path / "judgements.csv").unlink(missing_ok=True)


def query_of(lake):
    from pexeso.results.query import read_query

    return read_query(f"{lake[2]}:city")


def pairs_of(index, query) -> dict[str, set[tuple[str, str]]]:
    result = index.search(query, k="all", min_joinability=0.01, fold_copies=False)
    return {match.table: {(pair.query, pair.value) for pair in match.pairs()} for match in result}


def expected(pairs, columns, judgements) -> dict[str, set[tuple[str, str]]]:
    """Return the pairs of each column that is found, by brute force."""
    answer = {}
    verdicts = {}
    for row in sorted(judgements, key=lambda row: bool(row.lake_table)):
        tables = [row.lake_table] if row.lake_table else columns
        for table in tables:
            verdicts[table, row.your_value, row.lake_value] = row.verdict
            if not row.lake_table:
                verdicts[table, row.lake_value, row.your_value] = row.verdict
    for table, values in columns.items():
        if verdicts.get((table, "", "")) == "no":
            continue
        answer[table] = {
            (ours, theirs)
            for ours, theirs in product(QUERY, values)
            if verdicts.get((table, ours, theirs), "") != "no"
            and (
                (ours, theirs) in pairs.get(table, ())
                or verdicts.get((table, ours, theirs)) == "yes"
            )
        }
    return answer


def judged(table: str, ours: str = "", theirs: str = "", verdict: str = "no") -> Judgement:
    columns = ("mine.csv", "city", table, "place") if table else ("", "", "", "")
    return Judgement(*columns, ours, theirs, verdict)


def drawn(seed: int, columns) -> list[Judgement]:
    draw = random.Random(seed)
    rows = [judged(draw.choice(TABLES)) for _ in range(seed % 3)]
    for _ in range(12):
        table = draw.choice([*TABLES, "far.csv"])
        verdict = draw.choice(["yes", "no", "no"])
        rows.append(judged(table, draw.choice(QUERY), draw.choice(columns[table]), verdict))
    equal = [(table, value) for table in TABLES for value in columns[table] if value in QUERY]
    rows += [judged(table, value, value) for table, value in draw.sample(equal, 3)]
    if seed % 2:
        rows.append(judged("", draw.choice(QUERY), draw.choice(WORDS), draw.choice(["yes", "no"])))
    # One row of each pair: which of several holds is another test's matter.
    return list({replace(row, verdict="unsure"): row for row in rows}.values())


def matched(answer, *, rows: bool = False) -> list[tuple[int, str]]:
    counts = {
        table: sum(ours in {one for one, _ in pairs} for ours in (QUERY if rows else set(QUERY)))
        for table, pairs in answer.items()
    }
    return sorted((-count, table) for table, count in counts.items() if count)


@pytest.mark.parametrize("seed", range(6))
def test_searches_agree_with_brute_force(index, lake, seed):
    _, columns, _ = lake
    query = query_of(lake)
    pairs = pairs_of(index, query)
    judgements = drawn(seed, columns)
    record_judgements(index.path, judgements)
    answer = expected(pairs, columns, judgements)
    result = index.search(query, k="all", min_joinability=0.01, rerank=False, fold_copies=False)
    assert sorted((-match.matched, match.table) for match in result) == matched(answer)
    for match in result:
        assert {(pair.query, pair.value) for pair in match.pairs()} == answer[match.table]
    for options in (
        {"k": 3},
        {"k": "all", "min_joinability": 0.4},
        {"k": "all", "min_joinability": 0.01, "exact": True},
        {"k": 4, "joinability_of": "rows"},
    ):
        result = index.search(query, rerank=False, fold_copies=False, **options)
        rows = options.get("joinability_of") == "rows"
        best = matched(answer, rows=rows)
        if options.get("min_joinability") == 0.4:
            best = [(count, table) for count, table in best if -count / len(set(QUERY)) >= 0.4]
        if options["k"] != "all":
            best = best[: options["k"]]
        assert [(-match.matched, match.table) for match in result] == best


def test_several_columns_at_once_have_judgements_of_their_own(index, lake):
    _, columns, _ = lake
    query = query_of(lake)
    pairs = pairs_of(index, query)
    judgements = drawn(4, columns)
    record_judgements(index.path, judgements)
    plain = replace(query, file=None)
    options = {"k": "all", "min_joinability": 0.01, "rerank": False, "fold_copies": False}
    with_name, without = index.search_batch([query, plain], **options)
    ranked = [
        sorted((-match.matched, match.table) for match in result) for result in (with_name, without)
    ]
    assert ranked[0] == matched(expected(pairs, columns, judgements))
    assert ranked[1] == matched(pairs)
    assert ranked[0] != ranked[1]


@pytest.mark.parametrize("seed", range(4))
def test_equal_values_agree_with_brute_force(index, lake, seed):
    _, columns, _ = lake
    query = query_of(lake)
    judgements = drawn(seed, columns)
    record_judgements(index.path, judgements)
    equal = {
        table: {(value, value) for value in values if value in QUERY}
        for table, values in columns.items()
    }
    best = matched(expected(equal, columns, judgements))
    result = index.search(query, method="overlap", k="all", fold_copies=False)
    assert sorted((-match.overlap, match.table) for match in result) == best
    result = index.search(query, method="overlap", k=2, fold_copies=False)
    assert [(-match.overlap, match.table) for match in result] == best[:2]
    (batch,) = index.overlap_batch([query], k="all", fold_copies=False)
    assert sorted((-match.overlap, match.table) for match in batch) == best
    share = 2 / len(set(QUERY))
    result = index.search(
        query, method="containment", k="all", min_joinability=share, fold_copies=False
    )
    assert sorted((-match.overlap, match.table) for match in result) == [
        entry for entry in best if -entry[0] >= 2
    ]


@pytest.mark.parametrize("method", ["semantic", "overlap", "containment", "transform", "all"])
def test_a_rejected_join_is_found_by_no_method(index, lake, method):
    query = query_of(lake)
    options = {"min_joinability": 0.01} if method in ("semantic", "containment", "all") else {}
    table = (
        index.search(query, method=method, k="all", **options)[0].table
        if (method != "transform")
        else TABLES[0]
    )
    record_judgements(index.path, [judged(table)])
    found_tables = {
        one.table
        for match in index.search(query, method=method, k="all", **options)
        for one in (match, *match.copies)
    }
    assert table not in found_tables
    record_judgements(index.path, [judged(table, verdict="yes")])
    again = index.search(query, method=method, k="all", **options)
    if method != "transform":
        assert table in {one.table for match in again for one in (match, *match.copies)}


@pytest.mark.parametrize("method", ["overlap", "semantic"])
def test_a_rejected_pair_is_no_edge_in_either_direction(index, method):
    options = {"method": method, "k": 2, "min_joinability": 0.1, "fold_copies": False}
    every = index.graph(**{**options, "k": "all"}).rows()
    edge = index.graph(**options).rows()[0]
    ends = [(edge["left_table"], edge["left_column"]), (edge["right_table"], edge["right_column"])]
    record_judgements(index.path, [Judgement(*ends[1], *ends[0], verdict="no")])
    left = [
        row
        for row in every
        if {row["left_table"], row["right_table"]} != {edge["left_table"], edge["right_table"]}
    ]
    assert index.graph(**{**options, "k": "all"}).rows() == left
    best = {}
    for row in left:
        best.setdefault((row["left_table"], row["left_column"]), []).append(row)
    kept = [row for rows in best.values() for row in rows[:2]]
    assert index.graph(**options).rows() == kept


def test_an_accepted_value_joins_and_a_rejected_one_does_not(index, lake):
    import pandas as pd

    query = query_of(lake)
    table = pd.DataFrame({"city": QUERY})
    rows = [
        judged("far.csv", "Nowhere", "Timbuktu", "yes"),
        judged("far.csv", "Rome", "Kathmandu", "yes"),
        judged("far.csv", "Rome", "Kathmandu", "no"),
    ]
    record_judgements(index.path, rows)
    explanation = index.explain(query, "far.csv", "place")
    assert [
        (pair.query, pair.value, pair.kind, pair.distance) for pair in explanation.match.pairs()
    ] == [("Nowhere", "Timbuktu", "alias", 0.0)]
    joined = explanation.match.join(table, on="city", how="inner")
    assert joined[["city", "place"]].values.tolist() == [["Nowhere", "Timbuktu"]]


def test_an_alias_is_preferred_to_a_nearer_spelling(index, lake):
    _, columns, _ = lake
    query = query_of(lake)
    table = next(name for name, values in columns.items() if "Oslo" in values and "Roma" in values)
    record_judgements(index.path, [judged(table, "Oslo", "Roma", "yes")])
    first = index.explain(query, table, "place").match.pairs()[0]
    assert (first.query, first.value, first.kind) == ("Oslo", "Roma", "alias")


def test_an_open_index_follows_the_file_at_once(index, lake):
    query = index.encode(query_of(lake))  # which the app keeps
    options = {"min_joinability": 0.01, "rerank": False, "fold_copies": False}
    before = [match.table for match in index.search_batch([query], **options)[0]]
    record_judgements(index.path, [judged(before[0])])
    assert [match.table for match in index.search_batch([query], **options)[0]] == before[1:]
    (index.path / "judgements.csv").unlink()
    assert [match.table for match in index.search_batch([query], **options)[0]] == before


def test_a_column_of_the_lake_is_known_by_its_path_in_the_lake(index, lake):
    from pexeso.results.query import read_query

    query = read_query(f"{lake[0] / 't0.csv'}:place")
    best = index.search(query, exclude_self=True, k="all", min_joinability=0.01)[0].table
    record_judgements(index.path, [Judgement(best, "place", "t0.csv", "place", verdict="no")])
    tables = [
        one.table
        for match in index.search(query, exclude_self=True, k="all", min_joinability=0.01)
        for one in (match, *match.copies)
    ]
    assert best not in tables


@pytest.mark.parametrize("method", ["semantic", "overlap"])
def test_values_judged_for_all_columns_count_in_each(index, lake, method):
    _, columns, _ = lake
    query = query_of(lake)
    pairs = pairs_of(index, query)
    if method == "overlap":
        pairs = {
            table: {(value, value) for value in values if value in QUERY}
            for table, values in columns.items()
        }
    judgements = [
        judged("", "Nowhere", "Vienna", "yes"),
        judged("", "Timbuktu", "Madrid", "yes"),  # in either direction
        judged("", "Rome", "Rome", "no"),
        judged(TABLES[0], "Nowhere", "Vienna", "no"),  # one column goes before all
    ]
    record_judgements(index.path, judgements)
    options = {"min_joinability": 0.01, "rerank": False} if method == "semantic" else {}
    result = index.search(query, method=method, k="all", fold_copies=False, **options)
    count = "matched" if method == "semantic" else "overlap"
    ranked = sorted((-getattr(match, count), match.table) for match in result)
    best = matched(expected(pairs, columns, judgements))
    assert ranked == best != matched(pairs)
    assert "far.csv" in {table for _, table in best}


@pytest.mark.long
def test_tasks_of_spark_follow_judgements(index, lake, spark):
    from pexeso.semantic.spark_executor import on_spark

    query = query_of(lake)
    rows = [judged("", "Nowhere", "Vienna", "yes"), judged("far.csv", "Rome", "Xining", "yes")]
    record_judgements(index.path, [*rows, judged(TABLES[1])])
    options = {"k": "all", "min_joinability": 0.01, "rerank": False, "fold_copies": False}
    here, there = (one.search(query, **options) for one in (index, on_spark(index, spark)))
    ranked = [[(match.table, match.matched) for match in result] for result in (here, there)]
    assert ranked[0] == ranked[1]
    assert "far.csv" in dict(ranked[0])
    assert TABLES[1] not in dict(ranked[0])


def test_codes_that_are_equal_as_they_are_read_stay_apart_once_judged(tmp_path):
    (tmp_path / "lake").mkdir()
    ids = [f"{number}f0e8400-e29b-41d4-a716-44665544000{number}" for number in range(6)]
    (tmp_path / "lake" / "events.csv").write_text("\n".join(["id,n", *(f"{i},1" for i in ids)]))
    index = pexeso.build_index(tmp_path / "lake", tmp_path / "lake.pexeso")
    bare = [one.replace("-", "").upper() for one in ids[:2]]
    mine = QueryColumn(pa.array(bare), "mine.csv", "key")
    pairs = index.explain(mine, "events.csv", "id").match.pairs()
    assert [pair.value for pair in pairs] == ids[:2]
    given = ("mine.csv", "key", "events.csv", "id", bare[0], ids[0], "no")
    record_judgements(index.path, [Judgement(*given)])
    assert [pair.value for pair in index.explain(mine, "events.csv", "id").match.pairs()] == ids[
        1:2
    ]
