"""Models of files: fit one to a table, and predict with it."""

import csv
import io
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
from ..datasets import DataError, Table
from ..linear_model import ProportionRegressor, ProportionRegressorCV
from ..linear_model._fitting import Fitted
from ..linear_model._regressor import restored
from ..linear_model.solvers import Outcome
from ..losses import get_loss
from ..preprocessing import label_proportions
from ..sets import Simplex
from .model_files import MAX_COEFFICIENTS, SavedModel
from .progress import Bar, progress
from .protocol import ALPHAS, useful_columns

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
    return isinstance(get_loss(loss).regularizer.domain, Simplex)


def fit(
    table: Table,
    file: Path,
    loss: str,
    alpha: float | None,
    *,
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
        intercept: whether to learn one.
        standardize: whether the model sees standardised features.
    """
    if has_classes(loss):
        table = table.labelled(file)
        Y = label_proportions(table.Y)
    else:
        Y = np.asarray(table.Y, dtype=np.float64)
    notes = list(table.notes)
    width = table.X.shape[1]
    if width * Y.shape[1] > MAX_COEFFICIENTS:
        what = f"{width} features × {Y.shape[1]} targets"
        raise DataError(f"{what} are more than {MAX_COEFFICIENTS} coefficients", file)
    varies = useful_columns(table.X, centred=intercept or standardize)
    if varies.size == 0:
        raise DataError("every feature is constant", file)
    if varies.size < width:
        what = f"{width - varies.size} of {width} features"
        notes.append(f"{what} are constant and left out (coefficient 0; predict expects them)")
    options: dict[str, Any] = {"fit_intercept": intercept, "standardize": standardize}
    if alpha is None:
        folds = KFold(min(FOLDS, len(Y)), shuffle=True, random_state=0)
        estimator: Estimator = ProportionRegressorCV(loss, ALPHAS, cv=folds, **options)
    else:
        estimator = ProportionRegressor(loss, alpha, **options)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            _fit(estimator, table.X[:, varies], Y, file.name)
    except ValueError as error:
        raise DataError(" ".join(str(error).split()), file) from None
    notes += [_first_sentence(warning) for warning in caught]
    coef = np.zeros((Y.shape[1], width))
    coef[:, varies] = estimator.coef_
    cv_score = None
    if isinstance(estimator, ProportionRegressorCV):
        alpha, cv_score = float(estimator.alpha_), estimator.best_score_
        if alpha in (min(ALPHAS), max(ALPHAS)):
            end = "weakest" if alpha == min(ALPHAS) else "strongest"
            notes.append(f"α = {alpha:g} is the {end} penalty that was tried")
    model = SavedModel(
        _plain(estimator, coef),
        table.feature_names,
        table.target_names,
        table.kind,
        table.codes,
        cv_score,
    )
    return FileFit(model, len(Y), tuple(notes))


def _plain(estimator: Estimator, coef: np.ndarray) -> ProportionRegressor:
    """The fitted model without what chose its alpha, with the coefficients of all features."""
    is_cv = isinstance(estimator, ProportionRegressorCV)
    regressor = ProportionRegressor(
        estimator.loss,
        estimator.alpha_ if is_cv else estimator.alpha,
        fit_intercept=estimator.fit_intercept,
        standardize=estimator.standardize,
    )
    outcome = Outcome(
        estimator.objective_, estimator.gradient_norm_, estimator.n_iter_, estimator.status_
    )
    return restored(regressor, Fitted(coef, estimator.intercept_, outcome))


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
