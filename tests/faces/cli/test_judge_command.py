"""``pexeso judge``: answers by letters, kept at once; wrong ones, undo, the end of the input."""

import json
import os
import signal
import subprocess
import sys

import pytest

import pexeso
from pexeso.lake.judgements import read_judgements

CITIES = ["Oslo", "Rome", "Paris", "Berlin", "Madrid", "Lisbon", "Vienna", "Prague"]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judge")
    lake = folder / "lake"
    lake.mkdir()
    odd = ["\x1b[31mOslo", *CITIES[1:4], "Xanten", "Ypern"]
    columns = {"a.csv": CITIES, "b.csv": odd, "c.csv": CITIES[3:]}
    for name, values in columns.items():
        (lake / name).write_text("city\n" + "".join(f"{value}\n" for value in values))
    return pexeso.build_index(lake, folder / "lake.pexeso").path


@pytest.fixture
def index(built):
    yield built
    (built / "judgements.csv").unlink(missing_ok=True)


def verdicts(index) -> list[str]:
    return [row.verdict for row in read_judgements(index).rows]


def test_answers_are_kept_in_their_order(run, index):
    result = run("judge", index, input="y\nN\nunsure\n")
    assert verdicts(index) == ["yes", "no", "unsure"]
    assert "do these columns join?" in result.stderr
    assert "3 judgements kept in" in result.stderr
    assert "No probability yet" in result.stdout
    assert "\x1b" not in result.output
    again = run("judge", index, input="")
    assert "There is no doubtful pair" in again.stderr
    assert verdicts(index) == ["yes", "no", "unsure"]


def test_undo_takes_the_last_answer_back_and_asks_again(run, index):
    result = run("judge", index, input="z\nn\nz\ny\nq\n")
    assert "nothing to undo" in result.stderr
    assert verdicts(index) == ["no", "unsure", "yes"]
    assert len(read_judgements(index).latest) == 1


def test_a_wrong_answer_is_asked_again(run, index):
    result = run("judge", index, input="perhaps\ny\n")
    assert "Answer with one letter. Got 'perhaps'" in result.stderr
    assert verdicts(index) == ["yes"]


def test_as_json_nothing_is_asked(run, index):
    run("judge", index, input="n\n")
    document = json.loads(run("judge", index, "--json", input="y\n").stdout)
    assert [row["verdict"] for row in document["judgements"]] == ["no"]
    assert document["calibration"] is None
    assert {"query_table", "lake_column", "score", "pairs"} <= document["doubts"][0].keys()
    assert verdicts(index) == ["no"]


def test_where_nothing_is_doubtful_this_is_said(run, tmp_path, write):
    lake = write("lake/a.csv", "city\nOslo\nRome\nParis\nLima\nQuito\n").parent
    index = pexeso.build_index(lake, tmp_path / "lake.pexeso").path
    assert "no doubtful pair" in run("judge", index).stderr


def test_a_broken_table_and_a_wrong_option_are_one_sentence(fail, index):
    (index / "judgements.csv").write_text("a,b\n")
    assert "judgements.csv', line 1" in fail(2, "judge", index)
    assert "No such option" in fail(2, "judge", index, "--fast")
    assert "no.pexeso" in fail(1, "judge", "no.pexeso")


def test_ctrl_c_keeps_what_was_said(index):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-m", "pexeso", "judge", str(index)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    process.stdin.write(b"y\n")
    process.stdin.flush()
    # The next question comes when the answer to the first is kept and counted.
    assert any(line.startswith(b"2: ") for line in process.stderr)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"1 judgement kept in" in said
    assert verdicts(index) == ["yes"]


def test_tune_takes_the_judged_columns(run, fail, index):
    assert "'pexeso judge" in fail(2, "tune", index)
    run("judge", index, input="y\nn\n" * 3)
    result = run("tune", index)
    assert result.stdout.startswith("--max-distance")


def test_a_rejected_join_is_made_and_explained_with_a_note(run, index):
    table = index.parent / "lake" / "a.csv"
    words = (index, f"{table}:city", "c.csv:city")
    assert "rejects" not in run("join", *words).stderr + run("explain", *words).stderr
    pexeso.record_judgements(
        index, [pexeso.Judgement("a.csv", "city", "c.csv", "city", "", "", "no")]
    )
    assert "A judgement rejects this join" in run("join", *words).stderr
    assert "A judgement rejects this join" in run("explain", *words).stderr
    assert json.loads(run("explain", *words, "--json").stdout)["rejected"]
