"""Charts hold the values that they show, and change nothing else."""

import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot

import pexeso
from pexeso.errors import MissingPackageError
from pexeso.results.match_kinds import COLOURS, LABELS, MAX_CURVES, plot_curves, plot_kinds

CITIES = ["Oslo", "rome", "MADRIT", "Xyzzyx", "Oslo"]


@pytest.fixture(autouse=True)
def no_window(monkeypatch):
    before = dict(mpl.rcParams)
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")
    changed = {name for name in before if mpl.rcParams[name] != before[name]}
    assert changed <= {"backend", "backend_fallback"}


@pytest.fixture(scope="module")
def index(small_index):
    return pexeso.open_index(small_index, device="cpu")


@pytest.mark.parametrize("counted", ["values", "rows"])
def test_curves_are_the_joinability_at_every_distance(index, counted):
    options = {"min_joinability": 0.2, "max_distance": 0.6, "joinability_of": counted}
    result = index.search(CITIES, **options)
    ax = result.plot()
    assert len(ax.lines) == len(result) > 1
    for line, match in zip(ax.lines, result, strict=True):
        x, y = line.get_data()
        assert y[-1] == match.joinability
        assert (x[0], x[-1]) == (0, 0.6)
        for distance in (0.0, 0.1, 0.25, 0.4, 0.6):
            again = index.explain(
                CITIES, match.table, match.column, max_distance=distance, joinability_of=counted
            )
            assert y[np.searchsorted(x, distance, "right") - 1] == again.match.joinability
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == [f"{match.table}:{match.column}" for match in result]
    assert ax.get_xlabel() == "distance, up to that of the search (0.6)"
    assert counted in ax.get_ylabel()


def test_bars_are_the_kinds_of_a_match(index):
    match = index.search(CITIES, k=1, max_distance=0.6)[0]
    _, own = pyplot.subplots()
    ax = match.plot(own)
    assert ax is own
    kinds = match.kinds().matched
    assert [bar.get_width() for bar in ax.patches] == list(kinds.values())
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        LABELS.get(kind, kind) for kind in kinds
    ]
    assert ax.get_title() == f"{match.table}:{match.column}"


def test_nothing_found_is_an_empty_chart(index):
    ax = index.search(["qqqq"], max_distance=0).plot()
    assert len(ax.lines) == 0
    assert ax.get_title() == "0 columns found"
    ax.figure.canvas.draw()


def test_names_begin_no_formula_and_are_not_left_out():
    names = ["_hidden $x^", "a\nb$", "x" * 500]
    curves = [(name, np.array([0.1]), np.array([0.5])) for name in names]
    ax = plot_curves(curves, 30, 0.4, "values")
    ax.figure.canvas.draw()  # where a formula that is none would fail
    shown = [text.get_text() for text in ax.get_legend().get_texts()]
    assert shown[0] == names[0]
    assert shown[1] == "a\\nb$"
    assert len(shown[2]) < 60
    assert ax.get_title() == "30 columns found, the first 3"
    ax = plot_kinds("$x^", {"exact": 0}, "rows")
    ax.figure.canvas.draw()
    assert ax.get_title() == "$x^"


def test_a_curve_starts_at_equal_values():
    curves = [("a", np.array([0.0, 0.2]), np.array([0.25, 0.5])), ("b", *[np.array([])] * 2)]
    ax = plot_curves(curves, 2, 0.4, "values")
    (one, none) = ax.lines
    assert one.get_xydata().tolist() == [[0, 0.25], [0, 0.25], [0.2, 0.5], [0.4, 0.5]]
    assert none.get_ydata().tolist() == [0, 0]


def test_curves_are_told_apart():
    curves = [(str(n), np.array([0.1]), np.array([0.5])) for n in range(MAX_CURVES)]
    ax = plot_curves(curves, MAX_CURVES, 0.4, "values")
    assert len({(line.get_color(), line.get_linestyle()) for line in ax.lines}) == MAX_CURVES


@pytest.mark.parametrize("colour", sorted(COLOURS.values()))
def test_colours_can_be_seen_on_white(colour):
    def linear(part):
        share = int(part, 16) / 255
        return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(colour[at : at + 2]) for at in (1, 3, 5))
    assert 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05) >= 4.5


def test_without_matplotlib_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingPackageError, match=r"pip install .pexeso\[plot\]"):
        plot_kinds("a", {"exact": 1}, "values")
