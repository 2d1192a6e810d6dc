"""Requests: there and back through JSON, and what they refuse."""

import json
import pickle

import pytest

from pexeso.errors import InputError
from pexeso.faces.service.acquisition import AcquireRequest
from pexeso.faces.service.bases import REQUESTS, Request, RequestError
from pexeso.faces.service.graph import ExportRequest, GraphRequest
from pexeso.faces.service.index_requests import (
    AddModelRequest,
    AddPartsRequest,
    AppendRequest,
    BuildRequest,
    CompactRequest,
    DeleteRequest,
    EstimateRequest,
)
from pexeso.faces.service.judging import JudgeRequest
from pexeso.faces.service.lake import BrowseRequest
from pexeso.faces.service.redundancy import (
    ApplyPlanRequest,
    RedundancyRequest,
    UndoPlanRequest,
    VerifyPlanRequest,
)
from pexeso.faces.service.requests import (
    BatchRequest,
    CheckRequest,
    DoctorRequest,
    ExplainRequest,
    InfoRequest,
    JoinRequest,
    JoinSqlRequest,
    KeysRequest,
    RulesRequest,
    SearchRequest,
    TuneRequest,
    VerifyRequest,
)
from pexeso.faces.service.transform import TransformRequest
from pexeso.faces.service.verbs import VERBS
from pexeso.lake.choose import ColumnRules
from pexeso.lake.normalise.normaliser import Normaliser

EXAMPLES = [
    BuildRequest.of(
        lake="lake",
        index="lake.pexeso",
        rules=ColumnRules(kinds=("text",), min_rows=3),
        normaliser=Normaliser(extra={"nyc": "new york"}),
        parts=("overlap",),
        model="hashing",
        n_levels=None,
        conf={"spark.driver.memory": "1g"},
    ),
    EstimateRequest.of(lake="lake", model="fasttext"),
    AppendRequest.of(index="lake.pexeso", compare="content"),
    CompactRequest.of(index="lake.pexeso", everything=True, master="local[2]"),
    AddPartsRequest.of(index="lake.pexeso", parts=("overlap", "containment")),
    AddModelRequest.of(index="lake.pexeso", model="lexical,fasttext", value_vectors="mean"),
    DeleteRequest.of(index="lake.pexeso", tables=("a.csv", "b.csv")),
    SearchRequest.of(index="lake.pexeso", query="a.csv:city", k=3, max_distance=0.1, rerank=False),
    SearchRequest.of(index="lake.pexeso", query=("Oslo", None, 7, 2.5), method="containment"),
    SearchRequest.of(index="lake.pexeso", query="a.csv", method="overlap", all_columns=True),
    SearchRequest.of(index="lake.pexeso", query="b.csv", method="containment", min_joinability=1),
    ExplainRequest.of(index="lake.pexeso", query="a.csv:city", lake_column="b.csv:town", auto=True),
    JoinRequest.of(index="lake.pexeso", query="a.csv:city", aggregate={"*": "list"}, provenance=()),
    BatchRequest.of(index="lake.pexeso", queries=({"id": 1, "values": ["Oslo"]},), k="all"),
    BatchRequest.of(index="lake.pexeso", queries="queries.jsonl", output="a.jsonl", resume=True),
    TuneRequest.of(index="lake.pexeso", labels="labels.csv", min_precision=0.9),
    JudgeRequest.of(
        index="lake.pexeso",
        query_table="a.csv",
        query_column="city",
        lake_table="b.csv",
        lake_column="town",
        verdict="no",
    ),
    InfoRequest.of(index="lake.pexeso", report=True),
    InfoRequest.of(index="lake.pexeso", left_out=True),
    RulesRequest.of(),
    CheckRequest.of(index="lake.pexeso"),
    DoctorRequest.of(folder="there"),
    KeysRequest.of(table="a.csv", max_columns=2, nearly=1, k=3),
    RedundancyRequest.of(lake="lake", min_containment=0.9, semantics="bag", plan="plan.json"),
    VerifyPlanRequest.of(plan="plan.json"),
    VerifyRequest.of(path="joins.toml", left="a.csv:city", right="b.csv:town", max_distance=0.1),
    ApplyPlanRequest.of(plan="plan.json", holding="held", expires_days=7, yes=True),
    UndoPlanRequest.of(source="held", tables=("a.csv",)),
    GraphRequest.of(
        index="lake.pexeso", method="semantic", max_distance=0.2, k=5, output="graph.csv"
    ),
    ExportRequest.of(index="lake.pexeso", format="dbt", output="models"),
    BrowseRequest.of(index="lake.pexeso", what="columns", text="city", offset=50, limit=5),
    JoinSqlRequest.of(
        index="lake.pexeso",
        query="a.csv:city",
        from_lake=True,
        lake_column="b.csv:town",
        how="inner",
    ),
    TransformRequest.of(source="a.csv:name", target="b.csv", max_programs=2, save="rule.json"),
    AcquireRequest.of(
        index="lake.pexeso",
        have="a.csv:age",
        want=("b.csv:disease",),
        budget=7.5,
        prices={"b.csv": {"disease": 2}},
        exclude_joins=("a.csv,b.csv",),
    ),
]


@pytest.mark.parametrize("request_made", EXAMPLES, ids=lambda example: example.verb)
def test_a_request_comes_back_from_json(request_made):
    document = json.loads(json.dumps(request_made.to_dict()))
    assert Request.from_dict(document) == request_made
    assert type(request_made).from_dict(document) == request_made
    del document["verb"]
    assert type(request_made).from_dict(document) == request_made


def test_every_verb_has_an_example_and_an_answer():
    assert {example.verb for example in EXAMPLES} == set(REQUESTS) == set(VERBS)


@pytest.mark.parametrize("kind", REQUESTS.values(), ids=lambda kind: kind.verb)
def test_unknown_fields_are_named_with_those_there_are(kind):
    with pytest.raises(InputError, match=rf"^Fields of {kind.__name__} are .*\. Got colour\.$"):
        kind.from_dict({"colour": "red"})


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (7, "A request must be an object. Got 7 instead."),
        ({"verb": "serach"}, "verb must be one of acquire, add_model, add_parts, "),
        ({"index": "a"}, "Got '' instead."),
        ({"verb": "search", "index": "a"}, "SearchRequest needs query. Got {'index': 'a'}."),
        ({"verb": "info", "index": 7}, "index must be a text. Got 7 instead."),
        (
            {"verb": "delete", "index": "a", "tables": "b.csv"},
            "tables must be a list, each entry a text.",
        ),
        (
            {"verb": "append", "index": "a", "compare": "size"},
            "compare must be one of modified, content.",
        ),
        (
            {"verb": "build", "lake": "a", "index": "b", "rules": {"colour": 1}},
            "Fields of ColumnRules are kinds, ",
        ),
        (
            {"verb": "estimate", "lake": "a", "n_levels": "many"},
            "n_levels must be a whole number or null.",
        ),
        (
            {"verb": "search", "index": "a", "query": "b", "k": 0},
            "k must be a whole number of at least 1 or 'all'. Got 0",
        ),
        (
            {"verb": "search", "index": "a", "query": "b", "min_joinability": 0},
            "min_joinability must be a number in (0, 1]. Got 0 instead. It is the share",
        ),
        (
            {"verb": "search", "index": "a", "query": "b", "max_distance": float("nan")},
            "max_distance must be a number in [0, 1]. Got nan",
        ),
        (
            {"verb": "explain", "index": "a", "query": "b", "lake_column": "c"},
            "must be given as TABLE:COLUMN",
        ),
        (
            {"verb": "acquire", "index": "a", "budget": 3},
            "Give have, want, or both: there is nothing to look for.",
        ),
        (
            {"verb": "add_parts", "index": "a", "parts": ["x"]},
            "The parts that an index can have are",
        ),
        ({"verb": "keys", "fi\udca6": "t.csv"}, "k. Got fi\\udca6."),
    ],
)
def test_what_is_no_request_is_one_sentence(document, said):
    with pytest.raises(InputError) as raised:
        Request.from_dict(document)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (
            {"auto": True, "max_distance": 0.1},
            "auto chooses the distance, and max_distance gives one",
        ),
        (
            {"query": "b.csv:c", "all_columns": True},
            "all_columns takes a file alone. Got the column 'c' too.",
        ),
        ({"query": ["x"], "all_columns": True}, "all_columns takes a file alone. Got values."),
        (
            {"method": "overlap", "ignore_missing": True},
            "method overlap compares equal texts and has no use for ignore_missing:",
        ),
        (
            {"method": "containment", "auto": True, "joinability_of": "rows"},
            "method containment compares equal texts and has no use for auto, joinability_of:",
        ),
        ({"min_precision": 0.9, "max_distance": 0.1}, "min_precision chooses the distance, and"),
        ({"verb": "join", "program": "a.json"}, "program is for a join by a program: add transf"),
        (
            {"verb": "join", "transform": True, "max_distance": 0.1, "lake_column": "a:b"},
            "A join by a program has no use for max_distance: leave it out.",
        ),
        (
            {"verb": "batch", "queries": "q.jsonl", "resume": True, "overwrite": True},
            "Give resume or overwrite, not both.",
        ),
        (
            {"verb": "batch", "queries": "q.jsonl", "resume": True},
            "resume and overwrite need a file of answers: output.",
        ),
        (
            {"verb": "batch", "queries": "q.jsonl", "conf": {"a": "b"}},
            "conf is for a search on Spark: give master too",
        ),
    ],
)
def test_fields_that_do_not_go_together(document, said):
    query = {} if "queries" in document else {"query": "b.csv"}
    with pytest.raises(RequestError) as raised:
        Request.from_dict({"verb": "search", "index": "a", **query, **document})
    assert said in str(raised.value)


def test_a_face_writes_its_own_names_of_fields_and_values_as_they_are():
    error = RequestError("Give {max_distance}. Got %s.", "50 % {k}")
    assert str(error) == "Give max_distance. Got 50 % {k}."
    assert error.written(str.upper) == "Give MAX_DISTANCE. Got 50 % {k}."
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_search_by_equal_values_has_options_of_its_own():
    search = SearchRequest.of(index="a", query="b", method="containment", min_joinability=0.4)
    assert search.token_options()["min_containment"] == 0.4
    assert SearchRequest.of(index="a", query="b", method="overlap").token_options() == {
        "k": None,
        "exclude_self": False,
        "fold_copies": True,
    }
