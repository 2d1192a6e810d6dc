"""Tests of `pexeso batch` and `pexeso.semantic.batch_file`."""

import json
import os
import shutil

import pytest

import pexeso.semantic.batch_file
from pexeso.errors import OutputError, QueryError
from pexeso.faces.cli import search as batch
from pexeso.index import Index, open_index
from pexeso.results.query import batch_lines
from pexeso.semantic.batch_file import run_batch

GOOD = [
    {"id": "a", "values": ["Oslo", "Rome"]},
    {"id": "b", "values": ["Nowhere"]},
    {"values": ["Bern", "Prague"]},
    {"id": 4, "values": []},
    {"id": "e", "values": ["Oslo"]},
]


@pytest.fixture
def queries(write):
    path = write("queries.jsonl", "".join(f"{json.dumps(line)}\n" for line in GOOD))
    return path


@pytest.fixture
def two_at_a_time(monkeypatch):
    monkeypatch.setattr(pexeso.semantic.batch_file, "MAX_CHUNK_QUERIES", 2)


def without_times(text):
    """Parse answers, leaving out what differs from run to run."""
    answers = [json.loads(line) for line in text.splitlines()]
    for answer in answers:
        answer.pop("stats", None)
    return answers


def interrupt_after(monkeypatch, n_chunks):
    """Press Ctrl-C when so many chunks have been answered."""
    search_batch, calls = Index.search_batch, []

    def interrupted(self, queries, **options):
        calls.append(1)
        if len(calls) > n_chunks:
            raise KeyboardInterrupt
        return search_batch(self, queries, **options)

    monkeypatch.setattr(Index, "search_batch", interrupted)


def test_answers_come_in_order_with_their_ids(run, small_index, queries):
    result = run("batch", small_index, queries, "--min-joinability", 1, "--explain")
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == ["a", "b", 3, 4, "e"]
    assert [[match["table"] for match in answer["results"]] for answer in answers] == [
        ["cities.csv", "nested/companies.csv", "nested/capitals.tsv"],
        [],
        ["nested/capitals.tsv"],
        [],
        ["cities.csv", "nested/companies.csv", "nested/capitals.tsv"],
    ]
    assert answers[2]["results"][0]["pairs"] == [
        ["Bern", "BERN", 0.0, "spelling"],
        ["Prague", "PRAGUE", 0.0, "spelling"],
    ]
    assert list(answers[0]) == [*("id", "of", "query", "options", "results", "n_more", "stats")]
    assert result.stderr == "5 lines answered\n"


def test_bad_lines_are_named_and_the_others_answered(run, small_index, tmp_path, places):
    path = tmp_path / "queries.jsonl"
    lines = [
        json.dumps({"id": "a", "file": str(places), "column": "place"}),
        "not json",
        "",
        json.dumps({"id": "c", "file": str(places), "column": "town"}),
        json.dumps({"id": "d"}),
        json.dumps({"id": "e", "values": ["Oslo"]}),
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    result = run("batch", small_index, path, "-k", 1, code=1)
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == ["a", 2, "c", "d", "e"]
    assert answers[1]["error"].startswith("line 2: it is no JSON: ")
    assert (
        answers[2]["error"]
        == "line 4: There is no column 'town'. The columns are 'place', 'visits'."
    )
    assert answers[3]["error"] == "line 5: it has neither 'values' nor 'file'."
    tables = [answers[at]["results"][0]["table"] for at in (0, 4)]
    assert tables == ["nested/companies.csv", "cities.csv"]
    said = result.stderr.splitlines()
    assert said[0] == "5 lines answered"
    assert said[2] == f"  {answers[2]['error']}"
    assert said[-1] == "Error: 3 of 5 lines could not be used."


def test_a_file_that_is_there_is_refused(run, fail, small_index, queries, write):
    output = write("answers.jsonl", "precious\n")
    said = fail(1, "batch", small_index, queries, "-o", output)
    assert said == (
        f"Error: '{output}' exists already. Go on with it by --resume, replace it by "
        "--overwrite, or choose another name.\n"
    )
    said = fail(1, "batch", small_index, queries, "-o", output, "--resume")
    assert said.startswith(f"Error: '{output}' is no file of answers: its line 1 is none.")
    assert output.read_text(encoding="utf-8") == "precious\n"
    run("batch", small_index, queries, "-o", output, "--overwrite")
    assert len(output.read_text(encoding="utf-8").splitlines()) == 5


def test_the_queries_are_never_the_answers(fail, small_index, queries):
    before = queries.read_text(encoding="utf-8")
    said = fail(1, "batch", small_index, queries, "-o", queries, "--overwrite")
    assert "is the file of queries: choose another name for the answers." in said
    assert queries.read_text(encoding="utf-8") == before


@pytest.mark.parametrize("n_chunks", [0, 1, 2])
def test_an_interrupted_run_says_how_to_go_on_and_does(
    run, small_index, queries, tmp_path, two_at_a_time, monkeypatch, n_chunks
):
    whole, output = tmp_path / "whole.jsonl", tmp_path / "some answers.jsonl"
    run("batch", small_index, queries, "-o", whole)
    with monkeypatch.context() as patch:
        interrupt_after(patch, n_chunks)
        stopped = run("batch", small_index, queries, "-o", output, "--overwrite", code=130)
    assert stopped.stderr == (
        f"\nInterrupted; the answers so far are in '{output}'. "
        f"Go on: pexeso batch {small_index} {queries} -o '{output}' --resume\n"
    )
    assert len(output.read_text(encoding="utf-8").splitlines()) == 2 * n_chunks
    run("batch", small_index, queries, "-o", output, "--resume")
    assert without_times(output.read_text(encoding="utf-8")) == without_times(
        whole.read_text(encoding="utf-8")
    )


def test_going_on_after_every_byte_gives_the_same_answers(small_index, queries, tmp_path):
    output = tmp_path / "answers.jsonl"
    index, lines = open_index(small_index), list(batch_lines(queries))
    run_batch(index, lines, output, k=1)
    whole = output.read_bytes()
    ends = [place for place, byte in enumerate(whole, 1) if byte == ord("\n")]
    for cut in sorted(
        {
            0,
            1,
            *ends,
            *(end - 1 for end in ends),
            *(end + 7 for end in ends[:-1]),
            *range(0, len(whole), 97),
        }
    ):
        output.write_bytes(whole[:cut])
        done = run_batch(index, lines, output, resume=True, k=1)
        complete = sum(end <= cut for end in ends)
        assert (done.answered, done.earlier) == (5, complete), cut
        assert output.read_bytes().startswith(whole[: ends[complete - 1] if complete else 0]), cut
        assert without_times(output.read_text(encoding="utf-8")) == without_times(whole.decode()), (
            cut
        )


def test_errors_of_an_earlier_run_still_count(run, small_index, tmp_path, write):
    output = tmp_path / "answers.jsonl"
    queries = write("queries.jsonl", '{"id": "a"}\n{"id": "b", "values": ["Oslo"]}\n')
    run("batch", small_index, queries, "-o", output, code=1)
    first = output.read_text(encoding="utf-8").splitlines()[0]
    output.write_text(f"{first}\n", encoding="utf-8")
    result = run("batch", small_index, queries, "-o", output, "--resume", code=1)
    assert f"2 lines answered, 1 of them in an earlier run, in '{output}'" in result.stderr


def test_answers_to_files_that_were_read_otherwise_are_not_gone_on_with(
    run, fail, small_index, tmp_path, write
):
    queries = tmp_path / "queries.jsonl"
    cities = write("cities.csv", "note;x\nplace;n\nOslo;1\nRome;2\n")
    queries.write_text(f'{{"id": "a", "file": "{cities}", "column": "place"}}\n', encoding="utf-8")
    output = tmp_path / "answers.jsonl"
    command = ("batch", small_index, queries, "-o", output)
    reading = ("--read", "delimiter=;", "--read", "skip_rows=1")
    # A line that had no answer for want of these options may have one with them.
    run(*command, "--read", "delimiter=;", "--read", "skip_rows=0", code=1)
    assert "made with other options (line 1)" in fail(1, *command, *reading, "--resume")
    run(*command, *reading, "--overwrite")
    assert json.loads(output.read_text())["reading"] == {"delimiter": ";", "skip_rows": 1}
    run(*command, *reading, "--resume")
    for other in (
        (),
        reading[:2],
        (*reading, "--read", "encoding=latin1"),
        (*reading, "--read", "header=1"),
    ):
        assert "made with other options (line 1)" in fail(1, *command, *other, "--resume")


def test_answers_to_other_queries_are_not_gone_on_with(small_index, queries, write):
    output = write("answers.jsonl", '{"id": "z", "error": "line 1: x"}\n')
    with pytest.raises(
        OutputError, match="belongs to other queries: answer 1 is to 'z', and query 1 is 'a'"
    ):
        run_batch(open_index(small_index), batch_lines(queries), output, resume=True)
    index, lines = open_index(small_index), list(batch_lines(queries))
    run_batch(index, lines[:2], output, overwrite=True)
    with pytest.raises(OutputError, match="holds more answers than there are queries"):
        run_batch(index, lines[:1], output, resume=True)


def test_a_line_that_has_changed_since_it_was_answered_is_not_gone_on_with(small_index, tmp_path):
    output, index = tmp_path / "answers.jsonl", open_index(small_index)
    lines = [(1, '{"values": ["Oslo", "Rome"]}\n'), (2, '{"file": "mispelt.csv"}\n')]
    run_batch(index, lines, output)
    before = output.read_bytes()
    for number, other in ((1, '{"values": ["Bern"]}\n'), (2, '{"values": ["Oslo"]}\n')):
        changed = [(number, other) if line[0] == number else line for line in lines]
        with pytest.raises(OutputError, match=f"line {number} has changed since it was answered"):
            run_batch(index, [*changed, (3, other)], output, resume=True)
        assert output.read_bytes() == before
    more = [(1, lines[0][1].strip()), lines[1], (3, other)]  # ends of lines are no change
    assert run_batch(index, more, output, resume=True).answered == 3


def test_answers_can_be_re_ranked(run, small_index, queries, tmp_path, two_at_a_time):
    output = tmp_path / "answers.jsonl"
    run("batch", small_index, queries, "-o", output, "-k", 2)
    answers, index = without_times(output.read_text(encoding="utf-8")), open_index(small_index)
    for line, answer in zip(GOOD, answers, strict=True):
        assert answer["results"] == index.search(line["values"], k=2).to_dict()["results"]
    assert answers[0]["results"][0]["similarity"] > 0
    lines = output.read_bytes().splitlines(keepends=True)
    output.write_bytes(b"".join(lines[:3]))
    run("batch", small_index, queries, "-o", output, "-k", 2, "--rerank", "--resume")
    assert without_times(output.read_text(encoding="utf-8")) == answers


@pytest.mark.parametrize(
    "other",
    [
        *({"max_distance": 0.1}, {"k": 3}, {"explain": True}, {"rerank": False}),
        *({"exclude_self": True}, {"exclude_table": "cities.csv"}),
    ],
)
def test_answers_with_other_options_are_not_gone_on_with(small_index, queries, tmp_path, other):
    output = tmp_path / "answers.jsonl"
    index = open_index(small_index)
    lines = list(batch_lines(queries))
    run_batch(index, lines[:2], output)
    before = output.read_bytes()
    with pytest.raises(OutputError, match="were made with other options"):
        run_batch(index, lines, output, resume=True, **other)
    assert output.read_bytes() == before
    run_batch(index, lines[:2], output, overwrite=True, **other)
    assert run_batch(index, lines, output, resume=True, **other).earlier == 2
    with pytest.raises(OutputError, match="were made with other options"):
        run_batch(index, lines, output, resume=True)


def test_answers_of_another_index_or_state_are_not_gone_on_with(small_index, queries, tmp_path):
    output, lines = tmp_path / "answers.jsonl", list(batch_lines(queries))
    copied = tmp_path / "copied.pexeso"
    shutil.copytree(small_index, copied)
    run_batch(open_index(copied), lines[:2], output)
    assert run_batch(open_index(small_index), lines[:3], output, resume=True).earlier == 2
    index = open_index(copied)
    index.delete(["cities.csv"])
    with pytest.raises(OutputError, match=r"of another index, or of another state of this one"):
        run_batch(index, lines, output, resume=True)
    answers, [model] = output.read_text(encoding="utf-8"), open_index(small_index).models
    output.write_text(answers.replace(f'"model": "{model}"', '"model": "other"'), encoding="utf-8")
    with pytest.raises(OutputError, match="were made with other options"):
        run_batch(open_index(small_index), lines, output, resume=True)
    output.write_text(answers.replace('"of"', '"unknown"'), encoding="utf-8")
    with pytest.raises(OutputError, match=r"of another index, or of another state of this one"):
        run_batch(open_index(small_index), lines, output, resume=True)


def test_answers_go_to_regular_files_alone(fail, small_index, queries, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for output in (tmp_path / "pipe", "/dev/full", tmp_path):
        said = fail(1, "batch", small_index, queries, "-o", output)
        assert f"'{output}' is no regular file" in said


def test_standard_input_is_read_as_files_are(run, fail, small_index, monkeypatch):
    line = json.dumps(GOOD[0], ensure_ascii=False).encode()
    run("batch", small_index, "-", input=b"\xef\xbb\xbf" + line + b"\r\n\n")
    said = fail(2, "batch", small_index, "-", input=line.replace(b"Oslo", b"M\xf6lln"))
    assert "standard input cannot be read: it is not UTF-8 text" in said
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(QueryError, match="Standard input is closed"):
        batch._from_standard_input()


def test_two_runs_do_not_write_one_file(small_index, queries, tmp_path):
    output = tmp_path / "answers.jsonl"
    index = open_index(small_index)
    lines = list(batch_lines(queries))

    def intrude(progress):
        with pytest.raises(OutputError, match="Another run is writing"):
            run_batch(index, lines, output, resume=True)

    assert run_batch(index, lines, output, progress=intrude).answered == 5


def test_odd_ids_come_back_as_they_are(run, small_index, tmp_path):
    queries, output = tmp_path / "queries.jsonl", tmp_path / "answers.jsonl"
    ids = [None, 1.5, ["x", 1], {"n": "ü"}, "\ud800", "a\u2028b", True]
    lines = [json.dumps({"id": query_id, "values": ["Oslo"]}) for query_id in ids]
    queries.write_text("\n".join(lines), encoding="utf-8")
    run("batch", small_index, queries, "-o", output)
    assert [json.loads(line)["id"] for line in output.read_bytes().split(b"\n")[:-1]] == ids
    run("batch", small_index, queries, "-o", output, "--resume")
    assert len(output.read_bytes().split(b"\n")) == len(ids) + 1


def test_a_place_that_cannot_be_written(fail, small_index, queries, tmp_path):
    said = fail(1, "batch", small_index, queries, "-o", tmp_path / "no" / "such" / "answers.jsonl")
    assert said.endswith("cannot be written: No such file or directory.\n")


def test_on_spark_the_answers_are_the_same(run, small_index, queries, tmp_path, spark):
    command = ("batch", small_index, queries, "-k", 2, "--explain", "--rerank")
    local, result = run(*command), run(*command, "--spark-master", "local[2]")
    assert without_times(result.stdout) == without_times(local.stdout)
    assert result.stderr == local.stderr


def test_what_happens_can_be_told_as_json(run, small_index, queries, tmp_path, two_at_a_time):
    result = run(
        "--log-json", "batch", small_index, queries, "-k", 1, "-o", tmp_path / "answers.jsonl"
    )
    lines = [json.loads(line) for line in result.stderr.splitlines()]
    assert [line["lines"] for line in lines if line["event"] == "answered"] == [2, 4, 5]
    assert lines[-1]["event"] == "message"
    assert lines[-1]["message"].startswith("5 lines answered")
