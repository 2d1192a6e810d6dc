"""The service answers as the command line prints, verb by verb."""

import json
import shutil

import pytest
from click.testing import CliRunner

from pexeso.faces.cli.main import cli
from pexeso.faces.service.bases import RequestError
from pexeso.faces.service.index_requests import DeleteRequest
from pexeso.faces.service.requests import BatchRequest, JoinRequest, SearchRequest
from pexeso.faces.service.verbs import Service, run
from pexeso.index import build_index


def printed(*arguments):
    done = CliRunner().invoke(cli, [*map(str, arguments), "--json"], prog_name="pexeso")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def timeless(document):
    """Leave out what differs from run to run."""
    return {name: value for name, value in document.items() if name != "stats"}


@pytest.mark.parametrize(
    ("fields", "command"),
    [
        ({"verb": "search", "explain": True}, "search INDEX QUERY --explain"),
        ({"verb": "search", "k": 2, "rerank": False}, "search INDEX QUERY -k 2 --no-rerank"),
        ({"verb": "search", "method": "overlap"}, "search INDEX QUERY --method overlap"),
        (
            {"verb": "search", "method": "all", "explain": True},
            "search INDEX QUERY --method all --explain",
        ),
        (
            {"verb": "search", "method": "containment", "min_joinability": 0.2},
            "search INDEX QUERY --method containment --min-joinability 0.2",
        ),
        (
            {"verb": "explain", "lake_column": "cities.csv:city"},
            "explain INDEX QUERY cities.csv:city",
        ),
        ({"verb": "info"}, "info INDEX"),
        ({"verb": "info", "report": True}, "info INDEX --report"),
        ({"verb": "check"}, "check INDEX"),
        ({"verb": "rules"}, "rules INDEX"),
        ({"verb": "tune", "labels": "LABELS"}, "tune INDEX LABELS"),
        (
            {"verb": "keys", "table": "PLACES", "max_columns": 2, "nearly": 0.8},
            "keys PLACES --max-columns 2 --nearly 0.8",
        ),
        ({"verb": "doctor"}, "doctor"),
        ({"verb": "estimate", "lake": "LAKE"}, "estimate LAKE"),
    ],
    ids=lambda argument: argument if isinstance(argument, str) else "",
)
def test_a_verb_answers_as_the_command_line(
    small_index, small_lake, places, write, fields, command
):
    labels = write(
        "labels.csv", "query_value,lake_value,same\nOSLO,Oslo,yes\nRome,rome,yes\nOslo,Madrid,no\n"
    )
    files = {"INDEX": small_index, "LAKE": small_lake, "PLACES": places, "LABELS": labels}
    paths = {word: str(path) for word, path in files.items()} | {"QUERY": f"{places}:place"}
    given = {name: paths.get(str(value), value) for name, value in fields.items()}
    given |= {"index": paths["INDEX"]} if "INDEX" in command else {}
    given |= {"query": paths["QUERY"]} if "QUERY" in command else {}
    answered = Service().answer(given)
    shown = printed(*(paths.get(word, word) for word in command.split()))
    assert answered.keys() == shown.keys()
    if fields["verb"] not in MEASURED:
        assert json.loads(json.dumps(timeless(answered))) == timeless(shown)


MEASURED = ("estimate", "doctor")
"""Verbs that look at the machine, whose figures differ from call to call."""


def test_a_join_as_json(small_index):
    values = ["Oslo", "rome", None]
    request = {"verb": "join", "index": str(small_index), "query": values}
    answered = Service().answer({**request, "lake_column": "cities.csv:city"})
    assert (answered["table"], answered["column"], answered["matched"]) == ("cities.csv", "city", 2)
    assert answered["names"] == [
        "value", "match_value", "match_distance", "city", "country", "people",
    ]  # fmt: skip
    assert answered["rows"][0] == ["Oslo", "Oslo", 0.0, "Oslo", "Norway", "717710"]
    assert answered["report"]["joined_rows"] == 3
    json.dumps(answered)


PHYSICISTS = {
    "Marie Curie": "Marie Currie",
    "Niels Bohr": "Niels Bor",
    "Albert Einstein": "Albert Einstien",
    "Max Planck": "Max Plank",
    "Emmy Noether": "Emmy Nother",
}


@pytest.fixture(scope="module")
def physicists(tmp_path_factory):
    """Index a column that holds all values but one as they are, and one with all misspelt."""
    folder = tmp_path_factory.mktemp("physicists")
    lake = folder / "lake"
    lake.mkdir()
    (lake / "right.csv").write_text("\n".join(["name", *list(PHYSICISTS)[:-1], "Lise Meitner"]))
    (lake / "misspelt.csv").write_text("\n".join(["name", *PHYSICISTS.values()]))
    return build_index(lake, folder / "lake.pexeso").path


def test_a_join_without_a_column_takes_the_one_that_a_search_lists_first(physicists):
    fields = {"index": str(physicists), "query": tuple(PHYSICISTS)}
    hits = run(SearchRequest.of(**fields)).results[0]
    assert [(hit.table, hit.matched) for hit in hits] == [("right.csv", 4), ("misspelt.csv", 5)]
    assert run(JoinRequest.of(**fields)).match.table == "right.csv"


def test_a_join_without_a_column_takes_one_that_few_values_match(physicists):
    others = ["Ada Lovelace", "Alan Turing", "Grace Hopper", "Kurt Goedel", "David Hilbert"]
    fields = {"index": str(physicists), "query": ("Marie Curie", *others)}
    assert len(run(SearchRequest.of(**fields)).results[0]) == 0
    assert run(JoinRequest.of(**fields)).match.table == "right.csv"


def test_the_join_that_the_command_line_writes(small_index, places):
    response = run(
        JoinRequest.of(index=small_index, query=f"{places}:place", lake_column="cities.csv:city")
    )
    done = CliRunner().invoke(cli, ["join", str(small_index), f"{places}:place", "cities.csv:city"])
    assert response.joined.table.to_pandas().to_csv(index=False) == done.stdout
    places.write_text("place\nNowhere\n", encoding="utf-8")
    nothing = JoinRequest.of(index=small_index, query=f"{places}:place", max_distance=0)
    with pytest.raises(
        RequestError, match=r"within distance 0 of 'place'\. Try a larger max_distance\."
    ):
        run(nothing)


def test_a_batch_of_objects_is_answered_at_once_or_into_a_file(small_index, tmp_path, write):
    lines = [{"id": "a", "values": ["Oslo", "Rome"]}, {"id": "b"}]
    request = {"verb": "batch", "index": str(small_index), "queries": lines, "k": 1}
    answered = Service().answer(request)
    assert (answered["answered"], answered["failed"]) == (2, 1)
    assert [answer["id"] for answer in answered["answers"]] == ["a", "b"]
    output = tmp_path / "answers.jsonl"
    queries = write("queries.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines))
    written = Service().answer({**request, "queries": str(queries), "output": str(output)})
    assert written["answers"] == []
    stored = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert [timeless(answer) for answer in stored] == [
        timeless(answer) for answer in answered["answers"]
    ]


def test_an_index_that_is_kept_open_is_opened_once_and_follows_updates(small_index, tmp_path):
    path = shutil.copytree(small_index, tmp_path / "lake.pexeso")
    service = Service(keep_open=True)
    request = SearchRequest.of(index=path, query=("Oslo", "Rome"))
    assert "cities.csv" in [match.table for match in service.run(request).results[0]]
    index = service.open(str(path))
    assert service.open(str(path)) is index
    assert service.run(DeleteRequest.of(index=path, tables=("cities.csv",))).deleted == 1
    assert "cities.csv" not in [match.table for match in service.run(request).results[0]]
    by_values = SearchRequest.of(index=path, query=("Oslo", "Rome"), method="overlap")
    assert [match.table for match in service.run(by_values).results[0]] == ["nested/companies.csv"]
    assert Service().open(str(path)) is not index


def test_lines_of_a_batch_are_closed_where_it_is_interrupted(small_index):
    lines = ((number, '{"values": ["Oslo"]}') for number in range(1, 1000))

    def interrupted(answers):
        raise KeyboardInterrupt

    request = BatchRequest.of(index=str(small_index), queries="-")
    with pytest.raises(KeyboardInterrupt) as error:
        run(request, lines=lines, write=interrupted)
    assert error.traceback, "which holds the frames"
    assert lines.gi_frame is None
