"""What the tools answer, in memory, on a lake of hostile cells and names."""

import json
import shutil
from contextlib import suppress

import duckdb
import pytest
from click.testing import CliRunner

import pexeso
from pexeso.faces.cli.main import cli
from pexeso.faces.mcp import presentation
from pexeso.faces.mcp.answers import MAX_TOKENS, MIN_TOKENS, count_tokens
from pexeso.faces.mcp.tool_call import Call, Desk
from pexeso.index import open_index
from pexeso.joins import report
from pexeso.runtime.formatting import is_hidden
from tests.faces.mcp.conftest import CITIES

QUERY = {"column": "cities.csv:city"}
UNFOLDED = {**QUERY, "fold_copies": False}
MATCH = {**QUERY, "lake_column": "visits.csv:place"}

READS = {
    "describe_lake": {},
    "find_joins": {"values": ["Oslo", "Rome"], "fold_copies": False},
    "explain_match": MATCH,
    "preview_join": MATCH,
    "join_sql": MATCH,
    "learn_transformation": MATCH,
    "find_composite_joins": {"table": "games.csv", "key": ["year", "city"]},
    "join_graph": {},
    "find_redundancy": {},
}
"""A call of every tool that reads, whose answer the tables visits, hosts and part are in."""

LISTS = {
    "describe_lake": ({"what": "columns"}, "entries"),
    "find_joins": (UNFOLDED, "candidates"),
    "explain_match": (MATCH, "entries"),
    "preview_join": ({**QUERY, "lake_column": "wide.csv:#0"}, "rows"),
    "learn_transformation": (
        {"column": "mails.csv:mail", "lake_column": "cities.csv:city"},
        "pairs",
    ),
    "find_composite_joins": ({"table": "games.csv", "key": ["year", "city"]}, "candidates"),
    "join_graph": ({"min_joinability": 1.0}, "edges"),
    "find_redundancy": ({}, "entries"),
}


def texts(value):
    """Yield every text of an answer."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


def bare_call(**page):
    """Return a call of which only the page matters."""
    return Call("lake.pexeso", None, (), None, None, **page)


@pytest.mark.parametrize("tool", LISTS)
@pytest.mark.parametrize("max_tokens", [MIN_TOKENS, None, MAX_TOKENS])
def test_an_answer_is_never_longer_than_asked(call, tool, max_tokens):
    arguments, name = LISTS[tool]
    options = {} if max_tokens is None else {"max_tokens": max_tokens}
    answer = call(tool, **arguments, **options, limit=1000)
    assert count_tokens(answer) <= (max_tokens or 4000)
    assert answer["total"] == 0 or answer[name]
    assert not [text for text in texts(answer) if any(map(is_hidden, text)) and "\n" not in text]
    assert name in answer["untrusted"]


@pytest.mark.parametrize("tool", LISTS)
def test_pages_reach_every_entry_once(call, tool):
    arguments, name = LISTS[tool]
    seen, offset = [], 0
    while offset is not None:
        answer = call(tool, **arguments, offset=offset, limit=3, max_tokens=MIN_TOKENS)
        assert answer["offset"] == offset
        assert answer["truncated"] is (answer["next_offset"] is not None)
        seen += answer[name]
        if tool == "describe_lake" and len(seen) > 60:
            return
        offset = answer["next_offset"]
    assert len(seen) == answer["total"]
    if tool == "find_joins":
        names = [candidate["lake_column"] for candidate in seen]
        assert len(set(names)) == len(names) > 2


def test_every_column_of_the_lake_is_listed_once(call, hostile_index):
    seen, offset = [], 0
    while offset is not None:
        answer = call("describe_lake", what="columns", offset=offset, limit=500, max_tokens=20_000)
        seen += [entry["lake_column"] for entry in answer["entries"]]
        offset = answer["next_offset"]
    assert len(seen) == len(set(seen)) == open_index(hostile_index).catalog.columns().num_rows


def test_cells_are_cut_and_made_visible(call):
    rows = call("preview_join", **MATCH, limit=1)["rows"]
    assert "\\u202egnp.exe\\u2066Oslo" in rows[0]
    assert any(str(cell).endswith("… (100,000 chars)") for cell in rows[0])


def test_names_that_cannot_be_written_out_lead_back(call):
    listed = call("describe_lake", what="columns", table="named.csv")["entries"]
    codes = [entry["lake_column"] for entry in listed]
    assert [code[0] for code in codes] == ["~", "n", "~"]
    for code in codes:
        answer = call("explain_match", **QUERY, lake_column=code)
        assert (answer["lake_column"], answer["matched"]) == (code, 8)
        assert call("find_joins", column=code)["candidates"]
        assert call("preview_join", column=code, lake_column="visits.csv:place")["matched_rows"]


def test_answers_are_those_of_the_command_line(call, hostile_index, hostile_lake):
    file = hostile_lake / "cities.csv"
    options = ["-k", "all", "--min-joinability", "0.05", "--exclude-self", "--json"]
    searched = ["search", str(hostile_index), f"{file}:city", "--no-fold-copies", *options]
    done = CliRunner().invoke(cli, searched)
    assert done.exit_code == 0, done.output
    printed = json.loads(done.stdout)["results"]
    candidates = call("find_joins", **UNFOLDED, limit=100, max_tokens=20_000)["candidates"]
    assert len(candidates) == len(printed) > 2
    for mine, its in zip(candidates, printed, strict=True):
        assert mine["joinability"] == its["joinability"]
        assert mine["matched"] == its["matched"]
        if mine["lake_column"][0] != "~":
            assert mine["lake_column"] == f"{its['table']}:{its['column']}"


def test_an_answer_is_narrowed_to_what_was_named(call):
    named = {"values": ["Oslo", "Xyzzyx"], "lake_column": "visits.csv:place"}
    unmatched = call("explain_match", what="unmatched", **named)
    assert [entry["query"] for entry in unmatched["entries"]] == ["Xyzzyx"]
    whole = call("join_graph", min_joinability=1.0, limit=1000)["edges"]
    edges = call("join_graph", table="part.csv", min_joinability=1.0, limit=1000)["edges"]
    of_part = [edge for edge in whole if edge["lake_column"].startswith("part.csv:")]
    assert edges == of_part != whole
    left_out = call("describe_lake", what="left_out", text="notes")["entries"]
    assert [entry["reason"] for entry in left_out] == ["prose, not delimited text"]


def test_nothing_found_says_what_was_tried(call):
    answer = call("find_joins", values=["qqqqqqqq", "zzzzzzzz"])
    assert (answer["total"], answer["candidates"]) == (0, [])
    assert "method semantic with max_distance" in answer["note"]
    assert "larger max_distance" in answer["note"]
    assert call("describe_lake", text="nothing is called so")["total"] == 0


@pytest.mark.parametrize("method", ["semantic", "overlap", "containment", "transform", "all"])
def test_nothing_found_advises_what_the_method_takes(call, method):
    query = {"values": ["qqqqqqqq", "zzzzzzzz"], "method": method}
    note = call("find_joins", **query)["note"]
    for name, value in (("max_distance", 0.1), ("min_joinability", 0.01)):
        try:
            call("find_joins", **query, **{name: value})
        except ValueError:
            assert name not in note
        else:
            assert name in note


@pytest.mark.parametrize("method", ["semantic", "all"])
def test_no_larger_distance_is_advised_for_values_that_match_where_they_are_equal(call, method):
    note = call("find_joins", values=["1871-02-03", "1872-05-04"], method=method)["note"]
    assert note.startswith("Nothing was found")
    assert "larger max_distance" not in note
    assert "smaller min_joinability" in note


def test_a_column_of_numbers_is_joined_as_its_error_says(call):
    query = {"values": [100, 300, 1000]}
    [candidate] = call("find_joins", **query, method="overlap")["candidates"]
    match = {**query, "lake_column": candidate["lake_column"]}
    with pytest.raises(ValueError, match=r"2 of 3 of yours are equal .* Call preview_join"):
        call("explain_match", **match)
    assert call("preview_join", **match)["matched_rows"] == 2
    assert call("join_sql", **match)["sql"]
    joined = call("preview_join", **match, by_program=True)
    assert joined["matched_rows"] == candidate["matched"] == 2
    assert "join_sql" not in joined["note"]  # which has no by_program
    none = call(
        "preview_join", values=["qqq"], lake_column=candidate["lake_column"], by_program=True
    )
    assert none["matched_rows"] == 0
    assert "max_distance" not in none["note"]


def test_sql_joins_what_the_join_joins(call, desk, hostile_lake):
    for query, where in (
        (QUERY, "visits.csv:place"),
        ({"file": "mine.csv:town"}, "cities.csv:city"),
    ):
        answer = call("join_sql", **query, lake_column=where)
        joined = call("preview_join", **query, lake_column=where, limit=100)
        database = duckdb.connect()
        database.execute(answer["your_table"])
        database.execute(answer["lake_table"])
        rows = database.sql(answer["sql"]).fetchall()
        assert len(rows) == joined["joined_rows"]
        matched = [row for row in rows if row[-1] is not None]
        assert len(matched) == joined["matched_rows"] > 0


def test_sql_that_is_too_long_is_left_out(call):
    values = [f"{city} {'x' * 900}" for city in ("Oslo", "Rome")]
    answer = call("join_sql", values=["OSLO", *values], lake_column="cities.csv:city")
    assert answer["sql"] is not None
    many = ["oSLO" + " " * at for at in range(600)]
    answer = call("join_sql", values=many, lake_column="cities.csv:city", max_tokens=1000)
    assert (answer["sql"], answer["truncated"]) == (None, True)
    assert "max_tokens" in answer["note"] or "write_join" in answer["note"]


def test_a_rule_is_learned(call):
    answer = call(
        "learn_transformation", column="mails.csv:mail", lake_column="cities.csv:city", limit=2
    )
    assert answer["coverage"] == 1
    assert answer["sql"]
    joined = call(
        "preview_join", column="mails.csv:mail", lake_column="cities.csv:city", by_program=True
    )
    assert joined["matched_rows"] == 8


def test_a_rule_that_makes_one_key_of_several_values_is_refused_unless_allowed(call, desk):
    shops = {"values": [f"{city}-{shop:03}" for city in CITIES for shop in (1, 2, 3)]}
    rule = {**shops, "lake_column": "cities.csv:city"}
    join = {**rule, "by_program": True}
    for tool, arguments in (
        ("learn_transformation", rule),
        ("preview_join", join),
        ("write_join", {**join, "output": "shops.csv"}),
    ):
        with pytest.raises(ValueError, match=r"24 source values became 8.*many_to_one"):
            call(tool, **arguments)
        answer = call(tool, **arguments, many_to_one=True)
        assert answer["cardinality" if tool == "learn_transformation" else "matched_rows"] in (
            "N:1",
            24,
        )
    answer = call("learn_transformation", **rule, many_to_one=True)
    assert answer["collapse"] == "24 source values became 8"
    (desk.allow_write / "shops.csv").unlink()
    with pytest.raises(ValueError, match="many_to_one is for a join by a program"):
        call("preview_join", **MATCH, many_to_one=True)


@pytest.mark.parametrize(
    ("arguments", "n_joined"),
    [
        (MATCH, 8),
        ({"values": ["1900"] * 2, "lake_column": "games.csv:year", "by_program": True}, 6),
    ],
    ids=["similar", "rule"],
)
def test_a_join_that_multiplies_rows_is_refused_unless_allowed(
    call, desk, monkeypatch, arguments, n_joined
):
    monkeypatch.setattr(report, "MAX_GROWTH", 0)
    monkeypatch.setattr(report, "MAX_ROWS", 2)
    for tool, more in (("preview_join", {}), ("write_join", {"output": "many.csv"})):
        with pytest.raises(ValueError, match="many_to_many"):
            call(tool, **arguments, **more)
        assert not [*desk.allow_write.glob("many.csv")]
        assert call(tool, **arguments, **more, many_to_many=True)["joined_rows"] == n_joined
    (desk.allow_write / "many.csv").unlink()


def test_composite_keys_are_proposed_and_searched(call):
    answer = call("find_composite_joins", table="games.csv", key=["year", "city"])
    assert answer["candidates"][0]["table"] == "hosts.csv"
    assert answer["candidates"][0]["columns"] == ["y", "c"]
    assert answer["n_keys"] >= 1


def test_a_key_has_columns_whose_names_hold_colons(call):
    answer = call("find_composite_joins", table="named.csv", key=["a:b", "#2"])
    assert answer["key"] == ["a:b", "#2"]


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("find_joins", {}, "Give one of column"),
        ("find_joins", {**QUERY, "values": ["a"]}, "Got 2 of them"),
        (
            "find_joins",
            {"values": ["a"], "max_distance": True},
            "max_distance must be a number. Got true instead.",
        ),
        ("find_joins", {"valus": ["a"]}, "find_joins has no argument 'valus'"),
        ("find_joins", {"values": ["a"], "limit": "many"}, "limit: Input should be"),
        ("find_joins", {"values": ["a"], "offset": -1}, "offset: Input should be greater"),
        ("find_joins", {"column": "nowhere.csv:city"}, "no table 'nowhere.csv'"),
        ("find_joins", {"column": "games.csv:year,city"}, "call find_composite_joins"),
        ("find_joins", {"column": "nowhere"}, "no table 'nowhere'"),
        ("find_joins", {"column": "../lake/cities.csv:city"}, "no table"),
        ("find_joins", {"file": "/etc/passwd"}, "There is no file '/etc/passwd'"),
        ("find_joins", {"file": "../read/../../mine.csv"}, "There is no file"),
        ("find_joins", {"file": "s3://bucket/a.csv:b"}, "There is no file"),
        ("find_joins", {"column": "~0000"}, "No column of the lake has the code"),
        ("explain_match", {**QUERY, "lake_column": "visits.csv:no"}, "There is no column 'no'"),
        ("preview_join", {**MATCH, "how": "outer"}, "how: Input should be"),
        ("find_joins", {**QUERY, "max_distance": 7}, "max_distance"),
        ("find_redundancy", {"min_containment": 0}, "min_containment"),
        ("join_graph", {"table": "no.csv"}, "no table 'no.csv'"),
        ("join_graph", {"min_joinability": 0}, "min_joinability"),
        ("nothing", {}, "There is no tool 'nothing'"),
    ],
)
def test_errors_are_sentences(call, tool, arguments, said):
    with pytest.raises(ValueError, match=said) as raised:
        call(tool, **arguments)
    text = str(raised.value)
    assert len(text) <= 1000
    assert "\n" not in text
    assert "Traceback" not in text


def test_a_join_is_written_and_not_outside(call, desk):
    answer = call("write_join", **MATCH, output="joined.parquet")
    assert (desk.allow_write / answer["file"]).is_file()
    for output, said in (("joined.parquet", "exists already"), ("../out.csv", "inside")):
        with pytest.raises(ValueError, match=said):
            call("write_join", **MATCH, output=output)
    call("write_join", **MATCH, output="joined.parquet", overwrite=True)
    assert sorted(path.name for path in desk.allow_write.iterdir()) == ["joined.parquet"]


def test_without_folders_there_is_no_writing_and_no_reading(hostile_index, caller_of):
    bare = Desk.of(str(hostile_index))
    call = caller_of(bare)
    with pytest.raises(ValueError, match="There is no tool 'write_join'"):
        call("write_join", **MATCH, output="a.csv")
    with pytest.raises(ValueError, match="--allow-read"):
        call("find_joins", file="mine.csv:town")


def test_an_index_that_is_updated_or_deleted_meanwhile(
    hostile_index, hostile_lake, tmp_path, caller_of
):
    lake, path = tmp_path / "lake", tmp_path / "lake.pexeso"
    shutil.copytree(hostile_lake, lake)
    shutil.copytree(hostile_index, path)
    call = caller_of(Desk.of(str(path)))
    before = {tool: call(tool, **arguments) for tool, arguments in READS.items()}
    assert {answer.pop("snapshot") for answer in before.values()} == {"current"}
    open_index(path).delete(["visits.csv", "hosts.csv", "part.csv"])
    for tool, arguments in READS.items():
        kept = call(tool, **arguments)
        assert "was updated" in kept.pop("snapshot")
        assert kept == before[tool]
    assert call("describe_lake", reload=True)["snapshot"] == "current"
    for tool, arguments in READS.items():
        with suppress(ValueError):  # of a table that the index no longer has
            assert call(tool, **arguments)["total"] < before[tool]["total"]
    last = call("describe_lake")
    shutil.rmtree(path)
    with pytest.raises(ValueError, match="There is no index"):
        call("describe_lake", reload=True)
    kept = call("describe_lake")
    assert "no longer where it was" in kept.pop("snapshot")
    assert kept == {name: value for name, value in last.items() if name != "snapshot"}


def test_tables_that_others_contain_are_entries(tmp_path, write):
    rows = [f"{city},{number}\n" for number, city in enumerate(["Oslo", "Rome", "Bern", "Paris"])]
    lake = write("lake/all.csv", "city,number\n" + "".join(rows)).parent
    (lake / "part.csv").write_text("city,number\n" + "".join(rows[1:]))
    index = pexeso.build_index(lake, tmp_path / "lake.pexeso", parts=["redundancy"])
    report = pexeso.find_redundancy(index.path).to_dict()
    answer = presentation.redundancy(bare_call(max_tokens=4_000, limit=10), report)
    assert [(edge["parent"], edge["child"], edge["rows"]) for edge in answer["entries"]] == [
        ("all.csv", "part.csv", 3)
    ]
    assert (answer["tables"], answer["delete"], answer["total"]) == (2, ["part.csv"], 1)


@pytest.mark.parametrize("method", ["semantic", "overlap", "containment", "all"])
def test_candidates_show_values_that_match_whatever_found_them(call, method):
    answer = call("find_joins", values=["Oslo", "Rome", "Madrid"], method=method)
    for candidate in answer["candidates"]:
        assert all(len(pair) == 2 for pair in candidate["examples"])
        assert candidate["examples"] or not candidate["matched"]
    assert answer["candidates"]


def test_ids_of_many_digits_are_searched_as_they_are(tmp_path, caller_of):
    ids = [9007199254740993 + at for at in range(8)]
    (tmp_path / "lake").mkdir()
    rows = "".join(f"{number},town of {at}\n" for at, number in enumerate(ids))
    (tmp_path / "lake" / "ids.csv").write_text(f"tweet,from\n{rows}", encoding="utf-8")
    pexeso.build_index(tmp_path / "lake", tmp_path / "ids.pexeso", parts=["overlap"])
    call = caller_of(Desk.of(str(tmp_path / "ids.pexeso")))
    for values in (ids[:3], [*map(str, ids[:2]), ids[2], None, True]):
        [candidate] = call("find_joins", values=values, method="overlap")["candidates"][:1]
        assert (candidate["lake_column"], candidate["matched"]) == ("ids.csv:tweet", 3)


def test_agents_are_answered_alike(told_index, caller_of):
    call = caller_of(Desk.of(str(told_index)))
    joins = call("find_joins", column="sub/told.csv:city")
    assert [candidate["lake_column"] for candidate in joins["candidates"]] == ["cities.csv:name"]
    keys = call("find_composite_joins", table="sub/told.csv", key=["city", "year"])
    assert [candidate["table"] for candidate in keys["candidates"]] == ["cities.csv"]
