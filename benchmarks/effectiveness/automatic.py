"""Thresholds that the index chooses without labels: the method ``pexeso-auto`` of results.

Its columns are found by a search of the index at `Index.advise()`; where each value of a column is
joined with the nearest of another, the distance is that of the two columns, as `pexeso join --auto`
has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from benchmarks.effectiveness.found_pairs import FoundPairs
from benchmarks.effectiveness.judged import Judged
from benchmarks.effectiveness.report import scores_of_found
from benchmarks.effectiveness.scoring import intervals
from benchmarks.effectiveness.searched import searched
from pexeso.build.parts.metadata import stored_space
from pexeso.index import Index
from pexeso.semantic.thresholds.pair import advise_pair
from pexeso.semantic.thresholds.sample import value_order


def automatic_columns(judged: Judged, index: Index) -> tuple[FoundPairs, dict[str, Any]]:
    """Search with every judged column at the thresholds that the index chooses."""
    advice = index.advise()
    (everything,) = searched(judged, index, [advice.max_distance])
    pairs = everything.from_joinability(advice.min_joinability or 0.0)
    scores = scores_of_found(judged, pairs)
    return pairs, {
        **{name: round(value, 4) for name, value in scores.items()},
        "intervals": intervals(judged, pairs),
        "advice": advice.to_dict(),
    }


def automatic_distances(
    index: Index, columns: Sequence[tuple[pa.StringArray, pa.StringArray]]
) -> list[float]:
    """Return the largest distance at which values of each query column join their nearest."""
    space = stored_space(index.store.manifest)
    distances = []
    for sides in columns:
        prepared = [index.encode(side) for side in sides]
        orders = [value_order(side.values) for side in prepared]
        orders = [order[side.known[order]] for side, order in zip(prepared, orders, strict=True)]
        advice = advise_pair(
            space,
            *(side.vectors[order] for side, order in zip(prepared, orders, strict=True)),
            index.advisor.learnt,
            index.usual_max_distance,
            weights=prepared[0].weights[orders[0]],
        )
        distances.append(index.usual_max_distance if advice is None else advice.max_distance)
    return distances
