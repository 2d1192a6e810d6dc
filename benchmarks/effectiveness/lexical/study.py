"""What is measured of each model: F1 on every data set, and misspelt values that are found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from benchmarks.effectiveness.lexical.data import Prepare, PreparedSet, StudySet, word_counts
from benchmarks.effectiveness.lexical.grams import WordGrams
from benchmarks.effectiveness.lexical.held_out import SetScores
from benchmarks.effectiveness.lexical.misspelt import (
    Misspelt,
    drawn_misspellings,
    may_be_same,
    nearest_unrelated,
)
from benchmarks.effectiveness.lexical.products import Vectors, best_by_column
from benchmarks.effectiveness.lexical.scores import DISTANCES, BestOf, column_scores, value_scores
from benchmarks.effectiveness.lexical.space import (
    N_GRAMS,
    RECOMMENDED,
    SPELLED,
    LexicalModel,
    cosines_of,
    projected_vectors,
    value_vectors,
)

Method = Callable[[Sequence[str], Mapping[str, int]], Vectors]
"""From distinct normalised values and the words of their lake to unit vectors."""

TODAY, TFIDF_WORDS, TFIDF_LETTERS = "projected", "tf-idf of words", "tf-idf of n-grams"
"""The hashing embedder as it is, and the rivals."""

MODELS: dict[str, LexicalModel] = {
    "placed pairs": RECOMMENDED,
    "placed pairs with spelled numbers": SPELLED,
    **{
        f"placed pairs of sigma {sigma:g}": replace(SPELLED, sigma=sigma)
        for sigma in (0.0, 0.1, 0.25)
    },
    **{
        f"2-4-grams of sigma {sigma:g}": LexicalModel(N_GRAMS, sigma)
        for sigma in (0.0, 0.05, 0.1, 0.25)
    },
    "bigrams": LexicalModel({"2": 1}, 0.05),
    "trigrams": LexicalModel({"3": 1}, 0.05),
    "1-2-grams": LexicalModel({"1": 1, "2": 1}, 0.05),
    "2-3-grams": LexicalModel({"2": 1, "3": 1}, 0.05),
    "3-4-grams": LexicalModel({"3": 1, "4": 1}, 0.05),
    "bigrams and skip-grams": LexicalModel({"2": 1, "skip": 1}, 0.05),
    "pairs": LexicalModel({"near": 1}, 0.05),
    "pairs with edges twice": LexicalModel({"edges": 1}, 0.05),
    "pairs and halves": LexicalModel({"near": 1, "half": 1}, 0.05),
    "placed pairs with edges twice": LexicalModel({"edges": 2, "start": 1, "end": 1}, 0.05),
    **{
        f"placed pairs with rarity ** {exponent:g}": replace(SPELLED, exponent=exponent)
        for exponent in (1.0, 1.5)
    },
    **{
        f"placed pairs with numbers as rare as {limit}": replace(SPELLED, most_of_a_number=limit)
        for limit in (None, 3, 30)
    },
    "placed pairs without counts": replace(SPELLED, is_counted=False),
    "placed pairs with rare ones counting more": replace(SPELLED, has_rare_grams=True),
    "placed pairs with repeated words once": replace(SPELLED, has_repeated_words=False),
}
"""Models by name; the first is the recommended one, and all others spell numbers like words."""

MISSPELT_DISTANCES = tuple(np.round(np.arange(0.3, 0.601, 0.01), 3).tolist())


def methods(place: Path) -> dict[str, Method]:
    """Return everything that is measured, by name; `place` is a folder to write in."""
    text = str(place / "words.txt")
    return {
        TODAY: lambda values, counts: projected_vectors(values, counts, text),
        TFIDF_WORDS: lambda values, counts: _tfidf(values, analyzer="word"),
        TFIDF_LETTERS: lambda values, counts: _tfidf(
            values, analyzer="char_wb", ngram_range=(2, 4)
        ),
        **{name: _in_space(model) for name, model in MODELS.items()},
    }


def described(name: str) -> dict[str, Any] | None:
    """Return the definition of a model as plain data; None for what is no model of the space."""
    return asdict(MODELS[name]) if name in MODELS else None


def _in_space(model: LexicalModel) -> Method:
    def vectors(values: Sequence[str], counts: Mapping[str, int]) -> sp.csr_matrix:
        grams = WordGrams([word for value in values for word in value.split()])
        return value_vectors(values, grams, counts, model)

    return vectors


def _tfidf(values: Sequence[str], **options: Any) -> sp.csr_matrix:
    from sklearn.feature_extraction.text import TfidfVectorizer

    if options["analyzer"] == "word":
        options["token_pattern"] = r"[^ ]+"
    return sp.csr_matrix(TfidfVectorizer(dtype=np.float64, **options).fit_transform(values))


def scores_of(
    prepared: PreparedSet,
    method: Method,
    distances: Sequence[float] = DISTANCES,
    best_of: BestOf = best_by_column,
) -> SetScores:
    """Score a method on one data set."""
    vectors, number = method(prepared.values, prepared.counts), prepared.number()
    study = prepared.study
    columns = column_scores(study.judged, prepared.columns, vectors, number, distances, best_of)
    values = value_scores(study.tasks, prepared.sides, vectors, number, distances)
    return SetScores.of(columns, values, distances)


@dataclass(frozen=True)
class MisspeltLake:
    """A lake of which some one-word values are misspelt.

    Attributes
    ----------
    counts : mapping of str to int
        Its words.
    values : list of str
        Distinct, ascending.
    drawn : Misspelt
    within : list of numpy.ndarray
        For each drawn value the positions of the values of a column that holds it.
    entities : mapping of str to frozenset of str
        What some values are known to stand for.
    """

    counts: Mapping[str, int]
    values: list[str]
    drawn: Misspelt
    within: list[np.ndarray]
    entities: Mapping[str, frozenset[str]]

    def related(self, value: str, other: str) -> bool:
        """Return whether two values may be the same thing."""
        known = self.entities.get(value, frozenset()) & self.entities.get(other, frozenset())
        return bool(known) or may_be_same(value, other)


def misspelt_lakes(
    studies: Sequence[StudySet], prepare: Prepare, n_drawn: int, seed: int = 0
) -> list[MisspeltLake]:
    """Draw one-word values of all lakes together, and misspell them."""
    columns = {study.name: prepare(study.lake) for study in studies}
    values = {
        name: sorted({value for column in lake for value in column if value})
        for name, lake in columns.items()
    }
    drawn, generator = drawn_misspellings(values, n_drawn, seed), np.random.default_rng(seed)
    lakes = []
    for study in studies:
        misspellings = drawn[study.name]
        originals, holding = set(misspellings.originals), {}
        for column in columns[study.name]:
            for value in originals.intersection(column):
                holding.setdefault(value, []).append(column)
        number = {value: position for position, value in enumerate(values[study.name])}
        within = []
        for value in misspellings.originals:
            column = holding[value][int(generator.integers(len(holding[value])))]
            within.append(np.unique([number[other] for other in column if other]))
        cells = list(study.entities)
        texts = prepare([pa.array(cells, pa.string())])[0] if cells else []
        entities: dict[str, frozenset[str]] = {}
        for cell, text in zip(cells, texts, strict=True):
            entities[text] = entities.get(text, frozenset()) | study.entities[cell]
        counts = word_counts(columns[study.name])
        lakes.append(MisspeltLake(counts, values[study.name], misspellings, within, entities))
    return lakes


def misspelt_scores(lakes: Sequence[MisspeltLake], method: Method) -> dict[str, list[float]]:
    """Return shares at each of `MISSPELT_DISTANCES`.

    Returns
    -------
    dict
        ``found``, misspellings of which the value is found; ``unrelated_in_lake`` and
        ``unrelated_in_column``, values with an unrelated neighbour.
    """
    cosines, groups = cosines_of(MISSPELT_DISTANCES), ([], [], [])
    for lake in lakes:
        texts = sorted({*lake.values, *lake.drawn.misspellings})
        number = {text: position for position, text in enumerate(texts)}
        vectors = method(texts, lake.counts)
        originals, misspellings, everything = (
            vectors[np.array([number[text] for text in some], np.int64)]
            for some in (lake.drawn.originals, lake.drawn.misspellings, lake.values)
        )
        pairs = (
            originals.multiply(misspellings) if sp.issparse(vectors) else (originals * misspellings)
        )
        groups[0].append(np.asarray(pairs.sum(1)).ravel())
        for shares, within in ((groups[1], None), (groups[2], lake.within)):
            shares.append(
                nearest_unrelated(
                    originals,
                    lake.drawn.originals,
                    everything,
                    lake.values,
                    float(cosines.min()),
                    lake.related,
                    within,
                )
            )
    names = ("found", "unrelated_in_lake", "unrelated_in_column")
    joined = [np.concatenate(parts) for parts in groups]
    return {
        name: [round(float((scores >= cosine).mean()), 4) for cosine in cosines]
        for name, scores in zip(names, joined, strict=True)
    }
