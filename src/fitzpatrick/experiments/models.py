"""Models of files: fit one to a table, and predict with it."""

import csv
import io
import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from ..datasets import Columns, DataError, Table
from ..datasets._table import Matrix
from ..linear_model import (
    DEFAULT_ALPHAS,
    FittedModel,
    ProportionRegressor,
    check_features,
    constant_columns,
    fit_path,
    has_risen,
)
from ..losses import get_loss
from ..metrics import squared_error
from ..preprocessing import label_proportions
from .model_files import MAX_COEFFICIENTS, SavedModel
from .progress import elapsed, progress
from .protocol import SEARCH_TOL, LossChoice
from .text import edge_of_grid

TOL = 1e-8
FOLDS = 5

Rows = tuple[Matrix, np.ndarray]  # features and targets


@dataclass(frozen=True, eq=False)
class FileFit:
    """A model, the number of samples it was fitted to, and notes on how that went."""

    model: SavedModel
    samples: int
    notes: tuple[str, ...]


def has_classes(loss: str) -> bool:
    """Whether its predictions are proportions of classes, not numbers of their own."""
    return get_loss(loss).regularizer.domain.has_labels


def read_for_fit(read: Callable[..., Table], loss: str) -> Table:
    """The table that a loss is fitted to: labels, or numbers as they are.

    Args:
        read: the reader, which takes ``plain``.
        loss: its name.
    """
    domain = get_loss(loss).regularizer.domain
    if domain.has_labels:
        return read()
    if domain.contains(np.ones(1)) and not domain.contains(np.full(1, 2.0)):
        try:
            table = read()  # a column may hold tags
        except DataError:  # probabilities of several labels, which need not sum to one
            return read(plain=True)
        if table.kind == "indicators":
            return table
    return read(plain=True)


def fit(
    table: Table,
    file: Path,
    loss: str,
    alpha: float | None,
    *,
    alphas: Sequence[float] = DEFAULT_ALPHAS[::-1],
    whole_grid: bool = False,
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
        alphas: what cross-validation chooses from, falling.
        whole_grid: whether it fits them all, even where weaker ones have become clearly worse.
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
    if table.kind == "indicators" and table.without_label:
        notes.append(f"{table.without_label} and are kept: each of their targets is 0")
    width = table.X.shape[1]
    if width * Y.shape[1] > MAX_COEFFICIENTS:
        raise DataError(
            f"{width} features × {Y.shape[1]} targets are more than {MAX_COEFFICIENTS} "
            "coefficients",
            file,
        )
    is_centered = intercept or standardize
    constant = constant_columns(table.X, zero_only=not is_centered)
    kept = np.delete(np.arange(width), constant)
    if kept.size == 0:
        raise DataError("every feature is constant", file)
    if constant.size:
        notes.append(
            f"{constant.size} of {width} features are constant and left out (coefficient 0; "
            "predict expects them)"
        )
    X = table.X[:, kept]
    options: dict[str, Any] = {"fit_intercept": intercept, "standardize": standardize}
    choice = LossChoice.of(loss, tightness)
    cv_error = None
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            check_features(X)
        if alpha is None:
            curve, unconverged = _cross_validate(
                X, Y, choice, alphas, file.name, options, whole_grid=whole_grid
            )
            if unconverged:
                notes.append(f"{unconverged} fits of the cross-validation did not converge")
            cv_error = min(curve)
            alpha = float(alphas[curve.index(cv_error)])
            if alpha in (min(alphas), max(alphas)):
                notes.append(edge_of_grid(alpha, is_weakest=alpha == min(alphas)))
            if len(curve) < len(alphas):
                notes.append(
                    f"the search stopped at α = {alphas[len(curve) - 1]:g}, where the error had "
                    "clearly risen; --whole-grid goes on to the weakest penalty"
                )
        estimator = ProportionRegressor(loss, alpha, tightness=tightness, **options)
        with warnings.catch_warnings(record=True) as caught, elapsed(f"{file.name}: fitting"):
            warnings.simplefilter("always", ConvergenceWarning)
            estimator.fit(X, Y)
    except ValueError as error:
        raise DataError(" ".join(str(error).split()), file) from None
    notes += [_first_sentence(warning) for warning in caught]
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
        None if cv_error is None else -cv_error,
    )
    return FileFit(model, len(Y), tuple(notes))


def _cross_validate(
    X: Matrix,
    Y: np.ndarray,
    choice: LossChoice,
    alphas: Sequence[float],
    title: str,
    options: dict[str, Any],
    *,
    whole_grid: bool,
) -> tuple[list[float], int]:
    """Mean squared error over the folds for each alpha, until it has clearly risen.

    And the number of fits that did not converge.
    """
    splits = KFold(min(FOLDS, len(Y)), shuffle=True, random_state=0).split(X)
    folds = [_Fold.of(X, Y, rows, choice, options) for rows in splits]
    curve: list[float] = []
    unconverged = 0
    with progress(f"{title}: choosing α", len(folds) * len(alphas)) as report:
        for alpha in alphas:
            errors: list[float] = []
            for fold in folds:
                report(len(curve) * len(folds) + len(errors))
                error, has_converged = fold.fit(alpha, TOL if whole_grid else SEARCH_TOL)
                errors.append(error)
                unconverged += not has_converged
            curve.append(float(np.mean(errors)))
            if not whole_grid and has_risen(curve):
                break
        report(len(folds) * len(alphas))
    return curve, unconverged


@dataclass(eq=False)
class _Fold:
    """Rows to fit and rows held out, and where the last fit ended: the next one starts there."""

    fitted: Rows
    held_out: Rows
    choice: LossChoice
    options: dict[str, Any]
    start: tuple[np.ndarray, np.ndarray] | None = None

    @classmethod
    def of(
        cls,
        X: Matrix,
        Y: np.ndarray,
        rows: tuple[np.ndarray, np.ndarray],
        choice: LossChoice,
        options: dict[str, Any],
    ) -> "_Fold":
        """The rows of a fold, without the features that are constant on those to fit."""
        fitted, held_out = rows
        constant = constant_columns(X[fitted], zero_only=not any(options.values()))
        kept = np.delete(np.arange(X.shape[1]), constant)
        if kept.size == 0:
            raise ValueError(f"every feature is constant on the {len(fitted)} samples of a fold")
        X = X[:, kept]
        return cls((X[fitted], Y[fitted]), (X[held_out], Y[held_out]), choice, options)

    def fit(self, alpha: float, tol: float) -> tuple[float, bool]:
        """The error on the rows held out, and whether the fit converged."""
        loss = self.choice.loss
        path = fit_path(*self.fitted, loss, [alpha], tol=tol, start=self.start, **self.options)
        model = path.models[0]
        self.start = model.coef, model.intercept
        X, Y = self.held_out
        scores = np.asarray(X @ model.coef.T) + model.intercept
        return squared_error(Y, loss.link(scores)), model.status.converged


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


def _first_sentence(warning: warnings.WarningMessage) -> str:
    """What happened; the advice that follows is for those who write Python."""
    return str(warning.message).partition(": ")[2].partition(". ")[0]


def predictions_csv(
    model: SavedModel, X: Any, kept: Mapping[str, Sequence[str]] | None = None
) -> str:
    """A header with the targets' names and one line per sample, in the order of X.

    Models of class labels have a last column, the class of the largest proportion.

    Args:
        model: what predicts.
        X: the features.
        kept: columns to put first, by name.
    """
    kept = kept or {}
    predictions = model.predict_features(X)
    header = [_other_name(name, kept) for name in model.target_names]
    rows = [[f"{p:.9g}" for p in row] for row in predictions]
    if model.kind == "labels":
        header.append(_other_name("class", (*header, *kept)))
        for row, best in zip(rows, predictions.argmax(axis=1), strict=True):
            row.append(model.target_names[best])
    columns = list(zip(*kept.values(), strict=True)) if kept else [()] * len(rows)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([*kept, *header])
    writer.writerows([*first, *row] for first, row in zip(columns, rows, strict=True))
    return buffer.getvalue()


def _other_name(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name
