"""Models of files: fit one to a table, and predict with it."""

import csv
import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from .. import metrics
from ..datasets import Columns, DataError, Table
from ..linear_model import (
    DEFAULT_ALPHAS,
    FittedModel,
    ProportionRegressor,
    ProportionRegressorCV,
    constant_columns,
)
from ..losses import get_loss
from ..preprocessing import label_proportions
from .model_files import MAX_COEFFICIENTS, SavedModel
from .progress import Bar, progress

FOLDS = 5

Estimator = ProportionRegressor | ProportionRegressorCV


@dataclass(frozen=True, eq=False)
class FileFit:
    """A model, the number of samples it was fitted to, and notes on how that went."""

    model: SavedModel
    samples: int
    notes: tuple[str, ...]


def has_classes(loss: str) -> bool:
    """Whether its predictions are proportions of classes, not numbers of their own."""
    return get_loss(loss).regularizer.domain.has_labels


def fit(
    table: Table,
    file: Path,
    loss: str,
    alpha: float | None,
    *,
    tightness: float | None = None,
    intercept: bool,
    standardize: bool,
) -> FileFit:
    """Fit to all samples; without alpha, cross-validation on five shuffled folds chooses it.

    Samples without a label are left out where the loss needs one. Features that are constant are
    left out too: their coefficients are zero.

    Args:
        table: the data.
        file: where they are from.
        loss: its name.
        alpha: strength of the penalty, or None.
        tightness: replaces that of a Fitzpatrick loss.
        intercept: whether to learn one.
        standardize: whether the model sees standardized features.
    """
    if has_classes(loss):
        table = table.labelled(file)
        Y = label_proportions(table.Y)
    else:
        Y = np.asarray(table.Y, dtype=np.float64)
        _check_targets(Y, table, loss, file)
    notes = list(table.notes)
    width = table.X.shape[1]
    if width * Y.shape[1] > MAX_COEFFICIENTS:
        raise DataError(
            f"{width} features × {Y.shape[1]} targets are more than {MAX_COEFFICIENTS} "
            "coefficients",
            file,
        )
    constant = constant_columns(table.X, zero_only=not (intercept or standardize))
    kept = np.delete(np.arange(width), constant)
    if kept.size == 0:
        raise DataError("every feature is constant", file)
    if constant.size:
        notes.append(
            f"{constant.size} of {width} features are constant and left out (coefficient 0; "
            "predict expects them)"
        )
    options: dict[str, Any] = {"fit_intercept": intercept, "standardize": standardize}
    if alpha is None:
        folds = KFold(min(FOLDS, len(Y)), shuffle=True, random_state=0)
        tightnesses = None if tightness is None else [tightness]
        estimator: Estimator = ProportionRegressorCV(
            loss, tightnesses=tightnesses, cv=folds, **options
        )
    else:
        estimator = ProportionRegressor(loss, alpha, tightness=tightness, **options)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            _fit(estimator, table.X[:, kept], Y, file.name)
    except ValueError as error:
        raise DataError(" ".join(str(error).split()), file) from None
    notes += [_first_sentence(warning) for warning in caught]
    cv_score = None
    if isinstance(estimator, ProportionRegressor):
        alpha = float(estimator.alpha)
    else:
        alpha, cv_score = float(estimator.alpha_), estimator.best_score_
        if alpha in (min(DEFAULT_ALPHAS), max(DEFAULT_ALPHAS)):
            end = "weakest" if alpha == min(DEFAULT_ALPHAS) else "strongest"
            notes.append(f"α = {alpha:g} is the {end} penalty that was tried")
    coef = np.zeros((Y.shape[1], width))
    coef[:, kept] = estimator.coef_
    fitted = FittedModel(
        alpha,
        coef,
        estimator.intercept_.astype(np.float64),
        estimator.objective_,
        estimator.gradient_norm_,
        estimator.n_iter_,
        estimator.status_,
    )
    model = SavedModel(
        ProportionRegressor.from_model(fitted, loss, tightness=tightness, **options),
        table.columns or Columns.plain(table.feature_names),
        table.target_names,
        table.kind,
        cv_score,
    )
    return FileFit(model, len(Y), tuple(notes))


def _check_targets(Y: np.ndarray, table: Table, loss: str, file: Path) -> None:
    """Raise for the first target that the loss does not take, with its line."""
    domain = get_loss(loss).regularizer.domain
    inside = np.asarray(domain.contains(Y))
    if inside.all():
        return
    row = int((~inside).argmax())
    what = re.sub(
        r"\bentry (\d+)",
        lambda match: f"target {table.target_names[int(match[1])]!r}",
        domain.violation(Y[row]),
    )
    line = int(table.lines[row]) if table.lines.size else None
    raise DataError(f"{what}, the range of the loss {loss!r}", file, line)


def _fit(estimator: Estimator, X: Any, Y: np.ndarray, title: str) -> None:
    """Fit; the progress of a cross-validation is shown."""
    if isinstance(estimator, ProportionRegressor):
        estimator.fit(X, Y)
        return
    with progress(title, estimator.cv.n_splits * len(estimator.alphas)) as report:
        report(0)
        estimator.set_params(scoring=_reporting(report)).fit(X, Y)


def _reporting(report: Bar) -> Callable[..., float]:
    """The scorer of the cross-validation, which says how often it was asked."""
    scorer = metrics.get_scorer("squared_error")
    fits = count(1)

    def score(*args: Any, **kwargs: Any) -> float:
        value = float(scorer(*args, **kwargs))
        report(next(fits))
        return value

    return score


def _first_sentence(warning: warnings.WarningMessage) -> str:
    """What happened; the advice that follows is for those who write Python."""
    return str(warning.message).partition(": ")[2].partition(". ")[0]


def predictions_csv(model: SavedModel, X: Any) -> str:
    """A header with the targets' names and one line per sample, in the order of X.

    Models of class labels have a last column, the class of the largest proportion.
    """
    predictions = np.asarray(model.estimator.predict(X))
    header, rows = list(model.target_names), [[f"{p:.9g}" for p in row] for row in predictions]
    if model.kind == "labels":
        column = "class"
        while column in header:
            column += "_"
        header.append(column)
        for row, best in zip(rows, predictions.argmax(axis=1), strict=True):
            row.append(model.target_names[best])
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([header, *rows])
    return buffer.getvalue()
