"""Sweeps: what is declared, what is varied, what a result holds, and what its plot says."""

import gc
import json
import sys
import weakref
from dataclasses import replace

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from benchmarks import report
from benchmarks.cli import main
from benchmarks.cutting import cut_columns, cut_rows
from benchmarks.datasets.synthetic import RandomData
from benchmarks.declared import Algorithm, load_candidates
from benchmarks.harness import Settings
from benchmarks.source import Source
from benchmarks.sweeps import Sweep, choice, growth, known_sweeps, run_sweep
from pexeso.errors import InputError, MissingPackageError

CPU = torch.device("cpu")
TINY = Settings(queries=4, repeats=1, threads=1)


class Scaled(RandomData):
    """`random` as a data set that can be made at a scale."""

    scale = 1.0


@pytest.fixture
def small_random(monkeypatch):
    """The data set `random`, small; gives the dimensions and scales that were asked for."""
    requests = []

    def make(name, *, model="fasttext", dimensions=16, seed=0, scale=1.0):
        requests.append((dimensions, scale))
        return Scaled(round(60 * scale), round(600 * scale), dimensions, 4, seed)

    monkeypatch.setattr("benchmarks.source.data_set", make)
    return requests


def sweep(over, values=(), algorithms=("brute_gemm",), **more):
    return Sweep("mine", "Mine", over, tuple(algorithms), tuple(values), **more)


def test_the_declared_sweeps_can_be_run():
    sweeps = known_sweeps()
    assert {"ablation", "pivots", "axes", "tau", "joinability", "columns", "dimensions"} <= set(
        sweeps
    )
    for declared_sweep in sweeps.values():
        pytest.importorskip("faiss")
        candidates = load_candidates(declared_sweep.algorithms, CPU)
        for argument in filter(None, (declared_sweep.x, declared_sweep.lines)):
            assert all(
                argument in candidate.build_arguments | candidate.query_arguments
                for candidate in candidates
            )
    assert sweeps["tau"].values[0] == 0
    assert sweeps["tau"].values[-1] == 0.2
    assert sweeps["joinability"].values == (0.2, 0.4, 0.6, 0.8, 1.0)
    assert sweeps["columns"].values == (0.01, 0.1, 1)


def lemmas_of(grid):
    return [set(candidate.query_arguments["lemmas"]) for candidate in load_candidates([grid], CPU)]


def test_an_ablation_leaves_out_every_lemma_once_and_has_each_alone():
    from pexeso.engine.lemmas import ALL_LEMMAS

    every = set(ALL_LEMMAS)
    off, alone = [every - {lemma} for lemma in every], [{lemma} for lemma in every]
    (whole, *others) = lemmas_of("pexeso:ablation")
    assert whole == every
    assert sorted(map(sorted, others)) == sorted(map(sorted, [*off, *alone, set()]))
    assert sorted(map(sorted, lemmas_of("pexeso:ablation_off"))) == sorted(
        map(sorted, [every, *off])
    )


def test_on_blocks_accepting_filters_are_one_switch_and_nothing_browses():
    accepting = {"L2", "L5", "L6"}
    for lemmas in lemmas_of("pexeso:ablation_blocks"):
        assert lemmas & accepting in (set(), accepting)
        assert "QB" not in lemmas


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        (
            "a: {title: A, over: colour, algorithms: [pexeso]}",
            "must be over arguments, .* Got 'colour'",
        ),
        ("a: {title: A, over: max_distance, algorithms: [pexeso]}", "must have values"),
        (
            "a: {title: A, over: arguments, algorithms: [pexeso], values: [1]}",
            "must have values, unless",
        ),
        ("a: {title: A, over: columns, algorithms: [pexeso], values: [1, 0.1]}", "must ascend"),
        ("a: {title: A, over: columns, values: [1]}", "not declared as it must be: .*algorithms"),
        ("a: {title: A, over: columns, algorithms: [pexeso], values: [1], colour: red}", "colour"),
    ],
)
def test_declarations_that_cannot_be_run_are_refused(tmp_path, declared, says):
    (tmp_path / "sweeps.yml").write_text(declared, encoding="utf-8")
    with pytest.raises(InputError, match=says):
        known_sweeps(tmp_path / "sweeps.yml")


def test_a_sweep_of_the_question_builds_once(small_random, monkeypatch):
    from benchmarks.algorithms.brute_gemm.module import BruteGemm

    builds, questions = [], set()
    build, query = BruteGemm.build, BruteGemm.query
    monkeypatch.setattr(
        BruteGemm, "build", lambda self, *given: (builds.append(1), build(self, *given))
    )
    monkeypatch.setattr(
        BruteGemm,
        "query",
        lambda self, one: (questions.add((one.name, one.max_distance)), query(self, one))[1],
    )
    result = run_sweep(sweep("max_distance", (0, 0.05, 0.2)), Source("random"), TINY)
    assert (result["agree"], len(builds), len(result["lakes"])) == (True, 1, 1)
    assert [row["x"] for row in result["rows"]] == [0, 0.05, 0.2]
    hits = [row["columns_found"] for row in result["rows"]]
    assert hits[0] < hits[2], "a larger distance must find more columns, else nothing was varied"
    assert {distance for _, distance in questions} == {0, 0.05, 0.2}
    assert len({name for name, _ in questions}) == 4, "the same query columns at every point"
    assert result["growth"] is None
    json.dumps(result)


def test_a_sweep_over_joinability_finds_fewer_columns(small_random):
    result = run_sweep(sweep("min_joinability", (0.1, 0.9)), Source("random"), TINY)
    assert result["rows"][0]["columns_found"] > result["rows"][1]["columns_found"]


def test_a_sweep_over_arguments_has_a_row_for_each_point(small_random):
    result = run_sweep(
        sweep(
            "arguments",
            algorithms=["pexeso:sizes"],
            x="n_pivots",
            lines="n_levels",
            choice="n_levels",
        ),
        Source("random"),
        Settings(queries=1, repeats=1, threads=1),
    )
    assert result["agree"] is True
    rows = result["rows"]
    assert {(row["x"], row["line"]) for row in rows} == {
        (row["arguments"]["n_pivots"], row["line"]) for row in rows
    }
    assert len({(row["x"], row["line"]) for row in rows}) == len(rows) == 15
    assert {row["line"] for row in rows} == {
        f"n_levels = {row['arguments']['n_levels'] or 'chosen'}" for row in rows
    }
    assert {decision["others"]["n_pivots"] for decision in result["choices"]} == {3, 5, 7}
    assert all(decision["chosen"] in range(1, 13) for decision in result["choices"])


def test_indexes_of_one_place_of_the_axis_are_held_at_a_time(small_random, monkeypatch):
    from benchmarks.algorithms.pexeso.module import Pexeso

    held, counts, build = weakref.WeakSet(), [], Pexeso.build

    def counted(self, lake, arguments):
        build(self, lake, arguments)
        held.add(self._partition)
        gc.collect()
        counts.append(len(held))

    def two_lines(algorithms, device):
        return [
            candidate
            for candidate in load_candidates(algorithms, device)
            if candidate.build_arguments["n_levels"] in (2, 4)
        ]

    monkeypatch.setattr(Pexeso, "build", counted)
    monkeypatch.setattr("benchmarks.sweeps.load_candidates", two_lines)
    few = Settings(queries=1, repeats=1, threads=1)
    declared = replace(known_sweeps()["pivots"], choice=None)
    run_sweep(declared, Source("random"), few)
    assert counts == [1, 2] * 3


def test_points_of_an_ablation_are_called_by_what_they_lack(small_random):
    few = Settings(queries=1, repeats=1, threads=1)
    result = run_sweep(sweep("arguments", algorithms=["pexeso:ablation"]), Source("random"), few)
    labels = [row["x"] for row in result["rows"]]
    assert labels[:2] == ["all lemmas", "without L1"]
    assert (labels[9], labels[-2:]) == ("L1 alone", ["QB alone", "no lemmas"])
    assert len(set(labels)) == len(labels)
    assert len({row["build_seconds"] for row in result["rows"]}) == 1, "built once for all points"


def test_a_sweep_over_columns_asks_the_same_and_tells_the_growth(small_random):
    declared = sweep("columns", (0.1, 0.5, 1), ["brute_gemm", "pexeso"], growth_limit=1e-9)
    result = run_sweep(declared, Source("random"), TINY)
    assert result["agree"] is True
    assert [row["columns"] for row in result["rows"]] == [6, 6, 30, 30, 60, 60]
    assert [row["x"] for row in result["rows"]] == [row["columns"] for row in result["rows"]]
    values = [row["values"] for row in result["rows"] if row["algorithm"] == "brute_gemm"]
    distances = [row["distances"] for row in result["rows"] if row["algorithm"] == "brute_gemm"]
    ratios = {distance / n_values for distance, n_values in zip(distances, values, strict=True)}
    assert max(ratios) == pytest.approx(min(ratios)), "the same query values at every size"
    growth = result["growth"]
    assert growth["limit_per_10x_columns"] == 1e-9
    times = [row["median_seconds"] for row in result["rows"] if row["algorithm"] == "pexeso"]
    pexeso_growth = growth["algorithms"]["pexeso"]
    assert pexeso_growth["factor_per_10x_columns"] == pytest.approx(
        times[2] / times[0]
    )  # from 6 to 60 columns
    assert pexeso_growth["within_limit"] is False
    assert set(pexeso_growth) == {"factor_per_10x_columns", "steps", "within_limit"}
    first = pexeso_growth["steps"][0]
    assert (first["from_columns"], first["to_columns"]) == (6, 30)
    assert first["factor_per_10x_columns"] ** np.log10(5) == pytest.approx(times[1] / times[0])
    assert "times the time for ten times the columns" in report.sweep_table(result)


def test_a_sweep_over_scale_or_dimensions_makes_other_lakes(small_random):
    result = run_sweep(sweep("dimensions", (8, 24)), Source("random"), TINY)
    assert [row["dimensions"] for row in result["rows"]] == [8, 24]
    assert len(result["lakes"]) == 2
    result = run_sweep(sweep("scale", (0.5, 1)), Source("random"), TINY)
    assert [row["columns"] for row in result["rows"]] == [30, 60]
    assert set(result["growth"]["algorithms"]) == {"brute_gemm"}
    assert small_random == [(8, 1.0), (24, 1.0), (16, 0.5), (16, 1.0)]


def test_a_difference_says_at_which_point(small_random, monkeypatch):
    from benchmarks.algorithms.brute_gemm.module import BruteGemm

    query = BruteGemm.query

    def wrong_at_times(self, one):
        columns, counts = query(self, one)
        return columns, counts + (one.max_distance > 0.1)

    monkeypatch.setattr(BruteGemm, "query", wrong_at_times)
    result = run_sweep(sweep("max_distance", (0.05, 0.2)), Source("random"), TINY)
    assert result["agree"] is False
    assert result["differences"]
    assert all(
        difference.startswith("max_distance 0.2: brute_gemm and float64 differ")
        for difference in result["differences"]
    )


def test_a_cut_lake_keeps_columns_whole():
    lake = RandomData(50, 700, 8, 4, seed=5).load()
    part, smaller = cut_columns(lake, 0.4, seed=1), cut_columns(lake, 0.1, seed=1)
    assert (part.n_columns, smaller.n_columns) == (20, 5)
    assert set(smaller.columns) < set(part.columns) < set(lake.columns)
    assert cut_columns(lake, 1, seed=1) is lake
    assert part.n_values == len(np.unique(part.column_values)) < lake.n_values
    for number, name in enumerate(part.columns):
        old = list(lake.columns).index(name)
        ours, theirs = (
            slice(*side.column_offsets[place : place + 2])
            for side, place in ((part, number), (lake, old))
        )
        assert np.array_equal(
            part.vectors[part.column_values[ours]], lake.vectors[lake.column_values[theirs]]
        )
        assert np.array_equal(part.value_rows[ours], lake.value_rows[theirs])
        assert part.column_rows[number] == lake.column_rows[old]
    assert part.facts["share_of_columns"] == 0.4
    assert part.fingerprint != lake.fingerprint
    assert cut_columns(lake, 1e-9, seed=1).n_columns == 1


def test_a_lake_of_fewer_rows_has_all_columns():
    lake = RandomData(50, 700, 8, 4, seed=5).load()
    part, smaller = cut_rows(lake, 0.5, seed=1), cut_rows(lake, 0.1, seed=1)
    assert cut_rows(lake, 1, seed=1) is lake
    assert part.n_values == len(np.unique(part.column_values)) < lake.n_values
    assert list(part.columns) == list(lake.columns)
    for number in range(lake.n_columns):
        (whole, some, few) = (
            {
                (one.vectors[value].tobytes(), rows)
                for value, rows in zip(
                    one.column_values[slice(*one.column_offsets[number : number + 2])],
                    one.value_rows[slice(*one.column_offsets[number : number + 2])],
                    strict=True,
                )
            }
            for one in (lake, part, smaller)
        )
        assert few <= some < whole
        assert len(some) == round(0.5 * len(whole))
        assert part.column_rows[number] - sum(rows for _, rows in some) == (
            lake.column_rows[number] - sum(rows for _, rows in whole)
        )
    assert part.facts["share_of_values"] == 0.5


def test_a_sweep_over_rows_asks_the_same_columns(small_random):
    result = run_sweep(sweep("rows", (0.5, 1)), Source("random"), TINY)
    assert result["agree"]
    assert [row["x"] for row in result["rows"]] == [0.5, 1]
    assert result["rows"][0]["values"] < result["rows"][1]["values"]


def test_every_step_of_growth_must_keep_within_the_limit():
    def growth_of(*seconds):
        rows = [
            {"algorithm": "a", "columns": 10 ** (1 + place), "median_seconds": median}
            for place, median in enumerate(seconds)
        ]
        return growth(rows, 6)["algorithms"]["a"]

    assert growth_of(1, 1, 7)["factor_per_10x_columns"] == pytest.approx(7**0.5)
    assert growth_of(1, 1, 7)["within_limit"] is False
    assert growth_of(1, 5, 25)["within_limit"] is True
    assert growth_of(1) == {"factor_per_10x_columns": None, "steps": [], "within_limit": None}


@pytest.mark.parametrize("share", [0, -1, 1.1, float("nan")])
def test_shares_that_are_none_are_refused(share):
    with pytest.raises(InputError, match=r"must lie in \(0, 1\]"):
        cut_columns(RandomData(5, 20, 4, 1).load(), share, seed=0)
    with pytest.raises(InputError, match=r"must lie in \(0, 1\]"):
        cut_rows(RandomData(5, 20, 4, 1).load(), share, seed=0)


# --- the command and the plot


@pytest.fixture
def results(tmp_path, monkeypatch, small_random):
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    return tmp_path


COMMAND = ["--data", "random", "--queries", "4", "--repeats", "1", "--threads", "1"]


def invoke(*arguments):
    return CliRunner().invoke(main, ["sweep", *arguments, *COMMAND])


def test_the_command_writes_one_result_and_one_plot(results):
    done = invoke("columns", "--algorithms", "pexeso,brute_gemm", "--json")
    assert done.exit_code == 0, done.output
    printed = json.loads(done.stdout)
    assert (printed["sweep"], printed["data"], printed["queries"], printed["agree"]) == (
        "columns",
        "random",
        4,
        True,
    )
    path, plot = sorted(results.rglob("*.*"))
    assert json.loads(path.read_text(encoding="utf-8")) == printed
    assert plot == path.with_suffix(".png")
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert plot.stat().st_size > 10_000


def test_a_finished_sweep_is_shown_again_unless_something_changed(results, monkeypatch):
    few = replace(known_sweeps()["joinability"], values=(0.2,))
    monkeypatch.setattr("benchmarks.sweeps.known_sweeps", lambda: {"joinability": few})
    monkeypatch.setattr("benchmarks.plots.plot_sweep", lambda result, path: path.touch())
    command = ["joinability", "--algorithms", "brute_gemm", "--json"]
    printed = json.loads(invoke(*command).stdout)
    (path,) = results.rglob("*.json")

    def shown(*arguments, **changed):
        path.write_text(json.dumps({**printed, "queries": -1, **changed}), encoding="utf-8")
        return json.loads(invoke(*command, *arguments).stdout)["queries"]

    next(results.rglob("*.png")).unlink()
    assert shown() == -1
    assert list(results.rglob("*.png")), "the plot is drawn again"
    assert shown("--force") == 4
    assert shown(origin={"code": "other"}) == 4
    assert shown(machine={**printed["machine"], "cores": 0}) == 4
    assert shown(declared={**printed["declared"], "values": [0.5]}) == 4


def test_the_command_says_what_differs_and_fails(results, monkeypatch):
    class Wrong(Algorithm):
        def build(self, lake, arguments):
            self.index_bytes = 1

        def query(self, query):
            return torch.tensor([0]), torch.tensor([10**6])

    monkeypatch.setattr("benchmarks.algorithms.brute_gemm.module.BruteGemm.query", Wrong.query)
    done = invoke("joinability", "--algorithms", "brute_gemm")
    assert done.exit_code == 1
    assert "ANSWERS DIFFER" in done.stdout
    assert "Answers differ: min_joinability 0.2: brute_gemm and float64 differ" in done.stderr


def test_the_command_says_in_one_line_what_is_wrong(results):
    done = invoke("colours")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("Error: Sweeps are ablation, ")


def rows(**more):
    base = {
        "line": "a",
        "median_seconds": 0.02,
        "p10_seconds": 0.01,
        "p90_seconds": 0.3,
        "distances": 50.0,
        **more,
    }
    return [{**base, "x": x, "median_seconds": 0.02 * x} for x in (1, 10, 100)]


def drawn(monkeypatch, tmp_path, given, axis):
    """Draw a hand-made result; give the figure."""
    from matplotlib.figure import Figure

    from benchmarks.plots import plot_sweep

    figures = []
    savefig = Figure.savefig
    monkeypatch.setattr(
        Figure,
        "savefig",
        lambda self, *args, **options: (figures.append(self), savefig(self, *args, **options)),
    )
    lake = {"values": 5_000, "dimensions": 8, "columns": 100}
    machine = {
        "processor": "A processor",
        "cores": 2,
        "device": "cpu",
        "date": "2001-02-03T00:00:00",
    }
    result = {
        "data": "random",
        "queries": 4,
        "rows": given,
        "lakes": [lake],
        "settings": vars(TINY),
        "machine": machine,
        "origin": {"code": "12ab"},
        "declared": {"title": "Mine", "axis": axis, "over": "columns"},
    }
    plot_sweep(result, tmp_path / "plot.png")
    return figures[0]


def test_a_plot_has_units_logarithmic_axes_and_where_it_was_measured(monkeypatch, tmp_path):
    figure = drawn(
        monkeypatch, tmp_path, rows() + rows(line="b", distances=5e6), "columns in the lake"
    )
    time, work = figure.axes
    assert time.get_ylabel() == "time per query column (ms)"
    assert work.get_ylabel() == "distances per query column (number)"
    assert work.get_xlabel() == "columns in the lake"
    assert (time.get_xscale(), time.get_yscale(), work.get_yscale()) == ("log", "log", "log")
    assert [text.get_text() for text in time.get_legend().get_texts()] == ["a", "b"]
    assert time.lines[0].get_ydata() == pytest.approx([20, 200, 2000])
    assert len(time.collections) == 2, "a band for each line"
    words = figure.get_supxlabel()
    for part in (
        "5,000 vectors of 8 dimensions",
        "100 columns",
        "4 query columns",
        "A processor",
        "1 thread",
        "12ab",
    ):
        assert part in words.replace("\n", " ")
    assert "2001-02-03" in words


def test_an_axis_within_a_decade_starts_at_zero_and_what_is_not_known_is_left_out(
    monkeypatch, tmp_path
):
    given = [
        {**row, "median_seconds": 0.02, "p90_seconds": 0.03, "distances": None} for row in rows()
    ]
    (time,) = drawn(monkeypatch, tmp_path, given, "columns in the lake").axes
    assert time.get_yscale() == "linear"
    assert time.get_ylim() == (0, pytest.approx(30 * 1.05))
    assert time.get_legend() is None


def test_zeros_are_shown_beside_decades(monkeypatch, tmp_path):
    given = [
        {**row, "distances": distances} for row, distances in zip(rows(), (0, 5, 5e6), strict=True)
    ]
    _, work = drawn(monkeypatch, tmp_path, given, "columns in the lake").axes
    assert work.get_yscale() == "symlog"
    assert list(work.lines[0].get_ydata()) == [0, 5, 5e6]
    assert work.get_ylim()[0] <= 0


def test_points_without_an_axis_are_rows_with_names(monkeypatch, tmp_path):
    given = [{**row, "x": f"without L{row['x']}"} for row in rows()]
    time, work = drawn(monkeypatch, tmp_path, given, None).axes
    assert [text.get_text() for text in time.get_yticklabels()] == [
        "without L1",
        "without L10",
        "without L100",
    ]
    assert (time.get_xscale(), time.get_xlabel()) == ("log", "time per query column (ms)")
    assert work.get_xlim()[0] == 0


def test_a_missing_matplotlib_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    from benchmarks.plots import plot_sweep

    with pytest.raises(MissingPackageError, match="Plots need matplotlib"):
        plot_sweep({}, tmp_path / "plot.png")


def test_what_a_build_chooses_is_held_against_the_best_of_what_was_given(small_random):
    """Check that the level count chosen for the pivot grid is one that the sweep measured.

    The lake is tiny.
    """
    declared = sweep("arguments", algorithms=["pexeso:levels"], choice="n_levels")
    result = run_sweep(declared, Source("random"), TINY)
    assert result["agree"]
    open_row = [row for row in result["rows"] if row["arguments"]["n_levels"] is None]
    [row] = open_row
    [decision] = result["choices"]
    assert decision["others"]["n_pivots"] == 5
    assert decision["argument"] == "n_levels"
    assert decision["chosen"] == row["chosen"]["n_levels"]
    assert decision["chosen"] in range(1, 13)
    assert decision["best"] in range(1, 9)
    assert f"chosen {decision['chosen']}, best {decision['best']}" in report.sweep_table(result)


def test_a_choice_that_was_not_among_the_points_has_no_ratio():
    rows = [
        {"arguments": {"n": 1}, "chosen": {}, "median_seconds": 2.0},
        {"arguments": {"n": 2}, "chosen": {}, "median_seconds": 1.0},
        {"arguments": {"n": None}, "chosen": {"n": 1}, "median_seconds": 2.1},
    ]
    expected = {"argument": "n", "chosen": 1, "best": 2, "chosen_seconds": 2.0, "best_seconds": 1.0}
    assert choice(rows, "n") == {**expected, "times_the_best": 2.0}
    rows[2]["chosen"]["n"] = 9
    assert choice(rows, "n") == {
        **expected,
        "chosen": 9,
        "chosen_seconds": None,
        "times_the_best": None,
    }
