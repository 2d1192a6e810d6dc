"""Columns whose values nearly all match: what is listed, refused, shown and stopped."""

import csv
import io
import json
import random
import signal
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from click.testing import CliRunner

from pexeso import build_index, open_index
from pexeso.engine.sparse import comparison
from pexeso.errors import InputError
from pexeso.faces.cli import join, search
from pexeso.faces.cli.main import cli
from pexeso.joins import tables
from pexeso.joins.mapping import PairColumns, loops, make_mapping
from pexeso.joins.options import join_options
from pexeso.results import matches
from pexeso.runtime import threads
from pexeso.runtime.progress import reported_steps

N_QUERIES, N_LAKE = 12, 40


def drawn(n, seed):
    rng = random.Random(seed)
    return ["".join(rng.choice("ab") for _ in range(24)) for _ in range(n)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Index two-letter values, with a column of others to ask for."""
    folder = tmp_path_factory.mktemp("letters")
    (folder / "lake").mkdir()
    (folder / "lake" / "codes.csv").write_text("code\n" + "\n".join(drawn(N_LAKE, 1)) + "\n")
    (folder / "asked.csv").write_text("code\n" + "\n".join(drawn(N_QUERIES, 2)) + "\n")
    build_index(folder / "lake", folder / "index")
    return folder


@pytest.fixture(scope="module")
def explanation(folder):
    return open_index(folder / "index").explain(drawn(N_QUERIES, 2), "codes.csv", "code")


def run(folder, command, *options):
    arguments = [folder / "index", f"{folder}/asked.csv:code", "codes.csv:code", *options]
    done = CliRunner().invoke(cli, [command, *map(str, arguments)], prog_name="pexeso")
    assert done.exit_code == 0, done.output
    return done.stdout


def test_of_many_pairs_the_nearest_of_each_value_are_listed_and_the_others_counted(
    folder, explanation, monkeypatch
):
    pairs = explanation.match.pairs()
    assert len(pairs) > 20 * N_QUERIES  # nearly all match: that is what these values are
    monkeypatch.setattr(matches, "MAX_LISTED_PAIRS", 3 * N_QUERIES + 5)
    document = json.loads(run(folder, "explain", "--json"))
    assert document["pairs_left_out"] == len(pairs) - 3 * N_QUERIES - 5
    assert sum(kind["pairs"] for kind in document["kinds"].values()) == len(pairs)
    by_value = {}
    for pair in pairs:
        by_value.setdefault(pair.query, []).append(pair.to_list())
    listed = {value: [pair for pair in document["pairs"] if pair[0] == value] for value in by_value}
    for number, (value, of_value) in enumerate(by_value.items()):
        assert listed[value] == of_value[: 4 if number < 5 else 3]
    shown = run(folder, "explain")
    assert f"{len(pairs):,} matching pairs:" in shown
    assert (
        f"and {document['pairs_left_out']:,} more pairs: these are the nearest of each value, and "
        "--csv lists all" in shown
    )
    table = list(csv.reader(io.StringIO(run(folder, "explain", "--csv"))))
    assert [row[:2] for row in table[1:]] == [[pair.query, pair.value] for pair in pairs]


def test_where_all_pairs_are_listed_none_are_said_to_be_left_out(folder, explanation):
    document = json.loads(run(folder, "explain", "--json"))
    assert document["pairs"] == [pair.to_list() for pair in explanation.match.pairs()]
    assert "pairs_left_out" not in document


def test_pairs_that_memory_does_not_hold_are_refused(folder, monkeypatch):
    monkeypatch.setattr(comparison, "FEW_PAIRS", 0)
    monkeypatch.setattr(threads, "available_memory", lambda: 50_000)
    index = open_index(folder / "index")
    with pytest.raises(InputError) as refused:
        index.explain(drawn(N_QUERIES, 2), "codes.csv", "code")
    message = str(refused.value)
    assert message.startswith("More than ")
    assert "pairs of values match within distance 0.4, which take " in message
    assert message.endswith("available: take a smaller max_distance, or give fewer values.")
    index.explain(drawn(1, 2), "codes.csv", "code")  # 40 pairs at most fit


@pytest.mark.parametrize("values", ["nearest", "one-to-one", "all"])
def test_a_mapping_is_that_of_all_pairs(explanation, values):
    match = explanation.match
    query, pairs = match._details._query, match._details.table(match._position)
    options = join_options({"values": values, "many_to_many": True})
    mapping = tables.mapping_of_match(query, match, options)
    own_texts = pairs.texts.take(pairs.text).cast("large_string")
    every = PairColumns(own_texts, pairs.keys, pairs.values, pairs.distances, pairs.costs)
    whole = make_mapping(pairs.texts, query.texts[1], query.values, every, values)

    def joined(made):
        return [
            (int(made.query[link]), made.lake_keys[made.lake[link]].as_py(), made.distance[link])
            for link in np.flatnonzero(made.chosen)
        ]

    assert joined(mapping) == joined(whole)
    assert (len(mapping.query) < len(whole.query)) == (values == "nearest")


@pytest.mark.parametrize(("command", "module"), [("explain", search), ("join", join)])
def test_a_join_and_an_explanation_report_how_far_they_are(folder, monkeypatch, command, module):
    steps = []

    @contextmanager
    def watched():
        with reported_steps(lambda n_done, total: steps.append((n_done, total))):
            yield

    monkeypatch.setattr(module, "search_progress", watched)
    run(folder, command)
    assert steps[-1] == (N_QUERIES * N_LAKE, N_QUERIES * N_LAKE)


def test_an_assignment_of_values_that_all_match_can_be_stopped():
    """A signal is handled while compiled code assigns, not after it."""
    n = 700
    costs = np.random.default_rng(0).integers(0, 3, n * n).astype(np.float64)
    offsets, lake = np.arange(n + 1) * n, np.tile(np.arange(n), n)
    handled = []
    before = signal.signal(signal.SIGUSR1, lambda *_: handled.append(time.monotonic()))
    timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGUSR1])
    started = time.monotonic()
    timer.start()
    try:
        loops.assign_rows(offsets, lake, costs, n, 3.0 * n)
        ended = time.monotonic()
    finally:
        timer.cancel()
        signal.signal(signal.SIGUSR1, before)
    assert ended - handled[0] > (ended - started) / 4
