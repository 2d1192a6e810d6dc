"""The re-ranker learned and scored: ``python -m benchmarks.effectiveness.reranker --index INDEX`` writes ``pexeso/reranker.json`` anew.

It is learned from the judged pairs of `wikitables`. Scored on that data set, each query column is ranked by trees that were learned from the query columns of
the other folds; on any other data set by those that come with the package.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from benchmarks.effectiveness import similar
from benchmarks.effectiveness.found import LEAST_JOINABILITY, Found
from benchmarks.effectiveness.judged import BY_MEANING, BY_TEXT, MIN_MATCHES, NOT_JUDGED, Judged, incidence
from benchmarks.effectiveness.scoring import folds_of
from benchmarks.effectiveness.sets import shared_set
from pexeso.boosted_trees import BoostedTrees, trees_of
from pexeso.index import Index, open_index
from pexeso.reranking import EQUAL, FEATURES, RATIOS, Counts, reranker

LEARNED_ON = "wikitables"
TREES, LEAVES, LEARNING_RATE = 200, 16, 0.1
TARGET = Path(__file__).resolve().parent.parent.parent / "pexeso" / "reranker.json"


def ranked_pairs(judged: Judged, index: Index, *, learned_here: bool) -> list[Found]:
    """Score all pairs of judged columns that a wide search finds.

    Parameters
    ----------
    judged : Judged
    index : Index
        Of the lake: its model and normaliser are used, and the names of its columns.
    learned_here : bool
        The trees of the package were learned from these pairs: learn others, fold by fold.

    Returns
    -------
    list of Found
        One, with scores in place of joinabilities.
    """
    query, candidate, counts = count_pairs(judged, index)
    features, labels = counts.features(), judged.classes(query, candidate)
    scores = _scores_by_fold(judged, query, features, labels) if learned_here else reranker().scores(features)
    # Spread over the joinabilities that thresholds are chosen among, low scores wider.
    spread = LEAST_JOINABILITY + (1 - LEAST_JOINABILITY) * np.sqrt(scores)
    return [Found(float("nan"), query, candidate, spread, labels)]


def _scores_by_fold(judged: Judged, query: np.ndarray, features: np.ndarray, labels: np.ndarray) -> np.ndarray:
    scores = np.zeros(len(query))
    for fold in folds_of(judged):
        held_out = np.isin(query, fold)
        scores[held_out] = learn(features[~held_out], labels[~held_out]).scores(features[held_out])
    return scores


def learn(features: np.ndarray, labels: np.ndarray) -> BoostedTrees:
    """Learn trees from judged pairs; those that are not judged are left out."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    known = labels != NOT_JUDGED
    model = HistGradientBoostingClassifier(
        max_iter=TREES, max_leaf_nodes=LEAVES, learning_rate=LEARNING_RATE, l2_regularization=1.0, random_state=0
    ).fit(features[known], np.isin(labels[known], (BY_TEXT, BY_MEANING)))
    names = ("feature_idx", "num_threshold", "left", "right", "value", "count", "is_leaf")
    ours = ("feature", "threshold", "left", "right", "value", "count", "is_leaf")
    trees = [
        [{our: node[name].item() for our, name in zip(ours, names, strict=True)} for node in stage[0].nodes]
        for stage in model._predictors
    ]
    return trees_of(FEATURES, float(np.ravel(model._baseline_prediction)[0]), trees)


def count_pairs(judged: Judged, index: Index) -> tuple[np.ndarray, np.ndarray, Counts]:
    """Count what matches between judged columns, as `pexeso.reranking.count` does for one query column and what it found.

    Returns
    -------
    query, candidate : int64 (n,)
        The pairs with enough matches at the widest distance.
    counts : Counts
    """
    columns = index.normaliser.normalise_columns(judged.texts)
    values, held = incidence([column.drop_null().unique().to_pylist() for column in columns])
    vectors, usual = index.embedder.embed(pa.array(values, pa.string())), index.usual_max_distance
    bounds = [max(ratio * usual, EQUAL) for ratio in RATIOS]
    cosines = [1 - 2 * bound * bound for bound in bounds]
    alike = similar.whole(similar.products(vectors, vectors, min(cosines) - 1e-6), len(values))
    sizes = np.asarray(held.sum(1)).ravel()
    matched = [_matched(held, alike, cosine - 1e-6) for cosine in cosines]
    widest = matched[-1].tocoo()
    kept = (
        (widest.data >= MIN_MATCHES)
        & (widest.data >= LEAST_JOINABILITY * sizes[widest.row])
        & (widest.row != widest.col)
    )
    query, candidate = widest.row[kept].astype(np.int64), widest.col[kept].astype(np.int64)
    names = _names(judged, index)
    holders = np.asarray(held.sum(0)).ravel()
    rare = sp.diags(np.log(judged.n_columns / holders) / np.log(judged.n_columns))
    common, weighed = (held @ held.T).tocsr(), (held @ rare @ held.T).tocsr()
    counts = Counts(
        np.stack([np.asarray(each[query, candidate]).ravel() for each in matched], 1),
        np.stack([np.asarray(each[candidate, query]).ravel() for each in matched], 1),
        sizes[query],
        sizes[candidate],
        np.asarray(weighed[query, candidate]).ravel() / np.maximum(np.asarray(common[query, candidate]).ravel(), 1),
        [(names[one], names[other]) for one, other in zip(query.tolist(), candidate.tolist(), strict=True)],
    )
    return query, candidate, counts


def _matched(held: sp.csr_matrix, alike: sp.csr_matrix, cosine: float) -> sp.csr_matrix:
    """Count, for each pair of columns, the values of the one that have a like one in the other."""
    enough = alike.multiply(alike >= cosine).tocsr()
    enough.eliminate_zeros()
    reached = enough @ held.T.tocsr()
    reached.data[:] = 1
    return (held @ reached).tocsr()


def _names(judged: Judged, index: Index) -> list[str]:
    columns = index.catalog.columns(["table", "position", "label"])
    rows = zip(*(columns[name].to_pylist() for name in columns.column_names), strict=True)
    label = {(table, position): name for table, position, name in rows}
    return [label.get(key) or "" for key in judged.keys]


@click.command()
@click.option(
    "--index",
    "path",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    required=True,
    help=f"An index of {LEARNED_ON}.",
)
def main(path: Path) -> None:
    """Learn the re-ranker that comes with the package."""
    with tempfile.TemporaryDirectory() as folder:
        judged = shared_set(LEARNED_ON, Path(folder)).judged
    query, candidate, counts = count_pairs(judged, open_index(path))
    trees = learn(counts.features(), judged.classes(query, candidate))
    TARGET.write_text(json.dumps(trees.to_dict()) + "\n", "utf-8")
    click.echo(f"Learned from {len(query):,} pairs; written to {TARGET.name}.")


if __name__ == "__main__":
    sys.exit(main())
