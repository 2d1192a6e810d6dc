"""`--auto`, `--min-precision` and `pexeso tune`: what they say, and what they refuse."""

import json

import pytest

LABELS = "query_value,lake_value,same\nOSLO,Oslo,yes\nRome,rome,yes\nOslo,Madrid,no\n"


@pytest.fixture
def labels(write):
    return write("labels.csv", LABELS)


@pytest.mark.parametrize("options", [("--auto",), ("--min-precision", "0.95")])
def test_a_search_says_what_it_chose_and_why(run, small_index, places, options):
    result = run("search", small_index, f"{places}:place", *options)
    said = result.stderr.splitlines()[0]
    assert said.startswith("Chosen: --max-distance 0")
    assert "too few columns to learn from, so this is what usually suits the model" in said
    assert "cities.csv" in result.stdout
    assert "Chosen" not in result.stdout


def test_json_carries_it(run, small_index, places):
    document = json.loads(run("search", small_index, f"{places}:place", "--auto", "--json").stdout)
    assert document["options"]["advice"]["max_distance"] == document["options"]["max_distance"]
    assert document["options"]["advice"]["why"]


def test_explain_and_join_choose_for_the_two_columns(run, small_index, places, tmp_path):
    pair = (small_index, f"{places}:place", "cities.csv:city", "--auto")
    explained, joined = run("explain", *pair), run("join", *pair, "-o", tmp_path / "joined.csv")
    places.write_text(places.read_text("utf-8").replace("place", "city", 1), encoding="utf-8")
    best = run("join", small_index, f"{places}:city", "--auto", "-o", tmp_path / "best.csv")
    chosen = [result.stderr.splitlines()[0] for result in (explained, joined, best)]
    assert all(
        line.startswith("Chosen: --max-distance ") and "--min-joinability" not in line
        for line in chosen
    )
    # Of three values in a lake of five columns all may match, and tell nothing of others.
    assert all("too few values to learn from" in line for line in chosen)
    assert all("precision" not in line for line in chosen)
    assert chosen[0] == chosen[1]
    best_rows, rows = (
        (tmp_path / f"{name}.csv").read_text().splitlines()[1:] for name in ("best", "joined")
    )
    assert best_rows == rows


def test_a_batch_says_it_once_and_goes_on_with_its_own_answers(
    run, fail, small_index, tmp_path, write
):
    answers = tmp_path / "answers.jsonl"
    queries = write(
        "queries.jsonl",
        '{"id": 1, "values": ["Oslo", "Rome"]}\n{"id": 2, "values": ["Bern", "Rome", "Oslo", '
        '"Vienna", "Madrid"]}\n',
    )
    result = run("batch", small_index, queries, "-o", answers, "--auto")
    assert result.stderr.count("Chosen: ") == 1
    whole = answers.read_bytes()
    answers.write_bytes(whole[: whole.index(b"\n") + 1])
    run("batch", small_index, queries, "-o", answers, "--auto", "--resume")
    first, second = (json.loads(line)["options"] for line in answers.read_bytes().splitlines())
    assert first["advice"] == second["advice"]
    assert "other options" in fail(1, "batch", small_index, queries, "-o", answers, "--resume")


def test_tune_prints_the_options_to_use_and_the_reason(run, small_index, labels):
    result = run("tune", small_index, labels)
    options, why = result.stdout.splitlines()
    assert options.startswith("--max-distance 0")
    assert options.endswith("--min-joinability 0.5")
    assert why.startswith(
        "On 3 labelled pairs (2 yes) precision is 100 %, recall 100 %, F1 1.00 (90 % interval 0."
    )
    document = json.loads(run("tune", small_index, labels, "--json").stdout)
    assert document["evidence"]["labels"] == 3
