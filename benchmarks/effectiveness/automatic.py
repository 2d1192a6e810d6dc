"""Thresholds that the index chooses without labels, against thresholds tuned on labels.

Run it as ``python -m benchmarks.effectiveness.automatic``.

The method is called ``pexeso-auto`` in results. Its columns are found by a search of the index at
`Index.advise()`; where each value of a column is joined with the nearest of another, the distance
is that of the two columns, as `pexeso join --auto` has it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from benchmarks.effectiveness.found_pairs import FoundPairs
from benchmarks.effectiveness.judged import Judged, read_judged
from benchmarks.effectiveness.methods import AUTOMATIC, DISTANCES
from benchmarks.effectiveness.report import scores_of_found
from benchmarks.effectiveness.scoring import best_f1, cross_validated, intervals
from benchmarks.effectiveness.searched import searched
from pexeso.build.parts.encode import known_vectors
from pexeso.build.parts.metadata import stored_space
from pexeso.errors import PexesoError
from pexeso.index import Index, open_index
from pexeso.semantic.thresholds.pair import advise_pair
from pexeso.semantic.thresholds.sample import value_order


def automatic_columns(judged: Judged, index: Index) -> tuple[FoundPairs, dict[str, Any]]:
    """Search with every judged column at the thresholds that the index chooses."""
    advice = index.advise()
    (everything,) = searched(judged, index, [advice.max_distance])
    pairs = everything.from_joinability(advice.min_joinability or 0.0)
    return pairs, {**_scores(judged, pairs), "advice": advice.to_dict()}


def tuned_columns(
    judged: Judged, index: Index, distances: Sequence[float] = DISTANCES
) -> dict[str, Any]:
    """Search at many distances, and score each fold at thresholds tuned on the other folds.

    The thresholds are those with the highest F1.
    """
    pairs, chosen = cross_validated(judged, list(searched(judged, index, distances)), best_f1)
    return {**_scores(judged, pairs), "thresholds": chosen}


def automatic_distances(
    index: Index, columns: Sequence[tuple[pa.StringArray, pa.StringArray]]
) -> list[float]:
    """Return the largest distance at which values of each query column join their nearest.

    The nearest value is one of the other column.
    """
    space = stored_space(index.store.manifest)
    distances = []
    for sides in columns:
        prepared = [index.encode(side) for side in sides]
        query, others = (side.vectors[value_order(side.values)] for side in prepared)
        query, others = (side[known_vectors(side)] for side in (query, others))
        advice = advise_pair(space, query, others, index.advisor.learnt, index.usual_max_distance)
        distances.append(index.usual_max_distance if advice is None else advice.max_distance)
    return distances


def _scores(judged: Judged, pairs: FoundPairs) -> dict[str, Any]:
    scores = scores_of_found(judged, pairs)
    return {name: round(value, 4) for name, value in scores.items()} | {
        "intervals": intervals(judged, pairs)
    }


@click.command()
@click.option(
    "--lake", required=True, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option(
    "--truth", required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option(
    "--index", required=True, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--distances", help="Those that tuning tries, with commas; 0 to 0.42 by default.")
def main(lake: Path, truth: Path, index: Path, distances: str | None) -> None:
    """Compare automatic thresholds with tuned ones by searches of an index.

    The lake has a table of joinable pairs.
    """
    tried = DISTANCES if distances is None else [float(text) for text in distances.split(",")]
    try:
        judged, opened = read_judged(lake, truth), open_index(index)
        result = {
            AUTOMATIC: automatic_columns(judged, opened)[1],
            "pexeso": tuned_columns(judged, opened, tried),
        }
    except PexesoError as error:
        raise click.ClickException(str(error)) from error
    click.echo(json.dumps(result, indent=1))


if __name__ == "__main__":
    sys.exit(main())
