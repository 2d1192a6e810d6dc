"""Training and scoring of the re-ranker.

``python -m benchmarks.effectiveness.reranker --index INDEX`` rewrites
``pexeso/rerank/reranker.json``.

It is learned from the judged pairs of `wikitables`. Scored on that data set, each query column is
ranked by trees that were learned from the query columns of the other folds; on any other data set
by those that come with the package.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from benchmarks.effectiveness import similar
from benchmarks.effectiveness.found import LEAST_JOINABILITY, Found
from benchmarks.effectiveness.judged import (
    BY_MEANING,
    BY_TEXT,
    MIN_MATCHES,
    NOT_JUDGED,
    Judged,
    incidence,
)
from benchmarks.effectiveness.scoring import folds_of
from benchmarks.effectiveness.sets import shared_set
from pexeso.index import Index, open_index
from pexeso.rerank.boosted_trees import BoostedTrees
from pexeso.rerank.features import EQUAL, FEATURES, RARITY_AT, RATIOS, Counts, rarities
from pexeso.rerank.reranker import reranker

LEARNED_ON = "wikitables"
TREES, LEAVES, LEARNING_RATE = 300, 24, 0.1
TARGET = Path(__file__).resolve().parent.parent.parent / "pexeso" / "rerank" / "reranker.json"


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
    scores = (
        _scores_by_fold(judged, query, features, labels)
        if learned_here
        else reranker().scores(features)
    )
    # Spread over the joinabilities that thresholds are chosen among, low scores wider.
    spread = LEAST_JOINABILITY + (1 - LEAST_JOINABILITY) * np.sqrt(scores)
    return [Found(float("nan"), query, candidate, spread, labels)]


def _scores_by_fold(
    judged: Judged, query: np.ndarray, features: np.ndarray, labels: np.ndarray
) -> np.ndarray:
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
        max_iter=TREES,
        max_leaf_nodes=LEAVES,
        learning_rate=LEARNING_RATE,
        l2_regularization=1.0,
        random_state=0,
    ).fit(features[known], np.isin(labels[known], (BY_TEXT, BY_MEANING)))
    names = ("feature_idx", "num_threshold", "left", "right", "value", "count", "is_leaf")
    ours = ("feature", "threshold", "left", "right", "value", "count", "is_leaf")
    trees = [
        [
            {our: node[name].item() for our, name in zip(ours, names, strict=True)}
            for node in stage[0].nodes
        ]
        for stage in model._predictors
    ]
    return trees_of(FEATURES, float(np.ravel(model._baseline_prediction)[0]), trees)


def trees_of(
    features: Sequence[str], base: float, trees: Sequence[Sequence[Mapping[str, Any]]]
) -> BoostedTrees:
    """Make an ensemble from trees given node by node.

    Parameters
    ----------
    features : sequence of str
    trees : sequence of sequences of mappings
        Nodes with ``feature``, ``threshold``, ``left``, ``right``, ``value`` and ``is_leaf``; the
        first is the root, and children come later. ``value`` need be given of leaves alone, with
        their ``count``.
    """
    most = max(len(tree) for tree in trees)
    whole = {name: np.zeros((len(trees), most), np.int64) for name in ("feature", "left", "right")}
    real = {name: np.zeros((len(trees), most)) for name in ("threshold", "value")}
    depth = 0
    for number, tree in enumerate(trees):
        depths = np.zeros(len(tree), np.int64)
        for place, node in enumerate(tree):
            leaf = node["is_leaf"]
            children = (place, place) if leaf else (int(node["left"]), int(node["right"]))
            whole["left"][number, place], whole["right"][number, place] = children
            if not leaf:
                whole["feature"][number, place] = node["feature"]
                real["threshold"][number, place] = node["threshold"]
                depths[list(children)] = depths[place] + 1
        depth = max(depth, int(depths.max()))
        for place in reversed(range(len(tree))):
            node = tree[place]
            below = (
                [node] if node["is_leaf"] else [tree[int(node["left"])], tree[int(node["right"])]]
            )
            counts = [each["count"] for each in below]
            values = (
                [node["value"]]
                if node["is_leaf"]
                else real["value"][number, [int(node["left"]), int(node["right"])]]
            )
            real["value"][number, place] = np.average(values, weights=counts)
    return BoostedTrees(tuple(features), base, depth=depth, **whole, **real)


def count_pairs(judged: Judged, index: Index) -> tuple[np.ndarray, np.ndarray, Counts]:
    """Count matches between judged columns for the features of the re-ranker.

    `pexeso.rerank.features.count` does the same for one query column and the columns found.

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
    matched = [_reached(held, _within(alike, cosine - 1e-6), held) for cosine in cosines]
    widest = matched[-1].tocoo()
    kept = (
        (widest.data >= MIN_MATCHES)
        & (widest.data >= LEAST_JOINABILITY * sizes[widest.row])
        & (widest.row != widest.col)
    )
    if judged.asked is not None:
        kept &= np.isin(widest.row, judged.asked)
    query, candidate = widest.row[kept].astype(np.int64), widest.col[kept].astype(np.int64)
    names = _names(judged, index)
    rare = rarities(np.asarray(held.sum(0)).ravel(), judged.n_columns)
    asked = _rarities_of_asked(held, rare, query, candidate)
    sizes, total, total_asked = (
        np.asarray(each.sum(1)).ravel() for each in (held, held.multiply(rare), asked)
    )
    at = [RATIOS.index(ratio) for ratio in RARITY_AT]
    alike_at = [_within(alike, cosines[place] - 1e-6) for place in at]

    def pairs(found: sp.csr_matrix, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.asarray(found[one, other]).ravel()

    common = pairs((held @ held.T).tocsr(), query, candidate)
    common_rarity = pairs((held.multiply(rare).tocsr() @ held.T).tocsr(), query, candidate)
    weighed = [pairs(_reached(asked, each, held), query, candidate) for each in alike_at]
    weighed_back = [
        pairs(_reached(held.multiply(rare).tocsr(), each, held), candidate, query)
        for each in alike_at
    ]
    counts = Counts(
        matched=np.stack([pairs(each, query, candidate) for each in matched], 1),
        matched_back=np.stack([pairs(each, candidate, query) for each in matched], 1),
        query_values=sizes[query],
        lake_values=sizes[candidate],
        rarity=common_rarity / np.maximum(common, 1),
        rarity_matched=np.stack(weighed, 1) / np.maximum(total_asked[query], EQUAL)[:, None],
        rarity_matched_back=np.stack(weighed_back, 1)
        / np.maximum(total[candidate], EQUAL)[:, None],
        query_rarity=total_asked[query] / sizes[query],
        lake_rarity=total[candidate] / sizes[candidate],
        names=[
            (names[one], names[other])
            for one, other in zip(query.tolist(), candidate.tolist(), strict=True)
        ],
    )
    return query, candidate, counts


def _rarities_of_asked(
    held: sp.csr_matrix, rare: np.ndarray, query: np.ndarray, candidate: np.ndarray
) -> sp.csr_matrix:
    """Return the rarity of each value of each query column, as a search sees it.

    A value that no found column has counts as rare.
    """
    found = sp.csr_matrix((np.ones(len(query)), (query, candidate)), shape=(held.shape[0],) * 2)
    seen = held.multiply((found @ held) > 0).tocsr()
    return (held - seen + seen.multiply(rare)).tocsr()


def _within(alike: sp.csr_matrix, cosine: float) -> sp.csr_matrix:
    enough = alike.multiply(alike >= cosine).tocsr()
    enough.eliminate_zeros()
    return enough


def _reached(weights: sp.csr_matrix, alike: sp.csr_matrix, held: sp.csr_matrix) -> sp.csr_matrix:
    """Sum, per pair of columns, the weights of values of one with a similar value in the other."""
    reached = alike @ held.T.tocsr()
    reached.data[:] = 1
    return (weights @ reached).tocsr()


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
