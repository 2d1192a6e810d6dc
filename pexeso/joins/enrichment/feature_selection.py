"""Which of the columns that enrichment added help to predict a target, and how much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pexeso.errors import InputError
from pexeso.joins.enrichment.enrich import Enrichment
from pexeso.joins.enrichment.features import REGRESSION, TASKS, read_features, read_target
from pexeso.joins.enrichment.frames import table_to_enrich
from pexeso.lake.frames.results import AsTables
from pexeso.options import whole_number
from pexeso.runtime.checks import require_choice
from pexeso.runtime.formatting import plain, shown

# Random forests on features chosen by recursive elimination.
#
# They predict rows that they have not seen.


@dataclass(frozen=True)
class ModelOptions:
    """How models are made and judged.

    Attributes
    ----------
    folds : int
        Rows are split so often, by seed; classes in their shares.
    trees : int
        Of each forest.
    step : float
        Share of the features that elimination drops at a time.
    seed : int
        Of splits and forests.
    """

    folds: int = 4
    trees: int = 50
    step: float = 0.25
    seed: int = 0


def make_forest(task: str, options: ModelOptions) -> Any:
    """Make a random forest, in one thread; it takes missing cells as they are."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestRegressor if task == REGRESSION else RandomForestClassifier
    return kind(n_estimators=options.trees, random_state=options.seed, n_jobs=1)


def make_folds(task: str, options: ModelOptions) -> Any:
    """Make the splits: by seed, for classification with each class in its share."""
    from sklearn.model_selection import KFold, StratifiedKFold

    kind = KFold if task == REGRESSION else StratifiedKFold
    return kind(options.folds, shuffle=True, random_state=options.seed)


def choose_features(
    matrix: np.ndarray, values: np.ndarray, task: str, options: ModelOptions
) -> np.ndarray:
    """Choose features by recursive elimination, as many as do best in cross-validation: bool (m,).

    Parameters
    ----------
    matrix : float64 (n, m)
    """
    if matrix.shape[1] < 2:
        return np.ones(matrix.shape[1], dtype=bool)
    from sklearn.feature_selection import RFECV

    scoring = "neg_mean_squared_error" if task == REGRESSION else "accuracy"
    forest, folds = make_forest(task, options), make_folds(task, options)
    return RFECV(forest, step=options.step, cv=folds, scoring=scoring).fit(matrix, values).support_


def predict_unseen(
    matrix: np.ndarray, values: np.ndarray, task: str, options: ModelOptions
) -> np.ndarray:
    """Predict each row by a forest that is trained on the other folds.

    Features are chosen anew in each fold, so no row has a say in its own prediction.

    Returns
    -------
    (n,)
        As `values`. Without any feature, the mean or the most frequent class of the other folds.
    """
    from sklearn.dummy import DummyClassifier, DummyRegressor

    predicted = np.empty_like(values)
    for train, test in make_folds(task, options).split(matrix, values):
        if matrix.shape[1]:
            mask = choose_features(matrix[train], values[train], task, options)
            model = make_forest(task, options)
        else:
            mask = np.zeros(0, dtype=bool)
            model = DummyRegressor() if task == REGRESSION else DummyClassifier()
        model.fit(matrix[train][:, mask], values[train])
        predicted[test] = model.predict(matrix[test][:, mask])
    return predicted


def scores_of(values: np.ndarray, predicted: np.ndarray, task: str) -> dict[str, float]:
    """Score predictions of all rows together.

    Returns
    -------
    dict
        ``mean_squared_error`` and ``r2`` of a regression; ``accuracy`` (the same as micro F1 where
        each row has one class) and ``macro_f1``.
    """
    from sklearn.metrics import accuracy_score, f1_score, mean_squared_error, r2_score

    if task == REGRESSION:
        return {
            "mean_squared_error": float(mean_squared_error(values, predicted)),
            "r2": float(r2_score(values, predicted)),
        }
    macro = f1_score(values, predicted, average="macro", zero_division=0)
    return {"accuracy": float(accuracy_score(values, predicted)), "macro_f1": float(macro)}


DEFAULT_MAX_TEXTS = 20

MOST_TREES = 10_000
"""Of a forest: with more a choice takes days, and comes out the same."""

MOST_SEED = 2**32 - 1
"""The largest that NumPy's older generator takes."""


@dataclass(frozen=True, repr=False)
class FeatureChoice(AsTables):
    """Features chosen for a target, and what a model makes of them.

    Attributes
    ----------
    target : str
    task : {"regression", "classification"}
    rows : int
        With a target.
    kept : tuple of str
        Columns kept, the most important first; the user's own among them.
    importances : dict
        Of each column kept: its share of what the forest on all rows makes of them, in sum 1.
    eliminated : tuple of str
        Columns that elimination dropped.
    left_out : dict
        From each column that is no feature to the reason.
    scores_without, scores_with : dict
        Without and with the added columns, of rows that the model has not seen: ``r2`` and
        ``mean_squared_error``, or ``accuracy`` and ``macro_f1``.
    """

    target: str
    task: str
    rows: int
    kept: tuple[str, ...]
    importances: Mapping[str, float]
    eliminated: tuple[str, ...]
    left_out: Mapping[str, str]
    scores_without: Mapping[str, float]
    scores_with: Mapping[str, float]

    fields = ("column", "status", "importance", "reason")
    """What `to_pandas` and the others tell of each column: kept, eliminated, or no feature."""

    def _table_rows(self) -> list[dict[str, Any]]:
        selected = [(name, "kept", self.importances[name], None) for name in self.kept]
        eliminated = [(name, "eliminated", None, None) for name in self.eliminated]
        none = [(name, "no feature", None, reason) for name, reason in self.left_out.items()]
        return [dict(zip(self.fields, row, strict=True)) for row in (*selected, *eliminated, *none)]

    def _field_types(self) -> Mapping[str, pa.DataType]:
        return {**dict.fromkeys(self.fields, pa.string()), "importance": pa.float64()}

    def _summary(self) -> str:
        features = f"{len(self.kept):,} of {len(self.kept) + len(self.eliminated):,} features kept"
        scores = ", ".join(
            f"{name} {without:.4g} to {self.scores_with[name]:.4g}"
            for name, without in self.scores_without.items()
        )
        return f"{self.task} of {plain(self.target)!r}, {features}; {scores}"

    def _shown(self) -> tuple[list[str], list[list[Any]]]:
        return ["column", "importance"], [[name, self.importances[name]] for name in self.kept]

    @property
    def report(self) -> str:
        """Return what was kept and what it gives, for people."""
        lines = [
            f"{self.task} of '{self.target}', {self.rows:,} rows: {len(self.kept)} of "
            f"{len(self.kept) + len(self.eliminated)} features kept"
        ]
        lines += [f"    {self.importances[name]:.3f}  {name}" for name in self.kept]
        lines += [f"    no feature: {name} ({reason})" for name, reason in self.left_out.items()]
        for name, without in self.scores_without.items():
            lines.append(
                f"{name}: {without:.4g} without the added columns, {self.scores_with[name]:.4g} "
                "with them"
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain JSON."""
        return asdict(self)


def select_features(
    enrichment: Enrichment,
    target: str | None = None,
    *,
    task: str = "auto",
    max_texts: int = DEFAULT_MAX_TEXTS,
    folds: int = 4,
    trees: int = 50,
    seed: int = 0,
) -> FeatureChoice:
    """Select features for a target by recursive elimination with a random forest.

    The result also says whether the added columns help.

    Rows without a target are passed over. The key is no feature; columns of text are, where they
    have few different texts. The scores are of predictions by cross-validation, with features
    chosen anew in each fold: choosing them on all rows first makes any score too good.

    Parameters
    ----------
    enrichment : Enrichment
    target : str, optional
        A column of its table; by default the target that it was made with.
    task : {"auto", "regression", "classification"}
        ``auto``: numbers of more than ten different values are predicted, all else is told apart.
    max_texts : int
        Columns with more different texts are no features.
    folds : int
        At least 2.
    trees : int
        Of each forest, at most 10,000.
    seed : int
        Of splits and forests.

    Returns
    -------
    FeatureChoice

    Raises
    ------
    InputError
        An argument is none of those allowed, or the target has too few rows for the folds.

    Examples
    --------
    >>> enrichment = pexeso.enrich(index, mine, on="country", target="sales")  # doctest: +SKIP
    >>> print(pexeso.select_features(enrichment).report)  # doctest: +SKIP
    """
    options = _checked(task, max_texts, ModelOptions(folds, trees, seed=seed))
    target = target if target is not None else enrichment.target
    _, columns = table_to_enrich(enrichment.table)
    if target is None:
        raise InputError(
            "Name the target: target=COLUMN, here or in enrich, where columns that say the same "
            "are left out."
        )
    if not isinstance(target, str) or target not in columns or target == enrichment.on:
        others = ", ".join(repr(name) for name in columns if name != enrichment.on)
        raise InputError(
            f"The target must be a column of the table and not its key. Got {shown(target)}; the "
            f"columns are {others}."
        )
    share = enrichment.rules.min_number_fraction
    target_data = read_target(columns[target], task, folds=folds, min_number_fraction=share)
    usable = {
        name: values for name, values in columns.items() if name not in (target, enrichment.on)
    }
    features = read_features(
        usable, target_data.rows, max_texts=max_texts, min_number_fraction=share
    )
    added = {column.name for column in enrichment.columns}
    own_matrix = features.of([name for name in features.names if name not in added])
    scores = [
        scores_of(
            target_data.values,
            predict_unseen(matrix, target_data.values, target_data.task, options),
            target_data.task,
        )
        for matrix in (own_matrix, features.matrix)
    ]
    importances = _importances(features.matrix, features.names, target_data, options)
    eliminated = tuple(name for name in features.names if name not in importances)
    return FeatureChoice(
        target,
        target_data.task,
        len(target_data.rows),
        tuple(importances),
        importances,
        eliminated,
        features.left_out,
        *scores,
    )


def _importances(
    matrix: Any, names: tuple[str, ...], target_data: Any, options: ModelOptions
) -> dict[str, float]:
    """Choose features on all rows, and return their importances in a forest, largest first."""
    if not names:
        return {}
    mask = choose_features(matrix, target_data.values, target_data.task, options)
    forest = make_forest(target_data.task, options).fit(matrix[:, mask], target_data.values)
    left = [name for name, is_kept in zip(names, mask, strict=True) if is_kept]
    pairs = sorted(
        zip(left, forest.feature_importances_.tolist(), strict=True),
        key=lambda pair: (-pair[1], pair[0]),
    )
    return dict(pairs)


def _checked(task: str, max_texts: int, options: ModelOptions) -> ModelOptions:
    require_choice("task", task, ("auto", *TASKS))
    whole_number("max_texts", max_texts, 1)
    whole_number("folds", options.folds, 2)
    whole_number("trees", options.trees, 1, MOST_TREES)
    whole_number("seed", options.seed, 0, MOST_SEED)
    return options
