"""A map of a lake: its tables as points, near those that they join with.

Of a large graph the strongest joins are drawn, and so many that a browser moves them fluently.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Any

import numpy as np
import pyarrow as pa

from pexeso.results.pages.page import rendered
from pexeso.runtime.formatting import MAX_CELL, many, percent, plain

MAX_TABLES, MAX_LINES = 2000, 5000
EDGES_READ = 20_000  # The strongest joins of columns, which the lines are taken from
LABEL_CELL, LABEL_HEIGHT = 6, 14  # Of a letter of a name, and of its line

WIDTH, HEIGHT, MARGIN = 1000, 600, 30
_EDGE = 120  # where names would be cut
_STEPS, _EXACT, _CELLS, _GRAVITY = 80, 400, 20, 4.0
_GOLDEN_ANGLE = 2.399963


@dataclass(frozen=True)
class LakeMap:
    """Points of tables and lines of joins, with whole numbers as places.

    Of `n_joins` pairs of tables and `n_tables` tables with joins the strongest are drawn. A point
    has `name`, `x`, `y`, `r`, `n_joins` and `is_labelled`; a line `x1`, `y1`, `x2`, `y2`, `said`,
    `is_whole` and `edge`, the strongest join of columns of its tables.
    """

    points: list[dict[str, Any]]
    lines: list[dict[str, Any]]
    n_tables: int
    n_joins: int


def lake_map(edges: pa.Table) -> LakeMap:
    """Lay out joins of columns, the strongest first, as joins of tables."""
    sides = [edges[f"{side}_table"].combine_chunks() for side in ("left", "right")]
    encoded = pa.chunked_array(sides).combine_chunks().dictionary_encode()
    names, codes = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
    ends = np.sort(codes.reshape(2, -1), axis=0).astype(np.int64)
    is_other = np.flatnonzero(ends[0] != ends[1])
    edges, ends = edges.take(is_other), ends[:, is_other]
    _, first, counts = np.unique(
        ends[0] * max(1, len(names)) + ends[1], return_index=True, return_counts=True
    )
    order = np.argsort(first)
    first, counts = first[order], counts[order]
    n_joins = len(first)
    # Tables in the order of their strongest join.
    seen, where = np.unique(ends[:, first].T.ravel(), return_index=True)
    rank = np.empty(len(names), np.int64)
    by_strength = seen[np.argsort(where)]
    rank[by_strength] = np.arange(len(seen))
    pairs = rank[ends[:, first]]
    is_drawn = (pairs < MAX_TABLES).all(0)
    kept = np.flatnonzero(is_drawn)[:MAX_LINES]
    pairs, first, counts = pairs[:, kept], first[kept], counts[kept]
    drawn = by_strength[:MAX_TABLES]
    places = _layout(len(drawn), pairs)
    degrees = np.bincount(pairs.ravel(), minlength=len(drawn))
    labels = [plain(names[code].rpartition("/")[2], MAX_CELL) for code in drawn]
    labelled = _free_labels(labels, places, np.argsort(-degrees, kind="stable"))
    points = [
        {
            "name": names[code],
            "label": labels[number],
            "anchor": "start" if x < _EDGE else "end" if x > WIDTH - _EDGE else "middle",
            "x": int(x),
            "y": int(y),
            "r": 4 + min(4, int(degree) // 6),
            "n_joins": int(degree),
            "is_labelled": number in labelled,
        }
        for number, (code, (x, y), degree) in enumerate(zip(drawn, places, degrees, strict=True))
    ]
    lines = []
    rows = edges.take(first).to_pylist()
    for edge, (one, other), count in zip(rows, pairs.T.tolist(), counts.tolist(), strict=True):
        (x1, y1), (x2, y2) = places[one].tolist(), places[other].tolist()
        lines.append(
            {
                **{"x1": x1, "y1": y1, "x2": x2, "y2": y2, "edge": edge},
                "is_whole": edge["matched"] == edge["total"],
                "said": _said(edge, count),
            }
        )
    return LakeMap(points, lines, len(seen), n_joins)


def _free_labels(labels: Sequence[str], places: np.ndarray, order: np.ndarray) -> set[int]:
    """Return the labels that are written at first: those that cover none written before."""
    boxes, written = np.zeros((0, 2)), []
    for number in order.tolist():
        box = np.array([len(labels[number]) * LABEL_CELL / 2, LABEL_HEIGHT / 2])
        gaps = np.abs(places[written] - places[number]) - boxes - box
        if (gaps > 0).any(1).all():
            boxes = np.vstack([boxes, box])
            written.append(number)
    return {*written}


def _said(edge: Mapping[str, Any], count: int) -> str:
    left, right = (
        plain(f"{edge[f'{side}_table']} : {edge[f'{side}_column']}", 2 * MAX_CELL)
        for side in ("left", "right")
    )
    others = f" (and {many(count - 1, 'more join')} of their columns)" if count > 1 else ""
    return f"{percent(edge['joinability'])} of {left} in {right}{others}"


def _layout(n: int, pairs: np.ndarray) -> np.ndarray:
    """Return places, whole numbers (n, 2): what joins attracts, everything else repels.

    Of many points those of a cell repel as its middle does: a step costs n times the cells.
    """
    turns = np.arange(n) * _GOLDEN_ANGLE
    spread = np.sqrt((np.arange(n) + 0.5) / max(1, n))[:, None] / 2
    at = 0.5 + spread * np.column_stack([np.cos(turns), np.sin(turns)])
    rest = 1 / np.sqrt(max(1, n))  # how far points are from each other
    # Many joins pull as much as few, so that tables that all join do not fall together.
    degrees = np.bincount(pairs.ravel(), minlength=n)
    share = 1 / np.sqrt(np.maximum(1, degrees[pairs[0]]) * np.maximum(1, degrees[pairs[1]]))
    own = np.arange(n)
    # Two points of one pace can meet in one place, which no force would part.
    paces = 0.1 * (0.8 + 0.2 * np.modf(turns)[0])[:, None]
    for step in range(_STEPS if n else 0):
        low = at.min(0)
        shares = (at - low) / np.maximum(at.max(0) - low, 1e-9)
        cells = (shares * (_CELLS - 1)).astype(np.int64) @ (_CELLS, 1) if n > _EXACT else own
        used, of_point, sizes = np.unique(cells, return_inverse=True, return_counts=True)
        sums = np.column_stack([np.bincount(of_point, at[:, axis], len(used)) for axis in range(2)])
        away = at[:, None] - (sums / sizes[:, None])[None]
        weights = np.broadcast_to(sizes.astype(np.float64), away.shape[:2]).copy()
        n_beside = sizes[of_point] - 1
        beside = (sums[of_point] - at) / np.maximum(1, n_beside)[:, None]
        away[own, of_point] = at - beside
        weights[own, of_point] = n_beside
        squared = np.maximum((away**2).sum(2), (rest / 20) ** 2)
        force = (away * (weights * rest**2 / squared)[:, :, None]).sum(1)
        along = at[pairs[0]] - at[pairs[1]]
        pull = along * (2 * share * np.sqrt((along**2).sum(1)) / rest)[:, None]
        for axis in range(2):
            force[:, axis] -= np.bincount(pairs[0], pull[:, axis], n)
            force[:, axis] += np.bincount(pairs[1], pull[:, axis], n)
        force -= _GRAVITY * rest * (at - 0.5)
        length = np.sqrt((force**2).sum(1, keepdims=True))
        heat = paces * (1 - step / _STEPS)
        at += force * (np.minimum(length, heat) / np.maximum(length, 1e-12))
    low, high = (at.min(0), at.max(0)) if n else (np.zeros(2), np.ones(2))
    size = np.array([WIDTH, HEIGHT]) - 2 * MARGIN
    return np.rint(MARGIN + (at - low) / np.maximum(high - low, 1e-9) * size).astype(np.int64)


def script() -> str:
    """Return the script that zooms and moves a map; without it a map is a picture."""
    return (files("pexeso.results.pages") / "lake_map.js").read_text("utf-8")


def map_page(drawing: LakeMap, facts: Mapping[str, Any]) -> str:
    """Return a map as a page that needs no other file, with facts about its graph."""
    text = script()
    digest = b64encode(sha256(text.encode()).digest()).decode()
    shown = {"drawing": drawing, "facts": facts, "script": text, "digest": digest, **OF_TEMPLATE}
    return rendered("lake_map_page.html", {**shown, "link": None, "table_link": None})


OF_TEMPLATE = {"map_width": WIDTH, "map_height": HEIGHT}
