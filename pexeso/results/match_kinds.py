"""What makes two values match: equal cells, an alias, near letters, or a near meaning alone.

The kind of a pair is decided on the two cells and on their values as the index holds them,
normalised (see `pexeso.lake.normalise.normaliser`):

- ``exact``: the cells are the same text, white space around them apart. The index holds one cell of
  each value of a column, the first: a pair of other cells of these values is a spelling.
- ``alias``: they are the same value since the user's table of aliases says so. Only indexes with
  aliases have such pairs, and only counts of these name the kind.
- ``spelling``: their values are the same, so that the cells differ in case, accents, punctuation,
  the way of writing a date or an abbreviation alone; or the letters of the values are nearly the
  same: the normalised Indel similarity (twice the length
  of the longest common subsequence by the sum of the two lengths) is at least `LEAST_LIKENESS` of
  100, as they are or with their words sorted.
- ``meaning``: all other pairs. The model alone brought them together.

`LEAST_LIKENESS` of 75 is one wrong letter in a word of four. Measured on the linked cells of 2,108
tables of Wikipedia: all of 4,837 values of four letters or more with one letter added, left out,
changed or swapped with the next reach it, and 3 of 20,000 pairs of values drawn at random.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.runtime.extras import require
from pexeso.runtime.formatting import Shown, percent, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes


EXACT, ALIAS, SPELLING, MEANING = "exact", "alias", "spelling", "meaning"

# Closest first.
KINDS = (EXACT, ALIAS, SPELLING, MEANING)

# What people see where it is not the kind itself: a model of spelling knows no meaning.
LABELS = {MEANING: "similar", "none": "no match"}

# Smallest similarity of letters, of 100, that is a spelling.
LEAST_LIKENESS = 75.0

# So many letters of a value are compared, the first ones: comparing takes time in proportion to
# the product of two lengths.
MAX_LETTERS = 1000


CHUNK_SIZE = 1 << 16


def kinds_of(values: pa.Array, others: pa.Array) -> np.ndarray:
    """Return the kind of each pair of normalised values, positions in `KINDS`: int8 (n,).

    Aliases are known from the texts of the tables alone (`pexeso.semantic.pairs`), and count as
    exact here. Some 100,000 pairs of names take a tenth of a second; next to the arrays, the texts
    of `CHUNK_SIZE` pairs are in memory.
    """
    kinds = np.zeros(len(values), dtype=np.int8)
    equal = pc.equal(values.cast(pa.large_string()), others.cast(pa.large_string()))
    differ = np.flatnonzero(~equal.to_numpy(zero_copy_only=False))
    for start in range(0, len(differ), CHUNK_SIZE):
        rows = differ[start : start + CHUNK_SIZE]
        near = _are_near(_first_letters(values, rows), _first_letters(others, rows))
        kinds[rows] = np.where(near, KINDS.index(SPELLING), KINDS.index(MEANING))
    return kinds


def _first_letters(values: pa.Array, rows: np.ndarray) -> list[str]:
    return pc.utf8_slice_codeunits(values.take(pa.array(rows)), 0, MAX_LETTERS).to_pylist()


def _are_near(ours: list[str], others: list[str]) -> np.ndarray:
    """Return which pairs have nearly the same letters, as they are or with their words sorted."""
    from rapidfuzz import fuzz, process  # few searches need it, and all would wait for it

    near = np.zeros(len(ours), dtype=bool)
    for scorer in (fuzz.ratio, fuzz.token_sort_ratio):
        left = np.flatnonzero(~near).tolist()
        if not left:
            break
        one = [ours[position] for position in left]
        other = [others[position] for position in left]
        alike = process.cpdist(one, other, scorer=scorer, score_cutoff=LEAST_LIKENESS)
        near[left] = alike >= LEAST_LIKENESS
    return near


@dataclass(frozen=True)
class Pair:
    """A value of the query column and the value of the lake column that it matches.

    Attributes
    ----------
    query, value : str
        The texts as the two tables have them.
    distance : float
        A fraction of the largest distance, in [0, 1]: the scale of `max_distance`.
    key : str
        The lake value as the index holds it, normalised.
    kind : {"exact", "alias", "spelling", "meaning"}
        Equal cells, equal by an alias, the same value or near in letters, or near in meaning alone:
        see above.
    """

    query: str
    value: str
    distance: float
    key: str = field(repr=False)
    kind: str

    def to_list(self) -> list[Any]:
        """Return the plain JSON form: ``[query, value, distance, kind]``."""
        return [self.query, self.value, self.distance, self.kind]


@dataclass(frozen=True, repr=False)
class KindCounts(Shown):
    """How many pairs, and how many of what joinability counts, are of each kind.

    Attributes
    ----------
    pairs : dict of str to int
        Pairs of values of each of `KINDS`; without aliases, that kind is left out.
    matched : dict of str to int
        Distinct values, or rows, of the query column; one whose value is in several pairs has the
        closest of their kinds, so that these add up to `pexeso.results.matches.Match.matched`.
    """

    pairs: dict[str, int]
    matched: dict[str, int]

    def _summary(self) -> str:
        counts = self.matched.items()
        return ", ".join(f"{LABELS.get(kind, kind)} {number:,}" for kind, number in counts)

    def _shown(self) -> tuple[list[str], list[list[Any]]]:
        shares = self.shares
        return ["kind", "pairs", "matched", "share"], [
            [LABELS.get(kind, kind), self.pairs[kind], self.matched[kind], percent(shares[kind])]
            for kind in self.matched
        ]

    @property
    def shares(self) -> dict[str, float]:
        """The share of each kind in what matches, in [0, 1]; zeros where nothing does."""
        total = sum(self.matched.values())
        return {kind: number / total if total else 0.0 for kind, number in self.matched.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form: ``{kind: {"pairs": ..., "matched": ..., "share": ...}}``."""
        shares = self.shares
        return {
            kind: {
                "pairs": self.pairs[kind],
                "matched": self.matched[kind],
                "share": round(shares[kind], 6),
            }
            for kind in self.pairs
        }


# Most columns of a chart: they differ by colour and by kind of line.
MAX_CURVES = 8

# By kind of match, as on the pages: each has a contrast of at least 4.5 with white.
COLOURS = {"exact": "#0f766e", "alias": "#0b6299", "spelling": "#a34a07", "meaning": "#6d32c4"}

_STYLES = ("solid", "dashed", "dotted", "dashdot")
_MAX_LABEL = 48

Curve = tuple[str, np.ndarray, np.ndarray]


# Charts: matplotlib is imported when one is drawn, and no style of it is changed.


def axes_of(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    require("matplotlib", "A chart")
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]


def plot_curves(
    curves: Sequence[Curve], n_found: int, max_distance: float, counted: str, ax: Axes | None = None
) -> Axes:
    """Draw joinability over distance, a line for each column, the first of `n_found`."""
    ax = axes_of(ax)
    colours, lines = list(COLOURS.values()), []
    for number, (_, distances, joinability) in enumerate(curves):
        start = joinability[:1] if len(distances) and distances[0] == 0 else np.zeros(1)
        end = joinability[-1:] if len(joinability) else np.zeros(1)
        x = np.concatenate([[0.0], distances, [max_distance]])
        (line,) = ax.step(
            x,
            np.concatenate([start, joinability, end]),
            where="post",
            color=colours[number % len(colours)],
            linestyle=_STYLES[(number + number // len(colours)) % len(_STYLES)],
        )
        lines.append(line)
    ax.set_xlim(0, max_distance or 1)
    ax.set_ylim(0, 1.02)
    ax.set_xlabel(f"distance, up to that of the search ({max_distance:g})")
    ax.set_ylabel(f"joinability (share of {counted})")
    first = f", the first {len(curves)}" if n_found > len(curves) else ""
    ax.set_title(f"{n_found:,} column{'' if n_found == 1 else 's'} found{first}")
    if lines:
        # Names are set afterwards: a legend leaves out those that begin with an underscore.
        legend = ax.legend(
            lines, [""] * len(lines), loc="upper center", bbox_to_anchor=(0.5, -0.16), frameon=False
        )
        for text, (name, _, _) in zip(legend.get_texts(), curves, strict=True):
            _set_text(text, name)
    return ax


def plot_kinds(name: str, matched: Mapping[str, int], counted: str, ax: Axes | None = None) -> Axes:
    ax = axes_of(ax)
    kinds = list(matched)
    labels, colours = [LABELS.get(kind, kind) for kind in kinds], [COLOURS[kind] for kind in kinds]
    bars = ax.barh(labels, list(matched.values()), color=colours)
    ax.bar_label(bars, labels=[f"{number:,}" for number in matched.values()], padding=3)
    ax.invert_yaxis()
    ax.set_xlim(0, 1.1 * max(1, *matched.values()))
    ax.locator_params(axis="x", integer=True)
    ax.set_xlabel(f"{counted} of the query column that match")
    _set_text(ax.set_title(""), name)
    return ax


def _set_text(text: object, name: str) -> None:
    """Set a text that a user chose; a dollar in it begins no formula."""
    text.set_parse_math(False)  # type: ignore[attr-defined]
    text.set_text(plain(name, _MAX_LABEL))  # type: ignore[attr-defined]
