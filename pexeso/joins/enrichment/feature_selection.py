"""Which of the columns that enrichment added help to predict a target, and how much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import InputError
from pexeso.joins.enrichment.enrich import Enrichment, table_to_enrich
from pexeso.joins.enrichment.gathering import FEW_NUMBERS, NUMBER, Column, column_of_values
from pexeso.lake.frames.tables import AsTables
from pexeso.options import whole_number
from pexeso.runtime.checks import require_choice
from pexeso.runtime.extras import require
from pexeso.runtime.formatting import plain, shown

REGRESSION = "regression"
CLASSIFICATION = "classification"
TASKS = (REGRESSION, CLASSIFICATION)

# The largest number that trees take, to either side of 0.
MAX_NUMBER = float(np.finfo(np.float32).max)

# Share of the features that elimination drops at a time.
_STEP = 0.25


@dataclass(frozen=True)
class Features:
    """Features of n rows, float64 (n, m): NaN where there is no cell."""

    matrix: np.ndarray
    names: tuple[str, ...]
    left_out: dict[str, str]

    def of(self, names: list[str]) -> np.ndarray:
        return self.matrix[
            :, [position for position, name in enumerate(self.names) if name in set(names)]
        ]


def read_features(
    columns: Mapping[str, Any], rows: np.ndarray, *, max_texts: int, min_number_fraction: float
) -> Features:
    """Make features of columns.

    A column of text becomes one feature, the place of its text in order: all that a tree needs, and
    elimination can then keep or drop the column. The encoder sees no target, so it can be fitted
    before the rows are split.
    """
    features, names, left_out = [], [], {}
    for name, values in columns.items():
        column = column_of_values(values, min_number_fraction).take(pa.array(rows))
        if column.distinct < 2:
            left_out[name] = "the same in all rows"
        elif column.kind != NUMBER and column.distinct > max_texts:
            left_out[name] = f"{column.distinct:,} different texts, more than {max_texts:,}"
        elif (number := _too_large(column)) is not None:
            left_out[name] = f"the number {number:g}, of which trees take at most {MAX_NUMBER:.2g}"
        else:
            features.append(_feature(column))
            names.append(name)
    return Features(
        np.column_stack(features) if features else np.zeros((len(rows), 0)), tuple(names), left_out
    )


def _too_large(column: Column) -> float | None:
    if column.kind != NUMBER:
        return None
    cells = column.cells.filter(pc.greater(pc.abs(column.cells), MAX_NUMBER))
    return cells[0].as_py() if len(cells) else None


def _feature(column: Column) -> np.ndarray:
    cells = column.cells.to_numpy(zero_copy_only=False)
    if column.kind == NUMBER:
        return cells.astype(np.float64)
    require("sklearn", "Choosing features")
    from sklearn.preprocessing import OrdinalEncoder

    cells = np.where(column.cells.is_valid().to_numpy(zero_copy_only=False), cells, np.nan).astype(
        object
    )
    return OrdinalEncoder().fit_transform(cells[:, None])[:, 0]


@dataclass(frozen=True)
class Target:
    """What is to be predicted: numbers, or classes as text, of `rows`, those that have one."""

    task: str
    values: np.ndarray
    rows: np.ndarray


def read_target(values: Any, task: str, *, folds: int, min_number_fraction: float) -> Target:
    column = column_of_values(values, min_number_fraction)
    present = column.cells.is_valid().to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(present)
    cells = column.cells.take(pa.array(rows))
    if task == "auto":
        amounts = column.kind == NUMBER and pc.count_distinct(cells).as_py() > FEW_NUMBERS
        task = REGRESSION if amounts else CLASSIFICATION
    if len(rows) < 2 * folds:
        raise InputError(
            f"The target has {len(rows):,} rows with a value; {folds} folds need at least "
            f"{2 * folds}."
        )
    if task == REGRESSION:
        if column.kind != NUMBER:
            raise InputError(
                "The target is not one of numbers, so it cannot be the target of a regression. "
                "Use task='classification'."
            )
        if (number := _too_large(column)) is not None:
            raise InputError(
                f"The target has the number {number:g}, which no regression is possible with: "
                f"numbers are at most {MAX_NUMBER:.2g}. Leave out such rows, or scale the target."
            )
        return Target(task, cells.to_numpy(zero_copy_only=False), rows)
    classes = pc.cast(cells, pa.string()).to_numpy(zero_copy_only=False).astype(object)
    _check_classes(classes, folds)
    return Target(task, classes, rows)


def _check_classes(classes: np.ndarray, folds: int) -> None:
    labels, counts = np.unique(classes.astype(str), return_counts=True)
    names = labels.tolist()
    if len(names) < 2:
        raise InputError(
            f"The target has one class alone, {names[0]!r}: there is nothing to tell apart."
        )
    fewest = int(counts.argmin())
    n_rows = int(counts[fewest])
    if n_rows < 2 * folds:
        raise InputError(
            f"The class {names[fewest]!r} of the target has {n_rows:,} row{'s' * (n_rows != 1)}; "
            f"{folds} folds need at least {2 * folds} of each class. "
            "Put rare classes together, or ask for fewer folds."
        )


# Random forests on features chosen by recursive elimination.
#
# They predict rows that they have not seen.


@dataclass(frozen=True)
class ModelOptions:
    """How often rows are split, by seed and classes in their shares, and the trees of a forest."""

    folds: int = 4
    trees: int = 50
    seed: int = 0


def make_forest(task: str, options: ModelOptions) -> Any:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestRegressor if task == REGRESSION else RandomForestClassifier
    return kind(n_estimators=options.trees, random_state=options.seed, n_jobs=1)


def make_folds(task: str, options: ModelOptions) -> Any:
    from sklearn.model_selection import KFold, StratifiedKFold

    kind = KFold if task == REGRESSION else StratifiedKFold
    return kind(options.folds, shuffle=True, random_state=options.seed)


def choose_features(
    matrix: np.ndarray, values: np.ndarray, task: str, options: ModelOptions
) -> np.ndarray:
    """Choose features by recursive elimination, as many as do best in tests: bool (m,)."""
    if matrix.shape[1] < 2:
        return np.ones(matrix.shape[1], dtype=bool)
    from sklearn.feature_selection import RFECV

    scoring = "neg_mean_squared_error" if task == REGRESSION else "accuracy"
    forest, folds = make_forest(task, options), make_folds(task, options)
    return RFECV(forest, step=_STEP, cv=folds, scoring=scoring).fit(matrix, values).support_


def predict_unseen(
    matrix: np.ndarray, values: np.ndarray, task: str, options: ModelOptions
) -> np.ndarray:
    """Predict each row by a forest that is trained on the other folds."""
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

    Returns dict: ``mean_squared_error`` and ``r2`` of a regression; ``accuracy`` (the same as micro
    F1 where each row has one class) and ``macro_f1``.
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

# Trees of a forest: with more a choice takes days, and comes out the same.
MOST_TREES = 10_000

# The largest that NumPy's older generator takes.
MOST_SEED = 2**32 - 1


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

    # What `to_pandas` and the others report of each column: kept, eliminated, or no feature.
    fields = ("column", "status", "importance", "reason")

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
    chosen again in each fold: choosing them on all rows first makes any score too good.

    Parameters
    ----------
    enrichment : Enrichment
    target : str, optional
        A column of its table; by default the target that it was made with.
    task : {"auto", "regression", "classification"}
        ``auto``: numbers of more than ten different values are predicted, all else is classified.
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
    require_choice("task", task, ("auto", *TASKS))
    whole_number("max_texts", max_texts, 1)
    whole_number("folds", folds, 2)
    whole_number("trees", trees, 1, MOST_TREES)
    whole_number("seed", seed, 0, MOST_SEED)
    options = ModelOptions(folds, trees, seed)
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
