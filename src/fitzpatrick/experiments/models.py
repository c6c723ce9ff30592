"""Models of files: fit one to a table, and predict with it."""

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
from ..linear_model import DEFAULT_ALPHAS, FittedModel, ProportionRegressor, fit_path
from ..linear_model._checks import check_features
from ..linear_model._design import constant_columns
from ..losses import get_loss
from ..metrics import squared_error
from ..preprocessing import label_proportions
from .model_files import MAX_COEFFICIENTS, SavedModel
from .protocol import SEARCH_TOL, LossChoice, Protocol, search
from .report import csv_text, edge_of_grid
from .runner import progress

TOL = 1e-8
FOLDS = 5

_FORMULA = tuple("=+-@\t\r")  # what spreadsheets take for the beginning of one
_NUMBER = re.compile(r"[+-]?[\d.,'\s]*\d[\d.,'\s]*([eE][+-]?\d+)?\s*%?")

Rows = tuple[Matrix, np.ndarray]  # features and targets


@dataclass(frozen=True, eq=False)
class FileFit:
    """A model, and how it was fitted.

    Attributes:
        model: to be saved.
        samples: how many it was fitted to.
        notes: what was left out, and the like.
        baseline: cross-validated squared error of the mean target, beside the model's ``cv_score``;
            None if alpha was given.
    """

    model: SavedModel
    samples: int
    notes: tuple[str, ...]
    baseline: float | None = None


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
    labelled_only: bool = False,
) -> FileFit:
    """Fit to all samples; without alpha, cross-validation on five shuffled folds chooses it.

    The search for alpha goes on between the given ones, around the best. Samples without a label
    are left out if the loss needs one. Features that are constant are left out too: their
    coefficients are zero.

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
        labelled_only: whether samples without a label are left out for every loss.
    """
    if has_classes(loss):
        table = table.labelled(file)
        Y = label_proportions(table.Y)
    else:
        table = table.labelled(file) if labelled_only else table
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
    cv_error = baseline = None
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            check_features(X)
        if alpha is None:
            protocol = Protocol(alphas=tuple(alphas), whole_grid=whole_grid, refine=True)
            errors, baseline, unconverged = _cross_validate(
                X, Y, choice, protocol, file.name, options
            )
            if unconverged:
                notes.append(f"{unconverged} fits of the cross-validation did not converge")
            alpha = min(sorted(errors, reverse=True), key=errors.__getitem__)
            cv_error = errors[alpha]
            if alpha in (min(alphas), max(alphas)):
                notes.append(edge_of_grid(alpha, is_weakest=alpha == min(alphas)))
            if min(errors) > min(alphas):
                notes.append(
                    f"the search stopped at α = {min(errors):g}, where the error had clearly "
                    "risen; --whole-grid goes on to the weakest penalty"
                )
        with (
            warnings.catch_warnings(record=True) as caught,
            progress(f"{file.name}: fitting", None, "iterations") as bar,
        ):
            warnings.simplefilter("always", ConvergenceWarning)
            estimator = ProportionRegressor(
                loss,
                alpha,
                tightness=tightness,
                callback=lambda _: bar.update() and None,
                **options,
            ).fit(X, Y)
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
    return FileFit(model, len(Y), tuple(notes), baseline)


def _cross_validate(
    X: Matrix,
    Y: np.ndarray,
    choice: LossChoice,
    protocol: Protocol,
    title: str,
    options: dict[str, Any],
) -> tuple[dict[float, float], float, int]:
    """Mean squared error over the folds of each alpha that the search comes to.

    And of the mean target, and the number of fits that did not converge.
    """
    splits = KFold(min(FOLDS, len(Y)), shuffle=True, random_state=0).split(X)
    folds = [_Fold.of(X, Y, rows, choice, options) for rows in splits]
    errors: dict[float, float] = {}
    unconverged = 0
    tol = TOL if protocol.whole_grid else SEARCH_TOL
    with progress(f"{title}: choosing α", None) as bar:
        for alpha in search(protocol, errors):
            found = []
            for fold in folds:
                error, has_converged = fold.fit(alpha, tol)
                found.append(error)
                unconverged += not has_converged
                bar.update()
            errors[alpha] = float(np.mean(found))
    return errors, float(np.mean([fold.baseline for fold in folds])), unconverged


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

    @property
    def baseline(self) -> float:
        """The error of the mean target."""
        Y = self.held_out[1]
        return squared_error(Y, np.broadcast_to(self.fitted[1].mean(axis=0), Y.shape))

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
            row.append(safe_cell(model.target_names[best]))
    columns = list(zip(*kept.values(), strict=True)) if kept else [()] * len(rows)
    lines = [[*map(safe_cell, first), *row] for first, row in zip(columns, rows, strict=True)]
    return csv_text([[safe_cell(name) for name in (*kept, *header)], *lines])


def coefficients_csv(model: SavedModel) -> str:
    """One line for the intercepts and one per feature, one column per target."""
    estimator = model.estimator
    names = ["(intercept)", *model.columns.feature_names]
    rows = np.vstack([estimator.intercept_, estimator.coef_.T])
    lines = [
        [safe_cell(name), *(f"{value:.9g}" for value in row)]
        for name, row in zip(names, rows, strict=True)
    ]
    return csv_text([["feature", *map(safe_cell, model.target_names)], *lines])


def safe_cell(text: str) -> str:
    """A cell of text as a spreadsheet will show it: with an apostrophe if it would be a formula.

    Numbers stay as they are, and so does a single sign.

    Example:
        >>> [safe_cell(text) for text in ("=1+1", "@a", "-x", "-1.5", "+3 %", "-", "a=b")]
        ["'=1+1", "'@a", "'-x", '-1.5', '+3 %', '-', 'a=b']
    """
    is_formula = text[:1] in _FORMULA and len(text) > 1 and not _NUMBER.fullmatch(text)
    return f"'{text}" if is_formula else text


def _other_name(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name
